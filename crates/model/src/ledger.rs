//! The ledger: where the requests under way are on average. By Little's law the mean number of requests at a place is the client time spent there per second,
//! and its share of all requests is its share of the response time.
//!
//! It makes no verdict: station `waiting` judges by it, and `judge/watched.rs` interprets it for watched traffic.

mod account;
mod calls;
mod connection_state;
mod connections;
mod count;
mod held_up;
mod inside;
mod kept_unix;
mod losses;
mod pauses;
mod pieces;
mod rate;
mod rhythm;
mod sample_weights;
mod starved;
mod strangers;
#[cfg(test)]
mod tests;
mod thread_split;
mod upstreams;
mod varying;

use crate::facts::Context;
use crate::facts::spread::half_interval;
use crate::observation::DumpMoment;
use crate::observation::load::LoadResult;
use crate::output::message::Message;
use crate::output::report::{At, LedgerClient, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};

use account::{Accountant, PlaceMean};
pub(crate) use calls::{Calls, SAMPLES_MIN as STEADY_SAMPLES_MIN};
pub(crate) use connections::{is_left, path_end};
use count::SampleCounts;
pub(crate) use held_up::HeldUp;
pub(crate) use inside::{Inside, WaitEvidence};
pub(crate) use pauses::Pauses;
pub(crate) use starved::{Starved, starved};
pub(crate) use thread_split::ThreadShares;
pub(crate) use upstreams::{Failing, Repeated, Silent, SlowerThanPeers, Unreachable, Unreached, left_out, repeated, silent, unreached};
pub(crate) use varying::{CROWD_TIMES_MAX, HeldTogether, Levels, Varying};

/// Most batches that the window is divided into.
const BATCHES_MAX: u64 = 10;
/// Fewest samples of a batch.
const SAMPLES_MIN: u64 = 3;
/// Least length of a batch in response times: consecutive samples see the same requests.
const BATCH_TIMES_MIN: f64 = 10.0;
/// Most clients in the report.
const CLIENTS_MAX: usize = 32;
/// If there would be fewer batches than this, shorter batches are used, of at least one response time each: Student's t of one or two degrees of freedom says
/// nothing.
const BATCHES_MIN: u64 = 5;
/// Requests found beyond those of the load, as a share of these, from which they are those of other clients. The sum meets the clients' own count within 3 % in
/// most runs (DESIGN.md, "The ledger").
const OTHERS_MIN: f64 = 0.05;
/// Share of all requests from which a kind of uncertain connection is reported.
const TOLD_SHARE_MIN: f64 = 0.02;

/// The account of one observation.
pub(crate) struct Account {
    counted: SampleCounts,
    /// For the whole window, and for each batch of it.
    whole: Vec<PlaceMean>,
    parts: Vec<Vec<PlaceMean>>,
    /// For each batch the requests under way that were found at no place. Batches with an unknown number of requests under way are left out.
    missed: Vec<f64>,
    /// Correction factor of each tier's samples, see [`SampleCounts::ratio`].
    ratios: Vec<f64>,
    spans_us: Vec<(u64, u64)>,
    /// Mean number of requests under way: counted by the load generator, or the sum found by the sockets if that is more.
    under_way: f64,
    /// The part of it that the load generator counted. `None` without load.
    offered: Option<f64>,
    sum: f64,
    rate_rps: Option<f64>,
    response_s: Option<f64>,
}

/// A mean number of requests with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Mean {
    fn of(value: f64, batches: &[f64]) -> Self {
        let half = half_interval(batches).unwrap_or(f64::INFINITY);
        Self { value, low: (value - half).max(0.0), high: value + half }
    }
}

impl Account {
    /// `None` if no sample was taken, or no listener on this host answers for the target.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        let tiers = &ctx.path.tiers;
        let first = tiers.first()?.netns;
        let counted = SampleCounts::of(ctx)?;
        let (from_us, to_us) = ctx.window_us;
        let offered = ctx.obs.load.as_ref().and_then(LoadResult::under_way);
        let accountant = Accountant::new(ctx, &counted, offered);
        let whole = accountant.between((from_us, to_us.saturating_add(1)));
        let sum = sum_of(&whole);
        let under_way = offered.unwrap_or(sum).max(sum);
        // In an open loop of which the number at the samples is not known, what was found beyond the mean may be the samples' own.
        let own = offered.filter(|_| accountant.under_way((0, u64::MAX)).is_some());
        let rate_rps = rate::rps(ctx, &counted, under_way).map(|rate| rate * times_own(own, under_way));
        let response_s = rate_rps.filter(|rate| *rate > 0.0).map(|rate| under_way / rate);
        let batches = batches(ctx, &counted, response_s);
        // Nobody waited for longer than was watched: those are connections without a request, or answers that nobody reads.
        let response_s = response_s.filter(|seconds| ctx.obs.load.is_some() || *seconds <= ctx.seconds());
        let begin = |n: u64| from_us + (to_us - from_us) * n / batches;
        let spans_us = (0..batches).map(|n| (begin(n), begin(n + 1)));
        let spans_us: Vec<(u64, u64)> = spans_us.filter(|span| counted.is_sampled(first, *span)).collect();
        let parts: Vec<Vec<PlaceMean>> = spans_us.iter().map(|span| accountant.between(*span)).collect();
        let missed = |(span, part): (&(u64, u64), &Vec<PlaceMean>)| Some(accountant.under_way(*span)? - sum_of(part));
        // Samples without any request say nothing.
        let missed = spans_us.iter().zip(&parts).filter_map(missed).filter(|_| accountant.met_requests()).collect();
        let ratios = tiers.iter().map(|tier| counted.ratio(tier.netns, (0, u64::MAX), offered)).collect();
        Some(Self { whole, parts, missed, ratios, spans_us, under_way, offered: own, sum, rate_rps, response_s, counted })
    }
}

/// All requests under way as a multiple of the load's own; 1 unless other clients have some.
fn times_own(offered: Option<f64>, under_way: f64) -> f64 {
    let times = offered.filter(|offered| *offered > 0.0).map_or(1.0, |offered| under_way / offered);
    if times > 1.0 + OTHERS_MIN { times } else { 1.0 }
}

/// The account for the report, and a sentence for everything that it leaves uncertain. `None` if there is no account.
pub(crate) fn of(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>)> {
    with_clients(ctx).map(|(report, warnings, _)| (report, warnings))
}

/// The same, with the clients that have the most requests under way.
pub(crate) fn with_clients(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>, Vec<LedgerClient>)> {
    let account = ctx.account()?;
    let under_way = account.under_way;
    let of_place = |(place, stood): (usize, &PlaceMean)| {
        let means: Vec<f64> = account.parts.iter().map(|part| part[place].mean).collect();
        reported(ctx, stood, &means, under_way)
    };
    let places = account.whole.iter().enumerate().filter(|(_, stood)| rounded(stood.mean) > 0.0);
    let report = LedgerReport {
        under_way: rounded(under_way),
        rate_rps: account.rate_rps.map(rounded),
        response_time_ms: account.response_s.map(|seconds| rounded(1e3 * seconds)),
        places: places.map(of_place).collect(),
        unaccounted: unaccounted(ctx, account),
        losses: losses::of(ctx),
    };
    let mut warnings = warnings(ctx, &report, account);
    let tick_ms = account.counted.tick_ms;
    if ctx.obs.load.is_none() && account.response_s.is_some_and(|seconds| 1e3 * seconds < tick_ms as f64) {
        warnings.push(ctx.text(Message::new("warning-ledger-fast").with("tick", tick_ms)));
    }
    let clients = clients(&account.counted, under_way);
    Some((report, warnings, clients))
}

/// The kernel's clock tick, the mean time that reading the sockets took, and the most that the time since each request that was under way came can be, microseconds.
pub(crate) fn unanswered(ctx: &Context<'_>) -> (u64, u64, Vec<u64>) {
    let samples = ctx.obs.netns.values().flat_map(|view| view.request_samples.values());
    let moments: Vec<DumpMoment> = samples.filter_map(|sample| sample.moment).collect();
    let tick_us = moments.first().map_or(1, |moment| moment.tick_us);
    let took_us = moments.iter().fold(0_u64, |sum, moment| sum.saturating_add(moment.took_us)) / moments.len().max(1) as u64;
    (tick_us, took_us, ctx.account().map_or_else(Vec::new, |account| account.counted.unanswered_us.clone()))
}

/// The part of the requests that was found nowhere, with the interval that chance explains.
fn unaccounted(ctx: &Context<'_>, account: &Account) -> LedgerUnaccounted {
    let mean = account.under_way - account.sum;
    let half = half_interval(&account.missed).filter(|half| half.is_finite() && ctx.obs.load.is_some());
    LedgerUnaccounted {
        mean: rounded(mean),
        share: rounded(share(mean, account.under_way)),
        low: half.map(|half| rounded((mean - half).max(0.0))),
        high: half.map(|half| rounded(mean + half)),
    }
}

/// The clients, those with the most requests under way first.
fn clients(counted: &SampleCounts, under_way: f64) -> Vec<LedgerClient> {
    // Of a client's connections some do not show whether a request is under way: all clients together are the whole then.
    let whole = under_way.max(counted.clients.values().sum());
    let client = |(address, mean): (&std::net::IpAddr, &f64)| LedgerClient {
        address: *address,
        mean: rounded(*mean),
        share: rounded(share(*mean, whole)),
    };
    let mut clients: Vec<LedgerClient> = counted.clients.iter().map(client).filter(|client| client.mean > 0.0).collect();
    // A stable sort: clients with equal numbers keep the order of their addresses.
    clients.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    clients.truncate(CLIENTS_MAX);
    clients
}

/// Warnings about what the account leaves uncertain.
fn warnings(ctx: &Context<'_>, ledger: &LedgerReport, account: &Account) -> Vec<String> {
    let means = account.counted.means_uncorrected(ctx.path.tiers.len());
    let mut told = Vec::new();
    for (index, (tier, counts)) in ctx.path.tiers.iter().zip(&means).enumerate() {
        // What the workers of the caller have decided is not left open.
        let is_open = account.whole.iter().any(|at| at.tier == Some(index) && at.place == LedgerPlaceKind::Undecided && at.mean > 0.0);
        let cases = [
            ("warning-ledger-multiplexed", counts.multiplexed),
            ("warning-ledger-streaming", counts.streaming),
            ("warning-ledger-undecided", if is_open { counts.undecided } else { 0.0 }),
        ];
        // Fewer would be told as none.
        let is_told = |number: f64| number > TOLD_SHARE_MIN * ledger.under_way.max(1.0) && tenths(number) > 0.0;
        for (id, number) in cases.into_iter().filter(|(_, number)| is_told(*number)) {
            told.push(ctx.text(Message::new(id).with("tier", tier.name.as_str()).with("number", (number * 10.0).round() / 10.0)));
        }
    }
    told
}

/// Sum of the requests at all places.
fn sum_of(all: &[PlaceMean]) -> f64 {
    all.iter().map(|stood| stood.mean).sum()
}

/// Number of batches, each of several response times. Below two if there are too few samples.
fn batches(ctx: &Context<'_>, counted: &SampleCounts, response_s: Option<f64>) -> u64 {
    let samples = counted.samples.values().map(Vec::len).min().unwrap_or(0) as u64;
    let last = |times: f64| response_s.map_or(u64::MAX, |seconds| (ctx.seconds() / (times * seconds).max(1e-9)) as u64);
    let long = last(BATCH_TIMES_MIN).max(last(1.0).min(BATCHES_MIN)).max(2);
    BATCHES_MAX.min(samples / SAMPLES_MIN).min(long)
}

fn reported(ctx: &Context<'_>, stood: &PlaceMean, batches: &[f64], under_way: f64) -> LedgerPlace {
    let mean = Mean::of(stood.mean, batches);
    let name = |tier: usize| ctx.path.tiers[tier].name.clone();
    let tier = stood.tier.map_or_else(|| "client".to_owned(), name);
    let of_listener = matches!(
        stood.place,
        LedgerPlaceKind::Handshake | LedgerPlaceKind::AcceptQueue | LedgerPlaceKind::Unread | LedgerPlaceKind::TlsHandshake
    );
    let own = stood.tier.map(|tier| &ctx.path.tiers[tier]);
    let at = At {
        netns: own.map(|tier| ctx.netns_name(tier.netns)),
        listener: own.filter(|_| of_listener).and_then(|tier| tier.listeners.first()).map(|placed| placed.listener.address.to_string()),
        edge: stood.caller.map(|caller| format!("{}->{tier}", name(caller))),
        ..At::default()
    };
    LedgerPlace {
        tier,
        at,
        place: stood.place,
        mean: rounded(stood.mean),
        share: rounded(share(stood.mean, under_way)),
        low: rounded(mean.low),
        high: rounded(mean.high.min(under_way.max(stood.mean))),
        age_ms: stood.age_ms.map(rounded),
    }
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

/// Rounds to a tenth: numbers of requests in sentences are means.
pub(crate) fn tenths(number: f64) -> f64 {
    (10.0 * number).round() / 10.0
}

/// Rounds to a hundredth: parts of cores.
pub(crate) fn hundredths(number: f64) -> f64 {
    (100.0 * number).round() / 100.0
}

/// With one digit behind the point, or all of a number that would be shown as none.
pub(crate) fn not_none(number: f64) -> f64 {
    if tenths(number) > 0.0 { tenths(number) } else { number }
}

/// A number that goes on at a time: with one digit behind the point, or all of a smaller one, which is not none.
pub(crate) fn going_on(number: f64) -> f64 {
    if number < 1.0 { number } else { tenths(number) }
}

/// Rounds to a thousandth: further digits are noise.
fn rounded(value: f64) -> f64 {
    let value = (value * 1e3).round() / 1e3;
    if value == 0.0 { 0.0 } else { value }
}
