//! Programs that poll: nothing is wrong with them, but their busy cores are no evidence of load, and other programs' figures of them mislead.

use super::from_profile::{BUSY_POLLING, finding};
use crate::facts::Context;
use crate::facts::cores::{Polling, Sign, polling};
use crate::facts::path::Tier;
use crate::facts::profile::Profiled;
use crate::judge::stations::StationReading;
use crate::output::message::Message;
use crate::output::report::{Confidence, Evidence, Finding};

/// A line for each tier that polls.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<Finding> {
    let tiers: Vec<&Tier> = ctx.path.tiers.iter().collect();
    polling(ctx, &tiers).iter().filter_map(|one| told(ctx, stations, one)).collect()
}

fn told(ctx: &Context<'_>, stations: &[StationReading], one: &Polling<'_>) -> Option<Finding> {
    let name = one.tier.name.as_str();
    let is_its = |placed: &&StationReading| placed.station.station == "cpu" && ctx.owner(&placed.station.tier).has(one.tier.id);
    let station = &stations.iter().find(is_its)?.station;
    let mut proofs = Vec::new();
    match one.sign {
        Sign::Quiet { threads, ran, elapsed_us } => {
            let text = Message::new("evidence-polling-quiet").with("tier", name).with("threads", threads as f64).with("ran", ran);
            let text = ctx.text(text.with("ms", elapsed_us as f64 / 1e3));
            proofs.push(Evidence { text, source: "/proc/PID/task/TID/schedstat; /proc/net/snmp".to_owned(), value: Some(ran) });
            let text = Message::new("evidence-polling-loaded").with("tier", name).with("ran", one.cores);
            let text = ctx.text(text.with("goodput", ctx.obs.load.as_ref().map_or(0.0, |load| load.goodput_rps())));
            proofs.push(Evidence { text, source: "/proc/PID/task/TID/schedstat".to_owned(), value: Some(one.cores) });
        }
        Sign::Sampled(share) => {
            let text = Message::new("evidence-polling-sampled").with("tier", name).with("share", share.value * 100.0);
            let text = ctx.text(text.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of));
            let source = Profiled::of(ctx).map(|profiled| profiled.source()).unwrap_or_default();
            proofs.push(Evidence { text, source, value: Some(share.value) });
        }
    }
    let args = |id: &'static str| ctx.text(Message::new(id).with("tier", name).with("ran", one.cores));
    let words = (args("finding-busy-polling-title"), args("finding-busy-polling-explanation"));
    Some(finding(BUSY_POLLING, name, station.at.clone(), Confidence::High, words, proofs))
}
