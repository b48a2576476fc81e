//! Station `sending`: how what a server has written gets out of its sockets. A send buffer, the peer's window, the first congestion window or a
//! delayed acknowledgement can hold a connection back while cores, workers and links have room.

mod buffer;
mod first_window;
mod flow;
mod receiver;
mod stall;

use super::{Context, StationDef, StationReading, blank, unjudged};
use crate::judge::findings::{ACK_STALL, BUFFER_LIMITED, RECEIVER_LIMITED, SMALL_WINDOW};
use crate::output::message::Message;
use crate::output::report::{Confidence, Evidence, Finding, StationKind, StationState};
pub(crate) use buffer::{KEY_WMEM, largest_buffer, sizes};
use flow::{Flow, flows};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-send-buffer", "free-send-buffer", "send-at-once", "widen-first-window", "ask-clients"],
    ..StationDef::new("sending", StationKind::Cliff, &[BUFFER_LIMITED, ACK_STALL, SMALL_WINDOW, RECEIVER_LIMITED], read, judge)
};

/// The shortest way on which round trips matter, microseconds: where acknowledgements come back sooner, it is the receiver's own pace that is waited
/// for.
const ROUND_TRIP_MIN_US: f64 = 1_000.0;

/// What is wrong with a flow.
struct Held {
    id: &'static str,
    /// Share of the time of the requests under way.
    share: f64,
    /// Whose fault it is, where not the sender's.
    tier: Option<&'static str>,
    confidence: Confidence,
    title: Message,
    explanation: Message,
    proofs: Vec<Evidence>,
}

/// What takes most of the time of its connections.
fn held(ctx: &Context<'_>, flow: &Flow<'_>) -> Option<Held> {
    let all = [stall::of(ctx, flow), first_window::of(ctx, flow), buffer::of(ctx, flow), receiver::of(ctx, flow)];
    all.into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share))
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let placed = |flow: &Flow<'_>| {
        let mut station = blank(&STATION, flow.tier.to_owned(), flow.at.clone(), "connections");
        station.used = Some(flow.sending_mean());
        let held = held(ctx, flow);
        if let Some(tier) = held.as_ref().and_then(|held| held.tier) {
            tier.clone_into(&mut station.tier);
        }
        station.state = if held.is_some() { StationState::Saturated } else { StationState::Ok };
        station.why = held.map_or_else(|| ctx.text(flow.state()), |held| ctx.text(held.title));
        StationReading { netns: Some(flow.netns), station }
    };
    flows(ctx).iter().map(placed).collect()
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    let finding = |flow: &Flow<'_>| {
        let held = held(ctx, flow)?;
        Some(Finding {
            id: held.id.to_owned(),
            station: STATION.id.to_owned(),
            tier: held.tier.unwrap_or(flow.tier).to_owned(),
            at: flow.at.clone(),
            confidence: held.confidence,
            title: ctx.text(held.title),
            evidence: held.proofs,
            explanation: ctx.text(held.explanation),
            ..unjudged()
        })
    };
    flows(ctx).iter().filter_map(finding).collect()
}
