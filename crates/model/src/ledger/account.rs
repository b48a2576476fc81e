//! The account: of the counts of one stretch of time, how many requests stood at each place.

use crate::facts::Context;
use crate::load::Loop;
use crate::observation::Listener;
use crate::report::LedgerPlaceKind;

use super::count::{Counted, Counts};
use super::held::Threads;

/// One place and how many stood there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stood {
    /// The tier by its number on the path; nothing for the client.
    pub(crate) tier: Option<usize>,
    /// The tier that calls it.
    pub(crate) caller: Option<usize>,
    pub(crate) place: LedgerPlaceKind,
    pub(crate) mean: f64,
    /// Mean age of the requests in service, milliseconds.
    pub(crate) age_ms: Option<f64>,
}

/// What stays the same over the whole window.
pub(crate) struct Accountant<'c, 'a> {
    pub(crate) ctx: &'c Context<'a>,
    pub(crate) counted: &'c Counted,
    threads: Vec<Threads>,
    callers: Vec<Option<usize>>,
    /// Share of each tier's accept queue whose client is still there.
    live: Vec<f64>,
}

impl<'c, 'a> Accountant<'c, 'a> {
    pub(crate) fn new(ctx: &'c Context<'a>, counted: &'c Counted) -> Self {
        let tiers = &ctx.path.tiers;
        let caller = |index: usize| tiers.iter().position(|tier| tier.upstreams.contains(&index)).filter(|caller| *caller != index);
        let whole = counted.means(tiers.len(), (0, u64::MAX), None);
        let live = |counts: &Counts| {
            let all = counts.unaccepted + counts.abandoned;
            if all > 0.0 { counts.unaccepted / all } else { 1.0 }
        };
        Self {
            ctx,
            counted,
            threads: tiers.iter().map(|tier| Threads::of(ctx, tier)).collect(),
            callers: (0..tiers.len()).map(|index| if index == 0 { None } else { caller(index) }).collect(),
            live: whole.iter().map(live).collect(),
        }
    }

    /// Connections that waited to be accepted by a tier on average, without those whose client went away. The queues are read 20 times a second.
    fn queued(&self, tier: usize, (from_us, to_us): (u64, u64)) -> f64 {
        let of = |placed: &crate::path::PlacedListener| {
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

    /// Where requests stood from one time until before another, in the order of the path, where as many were under way on average.
    pub(crate) fn between(&self, span_us: (u64, u64), under_way: Option<f64>) -> Vec<Stood> {
        let tiers = self.ctx.path.tiers.len();
        let mut counts = self.counted.means(tiers, span_us, under_way);
        let mut queued: Vec<f64> = (0..tiers).map(|tier| self.queued(tier, span_us)).collect();
        counts.iter_mut().take(1).for_each(bound_answers);
        // Of an open loop of an older recording it is not known how many were under way when its sockets were read.
        let under_way = under_way.filter(|_| self.under_way(span_us).is_some());
        if under_way.is_some() {
            self.fit(&mut counts, &mut queued);
        }
        let held = self.hold(&mut counts, &queued);
        let client = counts.first_mut().zip(queued.first()).map_or(0.0, |(first, queued)| at_client(first, *queued, under_way));
        let mut all = vec![Stood { tier: None, caller: None, place: LedgerPlaceKind::Client, mean: client, age_ms: None }];
        for (tier, of) in counts.iter().enumerate() {
            let split = self.threads[tier].split(held[tier]);
            let age_ms = (of.service > 0.0).then(|| of.age_ms / of.service);
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
            all.extend(places.into_iter().map(|(place, mean, age_ms)| Stood { tier: Some(tier), caller, place, mean, age_ms }));
        }
        all
    }

    /// Requests that the load generator had under way at the moments of the samples: as it told then, else, in a closed loop, always as many.
    pub(crate) fn under_way(&self, span_us: (u64, u64)) -> Option<f64> {
        let first = self.ctx.path.tiers.first()?;
        self.counted.under_way(first.netns, span_us).or(self.connections())
    }

    /// Those of a closed loop.
    fn connections(&self) -> Option<f64> {
        match self.ctx.obs.load.as_ref()?.shape {
            Loop::Closed { connections } => Some(f64::from(connections)),
            Loop::Open { .. } => None,
        }
    }

    /// In a closed loop who does not wait at the first queue is elsewhere. That queue is read far more often than sockets are sampled: where more waited in it at the
    /// moments of the samples than on average, fewer stood at the other places then, and they are counted up by as many (a regression estimate of slope -1;
    /// Cochran, Sampling Techniques, 7.3). What the samples themselves do not account for stays as it is. In an open loop nobody knows how many requests were under way
    /// when the queue alone was read: the samples tell it.
    fn fit(&self, counts: &mut [Counts], queued: &mut [f64]) {
        let (Some(first), Some(queue)) = (counts.first(), queued.first_mut()) else { return };
        if self.connections().is_none() {
            *queue = first.unaccepted;
            return;
        }
        let others = standing(first) + first.undecided;
        if others > 0.0 {
            let fitted = (others + first.unaccepted - *queue).max(0.0) / others;
            counts.iter_mut().for_each(|counts| counts.count_up(fitted));
        }
    }

    /// What each tier holds itself: its requests in service less what stands on its edges, never below zero. What cannot be told to be a request is given
    /// up first where the edges have more than the listener: an idle connection behind, then one in front, whose request the edge proves.
    fn hold(&self, counts: &mut [Counts], queued: &[f64]) -> Vec<f64> {
        let mut held = vec![0.0; counts.len()];
        for tier in 0..counts.len() {
            let behind: Vec<usize> = (0..counts.len()).filter(|other| self.callers[*other] == Some(tier)).collect();
            let certain: f64 = behind.iter().map(|other| standing(&counts[*other]) + queued[*other]).sum();
            let unsure: f64 = behind.iter().map(|other| counts[*other].undecided).sum();
            let service = counts[tier].service;
            // Of those behind that may be idle, no more than requests in front are left for.
            let room = (service - certain).max(0.0);
            if unsure > room {
                behind.iter().for_each(|other| counts[*other].undecided *= room / unsure);
            }
            let edges = certain + unsure.min(room);
            counts[tier].undecided = (counts[tier].undecided - (edges - service).max(0.0)).max(0.0);
            held[tier] = (service - edges).max(0.0);
        }
        held
    }
}

/// Answers that the client has not read: no more than stand nowhere else, however many come in while its sockets are read one after the other.
fn at_client(first: &mut Counts, queued: f64, under_way: Option<f64>) -> f64 {
    let most = under_way.map_or(f64::INFINITY, |all| (all - standing(first) - queued).max(0.0));
    unread_by_client(first).min(most)
}

/// Answers that the client has not read. What the server still sends is not yet the client's own. The two ends of a connection are seen at different moments, each
/// when its reader has a core and the process that it looks at has none: of those that both sides keep, no more wait at the client than have no request at the server.
/// Of those that might have one as many have none as the client has answers of.
fn unread_by_client(first: &mut Counts) -> f64 {
    let closed = first.client - first.client_kept;
    let sent = (first.client - first.sending).max(0.0);
    if standing(first) + first.idle + first.undecided == 0.0 {
        return sent;
    }
    let idle = closed + first.idle + first.streaming;
    let unread = sent.min(idle + first.undecided);
    first.undecided -= (unread - idle).max(0.0);
    unread
}

/// Where the client's own end was seen, no more last segments of answers are on their way than it still waits for: the others have arrived, and their acknowledgement is
/// delayed until the next request.
fn bound_answers(first: &mut Counts) {
    if first.asking > 0.0 {
        let elsewhere = standing(first) - first.sending + first.unaccepted + first.client;
        let on_their_way = (first.asking - elsewhere).max(0.0);
        let arrived = (first.sending - on_their_way).clamp(0.0, first.last_segment);
        first.sending -= arrived;
        // Nothing is left to do for it at the server; whether the client has read it its own end tells.
        first.idle += arrived;
    }
}

/// Requests at a tier and behind it that are known to be under way, without its accept queue.
pub(super) fn standing(counts: &Counts) -> f64 {
    counts.connecting + counts.handshake + counts.tls_handshake + counts.unread + counts.receiving + counts.service + counts.sending
}
