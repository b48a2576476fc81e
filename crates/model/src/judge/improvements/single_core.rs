//! Fewer serving threads than cores, at their limit while cores that they may use are idle: a cause where requests wait for them.

use crate::facts::Context;
use crate::facts::cores::{Limiting, SATURATED_UTILIZATION, Turns, group_of, left_over, limiting, own_cores, taken};
use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::path::Tier;
use crate::facts::profile::Profiled;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::ledger::{hundredths, tenths};
use crate::output::message::Message;
use crate::output::report::Confidence;

/// Mean number of idle cores from which a server that cannot use them is worth a report.
pub(crate) const IDLE_MIN: f64 = 0.5;
/// How far the count of samples may be below the time that a thread ran, as a share of a core. Code that runs with interrupts off is sampled later, and a
/// shared core is taken away in between.
const RAN_GRAIN: f64 = 0.2;

/// A finding for each tier whose threads are the limit. The flag is true if more threads would serve what waits.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<(Finding, bool)> {
    limiting(ctx).iter().filter_map(|limiting| finding(ctx, stations, limiting)).collect()
}

fn finding(ctx: &Context<'_>, stations: &[StationReading], limiting: &Limiting<'_, '_>) -> Option<(Finding, bool)> {
    let threads = limiting.threads?;
    // Cores that other programs hold, while a thread waits for its own, are none that this server could not have; nor are those of programs that have only what it leaves.
    let taken = taken(ctx).iter().find(|taken| taken.group.id == limiting.group.id).map(|taken| taken.named);
    let held = taken.unwrap_or_else(|| left_over(ctx, limiting.group));
    if limiting.idle + held < IDLE_MIN {
        return None;
    }
    let tier = *limiting.tiers.first()?;
    let at = |reading: &&StationReading| reading.station == StationId::CPU;
    // The station's readings follow the order of the groups.
    let cores = stations.iter().filter(at).nth(limiting.group.id.0)?;
    let profiled = Profiled::of(ctx);
    let ran = profiled.as_ref().map(|profiled| profiled.cores_used(tier));
    // The samples are a second clock beside the scheduler's. Beside other programs threads that are always ready may hardly run: then these programs are the limit.
    let used = ran.or_else(|| own_cores(ctx, &tier.pids).filter(|_| held > 0.0));
    if used.is_some_and(|used| used < (SATURATED_UTILIZATION - RAN_GRAIN) * threads as f64) {
        return None;
    }
    let is_cause = waits(ctx, tier) && limiting.room(ctx, held) >= NOISE_SHARE;
    let workers = limiting.with_idle_workers(ctx).map(|(_, workers)| workers);
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("threads", threads as f64);
        message
            .with("cores", limiting.group.cores.len() as f64)
            .with("idle", limiting.idle)
            .with("free", limiting.idle + held)
            .with("are", Message::new(if held > 0.0 { "single-idle-or-held" } else { "single-idle" }))
            .with("held", hundredths(held))
            .with("are_held", if held > 0.0 { "yes" } else { "no" })
            .with("turns", limiting.turns.map_or(0, |turns| turns.threads))
            .with("by", limiting.turns.map_or("untold", Turns::by))
            .with("workers", workers.unwrap_or(threads) as f64)
    };
    let mut proofs = vec![Evidence::new(args("evidence-single-idle"), "/proc/stat", Some(limiting.idle))];
    if let Some((profiled, ran)) = profiled.zip(ran) {
        proofs.insert(0, Evidence::new(args("evidence-single-ran").with("ran", ran), profiled.source(), Some(ran)));
    }
    if is_cause {
        proofs.extend(waiting(ctx, tier));
        proofs.extend(setting(ctx, tier));
        let times = tenths(1.0 + limiting.room(ctx, held));
        proofs.push(Evidence::new(args("evidence-single-bound").with("times", times), "/proc/stat", Some(times)));
    }
    let explanation = match (is_cause, limiting.turns) {
        _ if workers.is_some() => "finding-single-core-saturated-explanation-some",
        (true, Some(_)) => "finding-single-core-saturated-explanation-turns-waits",
        (false, Some(_)) => "finding-single-core-saturated-explanation-turns",
        (true, None) => "finding-single-core-saturated-explanation-waits",
        (false, None) => "finding-single-core-saturated-explanation",
    };
    let title = match limiting.turns {
        _ if workers.is_some() => "finding-single-core-saturated-title-some",
        Some(_) => "finding-single-core-saturated-title-turns",
        None => "finding-single-core-saturated-title",
    };
    let finding = Finding {
        confidence: if ran.is_some() { Confidence::High } else { Confidence::Medium },
        title: args(title),
        explanation: vec![args(explanation)],
        evidence: proofs,
        ..Finding::new(FindingId::SINGLE_CORE, StationId::CPU, tier, cores.at.clone())
    };
    Some((finding, is_cause))
}

/// True if enough requests wait for the tier's threads that serving them at once would show. Without samples of the requests, a load that asks for more than it
/// gets waits for whatever is at its limit; of watched traffic nothing is known then.
fn waits(ctx: &Context<'_>, tier: &Tier) -> bool {
    match ctx.account() {
        Some(account) => Cost::of_time(account.waits_for_threads(tier.id.0) / account.under_way().max(f64::MIN_POSITIVE)).hurts(),
        None => ctx.obs.load.is_some(),
    }
}

/// The requests that wait for the tier's threads.
fn waiting(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let account = ctx.account()?;
    let waiting = account.waits_for_threads(tier.id.0);
    let text = Message::new("evidence-single-waits").with("tier", tier.name.as_str());
    let text = text.with("waiting", tenths(waiting)).with("under_way", tenths(account.under_way()));
    Some(Evidence::new(text, format!("sock_diag struct tcp_info ({})", ctx.netns_name(tier.netns)), Some(tenths(waiting))))
}

/// The setting that says how many threads serve, if the server is known to have one.
fn setting(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let cores = group_of(ctx, tier)?.count();
    let processes = Some(&ctx.nginx_of(tier)?.worker_processes).filter(|processes| f64::from(processes.value) < cores)?;
    let text = Message::new("evidence-single-setting").with("count", f64::from(processes.value));
    Some(Evidence::new(text, processes.origin.to_string(), Some(f64::from(processes.value))))
}
