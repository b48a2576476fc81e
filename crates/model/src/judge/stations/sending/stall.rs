//! The stall between Nagle's algorithm and delayed acknowledgements: the end of an answer is held back until earlier data is acknowledged, and the peer
//! acknowledges that only 40 ms later, because it waits for more data.

use super::Held;
use super::flow::Flow;
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::judge::finding::Evidence;
use crate::judge::id::FindingId;
use crate::observation::{TcpSample, TcpState};
use crate::output::report::{Confidence, LedgerPlaceKind};

/// The smallest delay of a stalled answer, microseconds: an acknowledgement is delayed by 40 ms (TCP_DELACK_MIN, include/net/tcp.h), minus a tenth for the
/// clock.
const DELAYED_MIN_US: u64 = 36_000;
/// Of ten stalls seen at any moment of their 40 ms one is older than this, if requests were only watched and their times are not known, microseconds. (All ten would be
/// younger by chance once in a thousand times.)
const SEEN_OLD_US: u64 = DELAYED_MIN_US / 2;
/// A round trip from which acknowledgements take that long by themselves, microseconds. The delay cannot be told apart there.
const ROUND_TRIP_MAX_US: u64 = 20_000;
/// Age from which sent data has arrived on a short path, milliseconds. Clock ticks are up to 10 ms long, and appear shorter here only by luck.
const ARRIVED_MS: u64 = 5;
/// Connections that must have been found stalled.
const SEEN_MIN: usize = 10;

/// Whether and how much this flow stalls.
pub(super) fn of<'a>(ctx: &Context<'a>, flow: &Flow<'a>) -> Option<Held> {
    let load = ctx.obs.load.as_ref();
    // No more than this can be stalled: most servers are spared the rest.
    let sent = sent_share(ctx, flow);
    if !Cost::of_time(sent).hurts() {
        return None;
    }
    // Few connections are seen too seldom where each is read once a second.
    let more = (stalled_ms(flow).len() < SEEN_MIN).then(|| flow.by_requests(ctx)).flatten();
    let flow = more.as_ref().unwrap_or(flow);
    let ages_ms = stalled_ms(flow);
    let (seen, oldest_ms) = (ages_ms.len(), ages_ms.into_iter().max().unwrap_or(0));
    let share = flow.time_share_watched(stalls)?.min(sent);
    let is_slow = load.map_or(oldest_ms * 1_000 >= SEEN_OLD_US, |load| load.latency_us.p75 >= DELAYED_MIN_US);
    // Where the offered rate was met, the cores had time for it, whoever else used them.
    let have_cores = || load.is_some_and(|load| !load.wants_more()) || cores_are_spare(ctx);
    if seen < SEEN_MIN || !flow.hurts(share) || !is_slow || !have_cores() {
        return None;
    }
    let sending = flow.samples().filter(|sample| sample.send_queue > 0).count() as u64;
    let shortest_us = flow.round_trips_us()?.0;
    let args = |id: &'static str| {
        let text = flow.args(id).with("share", share * 100.0).with("seen", seen as u64).with("sending", sending);
        let text = text.with("trip", shortest_us / 1e3).with("oldest", oldest_ms);
        match load {
            Some(load) => text.with("ms", load.latency_us.p75 as f64 / 1e3),
            None => text,
        }
    };
    let source = format!("tcp_info notsent_bytes, unacked, last_data_sent ({})", ctx.netns_name(flow.tier.netns));
    let took = match load {
        Some(load) => Evidence::new(args("evidence-stall-took"), "load; tcp_info min_rtt", Some(load.latency_us.p75 as f64)),
        None => Evidence::new(args("evidence-stall-old"), "tcp_info last_data_sent, min_rtt", Some(oldest_ms as f64)),
    };
    let mut proofs = vec![Evidence::new(args("evidence-stall-seen"), source, Some(seen as f64)), took];
    // Clients that come back sooner gain nothing if they only wait there for longer.
    let inside = ctx.account().map(|account| account.inside(flow.tier.id.0).value / account.under_way().max(f64::MIN_POSITIVE));
    let most_inside = inside.filter(|inside| *inside > share);
    proofs.extend(
        most_inside.map(|inside| Evidence::new(args("evidence-stall-inside").with("inside", inside * 100.0), "sock_diag", Some(inside))),
    );
    Some(Held {
        id: FindingId::ACK_STALL,
        share,
        owner: flow.tier.into(),
        confidence: if most_inside.is_some() { Confidence::Medium } else { Confidence::High },
        title: args("finding-delayed-ack-stall-title"),
        explanation: args("finding-delayed-ack-stall-explanation"),
        proofs,
    })
}

/// How long since its stalled connections last sent data, milliseconds.
fn stalled_ms(flow: &Flow<'_>) -> Vec<u64> {
    flow.samples().filter(|sample| stalls(sample)).map(|sample| sample.last_data_sent_ms).collect()
}

/// The share of the requests' time in which a response was leaving, by the account: no more of it can be stalled. Of many connections only some are sampled here, those with data to
/// send before others.
fn sent_share(ctx: &Context<'_>, flow: &Flow<'_>) -> f64 {
    let account = ctx.account().filter(|account| flow.at.edge.is_none() && account.under_way() > 0.0);
    account.map_or(1.0, |account| account.at_places(flow.tier.id.0, |place| place == LedgerPlaceKind::Sending) / account.under_way())
}

/// True if less than a segment waits although both windows have room, and earlier data has long arrived and is not acknowledged. A connection with losses is
/// left out, because the loss may be the reason.
fn stalls(sample: &TcpSample) -> bool {
    let waits = sample.unsent.is_some_and(|bytes| bytes > 0 && bytes < sample.mss) && sample.unacked > 0;
    let has_room = sample.unacked < sample.cwnd && sample.peer_window.is_none_or(|bytes| bytes >= u64::from(sample.send_queue));
    let is_near = sample.min_rtt_us.is_some_and(|us| us < ROUND_TRIP_MAX_US && sample.last_data_sent_ms >= ARRIVED_MS + 2 * us / 1000);
    sample.state == TcpState::Established && waits && has_room && is_near && sample.loss_state == 0 && sample.retransmitted == 0
}
