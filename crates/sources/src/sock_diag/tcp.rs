//! Every TCP socket of the host with its struct tcp_info, passed on one by one during the dump. None is kept.

use std::cell::Cell;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use chokepoint_model::observation::{Counters, TcpState};
use chokepoint_recording::Outcome;

use super::inet;
use super::message::{DiagSocket, parse_socket};
use super::protocol::{DiagError, DumpRequest, DumpRequests};
use crate::netlink::wire::{WireError, messages};
use crate::netlink::{DumpError, Netlink, Sockets};
use crate::netns::enter::spawn_inside;
use crate::netns::{self, Namespaces, NetnsError, NetnsRef};
use crate::root::Root;
use crate::text::net::sockstat;

/// One connection's end on this host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpSocket<'a> {
    /// State.
    pub state: TcpState,
    /// Address and port here.
    pub local: (IpAddr, u16),
    /// Address and port of the peer.
    pub remote: (IpAddr, u16),
    /// True if a socket of this namespace listens at the local address: the connection was accepted here, not dialled.
    pub accepted: bool,
    /// Inode number in /proc/PID/fd; 0 if no process holds the socket.
    pub inode: u64,
    /// Bytes that the application has not read.
    pub receive_queue: u32,
    /// Bytes that the peer has not acknowledged, unsent ones included.
    pub send_queue: u32,
    /// Limit and content of the send buffer, bytes with the kernel's overhead.
    pub send_buffer: Option<(u32, u32)>,
    /// Bytes of struct tcp_info, see [`TcpInfoPlace`](crate::TcpInfoPlace); empty if the kernel gave none.
    pub info: &'a [u8],
}

/// Which namespaces could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpSocketsRead {
    /// Namespaces that were read.
    pub namespaces: u32,
    /// Namespaces that could not be read, and processes whose namespace is not accessible: a reason each, and the capability that would help.
    pub failed: Vec<(String, Option<&'static str>)>,
}

impl TcpSocketsRead {
    /// Nothing read yet; with the reason if some namespaces are not visible.
    pub(super) fn new(namespaces: &Namespaces) -> Self {
        let hidden = namespaces.lack().map(|lack| (lack.why, lack.needs.map(|_| "CAP_SYS_PTRACE")));
        Self { namespaces: 0, failed: hidden.into_iter().collect() }
    }

    /// Waits for the thread of the namespace at `place`, and notes and returns its result.
    pub(super) fn add<T>(&mut self, place: &str, thread: Result<JoinHandle<Result<T, ReadError>>, NetnsError>) -> Option<T> {
        let result =
            thread.map_err(ReadError::from).and_then(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        match result {
            Ok(value) => {
                self.namespaces += 1;
                return Some(value);
            }
            Err(ReadError::Netns(error)) => self.failed.push((error.to_string(), error.needs())),
            Err(error) => self.failed.push((format!("{place}: {error}"), None)),
        }
        None
    }
}

/// Why a dump failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Netns(#[from] NetnsError),
    #[error("{0}")]
    Dump(#[from] DumpError),
    #[error("{0}")]
    Diag(#[from] DiagError),
}

/// Reads the sockets of all network namespaces, one namespace after another. Passes each socket to `each` with its namespace and one of the two states. If a
/// namespace has many sockets, two threads read one half each: the kernel spends most of the time, in the thread that reads.
///
/// sock_diag(7) never says that its list changed during a dump: a socket that moves may be missing or appear twice. Handshakes and sockets in TIME_WAIT are
/// left out: the kernel measures nothing for them.
///
/// # Errors
/// The namespaces cannot be listed. A namespace that cannot be read is in the result.
pub fn read_tcp_sockets<S: Send + 'static>(
    root: &Root,
    states: &[Arc<Mutex<S>>; 2],
    each: fn(&mut S, &NetnsRef, &TcpSocket<'_>),
) -> Result<TcpSocketsRead, NetnsError> {
    let namespaces = netns::list(root)?;
    let mut read = TcpSocketsRead::new(&namespaces);
    for netns in namespaces.found {
        let (states, named, place) = (states.clone(), netns.clone(), netns.path.display().to_string());
        let (root, many) = (root.clone(), root.clone());
        let thread = spawn_inside(netns, root, move |inside| {
            let inside = inside?;
            let listening = listening(inside.sockets())?;
            let read = |sockets: &Sockets, parts: &DumpRequests, state: &Mutex<S>| {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                dump(sockets, parts, &listening, &mut |socket| each(&mut state, &named, socket))
            };
            if !are_many(&many) {
                return read(inside.sockets(), &inet::sockets_with_info(), &states[0]);
            }
            std::thread::scope(|scope| {
                // A new thread is inside the namespace of its parent.
                let upper = scope.spawn(|| {
                    let sockets = Sockets::open().map_err(DumpError::from)?;
                    read(&sockets, &inet::half_with_info(true), &states[1])
                });
                let lower = read(inside.sockets(), &inet::half_with_info(false), &states[0]);
                upper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(lower)
            })
        });
        read.add(&place, thread);
    }
    Ok(read)
}

/// The network namespaces in which a socket listens at one of these addresses. Namespaces that cannot be read are left out.
pub fn listening_namespaces(root: &Root, targets: &[(IpAddr, u16)]) -> Vec<NetnsRef> {
    let listens = |netns: &NetnsRef| {
        let targets = targets.to_vec();
        let thread = spawn_inside(netns.clone(), root.clone(), move |inside| {
            listening(inside?.sockets()).map(|listening| targets.iter().any(|target| listening.has(*target)))
        });
        thread.is_ok_and(|thread| matches!(thread.join(), Ok(Ok(true))))
    };
    netns::list(root).map(|namespaces| namespaces.found).unwrap_or_default().into_iter().filter(listens).collect()
}

/// The addresses at which a namespace listens.
#[derive(Default)]
pub(super) struct Listening {
    addresses: HashSet<(IpAddr, u16)>,
    any: HashSet<u16>,
    ports: HashSet<u16>,
}

impl Listening {
    fn add(&mut self, (address, port): (IpAddr, u16)) {
        self.ports.insert(port);
        if address.is_unspecified() {
            self.any.insert(port);
        } else {
            self.addresses.insert((address, port));
        }
    }

    /// True if it listens at this port of any address.
    pub(super) fn has_port(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    #[cfg(test)]
    pub(super) fn at_ports<const N: usize>(ports: [u16; N]) -> Self {
        Self { ports: ports.into(), ..Self::default() }
    }

    pub(super) fn has(&self, local: (IpAddr, u16)) -> bool {
        self.any.contains(&local.1) || self.addresses.contains(&local)
    }
}

/// True if the namespace has enough sockets for a second thread.
fn are_many(root: &Root) -> bool {
    const MANY: i64 = 5_000;
    let counts = match sockstat::read_files(root) {
        Outcome::Ok(text) => sockstat::parse(&text).ok(),
        _ => None,
    };
    let used = |counts: &Counters| ["TCP.inuse", "TCP6.inuse"].iter().filter_map(|name| counts.get(name)).sum::<i64>();
    counts.is_some_and(|counts| used(&counts) >= MANY)
}

pub(super) fn listening(sockets: &Sockets) -> Result<Listening, ReadError> {
    let mut listening = Listening::default();
    walk(sockets.diag(), &inet::listeners(), &mut |message| {
        if let DiagSocket::Inet(socket) = parse_socket(message)? {
            listening.add(socket.local);
        }
        Ok(())
    })?;
    Ok(listening)
}

fn dump(sockets: &Sockets, parts: &DumpRequests, listening: &Listening, each: &mut dyn FnMut(&TcpSocket<'_>)) -> Result<(), ReadError> {
    walk(sockets.diag(), parts, &mut |message| {
        if let DiagSocket::Inet(socket) = parse_socket(message)? {
            each(&described(&socket, &inet::measured(message)?, listening));
        }
        Ok(())
    })
}

pub(super) fn described<'a>(socket: &inet::InetSocket, measured: &inet::SocketInfo<'a>, listening: &Listening) -> TcpSocket<'a> {
    TcpSocket {
        state: socket.state,
        local: socket.local,
        remote: socket.remote,
        accepted: listening.has(socket.local),
        inode: socket.inode,
        receive_queue: socket.receive_queue,
        send_queue: socket.send_queue,
        send_buffer: measured.send_buffer,
        info: measured.info,
    }
}

pub(super) type OfMessage<'a> = dyn FnMut(&crate::netlink::wire::Message<'_>) -> Result<(), DiagError> + 'a;

/// Passes the messages of a dump to `each`. On a kernel that refuses the request for both families, it makes one for each.
pub(super) fn walk(netlink: &Netlink, parts: &DumpRequests, each: &mut OfMessage<'_>) -> Result<(), ReadError> {
    let begun = Cell::new(false);
    let mut attempt = |part: &DumpRequest| -> Result<(), ReadError> {
        let mut broken: Option<DiagError> = None;
        netlink.dump_into(part.kind, &part.body, &mut |bytes| {
            begun.set(true);
            for message in messages(bytes) {
                let result = message.map_err(|error: WireError| error.into()).and_then(|message| each(&message));
                broken = broken.take().or(result.err());
            }
            Ok(())
        })?;
        broken.map_or(Ok(()), |error| Err(error.into()))
    };
    match attempt(&parts.first) {
        Err(ReadError::Dump(error)) if begun.get() => Err(error.into()),
        Err(ReadError::Dump(_)) if !parts.fallback.is_empty() => parts.fallback.iter().try_for_each(&mut attempt),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpInfoPlace;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    const STATE: TcpInfoPlace = TcpInfoPlace::of("state");

    /// Ends of the connections at one listener: local and remote port, whether accepted, tcp_info's own state.
    struct Ends {
        port: u16,
        found: Vec<(u16, u16, bool, Option<u64>, bool)>,
    }

    fn ends(listener: SocketAddr) -> Ends {
        let states = [(); 2].map(|()| Arc::new(Mutex::new(Ends { port: listener.port(), found: Vec::new() })));
        let read = read_tcp_sockets(&Root::default(), &states, |ends: &mut Ends, _, socket| {
            if [socket.local.1, socket.remote.1].contains(&ends.port) {
                let buffer = socket.send_buffer.is_some_and(|(limit, held)| held <= limit);
                ends.found.push((socket.local.1, socket.remote.1, socket.accepted, STATE.read(socket.info), buffer));
            }
        })
        .unwrap();
        assert!(read.namespaces >= 1, "{:?}", read.failed);
        let [mut all, more] = states.map(|state| Arc::into_inner(state).unwrap().into_inner().unwrap());
        all.found.extend(more.found);
        all
    }

    #[test]
    fn both_ends_of_a_connection_are_read_and_distinguished() {
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Ok(listener) = TcpListener::bind((address, 0)) else {
                println!("skipped: {address} is not there");
                continue;
            };
            let listens = listener.local_addr().unwrap();
            let client = TcpStream::connect(listens).unwrap();
            let (_server, _) = listener.accept().unwrap();
            let (port, dialled) = (listens.port(), client.local_addr().unwrap().port());
            let mut found = ends(listens).found;
            found.sort_by_key(|end| end.2);
            assert_eq!(found, [(dialled, port, false, Some(1), true), (port, dialled, true, Some(1), true)]);
        }
    }

    #[test]
    fn a_listener_on_one_address_does_not_cover_others() {
        let mut listening = Listening::default();
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        listening.add((here, 80));
        listening.add((IpAddr::V6(Ipv6Addr::UNSPECIFIED), 81));
        assert!(listening.has((here, 80)) && listening.has((there, 81)));
        assert!(!listening.has((there, 80)) && !listening.has((here, 82)));
    }
}
