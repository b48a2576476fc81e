//! Station `sending`: how written data leaves a server's sockets. A send buffer, the peer's window, the first congestion window or a delayed acknowledgement
//! can hold a connection back while cores, workers and links have room.

mod buffer;
mod first_window;
mod flow;
mod receiver;
mod stall;

use crate::facts::Context;
use crate::facts::owner::Owner;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::station::{StationDef, StationReading};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};
pub(crate) use buffer::{KEY_WMEM, largest_buffer, sizes};
use flow::{Flow, flows};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-send-buffer", "free-send-buffer", "send-at-once", "widen-first-window", "ask-clients"],
    ..StationDef::new(
        StationId("sending"),
        StationKind::Cliff,
        &[FindingId::BUFFER_LIMITED, FindingId::ACK_STALL, FindingId::SMALL_WINDOW, FindingId::RECEIVER_LIMITED],
        read,
        judge,
    )
};

/// The shortest round trip that matters, microseconds. If acknowledgements come back sooner, the wait is for the receiver's own pace.
const ROUND_TRIP_MIN_US: f64 = 1_000.0;

/// What is wrong with a flow.
struct Held {
    id: FindingId,
    /// Share of the time of the requests under way.
    share: f64,
    /// Whose fault it is.
    owner: Owner,
    confidence: Confidence,
    title: Message,
    explanation: Message,
    proofs: Vec<Evidence>,
}

/// The problem that takes most of the connections' time.
fn held(ctx: &Context<'_>, flow: &Flow<'_>) -> Option<Held> {
    let all = [stall::of(ctx, flow), first_window::of(ctx, flow), buffer::of(ctx, flow), receiver::of(ctx, flow)];
    all.into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share))
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let placed = |flow: &Flow<'_>| {
        let (owner, state, why) = match held(ctx, flow) {
            Some(held) => (held.owner, StationState::Saturated, held.title),
            None => (flow.tier.into(), StationState::Ok, flow.state()),
        };
        let reading = StationReading { used: Some(flow.sending_mean()), ..STATION.reading(owner, flow.at.clone(), "connections") };
        reading.in_state(state, why)
    };
    flows(ctx).iter().map(placed).collect()
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    let finding = |flow: &Flow<'_>| {
        let held = held(ctx, flow)?;
        Some(Finding {
            confidence: held.confidence,
            title: held.title,
            evidence: held.proofs,
            explanation: vec![held.explanation],
            lost_time: Some(held.share),
            ..STATION.finding(held.id, held.owner, flow.at.clone())
        })
    };
    flows(ctx).iter().filter_map(finding).collect()
}
