//! The peer that a thread waits for: the descriptor that it passed to its system call, and the socket behind it. Both are looked up a moment after the
//! thread went to sleep. If the descriptor was closed and reused meanwhile, the result is wrong.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::host;
use crate::profile::{Frame, FrameKind};
use crate::sampling::event::{Registers, arguments};
use crate::sampling::record::Sample;
use chokepoint_foreign::printable;

/// Maximum number of sockets whose role is cached. When it is reached, the cache starts empty again.
const SOCKETS_MAX: usize = 1 << 16;
/// Maximum number of descriptors that are searched for a process's listeners, or that one call waits for.
const DESCRIPTORS_MAX: usize = 512;
/// Larger numbers are no descriptors (`fs.nr_open` is 1,048,576 by default).
const DESCRIPTOR_MAX: u64 = 1 << 24;
/// How long the peers of an event loop are assumed not to change.
const LOOP_TIME: Duration = Duration::from_millis(500);
/// Maximum number of servers named for one event loop.
const SERVERS_MAX: usize = 3;
/// The "module" of frames that stand for a peer.
const MODULE: &str = "peer";

/// A frame that names the peer; it becomes the innermost one of the stack.
pub(crate) fn frame(peer: &str) -> Frame {
    Frame { name: format!("[{peer}]"), module: MODULE.to_owned(), kind: FrameKind::Kernel, named: true }
}

/// The peer that a stack's innermost frame names.
pub(crate) fn of_frame(frame: &Frame) -> Option<&str> {
    let name = frame.name.strip_prefix('[')?.strip_suffix(']')?;
    (frame.module == MODULE).then_some(name)
}

/// The role of a socket for the program that holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SocketRole {
    /// The program sends requests to this server.
    Server(String),
    /// The program accepted this connection at a listener.
    Client(String),
    Listener(String),
}

/// When an event loop was looked at, and the peers it waits for.
type LoopPeers = (Instant, Option<Rc<str>>);

/// What is known about sockets.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// By inode, which is unique at any one time.
    sockets: HashMap<u64, Option<SocketRole>>,
    /// The ports at which each process listens.
    listening_ports: HashMap<u32, HashSet<u16>>,
    loops: HashMap<(u32, u64), LoopPeers>,
}

impl Peers {
    /// The peer that a sample's thread waits for, assuming that its system call waits for descriptors. Whether it does is decided later, from its kernel stack.
    pub(crate) fn of(&mut self, sample: &Sample<'_>) -> Option<Rc<str>> {
        let [first, second] = arguments(sample.registers.as_ref()?);
        if self.sockets.len() >= SOCKETS_MAX || self.loops.len() >= SOCKETS_MAX {
            *self = Self::default();
        }
        if first < DESCRIPTOR_MAX {
            return self.of_descriptor(sample.pid, first);
        }
        // poll(2): an array of descriptors with the awaited events.
        let count = usize::try_from(second).ok().filter(|count| (1..=DESCRIPTORS_MAX).contains(count))?;
        let memory = host::MemoryWords::of(sample.pid);
        let descriptors = (0_u64..).step_by(8).take(count).map_while(|offset| word(sample, &memory, first.checked_add(offset)?));
        let descriptors: Vec<u64> = descriptors.map(|word| word & 0xffff_ffff).collect();
        let roles = descriptors.into_iter().filter_map(|descriptor| self.role(sample.pid, descriptor)).collect();
        describe_peers(roles).map(Into::into)
    }

    fn of_descriptor(&mut self, pid: u32, descriptor: u64) -> Option<Rc<str>> {
        let link = host::descriptor(pid, descriptor)?;
        if link != "anon_inode:[eventpoll]" {
            return describe_peers(self.role(pid, descriptor).into_iter().collect()).map(Into::into);
        }
        if let Some((seen, known)) = self.loops.get(&(pid, descriptor))
            && seen.elapsed() < LOOP_TIME
        {
            return known.clone();
        }
        let watched = descriptors_watched(&host::text(&format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default());
        let roles = watched.into_iter().filter_map(|descriptor| self.role(pid, descriptor)).collect();
        let found: Option<Rc<str>> = describe_peers(roles).map(Into::into);
        self.loops.insert((pid, descriptor), (Instant::now(), found.clone()));
        found
    }

    /// The role of the socket behind a descriptor; none if it is no TCP or unix socket, or may not be inspected.
    fn role(&mut self, pid: u32, descriptor: u64) -> Option<SocketRole> {
        let link = host::descriptor(pid, descriptor)?;
        let inode: u64 = link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        if let Some(known) = self.sockets.get(&inode) {
            return known.clone();
        }
        let listening_ports = self.listening_ports.entry(pid).or_insert_with(|| listening_ports_of(pid));
        let found = duplicate(pid, descriptor).ok().and_then(|socket| role_of(&socket, listening_ports));
        self.sockets.insert(inode, found.clone());
        found
    }
}

/// A word of the memory of a sample's process: from the copied stack, or from its current memory.
fn word(sample: &Sample<'_>, memory: &host::MemoryWords, address: u64) -> Option<u64> {
    let pointer = stack_pointer(sample.registers.as_ref()?);
    let at = address.checked_sub(pointer).and_then(|offset| usize::try_from(offset).ok());
    let copied = at.and_then(|at| sample.stack.get(at..at.checked_add(8)?)?.try_into().ok());
    copied.map(u64::from_ne_bytes).or_else(|| memory.word(address))
}

fn stack_pointer(registers: &Registers) -> u64 {
    if cfg!(target_arch = "x86_64") { registers[3] } else { registers[4] }
}

/// The descriptors that an epoll instance watches: "tfd: 7 events: 19 ..." (Documentation/filesystems/proc.rst, "Eventpoll files").
fn descriptors_watched(text: &str) -> Vec<u64> {
    let watched = text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok());
    watched.take(DESCRIPTORS_MAX).collect()
}

/// The peers in words, servers first. Which of them the program needs is not known.
fn describe_peers(roles: BTreeSet<SocketRole>) -> Option<String> {
    let mut servers = Vec::new();
    let (mut clients, mut listeners) = (BTreeSet::new(), BTreeSet::new());
    for end in roles {
        match end {
            SocketRole::Server(at) => servers.push(at),
            SocketRole::Client(at) => drop(clients.insert(at)),
            SocketRole::Listener(at) => drop(listeners.insert(at)),
        }
    }
    let more = servers.len().saturating_sub(SERVERS_MAX);
    servers.truncate(SERVERS_MAX);
    let mut parts: Vec<String> = servers.into_iter().map(|at| format!("the server at {at}")).collect();
    if more > 0 {
        parts.push(format!("{more} more servers"));
    }
    let joined = |all: BTreeSet<String>| all.into_iter().take(SERVERS_MAX).collect::<Vec<_>>().join(", ");
    match (clients.is_empty(), listeners.is_empty()) {
        (false, _) => parts.push(format!("clients of {}", joined(clients))),
        (true, false) => parts.push(format!("new clients of {}", joined(listeners))),
        (true, true) => {}
    }
    (!parts.is_empty()).then(|| parts.join(" or "))
}

/// The ports at which a process listens.
fn listening_ports_of(pid: u32) -> HashSet<u16> {
    let descriptors = host::descriptors(pid).into_iter().map(u64::from).take(DESCRIPTORS_MAX);
    let sockets = descriptors.filter(|descriptor| host::descriptor(pid, *descriptor).is_some_and(|link| link.starts_with("socket:")));
    let listeners = sockets.filter_map(|descriptor| duplicate(pid, descriptor).ok()).filter(listens);
    listeners.filter_map(|socket| address(&socket, libc::getsockname)?.port()).collect()
}

/// A duplicate of another process's socket (pidfd_getfd(2), Linux 5.6; needs CAP_SYS_PTRACE for other users' processes).
fn duplicate(pid: u32, descriptor: u64) -> io::Result<OwnedFd> {
    // The kernel takes a lock that the process holds while it executes a program.
    chokepoint_foreign::of_process(Path::new(host::PROC), pid, move || duplicated(pid, descriptor))?
}

fn duplicated(pid: u32, descriptor: u64) -> io::Result<OwnedFd> {
    // SAFETY: the call only takes numbers and returns a new descriptor, or fails.
    let process = unsafe { host::owned_fd(libc::syscall(libc::SYS_pidfd_open, pid, 0)) }?;
    // SAFETY: as above; the first descriptor is open.
    unsafe { host::owned_fd(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0)) }
}

fn role_of(socket: &OwnedFd, listening_ports: &HashSet<u16>) -> Option<SocketRole> {
    let local = address(socket, libc::getsockname)?;
    if listens(socket) {
        return Some(SocketRole::Listener(local.named()?));
    }
    let accepted = match &local {
        Address::Inet(local) => listening_ports.contains(&local.port()),
        Address::Path(path) => !path.is_empty(),
    };
    if accepted {
        // All clients of a listener count as one: what matters is where they connected.
        return Some(SocketRole::Client(local.named()?));
    }
    Some(SocketRole::Server(address(socket, libc::getpeername)?.named()?))
}

fn listens(socket: &OwnedFd) -> bool {
    let mut listens: libc::c_int = 0;
    let mut length = libc::socklen_t::try_from(size_of_val(&listens)).unwrap_or(0);
    let place = (&raw mut listens).cast();
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes, the size of the number.
    unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ACCEPTCONN, place, &raw mut length) == 0 && listens != 0 }
}

/// An address that can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Inet(SocketAddr),
    /// A unix socket's path; empty if it has none.
    Path(String),
}

impl Address {
    fn port(&self) -> Option<u16> {
        if let Self::Inet(address) = self { Some(address.port()) } else { None }
    }

    fn named(&self) -> Option<String> {
        match self {
            Self::Inet(address) => (address.port() != 0).then(|| address.to_string()),
            Self::Path(path) => (!path.is_empty()).then(|| path.clone()),
        }
    }
}

type NameCall = unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

fn address(socket: &OwnedFd, call: NameCall) -> Option<Address> {
    let mut bytes = [0_u8; size_of::<libc::sockaddr_storage>()];
    let mut length = libc::socklen_t::try_from(bytes.len()).ok()?;
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes, the size of the buffer.
    if unsafe { call(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length) } != 0 {
        return None;
    }
    parse_address(bytes.get(..usize::try_from(length).ok()?)?)
}

/// Parses a `struct sockaddr_in`, `sockaddr_in6` or `sockaddr_un`.
fn parse_address(bytes: &[u8]) -> Option<Address> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    if family != libc::AF_UNIX {
        return socket_address(bytes).map(Address::Inet);
    }
    // An abstract name starts with NUL; it is written with an @, as ss(8) does.
    let name = &bytes[2..];
    let text = match name.split_first() {
        Some((0, hidden)) if !hidden.is_empty() => format!("@{}", String::from_utf8_lossy(hidden)),
        _ => String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or(name)).into_owned(),
    };
    Some(Address::Path(printable(&text).into_owned()))
}

/// Parses a `struct sockaddr_in` or `sockaddr_in6` (ip(7), ipv6(7)); none for other families.
pub(crate) fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn descriptor(of: &impl AsRawFd) -> u64 {
        u64::try_from(of.as_raw_fd()).unwrap()
    }

    #[test]
    fn own_sockets_have_their_roles() {
        let pid = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let asking = TcpStream::connect(at).unwrap();
        let (asked, _) = listener.accept().unwrap();
        if let Err(error) = duplicate(pid, descriptor(&asking)) {
            return eprintln!("skipped: {error} (pidfd_getfd)");
        }
        // This test's listener is among them; other tests of this process may have more.
        assert!(listening_ports_of(pid).contains(&at.port()));
        let listening_ports = HashSet::from([at.port()]);
        let mut peers = Peers { listening_ports: HashMap::from([(pid, listening_ports)]), ..Peers::default() };
        assert_eq!(peers.role(pid, descriptor(&listener)), Some(SocketRole::Listener(at.to_string())));
        assert_eq!(peers.role(pid, descriptor(&asked)), Some(SocketRole::Client(at.to_string())));
        assert_eq!(peers.role(pid, descriptor(&asking)), Some(SocketRole::Server(at.to_string())));
        assert_eq!(peers.of_descriptor(pid, descriptor(&asking)).as_deref(), Some(format!("the server at {at}").as_str()));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(peers.of_descriptor(pid, descriptor(&file)), None);
        assert_eq!(peers.of_descriptor(u32::MAX, 0), None);
    }

    #[test]
    fn poll_waits_for_the_descriptors_of_its_array() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let pid = std::process::id();
        if let Err(error) = duplicate(pid, descriptor(&asking)) {
            return eprintln!("skipped: {error} (pidfd_getfd)");
        }
        let stack: Vec<u8> = [descriptor(&ours), descriptor(&asking) | 1 << 32].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let pointer = 0x7fff_0000_0000;
        let registers = if cfg!(target_arch = "x86_64") { [2, pointer, 0, pointer, 0, 0] } else { [pointer, 2, 0, 0, pointer, 0] };
        let sample = Sample { pid, tid: pid, registers: Some(registers), stack: &stack, ..Sample::default() };
        let mut peers = Peers { listening_ports: HashMap::from([(pid, HashSet::new())]), ..Peers::default() };
        let expected = format!("the server at {}", listener.local_addr().unwrap());
        assert_eq!(peers.of(&sample).as_deref(), Some(expected.as_str()));
        drop(theirs);
    }

    #[test]
    fn peers_are_described_in_words_and_as_frames() {
        let server = |at: &str| SocketRole::Server(at.to_owned());
        let all = [
            server("a:1"),
            server("b:2"),
            server("c:3"),
            server("d:4"),
            SocketRole::Client("e:5".to_owned()),
            SocketRole::Listener("e:5".to_owned()),
        ];
        let text = describe_peers(all.into_iter().collect()).unwrap();
        assert_eq!(text, "the server at a:1 or the server at b:2 or the server at c:3 or 1 more servers or clients of e:5");
        assert_eq!(describe_peers(BTreeSet::from([SocketRole::Listener("/run/x".to_owned())])).as_deref(), Some("new clients of /run/x"));
        assert_eq!(describe_peers(BTreeSet::new()), None);
        assert_eq!(of_frame(&frame(&text)), Some(text.as_str()));
        assert_eq!(descriptors_watched("pos:\t0\ntfd:        7 events:       19 data: 7\ntfd: x\ntfd:\n"), [7]);
    }

    #[test]
    fn addresses_of_every_family_are_parsed() {
        let unix = |name: &[u8]| parse_address(&[&1_u16.to_ne_bytes(), name].concat());
        assert_eq!(unix(b"/run/x\0"), Some(Address::Path("/run/x".to_owned())));
        assert_eq!(unix(b"\0hidden"), Some(Address::Path("@hidden".to_owned())));
        assert_eq!(unix(b""), Some(Address::Path(String::new())));
        let inet = parse_address(&[2, 0, 0, 80, 127, 0, 0, 1]);
        assert_eq!(
            inet.and_then(|address| address.named()).as_deref(),
            if cfg!(target_endian = "little") { Some("127.0.0.1:80") } else { None }
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_parsed(bytes: Vec<u8>, text: String) {
            parse_address(&bytes);
            prop_assert!(descriptors_watched(&text).len() <= DESCRIPTORS_MAX);
        }
    }
}
