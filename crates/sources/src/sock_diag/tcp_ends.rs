//! How TCP connections end: each socket that the kernel destroys, with its last struct tcp_info (the multicast groups of sock_diag(7)); and the sockets in
//! TIME_WAIT, which show the side that closed first.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::inet;
use super::message::{DiagSocket, parse_socket};
use super::tcp::{Listening, ReadError, TcpSocket, TcpSocketsRead, described, listening, walk};
use crate::netlink::wire::messages;
use crate::netlink::{DumpError, Netlink};
use crate::netns::enter::{EnteredNetns, spawn_inside};
use crate::netns::{self, NetnsError, NetnsRef};
use crate::root::Root;

/// Time limit for messages from before the end.
const REST: Duration = Duration::from_millis(300);

/// A socket in TIME_WAIT: its side closed first, or both sides closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpTimeWait {
    /// Address and port here.
    pub local: (IpAddr, u16),
    /// Address and port of the peer.
    pub remote: (IpAddr, u16),
    /// True if a socket of this namespace listens at the local address.
    pub accepted: bool,
    /// Time until it ends, ms; 60,000 at first.
    pub left_ms: u32,
}

/// The result of watching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpEndsRead {
    /// The namespaces that were watched, and those that could not be.
    pub read: TcpSocketsRead,
    /// How many times messages were lost because they came too fast.
    pub lost: u64,
}

/// Watches for destroyed sockets in all network namespaces that exist at its start.
#[derive(Debug)]
pub struct TcpEnds {
    stop: Arc<AtomicBool>,
    threads: Vec<(String, JoinHandle<Result<u64, ReadError>>)>,
    read: TcpSocketsRead,
}

impl TcpEnds {
    /// Begins to watch and passes each destroyed socket to `each`. After it returns, no end is missed. A socket that was reset by its own side has lost its
    /// peer's port and comes with port 0. The own namespace needs no privilege. At most 8 MiB of messages wait for each namespace.
    ///
    /// # Errors
    /// The namespaces cannot be listed. A namespace that cannot be watched is in the result.
    pub fn watch<S: Send + 'static>(
        root: &Root,
        state: &Arc<Mutex<S>>,
        each: fn(&mut S, &NetnsRef, &TcpSocket<'_>),
    ) -> Result<Self, NetnsError> {
        let namespaces = netns::list(root)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut read = TcpSocketsRead::new(&namespaces);
        // Each thread drops its sender once it is ready or has failed.
        let (ready, wait) = sync_channel::<()>(1);
        let mut threads = Vec::new();
        for netns in namespaces.found {
            let (place, named) = (netns.path.display().to_string(), netns.clone());
            let (state, stop, ready) = (Arc::clone(state), Arc::clone(&stop), ready.clone());
            let thread = spawn_inside(netns, root.clone(), move |inside| {
                let mut take = |socket: &TcpSocket<'_>| each(&mut state.lock().unwrap_or_else(PoisonError::into_inner), &named, socket);
                listen(inside?, ready, &stop, &mut take)
            });
            match thread {
                Ok(thread) => threads.push((place, thread)),
                Err(error) => read.failed.push((error.to_string(), error.needs())),
            }
        }
        drop(ready);
        while wait.recv().is_ok() {}
        Ok(Self { stop, threads, read })
    }

    /// Ends after the messages that were sent until now.
    pub fn finish(mut self) -> TcpEndsRead {
        self.stop.store(true, Ordering::Relaxed);
        let (mut read, mut lost) = (std::mem::take(&mut self.read), 0);
        for (place, thread) in std::mem::take(&mut self.threads) {
            lost += read.add(&place, Ok(thread)).unwrap_or(0);
        }
        TcpEndsRead { read, lost }
    }
}

impl Drop for TcpEnds {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn listen(inside: &EnteredNetns, ready: SyncSender<()>, stop: &AtomicBool, each: &mut dyn FnMut(&TcpSocket<'_>)) -> Result<u64, ReadError> {
    let ends = Netlink::open_destroyed().map_err(DumpError::from)?;
    let listening = listening(inside.sockets())?;
    drop(ready);
    let (mut lost, mut over) = (0, None);
    loop {
        if stop.load(Ordering::Relaxed) {
            over = over.or_else(|| Some(Instant::now()));
        }
        // Messages from before the end are taken. Later ones are not waited for.
        if over.is_some_and(|over| over.elapsed() > REST) {
            return Ok(lost);
        }
        match ends.receive_multicast(&mut |bytes| one(bytes, &listening, each)) {
            Ok(true) => {}
            Ok(false) if over.is_some() => return Ok(lost),
            Ok(false) => {}
            Err(DumpError::System(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => lost += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn one(bytes: &[u8], listening: &Listening, each: &mut dyn FnMut(&TcpSocket<'_>)) -> Result<(), DumpError> {
    for message in messages(bytes) {
        let message = message?;
        // Messages that do not parse are of other kinds.
        let (Ok(DiagSocket::Inet(socket)), Ok(measured)) = (parse_socket(&message), inet::measured(&message)) else { continue };
        each(&described(&socket, &measured, listening));
    }
    Ok(())
}

/// Reads the sockets in TIME_WAIT of all network namespaces and passes each to `each`.
///
/// # Errors
/// The namespaces cannot be listed. A namespace that cannot be read is in the result.
pub fn read_tcp_time_waits<S: Send + 'static>(
    root: &Root,
    state: &Arc<Mutex<S>>,
    each: fn(&mut S, &NetnsRef, &TcpTimeWait),
) -> Result<TcpSocketsRead, NetnsError> {
    let mut read = TcpSocketsRead::default();
    for netns in netns::list(root)?.found {
        let (state, named, place) = (Arc::clone(state), netns.clone(), netns.path.display().to_string());
        let thread = spawn_inside(netns, root.clone(), move |inside| {
            let inside = inside?;
            let listening = listening(inside.sockets())?;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            walk(inside.sockets().diag(), &inet::time_waits(), &mut |message| {
                if let DiagSocket::Inet(socket) = parse_socket(message)?
                    && let Some(wait) = socket.wait
                {
                    let (local, remote, accepted) = (socket.local, socket.remote, listening.has(socket.local));
                    each(&mut state, &named, &TcpTimeWait { local, remote, accepted, left_ms: wait.left_ms });
                }
                Ok(())
            })
        });
        read.add(&place, thread);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpInfoPlace;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const TURNS: TcpInfoPlace = TcpInfoPlace::of("data_segs_out");

    /// The ended connections at one port: whether accepted, and sent segments with data; and whether those in TIME_WAIT were accepted.
    #[derive(Default)]
    struct Ends {
        port: u16,
        ended: Vec<(bool, u64)>,
        waiting: Vec<bool>,
    }

    #[test]
    fn ended_connections_are_reported_with_their_traffic_and_who_closed_first() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(Ends { port, ..Ends::default() }));
        let watch = TcpEnds::watch(&Root::default(), &state, |ends: &mut Ends, _, socket| {
            if [socket.local.1, socket.remote.1].contains(&ends.port) {
                ends.ended.push((socket.accepted, TURNS.read(socket.info).unwrap_or(0)));
            }
        })
        .unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..3 {
            client.write_all(b"?").unwrap();
            server.read_exact(&mut [0]).unwrap();
            server.write_all(b"!").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        drop(server);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let read = watch.finish();
        assert!(read.read.namespaces >= 1 && read.lost == 0, "{read:?}");
        let waits = read_tcp_time_waits(&Root::default(), &state, |ends: &mut Ends, _, wait| {
            if [wait.local.1, wait.remote.1].contains(&ends.port) {
                ends.waiting.push(wait.accepted);
                assert!(wait.left_ms <= 60_000, "{wait:?}");
            }
        });
        assert!(waits.unwrap().namespaces >= 1);
        let mut ends = state.lock().unwrap();
        ends.ended.sort_unstable();
        assert_eq!(ends.ended, [(false, 3), (true, 3)]);
        assert_eq!(ends.waiting, [true], "the server closed first");
    }
}
