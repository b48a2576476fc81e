//! How many processes and threads there are beside those of a tier, and how many may be: a cgroup's limit (`pids.max`), or that of their user (RLIMIT_NPROC). Beyond it
//! fork(2) and clone(2) fail with EAGAIN.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::believed::CHURN_SHARE;
use crate::facts::path::Tier;
use crate::observation::{CgroupId, CgroupTasks};

/// The user whom RLIMIT_NPROC does not limit (copy_process in kernel/fork.c).
const ROOT: u32 = 0;

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskScope<'a> {
    /// A cgroup's and all below it.
    Cgroup(&'a CgroupId, &'a CgroupTasks),
    /// A user's, by its number.
    User(u32),
}

/// The limit of processes and threads to which a tier is closest.
#[derive(Debug, Clone)]
pub(crate) struct Tasks<'a> {
    pub(crate) scope: TaskScope<'a>,
    pub(crate) limit: u64,
    /// The most that there were; tasks that come and go while they are counted may seem one too many.
    pub(crate) peak: u64,
    /// Samples at the limit, and all.
    pub(crate) full: usize,
    pub(crate) samples: usize,
    /// How often a process or thread could not be started for it in the window. `None` if nobody counts that.
    pub(crate) refused: Option<u64>,
}

impl<'a> Tasks<'a> {
    /// The one that refused the most, or else the fullest. `None` if none has a limit, or if their number was not read.
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier) -> Option<Self> {
        let groups: BTreeSet<CgroupId> = tier
            .pids
            .iter()
            .filter_map(|pid| CgroupId::of_tasks(ctx.obs.processes.get(pid)?.cgroups.last()?))
            .flat_map(|own| own.levels())
            .collect();
        let of_groups = groups.iter().filter_map(|group| Self::of_group(ctx, group));
        let users: BTreeSet<u32> = tier
            .pids
            .iter()
            .filter_map(|pid| Some(ctx.obs.processes.get(pid)?.identity.last()?.uid))
            .filter(|user| *user != ROOT)
            .collect();
        let of_users = users.into_iter().filter_map(|user| Self::of_user(ctx, tier, user));
        let all = of_groups.chain(of_users);
        all.max_by(|a, b| a.refused.unwrap_or(0).cmp(&b.refused.unwrap_or(0)).then(a.share().total_cmp(&b.share())))
    }

    fn of_group(ctx: &Context<'a>, group: &CgroupId) -> Option<Self> {
        let (id, series) = ctx.obs.cgroup_tasks.get_key_value(group)?;
        let last = series.last()?;
        let counts: Vec<u64> = ctx.in_window(series).map(|(_, tasks)| tasks.current).collect();
        let counts = if counts.is_empty() { vec![last.current] } else { counts };
        let refused = ctx.growth(series, |tasks| tasks.refused);
        Self::among(TaskScope::Cgroup(id, last), last.limit?, &counts, refused)
    }

    /// The user's other tasks are counted at the ends, those of the tier all the time.
    fn of_user(ctx: &Context<'a>, tier: &Tier, user: u32) -> Option<Self> {
        let processes = || tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
        let own = || processes().filter(|process| process.identity.last().is_some_and(|identity| identity.uid == user));
        // A program that never starts any gives up the right to (HAProxy's workers, sandboxes): it runs into no such limit.
        let limit = own().filter_map(|process| process.limits.last()?.tasks_soft).filter(|limit| *limit > 0).min()?;
        let of_last: u64 = own().filter_map(|process| Some(u64::from(process.cpu.last()?.threads))).sum();
        let others = ctx.obs.user_tasks.last()?.get(&user).copied().unwrap_or(0).saturating_sub(of_last);
        let mut each_second: BTreeMap<u64, u64> = BTreeMap::new();
        for process in own() {
            for (second, threads) in ctx.in_window(&process.cpu).map(|(at_us, used)| (at_us / 1_000_000, used.threads)) {
                *each_second.entry(second).or_default() += u64::from(threads);
            }
        }
        let counts: Vec<u64> = each_second.into_values().map(|threads| threads + others).collect();
        Self::among(TaskScope::User(user), limit, &counts, None)
    }

    fn among(scope: TaskScope<'a>, limit: u64, counts: &[u64], refused: Option<u64>) -> Option<Self> {
        let room = ((limit as f64 * CHURN_SHARE) as u64).max(1);
        let full = counts.iter().filter(|count| **count + room >= limit).count();
        Some(Self { scope, limit, peak: counts.iter().copied().max()?.min(limit), full, samples: counts.len(), refused })
    }

    pub(crate) fn share(&self) -> f64 {
        self.peak as f64 / self.limit.max(1) as f64
    }
}
