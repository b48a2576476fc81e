//! The source "sockets": the connected TCP and unix stream sockets of a namespace.

use std::collections::BTreeMap;
use std::time::Instant;

use chokepoint_model::observation::{NetnsView, Observation, Socket, SocketAddress, TcpState, UnixPeer};
use chokepoint_model::reading::Reading;
use chokepoint_recording::{Entry, Scope};

use super::crowd::{CROWD, CrowdedPorts};
use super::dump::{LEFT_OUT, read};
use super::message::{DiagSocket, parse_socket};
use super::namesakes::Namesakes;
use super::protocol::DiagError;
use super::{inet, sample, unix};
use crate::clock::thread_cpu;
use crate::netlink::wire::messages;
use crate::root::reading_of;
use crate::scope::netns_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};

/// Beyond this many sockets only a count by state is kept: 100,000 take about 10 MB a read.
const SOCKETS_MAX: usize = 100_000;

/// All TCP sockets that neither listen nor are in TIME_WAIT, and connected unix stream sockets. Connections at a crowded port are read less often and are
/// repeated from the last full read in between.
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

fn read_sockets(context: &ReadContext<'_>) -> Items {
    let mut items = read_connected(context);
    if let Some(sockets) = context.netlink {
        sample::learn(sockets, &items);
        sockets.memory::<Namesakes>().borrow().mark(&mut items);
    }
    items
}

fn read_connected(context: &ReadContext<'_>) -> Items {
    let all = || read(context, &[inet::sockets(), unix::sockets()], SOCKETS_MAX);
    let Some(sockets) = context.netlink else { return all() };
    let mut crowd = sockets.memory::<CrowdedPorts>().borrow_mut();
    // The first and the last reading are complete, and so is the one after a failure.
    if context.phase == Phase::Running
        && let Some(ports) = crowd.standing(Instant::now())
    {
        let others = read(context, &[inet::sockets_beside(ports), unix::sockets()], SOCKETS_MAX);
        match crowd.beside(others) {
            Some(items) => return items,
            None => crowd.refuse(),
        }
    }
    let from = thread_cpu();
    let items = all();
    crowd.learn(&items, thread_cpu().saturating_sub(from), Instant::now());
    items
}

/// Parses the sockets of a dump that do not listen.
pub(crate) fn parse_sockets(bytes: &[u8]) -> Result<Vec<Socket>, DiagError> {
    // Of ten thousand sockets most of the time would go into moving them.
    let mut sockets = Vec::with_capacity(messages(bytes).count());
    for message in messages(bytes) {
        let socket = match parse_socket(&message?)? {
            DiagSocket::Inet(socket) if socket.state != TcpState::Listen => Socket {
                address: SocketAddress::Tcp { local: socket.local, remote: socket.remote },
                state: socket.state,
                inode: socket.inode,
                uid: Some(socket.uid),
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                wait: socket.wait,
            },
            DiagSocket::Unix(socket) if !socket.listens && socket.is_stream => Socket {
                address: SocketAddress::Unix { path: socket.path, peer: socket.peer },
                state: TcpState::Established,
                inode: socket.inode,
                uid: None,
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                wait: None,
            },
            // Connections that wait to be accepted: no process holds the accepted end yet, so it has no inode.
            DiagSocket::Unix(listener) if listener.is_stream => {
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

/// Adds the connections at crowded ports to the reading of the same time.
fn put_crowd(observation: &mut Observation, entry: &Entry) {
    let Some(view) = netns_view(observation, entry) else { return };
    match reading_of(&entry.outcome, parse_sockets) {
        Reading::Ok(crowd) => view.sockets.amend(entry.at_us, |sockets| sockets.extend(crowd)),
        lack => view.sockets.push(entry.at_us, lack),
    }
    let Scope::Netns(id) = entry.scope else { return };
    let text = format!(
        "sockets of net:[{id}]: connections at crowded ports were read only every few seconds; in between, the last reading was used"
    );
    if !observation.bounded.contains(&text) {
        observation.bounded.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::listeners::parse_listeners;
    use super::super::protocol::{AF_INET, SOCK_DIAG_BY_FAMILY};
    use super::*;
    use crate::netlink::wire::request;
    use chokepoint_recording::Outcome;
    use proptest::prelude::*;

    #[test]
    fn counts_by_state_are_parsed_or_refused() {
        let counts = parse_left_out(b"1 5\n6 70000\n").unwrap();
        assert_eq!(counts, BTreeMap::from([(TcpState::Established, 5), (TcpState::TimeWait, 70_000)]));
        for bad in ["1", "x 1", "99 1", "1 -1", "1 99999999999999999999999"] {
            assert!(parse_left_out(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    fn established(local: u16) -> Vec<u8> {
        let mut body = vec![AF_INET, TcpState::Established as u8, 0, 0];
        body.extend_from_slice(&local.to_be_bytes());
        body.resize(72, 0);
        request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
    }

    #[test]
    fn a_crowd_completes_the_reading_of_its_time_and_is_reported() {
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
        assert_eq!(observation.bounded.len(), 1, "reported once: {:?}", observation.bounded);
        // A crowd alone is no reading. A crowd that does not parse is a failed one.
        let observation = crate::assemble(&[entry(1, "", Outcome::Failed("no".to_owned(), None)), entry(1, CROWD, crowd())]);
        assert_eq!(observation.netns.values().next().unwrap().sockets.values().count(), 0);
        let observation = crate::assemble(&[entry(1, "", Outcome::Ok(Vec::new())), entry(1, CROWD, Outcome::Ok(vec![1, 2, 3]))]);
        let state = observation.netns.values().next().unwrap().sockets.state();
        assert!(matches!(state, chokepoint_model::series::SeriesState::Failed(..)), "{state:?}");
    }

    #[test]
    fn other_messages_are_refused() {
        let message = request(99, 0, 0, &[2; 80]);
        assert_eq!(parse_sockets(&message), Err(DiagError::Kind(99)));
        let message = request(SOCK_DIAG_BY_FAMILY, 0, 0, &[77; 80]);
        assert_eq!(parse_sockets(&message), Err(DiagError::Family(77)));
        assert_eq!(parse_listeners(b""), Ok(Vec::new()), "no sockets is an answer");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let message = request(SOCK_DIAG_BY_FAMILY, 0, 0, &bytes);
            let _ = parse_sockets(&message);
            let _ = parse_listeners(&message);
            let _ = parse_sockets(&bytes);
            let _ = parse_left_out(&bytes);
        }
    }
}
