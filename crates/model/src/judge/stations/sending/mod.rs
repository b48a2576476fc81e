//! Station `sending`: how written data leaves a server's sockets. A send buffer, the peer's window, the first congestion window or a delayed acknowledgement
//! can hold a connection back while cores, workers and links have room.

mod buffer;
mod first_window;
mod flow;
mod receiver;
mod stall;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::owner::Owner;
use crate::facts::path::Tier;
use crate::facts::pool::Pool;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};
pub(crate) use buffer::{KEY_WMEM, largest_buffer, sizes};
use flow::{Flow, flows};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-send-buffer", "free-send-buffer", "send-at-once", "widen-first-window", "ask-clients"],
    graph: &[CouplingDef::judged(FindingId::POOL_EXHAUSTED, FindingId::ACK_STALL, Relation::Tier, "coupling-stall-pool")],
    standing: |ctx, finding, _| beside_queue(ctx, finding).map_or(Standing::Alone, Standing::Behind),
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
fn held<'a>(ctx: &Context<'a>, flow: &Flow<'a>) -> Option<Held> {
    let all = [stall::of(ctx, flow), first_window::of(ctx, flow), buffer::of(ctx, flow), receiver::of(ctx, flow)];
    all.into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share))
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    flows(ctx).iter().map(|flow| reading(ctx, flow)).collect()
}

fn reading<'a>(ctx: &Context<'a>, flow: &Flow<'a>) -> StationReading {
    let (owner, state, why) = match held(ctx, flow) {
        Some(held) => (held.owner, StationState::Saturated, held.title),
        None => (flow.tier.into(), StationState::Ok, flow.state()),
    };
    let reading = StationReading { used: Some(flow.sending_mean()), ..STATION.reading(owner, flow.at.clone(), "connections") };
    reading.in_state(state, why)
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    flows(ctx).iter().filter_map(|flow| finding(ctx, flow)).collect()
}

fn finding<'a>(ctx: &Context<'a>, flow: &Flow<'a>) -> Option<Finding> {
    let held = held(ctx, flow)?;
    Some(Finding {
        confidence: held.confidence,
        title: held.title,
        evidence: held.proofs,
        explanation: vec![held.explanation],
        lost_time: Some(held.share),
        ..STATION.finding(held.id, held.owner, flow.at.clone())
    })
}

/// Why a stall is not what limits: more requests wait than it costs, unread before the server, for each other inside it, or before threads that are all taken. The kernel holds the
/// response back, and no thread waits for that, so without the stall these clients would only wait there sooner.
fn beside_queue(ctx: &Context<'_>, finding: &Finding) -> Option<Message> {
    let stalled = finding.lost_time.filter(|_| finding.id == FindingId::ACK_STALL)?;
    let (tier, account) = (ctx.only_tier(&finding.owner)?, ctx.account()?);
    let (waiting, under_way) = (account.unread_at(tier.id.0), account.under_way());
    let told = |id: &'static str| {
        let message = Message::new(id).with("waiting", tenths(waiting)).with("under_way", tenths(under_way));
        message.with("tier", tier.name.as_str()).with("share", stalled * 100.0)
    };
    if waiting > stalled * under_way {
        return Some(told("finding-delayed-ack-stall-symptom"));
    }
    if let Some(inside) = held_up_inside(ctx, tier).filter(|inside| *inside > stalled * under_way) {
        return Some(told("finding-delayed-ack-stall-symptom-inside").with("inside", tenths(inside)));
    }
    let full = Pool::of(ctx, tier).filter(|pool| Cost::of_time(waiting / under_way).hurts() && pool.unread && pool.is_full())?;
    Some(told("finding-delayed-ack-stall-symptom-full").with("threads", full.workers as f64))
}

/// Requests that are known to wait for each other inside a tier: mean number beyond those that would be there if each took as long as one alone.
fn held_up_inside(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let account = ctx.account()?;
    let inside = account.most_inside(ctx).filter(|inside| inside.tier == tier.id.0 && inside.evidence.is_some())?;
    Some((inside.mean.value - account.alone(ctx).unwrap_or(0.0)).max(0.0))
}
