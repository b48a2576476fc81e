//! Statuses of the responses that leave the servers of one namespace, counted on the wire: who answers with errors, also behind a proxy and without an access log.
//!
//! A packet socket (packet(7)) with a filter in the kernel hands over the first bytes of packets that begin with a response or accept a connection. Of these the status and the server's address are
//! counted; nothing else of them is kept. TLS, HTTP/2 and unix sockets show no statuses there: what is not counted was not read.

mod filter;
mod handed_over;
mod head;
mod turns;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use chokepoint_model::observation::{Observation, WireAnswers};
use chokepoint_model::reading::Reading;
use chokepoint_model::traffic::is_failure;
use chokepoint_recording::{Entry, Outcome};
use rustix::net::sockopt;

use self::handed_over::HandedOver;
use self::turns::Began;
use super::{attach, bind, statistics, unbound};
use crate::root::{outcome_of, reading_of};
use crate::scope::netns_view;
use crate::sock_diag::tcp_peer::sending;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "answers";
const NEEDS: &str = "CAP_NET_RAW";
/// The kernel's queue for packets that were not taken yet, bytes. It holds some two thousand; those beyond it cost next to nothing and are counted as lost.
const QUEUE_BYTES: usize = 1 << 20;
/// Most packets taken in one turn: more than the queue holds.
const TAKEN_MAX: usize = 8_192;
/// Responses in a turn (a quarter of a second) from which the socket is closed for the next turns. The kernel shows it every packet that leaves, some 0.2 µs each: at a hundred thousand responses
/// a second that is several per cent of a core if it stays open, and less than one per cent if it is open an eighth of the time.
const OFTEN: u64 = 500;
/// Time for which it stays closed then.
const CLOSED: Duration = Duration::from_millis(1_750);
/// The same after the kernel refused: a right that is missing stays so.
const REFUSED: Duration = Duration::from_secs(60);
/// Most servers (addresses with ports) counted in one turn. Others' responses are counted together.
const SERVERS_MAX: usize = 1_024;

/// Responses by server and status.
type Servers = BTreeMap<SocketAddr, BTreeMap<u16, u64>>;

/// Four times a second in each namespace of the path, unless responses are many: then for a quarter of a second every two seconds.
pub(crate) const ANSWERS: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Often, needs: Some(NEEDS), read, put, redact: Redact::Text };

/// The socket of one namespace, and when it last was taken from.
#[derive(Default)]
struct Tap {
    open: Option<(OwnedFd, Instant)>,
    /// Where the connections stand since it was opened.
    turns: turns::Turns,
    /// Those of which it is known how their servers send.
    handed_over: HandedOver,
    /// Until when it stays closed.
    closed_until: Option<Instant>,
    buffer: Vec<u8>,
}

fn read(context: &ReadContext<'_>) -> Items {
    let sockets = match context.sockets() {
        Ok(sockets) => sockets,
        Err(lack) => return only_item(lack),
    };
    let mut tap = sockets.memory::<Tap>().borrow_mut();
    let turn = tap.turn(context.phase == Phase::Last);
    tap.handed_over.look(|server, client| sending(sockets.diag(), server, client));
    match turn {
        Ok(Some(counted)) => only_item(Outcome::Ok(counted.text().into_bytes())),
        Ok(None) => Vec::new(),
        Err(error) => only_item(outcome_of(&error, Some(NEEDS))),
    }
}

impl Tap {
    /// Opens the socket, or takes what has come since the last turn. It never waits.
    fn turn(&mut self, is_last: bool) -> io::Result<Option<WireAnswers>> {
        let Some((socket, since)) = &mut self.open else {
            let now = Instant::now();
            if !is_last && self.closed_until.is_none_or(|until| now >= until) {
                self.closed_until = Some(now + REFUSED);
                self.open = Some((open()?, now));
            }
            return Ok(None);
        };
        self.buffer.resize(filter::KEPT_BYTES as usize, 0);
        let mut counted = WireAnswers::default();
        for _ in 0..TAKEN_MAX {
            let (length, leaves) = match receive(socket, &mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let Some(packet) = head::packet(&self.buffer[..length]) else { continue };
            let Some(began) = self.turns.began(&packet) else { continue };
            if leaves && !began.is_sure {
                self.handed_over.doubt(packet.connection, is_failure(began.status));
            }
            let is_sure = began.is_sure || self.handed_over.is_whole(&packet.connection);
            count(&mut counted, leaves, packet.connection.0, Began { is_sure, ..began });
        }
        // struct tpacket_stats: packets, drops.
        let [_, lost] = statistics(socket)?;
        counted.lost = u64::from(lost);
        counted.open_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        *since = Instant::now();
        let all = [&counted.servers, &counted.kept, &counted.came].into_iter().flat_map(BTreeMap::values);
        let seen: u64 = all.flat_map(BTreeMap::values).sum();
        if is_last || seen + counted.lost + counted.left_out >= OFTEN {
            self.close();
        }
        Ok(Some(counted))
    }

    /// The kernel lets a closing thread wait until no processor looks at the socket any more, some 10 ms: not this one, which samples.
    fn close(&mut self) {
        self.closed_until = Some(Instant::now() + CLOSED);
        self.turns = turns::Turns::default();
        let Some((socket, _)) = self.open.take() else { return };
        let closing = std::thread::Builder::new().name("closing".to_owned());
        // Without a thread it is closed here all the same.
        let _ = closing.spawn(move || drop(socket));
    }
}

fn count(counted: &mut WireAnswers, leaves: bool, server: SocketAddr, Began { status, is_sure }: Began) {
    let servers = match (leaves, is_sure) {
        (true, true) => &mut counted.servers,
        (true, false) => &mut counted.kept,
        (false, _) => &mut counted.came,
    };
    if servers.len() >= SERVERS_MAX && !servers.contains_key(&server) {
        counted.left_out += 1;
        return;
    }
    *servers.entry(server).or_default().entry(status).or_default() += 1;
}

/// Takes one packet without waiting: its bytes that the filter keeps, and whether it leaves (packet(7), `sll_pkttype`).
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
    // SAFETY: all zeros are a valid sockaddr_ll.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut from_bytes = size_of_val(&from) as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes into each of the two as it is told they have.
    let length = unsafe {
        let (begin, from) = (buffer.as_mut_ptr().cast(), (&raw mut from).cast());
        libc::recvfrom(socket.as_raw_fd(), begin, buffer.len(), libc::MSG_DONTWAIT, from, &raw mut from_bytes)
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((length, from.sll_pkttype == libc::PACKET_OUTGOING))
}

/// A packet socket of the calling thread's namespace. It is bound only after it has its filter, so that no other packet gets in.
fn open() -> io::Result<OwnedFd> {
    let socket = unbound(libc::SOCK_DGRAM)?;
    attach(&socket, &filter::PROGRAM)?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, QUEUE_BYTES)?;
    }
    bind(&socket, 0)?;
    Ok(socket)
}

/// Parses lines "NAME NUMBER" and "ADDRESS:PORT STATUS NUMBER", the latter behind "kept" or "came" for what is not sure or came, as [`Written::text`] writes them.
fn parse(bytes: &[u8]) -> Result<WireAnswers, ParseError> {
    let text = whole(NAME, bytes)?;
    let mut counted = WireAnswers::default();
    for (place, line) in lines(NAME, &text) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["open_us", number] => counted.open_us = place.number("microseconds", Some(number))?,
            ["lost", number] => counted.lost = responses(place, number)?,
            ["left_out", number] => counted.left_out = responses(place, number)?,
            ["kept", server, status, number] => add(&mut counted.kept, place, [server, status, number])?,
            ["came", server, status, number] => add(&mut counted.came, place, [server, status, number])?,
            [server, status, number] => add(&mut counted.servers, place, [server, status, number])?,
            _ => return Err(place.expected("\"NAME NUMBER\" or \"ADDRESS:PORT STATUS NUMBER\"", line)),
        }
    }
    Ok(counted)
}

/// A number of responses in one reading, small enough that sums of all do not overflow.
fn responses(place: TextLine, number: &str) -> Result<u64, ParseError> {
    place.number::<u32>("a number of responses", Some(number)).map(u64::from)
}

/// Adds what a line says of a server.
fn add(to: &mut Servers, place: TextLine, [server, status, number]: [&str; 3]) -> Result<(), ParseError> {
    let server: SocketAddr = server.parse().map_err(|_| place.expected("an address with a port", server))?;
    let status = place.number("a status", Some(status))?;
    let number = responses(place, number)?;
    if to.len() >= SERVERS_MAX && !to.contains_key(&server) {
        return Err(place.expected("no more servers than are counted", &server.to_string()));
    }
    *to.entry(server).or_default().entry(status).or_default() += number;
    Ok(())
}

/// The text of a recording.
trait Written {
    fn text(&self) -> String;
}

impl Written for WireAnswers {
    fn text(&self) -> String {
        let mut text = format!("open_us {}\nlost {}\nleft_out {}\n", self.open_us, self.lost, self.left_out);
        for (which, servers) in [("", &self.servers), ("kept ", &self.kept), ("came ", &self.came)] {
            let counts = servers.iter().flat_map(|(server, statuses)| statuses.iter().map(move |(status, count)| (server, status, count)));
            counts.for_each(|(server, status, count)| text.push_str(&format!("{which}{server} {status} {count}\n")));
        }
        text
    }
}

fn put(observation: &mut Observation, entry: &Entry) {
    if let Some(netns) = netns_view(observation, entry) {
        let reading: Reading<WireAnswers> = reading_of(&entry.outcome, parse);
        netns.answers.push(entry.at_us, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_parsed_and_nothing_else() {
        let server = |text: &str| text.parse::<SocketAddr>().unwrap();
        let servers = [(server("127.0.0.1:80"), [(200, 7), (503, 1)].into()), (server("[::1]:8080"), [(500, 2)].into())].into();
        let came = [(server("192.0.2.7:443"), [(200, 1)].into())].into();
        let kept = [(server("127.0.0.1:80"), [(404, 2)].into())].into();
        let counted = WireAnswers { open_us: 250_000, servers, kept, came, lost: 3, left_out: 1 };
        assert_eq!(parse(counted.text().as_bytes()).unwrap(), counted);
        assert_eq!(parse(b"").unwrap_err().to_string(), "answers, line 1: expected a whole line, found \"\"");
        for wrong in
            ["open_us\n", "open_us x\n", "127.0.0.1 200 1\n", "127.0.0.1:80 200\n", "127.0.0.1:80 70000 1\n", "a b c d\n", "lost 1"]
        {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let many: String = (1..=SERVERS_MAX + 1).map(|port| format!("127.0.0.1:{port} 200 1\n")).collect();
        assert!(parse(many.as_bytes()).is_err(), "no more than are counted");
    }

    const OK: Began = Began { status: 200, is_sure: true };

    #[test]
    fn of_many_servers_those_beyond_the_bound_are_counted_together() {
        let mut counted = WireAnswers::default();
        for port in 0..=SERVERS_MAX as u16 {
            count(&mut counted, true, SocketAddr::from(([127, 0, 0, 1], port)), OK);
        }
        count(&mut counted, true, SocketAddr::from(([127, 0, 0, 1], 0)), OK);
        assert_eq!((counted.servers.len(), counted.left_out), (SERVERS_MAX, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }

    mod live {
        use std::io::{Read, Write};
        use std::net::{TcpListener, TcpStream};

        use super::super::*;

        /// Sends a request and gets this response; the address of the server.
        fn answered(ip: &str, response: &'static [u8]) -> Option<SocketAddr> {
            let listener = TcpListener::bind((ip, 0)).ok()?;
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut connection, _) = listener.accept().unwrap();
                let _ = connection.read(&mut [0; 64]);
                connection.write_all(response).unwrap();
            });
            let mut client = TcpStream::connect(address).unwrap();
            // What a client sends is no response, whatever it looks like to a server.
            client.write_all(b"HTTP/1.1 599 x\r\n\r\n").unwrap();
            client.read_to_end(&mut Vec::new()).unwrap();
            server.join().unwrap();
            Some(address)
        }

        /// Turns of a tap beside a client that asks again and again on a connection that was there before, and gets this response; what was counted of its server.
        fn counted_of_older(response: &'static [u8], reads: usize) -> Option<WireAnswers> {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut connection, _) = listener.accept().unwrap();
            let address = connection.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                // Until the client leaves.
                while matches!(connection.read(&mut [0; 64]), Ok(1..)) && connection.write_all(response).is_ok() {}
            });
            let (mut tap, diag) = (Tap::default(), crate::netlink::Netlink::sock_diag().unwrap());
            let mut counted = WireAnswers::default();
            for _ in 0..12 {
                match tap.turn(false) {
                    Ok(turn) => counted = turn.map_or(counted.clone(), |turn| merged(counted, &turn, address)),
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
                    Err(error) => panic!("{error}"),
                }
                tap.handed_over.look(|server, client| crate::sock_diag::tcp_peer::sending(&diag, server, client));
                client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let mut left = reads;
                while left > 0 {
                    left -= client.read(&mut vec![0; left]).unwrap();
                }
            }
            drop(client);
            server.join().unwrap();
            Some(counted)
        }

        /// Both together, of one server.
        fn merged(mut all: WireAnswers, turn: &WireAnswers, server: SocketAddr) -> WireAnswers {
            for (to, from) in [(&mut all.servers, &turn.servers), (&mut all.kept, &turn.kept)] {
                for (status, count) in from.get(&server).into_iter().flatten() {
                    *to.entry(server).or_default().entry(*status).or_default() += count;
                }
            }
            all
        }

        #[test]
        fn errors_on_older_connections_count_where_each_response_is_handed_over_whole() {
            let whole = b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno";
            let Some(counted) = counted_of_older(whole, whole.len()) else {
                return println!("skipped: packet(7) needs CAP_NET_RAW");
            };
            let sum = |of: &Servers| of.values().flat_map(BTreeMap::values).sum::<u64>();
            assert!(sum(&counted.kept) >= 3 && sum(&counted.servers) >= 3, "{counted:?}");
            // A body that the client takes in pieces: its socket always has more to send.
            let page: &'static [u8] = b"HTTP/1.1 500 quoted\r\n\r\n....".repeat(1 << 18).leak();
            let counted = counted_of_older(page, 1_000).unwrap();
            assert_eq!(sum(&counted.servers), 0, "{counted:?}");
        }

        #[test]
        fn each_response_over_loopback_counts_once_for_its_server() {
            let mut tap = Tap::default();
            match tap.turn(false) {
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return println!("skipped: packet(7) needs CAP_NET_RAW"),
                other => panic!("{other:?}"),
            }
            let record = b"\x01\x06\x00\x01\x00\x1d\x00\x00Status: 500 Internal\r\n\r\nbody..";
            let all = [
                (answered("127.0.0.1", b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), 503),
                (answered("::1", b"HTTP/1.0 200 OK\r\n\r\nHTTP/1.1 500 in a page"), 200),
                (answered("127.0.0.1", record), 500),
                (answered("127.0.0.1", b"Status: 404 Not Found\r\n\r\n"), 404),
            ];
            let counted = tap.turn(true).unwrap().unwrap();
            for (server, status) in all.into_iter().filter_map(|(server, status)| Some((server?, status))) {
                assert_eq!(counted.servers.get(&server), Some(&[(status, 1)].into()), "{server} {status}: {counted:?}");
            }
            assert!(counted.open_us > 0 && tap.turn(false).unwrap().is_none(), "it is closed");
            assert!(answered("127.0.0.1", b"nothing of that kind").is_some());
        }
    }
}
