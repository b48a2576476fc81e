//! Cores that other programs, or other guests of the hypervisor, take from servers that have work for them.

use std::collections::{BTreeMap, BTreeSet};

use super::elsewhere::held_elsewhere;
use super::own::busiest;
use super::threads::{READY_SHARE, SERVING_SHARE};
use super::yielding::{Used, without_yielding};
use super::{
    Context, CoreGroup, CoreUsers, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, Threads, busy, delayed, own_cores, ticks_between, ticks_per_s,
    waiting,
};
use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::path::{Runtime, Tier};
use crate::facts::pool::MOST;
use crate::facts::quota;
use crate::observation::{BusyProcess, CoreTimes, SocketAddress};
use crate::output::report::LedgerPlaceKind as Place;

/// Share of what all programs took that is told program by program.
const MAIN_SHARE: f64 = 0.9;

/// Most programs that are named beside the servers.
const NAMED_MAX: usize = 3;

/// Cores that others take.
pub(crate) struct Taken<'c, 'a> {
    /// The cores, with the tiers that share them.
    pub(crate) group: &'c CoreGroup<'a>,
    /// Mean number of cores that the named programs used, at most what all others did.
    pub(crate) named: f64,
    /// Mean number of cores that the hypervisor gave to others.
    pub(crate) stolen: f64,
    /// Mean number of cores that the servers used.
    pub(crate) ran: f64,
    /// Mean number of their threads that were ready and waited for a core.
    pub(crate) delayed: f64,
    /// Mean number of busy cores.
    busy: f64,
    /// Who used the cores, the greediest first.
    pub(crate) takers: Vec<Taker<'a>>,
    /// The last readings of the servers' busy processes.
    pub(crate) servers: Vec<&'a BusyProcess>,
    /// True if a thread of the servers was never without work: whatever came waited for it.
    pub(crate) is_never_idle: bool,
}

/// A program that uses cores beside the servers: the processes of one name, user and control group.
pub(crate) struct Taker<'a> {
    /// Its processes, each in its last reading, the greediest first.
    pub(crate) processes: Vec<&'a BusyProcess>,
    /// Mean number of cores that they and children that ended used.
    pub(crate) cores: f64,
}

impl<'a> Taker<'a> {
    /// The greediest of its processes.
    pub(crate) fn first(&self) -> &'a BusyProcess {
        self.processes[0]
    }
}

impl<'a> Taken<'_, 'a> {
    /// The tier for whose threads most requests wait.
    pub(crate) fn waits_most(&self, ctx: &Context<'a>) -> Option<&'a Tier> {
        let waits = |tier: &Tier| ctx.account().map_or(0.0, |account| account.waits_for_threads(tier.id.0));
        self.group.tiers.iter().copied().max_by(|a, b| waits(a).total_cmp(&waits(b)).then(b.id.0.cmp(&a.id.0)))
    }

    /// The programs that used nine tenths of what all of them did.
    pub(crate) fn main_takers(&self) -> &[Taker<'_>] {
        let all: f64 = self.takers.iter().map(|taker| taker.cores).sum();
        let mut sum = 0.0;
        let is_enough = |taker: &Taker<'_>| {
            sum += taker.cores;
            sum >= MAIN_SHARE * all
        };
        let count = self.takers.iter().position(is_enough).map_or(self.takers.len(), |last| last + 1);
        &self.takers[..count]
    }

    /// Cores that the servers could use as well.
    pub(crate) fn cores(&self) -> f64 {
        self.named + self.stolen
    }

    /// Mean number of ready threads for which others had the core: a thread waits for whoever runs, and these others are that part of it.
    fn kept_off(&self) -> f64 {
        self.delayed * self.cores() / self.busy.max(f64::MIN_POSITIVE)
    }

    /// How many times as much the servers would run without them, at most.
    pub(crate) fn times(&self) -> f64 {
        (self.ran + self.kept_off().min(self.cores())) / self.ran.max(f64::MIN_POSITIVE)
    }
}

/// For each group of cores what others take of it, if the servers want it and requests wait for that. What is not seen is not claimed: of other programs only those count that are
/// named, and are neither servers of the path, nor started by them, nor their clients.
pub(crate) fn taken<'c, 'a>(ctx: &'c Context<'a>) -> Vec<Taken<'c, 'a>> {
    ctx.core_groups().iter().filter_map(|group| of(ctx, group)).collect()
}

fn of<'c, 'a>(ctx: &'c Context<'a>, group: &'c CoreGroup<'a>) -> Option<Taken<'c, 'a>> {
    let busy = busy(ctx, &group.cores)?;
    // Threads that a quota stops are ready too.
    if busy < SATURATED_UTILIZATION * group.count() || !group.is_known() || group.tiers.iter().any(|tier| quota::stops(ctx, tier)) {
        return None;
    }
    let (ran, delayed) = (own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?, waiting(ctx, &group.tiers)?);
    let others = CoreUsers::of(ctx, group)?.others_at_most().max(0.0);
    let stolen = stolen(ctx, group)?;
    let servers = busy_servers(ctx, group);
    let takers = takers(ctx, group, &servers);
    let named = takers.iter().map(|taker| taker.cores).sum::<f64>().min(others);
    let is_never_idle = group.tiers.iter().any(|tier| never_idle(ctx, tier, group.cores.len()));
    let taken = Taken { group, named, stolen, ran, delayed, busy, takers, servers, is_never_idle };
    let is_much = taken.cores() > TENANTS_SHARE_MAX * group.count() && taken.times() >= 1.0 + NOISE_SHARE;
    (is_much && requests_wait(ctx, &taken)).then_some(taken)
}

/// Mean number of these cores that the hypervisor did not give.
fn stolen(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let ticks = ticks_per_s(ctx) * elapsed_us.max(1) as f64 / 1e6;
    let of = |times: &CoreTimes| times.steal;
    Some(group.cores.iter().filter_map(|core| ticks_between(first, last, *core, of)).sum::<u64>() as f64 / ticks)
}

/// True if threads that do the tier's work were always running or ready; of an interpreter that lets one run at a time, all of them together.
fn never_idle(ctx: &Context<'_>, tier: &Tier, cores: usize) -> bool {
    let takes_turns = |pid: &u32| {
        let process = ctx.obs.processes.get(pid)?;
        process.identity.first().and_then(Runtime::of).filter(|runtime| runtime.has_one_lock())?;
        Some(ctx.clocked(*pid, |used| used.run_ns)? + delayed(ctx, *pid)?)
    };
    Threads::exhausted(ctx, tier, cores.max(2)).is_some() || tier.pids.iter().filter_map(takes_turns).any(|ready| ready >= READY_SHARE)
}

/// True if enough requests wait for threads of these servers that more time for them would show: as much of that wait as others had the core of a ready thread. A single request waits
/// at each turn until its client is off the core, so that it says something only where it takes twice as long. Without samples of requests, a load that asks for more than it gets waits
/// for whatever is at its limit; of watched traffic nothing is known then. What serves them may itself wait for something else most of the time (a lock, a sleep, a client that takes
/// its answer slowly, a disk): then more cores would not let it serve much faster, and that wait is the one to name.
fn requests_wait(ctx: &Context<'_>, taken: &Taken<'_, '_>) -> bool {
    let Some(account) = ctx.account() else { return ctx.obs.load.is_some() };
    // While a real-time program has the cores, whoever slept wakes up late: what looks like a sleep is that wait, too.
    let is_realtime = taken.takers.iter().flat_map(|taker| &taker.processes).any(|process| process.realtime.is_some());
    let (mut waits, mut asleep, mut held) = (0.0, 0.0, 0.0);
    for tier in &taken.group.tiers {
        waits += account.waits_for_threads(tier.id.0);
        let mut sleeps = 0.0;
        if !is_realtime && !taken.is_never_idle && behind_ready(ctx, tier, account.at_tier(tier.id.0, true)) < MOST {
            sleeps = account.at_places(tier.id.0, |place| place == Place::Waiting);
        }
        asleep += sleeps;
        held += if is_realtime { 0.0 } else { held_elsewhere(ctx, tier).max(sleeps) };
    }
    let is_queue = waits >= 1.0 || taken.times() >= 2.0;
    let kept_off = taken.kept_off() / (taken.ran + taken.delayed + held).max(f64::MIN_POSITIVE);
    is_queue && asleep <= taken.kept_off() && Cost::of_time(kept_off * waits / account.under_way().max(f64::MIN_POSITIVE)).hurts()
}

/// The share of a tier's requests that stand behind a thread which runs or is ready, at least: where few threads serve them all in turns, so does each request that comes while one is.
/// Zero where each may have a thread of its own, and if their times were not read.
fn behind_ready(ctx: &Context<'_>, tier: &Tier, requests: f64) -> f64 {
    let mut threads = 0;
    let mut busiest: Vec<f64> = Vec::new();
    for pid in &tier.pids {
        let Some((first, last, elapsed_us)) = ctx.obs.processes.get(pid).and_then(|process| ctx.inside(&process.cpu)) else { continue };
        let elapsed_ns = elapsed_us as f64 * 1e3;
        let ready = last.ran_since(first).map(|(id, ran_ns)| (ran_ns + last.delayed_since(first, id)) as f64 / elapsed_ns);
        let serving: Vec<f64> = ready.filter(|share| *share >= SERVING_SHARE).collect();
        threads += serving.len();
        busiest.extend(serving.into_iter().reduce(f64::max));
    }
    let mean = busiest.iter().sum::<f64>() / busiest.len().max(1) as f64;
    if requests > threads as f64 { mean.min(1.0) } else { 0.0 }
}

/// The programs that used these cores, the greediest first.
fn takers<'a>(ctx: &Context<'a>, group: &CoreGroup<'_>, servers: &[&BusyProcess]) -> Vec<Taker<'a>> {
    let sockets = KnownSockets::of(ctx);
    let mut used = of_others(ctx, group);
    used.retain(|(_, readings)| !readings.iter().any(|process| sockets.may_be_clients(process)));
    let mut used = without_yielding(used, servers, group.count());
    used.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first[0].pid.cmp(&second[0].pid)));
    let mut takers: Vec<Taker<'_>> = Vec::new();
    for (cores, readings) in used {
        let process = readings[readings.len() - 1];
        let is_same = |taker: &&mut Taker<'_>| {
            let first = taker.first();
            (&first.comm, first.uid, &first.cgroup) == (&process.comm, process.uid, &process.cgroup)
        };
        match takers.iter_mut().find(is_same) {
            Some(taker) => {
                taker.processes.push(process);
                taker.cores += cores;
            }
            None => takers.push(Taker { processes: vec![process], cores }),
        }
    }
    takers.sort_by(|a, b| b.cores.total_cmp(&a.cores).then(a.first().pid.cmp(&b.first().pid)));
    takers
}

/// The programs that make up most of what others used of these cores, by name, the greediest first, and whether each of them has only what the servers leave. None if the busiest
/// programs are too small a part of it.
pub(super) fn most_of_others(ctx: &Context<'_>, group: &CoreGroup<'_>, cores: f64) -> (Vec<String>, bool) {
    let used = of_others(ctx, group);
    let takers = without_yielding(used.clone(), &busy_servers(ctx, group), group.count());
    let takes = |name: &str| takers.iter().any(|(_, readings)| readings[0].comm == name);
    let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
    for (used, readings) in &used {
        *by_name.entry(readings[0].comm.as_str()).or_default() += used;
    }
    let mut by_name: Vec<(&str, f64)> = by_name.into_iter().collect();
    by_name.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut sum = 0.0;
    let mut names: Vec<&str> = Vec::new();
    for (name, used) in by_name.into_iter().take(NAMED_MAX) {
        names.push(name);
        sum += used;
        if 2.0 * sum >= cores {
            return (names.iter().map(|name| (*name).to_owned()).collect(), !names.iter().any(|name| takes(name)));
        }
    }
    (Vec::new(), false)
}

/// Mean number of these cores used by programs that have only what the servers leave, a lower bound: servers that want those cores have them.
pub(crate) fn left_over(ctx: &Context<'_>, group: &CoreGroup<'_>) -> f64 {
    let cores = |used: &[Used<'_>]| used.iter().map(|(cores, _)| cores).sum::<f64>();
    let used = of_others(ctx, group);
    let all = cores(&used);
    let takers = without_yielding(used, &busy_servers(ctx, group), group.count());
    // Ticks of a program are those of all its cores; what others used here is known better.
    let others = CoreUsers::of(ctx, group).map_or(0.0, |users| users.others().max(0.0));
    (all - cores(&takers)).min(others)
}

/// The last reading of each busy process of the servers on these cores.
fn busy_servers<'a>(ctx: &Context<'a>, group: &CoreGroup<'_>) -> Vec<&'a BusyProcess> {
    let mut last: BTreeMap<u32, &BusyProcess> = BTreeMap::new();
    let readings = busiest(ctx).map_or(&[][..], |(_, readings)| readings);
    for process in readings.iter().flat_map(|(_, processes)| processes) {
        if group.tiers.iter().any(|tier| tier.pids.contains(&process.pid)) {
            last.insert(process.pid, process);
        }
    }
    last.into_values().collect()
}

/// The readings of each process that ran on these cores, is no server of the path and was not started by one, and how many cores it used.
fn of_others<'a>(ctx: &Context<'a>, group: &CoreGroup<'_>) -> Vec<Used<'a>> {
    let servers: BTreeSet<u32> = ctx.path.tiers.iter().flat_map(|tier| tier.pids.iter().copied()).collect();
    let Some((elapsed_s, readings)) = busiest(ctx) else { return Vec::new() };
    let mut seen: BTreeMap<(u32, u64), Vec<&BusyProcess>> = BTreeMap::new();
    for process in readings.iter().flat_map(|(_, processes)| processes) {
        seen.entry((process.pid, process.start_ticks)).or_default().push(process);
    }
    let is_other =
        |process: &BusyProcess| !servers.contains(&process.pid) && !process.parents.iter().any(|parent| servers.contains(parent));
    seen.retain(|_, readings| readings.last().is_some_and(|last| is_other(last)));
    let used = |readings: Vec<&'a BusyProcess>| {
        let ticks = readings.iter().map(|process| process.grown_ticks).fold(0, u64::saturating_add);
        // Each reading says on which core it ran last: as often as on others it used those.
        let cores = || readings.iter().filter_map(|process| process.core);
        let here = cores().filter(|core| group.cores.contains(core)).count() as f64 / cores().count().max(1) as f64;
        (here * ticks as f64 / ticks_per_s(ctx) / elapsed_s.max(f64::MIN_POSITIVE), readings)
    };
    seen.into_values().map(used).filter(|(cores, _)| *cores > 0.0).collect()
}

/// True if a tier's cores are full, and most of that is the work of programs which no reading names: they may be processes that the tier starts and that end soon. False
/// where nobody looked for such programs.
pub(crate) fn may_be_its_children(ctx: &Context<'_>, tier: &Tier) -> bool {
    let are_unnamed = |group: &CoreGroup<'_>| {
        let is_full = busy(ctx, &group.cores).is_some_and(|busy| busy >= SATURATED_UTILIZATION * group.count());
        let others = CoreUsers::of(ctx, group).map_or(0.0, |users| users.others());
        let named: f64 = of_others(ctx, group).iter().map(|(cores, _)| cores).sum();
        is_full && 2.0 * (others - named) > group.count()
    };
    ctx.obs.busy_processes.points().len() > 1 && ctx.core_groups().iter().any(|group| group.has(tier.id) && are_unnamed(group))
}

/// What is known of the TCP sockets of the host's namespaces.
struct KnownSockets {
    listening: BTreeSet<u64>,
    /// The clients' ends of connections to servers of the path.
    of_clients: BTreeSet<u64>,
    others: BTreeSet<u64>,
}

impl KnownSockets {
    fn of(ctx: &Context<'_>) -> Self {
        let mut known = Self { listening: BTreeSet::new(), of_clients: BTreeSet::new(), others: BTreeSet::new() };
        for view in ctx.obs.netns.values() {
            known.listening.extend(view.listeners.values().flatten().map(|listener| listener.inode));
            for socket in view.sockets.values().flatten() {
                let SocketAddress::Tcp { local, remote } = &socket.address else { continue };
                let other_end = SocketAddress::Tcp { local: *remote, remote: *local };
                let is_clients = ctx.path.tiers.iter().any(|tier| tier.accepts(&other_end));
                if is_clients { &mut known.of_clients } else { &mut known.others }.insert(socket.inode);
            }
        }
        known
    }

    /// True if a process has a connection to a server of the path, or one that no reading shows: it may have been open for a moment only. Who listens is no client for such a
    /// connection, and whose descriptors cannot be read may be one.
    fn may_be_clients(&self, process: &BusyProcess) -> bool {
        let Some(sockets) = &process.sockets else { return true };
        let listens = sockets.iter().any(|inode| self.listening.contains(inode));
        let is_unknown = |inode: &u64| !self.others.contains(inode) && !self.listening.contains(inode);
        sockets.iter().any(|inode| self.of_clients.contains(inode) || !listens && is_unknown(inode))
    }
}
