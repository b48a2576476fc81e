//! Threads of a runtime that collect garbage: how much of the cores they take, and for how long everything else of the program stands still meanwhile.

use std::collections::BTreeMap;

use super::{Context, group_of, limiting, own_cores};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::waiting_at;
use crate::observation::ProcessView;

/// How the names of threads begin that collect garbage, and whether all other threads of the program stand still while one of them runs. HotSpot (os::set_native_thread_name; gc/*),
/// its version 8, CoreCLR, JavaScriptCore.
const COLLECTORS: &[(&str, bool)] = &[
    ("GC Thread#", true),
    ("GC task thread", true),
    ("Gang worker#", true),
    (OF_ALL, true),
    ("G1 Conc#", false),
    ("G1 Refine#", false),
    ("G1 Main Marker", false),
    ("Concurrent Mark", false),
    ("ZWorker", false),
    ("XWorker", false),
    ("Shenandoah", false),
    (".NET Server GC", true),
    (".NET BGC", false),
    ("HeapHelper", false),
];

/// HotSpot's thread for what concerns all others.
const OF_ALL: &str = "VM Thread";

/// Share of the time that a virtual machine of Java allows itself for this before it wants a larger heap: one part in thirteen (GCTimeRatio=12, HotSpot's g1Arguments.cpp).
pub(crate) const USUAL_SHARE: f64 = 1.0 / 13.0;

/// What the collection of garbage costs one tier.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collecting {
    /// Names of the threads that ran, the most time first.
    pub(crate) names: Vec<String>,
    /// Mean number of cores that they used, and that the whole tier did.
    pub(crate) used: f64,
    pub(crate) own: f64,
    /// Share of the time in which everything else of the program surely stood still: one of these threads ran or was ready to.
    pub(crate) stands: f64,
    /// Share of the time that limits the tier: of its cores' if these are full, else the above.
    pub(crate) lost: f64,
    /// Mean number of requests that wait for its threads or are at one.
    pub(crate) waiting: f64,
}

impl Collecting {
    /// `None` if no such thread was seen, or nothing of their times.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let (mut by_name, mut used, mut own, mut stands) = (BTreeMap::new(), 0.0, 0.0, 0.0_f64);
        for process in tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)) {
            let Some((first, last, elapsed_us)) = ctx.inside(&process.cpu) else { continue };
            let share = |ns: u64| ns as f64 / 1e3 / elapsed_us.max(1) as f64;
            let stopping = collectors(process);
            for (id, run_ns) in last.ran_since(first) {
                own += share(run_ns);
                let Some((name, stops)) = stopping.get(&id).filter(|_| run_ns > 0) else { continue };
                used += share(run_ns);
                *by_name.entry((*name).to_owned()).or_insert(0) += run_ns;
                if *stops {
                    stands = stands.max(share(run_ns + last.delayed_since(first, id)).min(1.0));
                }
            }
        }
        if by_name.is_empty() {
            return None;
        }
        let full = group_of(ctx, tier)
            .filter(|group| limiting(ctx).iter().any(|limiting| limiting.group.id == group.id && limiting.threads.is_none()));
        let of_cores = full.and_then(|group| own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))).map(|all| used / all.max(own));
        let mut names: Vec<(String, u64)> = by_name.into_iter().collect();
        names.sort_by(|(a, ran_a), (b, ran_b)| ran_b.cmp(ran_a).then_with(|| a.cmp(b)));
        Some(Self {
            names: names.into_iter().map(|(name, _)| name).collect(),
            used,
            own,
            stands,
            lost: of_cores.unwrap_or(0.0).max(stands).min(1.0),
            waiting: waiting_at(ctx, tier),
        })
    }

    /// Share of the limiting time that goes beyond what is usual: without it throughput would rise to what it is at the usual share.
    pub(crate) fn beyond_usual(&self) -> f64 {
        (1.0 - (1.0 - self.lost) / (1.0 - USUAL_SHARE)).max(0.0)
    }

    /// Share of the clients' time that would not pass with a usual share.
    pub(crate) fn lost_time(&self, ctx: &Context<'_>) -> f64 {
        let waiting = match ctx.account() {
            Some(account) => (self.waiting / account.under_way().max(f64::MIN_POSITIVE)).min(1.0),
            None => f64::from(u8::from(ctx.obs.load.is_some())),
        };
        self.beyond_usual() * waiting
    }

    /// True if clients would notice.
    pub(crate) fn hurts(&self, ctx: &Context<'_>) -> bool {
        let wants_more = ctx.obs.load.as_ref().is_none_or(|load| load.wants_more());
        wants_more && Cost::of_time(self.lost_time(ctx)).hurts()
    }
}

/// The threads of a process whose names say that they collect garbage: the beginning of the name, and whether the others stand still meanwhile.
fn collectors(process: &ProcessView) -> BTreeMap<u32, (&'static str, bool)> {
    let named = process.thread_names.points().iter().flat_map(|(_, names)| names);
    let found = named.filter_map(|thread| {
        let (name, stops) = COLLECTORS.iter().find(|(begins, _)| thread.name.starts_with(begins))?;
        Some((thread.id, (*name, *stops)))
    });
    let mut found: BTreeMap<u32, (&'static str, bool)> = found.collect();
    // The thread of the whole virtual machine does more than that; it collects where nobody else does.
    if found.values().any(|(name, _)| *name != OF_ALL) {
        found.retain(|_, (name, _)| *name != OF_ALL);
    }
    found
}
