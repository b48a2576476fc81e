//! How many workers a pool needs, with the arithmetic: requests that come times the time that each holds a worker, and a reserve. A queue is no demand: its
//! length grows with an outage.

use crate::facts::Context;
use crate::facts::cores::{Carried, carried, own_share, share_of_tier};
use crate::facts::harm::NOISE_SHARE;
use crate::facts::path::Tier;
use crate::facts::pool::{Pool, Queued, Staffing, held_s};
use crate::facts::suffered::in_flight_peak;
use crate::facts::traffic;
use crate::judge::station::StationReading;
use crate::observation::load::Loop;
use crate::output::message::Message;

/// Mean fill of the accept queue, as a share of its limit, from which it overflows and does not hold everybody who comes.
const QUEUE_CUT_OFF_SHARE: f64 = 0.5;
/// Without a rate or a service time how many are needed is not known: twice as many show more.
const TIMES_UNKNOWN: f64 = 2.0;

/// A number of workers, and how it follows from what was read.
pub(super) struct Demand {
    pub(super) workers: f64,
    /// "20/s x 250 ms = 5, plus reserve: 7".
    pub(super) sum: Message,
}

impl Demand {
    /// What a tier's pool of `workers` needs for the requests that come, as far as its cores have time for them.
    pub(super) fn of(ctx: &Context<'_>, tier: &Tier, placed: &StationReading, workers: f64) -> Self {
        let pool = Pool::of(ctx, tier);
        let held_s = pool.as_ref().and_then(|pool| held_s(ctx, tier, pool));
        let Carried { rate_rps, cpu_s } = carried(ctx, tier);
        let carried =
            rate_rps.zip(held_s).map(|(rate_rps, held_s)| Self::by_rate("sum-workers-cores", Staffing { rate_rps, held_s, cpu_s }));
        let wanted = Self::wanted(ctx, tier, placed, workers, held_s.map(|held_s| (held_s, cpu_s)));
        match carried {
            Some(carried) if carried.workers < wanted.workers => carried,
            Some(_) => wanted,
            None => wanted.within_cores(ctx, tier, workers),
        }
    }

    /// Where it is not known what an answer costs: as many as fill the cores, if the workers that there are use this share of them.
    fn within_cores(self, ctx: &Context<'_>, tier: &Tier, workers: f64) -> Self {
        // What the servers before it use for errors of their own does not grow with its workers.
        let errs = ctx.obs.load.is_some() && !ctx.can_divide_by_good();
        let (share, id) = match errs {
            true => (share_of_tier(ctx, tier), "sum-workers-share-own"),
            false => (own_share(ctx, tier), "sum-workers-share"),
        };
        match share.filter(|share| *share > 0.0) {
            Some(share) if (workers / share).ceil() < self.workers => {
                let most = (workers / share).ceil();
                let sum = Message::new(id).with("taken", workers).with("share", share * 100.0).with("workers", most);
                Self { workers: most, sum }
            }
            _ => self,
        }
    }

    /// What the requests that come need, however many the cores carry.
    fn wanted(ctx: &Context<'_>, tier: &Tier, placed: &StationReading, workers: f64, held: Option<(f64, f64)>) -> Self {
        let arrivals = Arrivals::of(ctx, tier);
        let more_come =
            arrivals.zip(held).is_some_and(|(arrivals, (held_s, _))| arrivals.rate_rps * held_s > (1.0 + NOISE_SHARE) * workers);
        let is_open = match ctx.obs.load.as_ref().map(|load| load.shape) {
            Some(shape) => matches!(shape, Loop::Open { .. }),
            None => Queued::of(ctx, tier).grows(),
        };
        if !is_open && ctx.obs.load.is_some() {
            return Self::standing(ctx, tier, placed, workers);
        }
        // Watched clients that wait for their answers ask for more once they are answered sooner, and how many of those who wait now will is not known.
        let id = if is_open || more_come { "sum-workers-rate" } else { "sum-workers-watched" };
        let by_rate = arrivals.zip(held);
        let by_rate = by_rate.map(|(arrivals, (held_s, cpu_s))| Self::by_rate(id, Staffing { rate_rps: arrivals.rate_rps, held_s, cpu_s }));
        // All of them are taken, so as many are too few.
        by_rate.filter(|demand| demand.workers > workers).unwrap_or_else(|| Self::twice(workers))
    }

    fn twice(workers: f64) -> Self {
        Self { workers: TIMES_UNKNOWN * workers, sum: Message::new("sum-workers-unknown") }
    }

    fn by_rate(id: &'static str, staffing: Staffing) -> Self {
        let workers = staffing.workers();
        let sum = Message::new(id).with("rate", staffing.rate_rps).with("ms", staffing.held_s * 1e3);
        Self { workers, sum: sum.with("at_once", staffing.at_once()).with("workers", workers) }
    }

    /// Clients that ask again only once they are answered: as many as stand there at once, in service and waiting.
    fn standing(ctx: &Context<'_>, tier: &Tier, placed: &StationReading, workers: f64) -> Self {
        let waiting = placed.waiting.unwrap_or(0.0).ceil();
        // A queue that overflows shows only some of the waiting clients. The load knows them all.
        let room: u32 = tier.listeners.iter().map(|placed| placed.listener.accept_queue_limit).sum();
        let cut_off = waiting >= QUEUE_CUT_OFF_SHARE * f64::from(room);
        let clients = ctx.obs.load.as_ref().filter(|_| cut_off).map_or(0.0, in_flight_peak);
        if clients > workers + waiting {
            return Self { workers: clients, sum: Message::new("sum-workers-clients").with("clients", clients) };
        }
        // Connections of clients that gave up stay in the queue: no more ask at once than there are.
        let all = ctx.obs.load.as_ref().map_or(f64::INFINITY, |load| (in_flight_peak(load) * ctx.times_own()).ceil());
        if workers + waiting > all && all > workers {
            return Self { workers: all, sum: Message::new("sum-workers-clients").with("clients", all) };
        }
        let sum = Message::new("sum-workers-standing").with("taken", workers).with("waiting", waiting).with("workers", workers + waiting);
        Self { workers: workers + waiting, sum }
    }

    /// Event loops: how many connections each request takes is not known, so as many as came are taken.
    pub(super) fn loops(ctx: &Context<'_>, tier: &Tier, placed: &StationReading, connections: f64) -> Self {
        Self::standing(ctx, tier, placed, connections)
    }

    /// Bounded by something else, for the reason that this message gives.
    pub(super) fn at_most(self, most: f64, why: &'static str) -> Self {
        if self.workers <= most {
            return self;
        }
        Self { workers: most.floor(), sum: Message::new(why) }
    }
}

/// Requests that come to a tier.
#[derive(Debug, Clone, Copy)]
struct Arrivals {
    rate_rps: f64,
}

impl Arrivals {
    /// From the load; or else from the logs, which have what was answered, and the growth of the queue; or from the sockets, which show what came. `None` if none of them
    /// tells.
    fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        if let Some(load) = &ctx.obs.load {
            let offered = match load.shape {
                Loop::Open { rate_per_s, .. } => rate_per_s,
                Loop::Closed { .. } => load.throughput_rps(),
            };
            return Some(Self { rate_rps: offered * ctx.times_own() });
        }
        let grown_rps = Queued::of(ctx, tier).grown_rps(ctx);
        match traffic::of(ctx) {
            Some(logged) => Some(Self { rate_rps: logged.throughput_rps + grown_rps }),
            None => Some(Self { rate_rps: ctx.account()?.rate_rps()? }),
        }
    }
}
