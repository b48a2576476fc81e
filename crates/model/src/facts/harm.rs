//! Who suffered: what the load's own requests show of what a cliff turned away.

use super::Context;
use crate::load::{LoadResult, Loop};

/// Microseconds that a request's way into a tier and back out of it may cost in wake-ups: two threads, each on a core that sleeps. Virtual
/// machines leave to the hypervisor for that, and single requests, whose client and server share a warm core, are spared of it.
pub(crate) const WAKES_US: f64 = 100.0;
/// SYNs sent again, as a share of the connections opened, above which connecting takes long because SYNs are lost and not for the distance.
pub(crate) const RETRIED_SHARE_MAX: f64 = 0.01;

/// Share of failed requests above which a verdict has to explain them.
pub(crate) const FAILED_SHARE_MAX: f64 = 0.01;

/// Nine tenths of the time after which a SYN that was lost is sent again (RFC 6298, initial RTO of one second): what a clock may show of it.
const SYN_RETRY_SEEN_US: u64 = 900_000;

/// Share of the requests that must have suffered for what a cliff turned away to count as harm: fewer are the tail of any load, and may be somebody
/// else's bad luck.
const SUFFERED_SHARE_MIN: f64 = 0.001;

/// True where more than a few of so many suffered.
pub(crate) fn is_harm(suffered: u64, of: u64) -> bool {
    suffered > 0 && suffered as f64 >= SUFFERED_SHARE_MIN * of as f64
}

/// True where more than a few requests took longer than the median by as much as it takes to send a SYN again: where all are slow, a slow one
/// is no sign of that.
pub(crate) fn waited_for_retry(load: &LoadResult) -> bool {
    let took = load.latency_us;
    connected_us(load) >= SYN_RETRY_SEEN_US || took.p999.saturating_sub(took.p50) >= SYN_RETRY_SEEN_US
}

/// The time that so many connections took to be established, or longer, as make up [`SUFFERED_SHARE_MIN`] of the requests, microseconds; nothing
/// where all of them are fewer. Of connections that are kept each serves many requests, and few of them make all wait.
fn connected_us(load: &LoadResult) -> u64 {
    let share = SUFFERED_SHARE_MIN * load.requests as f64 / load.connections.max(1) as f64;
    let took = load.connect_us;
    let shares = [(0.001, took.p999), (0.01, took.p99), (0.05, took.p95), (0.1, took.p90), (0.25, took.p75), (0.5, took.p50)];
    // The percentiles are far apart: half as many is near enough.
    shares.into_iter().find(|(of, _)| share <= 2.0 * *of).map_or(0, |(_, us)| us)
}

/// Share of its clients' time that a closed loop must have lost for that to count as harm, however few requests it was.
const LOST_TIME_MIN: f64 = 0.01;

/// True where the clients of a closed loop stood still for much of the time until they gave up so many requests: of connections that are kept each
/// serves many, and a few that are lost take a client's whole time.
fn stood_still(load: &LoadResult, given_up: u64) -> bool {
    let Loop::Closed { connections } = load.shape else { return false };
    // What is given up is the longest that anything took.
    let lost_us = given_up as f64 * load.latency_us.max as f64;
    given_up > 0 && lost_us >= LOST_TIME_MIN * f64::from(connections) * load.duration_us as f64
}

/// True where more than a few connections of the load were not established, or took as long as one does whose SYN was lost.
pub(crate) fn waited_to_connect(load: &LoadResult) -> bool {
    let errors = load.errors;
    let is_long = connected_us(load) >= SYN_RETRY_SEEN_US;
    is_long || is_harm(errors.connect_timeout + errors.connect_failed, load.requests) || stood_still(load, errors.connect_timeout)
}

/// True where the load's own requests suffered as dropped first packets make them suffer, at whichever tier; without load of our own, drops count
/// as harm.
pub(crate) fn lost_first_packets(ctx: &Context<'_>) -> bool {
    ctx.obs.load.as_ref().is_none_or(|load| {
        let errors = load.errors;
        let failed = errors.connect_timeout + errors.response_timeout + errors.connect_failed;
        let is_many = is_harm(failed + answers_with(load, &[502, 503, 504]), load.requests);
        is_many || stood_still(load, errors.connect_timeout + errors.response_timeout) || waited_for_retry(load)
    })
}

/// Requests that were under way at once, at the most.
pub(crate) fn in_flight_peak(load: &LoadResult) -> f64 {
    match load.shape {
        Loop::Closed { connections } => f64::from(connections),
        Loop::Open { .. } => load.slices.iter().map(|slice| f64::from(slice.in_flight)).fold(0.0, f64::max),
    }
}

/// Answers with one of these statuses.
pub(crate) fn answers_with(load: &LoadResult, statuses: &[u16]) -> u64 {
    statuses.iter().filter_map(|status| load.status.get(status)).sum()
}
