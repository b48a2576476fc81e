//! Station `clients`: the demand. A fixed number of connections with one request each, or a fixed rate, limits throughput however fast the server is. It is
//! separate from the generator's station, which is about the generator's cores.

use crate::facts::Context;
use crate::facts::GOOD_MIN;
use crate::facts::ceiling::ceiling_between;
use crate::facts::cores::cost_s;
use crate::facts::limit::holding;
use crate::facts::owner::Owner;
use crate::facts::path::Tier;
use crate::facts::pool::held_s_most;
use crate::facts::quota::stops;
use crate::facts::suffered::in_flight_peak;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::load::{LoadResult, Loop};
use crate::output::message::Message;
use crate::output::report::{Ceiling, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef::new(StationId("clients"), StationKind::Rate, &[], read, |_, _| Vec::new());

/// Share of an open loop's rate that may be missing although nothing held it back: requests still under way at the end.
const RATE_MISSING_MAX: f64 = 0.02;

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let Some(load) = &ctx.obs.load else { return Vec::new() };
    let at = Location::in_netns(ctx.obs.request.client_netns);
    let mut station = STATION.reading(Owner::Client, at, "connections");
    let (limit, why) = match load.shape {
        Loop::Closed { connections } => (connections, Message::new("state-clients-closed").with("connections", connections)),
        Loop::Open { rate_per_s, connections } => {
            (connections, Message::new("state-clients-open").with("rate", rate_per_s).with("connections", connections))
        }
    };
    let used = in_flight_peak(load).min(f64::from(limit));
    station.limit = Some(f64::from(limit));
    station.used = Some(used);
    station.utilization = (limit > 0).then(|| used / f64::from(limit));
    station.ceiling_rps = ceiling(ctx, load);
    // Few connections are no fault: a closed loop always has all of them under way.
    vec![station.in_state(StationState::Ok, why)]
}

/// An open loop's own rate. For a closed loop, connections over the time that an answer takes without any queue: the time measured with no other request
/// under way, or the time that it holds a worker plus its CPU time, whichever is longer. `None` if neither is known, because the response time includes
/// queues.
fn ceiling(ctx: &Context<'_>, load: &LoadResult) -> Option<Ceiling> {
    if load.good < GOOD_MIN {
        return None;
    }
    match load.shape {
        Loop::Open { rate_per_s, .. } => (rate_per_s > 0.0).then_some(Ceiling {
            value: rate_per_s,
            low: rate_per_s * (1.0 - RATE_MISSING_MAX),
            high: rate_per_s * (1.0 + RATE_MISSING_MAX),
        }),
        Loop::Closed { connections } => {
            let held_s = held_s_most(ctx).map(|held_s| held_s + cost_s(ctx));
            // A quota or a rate limit also stops a single request.
            let is_stopped = |tier: &Tier| stops(ctx, tier) || holding(ctx, tier).is_some();
            let alone_s = ctx.alone_us().filter(|_| !ctx.path.tiers.iter().any(is_stopped)).map(|alone_us| alone_us / 1e6);
            let rate = f64::from(connections) / alone_s.into_iter().chain(held_s).reduce(f64::max)?;
            // A single request finds caches and cores cold, so the measured goodput is a lower bound.
            let rate = rate.max(load.goodput_rps());
            ceiling_between(rate, rate, rate)
        }
    }
}
