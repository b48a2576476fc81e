//! The number of requests in each state in each sample, by tier: one pass over the samples of the path's namespaces and the client's.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};
use std::net::IpAddr;

use crate::facts::Context;
use crate::facts::path::Endpoint;
use crate::facts::suffered::{accepted, segments};
use crate::observation::load::{INITIAL_RTO_S, LoadExchange};
use crate::observation::{DumpMoment, NetnsId, RequestSample, RequestSocket, RequestTimes, TcpState};

use super::calls::{self, Calls};
use super::connection_state::{
    ConnectionContext, ConnectionState, acknowledged, connection_state, has_arrived, is_multiplexed, must_have_arrived,
};
use super::connections::{Pair, at_least, away, called, ends, has_answered, is_unacknowledged, pairs, tier_of};
use super::kept_unix::kept_unix;
use super::pieces::{Pieces, sent_on};
use super::rhythm::{Rhythm, tick_ms};
use super::sample_weights::{busy_shares, samples, time_shares};
use super::strangers::strangers;

/// A connection is multiplexed if short messages came in this many intervals while it owed an answer. A single one may be a retransmission.
const MULTIPLEXED_MIN: u32 = 2;
/// Ticks of the kernel's clock that a client takes to ask again at once: its times are counted in them, and it may have to wait for a core.
const TURN_TICKS: u64 = 2;
/// Packets of a handshake that may be lost while the server counts it as open: the server's answer and its confirmation.
const PACKETS: f64 = 2.0;

/// Requests of one tier in one sample, or means over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// SYNs without an answer, counted at the calling side.
    pub(crate) connecting: f64,
    pub(crate) handshake: f64,
    pub(crate) tls_handshake: f64,
    pub(crate) unread: f64,
    pub(crate) receiving: f64,
    pub(crate) service: f64,
    /// Requests of `service` that are the first of their connection.
    pub(crate) first: f64,
    pub(crate) sending: f64,
    /// Answers of `sending` with one unacknowledged segment: it has arrived or not, never in part.
    pub(crate) last_segment: f64,
    /// Answers of `sending` of which a piece is held for more to come (MSG_MORE in send(2), TCP_CORK): nothing before it is unacknowledged.
    pub(crate) corked: f64,
    pub(crate) undecided: f64,
    /// Connections without a request.
    pub(crate) idle: f64,
    /// Connections of `idle` that the client could have asked on for a while, and has asked on in the window; first tier only.
    pub(crate) spare: f64,
    /// Connections of a load with one request per connection that wait for the client: its request is still to come, or its answer has come and it has not
    /// closed.
    pub(crate) at_client: f64,
    /// Connections that may have delivered part of an answer, though they look idle or stream: the server paused.
    pub(crate) answering: f64,
    /// Connections waiting to be accepted whose client is still there, and those whose client is gone.
    pub(crate) unaccepted: f64,
    pub(crate) abandoned: f64,
    /// Answers that the client has not read; first tier only.
    pub(crate) client: f64,
    /// Answers of `client` on connections that both sides keep.
    pub(crate) unread_at_client_kept: f64,
    /// Connections of the client that may wait for an answer, by what their own end sent and received; first tier only.
    pub(crate) asking: f64,
    /// Connections of the client whose request was lost or retransmitted; first tier only.
    pub(crate) lost: f64,
    /// Connections that stream, those that get responses in pieces, and multiplexed connections.
    pub(crate) streaming: f64,
    pub(crate) in_pieces: f64,
    pub(crate) multiplexed: f64,
    /// Sum of the ages of requests in service, milliseconds.
    pub(crate) age_ms: f64,
    /// Connections with a known shortest round-trip time, and the sum of these times, microseconds.
    pub(crate) ways: f64,
    pub(crate) way_us: f64,
}

impl Counts {
    fn add(&mut self, other: &Self, weight: f64) {
        for (sum, more) in self.fields().into_iter().zip({ *other }.fields()) {
            *sum += weight * *more;
        }
    }

    /// Multiplies the counts of requests. Counts of connections without a request stay.
    pub(crate) fn multiply(&mut self, times: f64) {
        let Self { idle, streaming, in_pieces, abandoned, .. } = *self;
        self.fields().into_iter().for_each(|field| *field *= times);
        *self = Self { idle, streaming, in_pieces, abandoned, ..*self };
    }

    /// Requests known to be under way at the tier and behind it, without its accept queue.
    pub(super) fn known_requests(&self) -> f64 {
        self.connecting + self.handshake + self.tls_handshake + self.unread + self.receiving + self.service + self.sending
    }

    fn fields(&mut self) -> [&mut f64; 27] {
        [
            &mut self.connecting,
            &mut self.handshake,
            &mut self.tls_handshake,
            &mut self.unread,
            &mut self.receiving,
            &mut self.service,
            &mut self.first,
            &mut self.sending,
            &mut self.last_segment,
            &mut self.corked,
            &mut self.undecided,
            &mut self.idle,
            &mut self.spare,
            &mut self.at_client,
            &mut self.answering,
            &mut self.unaccepted,
            &mut self.abandoned,
            &mut self.client,
            &mut self.unread_at_client_kept,
            &mut self.asking,
            &mut self.lost,
            &mut self.streaming,
            &mut self.in_pieces,
            &mut self.multiplexed,
            &mut self.age_ms,
            &mut self.ways,
            &mut self.way_us,
        ]
    }
}

/// The counts of all samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampleCounts {
    /// By namespace, in chronological order: the counts of each tier.
    pub(crate) samples: BTreeMap<NetnsId, Vec<(u64, Vec<Counts>)>>,
    /// By namespace: for each sample the requests that the load generator had under way. Missing if not every sample has that number.
    under_way: BTreeMap<NetnsId, Vec<(u64, f64)>>,
    /// True if every sample has the load generator's number of partial answers.
    pub(crate) is_begun_told: bool,
    /// By namespace with awaited samples: the share of time around each sample in which a request was under way; zero for a sample without a request.
    busy: BTreeMap<NetnsId, Vec<f64>>,
    /// Of each request that was under way, in all samples together: the most that the time since it came can be, microseconds. It is less by at most a tick.
    pub(crate) unanswered_us: Vec<u64>,
    /// Calls of the tiers to other servers.
    pub(crate) calls: Vec<Calls>,
    pub(crate) tick_ms: u64,
    /// Begin and end of the window, microseconds.
    window_us: (u64, u64),
    /// Mean number of requests under way at the first tier, by client address.
    pub(crate) clients: BTreeMap<IpAddr, f64>,
}

impl SampleCounts {
    /// Counts all samples of the window. `None` if there are none.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        let mut ids: BTreeSet<NetnsId> = ctx.path.tiers.iter().flat_map(|tier| &tier.listeners).map(|placed| placed.netns).collect();
        ids.insert(ctx.obs.request.client_netns);
        let views = ids.into_iter().filter_map(|id| Some((id, ctx.obs.netns.get(&id)?)));
        let all: Vec<(NetnsId, Vec<&(u64, RequestSample)>)> = views.map(|(id, view)| (id, samples(ctx, view))).collect();
        let times = all.iter().flat_map(|(_, samples)| samples).flat_map(|(_, sample)| &sample.sockets).filter_map(|socket| socket.times);
        let clients = BTreeMap::new();
        let window_us = ctx.window_us;
        let told = |samples: &[&(u64, RequestSample)]| {
            samples.iter().map(|(at_us, sample)| Some((*at_us, sample.under_way?))).collect::<Option<Vec<_>>>()
        };
        let under_way = all.iter().filter_map(|(id, samples)| Some((*id, told(samples)?))).collect();
        let is_begun_told = all.iter().flat_map(|(_, samples)| samples).all(|(_, sample)| sample.begun.is_some());
        let busy = all.iter().filter_map(|(id, samples)| Some((*id, busy_shares(samples)?))).collect();
        let mut counted = Self {
            samples: BTreeMap::new(),
            under_way,
            is_begun_told,
            busy,
            unanswered_us: Vec::new(),
            calls: Vec::new(),
            tick_ms: tick_ms(times),
            window_us,
            clients,
        };
        let sampled: Vec<NetnsId> = all.iter().filter(|(_, samples)| !samples.is_empty()).map(|(id, _)| *id).collect();
        for (id, samples) in all.into_iter().filter(|(_, samples)| !samples.is_empty()) {
            let strangers = strangers(ctx, id, &samples);
            let mut pairs = pairs(&samples);
            pairs.iter_mut().for_each(|of_one| of_one.retain(|(socket, _)| !strangers.contains(&socket.cookie)));
            let namespace = Namespace::new(ctx, (id, &sampled), (&samples, &pairs), counted.tick_ms);
            let counts = namespace.count(&samples, &pairs, &mut counted);
            let at_any_time: Vec<&(u64, RequestSample)> = samples.iter().copied().filter(|(_, sample)| sample.is_at_any_time()).collect();
            counted.calls.extend(calls::of(ctx, id, &at_any_time, (counted.tick_ms, &strangers)));
            counted.samples.insert(id, counts);
        }
        let means = counted.means_uncorrected(ctx.path.tiers.len());
        means.iter().enumerate().for_each(|(tier, means)| counted.remove_floods(ctx, tier, means));
        (!counted.samples.is_empty()).then_some(counted)
    }

    /// Counts at most as many handshakes as callers complete. A handshake lasts one round trip, plus a second for each lost packet (RFC 6298); the loss rate
    /// is that of other segments in this run. By Little's law this gives the number of open handshakes. Nobody completes the rest: a flood. An overflowing
    /// accept queue keeps complete handshakes open too, so nothing is removed then.
    fn remove_floods(&mut self, ctx: &Context<'_>, tier: usize, means: &Counts) {
        let Some(view) = ctx.obs.netns.get(&ctx.path.tiers[tier].netns) else { return };
        let has_overflowed = ctx.netstat_growth(view, "TcpExt.ListenOverflows").is_none_or(|count| count > 0);
        let Some(accepted) = accepted(ctx, view).filter(|accepted| *accepted > 0) else { return };
        let Some((sent, again)) = segments(ctx, view) else { return };
        if has_overflowed || means.ways <= 0.0 || means.handshake <= 0.0 {
            return;
        }
        let each_s = means.way_us / means.ways / 1e6 + PACKETS * again as f64 / sent as f64 * INITIAL_RTO_S;
        let completed = (accepted as f64 / ctx.seconds() * each_s / means.handshake).min(1.0);
        self.samples.values_mut().flatten().for_each(|(_, counts)| counts[tier].handshake *= completed);
    }

    /// The mean counts of each tier in a time span (end excluded). Each sample is weighted by the time nearest to it: samples are unevenly spaced, and densest
    /// when a load begins, which is not typical of the rest. `under_way`: the mean number of requests to correct the counts to, see [`SampleCounts::ratio`].
    pub(crate) fn means(&self, tiers: usize, span_us: (u64, u64), under_way: Option<f64>) -> Vec<Counts> {
        let mut means = vec![Counts::default(); tiers];
        for (id, samples) in &self.samples {
            let mut of_one = vec![Counts::default(); tiers];
            for (counts, weight) in self.weighted(*id, samples, span_us) {
                of_one.iter_mut().zip(counts).for_each(|(mean, count)| mean.add(count, weight));
            }
            let ratio = self.ratio(*id, span_us, under_way);
            of_one.iter_mut().for_each(|counts| counts.multiply(ratio));
            means.iter_mut().zip(&of_one).for_each(|(mean, counts)| mean.add(counts, 1.0));
        }
        means
    }

    /// The mean counts of each tier over all samples, uncorrected.
    pub(crate) fn means_uncorrected(&self, tiers: usize) -> Vec<Counts> {
        self.means(tiers, (0, u64::MAX), None)
    }

    /// Correction factor of a namespace's counts for a mean number of requests under way. Samples are few and may find more or fewer requests than usual; the
    /// load generator knows how many there were at those moments (the ratio estimate; Cochran, Sampling Techniques, 6). Requests found beyond that number do
    /// not belong to the load and are not scaled.
    pub(crate) fn ratio(&self, id: NetnsId, span_us: (u64, u64), under_way: Option<f64>) -> f64 {
        let at_samples = self.under_way(id, span_us).filter(|number| *number > 0.0);
        let (Some(under_way), Some(at_samples)) = (under_way, at_samples) else { return 1.0 };
        let samples = self.samples.get(&id).map_or(&[][..], Vec::as_slice);
        let at_first = |counts: &Vec<Counts>| counts.first().map_or(0.0, |first| first.known_requests() + first.unaccepted);
        let found: f64 = self.weighted(id, samples, span_us).map(|(counts, weight)| weight * at_first(counts)).sum();
        if found > at_samples { ((found + under_way - at_samples) / found).max(0.0) } else { under_way / at_samples }
    }

    /// True if a sample of the namespace was taken in that time span.
    pub(crate) fn is_sampled(&self, id: NetnsId, (from_us, to_us): (u64, u64)) -> bool {
        self.samples.get(&id).into_iter().flatten().any(|(at_us, _)| (from_us..to_us).contains(at_us))
    }

    /// Mean number of requests that the load generator had under way at a namespace's samples, with the samples' weights. `None` if unknown.
    pub(crate) fn under_way(&self, id: NetnsId, span_us: (u64, u64)) -> Option<f64> {
        let mut told = self.weighted(id, self.under_way.get(&id)?, span_us).map(|(number, weight)| number * weight).peekable();
        told.peek()?;
        Some(told.sum())
    }

    /// The number of requests that the load generator had under way at a sample. `None` if unknown.
    pub(crate) fn under_way_at(&self, id: NetnsId, at_us: u64) -> Option<f64> {
        self.under_way.get(&id)?.iter().find(|(at, _)| *at == at_us).map(|(_, number)| *number)
    }

    /// The samples in a time span (end excluded), each with the share of the span that is nearest to it. If samples were awaited, only those that met requests
    /// count, weighted by the share of time in which one was under way (stratified sampling; Cochran, Sampling Techniques, 5).
    fn weighted<'s, T>(
        &self,
        id: NetnsId,
        samples: &'s [(u64, T)],
        (from_us, to_us): (u64, u64),
    ) -> impl Iterator<Item = (&'s T, f64)> + use<'s, T> {
        let busy = self.busy.get(&id);
        let share = |at: usize| busy.map_or(1.0, |busy| busy[at]);
        let inside = samples.iter().enumerate().filter(|(at, (at_us, _))| (from_us..to_us).contains(at_us) && share(*at) > 0.0);
        let (found, times_us): (Vec<(&T, f64)>, Vec<u64>) = inside.map(|(at, (at_us, found))| ((found, share(at)), *at_us)).unzip();
        let weights = time_shares(&times_us, (from_us.max(self.window_us.0), to_us.min(self.window_us.1)));
        found.into_iter().zip(weights).map(|((found, share), weight)| (found, share * weight))
    }
}

/// What a sample shows besides the counts.
#[derive(Debug, Default)]
struct SampleDetails {
    /// See [`SampleCounts::unanswered_us`].
    unanswered_us: Vec<u64>,
    /// When the current socket was read.
    read: Option<(DumpMoment, usize)>,
    /// Mean number of requests under way at the first tier, by client address, over the samples that were not awaited.
    clients: BTreeMap<IpAddr, f64>,
    /// Weight of the current sample in that mean.
    of_clients: f64,
}

impl SampleDetails {
    /// Takes the age of a request from the time at which it was received or sent.
    fn see_unanswered(&mut self, socket: &RequestSocket, ms: impl Fn(&RequestTimes) -> u64) {
        self.unanswered_us.extend(self.read.zip(socket.times.as_ref()).map(|((moment, nth), times)| moment.at_most_us(nth, ms(times))));
    }
}

/// What all samples together show about one namespace's connections.
struct Namespace<'c, 'a> {
    ctx: &'c Context<'a>,
    id: NetnsId,
    tick_ms: u64,
    /// By tier.
    rhythms: Vec<Option<Rhythm>>,
    /// By tier: the shortest smoothed round-trip time of its connections, microseconds.
    ways_us: Vec<Option<u64>>,
    pieces: Pieces,
    multiplexed: BTreeSet<u64>,
    /// Unix sockets that outlive a request.
    kept: BTreeSet<u64>,
    /// The accepting tier of each connection.
    tiers: HashMap<u64, usize>,
    /// Addresses of the other sampled namespaces.
    away: BTreeSet<IpAddr>,
}

impl<'c, 'a> Namespace<'c, 'a> {
    fn new(
        ctx: &'c Context<'a>,
        (id, sampled): (NetnsId, &[NetnsId]),
        (samples, by_sample): (&[&(u64, RequestSample)], &[Vec<Pair<'_>>]),
        tick_ms: u64,
    ) -> Self {
        let mut tiers = HashMap::new();
        let mut asked: BTreeMap<u64, u32> = BTreeMap::new();
        let mut of_tiers: Vec<Vec<Pair<'_>>> = vec![Vec::new(); ctx.path.tiers.len()];
        for (socket, before) in by_sample.iter().flatten().filter(|(socket, _)| socket.cookie != 0) {
            let tier = match tiers.entry(socket.cookie) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(new) => tier_of(ctx, id, &socket.address).map(|tier| *new.insert(tier)),
            };
            if let Some(tier) = tier {
                of_tiers[tier].push((socket, *before));
            }
            if is_multiplexed(socket, *before) {
                *asked.entry(socket.cookie).or_default() += 1;
            }
        }
        let rtt_us = |(socket, _): &Pair<'_>| socket.times?.rtt_us.filter(|us| *us > 0);
        let rhythms = of_tiers.iter().map(|pairs| Rhythm::of(pairs.iter().copied(), ctx.obs.load.is_none())).collect();
        let ways_us = of_tiers.iter().map(|pairs| pairs.iter().filter_map(rtt_us).min()).collect();
        let mut namespace = Self {
            ctx,
            id,
            tick_ms,
            rhythms,
            ways_us,
            pieces: Pieces::of(ctx, samples, by_sample),
            multiplexed: at_least(asked, MULTIPLEXED_MIN),
            away: away(ctx, id, sampled),
            kept: BTreeSet::new(),
            tiers,
        };
        let oldest_ms: Vec<Vec<u64>> = by_sample.iter().map(|pairs| namespace.oldest_ms(pairs)).collect();
        namespace.kept = kept_unix(ctx, id, samples, &namespace.tiers, &oldest_ms);
        namespace
    }

    /// By tier: the age of the oldest request that may be under way in a sample, milliseconds. Unlimited for a request still being received: its beginning is
    /// unknown.
    fn oldest_ms(&self, pairs: &[Pair<'_>]) -> Vec<u64> {
        let mut oldest_ms = vec![0; self.ctx.path.tiers.len()];
        for (socket, before) in pairs {
            let Some((tier, times)) = self.tiers.get(&socket.cookie).zip(socket.times) else { continue };
            let known = ConnectionContext { before: *before, ..self.known(socket, *tier) };
            let age_ms = match connection_state(socket, &known) {
                ConnectionState::Service | ConnectionState::Undecided | ConnectionState::Sending | ConnectionState::Streaming => {
                    times.last_data_recv_ms
                }
                ConnectionState::Receiving => u64::MAX,
                _ => continue,
            };
            oldest_ms[*tier] = oldest_ms[*tier].max(age_ms);
        }
        oldest_ms
    }

    /// The counts of each sample. Further results of the samples are added to `counted`.
    fn count(&self, samples: &[&(u64, RequestSample)], pairs: &[Vec<Pair<'_>>], counted: &mut SampleCounts) -> Vec<(u64, Vec<Counts>)> {
        let mut all = Vec::new();
        let mut details = SampleDetails::default();
        let at_any_time = samples.iter().filter(|(_, sample)| sample.is_at_any_time()).count();
        for ((at_us, sample), pairs) in samples.iter().zip(pairs) {
            details.of_clients = if sample.is_at_any_time() { 1.0 / at_any_time as f64 } else { 0.0 };
            all.push((*at_us, self.count_one((*at_us, sample), pairs, &mut details)));
        }
        counted.unanswered_us.append(&mut details.unanswered_us);
        for (client, number) in details.clients {
            *counted.clients.entry(client).or_default() += number;
        }
        all
    }

    fn count_one(&self, (at_us, sample): (u64, &RequestSample), pairs: &[Pair<'_>], details: &mut SampleDetails) -> Vec<Counts> {
        let mut counts = vec![Counts::default(); self.ctx.path.tiers.len()];
        // If both ends of a connection are in this namespace, the accepting end counts its handshake.
        let shaking: BTreeSet<_> =
            pairs.iter().filter(|(socket, _)| socket.state == TcpState::SynRecv).filter_map(|(socket, _)| ends(socket)).collect();
        // Needed for few sockets, and seldom.
        let calling =
            LazyCell::new(|| pairs.iter().filter_map(|(socket, _)| Some((ends(socket)?, *socket))).collect::<HashMap<_, &RequestSocket>>());
        for (nth, (socket, before)) in pairs.iter().enumerate() {
            details.read = sample.moment.map(|moment| (moment, nth));
            let weight = sample.weight(socket);
            let own =
                if socket.cookie == 0 { tier_of(self.ctx, self.id, &socket.address) } else { self.tiers.get(&socket.cookie).copied() };
            // The client is the remote end of an accepted connection, and the local end of a calling one.
            let client = match own {
                Some(tier) => {
                    let other = || ends(socket).and_then(|(local, remote)| calling.get(&(remote, local)).copied());
                    let has_arrived = socket.send_queue > 0
                        && (other().is_some_and(|other| has_arrived(socket, other))
                            || must_have_arrived(socket, self.ways_us[tier], self.tick_ms));
                    // The beginning of an answer that the load has not read yet is at the client.
                    let told = ends(socket).filter(|_| tier == 0).and_then(|(_, (_, port))| sample.exchanges.get(&port).copied());
                    let exchange = match told {
                        Some(LoadExchange::Waiting) if other().is_some_and(|other| other.receive_queue > 0) => Some(LoadExchange::Answered),
                        told => told,
                    };
                    let acknowledged = acknowledged(socket, other);
                    let piece = self.pieces.at(socket, at_us, tier);
                    counts[tier].in_pieces += if self.pieces.are_usual(socket.cookie) { weight } else { 0.0 };
                    let known =
                        ConnectionContext { before: *before, has_arrived, exchange, acknowledged, piece, ..self.known(socket, tier) };
                    let idle = counts[tier].idle;
                    let is_under_way = self.add(&mut counts[tier], socket, &known, weight, (tier, details));
                    let has_read = || other().is_none_or(|other| other.receive_queue == 0);
                    if tier == 0 && counts[0].idle > idle && self.is_spare(socket, at_us) && has_read() {
                        counts[0].spare += weight;
                    }
                    ends(socket).filter(|_| is_under_way && tier == 0).map(|(_, (ip, _))| ip)
                }
                None => {
                    let told = ends(socket).and_then(|((_, port), _)| sample.exchanges.get(&port).copied());
                    let called = self.add_called(&mut counts, socket, (weight, told, details), &shaking);
                    ends(socket).filter(|_| called == Some(0)).map(|((ip, _), _)| ip)
                }
            };
            if let Some(ip) = client {
                *details.clients.entry(ip).or_default() += details.of_clients * weight;
            }
        }
        if let Some(first) = counts.first_mut() {
            // Older recordings lack this number. With one request per connection, each open connection may have part of its answer.
            first.answering = first.answering.min(sample.begun.unwrap_or(if self.asks_once() { f64::INFINITY } else { 0.0 }));
            // A client with a complete answer may leave the connection open for a moment.
            let elsewhere = first.known_requests() + first.unaccepted + first.undecided;
            first.at_client = first.at_client.min(sample.under_way.map_or(f64::INFINITY, |all| (all - elsewhere).max(0.0)));
        }
        counts
    }

    /// True if a connection is idle for longer than its client needs to ask again, and was asked on in the window.
    fn is_spare(&self, socket: &RequestSocket, at_us: u64) -> bool {
        socket.times.is_some_and(|times| {
            let turn_ms = times.rtt_us.unwrap_or(0) / 1_000 + TURN_TICKS * self.tick_ms;
            let since_us = self.ctx.window_us.0;
            times.last_data_sent_ms > turn_ms && at_us.saturating_sub(1_000 * times.last_data_recv_ms) >= since_us && has_answered(&times)
        })
    }

    /// True if each connection of the load carries one request.
    fn asks_once(&self) -> bool {
        self.ctx.obs.load.as_ref().is_some_and(|load| !load.keep_alive)
    }

    /// What all samples together show about an accepted connection.
    fn known(&self, socket: &RequestSocket, tier: usize) -> ConnectionContext<'_> {
        ConnectionContext {
            tls: tier == 0 && self.ctx.obs.request.scheme == "https",
            asks_once: tier == 0 && self.asks_once(),
            streams: self.pieces.streams(socket.cookie),
            is_kept: self.kept.contains(&socket.cookie),
            rhythm: self.rhythms[tier].as_ref(),
            tick_ms: self.tick_ms,
            ..ConnectionContext::default()
        }
    }

    /// Counts an accepted connection. True if a request of a known client is under way on it.
    fn add(
        &self,
        counts: &mut Counts,
        socket: &RequestSocket,
        known: &ConnectionContext<'_>,
        weight: f64,
        (tier, details): (usize, &mut SampleDetails),
    ) -> bool {
        let state = connection_state(socket, known);
        if tier == 0 && state.is_after_the_request() {
            details.see_unanswered(socket, |times| times.last_data_recv_ms);
        }
        let place = match state {
            // The caller's end was sampled too, at another moment, and its count includes this handshake.
            ConnectionState::Handshake if ends(socket).is_some_and(|(_, (ip, _))| self.away.contains(&ip)) => return false,
            // The same holds for all connections of the load generator. Other handshakes may be a flood that nobody completes.
            ConnectionState::Handshake if self.ctx.obs.load.is_some() && tier == 0 => return false,
            ConnectionState::Handshake => &mut counts.handshake,
            ConnectionState::Unaccepted => &mut counts.unaccepted,
            ConnectionState::TlsHandshake => &mut counts.tls_handshake,
            ConnectionState::Unread => &mut counts.unread,
            ConnectionState::Receiving => &mut counts.receiving,
            ConnectionState::Service => {
                let age_ms = socket.times.map_or(0, |times| times.last_data_recv_ms);
                // Over TLS the server has sent before.
                if (known.tls && known.asks_once) || socket.times.is_some_and(|times| times.never_sent()) {
                    counts.first += weight;
                }
                counts.age_ms += weight * age_ms as f64;
                if self.multiplexed.contains(&socket.cookie) {
                    counts.multiplexed += weight;
                }
                &mut counts.service
            }
            ConnectionState::Sending => {
                sent_on(counts, socket.times.as_ref(), weight);
                &mut counts.sending
            }
            ConnectionState::Undecided => &mut counts.undecided,
            ConnectionState::AtClient => &mut counts.at_client,
            ConnectionState::Streaming => {
                counts.answering += weight;
                &mut counts.streaming
            }
            ConnectionState::Closed if socket.inode == 0 => &mut counts.abandoned,
            ConnectionState::Idle if socket.state == TcpState::Established => {
                if socket.times.as_ref().is_some_and(has_answered) {
                    counts.answering += weight;
                }
                &mut counts.idle
            }
            ConnectionState::Idle | ConnectionState::Closed => return false,
        };
        *place += weight;
        if let Some(way_us) = socket.times.and_then(|times| times.min_rtt_us) {
            counts.ways += weight;
            counts.way_us += weight * way_us as f64;
        }
        // The address of an unfinished handshake may be forged.
        !matches!(state, ConnectionState::Streaming | ConnectionState::Closed | ConnectionState::Idle | ConnectionState::Handshake)
    }

    /// Counts a socket that calls a tier: its SYN has no answer, its request is not acknowledged (the server dropped the end of the handshake and still counts
    /// it as one), or it is the client's with an unread answer. Returns the tier if no accepted end shows the request.
    fn add_called(
        &self,
        counts: &mut [Counts],
        socket: &RequestSocket,
        (weight, told, details): (f64, Option<LoadExchange>, &mut SampleDetails),
        shaking: &BTreeSet<(Endpoint, Endpoint)>,
    ) -> Option<usize> {
        let (local, remote) = ends(socket)?;
        // Under load only the callers count the first tier's handshakes.
        let is_told = |tier: usize| shaking.contains(&(remote, local)) && (self.ctx.obs.load.is_none() || tier != 0);
        if socket.state == TcpState::SynSent || is_unacknowledged(socket) {
            let tier = self.called(remote).filter(|tier| !is_told(*tier))?;
            let place = if socket.state == TcpState::SynSent { &mut counts[tier].connecting } else { &mut counts[tier].handshake };
            *place += weight;
            return Some(tier);
        }
        if socket.inode == 0 || self.id != self.ctx.obs.request.client_netns || self.called(remote) != Some(0) {
            return None;
        }
        // The FIN counts as one byte of the queue, and the client need not read it.
        let is_closed = socket.state == TcpState::CloseWait;
        let unread = socket.receive_queue.saturating_sub(u32::from(is_closed));
        if unread > 0 {
            counts[0].client += weight;
            details.see_unanswered(socket, |times| times.last_data_sent_ms);
            if !is_closed {
                counts[0].unread_at_client_kept += weight;
            }
        }
        if socket.send_queue > 0 && socket.times.is_some_and(|times| times.lost.is_some_and(|lost| lost > 0)) {
            counts[0].lost += weight;
        }
        // An answer came after what this end last sent, so it waits for none.
        let waits = match told {
            Some(exchange) => exchange == LoadExchange::Waiting,
            None => socket.times.as_ref().is_none_or(|times| times.received_last() != Some(true)),
        };
        if unread > 0 || waits {
            counts[0].asking += weight;
        }
        None
    }

    /// The tier that a connection from here to this address reaches.
    fn called(&self, (ip, port): Endpoint) -> Option<usize> {
        let request = &self.ctx.obs.request;
        let is_target =
            self.id == request.client_netns && port == request.port && request.addresses.iter().any(|one| one.to_canonical() == ip);
        if is_target && !self.ctx.path.tiers.is_empty() {
            return Some(0);
        }
        called(self.ctx, self.id, (ip, port))
    }
}
