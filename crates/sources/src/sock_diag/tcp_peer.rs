//! One TCP socket of any network namespace, read periodically: the far end of a connection, if it is on this host too.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::inet;
use super::protocol::SOCK_DIAG_BY_FAMILY;
use super::tcp::{TcpSocket, read_tcp_sockets};
use crate::netlink::Netlink;
use crate::netlink::wire::messages;
use crate::netns::enter::spawn_inside;
use crate::netns::{NetnsError, NetnsRef};
use crate::root::Root;
use crate::tcp_info::{TcpInfo, TcpInfoPlace};

/// Most readings that wait for the caller. Further ones are lost.
const READINGS_MAX: usize = 4096;

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpReading {
    /// When.
    pub at: Instant,
    /// The structure.
    pub info: TcpInfo,
    /// Limit and content of the send buffer, bytes with the kernel's overhead.
    pub send_buffer: Option<(u32, u32)>,
}

/// Reads a socket until this is dropped or the socket is closed.
#[derive(Debug)]
pub struct TcpPeer {
    /// The namespace of the socket.
    pub netns: NetnsRef,
    readings: Receiver<TcpReading>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TcpPeer {
    /// Searches all network namespaces for the socket with these addresses and begins to read it; nothing if it is not on this host, or if addresses are
    /// translated between the ends.
    ///
    /// # Errors
    /// The namespaces cannot be listed, or the socket's cannot be entered.
    pub fn find(root: &Root, local: SocketAddr, remote: SocketAddr, every: Duration) -> Result<Option<Self>, NetnsError> {
        let (local, remote) = (end(local), end(remote));
        let searches = [(); 2].map(|()| Arc::new(Mutex::new(Search { local, remote, found: None })));
        read_tcp_sockets(root, &searches, Search::look)?;
        let found = searches.iter().find_map(|search| search.lock().unwrap_or_else(PoisonError::into_inner).found.clone());
        let Some(netns) = found else { return Ok(None) };
        let (sender, readings) = sync_channel(READINGS_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = spawn_inside(netns.clone(), root.clone(), move |inside| {
            if let Ok(inside) = inside {
                follow(inside.sockets().diag(), local, remote, every, &sender, &stopped);
            }
        })?;
        Ok(Some(Self { netns, readings, stop, thread: Some(thread) }))
    }

    /// The readings since the last call.
    pub fn readings(&self) -> impl Iterator<Item = TcpReading> + '_ {
        self.readings.try_iter()
    }
}

impl Drop for TcpPeer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Search {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    found: Option<NetnsRef>,
}

impl Search {
    fn look(&mut self, netns: &NetnsRef, socket: &TcpSocket<'_>) {
        if (socket.local, socket.remote) == (self.local, self.remote) {
            self.found = Some(netns.clone());
        }
    }
}

/// An end of a connection, as the kernel lists it.
fn end(of: SocketAddr) -> (IpAddr, u16) {
    (of.ip().to_canonical(), of.port())
}

fn follow(
    diag: &Netlink,
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    every: Duration,
    sender: &SyncSender<TcpReading>,
    stop: &AtomicBool,
) {
    let request = inet::one_with_info(local, remote);
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let at = Instant::now();
        let Some((info, send_buffer)) = read(diag, &request, remote) else { return };
        // A full channel loses this reading.
        drop(sender.try_send(TcpReading { at, info, send_buffer }));
        due += every;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

fn read(diag: &Netlink, request: &[u8], remote: (IpAddr, u16)) -> Option<(TcpInfo, Option<(u32, u32)>)> {
    let bytes = diag.one(SOCK_DIAG_BY_FAMILY, request).ok()?;
    let message = messages(&bytes).next()?.ok()?;
    // For a closed connection the kernel returns the listener.
    (inet::parse(&message).ok()?.remote == remote).then_some(())?;
    let measured = inet::measured(&message).ok()?;
    (!measured.info.is_empty()).then(|| (TcpInfo::of(measured.info.to_vec()), measured.send_buffer))
}

/// What a socket has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sending {
    /// Bytes that were not sent yet.
    pub(crate) unsent: u64,
    /// Time for which the other end's window or the own buffer kept bytes back, since the connection began, microseconds.
    pub(crate) held_up_us: u64,
}

/// What the socket with these addresses has to send; `None` if there is none here, or the kernel (before 4.10) does not tell.
pub(crate) fn sending(diag: &Netlink, local: SocketAddr, remote: SocketAddr) -> Option<Sending> {
    let (local, remote) = (end(local), end(remote));
    let (info, _) = read(diag, &inet::one_with_info(local, remote), remote)?;
    let of = |place: TcpInfoPlace| place.read(info.bytes());
    const UNSENT: TcpInfoPlace = TcpInfoPlace::of("notsent_bytes");
    const BY_WINDOW: TcpInfoPlace = TcpInfoPlace::of("rwnd_limited");
    const BY_BUFFER: TcpInfoPlace = TcpInfoPlace::of("sndbuf_limited");
    Some(Sending { unsent: of(UNSENT)?, held_up_us: of(BY_WINDOW)?.saturating_add(of(BY_BUFFER)?) })
}

/// Tells whose the other ends of connections within this network namespace are.
#[derive(Debug)]
pub struct TcpUsers(Netlink);

impl TcpUsers {
    /// # Errors
    /// The kernel gives no socket of sock_diag(7).
    pub fn open() -> io::Result<Self> {
        Ok(Self(Netlink::sock_diag()?))
    }

    /// The user who holds the socket with these addresses: who made it, or who it was given to (fchown(2)). `None` if there is none here.
    pub fn of(&self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let (local, remote) = (end(local), end(remote));
        let bytes = self.0.one(SOCK_DIAG_BY_FAMILY, &inet::one_with_info(local, remote)).ok()?;
        let socket = inet::parse(&messages(&bytes).next()?.ok()?).ok()?;
        // Without such a connection the kernel returns a listener.
        (socket.remote == remote && socket.inode != 0).then_some(socket.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_user_of_the_far_end_is_told() {
        let users = TcpUsers::open().unwrap();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            let (far, near) = (server.peer_addr().unwrap(), server.local_addr().unwrap());
            assert_eq!(users.of(far, near), Some(rustix::process::geteuid().as_raw()));
            drop(client);
            assert_eq!(users.of(far, near), None, "nobody holds what is closed");
            assert_eq!(users.of("127.0.0.1:1".parse().unwrap(), near), None);
        }
    }

    #[test]
    fn the_far_end_is_read_until_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (local, remote) = (client.peer_addr().unwrap(), client.local_addr().unwrap());
        let peer = TcpPeer::find(&Root::default(), local, remote, Duration::from_millis(1)).unwrap().unwrap();
        let first = peer.readings.recv().unwrap();
        assert_eq!(first.info.value("state"), Some(1));
        assert!(first.send_buffer.is_some());
        drop((client, server));
        // The thread ends with the connection, and the channel with the thread.
        while peer.readings.recv().is_ok() {}
        assert!(TcpPeer::find(&Root::default(), "127.0.0.1:1".parse().unwrap(), remote, Duration::from_secs(1)).unwrap().is_none());
    }
}
