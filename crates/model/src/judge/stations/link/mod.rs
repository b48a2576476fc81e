//! Station `link`: the network interface through which answers leave, and its shaper if it has one.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::judge::id::StationId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::observation::{Link, NetnsId, NetnsView, Qdisc};
use crate::output::message::Message;
use crate::output::report::{Ceiling, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef::new(StationId("link"), StationKind::Rate, &[], read, |_, _| Vec::new());

/// Share of the rate from which a link counts as full. Goodput read from a socket buffer runs ahead of the wire by more than that in short windows
/// (KNOWLEDGE.md, "Signals"), and framing takes the rest.
const FULL_UTILIZATION: f64 = 0.95;
/// Share from which the headroom is reported as small.
const NEAR_UTILIZATION: f64 = 0.80;

/// An interface's traffic over the window.
struct Flow<'a> {
    link: &'a Link,
    /// As counted by the shaper, if there is one and it counts.
    tx_bits_per_s: f64,
    rx_bits_per_s: f64,
    tx_bytes: u64,
    dropped: u64,
    shaper: Option<&'a Qdisc>,
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let Some(tier) = ctx.path.tiers.first() else { return Vec::new() };
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Vec::new() };
    let mut flows = flows(ctx, view, tier.netns);
    flows.retain(|flow| flow.link.up);
    // The answers leave through the interface that sends most.
    flows.sort_by(|a, b| b.tx_bits_per_s.total_cmp(&a.tx_bits_per_s));
    flows.first().map(|flow| reading(ctx, tier, flow)).into_iter().collect()
}

fn flows<'a>(ctx: &Context<'a>, view: &'a NetnsView, netns: NetnsId) -> Vec<Flow<'a>> {
    let Some((first, last, elapsed_us)) = ctx.around(&view.links) else { return Vec::new() };
    let loopback_only = ctx.obs.request.client_netns == netns;
    let seconds = elapsed_us as f64 / 1e6;
    let delta = |link: &'a Link| {
        let before = first.iter().find(|other| other.index == link.index)?;
        // Within one namespace all traffic passes the loopback device, whatever the address.
        if (link.name == "lo") != loopback_only {
            return None;
        }
        let shaper = view.qdiscs.last().and_then(|qdiscs| shaper(qdiscs, link.index));
        let shaped = shaper.and_then(|shaper| passed(ctx, view, shaper));
        let (tx_bytes, tx_seconds) = shaped.unwrap_or((link.tx_bytes.saturating_sub(before.tx_bytes), seconds));
        Some(Flow {
            link,
            tx_bits_per_s: tx_bytes as f64 * 8.0 / tx_seconds,
            rx_bits_per_s: link.rx_bytes.saturating_sub(before.rx_bytes) as f64 * 8.0 / seconds,
            tx_bytes,
            dropped: (link.tx_dropped + link.rx_dropped).saturating_sub(before.tx_dropped + before.rx_dropped),
            shaper,
        })
    };
    last.iter().filter_map(delta).collect()
}

/// The tightest shaper on an interface.
fn shaper(qdiscs: &[Qdisc], link: u32) -> Option<&Qdisc> {
    qdiscs.iter().filter(|qdisc| qdisc.link == link && qdisc.rate_bits_per_s.is_some()).min_by_key(|qdisc| qdisc.rate_bits_per_s)
}

/// Bytes that a shaper let pass, and in how many seconds. A packet that is still to be segmented counts one header at a virtual interface, but every
/// segment's header at the shaper, as on the wire (qdisc_pkt_len_init() in net/core/dev.c).
fn passed(ctx: &Context<'_>, view: &NetnsView, shaper: &Qdisc) -> Option<(u64, f64)> {
    let (first, last, elapsed_us) = ctx.around(&view.qdiscs)?;
    let is_it = |qdisc: &&Qdisc| (qdisc.link, qdisc.handle, qdisc.parent) == (shaper.link, shaper.handle, shaper.parent);
    let bytes = last.iter().find(is_it)?.bytes.checked_sub(first.iter().find(is_it)?.bytes)?;
    (bytes > 0).then_some((bytes, elapsed_us as f64 / 1e6))
}

fn reading(ctx: &Context<'_>, tier: &Tier, flow: &Flow<'_>) -> StationReading {
    let at = Location { edge: Some(EdgeId::Interface(flow.link.name.clone())), ..Location::in_netns(tier.netns) };
    let mut station = STATION.reading(tier, at, "bits/s");
    let rate = flow.shaper.and_then(|qdisc| qdisc.rate_bits_per_s).or(flow.link.rate_bits_per_s());
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
    station.ceiling_rps = ceiling(ctx, flow, rate as f64);
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

/// Rate over wire bytes per answer. The bytes were counted on the wire, so the error is how much the answers differ: 5 %.
fn ceiling(ctx: &Context<'_>, flow: &Flow<'_>, rate_bits_per_s: f64) -> Option<Ceiling> {
    let good = ctx.good().filter(|_| ctx.can_divide_by_good())? as f64;
    let bits_per_answer = flow.tx_bytes as f64 * 8.0 / good;
    let value = rate_bits_per_s / bits_per_answer.max(1.0);
    Some(Ceiling { value, low: value * 0.95, high: value * 1.05 })
}
