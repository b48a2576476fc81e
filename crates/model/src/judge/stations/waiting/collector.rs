//! Finding `collects-garbage`: a runtime (Java, .NET) collects garbage for so much of the time that requests wait for it.

use crate::facts::Context;
use crate::facts::cores::Collecting;
use crate::facts::path::Tier;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::judge::watched;
use crate::ledger::{hundredths, tenths};
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

/// The finding of each tier whose clients would notice.
pub(super) fn judge(ctx: &Context<'_>) -> Vec<Finding> {
    // Time on cores is no sign that a server keeps up if it goes into this while clients wait.
    let do_clients_wait = ctx.account().is_some_and(|account| account.clients_wait(ctx));
    let of_tier = |tier: &Tier| {
        let found = Collecting::of(ctx, tier).filter(|found| found.hurts(ctx) && watched::suffers(ctx, do_clients_wait))?;
        Some(finding(ctx, tier, &found))
    };
    ctx.path.tiers.iter().filter_map(of_tier).collect()
}

/// A message with the arguments of the sentences.
fn args(tier: &Tier, found: &Collecting, id: &'static str) -> Message {
    let message = Message::new(id).with("tier", tier.name.as_str()).with("kind", if stands_still(found) { "stands" } else { "cores" });
    let message = message.with("share", 100.0 * found.lost).with("usual", 100.0 * found.usual);
    let message = message.with("names", found.names.join(", ")).with("used", hundredths(found.used)).with("own", hundredths(found.own));
    message.with("times", tenths(1.0 / (1.0 - found.beyond_usual()).max(f64::MIN_POSITIVE)))
}

fn finding(ctx: &Context<'_>, tier: &Tier, found: &Collecting) -> Finding {
    let args = |id: &'static str| args(tier, found, id);
    let is_profiled = found.names.is_empty();
    let (used, usual, source) = match is_profiled {
        false => ("evidence-collects-garbage-used", "evidence-collects-garbage-usual", "GCTimeRatio of HotSpot"),
        true => ("evidence-collects-garbage-profiled", "evidence-collects-garbage-usual-inside", "gcBackgroundUtilization of Go"),
    };
    let of_used = if is_profiled { "profile, /proc/PID/schedstat" } else { "/proc/PID/task/TID/{comm,schedstat}" };
    let mut evidence = vec![Evidence::new(args(used), of_used, Some(hundredths(found.used)))];
    if found.stands > 0.0 {
        let stands = args("evidence-collects-garbage-stands").with("stands", 100.0 * found.stands);
        evidence.push(Evidence::new(stands, "/proc/PID/task/TID/schedstat", Some(100.0 * found.stands)));
    }
    evidence.push(Evidence::new(args(usual), source, Some(tenths(100.0 * found.usual))));
    Finding {
        confidence: if ctx.obs.load.is_some() { Confidence::High } else { Confidence::Medium },
        lost_time: Some(found.lost_time(ctx)),
        title: args("finding-collects-garbage-title"),
        explanation: vec![args("finding-collects-garbage-explanation")],
        evidence,
        ..STATION.finding(FindingId::COLLECTS_GARBAGE, tier, Location::in_netns(tier.netns))
    }
}

/// True if the program's standing still is what costs most, and not the time that its cores lose.
fn stands_still(found: &Collecting) -> bool {
    found.stands >= found.lost
}
