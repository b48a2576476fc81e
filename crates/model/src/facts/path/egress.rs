//! The interface through which the answers leave the first tier, with its traffic and the tightest shaper on it.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{Link, NetnsId, NetnsView, Qdisc};
use crate::output::report::Ceiling;

/// Share from which the headroom of an interface or a shaper is reported as small.
pub(crate) const NEAR_UTILIZATION: f64 = 0.80;
/// Error of a ceiling by bytes on the wire. They were counted, so the error is how much the answers differ.
const CEILING_SPREAD: f64 = 0.05;

/// An interface's traffic over the window.
pub(crate) struct Flow<'a> {
    /// The interface.
    pub(crate) link: &'a Link,
    /// Bits sent a second, as counted by the shaper, if there is one and it counts.
    pub(crate) tx_bits_per_s: f64,
    /// Bits received a second.
    pub(crate) rx_bits_per_s: f64,
    /// Bytes sent.
    pub(crate) tx_bytes: u64,
    /// Packets dropped, either way.
    pub(crate) dropped: u64,
    /// The tightest shaper on it.
    pub(crate) shaper: Option<&'a Qdisc>,
}

/// Rate over the bytes on the wire of a good answer, of `bytes` in all; `None` where there are too few.
pub(crate) fn wire_ceiling(ctx: &Context<'_>, rate_bits_per_s: f64, bytes: u64) -> Option<Ceiling> {
    let good = ctx.good().filter(|_| ctx.can_divide_by_good())? as f64 * ctx.times_own();
    let value = rate_bits_per_s / (bytes as f64 * 8.0 / good).max(1.0);
    Some(Ceiling { value, low: value * (1.0 - CEILING_SPREAD), high: value * (1.0 + CEILING_SPREAD) })
}

/// The interface of the first tier that sends most: the answers leave through it.
pub(crate) fn egress<'a>(ctx: &Context<'a>) -> Option<(&'a Tier, Flow<'a>)> {
    let tier = ctx.path.tiers.first()?;
    let view = ctx.obs.netns.get(&tier.netns)?;
    let mut flows = flows(ctx, view, tier.netns);
    flows.retain(|flow| flow.link.up);
    flows.sort_by(|a, b| b.tx_bits_per_s.total_cmp(&a.tx_bits_per_s));
    Some((tier, flows.into_iter().next()?))
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
