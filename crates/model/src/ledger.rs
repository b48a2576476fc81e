//! The ledger: where the requests under way stood on average. By Little's law the mean number at a place is the client-seconds a second that are spent there,
//! and its share of all is its share of the response time.
//!
//! It makes no verdict: station `waiting` judges by it, and `watched` says what it means where no load was applied.

mod account;
mod calls;
mod count;
mod even;
mod held;
mod inside;
mod losses;
mod outlive;
mod rate;
mod rhythm;
mod sampled;
mod standing;
mod starved;
#[cfg(test)]
mod tests;
mod watched;

use crate::facts::Context;
use crate::facts::spread::half_interval;
use crate::observation::load::LoadResult;
use crate::output::message::Message;
use crate::output::report::{At, LedgerClient, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};

use account::{Accountant, Stood};
pub(crate) use calls::Calls;
use count::Counted;
pub(crate) use inside::{Inside, Shown};
pub(crate) use starved::{Starved, starved};

/// Batches that the window is divided into at most.
const BATCHES_MAX: u64 = 10;
/// Samples of a batch at least.
const SAMPLES_MIN: u64 = 3;
/// Response times that a batch lasts at least: samples that follow each other see the same requests.
const BATCH_TIMES_MIN: f64 = 10.0;
/// Clients that are told.
const CLIENTS_MAX: usize = 32;
/// Batches that are made of shorter ones, though of a response time at least, where there would be fewer: Student's t of one or two degrees of freedom tells
/// nothing.
const BATCHES_MIN: u64 = 5;
/// The share of a kind of trouble among all from which on it is told.
const TOLD_SHARE_MIN: f64 = 0.02;

/// The account of one observation, before it is told.
pub(crate) struct Account {
    counted: Counted,
    /// Over the whole window, and over each batch of it.
    whole: Vec<Stood>,
    parts: Vec<Vec<Stood>>,
    /// Requests under way in each batch that stood nowhere; of batches of which it is not known how many were under way there is none.
    missed: Vec<f64>,
    /// What the numbers of each tier's samples are multiplied by, see [`Counted::ratio`].
    ratios: Vec<f64>,
    spans_us: Vec<(u64, u64)>,
    /// Mean number of requests under way, as the load generator counted them, else the sum of what sockets told.
    under_way: f64,
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
    /// Nothing where no sample was taken, or no listener of this host answers for the target.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        let tiers = &ctx.path.tiers;
        let first = tiers.first()?.netns;
        let counted = Counted::of(ctx)?;
        let (from_us, to_us) = ctx.window_us;
        let offered = ctx.obs.load.as_ref().and_then(LoadResult::under_way);
        let accountant = Accountant::new(ctx, &counted, offered);
        let whole = accountant.between((from_us, to_us.saturating_add(1)));
        let sum = sum_of(&whole);
        let under_way = offered.unwrap_or(sum);
        let rate_rps = rate::rps(ctx, &counted, under_way);
        let response_s = rate_rps.filter(|rate| *rate > 0.0).map(|rate| under_way / rate);
        let batches = batches(ctx, &counted, response_s);
        let begin = |n: u64| from_us + (to_us - from_us) * n / batches;
        let spans_us = (0..batches).map(|n| (begin(n), begin(n + 1)));
        let spans_us: Vec<(u64, u64)> = spans_us.filter(|span| counted.is_sampled(first, *span)).collect();
        let parts: Vec<Vec<Stood>> = spans_us.iter().map(|span| accountant.between(*span)).collect();
        let missed = |(span, part): (&(u64, u64), &Vec<Stood>)| Some(accountant.under_way(*span)? - sum_of(part));
        // Of samples that met no request nothing can be told.
        let missed = spans_us.iter().zip(&parts).filter_map(missed).filter(|_| accountant.meets_requests()).collect();
        let ratios = tiers.iter().map(|tier| counted.ratio(tier.netns, (0, u64::MAX), offered)).collect();
        Some(Self { whole, parts, missed, ratios, spans_us, under_way, sum, rate_rps, response_s, counted })
    }
}

/// The account as the report tells it, and what it cannot tell, a sentence each; nothing where there is none.
pub(crate) fn of(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>)> {
    with_clients(ctx).map(|(report, warnings, _)| (report, warnings))
}

/// The same, with the clients that have most requests under way.
pub(crate) fn with_clients(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>, Vec<LedgerClient>)> {
    let account = ctx.account()?;
    let under_way = account.under_way;
    let of_place = |(place, stood): (usize, &Stood)| {
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
    let mut warnings = warnings(ctx, &report, &account.counted);
    let tick_ms = account.counted.tick_ms;
    if ctx.obs.load.is_none() && account.response_s.is_some_and(|seconds| 1e3 * seconds < tick_ms as f64) {
        warnings.push(ctx.text(Message::new("warning-ledger-fast").with("tick", tick_ms)));
    }
    let clients = clients(&account.counted, under_way);
    Some((report, warnings, clients))
}

/// What does not balance, and how far chance alone may make it so.
fn unaccounted(ctx: &Context<'_>, account: &Account) -> LedgerUnaccounted {
    let mean = account.under_way - account.sum;
    let half = half_interval(&account.missed).filter(|half| half.is_finite() && ctx.obs.load.is_some());
    LedgerUnaccounted {
        mean: rounded(mean),
        share: rounded(share(mean, account.under_way)),
        low: half.map(|half| rounded(mean - half)),
        high: half.map(|half| rounded(mean + half)),
    }
}

/// The clients by their requests under way, the most first.
fn clients(counted: &Counted, under_way: f64) -> Vec<LedgerClient> {
    let client = |(address, mean): (&std::net::IpAddr, &f64)| LedgerClient {
        address: *address,
        mean: rounded(*mean),
        share: rounded(share(*mean, under_way)),
    };
    let mut clients: Vec<LedgerClient> = counted.clients.iter().map(client).filter(|client| client.mean > 0.0).collect();
    // Stable: those with as many keep the order of their addresses.
    clients.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    clients.truncate(CLIENTS_MAX);
    clients
}

/// What the account cannot tell.
fn warnings(ctx: &Context<'_>, ledger: &LedgerReport, counted: &Counted) -> Vec<String> {
    let means = counted.found(ctx.path.tiers.len());
    let mut told = Vec::new();
    for (tier, counts) in ctx.path.tiers.iter().zip(&means) {
        let cases = [
            ("warning-ledger-multiplexed", counts.multiplexed),
            ("warning-ledger-streaming", counts.streaming),
            ("warning-ledger-undecided", counts.undecided),
        ];
        for (id, number) in cases.into_iter().filter(|(_, number)| *number > TOLD_SHARE_MIN * ledger.under_way.max(1.0)) {
            told.push(ctx.text(Message::new(id).with("tier", tier.name.as_str()).with("number", (number * 10.0).round() / 10.0)));
        }
    }
    told
}

/// Requests at all places together.
fn sum_of(all: &[Stood]) -> f64 {
    all.iter().map(|stood| stood.mean).sum()
}

/// Batches of whole response times; none where there are too few samples.
fn batches(ctx: &Context<'_>, counted: &Counted, response_s: Option<f64>) -> u64 {
    let samples = counted.samples.values().map(Vec::len).min().unwrap_or(0) as u64;
    let last = |times: f64| response_s.map_or(u64::MAX, |seconds| (ctx.seconds() / (times * seconds).max(1e-9)) as u64);
    let long = last(BATCH_TIMES_MIN).max(last(1.0).min(BATCHES_MIN)).max(2);
    BATCHES_MAX.min(samples / SAMPLES_MIN).min(long)
}

fn reported(ctx: &Context<'_>, stood: &Stood, batches: &[f64], under_way: f64) -> LedgerPlace {
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

/// Numbers of requests are means: in a sentence a tenth is enough.
pub(crate) fn tenths(number: f64) -> f64 {
    (10.0 * number).round() / 10.0
}

/// To a thousandth: more is noise.
fn rounded(value: f64) -> f64 {
    let value = (value * 1e3).round() / 1e3;
    if value == 0.0 { 0.0 } else { value }
}
