//! The ends of TCP connections: each socket as the kernel destroys it, with its last struct tcp_info (the multicast groups of sock_diag(7)), and the
//! sockets in TIME_WAIT, which tell the side that closed first.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::tcp::{Listening, ReadError, TcpSocket, TcpSocketsRead, described, listening, walk};
use super::{Any, inet, parse_one};
use crate::netlink::wire::messages;
use crate::netlink::{DumpError, Netlink};
use crate::netns::enter::{Inside, spawn_inside};
use crate::netns::{self, NetnsError, NetnsRef};
use crate::root::Root;

/// What was announced before the end is taken for so long at most.
const REST: Duration = Duration::from_millis(300);

/// A socket in TIME_WAIT: its side closed first, or both did at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpTimeWait {
    /// Address and port here.
    pub local: (IpAddr, u16),
    /// Address and port of the peer.
    pub remote: (IpAddr, u16),
    /// A socket of this namespace listens at the local address.
    pub accepted: bool,
    /// Until it ends, ms; 60,000 at first.
    pub left_ms: u32,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpEndsRead {
    /// Namespaces that were watched, and those that could not be.
    pub read: TcpSocketsRead,
    /// Times that ends were lost because they came faster than they were taken.
    pub lost: u64,
}

/// Watches for sockets that are destroyed, in all network namespaces that there are at its start.
#[derive(Debug)]
pub struct TcpEnds {
    stop: Arc<AtomicBool>,
    threads: Vec<(String, JoinHandle<Result<u64, ReadError>>)>,
    read: TcpSocketsRead,
}

impl TcpEnds {
    /// Begins; when it comes back, nothing that ends is missed any more. Each socket is handed to `each`. A socket that was reset by its own side has
    /// lost its peer's port, and comes with port 0. No privilege is needed in one's own namespace. At most 8 MiB wait for each namespace.
    ///
    /// # Errors
    /// The namespaces cannot be listed. One that cannot be watched is told in the result.
    pub fn watch<S: Send + 'static>(
        root: &Root,
        state: &Arc<Mutex<S>>,
        each: fn(&mut S, &NetnsRef, &TcpSocket<'_>),
    ) -> Result<Self, NetnsError> {
        let namespaces = netns::list(root)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut read = TcpSocketsRead::default();
        if let Some(lack) = namespaces.lack() {
            read.failed.push((lack.why, Some("CAP_SYS_PTRACE")));
        }
        // Each thread lets go of its end once it is ready, or has failed.
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

    /// Ends it, after what was announced until now.
    pub fn finish(mut self) -> TcpEndsRead {
        self.stop.store(true, Ordering::Relaxed);
        let (mut read, mut lost) = (std::mem::take(&mut self.read), 0);
        for (place, thread) in std::mem::take(&mut self.threads) {
            match thread.join() {
                Ok(Ok(more)) => (read.namespaces, lost) = (read.namespaces + 1, lost + more),
                Ok(Err(ReadError::Netns(error))) => read.failed.push((error.to_string(), error.needs())),
                Ok(Err(error)) => read.failed.push((format!("{place}: {error}"), None)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        TcpEndsRead { read, lost }
    }
}

impl Drop for TcpEnds {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn listen(inside: &Inside, ready: SyncSender<()>, stop: &AtomicBool, each: &mut dyn FnMut(&TcpSocket<'_>)) -> Result<u64, ReadError> {
    let news = Netlink::destroyed().map_err(DumpError::from)?;
    let listening = listening(inside.sockets())?;
    drop(ready);
    let (mut lost, mut over) = (0, None);
    loop {
        if stop.load(Ordering::Relaxed) {
            over = over.or_else(|| Some(Instant::now()));
        }
        // What came before the end is waiting and is taken; what goes on coming is not waited for.
        if over.is_some_and(|over| over.elapsed() > REST) {
            return Ok(lost);
        }
        match news.news(&mut |bytes| one(bytes, &listening, each)) {
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
        // What cannot be read is of a kind that was not asked for.
        let (Ok(Any::Inet(socket)), Ok(measured)) = (parse_one(&message), inet::measured(&message)) else { continue };
        each(&described(&socket, &measured, listening));
    }
    Ok(())
}

/// Reads the sockets in TIME_WAIT of all network namespaces and hands each to `each`.
///
/// # Errors
/// The namespaces cannot be listed. One that cannot be read is told in the result.
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
                if let Any::Inet(socket) = parse_one(message)?
                    && let Some(wait) = socket.wait
                {
                    let (local, remote, accepted) = (socket.local, socket.remote, listening.has(socket.local));
                    each(&mut state, &named, &TcpTimeWait { local, remote, accepted, left_ms: wait.left_ms });
                }
                Ok(())
            })
        });
        match thread.map(JoinHandle::join) {
            Ok(Ok(Ok(()))) => read.namespaces += 1,
            Ok(Ok(Err(ReadError::Netns(error)))) | Err(error) => read.failed.push((error.to_string(), error.needs())),
            Ok(Ok(Err(error))) => read.failed.push((format!("{place}: {error}"), None)),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
        }
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

    /// The ends of connections to one port: whether accepted, and segments with data that it sent; and those in TIME_WAIT, whether accepted.
    #[derive(Default)]
    struct Ends {
        port: u16,
        ended: Vec<(bool, u64)>,
        waiting: Vec<bool>,
    }

    #[test]
    fn the_ends_of_connections_are_told_with_what_they_carried_and_who_closed_first() {
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
