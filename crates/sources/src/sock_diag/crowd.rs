//! Crowded ports: reading all their connections every time would cost more than all other readings together. Between full reads the kernel is asked for all
//! other connections, and these are repeated from the last full read.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chokepoint_model::observation::TcpState;
use chokepoint_recording::Outcome;

use super::protocol::{AF_INET, AF_INET6};
use crate::netlink::wire::{Message, messages};

/// Item of "sockets" with connections repeated from the last full read; the others are in the item without a name.
pub(crate) const CROWD: &str = "crowd";

/// Connections that make a port crowded. Fewer cost less than 0.1 % of a core once a second.
const CONNECTIONS_MIN: usize = 1_000;
/// Most crowded ports. Connections at further ones are read every time.
const PORTS_MAX: usize = 4;
/// One in `STRIDE` connections is looked at to find the crowded ports.
const STRIDE: usize = 16;
/// Full reads may use `1 / WHOLE_SHARE` of a core.
const WHOLE_SHARE: u32 = 1_500;

/// A port of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CrowdedPort {
    /// Of the end in this namespace: a listener's port.
    Local(u16),
    /// Of the other end: the port of a listener that is called from here.
    Remote(u16),
}

/// The crowded ports of a namespace and their connections.
#[derive(Debug, Default)]
pub(crate) struct CrowdedPorts {
    ports: Vec<CrowdedPort>,
    /// The connections' messages, at most one dump.
    messages: Vec<u8>,
    /// Until then they are repeated.
    until: Option<Instant>,
    /// This kernel cannot exclude ports.
    is_refused: bool,
}

impl CrowdedPorts {
    /// The ports to exclude while their connections are repeated.
    pub(super) fn standing(&self, now: Instant) -> Option<&[CrowdedPort]> {
        (!self.is_refused && self.until.is_some_and(|until| now < until)).then_some(&self.ports)
    }

    /// The items of a reading without the crowded ports, with the crowd added; nothing if a part of the reading failed.
    pub(super) fn beside(&self, mut items: Vec<(String, Outcome)>) -> Option<Vec<(String, Outcome)>> {
        let is_whole = items.iter().all(|(item, outcome)| item.is_empty() && matches!(outcome, Outcome::Ok(_)));
        items.push((CROWD.to_owned(), Outcome::Ok(self.messages.clone())));
        is_whole.then_some(items)
    }

    /// From now on all connections are read every time.
    pub(super) fn refuse(&mut self) {
        *self = Self { is_refused: true, ..Self::default() };
    }

    /// Finds the crowded ports in a full reading with this CPU time. After an incomplete or failed reading there are none.
    pub(super) fn learn(&mut self, items: &[(String, Outcome)], cost: Duration, now: Instant) {
        *self = Self { is_refused: self.is_refused, ..Self::default() };
        let [(_, Outcome::Ok(bytes))] = items else { return };
        self.ports = crowded(bytes);
        if self.is_refused || self.ports.is_empty() {
            return;
        }
        let held = messages(bytes).map_while(Result::ok).filter(|message| self.holds(message));
        let mut kept = Vec::with_capacity(bytes.len());
        held.for_each(|message| kept.extend_from_slice(message.whole));
        self.messages = kept;
        self.until = now.checked_add(cost * WHOLE_SHARE);
    }

    fn holds(&self, message: &Message<'_>) -> bool {
        ends(message).is_some_and(|ends| self.ports.iter().any(|port| ends.contains(port)))
    }
}

/// The two ports of a TCP connection; nothing for other messages and for handshakes, which are read every time.
fn ends(message: &Message<'_>) -> Option<[CrowdedPort; 2]> {
    // `struct inet_diag_msg`: family, state, timer, retransmits, then the ports in network order.
    let [family, state, _, _, a, b, c, d] = *message.body.first_chunk()?;
    let is_handshake = state == TcpState::SynRecv as u8 || state == TcpState::NewSynRecv as u8;
    let is_tcp = matches!(family, AF_INET | AF_INET6);
    (is_tcp && !is_handshake).then_some([CrowdedPort::Local(u16::from_be_bytes([a, b])), CrowdedPort::Remote(u16::from_be_bytes([c, d]))])
}

/// The crowded ports, the fullest first.
fn crowded(bytes: &[u8]) -> Vec<CrowdedPort> {
    let mut counts: HashMap<CrowdedPort, usize> = HashMap::new();
    for message in messages(bytes).map_while(Result::ok).step_by(STRIDE) {
        for port in ends(&message).into_iter().flatten() {
            *counts.entry(port).or_default() += 1;
        }
    }
    let mut ports: Vec<(CrowdedPort, usize)> = counts.into_iter().filter(|(_, count)| count * STRIDE >= CONNECTIONS_MIN).collect();
    ports.sort_by_key(|(port, count)| (std::cmp::Reverse(*count), *port));
    ports.into_iter().take(PORTS_MAX).map(|(port, _)| port).collect()
}

#[cfg(test)]
mod tests {
    use super::super::protocol::SOCK_DIAG_BY_FAMILY;
    use super::*;
    use crate::netlink::wire::request;
    use crate::table::{Items, only_item};
    use proptest::prelude::*;

    fn message(family: u8, state: TcpState, local: u16, remote: u16) -> Vec<u8> {
        let mut body = vec![family, state as u8, 0, 0];
        body.extend_from_slice(&local.to_be_bytes());
        body.extend_from_slice(&remote.to_be_bytes());
        body.resize(72, 0);
        request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
    }

    /// Clients of port 80 alternating between both families, a few of another port, and a handshake and a closing connection at port 80.
    fn dump(clients: u16) -> Vec<u8> {
        let client = |n: u16| message(if n.is_multiple_of(2) { AF_INET } else { AF_INET6 }, TcpState::Established, 80, 10_000 + n);
        let mut bytes: Vec<u8> = (0..clients).flat_map(client).collect();
        bytes.extend((0..20).flat_map(|n| message(AF_INET, TcpState::Established, 20_000 + n, 9000)));
        bytes.extend(message(AF_INET, TcpState::NewSynRecv, 80, 5));
        bytes.extend(message(AF_INET6, TcpState::CloseWait, 80, 6));
        bytes
    }

    fn items(bytes: Vec<u8>) -> Items {
        only_item(Outcome::Ok(bytes))
    }

    fn learned(items: &[(String, Outcome)]) -> (CrowdedPorts, Instant) {
        let (mut crowd, now) = (CrowdedPorts::default(), Instant::now());
        crowd.learn(items, Duration::from_millis(5), now);
        (crowd, now)
    }

    #[test]
    fn a_crowd_is_repeated_for_a_time_in_proportion_to_its_cost() {
        let (crowd, now) = learned(&items(dump(3000)));
        assert_eq!(crowd.standing(now), Some(&[CrowdedPort::Local(80)][..]));
        assert_eq!(crowd.standing(now + Duration::from_millis(7_499)), Some(&[CrowdedPort::Local(80)][..]));
        assert_eq!(crowd.standing(now + Duration::from_millis(7_500)), None, "5 ms may be spent every 7.5 s");
        let given = crowd.beside(items(b"others".to_vec())).unwrap();
        assert_eq!(given[0], (String::new(), Outcome::Ok(b"others".to_vec())));
        let (CROWD, Outcome::Ok(bytes)) = (given[1].0.as_str(), &given[1].1) else { panic!("{given:?}") };
        assert_eq!(messages(bytes).count(), 3001, "with the closing one, without the handshake and without connections to another port");
    }

    #[test]
    fn many_outgoing_connections_are_a_crowd_too() {
        let calls: Vec<u8> = (0..2000).flat_map(|n| message(AF_INET, TcpState::Established, 10_000 + n, 5432)).collect();
        let (crowd, now) = learned(&items(calls));
        assert_eq!(crowd.standing(now), Some(&[CrowdedPort::Remote(5432)][..]));
    }

    #[test]
    fn few_connections_and_incomplete_readings_make_no_crowd() {
        let none = |items: &[(String, Outcome)]| {
            let (crowd, now) = learned(items);
            assert_eq!(crowd.standing(now), None, "{}", items.len());
        };
        none(&items(dump(500)));
        none(&items(Vec::new()));
        none(&[(String::new(), Outcome::Failed("no".to_owned(), None))]);
        let mut bounded = items(dump(3000));
        bounded.push(("left-out".to_owned(), Outcome::Ok(b"1 5\n".to_vec())));
        none(&bounded);
        let spread: Vec<u8> = (0..3000).flat_map(|n| message(AF_INET, TcpState::Established, 10_000 + n, 20_000 + n)).collect();
        none(&items(spread));
    }

    #[test]
    fn a_kernel_that_cannot_exclude_ports_is_asked_for_all() {
        let (mut crowd, now) = learned(&items(dump(3000)));
        let failed = ("TCP".to_owned(), Outcome::Failed("Invalid argument".to_owned(), None));
        assert_eq!(crowd.beside(vec![(String::new(), Outcome::Ok(Vec::new())), failed]), None);
        crowd.refuse();
        crowd.learn(&items(dump(3000)), Duration::from_millis(5), now);
        assert_eq!(crowd.standing(now), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_learned_from(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let (crowd, now) = learned(&items(bytes));
            prop_assert!(crowd.standing(now).is_none());
        }
    }
}
