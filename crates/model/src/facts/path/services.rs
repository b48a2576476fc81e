//! Listeners of the host's own services: those of systemd, D-Bus and the system log. A server keeps connections to them (its standard error is often a socket to journald),
//! but gets nothing from them for a request: they are no upstreams.

use std::collections::BTreeSet;

use super::plain;
use crate::observation::{Listener, ListenerAddress, Observation};

/// Directories of their sockets (file-hierarchy(7), systemd-journald.service(8), the D-Bus specification), and where libraries find the system log (syslog(3)).
const DIRECTORIES: &[&str] = &["/run/systemd/", "/run/dbus/", "@/org/freedesktop/", "@/tmp/dbus-"];
const PATHS: &[&str] = &["/dev/log", "/run/log"];
/// Below the directory of each user (pam_systemd(8)).
const OF_USERS: &[&str] = &["bus", "systemd/"];
/// Their programs, as the kernel cuts names, and how those of systemd begin. `systemd` itself opens the sockets of any server that starts on demand.
const PROGRAMS: &[&str] = &["dbus-daemon", "dbus-broker", "dbus-broker-lau", "rsyslogd", "syslogd", "syslog-ng"];
const OF_SYSTEMD: &str = "systemd-";

/// The sockets that processes of the host's services were seen to hold.
pub(super) fn held(obs: &Observation) -> BTreeSet<u64> {
    let is_service = |comm: &str| PROGRAMS.contains(&comm) || comm.starts_with(OF_SYSTEMD);
    let services = obs.processes.values().filter(|process| process.identity.last().is_some_and(|identity| is_service(&identity.comm)));
    services.flat_map(|process| process.files.values()).flat_map(|files| files.sockets.iter().copied()).collect()
}

/// True if a listener is one of the host's services. `held`: what their processes hold.
pub(super) fn is_one(listener: &Listener, held: &BTreeSet<u64>) -> bool {
    held.contains(&listener.inode) || matches!(&listener.address, ListenerAddress::Unix(path) if is_known(plain(path)))
}

fn is_known(path: &str) -> bool {
    let of_user = path.strip_prefix("/run/user/").and_then(|rest| rest.split_once('/')).map(|(_, name)| name);
    DIRECTORIES.iter().any(|directory| path.starts_with(directory))
        || PATHS.contains(&path)
        || of_user.is_some_and(|name| OF_USERS.iter().any(|known| name == *known || (known.ends_with('/') && name.starts_with(known))))
}
