//! The source "tcp_info": struct tcp_info of a few connections of a namespace, each requested individually. All connections would cost more than all other
//! readings together.

use std::collections::{BTreeMap, HashSet};

use chokepoint_model::observation::{TcpSample, TcpState};
use chokepoint_recording::Outcome;

use super::crowd::CROWD;
use super::inet;
use super::message::{DiagSocket, parse_socket};
use super::protocol::{AF_INET, AF_INET6, DiagError, SOCK_DIAG_BY_FAMILY};
use super::tcp::{self, Listening};
use crate::netlink::wire::{Message, messages, u32_at};
use crate::netlink::{DumpError, Sockets};
use crate::scope::put_netns;
use crate::table::{Cadence, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::tcp_info::tcp_info_field;

/// Connections in one reading: 3 to 5 us each.
const SAMPLED_MAX: usize = 32;
/// Ports that form groups of their own in the choice of connections.
const GROUPS_MAX: usize = 32;

/// A sample of the connections that the last reading of "sockets" listed.
pub(crate) const TCP_INFO: Source = Source {
    name: "tcp_info",
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: |context| only_item(read(context)),
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.tcp_samples, parse),
    redact: Redact::InetDiag,
};

/// The identity of one socket: its family and `struct inet_diag_sockid` with its unique cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SocketId {
    family: u8,
    id: [u8; inet::ID_BYTES],
}

impl SocketId {
    fn of(message: &Message<'_>) -> Option<Self> {
        let id = message.body.get(inet::ID_AT..)?.first_chunk()?;
        Some(Self { family: *message.body.first()?, id: *id })
    }
}

/// The connections to read until "sockets" is read again.
#[derive(Debug, Default)]
pub(crate) struct SampledConnections {
    chosen: Vec<SocketId>,
}

/// Index of the idle connections that were not in the sample before.
const IDLE: usize = 3;

/// Connections at one port in order of preference: sending before idle ones, and among each those that were in the sample before.
#[derive(Default)]
struct Group {
    kinds: [Vec<SocketId>; 4],
}

impl SampledConnections {
    /// Chooses connections from a reading of "sockets", evenly from all ports; ports at which this namespace listens come first.
    pub(super) fn choose(&mut self, items: &[(String, Outcome)], listening: &Listening) {
        let before: Vec<SocketId> = self.chosen.drain(..).collect();
        let followed: HashSet<SocketId> = before.iter().copied().collect();
        // Accepted connections come before dialled ones.
        let mut groups: BTreeMap<(bool, u16), Group> = BTreeMap::new();
        let dumps = items.iter().filter(|(item, _)| item.is_empty());
        let all = dumps.filter_map(|(_, outcome)| if let Outcome::Ok(bytes) = outcome { Some(bytes) } else { None });
        for message in all.flat_map(|bytes| messages(bytes)).map_while(Result::ok) {
            let Some((local, remote, send_queue)) = may_send(&message) else { continue };
            let is_dialled = !listening.has_port(local);
            let key = (is_dialled, if is_dialled { remote } else { local });
            if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
                continue;
            }
            let group = groups.entry(key).or_default();
            // Most of thousands of idle connections are skipped.
            if send_queue == 0 && group.kinds[IDLE].len() >= SAMPLED_MAX {
                continue;
            }
            let Some(id) = SocketId::of(&message) else { continue };
            let of_kind = &mut group.kinds[usize::from(!followed.contains(&id)) + 2 * usize::from(send_queue == 0)];
            if of_kind.len() < SAMPLED_MAX {
                of_kind.push(id);
            }
        }
        let mut turns: Vec<_> = groups.into_values().map(|group| group.kinds.concat().into_iter()).collect();
        while self.chosen.len() < SAMPLED_MAX && !turns.is_empty() {
            let left = SAMPLED_MAX - self.chosen.len();
            self.chosen.extend(turns.iter_mut().filter_map(Iterator::next).take(left));
            turns.retain(|group| group.len() > 0);
        }
        // Connections at crowded ports that were not read this time stay in the sample.
        if items.iter().any(|(item, _)| item == CROWD) {
            let chosen: HashSet<SocketId> = self.chosen.iter().copied().collect();
            self.chosen.extend(before.into_iter().filter(|id| !chosen.contains(id)));
            self.chosen.truncate(SAMPLED_MAX);
        }
    }
}

/// Chooses a new sample after a reading of "sockets". If the listeners cannot be read, every connection counts as dialled; "listeners" reports why.
pub(super) fn learn(sockets: &Sockets, items: &[(String, Outcome)]) {
    let listening = tcp::listening(sockets).unwrap_or_default();
    sockets.memory::<SampledConnections>().borrow_mut().choose(items, &listening);
}

/// Local port, remote port and send queue in bytes of a connection whose state allows this end to send.
fn may_send(message: &Message<'_>) -> Option<(u16, u16, u32)> {
    const STATES: [TcpState; 5] = [TcpState::Established, TcpState::CloseWait, TcpState::FinWait1, TcpState::LastAck, TcpState::Closing];
    // `struct inet_diag_msg`: family, state, timer, retransmits, then the ports in network order.
    let [family, state, _, _, a, b, c, d] = *message.body.first_chunk()?;
    let fits = matches!(family, AF_INET | AF_INET6) && STATES.iter().any(|fit| *fit as u8 == state);
    let send_queue = u32_at(message.body, inet::SEND_QUEUE_AT)?;
    fits.then_some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), send_queue))
}

fn read(context: &ReadContext<'_>) -> Outcome {
    let sockets = match context.sockets() {
        Ok(sockets) => sockets,
        Err(lack) => return lack,
    };
    let mut bytes = Vec::new();
    for socket in &sockets.memory::<SampledConnections>().borrow().chosen {
        match sockets.diag().one(SOCK_DIAG_BY_FAMILY, &inet::this_one_with_info(socket.family, &socket.id)) {
            Ok(message) => bytes.extend_from_slice(&message),
            // The connection is closed (ENOENT), or another one has its addresses (ESTALE).
            Err(DumpError::System(error)) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) => {}
            Err(error) => return error.outcome("this kernel cannot report a single TCP socket", None),
        }
    }
    Outcome::Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<Vec<TcpSample>, DiagError> {
    let mut samples = Vec::new();
    for message in messages(bytes) {
        let message = message?;
        if let DiagSocket::Inet(socket) = parse_socket(&message)?
            && let Some(id) = SocketId::of(&message)
        {
            samples.extend(sample(&socket, &inet::measured(&message)?, &id));
        }
    }
    Ok(samples)
}

/// Nothing for a socket without struct tcp_info, such as one that was just closed.
fn sample(socket: &inet::InetSocket, measured: &inet::SocketInfo<'_>, id: &SocketId) -> Option<TcpSample> {
    let cookie = u64::from_ne_bytes(*id.id.last_chunk()?);
    Some(TcpSample {
        local: socket.local,
        remote: socket.remote,
        cookie,
        state: socket.state,
        send_queue: socket.send_queue,
        send_buffer: measured.send_buffer.map(|(limit, _)| limit),
        loss_state: tcp_info_field!(measured.info, "ca_state")?,
        mss: tcp_info_field!(measured.info, "snd_mss")?,
        unacked: tcp_info_field!(measured.info, "unacked")?,
        cwnd: tcp_info_field!(measured.info, "snd_cwnd")?,
        retransmitted: tcp_info_field!(measured.info, "total_retrans")?,
        last_data_sent_ms: tcp_info_field!(measured.info, "last_data_sent")?,
        rtt_us: tcp_info_field!(measured.info, "rtt")?,
        min_rtt_us: tcp_info_field!(measured.info, "min_rtt"),
        unsent: tcp_info_field!(measured.info, "notsent_bytes"),
        delivered: tcp_info_field!(measured.info, "delivered"),
        busy_us: tcp_info_field!(measured.info, "busy_time"),
        rwnd_limited_us: tcp_info_field!(measured.info, "rwnd_limited"),
        sndbuf_limited_us: tcp_info_field!(measured.info, "sndbuf_limited"),
        peer_window: tcp_info_field!(measured.info, "snd_wnd"),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;
    use crate::netlink::wire::request;

    fn message(state: TcpState, local: u16, remote: u16, send_queue: u32) -> Vec<u8> {
        let mut body = vec![AF_INET, state as u8, 0, 0];
        body.extend_from_slice(&local.to_be_bytes());
        body.extend_from_slice(&remote.to_be_bytes());
        body.resize(inet::SEND_QUEUE_AT, 0);
        body.extend_from_slice(&send_queue.to_ne_bytes());
        body.resize(72, 0);
        request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
    }

    fn ports(sample: &SampledConnections) -> Vec<(u16, u16)> {
        let port = |id: &SocketId, at: usize| u16::from_be_bytes([id.id[at], id.id[at + 1]]);
        sample.chosen.iter().map(|id| (port(id, 0), port(id, 2))).collect()
    }

    fn choose(sample: &mut SampledConnections, bytes: Vec<u8>) -> Vec<(u16, u16)> {
        sample.choose(&[(String::new(), Outcome::Ok(bytes))], &Listening::at_ports([80]));
        ports(sample)
    }

    #[test]
    fn a_few_connections_of_each_port_are_chosen_sending_ones_first() {
        let mut sample = SampledConnections::default();
        let idle = (0..500).flat_map(|n| message(TcpState::Established, 80, 10_000 + n, 0));
        let sending = (0..10).flat_map(|n| message(TcpState::FinWait1, 80, 20_000 + n, 9));
        let dialled = (0..5).flat_map(|n| message(TcpState::Established, 30_000 + n, 9000, 0));
        let others = message(TcpState::SynSent, 30_009, 9000, 1);
        let bytes: Vec<u8> = idle.chain(sending).chain(dialled).chain(others).collect();
        let chosen = choose(&mut sample, bytes.clone());
        assert_eq!(chosen.len(), SAMPLED_MAX);
        assert_eq!(chosen[..2], [(80, 20_000), (30_000, 9000)], "in turn, ports that listen here first");
        assert_eq!(chosen.iter().filter(|(local, remote)| *local == 80 && *remote >= 20_000).count(), 10);
        assert_eq!(chosen.iter().filter(|(_, remote)| *remote == 9000).count(), 5);
        assert_eq!(choose(&mut sample, bytes), chosen, "connections that still exist stay in the sample");
        let crowd = [(String::new(), Outcome::Ok(Vec::new())), (CROWD.to_owned(), Outcome::Ok(b"from the last full read".to_vec()))];
        sample.choose(&crowd, &Listening::at_ports([80]));
        assert_eq!(ports(&sample), chosen, "so do connections at a port that was not read");
        assert_eq!(choose(&mut sample, Vec::new()), [], "closed connections leave it");
    }

    #[test]
    fn both_ends_of_a_connection_are_read_until_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let sockets = Sockets::open().unwrap();
        let mut dumped = Vec::new();
        let parts = inet::sockets();
        sockets
            .diag()
            .dump_into(parts.first.kind, &parts.first.body, &mut |message| {
                dumped.extend_from_slice(message);
                Ok(())
            })
            .unwrap();
        let (here, there) = (listener.local_addr().unwrap().port(), client.local_addr().unwrap().port());
        // Other programs of this host have connections too. Only these two may be chosen.
        let own: Vec<u8> = messages(&dumped)
            .map(Result::unwrap)
            .filter(|message| may_send(message).is_some_and(|(a, b, _)| [(here, there), (there, here)].contains(&(a, b))))
            .flat_map(|message| message.whole.to_vec())
            .collect();
        learn(&sockets, &[(String::new(), Outcome::Ok(own))]);
        let asked = || {
            let asked = sockets
                .memory::<SampledConnections>()
                .borrow()
                .chosen
                .iter()
                .map(|id| sockets.diag().one(SOCK_DIAG_BY_FAMILY, &inet::this_one_with_info(id.family, &id.id)))
                .collect::<Vec<_>>();
            asked.into_iter().filter_map(Result::ok).flatten().collect::<Vec<u8>>()
        };
        let samples = parse(&asked()).unwrap();
        assert_eq!(samples.iter().map(|sample| sample.local.1).collect::<Vec<_>>(), [here, there]);
        assert!(samples.iter().all(|sample| sample.cwnd > 0 && sample.mss > 500 && sample.send_buffer.is_some_and(|bytes| bytes > 0)));
        drop((client, server));
        assert!(parse(&asked()).unwrap().iter().all(|sample| sample.state != TcpState::Established));
    }

    proptest! {
        #[test]
        fn any_bytes_are_chosen_from_and_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut sample = SampledConnections::default();
            sample.choose(&[(String::new(), Outcome::Ok(bytes.clone()))], &Listening::at_ports([80]));
            drop(parse(&bytes));
            prop_assert!(sample.chosen.len() <= SAMPLED_MAX);
        }
    }
}
