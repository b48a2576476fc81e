//! Sockets by their inode, from the kernel's lists (sock_diag(7)). A copy of another process's descriptor would show the same, but closing it may wait for whatever the
//! descriptor turned into meanwhile: a file of that user's file system, or a connection that lingers.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::host;
use crate::waiting::peers::unix_name;

/// A list is read again for a socket that is not in it, after this time and this many times the time that reading took: some hundredths of a core at most.
const AGE_MIN: Duration = Duration::from_millis(50);
const AGE_COSTS: u32 = 50;
/// Most namespaces whose lists are kept, and most sockets of one.
const NAMESPACES_MAX: usize = 64;
const SOCKETS_MAX: usize = 1 << 18;
/// Bytes of one message of the kernel.
const MESSAGE_BYTES: usize = 32 << 10;
/// Time to wait for the kernel's answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h), and the lengths of `struct inet_diag_req_v2`, `inet_diag_msg`, `unix_diag_req` and `unix_diag_msg`.
const BY_FAMILY: u16 = 20;
const HEADER: usize = 16;
const INET_REQUEST: usize = 56;
const INET_MESSAGE: usize = 72;
const UNIX_REQUEST: usize = 24;
const UNIX_MESSAGE: usize = 16;
/// `UDIAG_SHOW_NAME` and `UDIAG_SHOW_PEER`, and their attributes (linux/unix_diag.h).
const SHOW_NAME_AND_PEER: u32 = 1 | 4;
const UNIX_NAME: u16 = 0;
const UNIX_PEER: u16 = 2;
/// `TCP_LISTEN`, which unix sockets use as well (net/tcp_states.h).
const LISTENS: u8 = 10;

/// A socket of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listed {
    Inet {
        local: SocketAddr,
        remote: SocketAddr,
        listens: bool,
    },
    /// Its own name, or that of the listener which accepted it; and the inode of the other end, zero if there is none.
    Unix {
        name: Option<String>,
        peer: u64,
        listens: bool,
    },
}

/// The sockets of one namespace.
#[derive(Debug)]
struct Table {
    sockets: HashMap<u64, Listed>,
    read: Instant,
    took: Duration,
}

/// The lists of all namespaces that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Sockets(HashMap<u64, Table>);

impl Sockets {
    /// The socket with this inode in the network namespace of a process; none if it is in no list, or the namespace may not be entered.
    pub(crate) fn get(&mut self, pid: u32, inode: u64) -> Option<Listed> {
        let namespace = namespace(pid)?;
        let is_known = |table: &Table| table.sockets.contains_key(&inode) || table.read.elapsed() < AGE_MIN.max(table.took * AGE_COSTS);
        if !self.0.get(&namespace).is_some_and(is_known) {
            if self.0.len() >= NAMESPACES_MAX {
                self.0.clear();
            }
            let begun = Instant::now();
            let sockets = read(pid, namespace);
            self.0.insert(namespace, Table { sockets, read: Instant::now(), took: begun.elapsed() });
        }
        self.0.get(&namespace)?.sockets.get(&inode).cloned()
    }

    /// The name of the other end of a unix socket.
    pub(crate) fn name_of(&self, pid: u32, inode: u64) -> Option<String> {
        match self.0.get(&namespace(pid)?)?.sockets.get(&inode)? {
            Listed::Unix { name, .. } => name.clone(),
            Listed::Inet { .. } => None,
        }
    }
}

/// The inode of a process's network namespace.
fn namespace(pid: u32) -> Option<u64> {
    host::open(&format!("{}/{pid}/ns/net", host::PROC))?.metadata().ok().map(|meta| meta.ino())
}

/// All TCP, UDP and unix sockets of a namespace; what the kernel does not list is left out.
fn read(pid: u32, of: u64) -> HashMap<u64, Listed> {
    let own = std::process::id();
    if namespace(own) == Some(of) {
        return lists();
    }
    let Some(file) = host::open(&format!("{}/{pid}/ns/net", host::PROC)).filter(|file| file.metadata().is_ok_and(|meta| meta.ino() == of))
    else {
        return HashMap::new();
    };
    // Only that thread enters it.
    let entered = std::thread::Builder::new().spawn(move || {
        // SAFETY: setns(2) takes an open descriptor and a flag, and moves only this thread.
        let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        if result == 0 { lists() } else { HashMap::new() }
    });
    entered.ok().and_then(|thread| thread.join().ok()).unwrap_or_default()
}

fn lists() -> HashMap<u64, Listed> {
    let mut sockets = HashMap::new();
    for protocol in [libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut request = [0; INET_REQUEST];
            (request[0], request[1]) = (family as u8, protocol as u8);
            request[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
            let _ = dump(&request, &mut |message| sockets.extend(inet(message)));
        }
    }
    let mut request = [0; UNIX_REQUEST];
    request[0] = libc::AF_UNIX as u8;
    request[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    request[12..16].copy_from_slice(&SHOW_NAME_AND_PEER.to_ne_bytes());
    let _ = dump(&request, &mut |message| sockets.extend(unix(message)));
    sockets
}

/// Asks for a list, and gives each of its messages, without header, to `each`.
fn dump(request: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    // SAFETY: the call takes numbers and returns a new descriptor, or fails.
    let socket = unsafe {
        host::owned_fd(libc::c_long::from(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)))
    }?;
    let time = libc::timeval { tv_sec: PATIENCE.as_secs() as libc::time_t, tv_usec: 0 };
    let length = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes, the size of `time`.
    unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const time).cast(), length) };
    let mut message = Vec::with_capacity(HEADER + request.len());
    message.extend(u32::try_from(HEADER + request.len()).unwrap_or(0).to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(request);
    // SAFETY: the descriptor is open, and the kernel reads the bytes of `message`.
    if unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes = vec![0; MESSAGE_BYTES];
    let mut left = SOCKETS_MAX;
    loop {
        // SAFETY: the descriptor is open, and the kernel writes at most the length of `bytes`.
        let received = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        if received == 0 || messages(bytes.get(..received).unwrap_or_default(), &mut left, each) || left == 0 {
            return Ok(());
        }
    }
}

/// Gives the content of each message to `each`. True if the last one of the list is among them, or an error.
fn messages(mut bytes: &[u8], left: &mut usize, each: &mut dyn FnMut(&[u8])) -> bool {
    while let Some(header) = bytes.first_chunk::<HEADER>() {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(content) = bytes.get(HEADER..length) else { return true };
        if kind != BY_FAMILY {
            return true;
        }
        each(content);
        *left = left.saturating_sub(1);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

/// `struct inet_diag_msg` (linux/inet_diag.h).
fn inet(message: &[u8]) -> Option<(u64, Listed)> {
    let message = message.first_chunk::<INET_MESSAGE>()?;
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let ip = |at: usize| -> Option<IpAddr> {
        match i32::from(message[0]) {
            libc::AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(message.get(at..at + 4)?).ok()?)),
            libc::AF_INET6 => Some(IpAddr::from(<[u8; 16]>::try_from(message.get(at..at + 16)?).ok()?).to_canonical()),
            _ => None,
        }
    };
    let (local, remote) = (SocketAddr::new(ip(8)?, port(4)), SocketAddr::new(ip(24)?, port(6)));
    let inode = u32::from_ne_bytes([message[68], message[69], message[70], message[71]]);
    Some((u64::from(inode), Listed::Inet { local, remote, listens: message[1] == LISTENS }))
}

/// `struct unix_diag_msg` with its attributes.
fn unix(message: &[u8]) -> Option<(u64, Listed)> {
    let head = message.first_chunk::<UNIX_MESSAGE>()?;
    let inode = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
    let (mut name, mut peer) = (None, 0);
    let mut rest = message.get(UNIX_MESSAGE..).unwrap_or_default();
    while let Some(attribute) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([attribute[0], attribute[1]]));
        let Some(content) = rest.get(4..length) else { break };
        match u16::from_ne_bytes([attribute[2], attribute[3]]) {
            UNIX_NAME => name = unix_name(content),
            UNIX_PEER => peer = content.first_chunk::<4>().map_or(0, |bytes| u64::from(u32::from_ne_bytes(*bytes))),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some((u64::from(inode), Listed::Unix { name, peer, listens: head[2] == LISTENS }))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use proptest::prelude::*;

    use super::*;

    fn inode(of: &impl AsFd) -> u64 {
        let file = std::fs::File::from(of.as_fd().try_clone_to_owned().unwrap());
        file.metadata().unwrap().ino()
    }

    #[test]
    fn own_sockets_are_listed() {
        let (pid, mut sockets) = (std::process::id(), Sockets::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let asking = std::net::TcpStream::connect(at).unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(at).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let unix = UnixListener::bind(&path).unwrap();
        let calling = UnixStream::connect(&path).unwrap();
        let (called, _) = unix.accept().unwrap();
        let Some(Listed::Inet { local, listens, .. }) = sockets.get(pid, inode(&listener)) else {
            return println!("skipped: this kernel lists no sockets (CONFIG_INET_DIAG)");
        };
        assert_eq!((local, listens), (at, true));
        for (socket, is_of) in [(inode(&asking), asking.local_addr().unwrap()), (inode(&udp), udp.local_addr().unwrap())] {
            let Some(Listed::Inet { local, remote, .. }) = sockets.get(pid, socket) else { panic!("{socket}: {sockets:?}") };
            assert_eq!((local, remote), (is_of, at));
        }
        let Some(Listed::Unix { peer, .. }) = sockets.get(pid, inode(&calling)) else { panic!("{sockets:?}") };
        assert_eq!((peer, sockets.name_of(pid, peer)), (inode(&called), Some(path.to_str().unwrap().to_owned())));
        assert_eq!(sockets.get(u32::MAX, inode(&calling)), None);
    }

    proptest! {
        #[test]
        fn arbitrary_messages_are_read(bytes: Vec<u8>) {
            let _ = (inet(&bytes), unix(&bytes));
            messages(&bytes, &mut 5, &mut |_| {});
        }
    }
}
