//! The ledger: where the requests under way stood on average. By Little's law the mean number at a place is the client-seconds a second that are spent there,
//! and its share of all is its share of the response time.
//!
//! It stands beside the verdict and makes none.

mod account;
mod count;
mod held;
mod losses;
mod rate;
mod rhythm;
mod standing;
#[cfg(test)]
mod tests;
mod watched;

use crate::facts::Context;
use crate::message::Message;
use crate::report::{At, LedgerClient, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};
use crate::spread::half_interval;

use account::{Accountant, Stood};
use count::Counted;

/// Batches that the window is divided into at most.
const BATCHES_MAX: u64 = 10;
/// Samples of a batch at least.
const SAMPLES_MIN: u64 = 3;
/// Response times that a batch lasts at least: samples that follow each other see the same requests.
const BATCH_TIMES_MIN: f64 = 10.0;
/// Clients that are told.
const CLIENTS_MAX: usize = 32;
/// The share of a kind of trouble among all from which on it is told.
const TOLD_SHARE_MIN: f64 = 0.02;

/// The account of one observation, and what it cannot tell, a sentence each; nothing where no sample was taken, or no listener of this host answers for the
/// target.
pub(crate) fn of(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>)> {
    with_clients(ctx).map(|(report, warnings, _)| (report, warnings))
}

/// The same, with the clients that have most requests under way.
pub(crate) fn with_clients(ctx: &Context<'_>) -> Option<(LedgerReport, Vec<String>, Vec<LedgerClient>)> {
    if ctx.path.tiers.is_empty() {
        return None;
    }
    let counted = Counted::of(ctx)?;
    let accountant = Accountant::new(ctx, &counted);
    let (from_us, to_us) = ctx.window_us;
    let whole = accountant.between((from_us, to_us.saturating_add(1)));
    let sum: f64 = whole.iter().map(|stood| stood.mean).sum();
    let under_way = in_flight(ctx).unwrap_or(sum);
    let rate = rate::rps(ctx, &counted, under_way);
    let response_s = rate.filter(|rate| *rate > 0.0).map(|rate| under_way / rate);
    let batches = batches(ctx, &counted, response_s);
    let spans = (0..batches).map(|n| (from_us + (to_us - from_us) * n / batches, from_us + (to_us - from_us) * (n + 1) / batches));
    let parts: Vec<Vec<Stood>> = spans.map(|span| accountant.between(span)).collect();
    let of_place = |(place, stood): (usize, &Stood)| {
        let means: Vec<f64> = parts.iter().map(|part| part[place].mean).collect();
        reported(ctx, stood, &means, under_way)
    };
    let report = LedgerReport {
        under_way: rounded(under_way),
        rate_rps: rate.map(rounded),
        response_time_ms: response_s.map(|seconds| rounded(1e3 * seconds)),
        places: whole.iter().enumerate().filter(|(_, stood)| rounded(stood.mean) > 0.0).map(of_place).collect(),
        unaccounted: LedgerUnaccounted { mean: rounded(under_way - sum), share: rounded(share(under_way - sum, under_way)) },
        losses: losses::of(ctx),
    };
    let warnings = warnings(ctx, &report, &counted);
    let clients = clients(&counted, under_way);
    Some((report, warnings, clients))
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
    let means = counted.means(ctx.path.tiers.len(), (0, u64::MAX));
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

/// The mean number of requests that the load generator had under way while it offered load.
fn in_flight(ctx: &Context<'_>) -> Option<f64> {
    let slices = ctx.obs.load.as_ref()?.offered();
    let sum: f64 = slices.iter().map(|slice| f64::from(slice.in_flight)).sum();
    (!slices.is_empty()).then(|| sum / slices.len() as f64)
}

/// Batches of whole response times; none where there are too few samples.
fn batches(ctx: &Context<'_>, counted: &Counted, response_s: Option<f64>) -> u64 {
    let samples = counted.samples.values().map(Vec::len).min().unwrap_or(0) as u64;
    let long = response_s.map_or(u64::MAX, |seconds| (ctx.seconds() / (BATCH_TIMES_MIN * seconds).max(1e-9)) as u64);
    BATCHES_MAX.min(samples / SAMPLES_MIN).min(long.max(2))
}

fn reported(ctx: &Context<'_>, stood: &Stood, batches: &[f64], under_way: f64) -> LedgerPlace {
    let half = half_interval(batches).unwrap_or(f64::INFINITY);
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
        low: rounded((stood.mean - half).max(0.0)),
        high: rounded((stood.mean + half).min(under_way.max(stood.mean))),
        age_ms: stood.age_ms.map(rounded),
    }
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

/// To a thousandth: more is noise.
fn rounded(value: f64) -> f64 {
    let value = (value * 1e3).round() / 1e3;
    if value == 0.0 { 0.0 } else { value }
}
