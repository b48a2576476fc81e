//! Station `worker-pool`: processes that serve one connection at a time (php-fpm, prefork servers). When all are busy, the rest waits in the
//! accept queue, however idle the cores are.

mod blocked;
mod idle;
mod loops;
mod service;

use std::collections::BTreeSet;

use idle::{Idle, READY_SHARE_MAX, ready_share};
use service::Service;

use super::{Context, Placed, StationDef, blank, evidence, in_force};
use crate::facts::Logged;
use crate::facts::ceiling::ceiling_between;
use crate::facts::cores::are_spent;
use crate::facts::sum::mean;
use crate::message::Message;
use crate::observation::{Identity, ListenerAddress, PhpFpmPool, ServerStatus, Socket, SocketAddress, TcpState};
use crate::path::Tier;
use crate::report::{At, Ceiling, Confidence, Evidence, Finding, Role, Station, StationKind, StationState};

use blocked::Blocked;
pub(crate) use blocked::waited_for;

pub(super) const STATION: StationDef = StationDef {
    id: "worker-pool",
    kind: StationKind::Rate,
    findings: &["worker-pool-exhausted", "workers-blocked-on-upstream", in_force::ID],
    read,
    judge,
};

/// The unit where connections are counted and no workers: the limit of event loops.
pub(crate) const CONNECTIONS: &str = "connections";
/// Share of the samples in which somebody must wait for a worker: a pool at its limit is waited for all the time, one that touches it is not.
const WAITED_SHARE: f64 = 0.9;
/// The same where none is ever seen free: with hardly more clients than workers the last one is on its way to the queue now and then.
const WAITED_SHARE_TAKEN: f64 = 0.5;
/// Share of the workers busy on average from which none is free.
const TAKEN_SHARE: f64 = 0.95;
/// As many as must wait for each worker for more of them to be worth a word,
const GAIN_MIN: f64 = 0.05;
/// and where they wait now and then.
const GAIN_MIN_TAKEN: f64 = 0.1;
/// Share of the workers that must be busy on average. Between two requests a worker is free until it has a core, so that rarely all are busy at
/// once, the less so where others take the cores.
const BUSY_SHARE: f64 = 0.75;
/// Share of the samples in which as many threads must be taken for their number to be the limit: between two connections one is seen free.
const STEADY_SHARE: f64 = 0.75;
/// Times the workers that may seem to hold a connection on average: the sockets are not all read in the same moment, and one may be seen closed
/// and its successor too. More than that is served by threads or event loops.
const BUSY_TIMES_MAX: f64 = 1.1;
/// Samples below which nothing is said: sockets are read about once a second.
const SAMPLES_MIN: usize = 3;

/// What serves one connection at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Each process.
    Processes,
    /// Threads of one process or of several. Their number is no limit by itself (some are helpers): it is as many connections as were in service
    /// at once, where that stayed the same while others waited.
    Threads,
    /// Event loops that take no more connections than they were told to, however idle they are.
    Loops,
}

/// What a pool did in the window.
struct Pool {
    of: Of,
    /// Those that may be: as many as there are, or as the configuration of a pool that grows allows.
    workers: usize,
    /// Connections in service in each sample.
    busy: Vec<usize>,
    /// Mean number of connections that waited to be accepted.
    waiting: f64,
    /// Share of the samples in which any did.
    waited_share: f64,
    /// True where workers were still being started late in the window: the pool may grow further.
    grows: bool,
    /// The server's own words that the limit was reached.
    reached: Option<Logged>,
}

/// The pools of php-fpm that listen where this tier does.
fn configured<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a PhpFpmPool> {
    let servers = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.php_fpm());
    let here = |pool: &&PhpFpmPool| {
        tier.listeners.iter().any(|placed| match (&pool.listen, &placed.listener.address) {
            (ListenerAddress::Tcp(ip, port), ListenerAddress::Tcp(bound, bound_port)) => {
                port == bound_port && (ip.to_canonical() == bound.to_canonical() || (ip.is_unspecified() && bound.is_unspecified()))
            }
            (pool, bound) => pool == bound,
        })
    };
    servers.flat_map(|php_fpm| &php_fpm.pools).filter(here).collect()
}

/// Workers that a pool may have which starts them as they are needed; nothing for a static one, whose workers are all there, nor where the
/// file was changed after it was read: its limit is another one, which only the workers show.
fn allowed(ctx: &Context<'_>, tier: &Tier) -> Option<usize> {
    let pools = configured(ctx, tier);
    if in_force::unforced_pool(ctx, tier, 0.0).is_some() {
        return None;
    }
    let grows = pools.iter().any(|pool| pool.pm.value != "static");
    grows.then(|| pools.iter().map(|pool| pool.max_children.value as usize).sum())
}

fn reached(ctx: &Context<'_>, tier: &Tier) -> Option<Logged> {
    configured(ctx, tier).iter().find_map(|pool| ctx.logged(tier, &format!("max_children {}", pool.name)))
}

/// The processes of a tier that are nobody's parent there: its workers.
fn identities<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a Identity> {
    let mut all: Vec<&Identity> = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first()).collect();
    let parents: BTreeSet<u32> = all.iter().map(|identity| identity.parent).collect();
    all.retain(|identity| !parents.contains(&identity.pid));
    all
}

fn worker_pids(ctx: &Context<'_>, tier: &Tier) -> Vec<u32> {
    identities(ctx, tier).into_iter().map(|identity| identity.pid).collect()
}

impl Pool {
    fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let workers: Vec<&Identity> = identities(ctx, tier);
        let view = ctx.obs.netns.get(&tier.netns)?;
        let busy: Vec<usize> = ctx.in_window(&view.sockets).map(|(_, sockets)| in_service(tier, sockets)).collect();
        let held = busy.iter().sum::<usize>() as f64 / busy.len().max(1) as f64;
        if held == 0.0 {
            return None;
        }
        // A single process may be anything, but where its configuration calls it a pool it is one of one worker.
        let is_pool = workers.len() >= 2 || (workers.len() == 1 && !configured(ctx, tier).is_empty());
        if !is_pool || held > BUSY_TIMES_MAX * workers.len() as f64 {
            return Self::of_threads(ctx, tier, &workers, busy);
        }
        let oldest = workers.iter().map(|identity| identity.start_ticks).min()?;
        let newest = workers.iter().map(|identity| identity.start_ticks).max()?;
        let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1);
        let allowed = allowed(ctx, tier);
        let queued = ctx.queued(tier);
        let grew = newest - oldest > ticks_per_s && ctx.in_window(&view.sockets).count() > 0 && started_late(ctx, tier);
        let most = allowed.unwrap_or(0).max(workers.len());
        Some(Self {
            of: Of::Processes,
            workers: most,
            busy: busy.into_iter().map(|busy| busy.min(most)).collect(),
            waiting: mean(queued.iter().copied()),
            waited_share: waited_share(&queued),
            // Where the configuration tells the limit, a pool that has reached it grows no further.
            grows: allowed.is_none_or(|allowed| workers.len() < allowed) && grew,
            reached: reached(ctx, tier),
        })
    }

    /// One process, or more connections than processes: threads, or an event loop. Threads that take connections themselves leave the others in
    /// the accept queue as soon as each has one; an event loop goes on accepting, up to a limit of its own where it has one. Only where they are all
    /// taken can their number be told.
    fn of_threads(ctx: &Context<'_>, tier: &Tier, workers: &[&Identity], busy: Vec<usize>) -> Option<Self> {
        let threads = |identity: &&Identity| Some(ctx.obs.processes.get(&identity.pid)?.cpu.last()?.threads as usize);
        let threads: usize = workers.iter().map(threads).sum::<Option<usize>>()?;
        let most = busy.iter().max().copied()?;
        let queued = ctx.queued(tier);
        let pool = Self {
            of: Of::Threads,
            workers: most,
            busy,
            waiting: mean(queued.iter().copied()),
            waited_share: waited_share(&queued),
            grows: false,
            reached: None,
        };
        if !pool.is_full() {
            return None;
        }
        if most <= threads {
            return pool.is_steady(BUSY_SHARE).then_some(pool);
        }
        (pool.is_steady(TAKEN_SHARE) && loops::are_capped(ctx, tier, &pool)).then_some(Self { of: Of::Loops, ..pool })
    }

    /// True where hardly a sample found less than this share of the most that were ever in service.
    fn is_steady(&self, share: f64) -> bool {
        let taken = self.busy.iter().filter(|busy| **busy as f64 >= share * self.workers as f64).count();
        taken as f64 >= STEADY_SHARE * self.busy.len() as f64
    }

    /// What is counted.
    fn unit(&self) -> &'static str {
        if self.of == Of::Loops { CONNECTIONS } else { "workers" }
    }

    fn busy_mean(&self) -> f64 {
        self.busy.iter().sum::<usize>() as f64 / self.busy.len().max(1) as f64
    }

    /// The workers busy and connections waiting for them all the time, or none of them ever free and most of the time somebody waiting: the
    /// pool's definition of full, whatever the reason.
    fn is_full(&self) -> bool {
        let busy = self.busy_mean() / self.workers as f64;
        let waited = busy >= BUSY_SHARE && self.waited_share >= WAITED_SHARE && self.waiting >= 1.0;
        let taken = busy >= TAKEN_SHARE && self.waited_share >= WAITED_SHARE_TAKEN;
        // With a worker for each that waits no more could be served than so many more at once.
        let gain = self.waiting / self.workers as f64;
        self.busy.len() >= SAMPLES_MIN && ((waited && gain >= GAIN_MIN) || (taken && gain >= GAIN_MIN_TAKEN))
    }
}

/// Share of the samples in which somebody waited.
fn waited_share(queued: &[u64]) -> f64 {
    queued.iter().filter(|queued| **queued > 0).count() as f64 / queued.len().max(1) as f64
}

/// What the pool's own status page says for it: that all its workers were active, and that it wanted more. A page for which a worker of the
/// pool answers cannot be had while all are taken, so that it never says the first.
fn told_by_page(ctx: &Context<'_>, tier: &Tier, pool: &PhpFpmPool) -> Vec<Evidence> {
    let Some((page, _)) = tier.pids.iter().find_map(|pid| ctx.obs.servers.get(pid)?.pool_status(&pool.name)) else { return Vec::new() };
    let counts = |status: &ServerStatus| match status {
        ServerStatus::PhpFpm(counts) => Some((counts.active, counts.max_children_reached)),
        ServerStatus::Nginx(_) => None,
    };
    let limit = u64::from(pool.max_children.value);
    let looks: Vec<u64> = ctx.in_window(page).filter_map(|(_, status)| counts(status)).map(|(active, _)| active).collect();
    let full = looks.iter().filter(|active| **active >= limit).count();
    // The counter also counts at a start, long before the window (a reload sets it to zero).
    let ends = ctx.around(page).and_then(|(first, last, _)| counts(last)?.1.checked_sub(counts(first)?.1));
    let args = |id: &'static str| Message::new(id).with("pool", pool.name.as_str()).with("workers", limit);
    let source = format!("pm.status_path ({})", pool.name);
    let active = (full > 0).then(|| args("evidence-worker-pool-active").with("full", full as f64).with("looks", looks.len() as f64));
    let reached = ends.filter(|reached| *reached > 0).map(|reached| (args("evidence-worker-pool-reached").with("times", reached), reached));
    let active = active.map(|text| evidence(ctx.text(text), source.as_str(), Some(full as f64)));
    let reached = reached.map(|(text, times)| evidence(ctx.text(text), source.as_str(), Some(times as f64)));
    active.into_iter().chain(reached).collect()
}

/// True where a worker was first seen in the window's second half: servers look about once a second whether they need more of them.
fn started_late(ctx: &Context<'_>, tier: &Tier) -> bool {
    let first_us = |pid: &u32| ctx.obs.processes.get(pid)?.identity.points().first().map(|(at, _)| *at);
    let half_us = u64::midpoint(ctx.window_us.0, ctx.window_us.1);
    tier.pids.iter().filter_map(first_us).any(|at| at > half_us)
}

/// Connections that the tier has accepted and not closed: a worker goes on with a request also where its client has given up (CLOSE_WAIT).
fn in_service(tier: &Tier, sockets: &[Socket]) -> usize {
    let ours = |socket: &&Socket| {
        socket.inode != 0
            && tier.listeners.iter().any(|placed| match (&placed.listener.address, &socket.address) {
                (ListenerAddress::Tcp(ip, port), SocketAddress::Tcp { local, .. }) => {
                    matches!(socket.state, TcpState::Established | TcpState::CloseWait)
                        && local.1 == *port
                        && (ip.is_unspecified() || ip.to_canonical() == local.0.to_canonical())
                }
                (ListenerAddress::Unix(path), SocketAddress::Unix { path: Some(bound), .. }) => path == bound,
                _ => false,
            })
    };
    sockets.iter().filter(ours).count()
}

fn read(ctx: &Context<'_>) -> Vec<Placed> {
    let pools = ctx.path.tiers.iter().filter_map(|tier| Some((tier, Pool::of(ctx, tier)?)));
    pools.map(|(tier, pool)| Placed { netns: Some(tier.netns), station: reading(ctx, tier, &pool) }).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Station {
    let at = At { netns: Some(ctx.netns_name(tier.netns)), ..At::default() };
    let mut station = blank(&STATION, tier.name.clone(), at, pool.unit());
    let limit = pool.workers as f64;
    station.limit = Some(limit);
    station.used = pool.busy.iter().max().map(|busy| *busy as f64);
    station.waiting = Some(pool.waiting);
    station.utilization = Some(pool.busy_mean() / limit);
    station.ceiling_rps = ceiling(ctx, tier, pool);
    let args = |id: &'static str| {
        let message = Message::new(id).with("workers", limit).with("busy", pool.busy_mean()).with("waiting", pool.waiting);
        message.with("share", pool.waited_share * 100.0)
    };
    let (state, why) = if pool.is_full() {
        (StationState::Saturated, args("state-worker-pool-full"))
    } else if pool.busy_mean() >= 0.8 * limit {
        (StationState::Near, args("state-worker-pool-near"))
    } else {
        (StationState::Ok, args("state-worker-pool-ok"))
    };
    station.state = state;
    station.why = ctx.text(why);
    station
}

/// Workers over the time for which a request holds one. A pool at its limit gives back what was measured, and that proves nothing; what it
/// would give with another number of workers can be measured then.
fn ceiling(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Ceiling> {
    let service = Service::of(ctx, tier, pool)?;
    let rate = |held_s: f64| pool.workers as f64 / held_s;
    ceiling_between(rate(service.held_s), rate(service.held_s_most), rate(service.held_s_least))
}

/// The longest that a request holds a worker of one of the path's pools, seconds; nothing where there is no pool whose time can be told.
pub(super) fn held_s(ctx: &Context<'_>) -> Option<f64> {
    let pools = ctx.path.tiers.iter().filter_map(|tier| Some((tier, Pool::of(ctx, tier)?)));
    pools.filter_map(|(tier, pool)| Some(Service::of(ctx, tier, &pool)?.held_s)).reduce(f64::max)
}

fn judge(ctx: &Context<'_>, _: &[Placed]) -> Vec<Finding> {
    let judged = ctx.path.tiers.iter().filter_map(|tier| {
        let (pool, idle) = exhausted(ctx, tier)?;
        let full = finding(ctx, tier, &pool, &idle);
        // Workers that wait for another server would do so as well if there were as many as the file says.
        let cause = match Blocked::of(ctx, tier) {
            Some(blocked) => Some(blocked.finding(ctx, tier, &pool)),
            None => in_force::worker_pool(ctx, tier, pool.workers as f64, pool.waiting, &full),
        };
        Some(std::iter::once(full).chain(cause))
    });
    judged.flatten().collect()
}

/// The pool of a tier whose workers are all taken and wait for something that is no core, with what shows that. On cores that are full of good
/// answers it takes nothing away: the workers wait for servers that have no core either, as for a web server that closes its connections late.
fn exhausted(ctx: &Context<'_>, tier: &Tier) -> Option<(Pool, Idle)> {
    let pool = Pool::of(ctx, tier).filter(|pool| pool.is_full() && !pool.grows)?;
    // Whose clients are left out altogether suffers, whatever the others get.
    if pool.of == Of::Loops && loops::leave_out(ctx, tier, &pool) {
        return Some((pool, Idle::Left));
    }
    if are_spent(ctx) {
        return None;
    }
    let idle = Idle::of(ctx, tier, &pool)?;
    Some((pool, idle))
}

/// True where a tier's workers are all taken and wait.
pub(super) fn is_exhausted(ctx: &Context<'_>, tier: &Tier) -> bool {
    exhausted(ctx, tier).is_some()
}

fn finding(ctx: &Context<'_>, tier: &Tier, pool: &Pool, idle: &Idle) -> Finding {
    let kind = match (pool.of, idle) {
        (Of::Loops, Idle::Left) => "left",
        (Of::Loops, _) => "loops",
        (Of::Threads, _) => "threads",
        (Of::Processes, Idle::Beside(_)) => "compute",
        (Of::Processes, Idle::Workers(_) | Idle::Cores(_) | Idle::Left) => "wait",
    };
    let args = |id: &'static str| Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64).with("kind", kind);
    Finding {
        id: "worker-pool-exhausted".to_owned(),
        station: STATION.id.to_owned(),
        tier: tier.name.clone(),
        at: At { netns: Some(ctx.netns_name(tier.netns)), ..At::default() },
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence: match idle {
            Idle::Workers(_) | Idle::Beside(_) | Idle::Left => Confidence::High,
            // Idle cores may be kept from the workers: whether they wait for one is what could not be read.
            Idle::Cores(_) => Confidence::Low,
        },
        title: ctx.text(args("finding-worker-pool-exhausted-title")),
        evidence: proofs(ctx, tier, pool, idle),
        explanation: ctx.text(args("finding-worker-pool-exhausted-explanation")),
        remedies: Vec::new(),
    }
}

fn proofs(ctx: &Context<'_>, tier: &Tier, pool: &Pool, idle: &Idle) -> Vec<Evidence> {
    let netns = ctx.netns_name(tier.netns);
    let busy = Message::new("evidence-worker-pool-busy")
        .with("unit", pool.unit())
        .with("workers", pool.workers as f64)
        .with("busy", pool.busy_mean())
        .with("full", pool.busy.iter().filter(|busy| **busy >= pool.workers).count() as f64)
        .with("samples", pool.busy.len() as f64);
    let mut proofs = vec![evidence(ctx.text(busy), format!("sock_diag, /proc/PID ({netns})"), Some(pool.busy_mean()))];
    proofs.extend(pool.reached.as_ref().map(|logged| logged.proof(ctx)));
    for configured in configured(ctx, tier) {
        let origin = &configured.max_children.origin;
        let text = Message::new("evidence-worker-pool-configured").with("pool", configured.name.as_str());
        let text = text.with("limit", configured.max_children.value).with("pm", configured.pm.value.as_str());
        let limit = f64::from(configured.max_children.value);
        proofs.push(evidence(ctx.text(text), format!("{}:{}", origin.file, origin.line), Some(limit)));
        proofs.extend(told_by_page(ctx, tier, configured));
    }
    let waiting = Message::new("evidence-worker-pool-waiting").with("waiting", pool.waiting);
    proofs.push(evidence(ctx.text(waiting), format!("sock_diag ({netns})"), Some(pool.waiting)));
    proofs.push(match idle {
        Idle::Left => loops::proof(ctx),
        Idle::Workers(share) => {
            let text = Message::new("evidence-worker-pool-ready").with("share", share * 100.0).with("unit", pool.unit());
            evidence(ctx.text(text), "/proc/PID/schedstat", Some(*share))
        }
        Idle::Cores(share) | Idle::Beside(share) => {
            evidence(ctx.text(Message::new("evidence-worker-pool-cpu").with("share", share * 100.0)), "/proc/stat", Some(*share))
        }
    });
    if let Some(load) = ctx.obs.load.as_ref().filter(|load| load.goodput_rps() > 0.0) {
        let ms = |count: f64| 1e3 * count / load.goodput_rps();
        let times = Message::new("evidence-worker-pool-times").with("service", ms(pool.workers as f64)).with("wait", ms(pool.waiting));
        proofs.push(evidence(ctx.text(times), "load", Some(ms(pool.waiting))));
    }
    proofs
}
