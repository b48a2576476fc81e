//! The account: from the counts of a time span, the mean number of requests at each place.

use crate::facts::Context;
use crate::facts::pool::looks;
use crate::observation::load::Loop;
use crate::observation::{Listener, ListenerAddress};
use crate::output::report::LedgerPlaceKind;

use super::count::{Counts, SampleCounts};
use super::thread_split::{StateSplit, ThreadShares};

/// One place, and the mean number of requests there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlaceMean {
    /// Index of the tier; `None` for the client.
    pub(crate) tier: Option<usize>,
    /// Index of the tier that calls it.
    pub(crate) caller: Option<usize>,
    pub(crate) place: LedgerPlaceKind,
    pub(crate) mean: f64,
    /// Mean age of the requests in service, milliseconds.
    pub(crate) age_ms: Option<f64>,
}

/// The parts of the account that hold for the whole window.
pub(crate) struct Accountant<'c, 'a> {
    pub(crate) ctx: &'c Context<'a>,
    pub(crate) counted: &'c SampleCounts,
    threads: Vec<ThreadShares>,
    callers: Vec<Option<usize>>,
    /// For each tier the share of its caller's requests that stand at it or behind it, at least and at most, by what the workers of the caller were found waiting for.
    awaited: Vec<Option<(f64, f64)>>,
    /// For each tier the share of the accept queue whose client is still there.
    live: Vec<f64>,
    /// Ratio of the mean number of requests under way to their number at the first tier's samples: 1 if these found none, `None` if unknown.
    scale: Option<f64>,
}

impl<'c, 'a> Accountant<'c, 'a> {
    /// `offered`: mean number of requests that the load generator had under way.
    pub(crate) fn new(ctx: &'c Context<'a>, counted: &'c SampleCounts, offered: Option<f64>) -> Self {
        let tiers = &ctx.path.tiers;
        let at_samples = tiers.first().and_then(|first| counted.under_way(first.netns, (0, u64::MAX)));
        let caller = |index: usize| tiers.iter().position(|tier| tier.upstreams.contains(&index)).filter(|caller| *caller != index);
        let whole = counted.means_uncorrected(tiers.len());
        let live = |counts: &Counts| {
            let all = counts.unaccepted + counts.abandoned;
            if all > 0.0 { counts.unaccepted / all } else { 1.0 }
        };
        let callers: Vec<Option<usize>> = (0..tiers.len()).map(|index| if index == 0 { None } else { caller(index) }).collect();
        let is_unsure = |index: usize| whole.get(index).is_some_and(|counts| counts.undecided > 0.0);
        let awaited = |(index, caller): (usize, &Option<usize>)| {
            caller.filter(|_| is_unsure(index)).and_then(|caller| looks::share_waiting_at(ctx, &tiers[caller], &tiers[index]))
        };
        Self {
            ctx,
            counted,
            threads: tiers.iter().map(|tier| ThreadShares::of(ctx, tier)).collect(),
            awaited: callers.iter().enumerate().map(awaited).collect(),
            callers,
            live: whole.iter().map(live).collect(),
            scale: offered.zip(at_samples).map(|(offered, at_samples)| if at_samples > 0.0 { offered / at_samples } else { 1.0 }),
        }
    }

    /// Mean number of connections in a tier's accept queues, without those whose client is gone. The queues are read 20 times a second.
    fn queued(&self, tier: usize, (from_us, to_us): (u64, u64)) -> f64 {
        let of = |placed: &crate::facts::path::PlacedListener| {
            let Some(view) = self.ctx.obs.netns.get(&placed.netns) else { return 0.0 };
            let length = |all: &Vec<Listener>| {
                all.iter().find(|one| one.inode == placed.listener.inode).map_or(0.0, |one| f64::from(one.accept_queue))
            };
            let inside = view.listeners.points().iter().filter(|(at_us, _)| (from_us..to_us).contains(at_us));
            let (sum, count) = inside.fold((0.0, 0.0), |(sum, count), (_, all)| (sum + length(all), count + 1.0));
            if count > 0.0 { sum / count } else { 0.0 }
        };
        self.live[tier] * self.ctx.path.tiers[tier].listeners.iter().map(of).sum::<f64>()
    }

    /// Where requests were in a time span (end excluded), in the order of the path.
    pub(crate) fn between(&self, span_us: (u64, u64)) -> Vec<PlaceMean> {
        let tiers = self.ctx.path.tiers.len();
        let under_way = self.under_way(span_us);
        let mut counts = self.counted.means(tiers, span_us, under_way);
        let mut queued: Vec<f64> = (0..tiers).map(|tier| self.queued(tier, span_us)).collect();
        let is_sampled = self.queue_is_sampled();
        let ages_ms: Vec<Option<f64>> = counts.iter().map(|of| (of.service > 0.0).then(|| of.age_ms / of.service)).collect();
        if let Some((first, queued)) = counts.first_mut().zip(queued.first()) {
            limit_uncertain(first, if is_sampled { first.unaccepted } else { *queued }, under_way);
        }
        if is_sampled && under_way.is_some_and(|number| number > 0.0) {
            self.correct_for_queue(&mut counts, &mut queued);
        }
        self.settle_by_workers(&mut counts, &queued);
        let held = self.hold_per_tier(&mut counts, &queued);
        let client = counts.first_mut().map_or(0.0, unread_by_client);
        let mut all = vec![PlaceMean { tier: None, caller: None, place: LedgerPlaceKind::Client, mean: client, age_ms: None }];
        for (tier, of) in counts.iter().enumerate() {
            let split = self.threads[tier].split(held[tier]);
            let age_ms = ages_ms[tier];
            use LedgerPlaceKind::*;
            let places = [
                (Connecting, of.connecting, None),
                (Handshake, of.handshake, None),
                (AcceptQueue, queued[tier], None),
                (TlsHandshake, of.tls_handshake, None),
                (Unread, of.unread, None),
                (Receiving, of.receiving, None),
                (Cpu, split.cpu, age_ms),
                (Ready, split.ready, age_ms),
                (Throttled, split.throttled, age_ms),
                (Waiting, split.waiting, age_ms),
                (Undecided, of.undecided, None),
                (Sending, of.sending, None),
            ];
            let caller = self.callers[tier];
            all.extend(places.into_iter().map(|(place, mean, age_ms)| PlaceMean { tier: Some(tier), caller, place, mean, age_ms }));
        }
        if let (Some(most), Some(first)) = (under_way, counts.first()) {
            let elsewhere: f64 = all[1..].iter().map(|stood| stood.mean).sum();
            all[0].mean = self.at_client(client, first, (most - elsewhere).max(0.0));
        }
        all
    }

    /// Requests at the client, at most `room` of them: those that are nowhere else. Both ends of a connection see the same request, and the server's end is
    /// certain. With one request per connection, a connection without a request yet, or with a complete answer and not closed, waits for the client. In a
    /// closed loop each connection has a request: it is at the client if the server has none, has not paused in its answer, and the request was not lost. The
    /// client's own end shows answers that the client did not read (`unread`).
    fn at_client(&self, unread: f64, first: &Counts, room: f64) -> f64 {
        match self.connections() {
            Some(_) => {
                let answered = if self.counted.is_begun_told { (first.idle - first.lost).max(0.0) } else { 0.0 };
                unread.max(first.at_client + answered).min(room)
            }
            None => if first.at_client > 0.0 { first.at_client } else { unread }.min(room),
        }
    }

    /// False if no request was under way at any of the first tier's samples.
    pub(crate) fn met_requests(&self) -> bool {
        self.under_way((0, u64::MAX)).is_none_or(|number| number > 0.0)
    }

    /// Requests under way in a time span: the load generator's numbers at the samples, else the connections of a closed loop.
    pub(crate) fn under_way(&self, span_us: (u64, u64)) -> Option<f64> {
        let first = self.ctx.path.tiers.first()?;
        match self.scale {
            Some(scale) => Some(scale * self.counted.under_way(first.netns, span_us)?),
            None => self.connections(),
        }
    }

    /// True if the samples include the connections in the first tier's accept queue. The kernel does not list those of unix sockets.
    fn queue_is_sampled(&self) -> bool {
        let mut listeners = self.ctx.path.tiers.iter().take(1).flat_map(|first| &first.listeners);
        listeners.all(|placed| matches!(placed.listener.address, ListenerAddress::Tcp(..)))
    }

    /// Number of connections of a closed loop.
    fn connections(&self) -> Option<f64> {
        match self.ctx.obs.load.as_ref()?.shape {
            Loop::Closed { connections } => Some(f64::from(connections)),
            Loop::Open { .. } => None,
        }
    }

    /// Corrects for samples that met an unusual accept queue. In a closed loop every request that is not in the first queue is elsewhere. That queue is read
    /// far more often than sockets are sampled. If it was longer at the samples than on average, fewer requests were elsewhere at those moments, and the other
    /// counts are raised accordingly (a regression estimate of slope -1; Cochran, Sampling Techniques, 7.3). What the samples do not account for stays as it
    /// is. In an open loop the number of requests under way between samples is unknown, so the queue counts as sampled.
    fn correct_for_queue(&self, counts: &mut [Counts], queued: &mut [f64]) {
        let (Some(first), Some(queue)) = (counts.first(), queued.first_mut()) else { return };
        if self.connections().is_none() {
            *queue = first.unaccepted;
            return;
        }
        let others = first.known_requests() + first.undecided + first.client.max(first.at_client);
        if others > 0.0 {
            let fitted = (others + first.unaccepted - *queue).max(0.0) / others;
            counts.iter_mut().for_each(|counts| counts.multiply(fitted));
        }
    }

    /// Decides connections that do not show whether a request is in flight, where the workers of the calling tier were seen to wait for one or not: each of them serves one request at a
    /// time, and waits for its answer in a system call.
    fn settle_by_workers(&self, counts: &mut [Counts], queued: &[f64]) {
        for tier in 0..counts.len() {
            let Some((caller, (least, most))) = self.callers[tier].zip(self.awaited[tier]) else { continue };
            let all = counts[caller].service + counts[caller].undecided;
            let of = &mut counts[tier];
            let elsewhere = of.known_requests() + queued[tier];
            let [in_service, at_most] = [least, most].map(|share| (share * all - elsewhere).clamp(0.0, of.undecided));
            of.service += in_service;
            of.idle += of.undecided - at_most;
            of.undecided = at_most - in_service;
        }
    }

    /// What each tier holds itself: its requests in service less those on its edges to other tiers, never below zero. If the edges have more than the
    /// listener, uncertain requests are removed first: idle connections behind the tier, then those in front, whose request the edge proves.
    fn hold_per_tier(&self, counts: &mut [Counts], queued: &[f64]) -> Vec<f64> {
        let mut held = vec![0.0; counts.len()];
        for tier in 0..counts.len() {
            let behind: Vec<usize> = (0..counts.len()).filter(|other| self.callers[*other] == Some(tier)).collect();
            let certain: f64 = behind.iter().map(|other| counts[*other].known_requests() + queued[*other]).sum();
            let unsure: f64 = behind.iter().map(|other| counts[*other].undecided).sum();
            let service = counts[tier].service;
            // At most this many of the uncertain connections behind can belong to requests in front: those that no thread works on.
            let rest = (service - certain).max(0.0);
            let own = if unsure > 0.0 { self.threads[tier].split(rest) } else { StateSplit::default() };
            let room = (rest - own.cpu - own.ready).max(0.0);
            if unsure > room {
                behind.iter().for_each(|other| counts[*other].undecided *= room / unsure);
            }
            let edges = certain + unsure.min(room);
            let beyond = (edges - service).max(0.0);
            let undecided = counts[tier].undecided;
            counts[tier].undecided = (undecided - beyond).max(0.0);
            // An answer that is streamed through is leaving in front and behind at the same time, and a unix socket does not distinguish that from a request
            // in service. It is one request, and its client waits for the part in front: unless nothing is left to be sent there, and the rest is held back behind.
            let mut passed_on = (beyond - undecided).clamp(0.0, counts[tier].sending);
            let held_back: f64 = behind.iter().map(|other| (counts[*other].sending - counts[*other].last_segment).max(0.0)).sum();
            let rest_is_behind = passed_on.min(held_back).min(counts[tier].last_segment + counts[tier].corked);
            counts[tier].sending -= rest_is_behind;
            passed_on -= rest_is_behind;
            let fields: [fn(&mut Counts) -> &mut f64; 2] = [|counts| &mut counts.sending, |counts| &mut counts.service];
            for field in fields {
                let all: f64 = behind.iter().map(|other| *field(&mut counts[*other])).sum();
                let once = passed_on.min(all);
                behind.iter().filter(|_| once > 0.0).for_each(|other| *field(&mut counts[*other]) *= 1.0 - once / all);
                passed_on -= once;
            }
            held[tier] = (service - edges).max(0.0);
        }
        held
    }
}

/// Answers that the client has not read. An answer that the server still sends is not yet at the client. The two ends of a connection are seen at different
/// moments, each when its reader has a core and the observed process has none. So of the kept connections at most as many wait at the client as have no
/// request at the server. Of the undecided ones as many have no request as the client has answers.
fn unread_by_client(first: &mut Counts) -> f64 {
    let closed = first.client - first.unread_at_client_kept;
    let sent = (first.client - first.sending).max(0.0);
    if first.known_requests() + first.idle + first.undecided == 0.0 {
        return sent;
    }
    let idle = closed + first.idle + first.streaming;
    let unread = sent.min(idle + first.undecided);
    first.undecided -= (unread - idle).max(0.0);
    unread
}

/// Limits uncertain requests to the number under way, from the load generator or from the connections that wait for an answer. The last unacknowledged segment
/// of an answer is either on its way, or it has arrived and its acknowledgement is delayed until the next request: at most as many are on their way as clients
/// still wait for. A connection that received and sent within one clock tick has a request or an answer. If the load generator has part of an answer, the
/// server holds the rest unless it is on its way. The others have nothing left to do at the server; whether the client has read its answer is seen at the
/// client's end. `queued`: connections waiting to be accepted.
fn limit_uncertain(first: &mut Counts, queued: f64, under_way: Option<f64>) {
    let asking = Some(first.asking).filter(|asking| *asking > 0.0);
    if let Some(most) = under_way.into_iter().chain(asking).reduce(f64::min) {
        let others = first.known_requests() - first.sending + queued + first.client;
        let arrived = (first.sending - (most - others).max(0.0)).clamp(0.0, first.last_segment.max(0.0));
        first.sending -= arrived;
        first.idle += arrived;
    }
    // An answer on its way may be seen at both ends.
    let seen = first.known_requests() - first.sending + first.sending.max(first.client) + queued;
    let room = under_way.map(|all| (all - seen).max(0.0));
    let answered = room.map_or(0.0, |room| (first.undecided - room).max(0.0));
    first.undecided -= answered;
    first.idle += answered;
    let answering = room.map_or(first.answering, |room| first.answering.min(room - first.undecided));
    first.service += answering;
    let streaming = (answering - first.idle).max(0.0);
    first.idle -= answering - streaming;
    first.streaming -= streaming;
}
