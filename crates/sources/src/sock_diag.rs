//! The sources "listeners" and "sockets": every TCP and unix stream socket of a namespace, from sock_diag(7).

pub(crate) mod crowd;
pub(crate) mod inet;
pub(crate) mod ports;
pub(crate) mod requests;
pub(crate) mod sample;
pub(crate) mod tcp;
pub(crate) mod tcp_ends;
pub(crate) mod tcp_peer;
mod time_wait;
mod unix;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

pub(crate) use requests::REQUESTS;
pub(crate) use sample::TCP_INFO;
pub(crate) use time_wait::TIME_WAIT;

use chokepoint_model::observation::{Listener, ListenerAddress, NetnsView, Observation, Socket, SocketAddress, TcpState, UnixPeer};
use chokepoint_model::reading::Reading;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::assemble::netns_view;
use crate::netlink::wire::{Message, WireError, messages};
use crate::netlink::{DUMP_BYTES_MAX, DumpError, Netlink};
use crate::observer::thread_cpu_us;
use crate::root::reading_of;
use crate::table::{Cadence, Phase, ReadContext, Redact, ScopeKind, Source};
use crowd::CROWD;

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `TCPDIAG_GETSOCK` (linux/inet_diag.h): TCP sockets of both families.
pub(crate) const TCPDIAG_GETSOCK: u16 = 18;
pub(crate) const AF_UNIX: u8 = libc::AF_UNIX as u8;
pub(crate) const AF_INET: u8 = libc::AF_INET as u8;
pub(crate) const AF_INET6: u8 = libc::AF_INET6 as u8;
/// Of more sockets than this only a count by state is kept: 100,000 are about 10 MB a read.
const SOCKETS_MAX: usize = 100_000;

/// Listening sockets with the queue of each and the connections that it dropped.
pub(crate) const LISTENERS: Source = Source {
    name: "listeners",
    scope: ScopeKind::Netns,
    cadence: Cadence::Fast,
    needs: None,
    read: read_listeners,
    put: |observation, entry| {
        let Some(view) = netns_view(observation, entry) else { return };
        view.listeners.push(entry.at_us, reading_of(&entry.outcome, parse_listeners));
    },
    redact: Redact::InetDiag,
};

/// For so long no unix listener is looked for in a namespace that had none: most of those made for containers.
const NO_UNIX: Duration = Duration::from_millis(900);

fn read_listeners(context: &ReadContext<'_>) -> Vec<(String, Outcome)> {
    let all = || read(context, &[inet::listeners(), unix::listeners()], usize::MAX);
    let Some(sockets) = context.netlink else { return all() };
    if context.phase == Phase::Running && sockets.no_unix_listener().get().is_some_and(|seen| seen.elapsed() < NO_UNIX) {
        return read(context, &[inet::listeners()], usize::MAX);
    }
    let items = all();
    let is_unix = |message: Result<Message<'_>, WireError>| !message.is_ok_and(|message| message.body.first() != Some(&AF_UNIX));
    let none = matches!(&items[..], [(_, Outcome::Ok(bytes))] if !messages(bytes).any(is_unix));
    sockets.no_unix_listener().set(none.then(Instant::now));
    items
}

/// All other TCP sockets but those in TIME_WAIT, and connected unix stream sockets. Connections at a crowded port are read less often, and
/// stand in between as they were seen last.
pub(crate) const SOCKETS: Source = Source {
    name: "sockets",
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: read_sockets,
    put: |observation, entry| {
        let Some(view) = netns_view(observation, entry) else { return };
        match entry.item.as_str() {
            LEFT_OUT => put_left_out(view, entry),
            CROWD => put_crowd(observation, entry),
            _ => view.sockets.push(entry.at_us, reading_of(&entry.outcome, parse_sockets)),
        }
    },
    redact: Redact::InetDiag,
};

fn read_sockets(context: &ReadContext<'_>) -> Vec<(String, Outcome)> {
    let items = read_connected(context);
    if let Some(sockets) = context.netlink {
        sample::learn(sockets, &items);
    }
    items
}

fn read_connected(context: &ReadContext<'_>) -> Vec<(String, Outcome)> {
    let all = || read(context, &[inet::sockets(), unix::sockets()], SOCKETS_MAX);
    let Some(sockets) = context.netlink else { return all() };
    let mut crowd = sockets.crowd();
    // The first and the last reading are whole, and after a read that failed the next one is.
    if context.phase == Phase::Running
        && let Some(ports) = crowd.standing(Instant::now())
    {
        let others = read(context, &[inet::sockets_beside(ports), unix::sockets()], SOCKETS_MAX);
        match crowd.beside(others) {
            Some(items) => return items,
            None => crowd.refuse(),
        }
    }
    let from_us = thread_cpu_us();
    let items = all();
    let cost = Duration::from_micros(thread_cpu_us().saturating_sub(from_us));
    crowd.learn(&items, cost, Instant::now());
    items
}

/// Item of "sockets" that counts, by state, the sockets beyond the bound: lines of "state-number count".
const LEFT_OUT: &str = "left-out";

/// One dump: a label for its absence, the kind of its request and the request's body.
struct Part {
    label: &'static str,
    kind: u16,
    body: Vec<u8>,
}

/// A dump, and those that give the same together where the kernel does not know the first.
struct Parts {
    first: Part,
    otherwise: Vec<Part>,
}

/// What was read so far.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    kept: usize,
    left_out: BTreeMap<u8, u64>,
}

impl Gathered {
    fn add(&mut self, message: &[u8], sockets_max: usize) -> Result<(), DumpError> {
        if self.kept < sockets_max && self.bytes.len() + message.len() <= DUMP_BYTES_MAX {
            self.kept += 1;
            self.bytes.extend_from_slice(message);
        } else if sockets_max == usize::MAX {
            return Err(DumpError::TooLong);
        } else {
            *self.left_out.entry(message.get(STATE_AT).copied().unwrap_or(0)).or_default() += 1;
        }
        Ok(())
    }

    /// Adds one dump, or nothing of it. sock_diag never says that its list changed: a socket that moved meanwhile may be missing or be there
    /// twice, which counts bear.
    fn read(&mut self, netlink: &Netlink, part: &Part, sockets_max: usize) -> Result<(), DumpError> {
        let before = (self.bytes.len(), self.kept, self.left_out.clone());
        let result = netlink.dump_into(part.kind, &part.body, &mut |message| self.add(message, sockets_max));
        if result.is_err() {
            self.bytes.truncate(before.0);
            (self.kept, self.left_out) = (before.1, before.2);
        }
        result.map(|_| ())
    }
}

/// Reads the dumps into one item. One that fails is told as an item of its own, so that the others still count.
fn read(context: &ReadContext<'_>, dumps: &[Parts], sockets_max: usize) -> Vec<(String, Outcome)> {
    let Some(sockets) = context.netlink else {
        return vec![(String::new(), Outcome::Failed("no netlink socket in this namespace".to_owned(), None))];
    };
    let mut gathered = Gathered::default();
    let (mut failures, mut any) = (Vec::new(), false);
    for parts in dumps {
        let mut fail = |part: &Part, error: &DumpError| {
            let missing = format!("this kernel cannot list {} sockets", part.label);
            failures.push((part.label.to_owned(), error.outcome(&missing, None)));
        };
        match gathered.read(sockets.diag(), &parts.first, sockets_max) {
            Ok(()) => any = true,
            Err(error) if parts.otherwise.is_empty() => fail(&parts.first, &error),
            Err(_) => {
                for part in &parts.otherwise {
                    match gathered.read(sockets.diag(), part, sockets_max) {
                        Ok(()) => any = true,
                        Err(error) => fail(part, &error),
                    }
                }
            }
        }
    }
    if !any {
        return failures.into_iter().take(1).map(|(_, outcome)| (String::new(), outcome)).collect();
    }
    let mut items = vec![(String::new(), Outcome::Ok(gathered.bytes))];
    items.extend(failures);
    if !gathered.left_out.is_empty() {
        let text: String = gathered.left_out.iter().map(|(state, count)| format!("{state} {count}\n")).collect();
        items.push((LEFT_OUT.to_owned(), Outcome::Ok(text.into_bytes())));
    }
    items
}

/// Where the state is in a message: second byte of `struct inet_diag_msg`, third of `struct unix_diag_msg`, whose sockets are all connected;
/// its second byte is the type, 1 for a stream, which is also the number of the connected state.
const STATE_AT: usize = crate::netlink::wire::HEADER_BYTES + 1;

/// What a dump of sockets cannot be understood for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DiagError {
    /// The message itself is broken.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message of another kind.
    #[error("netlink message of kind {0} among sockets")]
    Kind(u16),
    /// Another address family.
    #[error("socket of address family {0}")]
    Family(u8),
    /// A TCP state that is not known.
    #[error("socket in unknown state {0}")]
    State(u8),
    /// A line of the counts is no pair of numbers.
    #[error("'{0}' is no count of sockets by state")]
    Count(String),
}

/// One socket of either family.
enum Any {
    Inet(inet::InetSocket),
    Unix(unix::UnixSocket),
}

fn parse_one(message: &Message<'_>) -> Result<Any, DiagError> {
    if !matches!(message.kind, SOCK_DIAG_BY_FAMILY | TCPDIAG_GETSOCK) {
        return Err(DiagError::Kind(message.kind));
    }
    match message.body.first() {
        Some(&AF_UNIX) => unix::parse(message).map(Any::Unix),
        Some(&(AF_INET | AF_INET6)) => inet::parse(message).map(Any::Inet),
        family => Err(DiagError::Family(family.copied().unwrap_or(0))),
    }
}

/// Listening sockets out of a dump. A listener that the kernel gave twice, because its list changed meanwhile, counts once.
pub(crate) fn parse_listeners(bytes: &[u8]) -> Result<Vec<Listener>, DiagError> {
    let mut listeners = Vec::new();
    let mut seen = BTreeSet::new();
    for message in messages(bytes) {
        let listener = match parse_one(&message?)? {
            Any::Inet(socket) if socket.state == TcpState::Listen => Listener {
                address: ListenerAddress::Tcp(socket.local.0, socket.local.1),
                inode: socket.inode,
                accept_queue: socket.receive_queue,
                accept_queue_limit: socket.send_queue,
                drops: socket.drops,
                v6_only: socket.v6_only,
            },
            Any::Unix(socket) if socket.listens && socket.is_stream => Listener {
                // A listener always has a name: an unnamed one could not be connected to.
                address: ListenerAddress::Unix(socket.path.unwrap_or_default()),
                inode: socket.inode,
                accept_queue: socket.receive_queue,
                accept_queue_limit: socket.send_queue,
                drops: None,
                v6_only: false,
            },
            _ => continue,
        };
        if seen.insert((listener.inode, listener.address.clone())) {
            listeners.push(listener);
        }
    }
    Ok(listeners)
}

/// Sockets that do not listen out of a dump.
pub(crate) fn parse_sockets(bytes: &[u8]) -> Result<Vec<Socket>, DiagError> {
    let mut sockets = Vec::new();
    for message in messages(bytes) {
        let socket = match parse_one(&message?)? {
            Any::Inet(socket) if socket.state != TcpState::Listen => Socket {
                address: SocketAddress::Tcp { local: socket.local, remote: socket.remote },
                state: socket.state,
                inode: socket.inode,
                uid: Some(socket.uid),
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                wait: socket.wait,
            },
            Any::Unix(socket) if !socket.listens && socket.is_stream => Socket {
                address: SocketAddress::Unix { path: socket.path, peer: socket.peer },
                state: TcpState::Established,
                inode: socket.inode,
                uid: None,
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                wait: None,
            },
            // Those that wait to be accepted: no process holds their accepted end yet, so it has no inode.
            Any::Unix(listener) if listener.is_stream => {
                let path = listener.path;
                sockets.extend(listener.waiting.into_iter().map(|inode| Socket {
                    address: SocketAddress::Unix { path: path.clone(), peer: UnixPeer::Inode(inode) },
                    state: TcpState::Established,
                    inode: 0,
                    uid: None,
                    receive_queue: 0,
                    send_queue: 0,
                    wait: None,
                }));
                continue;
            }
            _ => continue,
        };
        sockets.push(socket);
    }
    Ok(sockets)
}

fn parse_left_out(bytes: &[u8]) -> Result<BTreeMap<TcpState, u64>, DiagError> {
    let text = String::from_utf8_lossy(bytes);
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let wrong = || DiagError::Count(line.chars().take(60).collect());
        let (state, count) = line.split_once(' ').ok_or_else(wrong)?;
        let state = state.parse().ok().and_then(inet::state_of).ok_or_else(wrong)?;
        let count: u64 = count.parse().map_err(|_| wrong())?;
        counts.insert(state, count);
    }
    Ok(counts)
}

fn put_left_out(view: &mut NetnsView, entry: &Entry) {
    view.sockets_left_out.push(entry.at_us, reading_of(&entry.outcome, parse_left_out));
}

/// Completes the reading of the same time.
fn put_crowd(observation: &mut Observation, entry: &Entry) {
    let Some(view) = netns_view(observation, entry) else { return };
    match reading_of(&entry.outcome, parse_sockets) {
        Reading::Ok(crowd) => view.sockets.amend(entry.at_us, |sockets| sockets.extend(crowd)),
        lack => view.sockets.push(entry.at_us, lack),
    }
    let Scope::Netns(id) = entry.scope else { return };
    let text = format!(
        "sockets of net:[{id}]: connections at crowded ports were read every few seconds and stand in between as they were seen last"
    );
    if !observation.bounded.contains(&text) {
        observation.bounded.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_by_state_parse_and_refuse() {
        let counts = parse_left_out(b"1 5\n6 70000\n").unwrap();
        assert_eq!(counts, BTreeMap::from([(TcpState::Established, 5), (TcpState::TimeWait, 70_000)]));
        for bad in ["1", "x 1", "99 1", "1 -1", "1 99999999999999999999999"] {
            assert!(parse_left_out(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn beyond_the_bound_sockets_are_counted_by_state() {
        let message = |state| crate::netlink::wire::request(SOCK_DIAG_BY_FAMILY, 0, 0, &[AF_INET, state, 0, 0]);
        let mut gathered = Gathered::default();
        for state in [1, 1, 6, 6, 6, 1] {
            gathered.add(&message(state), 3).unwrap();
        }
        assert_eq!((gathered.kept, gathered.left_out), (3, BTreeMap::from([(1, 1), (6, 2)])));
        assert_eq!(messages(&gathered.bytes).count(), 3);
    }

    fn established(local: u16) -> Vec<u8> {
        let mut body = vec![AF_INET, TcpState::Established as u8, 0, 0];
        body.extend_from_slice(&local.to_be_bytes());
        body.resize(72, 0);
        crate::netlink::wire::request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
    }

    #[test]
    fn a_crowd_completes_the_reading_of_its_time_and_is_told() {
        let entry = |at_us, item: &str, outcome| Entry {
            at_us,
            source: SOCKETS.name.to_owned(),
            scope: Scope::Netns(7),
            item: item.to_owned(),
            outcome,
        };
        let crowd = || Outcome::Ok([established(80), established(80)].concat());
        let mut entries = vec![entry(1, "", Outcome::Ok([established(80), established(9000)].concat()))];
        for at_us in [2, 3] {
            entries.extend([entry(at_us, "", Outcome::Ok(established(9000))), entry(at_us, CROWD, crowd())]);
        }
        let observation = crate::assemble(&entries);
        let view = observation.netns.values().next().unwrap();
        assert_eq!(view.sockets.values().map(Vec::len).collect::<Vec<_>>(), [2, 3, 3]);
        assert_eq!(observation.bounded.len(), 1, "told once: {:?}", observation.bounded);
        // Alone it is no reading, and one that does not parse is a failed one.
        let observation = crate::assemble(&[entry(1, "", Outcome::Failed("no".to_owned(), None)), entry(1, CROWD, crowd())]);
        assert_eq!(observation.netns.values().next().unwrap().sockets.values().count(), 0);
        let observation = crate::assemble(&[entry(1, "", Outcome::Ok(Vec::new())), entry(1, CROWD, Outcome::Ok(vec![1, 2, 3]))]);
        let state = observation.netns.values().next().unwrap().sockets.state();
        assert!(matches!(state, chokepoint_model::series::SeriesState::Failed(..)), "{state:?}");
    }

    #[test]
    fn other_messages_are_refused() {
        let message = crate::netlink::wire::request(99, 0, 0, &[2; 80]);
        assert_eq!(parse_sockets(&message), Err(DiagError::Kind(99)));
        let message = crate::netlink::wire::request(SOCK_DIAG_BY_FAMILY, 0, 0, &[77; 80]);
        assert_eq!(parse_sockets(&message), Err(DiagError::Family(77)));
        assert_eq!(parse_listeners(b""), Ok(Vec::new()), "no sockets is an answer");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let message = crate::netlink::wire::request(SOCK_DIAG_BY_FAMILY, 0, 0, &bytes);
            let _ = parse_sockets(&message);
            let _ = parse_listeners(&message);
            let _ = parse_sockets(&bytes);
            let _ = parse_left_out(&bytes);
        }
    }
}
