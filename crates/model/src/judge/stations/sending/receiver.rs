//! Clients whose receive window is smaller than what the network path holds: the server can send no more than they accept.

use super::flow::Flow;
use super::{Held, ROUND_TRIP_MIN_US};
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::owner::Owner;
use crate::judge::finding::Evidence;
use crate::judge::id::FindingId;
use crate::output::report::Confidence;

/// Whether and how much the clients' windows delay the answers.
pub(super) fn of(ctx: &Context<'_>, flow: &Flow<'_>) -> Option<Held> {
    let times = flow.times().filter(|_| flow.is_outermost)?;
    let full = times.window / times.busy;
    let share = full * flow.time_share(|sample| sample.send_queue > 0)?;
    let shortest_us = flow.round_trips_us()?.0;
    if !flow.hurts(share) || times.window <= times.buffer || shortest_us < ROUND_TRIP_MIN_US || !cores_are_spare(ctx) {
        return None;
    }
    let window = flow.samples().filter_map(|sample| sample.peer_window).max();
    let args = |id: &'static str| {
        let text = flow.args(id).with("share", share * 100.0).with("full", full * 100.0).with("ms", shortest_us / 1e3);
        text.with("window", window.unwrap_or(0) as f64 / 1024.0)
    };
    let source = format!("tcp_info rwnd_limited, busy_time ({})", ctx.netns_name(flow.tier.netns));
    let mut proofs = vec![Evidence::new(args("evidence-receiver-full"), source, Some(full))];
    if let Some(window) = window {
        proofs.push(Evidence::new(args("evidence-receiver-window"), "tcp_info snd_wnd, min_rtt", Some(window as f64)));
    }
    Some(Held {
        id: FindingId::RECEIVER_LIMITED,
        share,
        owner: Owner::Client,
        confidence: Confidence::High,
        title: args("finding-receiver-limited-title"),
        explanation: args("finding-receiver-limited-explanation"),
        proofs,
    })
}
