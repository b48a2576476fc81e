//! Unix sockets as sock_diag(7) gives them: `struct unix_diag_req`, `struct unix_diag_msg` and their attributes (linux/unix_diag.h).

use chokepoint_foreign::SocketFile;
use chokepoint_model::observation::{TcpState, UnixPeer};

use super::protocol::{AF_UNIX, DiagError, DumpRequest, DumpRequests, SOCK_DIAG_BY_FAMILY};
use crate::netlink::wire::{Message, attributes, u32_at};

/// Bytes of `struct unix_diag_msg`.
const MESSAGE_BYTES: usize = 16;
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_VFS: u32 = 2;
const UDIAG_SHOW_PEER: u32 = 4;
const UDIAG_SHOW_ICONS: u32 = 8;
const UDIAG_SHOW_RQLEN: u32 = 0x10;
const UNIX_DIAG_NAME: u16 = 0;
/// `struct unix_diag_vfs`: inode and device of the file that a socket is bound to.
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;
/// Inodes of the sockets that wait in a listener's accept queue.
const UNIX_DIAG_ICONS: u16 = 3;
const UNIX_DIAG_RQLEN: u16 = 4;
/// Which directions are shut, in a byte. The kernel always sends it (Linux 3.11).
const UNIX_DIAG_SHUTDOWN: u16 = 6;
/// SEND_SHUTDOWN (net/sock.h): this end has shut its sending side, or the other end is closed.
const SEND_SHUTDOWN: u8 = 2;

/// An attribute of this program's own, at the end of the message of a socket whose name leads to another socket (`namesakes.rs`); the kernel's are far below.
const IS_NAMESAKE: u16 = 0x3fff;
/// The same as bytes: a length of four and no value.
pub(super) const MARK: [u8; 4] = {
    let ([length_0, length_1], [kind_0, kind_1]) = (4_u16.to_ne_bytes(), IS_NAMESAKE.to_ne_bytes());
    [length_0, length_1, kind_0, kind_1]
};

pub(super) fn listeners() -> DumpRequests {
    parts(1 << TcpState::Listen as u32, UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_RQLEN)
}

/// The listeners with the files that they are bound to.
pub(super) fn listener_files() -> DumpRequests {
    parts(1 << TcpState::Listen as u32, UDIAG_SHOW_NAME | UDIAG_SHOW_VFS)
}

/// Includes listeners for the connections that wait in their queues, which are not listed themselves.
pub(super) fn sockets() -> DumpRequests {
    let states = 1 << TcpState::Established as u32 | 1 << TcpState::Listen as u32;
    parts(states, UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN)
}

/// `struct unix_diag_req`: family, protocol, padding, states, inode, what to show, and a cookie of eight bytes that a dump leaves empty.
fn parts(states: u32, show: u32) -> DumpRequests {
    let mut body = vec![AF_UNIX, 0, 0, 0];
    for word in [states, 0, show, 0, 0] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    DumpRequests { first: DumpRequest { label: "unix", kind: SOCK_DIAG_BY_FAMILY, body }, fallback: Vec::new() }
}

/// One unix socket.
pub(super) struct UnixSocket {
    pub(super) listens: bool,
    /// A stream or a sequence of packets: a type that accepts connections.
    pub(super) is_stream: bool,
    pub(super) inode: u64,
    pub(super) path: Option<String>,
    /// The file that it is bound to, if it was asked for.
    pub(super) file: Option<SocketFile>,
    pub(super) peer: UnixPeer,
    /// It can send no more: its response is complete, or nobody can receive it.
    pub(super) is_done: bool,
    /// For a listener: the connections that wait to be accepted, by the inodes of their connecting ends.
    pub(super) waiting: Vec<u64>,
    /// For a listener: connections that wait. Otherwise: bytes received and not read.
    pub(super) receive_queue: u32,
    /// For a listener: the queue's limit. Otherwise: bytes sent and not read by the peer.
    pub(super) send_queue: u32,
}

pub(super) fn parse(message: &Message<'_>) -> Result<UnixSocket, DiagError> {
    let (fixed, rest) = message.split("unix_diag_msg", MESSAGE_BYTES)?;
    let mut socket = UnixSocket {
        listens: fixed[2] == TcpState::Listen as u8,
        is_stream: matches!(i32::from(fixed[1]), libc::SOCK_STREAM | libc::SOCK_SEQPACKET),
        inode: u64::from(u32_at(fixed, 4).unwrap_or(0)),
        path: None,
        file: None,
        peer: UnixPeer::Unknown,
        is_done: false,
        waiting: Vec::new(),
        receive_queue: 0,
        send_queue: 0,
    };
    let mut is_namesake = false;
    for attribute in attributes(rest) {
        let attribute = attribute?;
        match attribute.kind {
            UNIX_DIAG_NAME => socket.path = name(attribute.value),
            UNIX_DIAG_VFS => {
                let (inode, device) = (u32_at(attribute.value, 0), u32_at(attribute.value, 4));
                socket.file = inode.zip(device).map(|(inode, device)| SocketFile { device, inode });
            }
            // Zero: the peer is not accepted yet and has no inode.
            UNIX_DIAG_PEER => {
                socket.peer = match u32_at(attribute.value, 0) {
                    Some(inode) if inode != 0 => UnixPeer::Inode(u64::from(inode)),
                    _ => UnixPeer::Unknown,
                }
            }
            UNIX_DIAG_ICONS => {
                let inodes = (0..attribute.value.len()).step_by(4).filter_map(|at| u32_at(attribute.value, at));
                socket.waiting = inodes.filter(|inode| *inode != 0).map(u64::from).collect();
            }
            UNIX_DIAG_RQLEN => {
                socket.receive_queue = u32_at(attribute.value, 0).unwrap_or(0);
                socket.send_queue = u32_at(attribute.value, 4).unwrap_or(0);
            }
            UNIX_DIAG_SHUTDOWN => socket.is_done = attribute.value.first().is_some_and(|shut| shut & SEND_SHUTDOWN != 0),
            IS_NAMESAKE => is_namesake = true,
            _ => {}
        }
    }
    if let (true, Some(path), Some(file)) = (is_namesake, &mut socket.path, socket.file) {
        path.push_str(&format!(" (file {}:{})", file.device, file.inode));
    }
    Ok(socket)
}

/// A socket's name (unix(7)): a path, which may end with a NUL, or an abstract name, which begins with one. Every NUL of an abstract name is written as '@',
/// as in ss(8). An empty name is none.
fn name(bytes: &[u8]) -> Option<String> {
    match bytes.first() {
        None => None,
        Some(0) => Some(String::from_utf8_lossy(bytes).replace('\0', "@")),
        Some(_) => Some(crate::netlink::wire::text(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::{messages, request};
    use crate::sock_diag::listeners::parse_listeners;
    use crate::sock_diag::sockets::parse_sockets;
    use chokepoint_model::observation::{ListenerAddress, SocketAddress};

    fn message(kind: u8, state: u8, inode: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![AF_UNIX, kind, state, 0];
        body.extend_from_slice(&inode.to_ne_bytes());
        body.extend_from_slice(&[0; 8]);
        for (kind, value) in attributes {
            body.extend_from_slice(&((value.len() + 4) as u16).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        request(SOCK_DIAG_BY_FAMILY, 2, 1, &body)
    }

    #[test]
    fn a_listener_with_its_queue() {
        let bytes = message(1, 10, 77, &[(0, b"/run/php.sock\0"), (4, &[3, 0, 0, 0, 255, 1, 0, 0])]);
        let listeners = parse_listeners(&bytes).unwrap();
        assert_eq!(listeners[0].address, ListenerAddress::Unix("/run/php.sock".into()));
        assert_eq!((listeners[0].accept_queue, listeners[0].accept_queue_limit, listeners[0].inode), (3, 511, 77));
    }

    #[test]
    fn names() {
        assert_eq!(name(b"/run/a\0"), Some("/run/a".into()));
        assert_eq!(name(b"/run/a"), Some("/run/a".into()));
        assert_eq!(name(b"\0abc\0d"), Some("@abc@d".into()));
        assert_eq!(name(b""), None);
        assert_eq!(name(b"\xff\xfe"), Some("\u{fffd}\u{fffd}".into()));
    }

    #[test]
    fn peers_and_datagrams() {
        let bytes = [
            message(1, 1, 5, &[(0, b"/run/a\0"), (2, &6_u32.to_ne_bytes())]),
            message(1, 1, 6, &[(2, &0_u32.to_ne_bytes())]),
            message(2, 1, 7, &[(2, &8_u32.to_ne_bytes())]),
        ]
        .concat();
        let sockets = parse_sockets(&bytes).unwrap();
        assert_eq!(sockets.len(), 2, "a datagram socket is never accepted");
        assert_eq!(sockets[0].address, SocketAddress::Unix { path: Some("/run/a".into()), peer: UnixPeer::Inode(6) });
        assert_eq!(sockets[1].address, SocketAddress::Unix { path: None, peer: UnixPeer::Unknown });
    }

    #[test]
    fn a_connection_in_a_listeners_queue_has_no_inode() {
        let bytes = message(1, 10, 77, &[(0, b"/run/php.sock\0"), (3, &[5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 9])]);
        let sockets = parse_sockets(&bytes).unwrap();
        assert_eq!(sockets.iter().map(|socket| socket.inode).collect::<Vec<_>>(), [0, 0]);
        let end = |peer| SocketAddress::Unix { path: Some("/run/php.sock".into()), peer: UnixPeer::Inode(peer) };
        assert_eq!(sockets.into_iter().map(|socket| socket.address).collect::<Vec<_>>(), [end(5), end(6)]);
    }

    #[test]
    fn every_cut_gives_a_socket_or_an_error() {
        let whole = message(1, 10, 77, &[(0, b"/run/php.sock\0"), (4, &[3, 0, 0, 0, 255, 1, 0, 0])]);
        let body = &whole[16..];
        for cut in 0..body.len() {
            let bytes = request(SOCK_DIAG_BY_FAMILY, 2, 1, &body[..cut]);
            let parsed = parse(&messages(&bytes).next().unwrap().unwrap());
            assert!(cut >= MESSAGE_BYTES || parsed.is_err(), "cut at {cut}");
        }
    }
}
