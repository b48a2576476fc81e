//! Programs that poll. Nothing is wrong with them, but their busy cores are no evidence of load, and other tools' CPU figures for them mislead.

use crate::facts::Context;
use crate::facts::cores::{Polling, PollingSign, polling};
use crate::facts::path::Tier;
use crate::facts::profile::Profiled;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::output::report::Confidence;

/// A finding for each tier that polls.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<Finding> {
    let tiers: Vec<&Tier> = ctx.path.tiers.iter().collect();
    polling(ctx, &tiers).iter().filter_map(|one| finding(ctx, stations, one)).collect()
}

fn finding(ctx: &Context<'_>, stations: &[StationReading], one: &Polling<'_>) -> Option<Finding> {
    let name = one.tier.name.as_str();
    let is_its = |reading: &&StationReading| reading.station == StationId::CPU && reading.owner.has(one.tier.id);
    let cores = stations.iter().find(is_its)?;
    let mut proofs = Vec::new();
    match one.sign {
        PollingSign::Quiet { threads, ran, elapsed_us } => {
            let text = Message::new("evidence-polling-quiet").with("tier", name).with("threads", threads as f64).with("ran", ran);
            let text = text.with("ms", elapsed_us as f64 / 1e3);
            proofs.push(Evidence::new(text, "/proc/PID/task/TID/schedstat; /proc/net/snmp", Some(ran)));
            let text = Message::new("evidence-polling-loaded").with("tier", name).with("ran", one.cores);
            let text = text.with("goodput", ctx.obs.load.as_ref().map_or(0.0, |load| load.goodput_rps()));
            proofs.push(Evidence::new(text, "/proc/PID/task/TID/schedstat", Some(one.cores)));
        }
        PollingSign::Sampled(share) => {
            let text = Message::new("evidence-polling-sampled").with("tier", name).with("share", share.value * 100.0);
            let text = text.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of);
            let source = Profiled::of(ctx).map(|profiled| profiled.source()).unwrap_or_default();
            proofs.push(Evidence::new(text, source, Some(share.value)));
        }
    }
    let args = |id: &'static str| Message::new(id).with("tier", name).with("ran", one.cores);
    Some(Finding {
        confidence: Confidence::High,
        title: args("finding-busy-polling-title"),
        explanation: vec![args("finding-busy-polling-explanation")],
        evidence: proofs,
        ..Finding::new(FindingId::BUSY_POLLING, StationId::CPU, one.tier, cores.at.clone())
    })
}
