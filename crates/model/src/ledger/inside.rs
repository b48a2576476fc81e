//! Requests that a tier holds without computing and without a visible wait, and the evidence that they wait for each other there.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::{Endpoint, Tier};
use crate::facts::pool::Pool;
use crate::facts::pool::awaited::Awaited;
use crate::facts::suffered::WAKES_US;
use crate::observation::load::INITIAL_RTO_US;
use crate::observation::{NetnsId, NetnsView, RequestSocket, TcpState};
use crate::output::report::LedgerPlaceKind as Place;

use super::calls::Calls;
use super::connections::path_end;
use super::count::Counts;
use super::held_up::HeldUp;
use super::thread_split::ThreadShares;
use super::varying::{Levels, Varying};
use super::{Account, Mean, PlaceMean, SlowerThanPeers, sum_of, times_own};

/// Fewest response times over which the number of requests says that they do not wait for each other. Of those that wait for one place, as many come as are answered, and the
/// number walks at random: in `n` response times of `N` requests each by the root of `n N` or more, which varies its mean `N` by a sixth of `n N` within them. That is
/// beyond what chance allows independent requests (97.5 %) from twelve on.
const INDEPENDENT_MIN: usize = 12;

/// Requests inside one tier.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inside {
    /// Index of the tier.
    pub(crate) tier: usize,
    /// Requests that it holds, other than those on a CPU, ready, throttled, or on its connections to others; with those of `unread`.
    pub(crate) mean: Mean,
    /// The part of them that it has not read, though its threads had time to.
    pub(crate) unread: f64,
    /// Evidence that they wait for each other.
    pub(crate) evidence: Option<WaitEvidence>,
}

/// Evidence that requests wait for each other, or longer than they need to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WaitEvidence {
    /// Each request takes longer there than at the servers beside it that do the same.
    SlowerThanPeers(SlowerThanPeers),
    /// All connections of the tier to one address are always in use.
    FullCalls(Calls),
    /// Answers take longer under load than alone. At most this many requests would be under way without a queue.
    SlowerThanAlone(f64),
    /// Each request takes longer the more of them there are.
    Grows(Levels),
    /// Their threads were found waiting for a lock that another process or thread holds, for what takes no time while all is well, or for anything at all where one thread
    /// serves all of them.
    Seen,
    /// They stand unread while no thread of the tier runs.
    HeldUp(HeldUp),
}

impl WaitEvidence {
    /// True if it does not say what the requests wait for.
    pub(crate) fn leaves_open(&self) -> bool {
        matches!(self, Self::SlowerThanAlone(_) | Self::Grows(_) | Self::Seen | Self::HeldUp(_))
    }
}

/// True if everything was read that would show a pool: all sockets, system calls, and what each process is and used.
fn is_seen_whole(ctx: &Context<'_>, tier: &Tier) -> bool {
    let has_sockets = ctx.obs.netns.get(&tier.netns).is_some_and(|view| ctx.in_window(&view.sockets).count() > 0);
    let is_read = |pid: &u32| {
        let process = ctx.obs.processes.get(pid);
        process.is_some_and(|process| process.identity.last().is_some() && process.cpu.last().is_some() && process.syscall.last().is_some())
    };
    has_sockets && !tier.pids.is_empty() && tier.pids.iter().all(is_read)
}

impl Account {
    /// Mean number of requests under way: as counted or as found, whichever is more.
    pub(crate) fn under_way(&self) -> f64 {
        self.under_way
    }

    /// Mean number of requests of other clients than the load, and all requests as a multiple of the load's own. `None` without load or others.
    pub(crate) fn others(&self) -> Option<(f64, f64)> {
        let times = times_own(self.offered, self.under_way);
        (times > 1.0).then(|| (self.under_way - self.under_way / times, times))
    }

    /// Requests a second. `None` if unknown.
    pub(crate) fn rate_rps(&self) -> Option<f64> {
        self.rate_rps
    }

    /// Mean time of a request, seconds. `None` if the rate is unknown.
    pub(crate) fn response_s(&self) -> Option<f64> {
        self.response_s
    }

    /// For each sample its time, the requests that a tier had read and not answered, and those that it had not read. At the first tier a load knows how many requests of
    /// those that nothing else decides are under way.
    pub(crate) fn served_and_unread(&self, tier: &Tier) -> Vec<(u64, f64, f64)> {
        let samples = self.counted.samples.get(&tier.netns).into_iter().flatten();
        let decided = |at_us: u64, of: &Counts| {
            let under_way = self.counted.under_way_at(tier.netns, at_us).filter(|_| tier.id.0 == 0)?;
            Some((under_way - of.known_requests() - of.unaccepted - of.client.max(of.at_client)).clamp(0.0, of.undecided))
        };
        let of_tier = samples.filter_map(|(at_us, counts)| Some((*at_us, counts.get(tier.id.0)?)));
        of_tier.map(|(at_us, of)| (at_us, of.service + decided(at_us, of).unwrap_or(0.0), of.unread)).collect()
    }

    /// For each sample the number of a tier's accepted connections on which nothing was asked.
    pub(crate) fn idle(&self, tier: &Tier) -> Vec<f64> {
        let samples = self.counted.samples.get(&tier.netns).into_iter().flatten();
        samples.filter_map(|(_, counts)| counts.get(tier.id.0)).map(|counts| counts.idle).collect()
    }

    /// Mean number of a tier's accepted connections on which it sends without being asked again, short messages: events.
    pub(crate) fn streaming(&self, tier: &Tier) -> f64 {
        self.mean_of(tier, |counts| counts.streaming)
    }

    /// Mean number of a tier's accepted connections whose responses leave in long pieces, with pauses.
    pub(crate) fn in_pieces(&self, tier: &Tier) -> f64 {
        self.mean_of(tier, |counts| counts.in_pieces)
    }

    fn mean_of(&self, tier: &Tier, of: impl Fn(&Counts) -> f64) -> f64 {
        let samples = self.counted.samples.get(&tier.netns).into_iter().flatten();
        let of_tier: Vec<f64> = samples.filter_map(|(_, counts)| counts.get(tier.id.0)).map(of).collect();
        of_tier.iter().sum::<f64>() / of_tier.len().max(1) as f64
    }

    /// Requests inside a tier, whatever the reason.
    pub(crate) fn inside(&self, tier: usize) -> Mean {
        let (value, batches) = self.stood_inside(tier, 0.0);
        Mean::of(value, &batches)
    }

    /// The same, and in each batch, with this share of those that are not read.
    fn stood_inside(&self, tier: usize, of_unread: f64) -> (f64, Vec<f64>) {
        let elsewhere = |span_us| -> f64 {
            let calls = self.counted.calls.iter().filter(|calls| calls.tier == tier && calls.to.is_none());
            self.ratios[tier] * calls.map(|calls| calls.in_use(span_us)).sum::<f64>()
        };
        let at = |all: &[PlaceMean], place: Place| {
            all.iter().find(|stood| stood.tier == Some(tier) && stood.place == place).map_or(0.0, |stood| stood.mean)
        };
        let inside =
            |all: &[PlaceMean], span_us| (at(all, Place::Waiting) - elsewhere(span_us)).max(0.0) + of_unread * at(all, Place::Unread);
        let batches = self.parts.iter().zip(&self.spans_us).map(|(part, span_us)| inside(part, *span_us)).collect();
        (inside(&self.whole, (0, u64::MAX)), batches)
    }

    /// The share of the requests that a tier has not read which waits for something inside it: an event loop that is held up by a call which neither computes nor returns reads none
    /// meanwhile. Those before a thread that runs, or is ready to, wait for a core, and those before a pool whose threads are all taken for one of these.
    fn held_up(ctx: &Context<'_>, tier: &Tier) -> f64 {
        let threads = ThreadShares::of(ctx, tier);
        let may_be_pool = || Pool::of(ctx, tier).map_or_else(|| !is_seen_whole(ctx, tier), |pool| pool.is_full());
        if threads.shares.is_empty() || may_be_pool() {
            return 0.0;
        }
        (1.0 - threads.busiest() - threads.stopped).max(0.0)
    }

    /// Requests inside a tier as a share of all, whatever the reason.
    fn share_inside(&self, tier: usize, of_unread: f64) -> Mean {
        let (value, batches) = self.stood_inside(tier, of_unread);
        let share = |(number, part): (&f64, &Vec<PlaceMean>)| Some(number / sum_of(part)).filter(|share| share.is_finite());
        let shares: Vec<f64> = batches.iter().zip(&self.parts).filter_map(share).collect();
        Mean::of(value / self.sum.max(f64::MIN_POSITIVE), &shares)
    }

    /// Requests that would take as long as now even if nothing held them back at a tier and at the tiers that call it: at the client; at the other tiers those
    /// that compute or wait for something invisible; at the tier itself and its callers those that compute. Requests in a queue, ready for a core, or leaving
    /// to a slow reader could move faster as well.
    pub(crate) fn remaining_without(&self, ctx: &Context<'_>, tier: usize) -> Mean {
        let tiers = &ctx.path.tiers;
        let is_near = |other: usize| other == tier || ctx.behind(&tiers[other]).iter().any(|behind| std::ptr::eq(*behind, &tiers[tier]));
        let near: Vec<bool> = (0..tiers.len()).map(is_near).collect();
        let stays = |stood: &PlaceMean| match stood.tier {
            None => true,
            Some(tier) if near[tier] => stood.place == Place::Cpu,
            Some(_) => matches!(stood.place, Place::Cpu | Place::Waiting),
        };
        let mean = |all: &[PlaceMean]| all.iter().filter(|stood| stays(stood)).map(|stood| stood.mean).sum::<f64>();
        Mean::of(mean(&self.whole), &self.parts.iter().map(|part| mean(part)).collect::<Vec<_>>())
    }

    /// The tier that surely has most of all requests inside it, and more than one. `None` if there is none, or if its connections are multiplexed, so that the
    /// number inside is unknown, or if it is not known which processes it has: then requests of theirs may as well compute, or wait for another server.
    pub(crate) fn most_inside(&self, ctx: &Context<'_>) -> Option<Inside> {
        let tiers = ctx.path.tiers.len();
        let of_tier = |tier| {
            let of_unread = Self::held_up(ctx, &ctx.path.tiers[tier]);
            let (value, batches) = self.stood_inside(tier, of_unread);
            let inside = Inside { tier, mean: Mean::of(value, &batches), unread: of_unread * self.unread_at(tier), evidence: None };
            (inside, of_unread)
        };
        let (mut inside, of_unread) = (0..tiers).map(of_tier).max_by(|(a, _), (b, _)| a.mean.low.total_cmp(&b.mean.low))?;
        if !ctx.path.tiers[inside.tier].is_known() {
            return None;
        }
        let multiplexed = self.counted.means_uncorrected(tiers)[inside.tier].multiplexed;
        // Where the number of requests changes, their share at a place is surer than their number there. Threads that were seen to wait for a lock, or for what takes no time while
        // all is well, leave nothing to chance.
        let surely = inside.mean.low.max(self.share_inside(inside.tier, of_unread).low * inside.mean.value);
        let are_most = |number: f64| number - multiplexed > (0.5 * self.under_way()).max(1.0);
        let is_fault = || Awaited::of(ctx, &ctx.path.tiers[inside.tier], inside.mean.value).is_some_and(|awaited| awaited.is_fault());
        let is_sure = are_most(surely) || are_most(inside.mean.value) && is_fault();
        if !is_sure {
            return None;
        }
        inside.evidence = self.evidence(ctx, &inside);
        Some(inside)
    }

    /// Evidence that the requests inside a tier wait for each other, and that their clients wait for them.
    fn evidence(&self, ctx: &Context<'_>, inside: &Inside) -> Option<WaitEvidence> {
        match &ctx.obs.load {
            // The offered rate was met: nothing held requests back.
            Some(load) if !load.wants_more() => return None,
            None => {
                let awaited = Awaited::of(ctx, &ctx.path.tiers[inside.tier], inside.mean.value);
                // Whoever waits for a lock waits for another request, at whatever pace clients ask.
                let clients_wait = self.clients_wait(ctx);
                if awaited.is_some_and(|awaited| awaited.is_lock() || clients_wait && (awaited.is_fault() || awaited.holds_up)) {
                    return Some(WaitEvidence::Seen);
                }
                if clients_wait && let Some(held_up) = self.loop_is_held_up(ctx, inside) {
                    return Some(WaitEvidence::HeldUp(held_up));
                }
                if !clients_wait {
                    // Whoever keeps a pace of his own does not wait, but requests that take longer the more of them there are do.
                    return self.varying(ctx).growing_to_the_end().map(WaitEvidence::Grows);
                }
            }
            Some(_) => {}
        }
        if let Some(slower) = self.slower_than_peers(ctx, inside.tier) {
            return Some(WaitEvidence::SlowerThanPeers(slower));
        }
        self.beyond_alone(ctx, inside).or_else(|| {
            // What takes no time while all is well costs a single request as much.
            let awaited = Awaited::of(ctx, &ctx.path.tiers[inside.tier], inside.mean.value).filter(|_| ctx.obs.load.is_some());
            awaited.filter(Awaited::is_fault).map(|_| WaitEvidence::Seen)
        })
    }

    /// Evidence that requests take longer than they need to: than a single one took, or than where fewer stand there.
    fn beyond_alone(&self, ctx: &Context<'_>, inside: &Inside) -> Option<WaitEvidence> {
        if let Some(alone) = self.alone(ctx) {
            if inside.mean.low - alone <= 0.5 * self.under_way() {
                return None;
            }
            return Some(self.saturated_calls(ctx, inside.tier).map_or(WaitEvidence::SlowerThanAlone(alone), WaitEvidence::FullCalls));
        }
        if let Some(calls) = self.saturated_calls(ctx, inside.tier) {
            return Some(WaitEvidence::FullCalls(calls));
        }
        self.varying(ctx).growing().map(WaitEvidence::Grows)
    }

    /// What shows that the requests of a tier stand unread for as long as it hurts while none of its threads runs.
    fn loop_is_held_up(&self, ctx: &Context<'_>, inside: &Inside) -> Option<HeldUp> {
        // Before a pool whose threads are all taken, none of them is counted as inside.
        if inside.unread <= 0.0 {
            return None;
        }
        let held_up = HeldUp::of(ctx, &ctx.path.tiers[inside.tier])?;
        Cost::of_time(held_up.surely()).hurts().then_some(held_up)
    }

    /// Upper bound of the requests under way if each took as long as a single one (Little's law). `None` if that was not measured.
    pub(crate) fn alone(&self, ctx: &Context<'_>) -> Option<f64> {
        let (alone_us, _) = ctx.answer_us()?;
        let wakes_us = WAKES_US * ctx.path.tiers.len() as f64;
        Some(self.rate_rps? * (alone_us + wakes_us) / 1e6)
    }

    /// The connections of a tier to one address that are always in use and that its requests need: to a tier on the path, or to a server that sends at least
    /// one segment for each request. Fewer than the requests, or each has one; and each was answered since, or what holds them is no request that others wait behind.
    fn saturated_calls(&self, ctx: &Context<'_>, tier: usize) -> Option<Calls> {
        let ended = self.rate_rps.map(|rate| rate * ctx.seconds());
        let passes = |calls: &Calls, share: f64| ended.is_some_and(|ended| calls.answered as f64 >= share * ended);
        let requests = self.under_way().max(self.at_tier(tier, true));
        let are_waited_for = |calls: &Calls| calls.usual() < requests && calls.answered as f64 >= calls.usual();
        let own = || self.counted.calls.iter().filter(|calls| calls.tier == tier && are_waited_for(calls));
        let full = own().filter(|calls| calls.are_all_in_use() && (calls.to.is_some() || passes(calls, 1.0)));
        let full = full.max_by(|a, b| a.usual().total_cmp(&b.usual()));
        // Of several that are in use one may wait for hours, for a message that it subscribed to.
        let at_once = || own().filter(|calls| calls.at_once().is_some() && passes(calls, 0.5));
        full.or_else(|| at_once().max_by_key(|calls| calls.answered)).cloned()
    }

    /// The calls of all tiers, by address.
    pub(crate) fn calls(&self) -> &[Calls] {
        &self.counted.calls
    }

    /// The connections of a tier to an address.
    pub(crate) fn calls_to(&self, tier: usize, (ip, port): Endpoint) -> Option<&Calls> {
        let is_it = |calls: &&Calls| calls.tier == tier && (calls.remote.0.to_canonical(), calls.remote.1) == (ip.to_canonical(), port);
        self.counted.calls.iter().find(is_it)
    }

    /// Mean number of a tier's calls that wait for an answer, to all addresses.
    pub(crate) fn calls_in_use(&self, ctx: &Context<'_>, tier: usize) -> f64 {
        self.counted.calls.iter().filter(|calls| calls.tier == tier).map(|calls| calls.in_use(ctx.window_us)).sum()
    }

    /// Mean number of requests at the first tier and behind it, and of its idle connections.
    pub(crate) fn clients(&self, ctx: &Context<'_>) -> (f64, f64) {
        let first = self.counted.means_uncorrected(ctx.path.tiers.len()).first().copied().unwrap_or_default();
        (first.known_requests() + first.undecided + first.unaccepted, first.idle)
    }

    /// True if most of the clients' connections have a request under way.
    pub(crate) fn clients_wait(&self, ctx: &Context<'_>) -> bool {
        let (under_way, idle) = self.clients(ctx);
        under_way > idle
    }

    /// Mean number of requests at places of these kinds.
    pub(crate) fn at(&self, is_there: fn(Place) -> bool) -> f64 {
        self.whole.iter().filter(|stood| is_there(stood.place)).map(|stood| stood.mean).sum()
    }

    /// Mean number of requests at places of these kinds of one tier.
    pub(crate) fn at_places(&self, tier: usize, is_there: fn(Place) -> bool) -> f64 {
        self.whole.iter().filter(|stood| stood.tier == Some(tier) && is_there(stood.place)).map(|stood| stood.mean).sum()
    }

    /// Mean number of requests that stand at a tier: before it, inside it, or on their way from it. `undecided`: with those that may be there.
    pub(crate) fn at_tier(&self, tier: usize, undecided: bool) -> f64 {
        let there = self.whole.iter().filter(|stood| stood.tier == Some(tier) && (undecided || stood.place != Place::Undecided));
        there.map(|stood| stood.mean).sum()
    }

    /// True if most requests at a tier are on a core or ready for one.
    pub(crate) fn is_mostly_at_cores(&self, tier: usize) -> bool {
        let at_cores = self.whole.iter().filter(|stood| stood.tier == Some(tier) && matches!(stood.place, Place::Cpu | Place::Ready));
        at_cores.map(|stood| stood.mean).sum::<f64>() >= 0.5 * self.at_tier(tier, true)
    }

    /// Mean number of requests that came to a tier and were not read.
    pub(crate) fn unread_at(&self, tier: usize) -> f64 {
        self.whole.iter().filter(|stood| stood.tier == Some(tier) && stood.place == Place::Unread).map(|stood| stood.mean).sum()
    }

    /// Mean number of requests that wait until a tier's threads have time for them.
    pub(crate) fn waits_for_threads(&self, tier: usize) -> f64 {
        let waits = |stood: &&PlaceMean| {
            stood.tier == Some(tier) && matches!(stood.place, Place::AcceptQueue | Place::TlsHandshake | Place::Unread | Place::Ready)
        };
        self.whole.iter().filter(waits).map(|stood| stood.mean).sum()
    }

    /// Mean number of requests that stand at a tier without being worked on: for a worker, or for what it waits for.
    pub(crate) fn standing(&self, tier: usize) -> f64 {
        self.at_places(tier, |place| matches!(place, Place::AcceptQueue | Place::Unread | Place::Waiting))
    }

    /// Mean number of requests that wait for a core or are on one at these tiers, if whatever is not accepted or not read waits for that too.
    pub(crate) fn before_cores(&self, is_full: impl Fn(usize) -> bool) -> f64 {
        let waits = |place: Place| matches!(place, Place::AcceptQueue | Place::Unread | Place::Cpu | Place::Ready);
        let there = self.whole.iter().filter(|stood| waits(stood.place) && stood.tier.is_some_and(&is_full));
        there.map(|stood| stood.mean).sum()
    }

    /// Mean number of requests at places that are no fault of a server while no station is at its limit: on cores or ready for one, in transit, at the client.
    /// Unread and unaccepted requests wait for the cores as far as the tier's busiest thread runs or is ready. A handshake waits for the client. Connecting
    /// takes as long as the network path unless SYNs are lost.
    pub(crate) fn well_spent(&self, ctx: &Context<'_>) -> f64 {
        let busiest: Vec<f64> = ctx.path.tiers.iter().map(|tier| ThreadShares::of(ctx, tier).busiest()).collect();
        let are_lost = syns_are_lost(ctx);
        let part = |stood: &PlaceMean| match stood.place {
            Place::Cpu | Place::Ready | Place::Sending | Place::Receiving | Place::TlsHandshake | Place::Handshake | Place::Client => 1.0,
            Place::Unread | Place::AcceptQueue => stood.tier.map_or(0.0, |tier| busiest[tier]),
            Place::Connecting => f64::from(u8::from(!are_lost)),
            Place::Throttled | Place::Waiting | Place::Undecided => 0.0,
        };
        self.whole.iter().map(|stood| part(stood) * stood.mean).sum()
    }

    /// Mean number of requests under way that sockets show, with its interval.
    pub(crate) fn found_under_way(&self) -> Mean {
        let sums: Vec<f64> = self.parts.iter().map(|part| sum_of(part)).collect();
        Mean::of(self.sum, &sums)
    }

    /// Connections of the first tier with an unknown number of requests.
    pub(crate) fn uncertain(&self, ctx: &Context<'_>) -> f64 {
        let first = self.counted.means_uncorrected(ctx.path.tiers.len()).first().copied().unwrap_or_default();
        first.streaming + first.multiplexed + first.undecided
    }

    /// How the requests under way and their times varied over the samples.
    pub(crate) fn varying(&self, ctx: &Context<'_>) -> Varying {
        Varying::of(self, ctx)
    }

    /// The counts of the first tier in each sample.
    pub(super) fn first_tier_samples(&self, ctx: &Context<'_>) -> Vec<(u64, Counts)> {
        let samples = ctx.path.tiers.first().and_then(|first| self.counted.samples.get(&first.netns));
        samples.into_iter().flatten().filter_map(|(at_us, counts)| Some((*at_us, *counts.first()?))).collect()
    }

    /// True if the number of requests under way at the first tier varies like independent arrivals: no client waits for an answer before it asks again, and no
    /// request waits for another. So do those that are known and those that may be there: what is known of a number that never changes varies as well.
    pub(crate) fn arrives_independently(&self, ctx: &Context<'_>) -> bool {
        let samples = self.first_tier_samples(ctx);
        let sum = |of: fn(&Counts) -> f64| samples.iter().map(|(_, counts)| of(counts)).sum::<f64>();
        let age_ms = sum(|counts| counts.age_ms) / sum(|counts| counts.service).max(1e-9);
        // Samples one response time apart see different requests. Twice the mean age is at least that.
        let apart_us = (2e3 * age_ms) as u64;
        let mut next_us = 0;
        let (mut known, mut at_most) = (Vec::new(), Vec::new());
        for (at_us, counts) in samples {
            if at_us >= next_us {
                known.push(counts.known_requests() + counts.unaccepted);
                at_most.push(counts.known_requests() + counts.unaccepted + counts.undecided);
                next_us = at_us + apart_us;
            }
        }
        // Where half of the samples have as many as any, these are all that ask, and the others are those that pause.
        let varying = self.varying(ctx);
        let pausing_share = varying.pausing_share();
        known.len() >= INDEPENDENT_MIN
            && !varying.stays_at_most()
            && is_by_chance(&known, pausing_share)
            && is_by_chance(&at_most, pausing_share)
    }

    /// The tier's connections to one server outside the path on which most requests wait.
    pub(crate) fn elsewhere(&self, tier: usize) -> Option<&Calls> {
        let away = self.counted.calls.iter().filter(|calls| calls.tier == tier && calls.to.is_none());
        away.max_by(|a, b| a.in_use((0, u64::MAX)).total_cmp(&b.in_use((0, u64::MAX))))
    }
}

/// True if the client or a tier retransmitted so many SYNs that loss, not distance, makes connecting slow.
fn syns_are_lost(ctx: &Context<'_>) -> bool {
    ctx.netns_on_path().into_iter().any(|(id, view)| {
        let counted = |name| ctx.netstat_growth(view, name).unwrap_or(0);
        let are_lost = Cost::of_requests(counted("TcpExt.TCPSynRetrans"), counted("Tcp.ActiveOpens")).hurts();
        // The namespace counts those of other programs, too.
        are_lost && (ctx.others(id).made_none() || tried_again(ctx, id, view))
    })
}

/// True if a connection to the path was seen to wait for an answer to its SYN until the next try or longer.
fn tried_again(ctx: &Context<'_>, id: NetnsId, view: &NetnsView) -> bool {
    let mut since: BTreeMap<u64, u64> = BTreeMap::new();
    let waits = |socket: &&RequestSocket| socket.state == TcpState::SynSent && path_end(ctx, id, &socket.address).is_some();
    let mut seen =
        ctx.in_window(&view.request_samples).flat_map(|(at_us, sample)| sample.sockets.iter().map(move |socket| (*at_us, socket)));
    seen.any(|(at_us, socket)| waits(&socket) && at_us >= *since.entry(socket.cookie).or_insert(at_us) + INITIAL_RTO_US)
}

/// True if the numbers vary like a Poisson process: the sum of squares over their mean is within the middle 95 % of its distribution (the index of dispersion,
/// R. A. Fisher 1922), by Wilson and Hilferty's approximation of chi-square (1931). And they vary more than those of clients who wait for answers and pause for this share of
/// their time, whose variance is that share of the mean (a binomial distribution). Few numbers cannot tell the two apart, and a single one tells nothing of the others: as where
/// clients began a moment ago.
fn is_by_chance(numbers: &[f64], pausing_share: f64) -> bool {
    /// The 97.5 % and 99.9 % quantiles of the normal distribution.
    const Z: f64 = 1.959_964;
    const Z_RARE: f64 = 3.090_232;
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count.max(1.0);
    if count < 3.0 || mean <= 0.0 {
        return false;
    }
    let quantile = |freedom: f64, z: f64| {
        let spread = 2.0 / (9.0 * freedom);
        freedom * (1.0 - spread + z * spread.sqrt()).max(0.0).powi(3)
    };
    let distance = |number: &&f64| (*number - mean).abs();
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    let least = quantile(count - 1.0, -Z).max(pausing_share * quantile(count - 1.0, Z));
    // With too few numbers even equal ones may be chance.
    let varies = quantile(count - 1.0, -Z) > 0.0 && (least..=quantile(count - 1.0, Z)).contains(&(squares / mean));
    let farthest = numbers.iter().max_by(|a, b| distance(a).total_cmp(&distance(b))).copied().unwrap_or(mean);
    let squares_without = squares - count / (count - 1.0) * (farthest - mean).powi(2);
    let mean_without = (count * mean - farthest) / (count - 1.0);
    varies && squares_without >= mean_without * quantile(count - 2.0, -Z_RARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_hardly_vary_but_for_one_are_not_by_chance() {
        // Clients in a closed loop of a hundred, the first sample before all had come.
        let crowd = [76.0, 99.0, 100.0, 100.0, 100.0, 100.0, 100.0, 99.0, 99.0, 100.0, 99.0, 99.0];
        assert!(!is_by_chance(&crowd, 0.005));
        // Drawn from a Poisson distribution of mean ten.
        let drawn = [9.0, 14.0, 7.0, 11.0, 10.0, 8.0, 13.0, 5.0, 12.0, 10.0, 9.0, 11.0];
        assert!(is_by_chance(&drawn, 0.005));
        assert!(!is_by_chance(&[10.0; 12], 0.005) && !is_by_chance(&[0.0; 12], 0.0) && !is_by_chance(&[], 0.0));
        assert!(!is_by_chance(&[2.0, 40.0, 3.0, 41.0, 1.0, 38.0, 2.0, 39.0, 3.0, 44.0, 1.0, 40.0], 0.0), "far more than chance");
    }
}
