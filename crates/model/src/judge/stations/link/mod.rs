//! Station `link`: the network interface through which answers leave, and its shaper if it has one.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::path::egress::{Flow, NEAR_UTILIZATION, egress, wire_ceiling};
use crate::facts::path::shaper::{self, FULL_UTILIZATION, Shaper};
use crate::judge::id::StationId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::output::message::Message;
use crate::output::report::{StationKind, StationState};

pub(super) const STATION: StationDef = StationDef::new(StationId("link"), StationKind::Rate, &[], read, |_, _| Vec::new());

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    egress(ctx).map(|(tier, flow)| reading(ctx, tier, &flow)).into_iter().collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, flow: &Flow<'_>) -> StationReading {
    let at = Location { edge: Some(EdgeId::Interface(flow.link.name.clone())), ..Location::in_netns(tier.netns) };
    let mut station = STATION.reading(tier, at, "bits/s");
    // A queue that drops, or that is never empty, is full, whatever share of the rate the window shows.
    let full = shaper::of_answers(ctx).filter(Shaper::is_full);
    let own = flow.shaper.and_then(|qdisc| qdisc.rate_bits_per_s).or(flow.link.rate_bits_per_s());
    let rate = full.as_ref().map_or(own, |shaper| Some(shaper.rate_bits_per_s as u64));
    let used = flow.tx_bits_per_s.max(if flow.shaper.is_some() { 0.0 } else { flow.rx_bits_per_s });
    station.used = Some(used);
    station.limit = rate.map(|rate| rate as f64);
    station.refused_per_s = Some(flow.dropped as f64 / ctx.seconds().max(1e-6));
    station.waiting = flow.shaper.map(|qdisc| f64::from(qdisc.queue_length));
    let megabits = used / 1e6;
    let Some(rate) = rate.filter(|rate| *rate > 0) else {
        let why = Message::new("state-link-no-rate").with("link", flow.link.name.as_str()).with("megabits", megabits);
        return station.in_state(StationState::Ok, why);
    };
    let utilization = used / rate as f64;
    station.utilization = Some(utilization);
    station.ceiling_rps = wire_ceiling(ctx, rate as f64, flow.tx_bytes);
    if let Some(passed) = full.as_ref().filter(|_| utilization < FULL_UTILIZATION).and_then(|shaper| shaper.passed) {
        let why = Message::new("state-link-holds").with("link", flow.link.name.as_str()).with("megabits", megabits);
        let why = why.with("rate", rate as f64 / 1e6).with("drops", passed.drops);
        let why = why.with("looks", passed.looks as u64).with("waiting", passed.looks_waiting as u64);
        return station.in_state(StationState::Saturated, why);
    }
    let (state, id) = if utilization >= FULL_UTILIZATION {
        (StationState::Saturated, "state-link-full")
    } else if utilization >= NEAR_UTILIZATION {
        (StationState::Near, "state-link-near")
    } else {
        (StationState::Ok, "state-link-ok")
    };
    let why = Message::new(id).with("link", flow.link.name.as_str()).with("megabits", megabits).with("rate", rate as f64 / 1e6);
    station.in_state(state, why)
}
