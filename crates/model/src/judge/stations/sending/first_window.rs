//! A first congestion window that is smaller than usual: each new connection needs more round trips for its answer than necessary.

use chokepoint_statistics::median_high;

use super::flow::Flow;
use super::{Held, ROUND_TRIP_MIN_US};
use crate::facts::Context;
use crate::facts::GOOD_MIN;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::judge::finding::Evidence;
use crate::judge::id::FindingId;
use crate::observation::TcpSample;
use crate::output::report::Confidence;

/// Segments that Linux sends at first (TCP_INIT_CWND, RFC 6928). A smaller number was set for the route.
const USUAL_SEGMENTS: u64 = 10;
/// Acknowledged segments after the handshake (net/ipv4/tcp_input.c, tcp_rcv_state_process): no data yet.
const DELIVERED_AT_FIRST: u64 = 1;
/// The smallest window with which BBR continues after the first flight (net/ipv4/tcp_bbr.c, bbr_cwnd_min_target). Others only double it, so this counts too
/// few round trips rather than too many.
const SECOND_MIN: f64 = 4.0;
/// Connections that must have been seen in their first flight.
const FIRST_MIN: usize = 5;
/// One in this many of them may have been given a larger window.
const OTHERS_PART: usize = 10;
/// Connections per request from which most answers start with the first window.
const OPENED_MIN: f64 = 0.5;

/// Whether and how much the first window delays the answers to the clients.
pub(super) fn of(ctx: &Context<'_>, flow: &Flow<'_>) -> Option<Held> {
    let load = ctx.obs.load.as_ref().filter(|load| load.requests >= GOOD_MIN && ctx.can_divide_by_good())?;
    let is_new = load.connections as f64 >= OPENED_MIN * load.requests as f64;
    let mut first: Vec<u64> = flow.samples().filter_map(first_window).collect();
    if !flow.is_outermost || !is_new || first.len() < FIRST_MIN {
        return None;
    }
    // Routes may differ. A value near the largest blames least, and a few clients with a larger window do not hide the problem.
    first.sort_unstable();
    let window = first.get(first.len() - 1 - first.len() / OTHERS_PART).copied().filter(|window| *window < USUAL_SEGMENTS)?;
    let mss = median_high(flow.samples().map(|sample| sample.mss).collect())? as f64;
    let segments = load.received_bytes as f64 / load.requests as f64 / mss.max(1.0);
    let (trips, usual) = (trips(segments, window), trips(segments, USUAL_SEGMENTS));
    let shortest_us = flow.round_trips_us()?.0;
    let longer_us = (trips - usual) * shortest_us;
    let share = longer_us / load.latency_us.p50.max(1) as f64;
    if !Cost::of_time(share).hurts() || shortest_us < ROUND_TRIP_MIN_US || !cores_are_spare(ctx) {
        return None;
    }
    let args = |id: &'static str| {
        let text = flow.args(id).with("window", window).with("segments", segments).with("trips", trips).with("usual", usual);
        text.with("ms", shortest_us / 1e3).with("longer", longer_us / 1e3).with("share", share.min(1.0) * 100.0)
    };
    let source = format!("tcp_info snd_cwnd, delivered ({})", ctx.netns_name(flow.tier.netns));
    let proofs = vec![
        Evidence::new(args("evidence-first-window-seen"), source, Some(window as f64)),
        Evidence::new(args("evidence-first-window-trips"), "load; tcp_info min_rtt", Some(longer_us)),
    ];
    Some(Held {
        id: FindingId::SMALL_WINDOW,
        share,
        owner: flow.tier.into(),
        confidence: Confidence::Medium,
        title: args("finding-small-initial-window-title"),
        explanation: args("finding-small-initial-window-explanation"),
        proofs,
    })
}

/// The window of a connection that has sent its first flight and lost nothing.
fn first_window(sample: &TcpSample) -> Option<u64> {
    let is_first = sample.delivered == Some(DELIVERED_AT_FIRST) && sample.unacked > 0;
    (is_first && sample.retransmitted == 0 && sample.loss_state == 0).then_some(sample.cwnd)
}

/// Round trips until this many segments were sent, if each doubles the window.
fn trips(segments: f64, first: u64) -> f64 {
    let (mut left, mut window, mut trips) = (segments - first as f64, first as f64, 1.0);
    while left > 0.0 {
        window = (2.0 * window).max(SECOND_MIN);
        left -= window;
        trips += 1.0;
    }
    trips
}
