//! One connection of the generator and its request: connecting, writing, reading. It reads no clock and counts nothing.

use std::io;
use std::net::IpAddr;

use mio::{Registry, Token};

use crate::engine::shared::Shared;
use crate::host::address::Address;
use crate::host::tcp_info;
use crate::protocol::completion::{BadAnswer, Completion};
use crate::protocol::reply::{Reply, ThreadScratch};
use crate::protocol::stream::Stream;
use crate::protocol::tls::TlsStream;
use crate::results::outcome::{Detail, Ended, Failure, RequestEnd};

/// Maximum number of reads of one connection in a turn, so that one large answer does not delay the others.
const READS_MAX: u32 = 16;
/// Maximum number of a thread's connections whose TCP_INFO is kept.
const TCP_SAMPLE_MAX: usize = 16;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No socket.
    Closed,
    /// connect() was called for a request.
    Connecting,
    /// A part of the request has been written.
    Sending,
    /// The request has been written; the answer is not complete.
    Awaiting,
    /// Connected, without a request.
    Idle,
}

/// The result of a turn.
#[derive(Debug)]
pub(crate) enum SlotProgress {
    /// The kernel will report an event.
    Waiting,
    /// There may be more to read, without a further event.
    Again,
    Ended(Ended),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Slot {
    stream: Option<Stream>,
    /// The previous connection. Its answer is complete; its server's end is awaited.
    closing: Option<Stream>,
    /// Identify the connection that an event is about: they count the connections of this slot.
    generation: u8,
    closing_generation: u8,
    pub(crate) phase: Phase,
    reply: Reply,
    written: usize,
    /// The kernel reported that the peer has closed its side.
    peer_closed: bool,
    /// The kernel reports when more can be written.
    watches_writes: bool,
    /// Consecutive attempts to connect that failed at once.
    pub(crate) failures: u8,
    /// Position in the list of idle connections.
    pub(crate) idle_position: u32,
    pub(crate) started_ns: u64,
    pub(crate) intended_ns: u64,
    /// When the first byte of a still incomplete answer arrived; 0 before that, and if the whole answer came at once.
    pub(crate) first_byte_ns: u64,
    /// Bytes of the answer have arrived.
    pub(crate) begun: bool,
    /// Requests on this connection, including the one in flight.
    pub(crate) carried: u32,
    /// Index of the rendered request in flight.
    pub(crate) target: u32,
}

impl Slot {
    pub(crate) fn new(reply: Reply) -> Self {
        Slot {
            stream: None,
            closing: None,
            generation: 0,
            closing_generation: 0,
            phase: Phase::Closed,
            reply,
            written: 0,
            peer_closed: false,
            watches_writes: false,
            failures: 0,
            idle_position: 0,
            started_ns: 0,
            intended_ns: 0,
            first_byte_ns: 0,
            begun: false,
            carried: 0,
            target: 0,
        }
    }

    /// Whether a request is in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        matches!(self.phase, Phase::Connecting | Phase::Sending | Phase::Awaiting)
    }

    /// Prepares for the next request. `is_head`: its method is HEAD.
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

    /// Prepares to send the same request once more.
    pub(crate) fn renew(&mut self, is_head: bool) {
        self.reply.reset(is_head);
        self.written = 0;
    }

    /// Calls connect(). The socket sends without delay (TCP_NODELAY) and is closed normally, without SO_LINGER.
    pub(crate) fn connect(&mut self, shared: &Shared<'_>, from: Option<IpAddr>) -> Result<(), Ended> {
        let address = &shared.plan.address;
        let failed = |error: io::Error| match address {
            // EAGAIN (unix(7)): a blocking client would wait here; a non-blocking one, such as a proxy, is refused.
            Address::Unix(_) | Address::Listening { .. } if error.kind() == io::ErrorKind::WouldBlock => {
                Ended::failed(Failure::ConnectRefused, Detail::Text("the accept queue of the unix socket is full"))
            }
            _ => Ended::failed(Failure::of_connect(&error), Detail::Io(error)),
        };
        self.stream = Some(Stream::connect(address, from, shared.tls.as_ref()).map_err(failed)?);
        self.generation = self.generation.wrapping_add(1);
        self.carried = 1;
        self.peer_closed = false;
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// Registers a new connection with the kernel, which reports present readiness at once. On loopback a connection is established when connect() returns. If
    /// the request has already been written, a writable socket is no news and must not cost a turn.
    pub(crate) fn register(&mut self, registry: &Registry, index: u32) -> Result<(), Ended> {
        let Some(stream) = self.stream.as_mut() else { return Ok(()) };
        self.watches_writes = self.phase != Phase::Awaiting || stream.tls().is_some();
        let registered = stream.register(registry, token(index, self.generation), self.watches_writes);
        registered.map_err(|error| Ended::failed(Failure::of_connect(&error), Detail::Io(error)))
    }

    /// Also reports when the rest of a request can be written.
    #[cold]
    pub(crate) fn watch_writes(&mut self, registry: &Registry, index: u32) -> Result<(), Ended> {
        let Some(stream) = self.stream.as_mut() else { return Ok(()) };
        self.watches_writes = true;
        let watched = stream.watch_writes(registry, token(index, self.generation));
        watched.map_err(|error| Ended::failed(Failure::of_established(&error), Detail::Io(error)))
    }

    /// Whether no event would report that the rest of the request can be written.
    #[inline(always)]
    pub(crate) fn is_stuck(&self) -> bool {
        self.phase == Phase::Sending && !self.watches_writes
    }

    /// The connection's TLS session, if any.
    pub(crate) fn tls(&mut self) -> Option<&mut TlsStream> {
        self.stream.as_mut()?.tls()
    }

    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.phase = Phase::Closed;
    }

    /// Whether an event with this generation is about the present connection.
    #[inline(always)]
    pub(crate) fn is_current(&self, generation: u8) -> bool {
        generation == self.generation && self.phase != Phase::Closed
    }

    /// Whether the peer has ended its side, as far as the kernel and TLS told.
    pub(crate) fn has_peer_ended(&self) -> bool {
        self.peer_closed || self.stream.as_ref().is_some_and(Stream::has_ended)
    }

    /// Whether the side that closes this connection first keeps its port in TIME_WAIT.
    pub(crate) fn keeps_port(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.tcp().is_some())
    }

    /// Sets the connection aside until [`Slot::end_previous`]. Returns its generation, and whether this closed the one that was set aside before.
    pub(crate) fn set_aside(&mut self) -> (u8, bool) {
        let replaced = std::mem::replace(&mut self.closing, self.stream.take());
        self.closing_generation = self.generation;
        self.phase = Phase::Closed;
        (self.generation, replaced.is_some())
    }

    /// Whether the connection of this generation is set aside.
    pub(crate) fn is_set_aside(&self, generation: u8) -> bool {
        self.closing.is_some() && generation == self.closing_generation
    }

    /// Whether an event of the connection that is set aside is its end, which over TLS may also be announced by a record.
    pub(crate) fn is_end_of_previous(&mut self, is_read_closed: bool, buffer: &mut [u8]) -> bool {
        match (is_read_closed, self.closing.as_mut().and_then(Stream::tls)) {
            (true, Some(tls)) => {
                tls.note_peer_closed();
                true
            }
            (true, None) => true,
            (false, Some(tls)) => {
                let read = tls.read(buffer);
                tls.has_ended() || read.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
            }
            (false, None) => false,
        }
    }

    /// Closes the connection that was set aside.
    pub(crate) fn end_previous(&mut self) {
        self.closing = None;
    }

    /// Remembers that the kernel reported it; it reports it only once.
    pub(crate) fn note_peer_closed(&mut self) {
        self.peer_closed = true;
        if let Some(tls) = self.tls() {
            tls.note_peer_closed();
        }
    }

    /// Writes the rest of the request. While connecting, a successful write proves that the connection is established, and a failed one returns the error of
    /// connect() (tcp(7), SO_ERROR) without another system call.
    #[inline(always)]
    pub(crate) fn send(&mut self, request: &[u8], sent_bytes: &mut u64) -> SlotProgress {
        let Some(stream) = self.stream.as_mut() else { return SlotProgress::Waiting };
        while self.written < request.len() {
            match stream.write(&request[self.written..]) {
                Ok(bytes) => {
                    self.written += bytes;
                    *sent_bytes += bytes as u64;
                    self.phase = Phase::Sending;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return SlotProgress::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.phase == Phase::Connecting => {
                    // An error without a number from the kernel is one of the handshake.
                    let is_tls = error.raw_os_error().is_none() && stream.tls().is_some();
                    let failure = if is_tls { Failure::TlsFailed } else { Failure::of_connect(&error) };
                    return SlotProgress::Ended(Ended::failed(failure, Detail::Io(error)));
                }
                Err(error) => return SlotProgress::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
            }
        }
        match stream.flush() {
            Ok(()) => self.phase = Phase::Awaiting,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return SlotProgress::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
        }
        SlotProgress::Waiting
    }

    /// Reads the available part of the answer.
    #[inline(always)]
    pub(crate) fn receive(&mut self, buffer: &mut [u8], scratch: &mut ThreadScratch, received_bytes: &mut u64) -> SlotProgress {
        let Some(stream) = self.stream.as_mut() else { return SlotProgress::Waiting };
        for _ in 0..READS_MAX {
            let bytes = match stream.read(buffer) {
                Ok(0) => return SlotProgress::Ended(self.closed_by_peer()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return SlotProgress::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return SlotProgress::Ended(Ended::failed(Failure::BadResponse, Detail::Io(error)));
                }
                Err(error) => return SlotProgress::Ended(Ended::failed(Failure::of_established(&error), Detail::Io(error))),
            };
            *received_bytes += bytes as u64;
            match self.reply.feed(&buffer[..bytes], scratch) {
                Ok(Completion::Complete(used)) => return SlotProgress::Ended(self.answered(used < bytes)),
                // A short read emptied the socket (epoll(7)). The kernel will report later data, and the close unless it did already.
                Ok(Completion::More) => {
                    self.begun = true;
                    if bytes < buffer.len() && !self.peer_closed && !stream.has_ended() {
                        return SlotProgress::Waiting;
                    }
                }
                Err(BadAnswer(text)) => return SlotProgress::Ended(Ended::failed(Failure::BadResponse, Detail::Text(text))),
            }
        }
        SlotProgress::Again
    }

    /// An idle connection became readable: true if the peer sent bytes that were not requested, false if it closed.
    pub(crate) fn is_unexpectedly_readable(&mut self, buffer: &mut [u8]) -> Option<bool> {
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
            reusable: self.reply.reusable() && !is_followed_by_bytes && !self.has_peer_ended() && self.phase == Phase::Awaiting,
            detail: if is_followed_by_bytes { Detail::Text("bytes followed the end of the response") } else { Detail::None },
        }
    }

    #[cold]
    fn closed_by_peer(&mut self) -> Ended {
        self.note_peer_closed();
        match self.reply.close() {
            Ok(true) => Ended { end: RequestEnd::Status(self.reply.status()), reusable: false, detail: Detail::None },
            Ok(false) => Ended::failed(Failure::ClosedBeforeAnswer, Detail::None),
            Err(BadAnswer(text)) => Ended::failed(Failure::BadResponse, Detail::Text(text)),
        }
    }
}

/// The first call reads TCP_INFO of some established connections, evenly selected.
pub(crate) fn sample_tcp(sample: &mut Option<Vec<Vec<u8>>>, slots: &[Slot]) {
    if sample.is_none() {
        let sockets = || slots.iter().filter(|slot| slot.phase != Phase::Connecting).filter_map(|slot| slot.stream.as_ref()?.tcp());
        let each = sockets().count().div_ceil(TCP_SAMPLE_MAX).max(1);
        *sample = Some(sockets().step_by(each).filter_map(tcp_info::read).collect());
    }
}

/// The bits of an event's token that tell the connections of one slot apart. The bits below them are the slot's number.
const GENERATION_SHIFT: u32 = usize::BITS - u8::BITS;

fn token(index: u32, generation: u8) -> Token {
    Token(index as usize | usize::from(generation) << GENERATION_SHIFT)
}

/// The slot that an event is for, and the generation of its connection.
pub(crate) fn slot_of(token: Token) -> (u32, u8) {
    ((token.0 & ((1 << GENERATION_SHIFT) - 1)) as u32, (token.0 >> GENERATION_SHIFT) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_takes_the_documented_memory() {
        assert!(size_of::<Slot>() <= 256 - 16, "{} bytes, and 16 in the lists", size_of::<Slot>());
    }

    /// The generator's side of a connection, and a server that says what it is told to.
    mod live {
        use std::io::Write;
        use std::net::TcpListener;
        use std::sync::Arc;
        use std::time::{Duration, Instant};

        use mio::net::TcpStream;
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        use rustls::{ServerConfig, ServerConnection, StreamOwned};

        use super::*;
        use crate::protocol::tls::{Client, Tls, Trust};

        const CERTIFICATE: &[u8] = include_bytes!("../../tests/data/server.pem");
        const KEY: &[u8] = include_bytes!("../../tests/data/server.key");

        /// A connection that is set aside, after its handshake, and the server's end of it.
        fn secured() -> (Slot, StreamOwned<ServerConnection, std::net::TcpStream>) {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
            let (certificate, key) = (CertificateDer::from_pem_slice(CERTIFICATE).unwrap(), PrivateKeyDer::from_pem_slice(KEY).unwrap());
            let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let session = ServerConnection::new(Arc::new(config)).unwrap();
                let mut session = StreamOwned::new(session, listener.accept().unwrap().0);
                session.conn.complete_io(&mut session.sock).unwrap();
                session
            });
            let tls = Tls { server_name: "localhost".to_owned(), trust: Trust::Anybody, resume: false };
            let mut stream = Client::new(&tls, None).unwrap().connect(TcpStream::connect(address).unwrap()).unwrap();
            until(|| stream.write(b"x").is_ok());
            (Slot { closing: Some(Stream::Tls(stream)), ..Slot::new(reply()) }, server.join().unwrap())
        }

        fn reply() -> Reply {
            Reply::Http(crate::protocol::answer::Answer::new(false))
        }

        fn until(mut condition: impl FnMut() -> bool) {
            let begin = Instant::now();
            while !condition() {
                assert!(begin.elapsed() < Duration::from_secs(60));
                std::thread::sleep(Duration::from_millis(1));
            }
        }

        #[test]
        fn the_end_of_a_session_that_is_set_aside_is_told_from_its_other_records() {
            let mut buffer = [0; 4096];
            let (mut slot, mut server) = secured();
            // The session's tickets may come now; and a server may say more than it announced.
            assert!(!slot.is_end_of_previous(false, &mut buffer), "nothing has ended");
            server.write_all(b"more").unwrap();
            let has_come =
                |slot: &Slot| matches!(&slot.closing, Some(Stream::Tls(tls)) if tls.socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0));
            until(|| has_come(&slot));
            assert!(!slot.is_end_of_previous(false, &mut buffer), "a record is no end");
            server.conn.send_close_notify();
            server.flush().unwrap();
            until(|| slot.is_end_of_previous(false, &mut buffer));
            assert!(slot.is_set_aside(0));
            slot.end_previous();
            assert!(!slot.is_set_aside(0));

            // The end of the socket is one without a close_notify, and so is what is no record.
            let (mut slot, server) = secured();
            drop(server);
            assert!(slot.is_end_of_previous(true, &mut buffer));
            let (mut slot, mut server) = secured();
            server.sock.write_all(&[b'?'; 64]).unwrap();
            until(|| slot.is_end_of_previous(false, &mut buffer));
            let mut bare = Slot::new(reply());
            assert!(!bare.is_end_of_previous(false, &mut buffer) && bare.is_end_of_previous(true, &mut buffer));
        }
    }
}
