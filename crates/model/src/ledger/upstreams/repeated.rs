//! Calls that are made again because the ones before them failed: how often a tier asks the servers behind it for each of its own requests, and how many of these calls end with an error, or
//! with no answer at all.

mod given_up;
mod opened;

use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::path::Tier;
use crate::facts::traffic::Statuses;
use crate::facts::traffic::errors::ServerErrors;
use crate::facts::traffic::on_wire::Answered;
use crate::facts::{Context, GOOD_MIN, Logged};
use crate::ledger::{Calls, tenths};
use crate::observation::LogEvent;
use crate::output::message::Message;

use super::{siblings, silent, unreached};

/// How many times as many responses of one server as of another may be read on the wire in the same time, where both sent as many: with five calls for each request, 5.4 to 5.6 were read.
const READ_TIMES: f64 = 1.25;
/// The same where the requests were not counted in the same packets as the calls: the wire is read in parts of the time.
const APART_TIMES: f64 = 1.5;

/// The calls of a tier to servers that do the same work, for each of its requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repeated {
    /// Index of the tier that asks.
    pub(crate) caller: usize,
    /// Indices of the tiers that are asked, in the order of the path.
    pub(crate) asked: Vec<usize>,
    /// How most of the failed calls fail.
    pub(crate) how: Failing,
    /// Number of failed calls that were seen or counted.
    pub(crate) seen: u64,
    /// What the caller's log says of the calls that it gave up, where it says more than samples do.
    pub(crate) logged: Option<Logged>,
    /// True if requests and calls were counted in the same packets, or by a load.
    pub(crate) is_sure: bool,
    /// Share of the requests' time that passes in calls that fail.
    pub(crate) lost_time: f64,
    /// Mean number of calls that wait for an answer.
    in_use: f64,
    per_request: PerRequest,
}

/// How calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failing {
    /// The answer is an error.
    Error,
    /// The caller closes the connection before the answer.
    GivenUp,
    /// The connection ends without an answer; who ended it is not known.
    Unanswered,
}

/// What is known of the calls of one tier to servers that do the same, for each request.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerRequest {
    /// Answers that are no failure, and those that are. `None` if no answer was read.
    answered: Option<(f64, f64)>,
    /// Calls that the caller gave up, at least.
    given_up: f64,
    /// Connections opened. `None` if it is not known.
    opened: Option<f64>,
    /// Share of the requests that failed in front.
    failed: f64,
    /// How many times as many as counted there may be for the way of counting.
    times: f64,
}

impl PerRequest {
    fn bad(&self) -> f64 {
        self.answered.map_or(0.0, |(_, bad)| bad)
    }

    /// Calls answered, whether or not somebody still waited for the answer.
    fn all_answered(&self) -> f64 {
        self.answered.map_or(0.0, |(good, bad)| good + bad)
    }

    /// Good answers that came in time, at least: each call that was given up may have been answered later. A request that succeeds got one.
    fn good(&self) -> f64 {
        self.answered.map_or(0.0, |(good, _)| (good - self.given_up).max(1.0 - self.failed).clamp(0.0, good.max(0.0)))
    }

    /// Calls without an answer, at least. A connection that was opened and carried no answer is one.
    fn unanswered(&self) -> f64 {
        let empty = self.opened.filter(|_| self.answered.is_some()).map_or(0.0, |opened| opened - self.all_answered());
        self.given_up.max(empty)
    }

    fn failed_calls(&self) -> f64 {
        self.unanswered() + self.bad()
    }

    /// Calls, at least.
    fn calls(&self) -> f64 {
        self.good() + self.failed_calls()
    }

    /// Share of the calls that fail.
    fn failing(&self) -> f64 {
        if self.calls() > 0.0 { self.failed_calls() / self.calls() } else { 0.0 }
    }

    fn how(&self) -> Failing {
        match (self.unanswered() > self.bad(), 2.0 * self.given_up >= self.unanswered()) {
            (false, _) => Failing::Error,
            (true, true) => Failing::GivenUp,
            (true, false) => Failing::Unanswered,
        }
    }

    /// True if calls were made for the same request after one that failed. A failed call that ends its request is the last one, and one that its caller does without is followed by none.
    /// A request that asks several things gets several answers: there, failed calls must be most of all.
    fn are_repeated(&self) -> bool {
        let are_followed = self.failed_calls() >= self.times * (self.failed + NOISE_SHARE);
        let asks_several = self.good() > self.times;
        are_followed && self.calls() >= self.times * self.good().max(1.0) && (!asks_several || 2.0 * self.failing() > 1.0)
    }
}

impl Repeated {
    /// True if the repetition is what to look at first: no other reading says why the calls fail, and those that are asked would keep up if each request asked once.
    pub(crate) fn is_told(&self, ctx: &Context<'_>) -> bool {
        match self.how {
            Failing::Error => !self.are_errors_told(ctx),
            Failing::GivenUp => self.per_request.all_answered() >= 1.0,
            Failing::Unanswered => !self.waits_are_told(ctx),
        }
    }

    /// True if requests are told to wait inside one of the servers that are asked, or to get no answer there.
    fn waits_are_told(&self, ctx: &Context<'_>) -> bool {
        let inside = ctx.account().and_then(|account| account.most_inside(ctx)).filter(|inside| inside.evidence.is_some());
        let waited_for = inside.map(|inside| inside.tier).into_iter().chain(silent(ctx).map(|silent| silent.tier));
        waited_for.into_iter().any(|tier| self.asked.contains(&tier))
    }

    /// True if the errors of the servers that are asked are told as theirs.
    pub(crate) fn are_errors_told(&self, ctx: &Context<'_>) -> bool {
        ServerErrors::of(ctx).is_some_and(|errors| self.asked.contains(&errors.tier.id.0))
    }

    /// A message with the numbers of the calls.
    pub(crate) fn args(&self, ctx: &Context<'_>, id: &'static str) -> Message {
        let kind = match self.how {
            Failing::Error => "error",
            Failing::GivenUp => "given-up",
            Failing::Unanswered => "unanswered",
        };
        let mut names: Vec<&str> = self.asked.iter().map(|tier| ctx.path.tiers[*tier].name.as_str()).collect();
        names.sort_unstable();
        let message = Message::new(id).with("tier", ctx.path.tiers[self.caller].name.as_str()).with("asked", names.join(", "));
        let of = self.per_request;
        let message = message.with("kind", kind).with("calls", tenths(of.calls())).with("failing", 100.0 * of.failing());
        let message = message.with("failed_calls", tenths(of.failed_calls())).with("answered", tenths(of.all_answered()));
        let message = message.with("opened", tenths(of.opened.unwrap_or(0.0))).with("bad", tenths(of.bad())).with("seen", self.seen);
        let under_way = ctx.account().map_or(0.0, |account| account.under_way());
        message.with("in_use", tenths(self.in_use)).with("under_way", tenths(under_way))
    }
}

/// The repeated calls of all tiers that cost the requests time.
pub(crate) fn repeated(ctx: &Context<'_>) -> Vec<Repeated> {
    let groups = ctx.path.tiers.iter().flat_map(|caller| groups(ctx, caller).into_iter().map(move |group| (caller, group)));
    let found: Vec<Repeated> = groups.filter_map(|(caller, group)| of(ctx, caller, &group)).collect();
    // Connections that do not come about carry no answer, and are told as such.
    let unreached = if found.is_empty() { Vec::new() } else { unreached(ctx) };
    found.into_iter().filter(|found| unreached.iter().all(|of| of.tier != found.caller)).collect()
}

/// Servers that do the same work, and whether their caller asks no others.
struct Group<'a> {
    asked: Vec<&'a Tier>,
    is_only: bool,
}

/// The servers that a tier asks and nobody else does, those of the same work together.
fn groups<'a>(ctx: &Context<'a>, caller: &Tier) -> Vec<Group<'a>> {
    let mut groups: Vec<Vec<&Tier>> = Vec::new();
    for tier in caller.upstreams.iter().filter_map(|index| ctx.path.tiers.get(*index)) {
        let is_known = groups.iter().flatten().any(|known| known.id == tier.id);
        if is_known || ctx.path.is_first(tier) || ctx.path.callers(tier.id).any(|other| other.id != caller.id) {
            continue;
        }
        let mut group = siblings(ctx, tier);
        group.push(tier);
        group.sort_by_key(|tier| tier.id);
        groups.push(group);
    }
    let all: usize = groups.iter().map(Vec::len).sum();
    let is_only = groups.len() == 1 && caller.upstreams.iter().filter(|index| **index != caller.id.0).count() == all;
    groups.into_iter().map(|asked| Group { asked, is_only }).collect()
}

fn of(ctx: &Context<'_>, caller: &Tier, group: &Group<'_>) -> Option<Repeated> {
    let (account, asked) = (ctx.account()?, group.asked.as_slice());
    let sampled = given_up::count(ctx, caller, asked);
    // A caller that writes of each call that took too long has counted all of them.
    let logged = ctx.logged(caller, &LogEvent::UpstreamTimedOut).filter(|logged| group.is_only && logged.count > sampled);
    let given_up = logged.as_ref().map_or(sampled, |logged| logged.count);
    let on_wire: Option<Vec<Answered>> =
        asked.iter().map(|tier| Answered::of(ctx, tier).or_else(|| Answered::none_of(ctx, tier))).collect();
    let bad: u64 = on_wire.iter().flatten().map(Answered::failures).sum();
    let requests = Requests::of(ctx, caller, asked)?;
    let rps = |count: &dyn Fn(&Answered) -> u64| {
        on_wire.iter().flatten().map(|seen| count(seen) as f64 / seen.seconds.max(1e-6)).sum::<f64>() / requests.beside_calls_rps
    };
    let per_request = PerRequest {
        answered: on_wire.as_ref().map(|_| (rps(&|seen| seen.all() - seen.failures()), rps(&Answered::failures))),
        given_up: given_up as f64 / ctx.seconds().max(1e-6) / requests.rps,
        opened: opened::rps(ctx, caller, asked).map(|opened| opened / requests.rps),
        failed: requests.failed,
        times: if requests.are_paired { READ_TIMES } else { APART_TIMES },
    };
    let is_its = |calls: &&Calls| calls.tier == caller.id.0 && asked.iter().any(|tier| Some(tier.id.0) == calls.to);
    let in_use: f64 = account.calls().iter().filter(is_its).map(|calls| calls.in_use(ctx.window_us)).sum();
    let under_way = account.under_way();
    // Calls of one request that stand beside each other are no repetitions.
    let are_in_turn = in_use <= READ_TIMES * under_way;
    let lost_time = (in_use / under_way.max(f64::MIN_POSITIVE)).min(1.0) * per_request.failing();
    let how = per_request.how();
    let empty = (per_request.unanswered() * requests.rps * ctx.seconds()) as u64;
    let seen = match how {
        Failing::Error => bad,
        Failing::GivenUp => given_up,
        Failing::Unanswered => empty,
    };
    let is_it = are_in_turn && seen >= GOOD_MIN && per_request.are_repeated() && Cost::of_time(lost_time).hurts();
    let (caller, asked) = (caller.id.0, asked.iter().map(|tier| tier.id.0).collect());
    let is_sure = requests.are_paired;
    let logged = logged.filter(|_| how == Failing::GivenUp);
    is_it.then_some(Repeated { caller, asked, how, seen, logged, is_sure, lost_time, in_use, per_request })
}

/// The requests of a tier that asks others.
struct Requests {
    /// Requests a second over all of the time.
    rps: f64,
    /// The same in the time in which the calls were counted.
    beside_calls_rps: f64,
    /// Share that fails; all, if it is not known.
    failed: f64,
    /// True if calls and requests were counted in the same packets.
    are_paired: bool,
}

impl Requests {
    /// `None` if it is not known how many there are.
    fn of(ctx: &Context<'_>, caller: &Tier, asked: &[&Tier]) -> Option<Self> {
        let is_first = ctx.path.is_first(caller);
        // Of a watched server's clients only those of new connections are sure: the others count here as well, for the requests must not be too few.
        let is_whole = !is_first || ctx.obs.load.is_some();
        let read = if is_whole { Answered::of(ctx, caller) } else { Answered::perhaps(ctx, caller) }.filter(|own| own.all() >= GOOD_MIN);
        let read_rps = read.as_ref().map(Answered::all_rps);
        let told_rps = ctx.account()?.rate_rps().filter(|_| is_first);
        let rps = told_rps.into_iter().chain(read_rps).reduce(f64::max).filter(|rps| *rps > 0.0)?;
        let beside_calls_rps = read_rps.filter(|_| is_whole).unwrap_or(rps);
        let on_wire = read.as_ref().map(|own| own.failures() as f64 / own.all().max(1) as f64);
        let failed = on_wire.into_iter().chain(failed_share(ctx).filter(|_| is_first)).reduce(f64::max).unwrap_or(1.0);
        let are_paired = is_whole && read.is_some() && asked.iter().all(|tier| tier.netns == caller.netns);
        Some(Self { rps, beside_calls_rps, failed, are_paired })
    }
}

/// The share of the clients' requests that fail.
fn failed_share(ctx: &Context<'_>) -> Option<f64> {
    let load = ctx.obs.load.as_ref().map(|load| load.ended_badly() as f64 / load.ended().max(1) as f64);
    load.or_else(|| Statuses::of(ctx).map(|statuses| statuses.failed() as f64 / statuses.requests.max(1) as f64))
}
