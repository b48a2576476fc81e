//! Calls of tiers to other servers: the connections from a tier to one address, and how many of them wait for an answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::harm::NOISE_SHARE;
use crate::facts::path::Endpoint;
use crate::facts::pool::{BUSY_SHARE, STEADY_SHARE};
use crate::observation::{ListenerAddress, NetnsId, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};

use super::connection_state::{ConnectionContext, ConnectionState, Said, connection_state};
use super::connections::{Pair, called, ends, pairs, tier_of};
use super::rhythm::Rhythm;

/// Fewest samples in which the same number in use is a limit: of two numbers that are as likely, twelve samples have three quarters or more of the higher one once in 14 times, and
/// never exceed it.
pub(crate) const SAMPLES_MIN: usize = 12;

/// The connections of one tier to one address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calls {
    /// Index of the tier that made them.
    pub(crate) tier: usize,
    /// The address.
    pub(crate) remote: Endpoint,
    /// Index of the tier that answers there, if it is on the path.
    pub(crate) to: Option<usize>,
    /// For each sample of the namespace: its time, the number of connections, and the number that wait for an answer.
    samples: Vec<(u64, f64, f64)>,
    /// Segments received in answers.
    pub(crate) answered: u64,
    /// Mean number of those that are being established: their SYN has no answer.
    pub(crate) connecting: f64,
    /// Connections that were seen so, and those that were seen to be established.
    pub(crate) tried: usize,
    pub(crate) established: usize,
}

impl Calls {
    /// Mean number of connections that wait for an answer in a time span (end excluded).
    pub(crate) fn in_use(&self, (from_us, to_us): (u64, u64)) -> f64 {
        let inside = self.samples.iter().filter(|(at_us, ..)| (from_us..to_us).contains(at_us));
        let (sum, count) = inside.fold((0.0, 0.0), |(sum, count), (_, _, used)| (sum + used, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The time of each sample of their namespace, and how many waited for an answer then.
    pub(crate) fn used_at(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.samples.iter().map(|(at_us, _, used)| (*at_us, *used))
    }

    /// True if it was seen that no more wait for an answer at once than this number, and hardly fewer, in enough samples. A sample takes a moment: where a request ends while it is taken and
    /// another one gets its place, both are in it.
    pub(crate) fn keep_at(&self, number: f64) -> bool {
        let above = |most: f64| self.samples.iter().filter(|(_, _, used)| used.round() > most).count() as f64;
        let few = (1.0 - STEADY_SHARE) * self.samples.len() as f64 / 2.0;
        let mean = self.in_use((0, u64::MAX));
        let is_kept = above(number) <= few || above(number + 1.0) <= few && mean <= (1.0 + NOISE_SHARE) * number;
        self.samples.len() >= SAMPLES_MIN && is_kept && mean >= BUSY_SHARE * number
    }

    /// The number of connections that is not exceeded most of the time: idle ones from before may take a while to close.
    pub(crate) fn usual(&self) -> f64 {
        let mut numbers: Vec<f64> = self.samples.iter().map(|(_, number, _)| *number).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.get((STEADY_SHARE * numbers.len() as f64) as usize).copied().unwrap_or(0.0)
    }

    /// The most of them that wait for an answer at once, if there are more, and most samples have just as many: whoever makes them waits for one of these places, as with a limit of
    /// requests at once. Their number would vary otherwise, and exceed what is usual.
    pub(crate) fn at_once(&self) -> Option<f64> {
        let most = self.samples.iter().map(|(_, _, used)| used.round()).fold(0.0, f64::max);
        let are_there = self.samples.iter().filter(|(_, _, used)| used.round() >= most).count();
        let has_more = self.samples.iter().filter(|(_, number, _)| number.round() > most).count();
        let all = self.samples.len() as f64;
        let is_steady =
            self.samples.len() >= SAMPLES_MIN && are_there as f64 >= STEADY_SHARE * all && has_more as f64 >= STEADY_SHARE * all;
        // A single one may carry the requests of all.
        (is_steady && most >= 2.0).then_some(most)
    }

    /// The connections that are all in use, or how many are at once at most.
    pub(crate) fn limit(&self) -> Option<f64> {
        if self.are_all_in_use() { Some(self.usual()) } else { self.at_once() }
    }

    /// True if all of them wait for an answer all the time, and none comes: what serves their requests serves nothing else meanwhile. They are the same all the time: of those that take
    /// the place of others, each may have been answered and closed.
    pub(crate) fn are_unanswered(&self) -> bool {
        let are_the_same = self.established as f64 <= self.usual().round();
        self.samples.len() >= SAMPLES_MIN && self.answered == 0 && are_the_same && self.are_all_in_use()
    }

    /// True if their number stays the same and hardly one is seen free, as with a pool's workers, which are free between two requests.
    pub(crate) fn are_all_in_use(&self) -> bool {
        let usual = self.usual();
        let same = self.samples.iter().filter(|(_, number, _)| (*number - usual).abs() < 0.5).count();
        usual > 0.0 && same as f64 >= STEADY_SHARE * self.samples.len() as f64 && self.in_use((0, u64::MAX)) >= BUSY_SHARE * usual
    }
}

/// The calls of the tiers in one namespace.
pub(super) fn of(
    ctx: &Context<'_>,
    id: NetnsId,
    samples: &[&(u64, RequestSample)],
    (tick_ms, strangers): (u64, &BTreeSet<u64>),
) -> Vec<Calls> {
    let callers = Callers::of(ctx, id);
    let mirrored: Vec<(u64, RequestSample)> =
        samples.iter().map(|(at_us, sample)| (*at_us, mirror(ctx, id, sample, (&callers, strangers)))).collect();
    let all = pairs(&mirrored.iter().collect::<Vec<_>>());
    let mut groups: BTreeMap<(usize, Endpoint), Vec<(usize, Pair<'_>)>> = BTreeMap::new();
    for (at, (socket, before)) in all.iter().enumerate().flat_map(|(at, pairs)| pairs.iter().map(move |pair| (at, *pair))) {
        if let Some(key) = ends(socket).and_then(|(remote, _)| Some((callers.of_socket(ctx, id, socket)?, remote))) {
            groups.entry(key).or_default().push((at, (socket, before)));
        }
    }
    let group = |((tier, remote), pairs): ((usize, Endpoint), Vec<(usize, Pair<'_>)>)| {
        let rhythm = Rhythm::of(pairs.iter().map(|(_, pair)| *pair), false);
        let mut counts: Vec<(u64, f64, f64)> = mirrored.iter().map(|(at_us, _)| (*at_us, 0.0, 0.0)).collect();
        let mut answered = 0;
        let mut connecting = 0.0;
        let (mut tried, mut established) = (BTreeSet::new(), BTreeSet::new());
        for (at, (socket, before)) in pairs {
            let weight = 1.0 / mirrored[at].1.share;
            if socket.state == TcpState::SynSent {
                connecting += weight / mirrored.len() as f64;
                tried.insert(socket.cookie);
            } else {
                established.insert(socket.cookie);
            }
            counts[at].1 += weight;
            counts[at].2 += if is_in_use(socket, before, rhythm.as_ref(), tick_ms) { weight } else { 0.0 };
            let came = |socket: &RequestSocket| socket.times.and_then(|times| times.data_segs_out).unwrap_or(0);
            // Segments before the first sample belong to requests before it.
            let earlier = if at == 0 { came(socket) } else { before.map_or(0, came) };
            answered += came(socket).saturating_sub(earlier);
        }
        let to = called(ctx, id, remote);
        Calls { tier, remote, to, samples: counts, answered, connecting, tried: tried.len(), established: established.len() }
    };
    groups.into_iter().map(group).collect()
}

/// Which tiers of a namespace make connections.
struct Callers {
    /// The tier that owns each socket, by inode.
    by_inode: BTreeMap<u64, usize>,
    /// The only tier whose configuration passes requests to an address; `None` if several do.
    by_address: BTreeMap<Endpoint, Option<usize>>,
}

impl Callers {
    fn of(ctx: &Context<'_>, id: NetnsId) -> Self {
        let tiers = ctx.path.tiers.iter().enumerate().filter(|(_, tier)| tier.netns == id);
        let mut by_inode = BTreeMap::new();
        let mut by_address: BTreeMap<Endpoint, Option<usize>> = BTreeMap::new();
        for (index, pid) in tiers.flat_map(|(index, tier)| tier.pids.iter().map(move |pid| (index, pid))) {
            let files = ctx.obs.processes.get(pid).into_iter().flat_map(|view| view.files.values());
            by_inode.extend(files.flat_map(|files| files.sockets.iter().map(|inode| (*inode, index))));
            let config = ctx.obs.servers.get(pid).and_then(|server| server.config.last());
            for address in config.into_iter().flat_map(|config| config.passes_to()) {
                let ListenerAddress::Tcp(ip, port) = address else { continue };
                let only = by_address.entry((ip.to_canonical(), *port)).or_insert(Some(index));
                *only = only.filter(|only| *only == index);
            }
        }
        Self { by_inode, by_address }
    }

    /// The tier that made a connection: the owner of its socket, or else the only tier here that calls that address; of one whose SYN has no answer, also the only one that passes
    /// requests to it: such a connection is given up before the descriptors are read again.
    fn of_socket(&self, ctx: &Context<'_>, id: NetnsId, mirrored: &RequestSocket) -> Option<usize> {
        let of_address = || {
            let remote = ends(mirrored)?.0;
            let Some(to) = called(ctx, id, remote) else {
                return self.by_address.get(&remote).copied().flatten().filter(|_| mirrored.state == TcpState::SynSent);
            };
            let mut callers = ctx.path.tiers.iter().enumerate().filter(|(_, tier)| tier.netns == id && tier.upstreams.contains(&to));
            let caller = callers.next().filter(|_| callers.next().is_none() && to != 0)?;
            Some(caller.0)
        };
        self.by_inode.get(&mirrored.inode).copied().or_else(of_address)
    }
}

/// The connections that tiers made, seen from the other end: sent and received exchanged.
fn mirror(ctx: &Context<'_>, id: NetnsId, sample: &RequestSample, (callers, strangers): (&Callers, &BTreeSet<u64>)) -> RequestSample {
    let is_open = |socket: &&RequestSocket| matches!(socket.state, TcpState::Established | TcpState::SynSent);
    let own = sample.sockets.iter().filter(|socket| !strangers.contains(&socket.cookie));
    let made = own.filter(is_open).filter(|socket| tier_of(ctx, id, &socket.address).is_none());
    let turned = made.filter_map(turn).filter(|socket| callers.of_socket(ctx, id, socket).is_some());
    let sockets = turned.collect();
    RequestSample { sockets, ..sample.clone() }
}

fn turn(socket: &RequestSocket) -> Option<RequestSocket> {
    let SocketAddress::Tcp { local, remote } = socket.address else { return None };
    let times = socket.times.map(|times| RequestTimes {
        last_data_sent_ms: times.last_data_recv_ms,
        last_data_recv_ms: times.last_data_sent_ms,
        data_segs_in: times.data_segs_out,
        data_segs_out: times.data_segs_in,
        bytes_received: times.bytes_sent,
        bytes_sent: times.bytes_received,
        ..times
    });
    Some(RequestSocket {
        address: SocketAddress::Tcp { local: remote, remote: local },
        receive_queue: socket.send_queue,
        send_queue: socket.receive_queue,
        times,
        ..socket.clone()
    })
}

/// True if the other side owes an answer, or if the answer was not read.
fn is_in_use(mirrored: &RequestSocket, before: Option<&RequestSocket>, rhythm: Option<&Rhythm>, tick_ms: u64) -> bool {
    if mirrored.state == TcpState::SynSent {
        return true;
    }
    let mut socket = mirrored.clone();
    // The mirrored socket's own end is the caller's.
    let acknowledged = mirrored.times.is_some_and(|times| times.is_acknowledged_alone()).then_some(Said::Request);
    if let Some(times) = &mut socket.times {
        let is_within_a_tick = times.last_data_recv_ms == times.last_data_sent_ms;
        // The request was sent within a tick of the last answer. On a path longer than a tick no answer can have come since.
        if is_within_a_tick && times.data_segs_in != Some(0) && times.min_rtt_us.is_some_and(|rtt_us| rtt_us > 1_000 * tick_ms.max(1)) {
            return true;
        }
        times.min_rtt_us = None;
    }
    let known = ConnectionContext { before, rhythm, acknowledged, tick_ms, ..ConnectionContext::default() };
    !matches!(
        connection_state(&socket, &known),
        ConnectionState::Idle | ConnectionState::Closed | ConnectionState::Undecided | ConnectionState::Streaming
    )
}
