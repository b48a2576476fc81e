//! A send buffer that holds less than the network path does: the server has sent all of it, and waits a round trip for room to write more.

use super::flow::{Flow, flows};
use super::{Held, ROUND_TRIP_MIN_US};
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::judge::finding::Evidence;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::NetnsId;
use crate::output::report::Confidence;

/// Smallest, first and largest size of send buffers (tcp(7)).
pub(crate) const KEY_WMEM: &str = "net.ipv4.tcp_wmem";
/// How many times as long as the shortest round trip the mean one may be. Beyond that, sent data waits in a queue on the network path, and more of it would
/// only wait there as well.
const QUEUED_MAX: f64 = 2.0;

/// Whether and how much the buffer holds this flow back.
pub(super) fn of(ctx: &Context<'_>, flow: &Flow<'_>) -> Option<Held> {
    let times = flow.times()?;
    let full = times.buffer / times.busy;
    let share = full * flow.time_share(|sample| sample.send_queue > 0)?;
    let (shortest_us, usual_us) = flow.round_trips_us()?;
    let is_far = shortest_us >= ROUND_TRIP_MIN_US && usual_us <= QUEUED_MAX * shortest_us;
    if !flow.hurts(share) || times.buffer <= times.window || !is_far || !cores_are_spare(ctx) {
        return None;
    }
    let buffer = flow.buffer()?;
    let data = flow.samples().map(|sample| sample.send_queue).max()?;
    let args = |id: &'static str| {
        let text = flow.args(id).with("share", share * 100.0).with("full", full * 100.0).with("ms", shortest_us / 1e3);
        text.with("buffer", buffer as f64 / 1024.0).with("data", f64::from(data) / 1024.0)
    };
    let rate = f64::from(data) * 8.0 / usual_us;
    let source = format!("tcp_info sndbuf_limited, busy_time ({})", ctx.netns_name(flow.tier.netns));
    let mut proofs = vec![Evidence::new(args("evidence-buffer-full"), source, Some(full))];
    let bound = args("evidence-buffer-bound").with("rate", rate);
    proofs.push(Evidence::new(bound, "tcp_info min_rtt, SK_MEMINFO_SNDBUF, idiag_wqueue", Some(buffer as f64)));
    if let Some([_, _, max]) = sizes(ctx, flow.tier.netns) {
        let whose = if buffer >= max { "evidence-buffer-sysctl" } else { "evidence-buffer-program" };
        proofs.push(Evidence::new(args(whose).with("max", max as f64 / 1024.0), KEY_WMEM, Some(max as f64)));
    }
    Some(Held {
        id: FindingId::BUFFER_LIMITED,
        share,
        owner: flow.tier.into(),
        confidence: Confidence::High,
        title: args("finding-send-buffer-limited-title"),
        explanation: args("finding-send-buffer-limited-explanation"),
        proofs,
    })
}

/// The three sizes of a namespace's send buffers, bytes: smallest, first and largest.
pub(crate) fn sizes(ctx: &Context<'_>, netns: NetnsId) -> Option<[u64; 3]> {
    let sizes = ctx.obs.netns.get(&netns)?.sysctl(KEY_WMEM)?.split_whitespace().map(|size| size.parse().ok());
    sizes.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

/// The largest send buffer sampled at this reading's place, bytes including the kernel's overhead.
pub(crate) fn largest_buffer(ctx: &Context<'_>, placed: &StationReading) -> Option<u64> {
    let is_its = |flow: &Flow<'_>| flow.at == placed.at && placed.owner == flow.tier.into();
    flows(ctx).iter().find(|flow| is_its(flow))?.buffer()
}
