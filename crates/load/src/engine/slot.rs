//! One connection of the generator and the request on it: connect, write, read; no clock and no counting.

use std::io;
use std::net::IpAddr;

use mio::{Registry, Token};

use crate::engine::shared::Shared;
use crate::host::address::Address;
use crate::host::tcp_info;
use crate::protocol::answer::{Bad, Fed};
use crate::protocol::reply::{Reply, ThreadScratch};
use crate::protocol::stream::Stream;
use crate::protocol::tls::TlsStream;
use crate::results::outcome::{Detail, Ended, Failure, RequestEnd};

/// Reads of one connection in a turn, so that one large answer does not hold up the others.
const READS_MAX: u32 = 16;
/// Connections of a thread whose TCP_INFO is kept.
const TCP_SAMPLE_MAX: usize = 16;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No socket.
    Closed,
    /// connect() was called for a request.
    Connecting,
    /// A part of the request is written.
    Sending,
    /// The request is written, the answer not complete.
    Awaiting,
    /// Connected, without a request.
    Idle,
}

/// What a turn came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The kernel will tell when to go on.
    Waiting,
    /// There may be more to read; the kernel will not tell.
    Again,
    Ended(Ended),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Slot {
    stream: Option<Stream>,
    /// The connection before, whose answer is complete and whose end the server has not sent yet.
    leaving: Option<Stream>,
    /// Which of the two an event is about: it alternates from connection to connection.
    parity: bool,
    pub(crate) phase: Phase,
    reply: Reply,
    written: usize,
    /// The kernel said that the peer has closed its side.
    peer_closed: bool,
    /// The kernel tells when more can be written.
    watches_writes: bool,
    /// Attempts to connect that failed at once, in a row.
    pub(crate) failures: u8,
    /// Place in the list of idle connections.
    pub(crate) idle_place: u32,
    pub(crate) started_ns: u64,
    pub(crate) intended_ns: u64,
    /// When the first byte of an answer came that is not complete yet; 0 before, and where the whole came at once.
    pub(crate) first_byte_ns: u64,
    /// Bytes of the answer have come.
    pub(crate) begun: bool,
    /// Requests on this connection, the one under way included.
    pub(crate) carried: u32,
    /// Which of the prepared requests is under way.
    pub(crate) target: u32,
}

impl Slot {
    pub(crate) fn new(reply: Reply) -> Self {
        Slot {
            stream: None,
            leaving: None,
            parity: false,
            phase: Phase::Closed,
            reply,
            written: 0,
            peer_closed: false,
            watches_writes: false,
            failures: 0,
            idle_place: 0,
            started_ns: 0,
            intended_ns: 0,
            first_byte_ns: 0,
            begun: false,
            carried: 0,
            target: 0,
        }
    }

    /// True while a request is under way.
    pub(crate) fn is_in_flight(&self) -> bool {
        matches!(self.phase, Phase::Connecting | Phase::Sending | Phase::Awaiting)
    }

    /// Makes ready for the next request. `is_head`: its method is HEAD.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, target: u32, is_head: bool, started_ns: u64, intended_ns: u64) {
        self.reply.reset(is_head);
        self.target = target;
        self.written = 0;
        self.first_byte_ns = 0;
        self.begun = false;
        self.carried = self.carried.saturating_add(1);
        self.started_ns = started_ns;
        self.intended_ns = intended_ns;
    }

    /// Calls connect(). The socket sends without delay (TCP_NODELAY) and is closed in the ordinary way, without SO_LINGER.
    pub(crate) fn connect(&mut self, shared: &Shared<'_>, from: Option<IpAddr>) -> Result<(), Ended> {
        let address = &shared.plan.address;
        let failed = |error: io::Error| match address {
            // EAGAIN (unix(7)): a client that waits would wait here; one that does not, as a proxy, is refused.
            Address::Unix(_) if error.kind() == io::ErrorKind::WouldBlock => {
                Ended::failed(Failure::ConnectRefused, Detail::Text("the accept queue of the unix socket is full"))
            }
            _ => Ended::failed(Failure::of_connect(&error), Detail::Io(error)),
        };
        self.stream = Some(Stream::connect(address, from, shared.tls.as_ref()).map_err(failed)?);
        self.parity = !self.parity;
        self.carried = 1;
        self.peer_closed = false;
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// Has the kernel tell of a new connection; what it would tell by now is told at once. Where the request is written already, as on loopback, where
    /// a connection stands when connect() returns, a writable socket is no news, and the loop is not to turn for it.
    pub(crate) fn register(&mut self, registry: &Registry, index: u32) -> Result<(), Ended> {
        let Some(stream) = self.stream.as_mut() else { return Ok(()) };
        self.watches_writes = self.phase != Phase::Awaiting || stream.tls().is_some();
        let registered = stream.register(registry, token(index, self.parity), self.watches_writes);
        registered.map_err(|error| Ended::failed(Failure::of_connect(&error), Detail::Io(error)))
    }

    /// Has the kernel tell as well when the rest of a request can be written.
    #[cold]
    pub(crate) fn watch_writes(&mut self, registry: &Registry, index: u32) -> Result<(), Ended> {
        let Some(stream) = self.stream.as_mut() else { return Ok(()) };
        self.watches_writes = true;
        let watched = stream.watch_writes(registry, token(index, self.parity));
        watched.map_err(|error| Ended::failed(Failure::of_established(&error), Detail::Io(error)))
    }

    /// True where nothing would tell when the rest of the request can be written.
    #[inline(always)]
    pub(crate) fn is_stuck(&self) -> bool {
        self.phase == Phase::Sending && !self.watches_writes
    }

    /// The TLS session of the connection, where there is one.
    pub(crate) fn tls(&mut self) -> Option<&mut TlsStream> {
        self.stream.as_mut()?.tls()
    }

    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.phase = Phase::Closed;
    }

    /// Closes a connection whose answer is complete. The server was asked to close it: where its end has not come yet it is waited for while the
    /// next request is under way. The side that closes first keeps the port in TIME_WAIT for a minute, and that is to be the server, or the
    /// generator would run out of ports that a client which reads to the end does not use up.
    pub(crate) fn leave(&mut self) {
        self.leaving = self.stream.take().filter(|_| !self.peer_closed);
        self.phase = Phase::Closed;
    }

    /// True where an event is about the connection before; its end closes it.
    pub(crate) fn is_before(&mut self, parity: bool, is_end: bool) -> bool {
        let before = parity != self.parity;
        if before && is_end {
            self.leaving = None;
        }
        before
    }

    /// Remembers that the kernel said so; it says it once.
    pub(crate) fn note_peer_closed(&mut self) {
        self.peer_closed = true;
    }

    /// Writes what is left of the request. While connecting, a write that does not block is the proof that the connection stands: it
    /// brings the error of a failed connect (tcp(7), SO_ERROR) without a system call of its own.
    #[inline(always)]
    pub(crate) fn send(&mut self, request: &[u8], sent_bytes: &mut u64) -> Turn {
        let Some(stream) = self.stream.as_mut() else { return Turn::Waiting };
        while self.written < request.len() {
            match stream.write(&request[self.written..]) {
                Ok(bytes) => {
                    self.written += bytes;
                    *sent_bytes += bytes as u64;
                    self.phase = Phase::Sending;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.phase == Phase::Connecting => {
                    // What the kernel has no number for is the handshake's.
                    let is_tls = error.raw_os_error().is_none() && stream.tls().is_some();
                    let failure = if is_tls { Failure::TlsFailed } else { Failure::of_connect(&error) };
                    return Turn::Ended(Ended::failed(failure, Detail::Io(error)));
                }
                Err(error) => return Turn::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
            }
        }
        match stream.flush() {
            Ok(()) => self.phase = Phase::Awaiting,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Turn::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
        }
        Turn::Waiting
    }

    /// Reads what is there of the answer.
    #[inline(always)]
    pub(crate) fn receive(&mut self, buffer: &mut [u8], aside: &mut ThreadScratch, received_bytes: &mut u64) -> Turn {
        let Some(stream) = self.stream.as_mut() else { return Turn::Waiting };
        for _ in 0..READS_MAX {
            let bytes = match stream.read(buffer) {
                Ok(0) => return Turn::Ended(self.closed_by_peer()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Turn::Ended(Ended::failed(Failure::BadResponse, Detail::Io(error)));
                }
                Err(error) => return Turn::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
            };
            *received_bytes += bytes as u64;
            match self.reply.feed(&buffer[..bytes], aside) {
                Ok(Fed::Complete(used)) => return Turn::Ended(self.answered(used < bytes)),
                // A short read emptied the socket (epoll(7)); what comes later is told, and so is the close if it was not told yet.
                Ok(Fed::More) => {
                    self.begun = true;
                    if bytes < buffer.len() && !self.peer_closed && !stream.has_ended() {
                        return Turn::Waiting;
                    }
                }
                Err(Bad(text)) => return Turn::Ended(Ended::failed(Failure::BadResponse, Detail::Text(text))),
            }
        }
        Turn::Again
    }

    /// An idle connection became readable: closed by the peer, or bytes that nobody asked for. True for the latter.
    pub(crate) fn is_spoken_to(&mut self, buffer: &mut [u8]) -> Option<bool> {
        match self.stream.as_mut()?.read(buffer) {
            Ok(bytes) => Some(bytes > 0),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
            Err(_) => Some(false),
        }
    }

    #[inline(always)]
    fn answered(&self, is_followed_by_bytes: bool) -> Ended {
        Ended {
            end: RequestEnd::Status(self.reply.status()),
            reusable: self.reply.reusable() && !is_followed_by_bytes && !self.peer_closed && self.phase == Phase::Awaiting,
            detail: if is_followed_by_bytes { Detail::Text("bytes followed the end of the answer") } else { Detail::None },
        }
    }

    #[cold]
    fn closed_by_peer(&mut self) -> Ended {
        match self.reply.close() {
            Ok(true) => Ended { end: RequestEnd::Status(self.reply.status()), reusable: false, detail: Detail::None },
            Ok(false) => Ended::failed(Failure::ClosedBeforeAnswer, Detail::None),
            Err(Bad(text)) => Ended::failed(Failure::BadResponse, Detail::Text(text)),
        }
    }
}

/// Notes, the first time, what the kernel knows of some of the connections that stand, evenly taken from all of them.
pub(crate) fn sample_tcp(sample: &mut Option<Vec<Vec<u8>>>, slots: &[Slot]) {
    if sample.is_none() {
        let sockets = || slots.iter().filter(|slot| slot.phase != Phase::Connecting).filter_map(|slot| slot.stream.as_ref()?.tcp());
        let each = sockets().count().div_ceil(TCP_SAMPLE_MAX).max(1);
        *sample = Some(sockets().step_by(each).filter_map(tcp_info::read).collect());
    }
}

/// Bit of an event's token that tells the connections of one slot apart; below it is the slot's number.
const PARITY_BIT: u32 = usize::BITS - 1;

fn token(index: u32, parity: bool) -> Token {
    Token(index as usize | usize::from(parity) << PARITY_BIT)
}

/// The slot that an event is for, and which of its connections.
pub(crate) fn place(token: Token) -> (u32, bool) {
    ((token.0 & !(1 << PARITY_BIT)) as u32, token.0 >> PARITY_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_takes_the_memory_that_is_promised() {
        assert!(size_of::<Slot>() <= 256 - 16, "{} bytes, and 16 in the lists", size_of::<Slot>());
    }
}
