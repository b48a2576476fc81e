//! Finding `requests-hang`: requests that do not go on hold the workers of a full pool until these are ended.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::{Hung, Pool, PoolKind};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Finding> {
    let hung = (pool.kind == PoolKind::Processes).then(|| Hung::of(ctx, tier)).flatten()?;
    let awaited = Awaited::of(ctx, tier, pool.busy_mean());
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64);
        let message = message
            .with("ended", hung.ended as f64)
            .with("told", hung.told as f64)
            .with("still", hung.still as f64)
            .with("share", 100.0 * hung.share);
        message.with("busy", tenths(pool.busy_mean())).with("waiting", tenths(pool.waiting)).with("unit", pool.unit())
    };
    let title = match &awaited {
        Some(awaited) => args("finding-requests-hang-title-for").with("what", awaited.what()),
        None => args("finding-requests-hang-title"),
    };
    let taken = Evidence::new(args("evidence-each-other-taken"), "sock_diag", Some(tenths(pool.busy_mean())));
    let evidence = [
        Evidence::new(args("evidence-requests-hang-ended"), "/proc/PID/stat, /proc/PID/schedstat", Some(hung.ended as f64)),
        Evidence::new(args("evidence-requests-hang-still"), "/proc/PID/schedstat", Some(100.0 * hung.share)),
        taken,
    ];
    Some(Finding {
        // A worker that has done its number of requests ends as well, and may have waited in the last one.
        confidence: Confidence::Medium,
        title,
        evidence: evidence.into_iter().chain(awaited.iter().flat_map(Awaited::proofs)).collect(),
        explanation: vec![args("finding-requests-hang-explanation")],
        ..STATION.finding(FindingId::REQUESTS_HANG, tier, Location::in_netns(tier.netns))
    })
}
