//! What clients suffered: the cost of refusals and drops to the load's own requests, for [`Cost::hurts`] to judge.

pub(crate) mod held;
pub(crate) mod others;
pub(crate) mod standing;
pub(crate) mod takers;
pub(crate) mod undelivered;

use super::Context;
use crate::facts::harm::Cost;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::traffic;
use crate::observation::load::{INITIAL_RTO_US, LoadResult, Loop, Percentiles};
use crate::observation::{ListenerAddress, NetnsId, NetnsView};

/// Cost in microseconds of the wake-ups on a request's way into a tier and back: two threads, each on a sleeping core. A sleeping core of a virtual machine
/// returns to the hypervisor. Single requests avoid this cost, because their client and server share a warm core.
pub(crate) const WAKES_US: f64 = 100.0;

/// Shortest measured time that counts as a SYN retransmission, microseconds: nine tenths of the timeout.
const RETRY_SEEN_US: u64 = INITIAL_RTO_US * 9 / 10;

/// The smallest delay of an answer if a packet of it or of its request was lost and no later packet reveals the loss. The shortest retransmission timeout is
/// 200 ms (TCP_RTO_MIN, include/net/tcp.h), and a tail loss probe of a lone packet waits as long; a tenth is subtracted for the clock.
pub(crate) const SENT_AGAIN_US: u64 = 180_000;

/// Statuses of a gateway whose upstream refused or did not answer.
pub(crate) const GATEWAY: &[u16] = &[502, 503, 504];

/// Cost of lost SYNs, at any tier.
pub(crate) fn lost_first_packets(load: &LoadResult) -> Cost {
    let errors = load.errors;
    let failed = errors.response_timeout + answers_with(load, GATEWAY);
    let given_up = of_time(load, (errors.connect_timeout + errors.response_timeout) as f64 * load.latency_us.max as f64);
    let of_answers = Cost::of_requests(failed + never_connected(load), load.requests);
    of_answers.or(given_up).or(slower_by(load, RETRY_SEEN_US)).or(waited_to_connect(load))
}

/// Cost of connections that found an accept queue full. A request on such a connection is answered with a reset or not at all.
pub(crate) fn not_accepted(load: &LoadResult, is_first: bool) -> Cost {
    let behind = if is_first { 0 } else { answers_with(load, GATEWAY) };
    let failed = never_connected(load) + load.errors.response_timeout + load.errors.reset + behind;
    Cost::of_requests(failed, load.requests).or(slower_by(load, RETRY_SEEN_US)).or(waited_to_connect(load))
}

/// True if the server closes the connections of most requests without an answer: it accepted them, and more room in its accept queue would only let more of them fail.
pub(crate) fn are_mostly_closed(load: &LoadResult) -> bool {
    2 * load.errors.closed_before_answer > load.requests
}

/// Cost of connections of the load that were not established or took as long as one with a lost SYN. A kept connection serves many requests, so a few slow
/// ones do not make up the clients' wait.
pub(crate) fn waited_to_connect(load: &LoadResult) -> Cost {
    let slow = share_beyond(&load.connect_us, RETRY_SEEN_US) * load.connections as f64;
    let requests = (never_connected(load) as f64 + slow) / load.requests.max(1) as f64;
    let given_up_us = load.errors.connect_timeout as f64 * load.latency_us.max as f64;
    Cost::share_of_requests(requests).or(of_time(load, given_up_us + slow * RETRY_SEEN_US as f64))
}

fn never_connected(load: &LoadResult) -> u64 {
    load.errors.connect_timeout + load.errors.connect_failed
}

/// Cost of requests that took at least this much longer than the median. If all are slow, a slow one is no sign.
pub(crate) fn slower_by(load: &LoadResult, longer_us: u64) -> Cost {
    let took = &load.latency_us;
    let share = share_beyond(took, took.p50.saturating_add(longer_us));
    let at_least = of_time(load, share * load.requests as f64 * longer_us as f64);
    // Percentiles are far apart, but the lost time was summed request by request. One request in a thousand that waits for a second takes half of the time if
    // the others take a millisecond.
    let took_longer = took.max >= took.p50.saturating_add(longer_us);
    let lost = load.lost.filter(|lost| took_longer && took.p50 <= lost.patience_us / 2);
    let summed = lost.map_or(Cost::default(), |lost| of_time(load, lost.time_us as f64));
    Cost::share_of_requests(share).or(at_least).or(summed)
}

/// The largest share known to have taken this long or longer.
fn share_beyond(took: &Percentiles, us: u64) -> f64 {
    let known = [(0.5, took.p50), (0.25, took.p75), (0.1, took.p90), (0.05, took.p95), (0.01, took.p99), (0.001, took.p999)];
    known.into_iter().find(|(_, least)| *least >= us && *least > 0).map_or(0.0, |(share, _)| share)
}

/// Lost time as a share of the clients' time. Only for a closed loop, whose clients stand still meanwhile.
pub(crate) fn of_time(load: &LoadResult, lost_us: f64) -> Cost {
    match load.shape {
        Loop::Closed { connections } => {
            Cost::of_time((lost_us / (f64::from(connections.max(1)) * load.duration_us.max(1) as f64)).min(1.0))
        }
        Loop::Open { .. } => Cost::default(),
    }
}

/// Connections that a tier accepted in a namespace. The namespace counts them for all tiers, so several tiers count as having equal parts.
pub(crate) fn accepted(ctx: &Context<'_>, view: &NetnsView) -> Option<u64> {
    let is_here = |placed: &PlacedListener| ctx.obs.netns.get(&placed.netns).is_some_and(|other| std::ptr::eq(other, view));
    let is_tcp = |placed: &PlacedListener| matches!(placed.listener.address, ListenerAddress::Tcp(..));
    let accepts = |tier: &&Tier| tier.listeners.iter().any(|placed| is_tcp(placed) && is_here(placed));
    let tiers = ctx.path.tiers.iter().filter(accepts).count() as u64;
    Some(ctx.netstat_growth(view, "Tcp.PassiveOpens")? / tiers.max(1))
}

/// TCP segments that a namespace sent, and how many it retransmitted because they were lost. Excluded are handshakes and segments that the peer reported as
/// received twice (RFC 2883).
pub(crate) fn segments(ctx: &Context<'_>, view: &NetnsView) -> Option<(u64, u64)> {
    let count = |name: &str| ctx.netstat_growth(view, name);
    // Newer kernels count the segments in such reports, older ones the reports.
    let twice = count("TcpExt.TCPDSACKRecvSegs")
        .or_else(|| Some(count("TcpExt.TCPDSACKRecv")?.saturating_add(count("TcpExt.TCPDSACKOfoRecv")?)))?;
    let again = count("Tcp.RetransSegs")?.saturating_sub(count("TcpExt.TCPSynRetrans")?).saturating_sub(twice);
    Some((count("Tcp.OutSegs").filter(|sent| *sent > 0)?, again))
}

/// Cost of refusals in watched traffic, as a share of all requests according to access logs, samples or a namespace's counters. If their number is unknown,
/// the refused requests count as all. The namespace counts the connections of others as well: where they had some, its count only stands in for what nothing else tells.
pub(crate) fn turned_away(ctx: &Context<'_>, netns: Option<NetnsId>, lost: u64) -> Cost {
    let (answered, sampled) = (answered(ctx), sampled(ctx));
    let is_shared = netns.is_some_and(|id| !ctx.others(id).had_none());
    let opened = netns.and_then(|id| accepted(ctx, ctx.obs.netns.get(&id)?)).filter(|_| !is_shared || answered.max(sampled).is_none());
    let came = answered.max(sampled.max(opened).map(|came| came.saturating_add(lost)));
    Cost::of_requests(lost, came.unwrap_or(lost))
}

/// Requests in the access logs of watched traffic.
fn answered(ctx: &Context<'_>) -> Option<u64> {
    traffic::of(ctx).map(|traffic| traffic.requests)
}

/// Requests according to the samples.
fn sampled(ctx: &Context<'_>) -> Option<u64> {
    ctx.account().and_then(|account| Some((account.rate_rps()? * ctx.seconds()) as u64))
}

/// The same for connections whose packets were dropped. Each waits until it tries again.
pub(crate) fn dropped(ctx: &Context<'_>, netns: NetnsId, lost: u64) -> Cost {
    turned_away(ctx, Some(netns), lost).or(waited_after(ctx, lost as f64))
}

/// The same where all connections of the namespace, the path's and others, were dropped alike.
pub(crate) fn dropped_alike(ctx: &Context<'_>, netns: NetnsId, lost: u64) -> Cost {
    let opened = ctx.obs.netns.get(&netns).and_then(|view| accepted(ctx, view));
    let own = answered(ctx).max(sampled(ctx));
    let came = own.max(opened).map_or(lost, |came| came.saturating_add(lost));
    let is_shared = !ctx.others(netns).had_none();
    let part = own.zip(opened).filter(|_| is_shared).map_or(1.0, |(own, opened)| (own as f64 / opened.max(1) as f64).min(1.0));
    Cost::of_requests(lost, came).or(waited_after(ctx, part * lost as f64))
}

/// The time until the next try, as a share of the time of the requests under way.
fn waited_after(ctx: &Context<'_>, lost: f64) -> Cost {
    let under_way_us = ctx.account().map_or(0.0, |account| account.under_way() * ctx.seconds() * 1e6);
    let waited = if under_way_us > 0.0 { lost * INITIAL_RTO_US as f64 / under_way_us } else { 0.0 };
    Cost::of_time(waited.min(1.0))
}

/// The most requests under way at once.
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
