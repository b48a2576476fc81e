//! How many processes and threads there are beside those of a tier, and how many may be: a cgroup's limit (`pids.max`), that of their user (RLIMIT_NPROC), or those of the
//! kernel (`threads-max`, `pid_max`). Beyond it fork(2) and clone(2) fail with EAGAIN. A thread also takes mappings of memory for its stack (`max_map_count`).

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::believed::CHURN_SHARE;
use crate::facts::path::Tier;
use crate::observation::{CgroupId, CgroupTasks, ProcessView, TaskLimits};

/// The user whom RLIMIT_NPROC does not limit (copy_process in kernel/fork.c).
const ROOT: u32 = 0;
/// Share of a limit that is not the server's own from which it is told: below, it says nothing of this server.
const SHARED_SHARE: f64 = 0.5;
/// Mappings that a thread's stack takes with its guard (pthread_create(3); nptl/allocatestack.c): with fewer left, none is started (mm/mmap.c, `do_mmap`, and mm/vma.c,
/// `split_vma`, fail with ENOMEM).
const STACK_MAPPINGS: u64 = 2;
/// Mappings that may be free for a moment in a process at its limit, as a share of it.
const MAPPINGS_SHARE: f64 = 0.001;

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskScope<'a> {
    /// A cgroup's and all below it.
    Cgroup(&'a CgroupId, &'a CgroupTasks),
    /// A user's, by its number.
    User(u32),
    /// The whole host's (`kernel.threads-max`; kernel/fork.c, `copy_process`).
    Host,
    /// The ids of a pid namespace (`kernel.pid_max`; kernel/pid.c, `alloc_pid`).
    Ids,
    /// The mappings of memory of one process (`vm.max_map_count`), by its id.
    Mappings(u32),
}

impl TaskScope<'_> {
    /// Its name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Cgroup(..) => "cgroup",
            Self::User(_) => "user",
            Self::Host => "host",
            Self::Ids => "ids",
            Self::Mappings(_) => "mappings",
        }
    }

    /// The setting of the kernel that is the limit. `None` if it is none.
    pub(crate) fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Cgroup(..) | Self::User(_) => None,
            Self::Host => Some("kernel.threads-max"),
            Self::Ids => Some("kernel.pid_max"),
            Self::Mappings(_) => Some("vm.max_map_count"),
        }
    }
}

/// The limit of processes and threads to which a tier is closest.
#[derive(Debug, Clone)]
pub(crate) struct Tasks<'a> {
    pub(crate) scope: TaskScope<'a>,
    pub(crate) limit: u64,
    /// The most that there were, in mappings where these are the limit; tasks that come and go while they are counted may seem one too many.
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
        let of_mappings = tier.pids.iter().filter_map(|pid| Self::of_mappings(ctx, *pid));
        let shared = [Self::of_host(ctx), Self::of_ids(ctx, tier)].into_iter().flatten().chain(of_mappings);
        let all = of_groups.chain(of_users).chain(shared.filter(|tasks| tasks.full > 0 || tasks.share() >= SHARED_SHARE));
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
        let counts: Vec<u64> = threads_each_second(ctx, own()).into_iter().map(|threads| threads + others).collect();
        Self::among(TaskScope::User(user), limit, &counts, None)
    }

    fn of_host(ctx: &Context<'a>) -> Option<Self> {
        let limit = ctx.obs.task_limits.last()?.threads_max;
        let counts: Vec<u64> = ctx.in_window(&ctx.obs.task_limits).map(|(_, read)| read.tasks).collect();
        Self::among(TaskScope::Host, limit, &counts, None)
    }

    /// The first pid namespace has an id for each task of the host. In another one all tasks that /proc shows are counted at the ends, those of the tier all the time.
    fn of_ids(ctx: &Context<'a>, tier: &Tier) -> Option<Self> {
        let last = ctx.obs.task_limits.last()?;
        let counts: Vec<u64> = if last.is_first {
            ctx.in_window(&ctx.obs.task_limits).map(|(_, read)| read.tasks).collect()
        } else {
            let own = || tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
            let of_last: u64 = own().filter_map(|process| Some(u64::from(process.cpu.last()?.threads))).sum();
            let others = ctx.obs.user_tasks.last()?.values().sum::<u64>().saturating_sub(of_last);
            threads_each_second(ctx, own()).into_iter().map(|threads| threads + others).collect()
        };
        // Once the ids were given up to the end, they begin anew behind the reserved ones.
        let never_again = TaskLimits::RESERVED_PIDS.saturating_sub(last.low_pids);
        let usable = last.pid_max.saturating_sub(never_again).max(1);
        Some(Self { limit: last.pid_max, ..Self::among(TaskScope::Ids, usable, &counts, None)? })
    }

    /// What grew up to the limit counts from there on.
    fn of_mappings(ctx: &Context<'a>, pid: u32) -> Option<Self> {
        let series = &ctx.obs.processes.get(&pid)?.mappings;
        let limit = series.last()?.limit;
        let room = ((limit as f64 * MAPPINGS_SHARE) as u64).max(STACK_MAPPINGS);
        let counts: Vec<u64> = ctx.in_window(series).map(|(_, read)| read.count).collect();
        let is_full = |count: &&u64| **count + room >= limit;
        let since = counts.iter().position(|count| is_full(&count)).map_or(&[][..], |first| &counts[first..]);
        Some(Self {
            scope: TaskScope::Mappings(pid),
            limit,
            peak: counts.iter().copied().max()?.min(limit),
            full: since.iter().filter(is_full).count(),
            samples: since.len(),
            refused: None,
        })
    }

    fn among(scope: TaskScope<'a>, limit: u64, counts: &[u64], refused: Option<u64>) -> Option<Self> {
        let room = ((limit as f64 * CHURN_SHARE) as u64).max(1);
        let full = counts.iter().filter(|count| **count + room >= limit).count();
        Some(Self { scope, limit, peak: counts.iter().copied().max()?.min(limit), full, samples: counts.len(), refused })
    }

    /// True unless the limit is one of the whole kernel and nothing shows that the tier starts processes or threads: their number changes, or children of it end. Others may have
    /// used up such a limit, and a server that starts none never meets it.
    pub(crate) fn are_started(&self, ctx: &Context<'_>, tier: &Tier) -> bool {
        if !matches!(self.scope, TaskScope::Host | TaskScope::Ids) {
            return true;
        }
        let own = || tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
        let has_changed = |process: &ProcessView| {
            let mut threads = ctx.in_window(&process.cpu).map(|(_, used)| used.threads);
            threads.next().is_some_and(|first| threads.any(|other| other != first))
        };
        let reaps = |process: &ProcessView| ctx.growth(&process.cpu, |used| used.reaped_ticks).is_some_and(|ticks| ticks > 0);
        own().any(|process| has_changed(process) || reaps(process))
    }

    pub(crate) fn share(&self) -> f64 {
        self.peak as f64 / self.limit.max(1) as f64
    }
}

/// Threads of these processes together, for each second of the window.
fn threads_each_second<'p>(ctx: &Context<'_>, processes: impl Iterator<Item = &'p ProcessView>) -> Vec<u64> {
    let mut each_second: BTreeMap<u64, u64> = BTreeMap::new();
    for process in processes {
        for (second, threads) in ctx.in_window(&process.cpu).map(|(at_us, used)| (at_us / 1_000_000, used.threads)) {
            *each_second.entry(second).or_default() += u64::from(threads);
        }
    }
    each_second.into_values().collect()
}
