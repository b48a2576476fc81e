//! Tells systemd how it goes (sd_notify(3)): that it is ready, that it reads its settings again, that it ends, and, for the watchdog, that something was measured. The
//! watchdog is fed by seconds and by no timer, so that a recorder that records nothing is started again.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// Where states are sent, and the process whose watchdog is fed with a time of its own.
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// What other programs are not to inherit: they would speak for this one.
pub(super) const OWN: [&str; 3] = [SOCKET, WATCHDOG, WATCHDOG_PID];

/// The manager of services, if there is one.
#[derive(Debug, Default)]
pub(super) struct Service {
    to: Option<(UnixDatagram, SocketAddr)>,
    has_watchdog: bool,
}

impl Service {
    /// What started this program.
    pub(super) fn of_environment() -> Self {
        let is_own = std::env::var(WATCHDOG_PID).map_or(true, |pid| pid == std::process::id().to_string());
        let has_watchdog = is_own && std::env::var(WATCHDOG).is_ok_and(|time| time.parse::<u64>().is_ok_and(|us| us > 0));
        let address = std::env::var_os(SOCKET).and_then(|name| address(name.as_bytes()));
        let to = address.and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            // A manager that takes nothing must not hold up anybody.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        Self { to, has_watchdog }
    }

    /// It watches.
    pub(super) fn ready(&self) {
        self.send("READY=1");
    }

    /// Something was measured.
    pub(super) fn alive(&self) {
        if self.has_watchdog {
            self.send("WATCHDOG=1");
        }
    }

    /// It reads its settings again, until it is ready.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000));
    }

    /// It ends.
    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// A sentence for `systemctl status`; an empty one takes it back.
    pub(super) fn status(&self, sentence: &str) {
        self.send(&format!("STATUS={sentence}"));
    }

    fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.to {
            // A manager that is gone hears nothing.
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

/// A path, or with `@` a name in the abstract namespace (unix(7)).
fn address(name: &[u8]) -> Option<SocketAddr> {
    match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a manager at this address hears from a service with or without a watchdog.
    fn heard(to: SocketAddr, manager: &UnixDatagram, has_watchdog: bool) -> Vec<String> {
        let service = Service { to: Some((UnixDatagram::unbound().unwrap(), to)), has_watchdog };
        service.ready();
        service.alive();
        service.reloading();
        service.status("nothing was measured for 8 s");
        service.stopping();
        manager.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        std::iter::from_fn(|| manager.recv(&mut bytes).ok().map(|length| String::from_utf8_lossy(&bytes[..length]).into_owned())).collect()
    }

    #[test]
    fn a_manager_hears_each_state_at_a_path_and_at_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let abstract_name = format!("@chokepoint-test-{}", std::process::id());
        for (name, has_watchdog) in [(path.to_str().unwrap(), true), (&abstract_name, false)] {
            let to = || address(name.as_bytes()).unwrap();
            let heard = heard(to(), &UnixDatagram::bind_addr(&to()).unwrap(), has_watchdog);
            assert_eq!((heard[0].as_str(), heard.contains(&"WATCHDOG=1".to_owned())), ("READY=1", has_watchdog), "{heard:?}");
            assert!(heard.iter().any(|state| state.starts_with("RELOADING=1\nMONOTONIC_USEC=")), "{heard:?}");
            assert_eq!(heard[heard.len() - 2..], ["STATUS=nothing was measured for 8 s", "STOPPING=1"], "{heard:?}");
        }
    }

    #[test]
    fn without_a_manager_nothing_is_sent() {
        Service::default().ready();
        assert!(address(b"relative").is_none() && address(b"").is_none());
        let gone = Service { to: Some((UnixDatagram::unbound().unwrap(), address(b"/nonexistent/notify").unwrap())), has_watchdog: true };
        gone.alive();
    }
}
