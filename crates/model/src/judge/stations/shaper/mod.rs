//! Station `shaper`: traffic shapers (tbf, cake, classes of htb) on interfaces that the path's connections leave through. That of station `link` is
//! among them once it is full.

mod harm;

use crate::facts::Context;
use crate::facts::owner::Owner;
use crate::facts::path::egress::{NEAR_UTILIZATION, wire_ceiling};
use crate::facts::path::shaper::{Shaper, shapers};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-shaper-rate"],
    graph: &[
        CouplingDef::found(FindingId::EGRESS_SHAPED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-shaper-pool"),
        CouplingDef::found(FindingId::EGRESS_SHAPED, FindingId::POOL_BLOCKED, Relation::Edge, "coupling-shaper-blocked"),
        CouplingDef::found(FindingId::EGRESS_SHAPED, FindingId::CONNECTIONS_EXHAUSTED, Relation::Edge, "coupling-shaper-held"),
        CouplingDef::found(FindingId::EGRESS_SHAPED, FindingId::BUFFER_LIMITED, Relation::Tier, "coupling-shaper-buffer"),
    ],
    ..StationDef::new(StationId::SHAPER, StationKind::Rate, &[FindingId::EGRESS_SHAPED], read, judge)
};

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    shapers(ctx).iter().map(|shaper| reading(ctx, shaper)).collect()
}

fn at(shaper: &Shaper<'_>) -> Location {
    Location { edge: Some(EdgeId::Interface(shaper.link.name.clone())), ..Location::in_netns(shaper.netns) }
}

fn owner(shaper: &Shaper<'_>) -> Owner {
    if shaper.tiers.is_empty() { Owner::Client } else { Owner::Tiers(shaper.tiers.clone()) }
}

/// A message with everything known about a shaper.
fn args(ctx: &Context<'_>, id: &'static str, shaper: &Shaper<'_>) -> Message {
    let message = Message::new(id)
        .with("kind", shaper.qdisc.kind.as_str())
        .with("link", shaper.link.name.as_str())
        .with("netns", ctx.netns_name(shaper.netns))
        .with("rate", shaper.rate_bits_per_s / 1e6)
        .with("wait", shaper.wait_us() / 1e3);
    let Some(passed) = shaper.passed else { return message };
    message
        .with("megabits", passed.bits_per_s / 1e6)
        .with("share", passed.bits_per_s / shaper.rate_bits_per_s * 100.0)
        .with("drops", passed.drops)
        .with("overlimits", passed.overlimits)
        .with("looks", passed.looks as u64)
        .with("waiting", passed.looks_waiting as u64)
        .with("packets", passed.packets_waiting)
        .with("kib", passed.bytes_waiting / 1024.0)
}

fn reading(ctx: &Context<'_>, shaper: &Shaper<'_>) -> StationReading {
    let mut station = STATION.reading(owner(shaper), at(shaper), "bits/s");
    station.limit = Some(shaper.rate_bits_per_s);
    let Some(passed) = shaper.passed else {
        return station.in_state(StationState::Unknown, args(ctx, "state-shaper-unknown", shaper));
    };
    station.used = Some(passed.bits_per_s);
    station.utilization = shaper.utilization();
    station.waiting = (passed.looks > 0).then_some(passed.packets_waiting);
    station.refused_per_s = Some(passed.drops as f64 / passed.seconds.max(1e-6));
    station.ceiling_rps = wire_ceiling(ctx, shaper.rate_bits_per_s, passed.bytes);
    let (state, id) = match station.utilization {
        _ if shaper.is_full() && harm::of(ctx, shaper).hurts() => (StationState::Saturated, "state-shaper-full"),
        _ if shaper.is_full() => (StationState::Near, "state-shaper-harmless"),
        Some(share) if share >= NEAR_UTILIZATION => (StationState::Near, "state-shaper-near"),
        _ => (StationState::Ok, "state-shaper-ok"),
    };
    station.in_state(state, args(ctx, id, shaper))
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    shapers(ctx).iter().filter_map(|shaper| finding(ctx, shaper)).collect()
}

fn finding(ctx: &Context<'_>, shaper: &Shaper<'_>) -> Option<Finding> {
    let passed = shaper.passed.filter(|_| shaper.is_full())?;
    let cost = harm::of(ctx, shaper);
    if !cost.hurts() {
        return None;
    }
    let source = format!("rtnetlink TCA_STATS2 ({})", ctx.netns_name(shaper.netns));
    let proof = |id: &'static str, value: f64| Evidence::new(args(ctx, id, shaper), source.as_str(), Some(value));
    let mut evidence = vec![proof("evidence-shaper-passed", passed.bits_per_s)];
    if passed.looks_waiting > 0 {
        evidence.push(proof("evidence-shaper-queue", passed.bytes_waiting));
    }
    if passed.drops > 0 {
        evidence.push(proof("evidence-shaper-drops", passed.drops as f64));
    }
    evidence.push(harm::proof(ctx, cost));
    Some(Finding {
        // Drops alone may come from one burst; watched traffic does not show what its clients would have asked for.
        confidence: if ctx.obs.load.is_some() && passed.stands() { Confidence::High } else { Confidence::Medium },
        title: args(ctx, "finding-egress-shaped-title", shaper),
        evidence,
        explanation: vec![args(ctx, "finding-egress-shaped-explanation", shaper)],
        ..STATION.finding(FindingId::EGRESS_SHAPED, owner(shaper), at(shaper))
    })
}
