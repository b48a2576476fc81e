//! The collection of garbage: how much of the cores it takes, by the threads that do it or by the functions in a profile, and for how long everything else of the program stands still
//! meanwhile.

use std::collections::BTreeMap;

use super::{Context, CoreGroup, group_of, limiting, own_cores};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::waiting_at;
use crate::facts::profile::{self, Profiled};
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
const USUAL_SHARE: f64 = 1.0 / 13.0;

/// Share of the cores that Go's runtime gives to it while it marks (gcBackgroundUtilization, runtime/mgcpacer.go): only beyond that does it slow the program down. Other runtimes
/// that collect in the threads of the program name no share; it counts for them too.
const USUAL_SHARE_INSIDE: f64 = 0.25;

/// What the collection of garbage costs one tier.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collecting {
    /// Names of the threads that ran, the most time first; none if it shows in a profile alone.
    pub(crate) names: Vec<String>,
    /// The share of the time that is usual.
    pub(crate) usual: f64,
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
    /// By the threads that do it, else by the functions in a profile. `None` if neither was seen, or nothing of their times.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        Self::by_threads(ctx, tier).or_else(|| Self::by_profile(ctx, tier))
    }

    /// Of a program whose threads do everything in turn.
    fn by_profile(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let share = Profiled::of(ctx)?.share_within(tier, profile::GARBAGE)?;
        let own = own_cores(ctx, &tier.pids)?;
        let used = share.low * own;
        let (names, usual, lost) = (Vec::new(), USUAL_SHARE_INSIDE, share_of_full(ctx, tier, used, own)?);
        (used > 0.0).then(|| Self { names, usual, used, own, stands: 0.0, lost, waiting: waiting_at(ctx, tier) })
    }

    fn by_threads(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
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
        let of_cores = share_of_full(ctx, tier, used, own);
        let mut names: Vec<(String, u64)> = by_name.into_iter().collect();
        names.sort_by(|(a, ran_a), (b, ran_b)| ran_b.cmp(ran_a).then_with(|| a.cmp(b)));
        Some(Self {
            names: names.into_iter().map(|(name, _)| name).collect(),
            usual: USUAL_SHARE,
            used,
            own,
            stands,
            lost: of_cores.unwrap_or(0.0).max(stands).min(1.0),
            waiting: waiting_at(ctx, tier),
        })
    }

    /// Share of the limiting time that goes beyond what is usual: without it throughput would rise to what it is at the usual share.
    pub(crate) fn beyond_usual(&self) -> f64 {
        (1.0 - (1.0 - self.lost) / (1.0 - self.usual)).max(0.0)
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

/// What share this is of what all servers of a tier's cores used, if these cores are the limit.
fn share_of_full(ctx: &Context<'_>, tier: &Tier, used: f64, own: f64) -> Option<f64> {
    let is_limit =
        |group: &&CoreGroup<'_>| limiting(ctx).iter().any(|limiting| limiting.group.id == group.id && limiting.threads.is_none());
    let group = group_of(ctx, tier).filter(is_limit)?;
    let all = own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?;
    Some(used / all.max(own))
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
