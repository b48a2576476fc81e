//! Listening sockets of another process: reading and setting the limit of their accept queue through a duplicate descriptor (pidfd_getfd(2)).

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use chokepoint_config::{haproxy, nginx, php_fpm};
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use super::edit;
use super::master::Master;
use super::view::View;

/// Most descriptors inspected of one process.
const DESCRIPTORS_MAX: usize = 65_536;

/// The address of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListenAddress {
    /// An address and port.
    Tcp(SocketAddr),
    /// Any address with this port.
    Port(u16),
    /// A path.
    Unix(String),
}

impl ListenAddress {
    /// Parses an address of a configuration file: "0.0.0.0:80", "[::]:80", "9000", "/run/x.sock", "unix:/run/x.sock".
    pub(super) fn parse(text: &str) -> Option<Self> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            return Some(Self::Unix(path.to_owned()));
        }
        text.parse().map(Self::Tcp).or_else(|_| text.parse().map(Self::Port)).ok()
    }

    /// The address of a `listen` of nginx: of a name only the port. Nothing for a path that is not absolute.
    pub(super) fn of_nginx(address: &nginx::Address) -> Option<Self> {
        match address {
            nginx::Address::Ip(ip, port) => Some(Self::Tcp(SocketAddr::new(*ip, *port))),
            nginx::Address::Name(_, port) => Some(Self::Port(*port)),
            nginx::Address::Unix(path) => path.starts_with('/').then(|| Self::Unix(path.clone())),
        }
    }

    /// The same for a pool of php-fpm.
    pub(super) fn of_pool(listen: &php_fpm::Listen) -> Option<Self> {
        match listen {
            php_fpm::Listen::Ip(ip, port) => Some(Self::Tcp(SocketAddr::new(*ip, *port))),
            php_fpm::Listen::Port(port) | php_fpm::Listen::Name(_, port) => Some(Self::Port(*port)),
            php_fpm::Listen::Unix(path) => path.starts_with('/').then(|| Self::Unix(path.clone())),
        }
    }

    /// The same for HAProxy.
    pub(super) fn of_haproxy(address: &haproxy::Address) -> Option<Self> {
        match address {
            haproxy::Address::Ip(ip, port) => Some(Self::Tcp(SocketAddr::new(*ip, *port))),
            haproxy::Address::Name(_, port) => Some(Self::Port(*port)),
            haproxy::Address::Unix(path) => path.starts_with('/').then(|| Self::Unix(path.clone())),
            haproxy::Address::Unknown => None,
        }
    }

    fn matches(&self, address: &SocketAddrAny) -> bool {
        match self {
            Self::Unix(path) => {
                SocketAddrUnix::try_from(address.clone()).is_ok_and(|unix| unix.path().is_some_and(|own| own.to_bytes() == path.as_bytes()))
            }
            Self::Tcp(wanted) => SocketAddr::try_from(address.clone()).is_ok_and(|own| own == *wanted),
            Self::Port(port) => SocketAddr::try_from(address.clone()).is_ok_and(|own| own.port() == *port),
        }
    }
}

/// Checks that a master, or one of its workers where only these listen, does so at one of the addresses of its main file. What it says of itself, title and arguments, only proposes the file; the sockets that
/// it holds show that the file is its own. The error is a clause.
pub(super) fn check_is_of(master: &Master, view: &View, main: &str) -> Result<(), String> {
    let Some(places) = edit::listens(view, main, master.kind).filter(|places| !places.is_empty()) else { return Ok(()) };
    let held = master.hold()?;
    let mut found = of_any(&held, master.pid(), &places);
    for worker in master.listening_workers() {
        // One may end meanwhile.
        let Ok(process) = worker.hold() else { continue };
        if found.as_ref().is_ok_and(Vec::is_empty) {
            found = of_any(&process, worker.pid, &places);
        }
    }
    match found {
        Ok(sockets) if sockets.is_empty() => Err(format!(
            "process {} listens at none of the addresses of {main}, so it is not known to be the server of this file",
            master.pid()
        )),
        // Without the right to inspect the sockets (a user's own server, where ptrace(2) is restricted) that user may write the file anyway.
        _ => Ok(()),
    }
}

/// Duplicates of the sockets with which a process listens at an address: several with `reuseport`, each once even if the process has several descriptors
/// of it. The error is a clause.
pub(super) fn of(process: &OwnedFd, pid: u32, place: &ListenAddress) -> Result<Vec<OwnedFd>, String> {
    of_any(process, pid, std::slice::from_ref(place))
}

fn of_any(process: &OwnedFd, pid: u32, places: &[ListenAddress]) -> Result<Vec<OwnedFd>, String> {
    let failed = |error: rustix::io::Errno| format!("the listening sockets of process {pid} cannot be accessed (pidfd_getfd(2): {error})");
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| format!("/proc/{pid}/fd: {error}"))?;
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for entry in entries.take(DESCRIPTORS_MAX).flatten() {
        let socket = fs::read_link(entry.path()).ok().filter(|link| link.as_os_str().as_encoded_bytes().starts_with(b"socket:["));
        let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some((name, number)) = socket.zip(number).filter(|(name, _)| !seen.contains(name)) else { continue };
        let socket = match pidfd_getfd(process, number, PidfdGetfdFlags::empty()) {
            // It was closed meanwhile.
            Err(rustix::io::Errno::BADF) => continue,
            taken => taken.map_err(failed)?,
        };
        seen.insert(name);
        let is_at = |address: SocketAddrAny| places.iter().any(|place| place.matches(&address));
        if socket_acceptconn(&socket) == Ok(true) && getsockname(&socket).is_ok_and(is_at) {
            found.push(socket);
        }
    }
    Ok(found)
}

/// The limit of a listening TCP socket's accept queue; nothing for other sockets (`tcpi_sacked` of a listener, tcp(7), `tcp_get_info`).
#[allow(unsafe_code)]
pub(super) fn limit(socket: &OwnedFd) -> Option<u64> {
    // SAFETY: all-zero is a valid tcp_info: it has numbers only.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and both pointers are to live variables of this frame; `length` is the size of the first.
    let result = unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length) };
    (result == 0).then_some(u64::from(info.tcpi_sacked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_an_own_listener_is_read_and_raised() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = ListenAddress::Tcp(listener.local_addr().unwrap());
        let _another = listener.try_clone().unwrap();
        let own = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap();
        let found = match of(&own, std::process::id(), &place) {
            Ok(found) => found,
            Err(why) => return println!("skipped: {why}"),
        };
        assert_eq!(found.len(), 1, "one socket, of which this process has two descriptors and more");
        rustix::net::listen(&found[0], 7).unwrap();
        assert_eq!(limit(&OwnedFd::from(listener)), Some(7), "the duplicate is the same socket");
    }

    #[test]
    fn addresses_are_parsed() {
        assert_eq!(ListenAddress::parse("[::]:80"), Some(ListenAddress::Tcp("[::]:80".parse().unwrap())));
        assert_eq!(ListenAddress::parse("9000"), Some(ListenAddress::Port(9000)));
        assert_eq!(ListenAddress::parse("unix:/run/x.sock"), ListenAddress::parse("/run/x.sock"));
        assert_eq!(ListenAddress::parse("localhost:80"), None);
        assert_eq!(ListenAddress::parse(""), None);
    }
}
