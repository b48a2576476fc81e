//! What a full shaper costs the clients: the time that answers wait in front of it, and the requests that it has no room for.

use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::{Cost, LATENCY_NOISE_SHARE};
use crate::facts::path::shaper::Shaper;
use crate::facts::suffered::{WAKES_US, of_time};
use crate::judge::finding::Evidence;
use crate::observation::load::{LoadResult, Loop};
use crate::output::message::Message;

/// The cost of a shaper that is full. Without a standing queue or load nothing is known of it.
pub(super) fn of(ctx: &Context<'_>, shaper: &Shaper<'_>) -> Cost {
    let wait_us = shaper.wait_us();
    let Some(load) = &ctx.obs.load else { return watched(ctx, wait_us).or(held(ctx, shaper)) };
    match load.shape {
        // Each good answer waits at least once behind the bytes in the queue.
        Loop::Closed { .. } => of_time(load, load.good as f64 * wait_us).or(before_it(ctx)).or(given_up(load)),
        Loop::Open { rate_per_s, .. } => short_of(load, rate_per_s).or(late(ctx, load, wait_us)),
    }
}

/// In a closed loop: the requests whose clients gave up waiting.
fn given_up(load: &LoadResult) -> Cost {
    Cost::of_requests(load.errors.response_timeout + load.errors.connect_timeout, load.requests)
}

/// In a closed loop: the time beyond that of a single request, as a share. A short queue drops instead of holding, and the bytes then wait in the senders'
/// sockets. If the cores have room, they wait for nothing else: what is full lets no more answers pass, wherever they would wait without it.
fn before_it(ctx: &Context<'_>) -> Cost {
    let Some((alone, loaded)) = ctx.answer_us().filter(|_| cores_are_spare(ctx)) else { return Cost::default() };
    let wakes = WAKES_US * ctx.path.tiers.len() as f64;
    Cost::of_time(((loaded - alone - wakes) / loaded.max(1.0)).max(0.0))
}

/// In an open loop: the share of the offered requests that did not get a good answer, if it fell short of its rate.
fn short_of(load: &LoadResult, rate_per_s: f64) -> Cost {
    let missing = 1.0 - load.goodput_rps() / rate_per_s.max(1.0);
    Cost::share_of_requests(if load.wants_more() { missing.clamp(0.0, 1.0) } else { 0.0 })
}

/// In an open loop: half of the requests, if the median is longer than a single request by the wait in the queue and by more than noise.
fn late(ctx: &Context<'_>, load: &LoadResult, wait_us: f64) -> Cost {
    let Some(alone) = ctx.alone_us().filter(|_| wait_us > 0.0) else { return Cost::default() };
    let longer = load.latency_us.p50 as f64 - alone;
    Cost::share_of_requests(if longer >= wait_us.max(LATENCY_NOISE_SHARE * alone) { 0.5 } else { 0.0 })
}

/// Watched traffic: the requests that are in the queue on average (rate times wait) of all that are under way.
fn watched(ctx: &Context<'_>, wait_us: f64) -> Cost {
    let share = ctx.account().and_then(|account| {
        let under_way = account.under_way();
        (under_way > 0.0).then_some(account.rate_rps()? * wait_us / 1e6 / under_way)
    });
    Cost::of_time(share.unwrap_or(0.0).min(1.0))
}

/// Watched traffic: the connections that cannot get rid of what they send, of all requests under way. A short queue drops instead of holding, and the bytes then wait in the
/// senders' sockets; the account may not count answers that take longer than a client's next request.
fn held(ctx: &Context<'_>, shaper: &Shaper<'_>) -> Cost {
    let sending = shaper.sending_mean(ctx);
    let under_way = ctx.account().map_or(0.0, crate::ledger::Account::under_way).max(sending);
    Cost::of_time(if under_way > 0.0 && cores_are_spare(ctx) { sending / under_way } else { 0.0 })
}

/// What the clients lose, in words.
pub(super) fn proof(ctx: &Context<'_>, cost: Cost) -> Evidence {
    let is_time = cost.time > 0.0;
    let id = if is_time { "evidence-shaper-time" } else { "evidence-shaper-requests" };
    let share = if is_time { cost.time } else { cost.requests };
    let source = if ctx.obs.load.is_some() { "load" } else { "sockets" };
    Evidence::new(Message::new(id).with("share", share * 100.0), source, Some(share))
}
