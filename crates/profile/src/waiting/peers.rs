//! The peer that a thread waits for: the descriptor that it passed to its system call, and the socket behind it. Both are looked up a moment after the
//! thread went to sleep. If the descriptor was closed and reused meanwhile, the result is wrong.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::host;
use crate::profile::{Frame, FrameKind};
use crate::sampling::event::{Registers, arguments};
use crate::sampling::record::Sample;
use crate::waiting::sockets::{Listed, Sockets};
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
    lists: Sockets,
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
        let inode = socket_inode(&link)?;
        if let Some(known) = self.sockets.get(&inode) {
            return known.clone();
        }
        let found = self.role_of(pid, inode);
        self.sockets.insert(inode, found.clone());
        found
    }

    fn role_of(&mut self, pid: u32, inode: u64) -> Option<SocketRole> {
        match self.lists.get(pid, inode)? {
            Listed::Inet { local, .. } if local.port() == 0 => None,
            Listed::Inet { local, listens: true, .. } => Some(SocketRole::Listener(local.to_string())),
            // All clients of a listener count as one: what matters is where they connected.
            Listed::Inet { local, .. } if self.listening_ports(pid).contains(&local.port()) => Some(SocketRole::Client(local.to_string())),
            Listed::Inet { remote, .. } => (remote.port() != 0).then(|| SocketRole::Server(remote.to_string())),
            Listed::Unix { name, listens: true, .. } => name.map(SocketRole::Listener),
            Listed::Unix { name: Some(name), .. } => Some(SocketRole::Client(name)),
            Listed::Unix { name: None, peer, .. } => self.lists.name_of(pid, peer).map(SocketRole::Server),
        }
    }

    /// The ports at which a process listens.
    fn listening_ports(&mut self, pid: u32) -> &HashSet<u16> {
        if !self.listening_ports.contains_key(&pid) {
            let descriptors = host::descriptors(pid).into_iter().map(u64::from).take(DESCRIPTORS_MAX);
            let inodes: Vec<u64> = descriptors.filter_map(|descriptor| socket_inode(&host::descriptor(pid, descriptor)?)).collect();
            let listed = inodes.into_iter().filter_map(|inode| self.lists.get(pid, inode));
            let ports = listed.filter_map(|socket| match socket {
                Listed::Inet { local, listens: true, .. } => Some(local.port()),
                _ => None,
            });
            let ports = ports.collect();
            self.listening_ports.insert(pid, ports);
        }
        &self.listening_ports[&pid]
    }
}

/// "socket:[1234]".
fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
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

/// The name of a unix socket from its bytes (unix(7)). An abstract one starts with NUL; it is written with an @, as ss(8) does.
pub(crate) fn unix_name(bytes: &[u8]) -> Option<String> {
    let text = match bytes.split_first() {
        Some((0, hidden)) if !hidden.is_empty() => format!("@{}", String::from_utf8_lossy(hidden)),
        _ => String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)).into_owned(),
    };
    (!text.is_empty()).then(|| printable(&text).into_owned())
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
    use std::os::fd::AsRawFd;

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
        // This test's listener is among them; other tests of this process may have more.
        if !Peers::default().listening_ports(pid).contains(&at.port()) {
            return println!("skipped: this kernel lists no sockets (CONFIG_INET_DIAG)");
        }
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
        if Peers::default().role(pid, descriptor(&listener)).is_none() {
            return println!("skipped: this kernel lists no sockets (CONFIG_INET_DIAG)");
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
    fn names_of_unix_sockets_are_parsed() {
        assert_eq!(unix_name(b"/run/x\0").as_deref(), Some("/run/x"));
        assert_eq!(unix_name(b"\0hidden").as_deref(), Some("@hidden"));
        assert_eq!((unix_name(b""), unix_name(b"\0")), (None, None));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_parsed(bytes: Vec<u8>, text: String) {
            let _ = (unix_name(&bytes), socket_address(&bytes));
            prop_assert!(descriptors_watched(&text).len() <= DESCRIPTORS_MAX);
        }
    }
}
