//! Threads of a server that a tracer (strace, a debugger) stops again and again, and the requests that wait meanwhile.

use std::collections::BTreeMap;

use chokepoint_statistics::wilson;

use super::worker_pids;
use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::observation::Tracing;
use crate::output::report::LedgerPlaceKind as Place;

/// State letter of a thread that its tracer has stopped (proc_pid_stat(5)).
const STOPPED: char = 't';
/// State letter of one that runs or is ready to.
const RUNNING: char = 'R';

/// Processes of a tier that somebody traces.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TracedProcesses {
    /// Their ids.
    pub(crate) pids: Vec<u32>,
    /// Number of all processes that serve.
    pub(crate) of: usize,
    /// Process id of the tracer; of the first one if there are several.
    pub(crate) tracer: u32,
    /// Its command name, if it could be read.
    pub(crate) name: Option<String>,
    /// Number of looks at one of their threads.
    pub(crate) looks: u64,
    /// Share of them in which the tracer had stopped it. Threads count by how often they were seen awake, so that helpers count for little.
    pub(crate) stopped: f64,
    /// Mean number of requests that wait for these processes.
    pub(crate) waiting: f64,
}

impl TracedProcesses {
    /// `None` if nobody was seen to trace one, or if none of their threads was seen awake.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let serving = worker_pids(ctx, tier);
        let (mut pids, mut by, mut threads) = (Vec::new(), None, Vec::new());
        for pid in serving {
            let Some(process) = ctx.obs.processes.get(pid) else { continue };
            let seen: Vec<&Tracing> = ctx.in_window(&process.tracing).map(|(_, tracing)| tracing).collect();
            let Some((tracer, name)) = seen.last().and_then(|last| Some((last.tracer?, last.name.clone()))) else { continue };
            pids.push(*pid);
            by.get_or_insert((tracer, name));
            threads.extend(ThreadLooks::of(&seen));
        }
        let (tracer, name) = by?;
        let awake: f64 = threads.iter().map(ThreadLooks::awake_share).sum();
        let weighed = |value: fn(&ThreadLooks) -> f64| {
            threads.iter().map(|thread| thread.awake_share() * value(thread)).sum::<f64>() / awake.max(f64::MIN_POSITIVE)
        };
        let looks = weighed(|thread| thread.looks as f64).round() as u64;
        let stopped = weighed(ThreadLooks::stopped_share);
        if looks == 0 {
            return None;
        }
        let waiting = waiting_at(ctx, tier) * pids.len() as f64 / serving.len().max(1) as f64;
        Some(Self { of: serving.len(), pids, tracer, name, looks, stopped, waiting })
    }

    /// The share of their time for which the tracer surely stops the threads that serve: the lower end of the 95 % interval.
    pub(crate) fn stopped_share(&self) -> f64 {
        wilson(self.stopped, self.looks).0
    }

    /// True if enough of the requests under way wait for threads that the tracer stops.
    pub(crate) fn hurt(&self, ctx: &Context<'_>) -> bool {
        let under_way = ctx.account().map_or(0.0, |account| account.under_way());
        under_way > 0.0 && Cost::of_time(self.stopped_share() * (self.waiting / under_way).min(1.0)).hurts()
    }
}

/// Mean number of requests that wait for a tier's threads, or are at one.
pub(crate) fn waiting_at(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let waits = |place: Place| {
        matches!(place, Place::AcceptQueue | Place::TlsHandshake | Place::Unread | Place::Cpu | Place::Ready | Place::Waiting)
    };
    ctx.account().map_or(0.0, |account| account.at_places(tier.id.0, waits))
}

/// True if it hurts that servers are stopped for this share of the time while this many requests wait for them: not for longer than that, and not more of them than wait there.
pub(crate) fn stop_hurts(ctx: &Context<'_>, waiting: f64, stopped: f64) -> bool {
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    under_way > 0.0 && Cost::of_time(stopped.min(waiting / under_way)).hurts()
}

/// What was seen of a thread.
#[derive(Debug, Default)]
struct ThreadLooks {
    looks: u64,
    stopped: u64,
    running: u64,
}

impl ThreadLooks {
    fn of(seen: &[&Tracing]) -> Vec<Self> {
        let mut threads: BTreeMap<u32, Self> = BTreeMap::new();
        for thread in seen.iter().flat_map(|tracing| &tracing.threads) {
            let looks = threads.entry(thread.id).or_default();
            looks.looks += 1;
            looks.stopped += u64::from(thread.state == STOPPED);
            looks.running += u64::from(thread.state == RUNNING);
        }
        threads.into_values().collect()
    }

    fn awake_share(&self) -> f64 {
        (self.stopped + self.running) as f64 / self.looks.max(1) as f64
    }

    fn stopped_share(&self) -> f64 {
        self.stopped as f64 / self.looks.max(1) as f64
    }
}
