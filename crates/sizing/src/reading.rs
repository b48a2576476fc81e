//! From an observation and its diagnosis to a step: what was measured, and what the diagnosis says of it.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::facts::Context;
use chokepoint_model::load::{LoadResult, Loop};
use chokepoint_model::observation::{CpuUse, Identity, Observation, Setting};
use chokepoint_model::path::{self, Tier};
use chokepoint_model::report::{Diagnosis, LedgerPlaceKind, Role, Station, StationState};
use chokepoint_model::spread::Spread;
use chokepoint_model::{PoolMemory, php_fpm_pools};

use crate::interval::Interval;
use crate::step::{InForce, Limit, Offered, Settings, Step, TierStep};

/// The units of pools whose workers each serve one request at a time.
const WORKERS: &str = "workers";
const THREADS: &str = "threads";

/// The step of an observation. `None` if no load was applied.
pub fn step(obs: &Observation, diagnosis: &Diagnosis, words: &Catalogue) -> Option<Step> {
    let load = obs.load.as_ref()?;
    let found = path::discover(obs);
    let ctx = Context::new(obs, &found, words);
    let offered = match load.shape {
        Loop::Closed { connections } => Offered::Closed(connections),
        Loop::Open { rate_per_s, .. } => Offered::Open(rate_per_s),
    };
    let throughput = load.throughput_rps();
    let failed_share = if throughput > 0.0 { (1.0 - load.goodput_rps() / throughput).clamp(0.0, 1.0) } else { 1.0 };
    Some(Step {
        offered,
        duration_s: load.duration_us as f64 / 1e6,
        goodput_rps: goodput(load),
        failed_share,
        latency_us: load.latency_us,
        alone_us: ctx.alone_us(),
        verdict: diagnosis.verdict,
        limit: limit(diagnosis),
        tiers: found.tiers.iter().map(|tier| tier_step(&ctx, tier, diagnosis)).collect(),
        available_bytes: obs.memory.last().map(|memory| memory.available),
        warnings: diagnosis.warnings.clone(),
        interrupted: load.interrupted || load.stopped_by.is_some(),
    })
}

fn goodput(load: &LoadResult) -> Interval {
    let value = load.goodput_rps();
    match Spread::of(load) {
        Some(spread) => Interval { value, low: spread.goodput_rps.low, high: spread.goodput_rps.high },
        None => Interval { value, low: 0.0, high: f64::INFINITY },
    }
}

/// What limits: the first cause, else what the verdict says.
fn limit(diagnosis: &Diagnosis) -> Limit {
    let cause = diagnosis.findings.iter().find(|finding| finding.role == Role::Cause);
    Limit {
        finding: cause.map(|cause| cause.id.clone()),
        station: cause.map(|cause| cause.station.clone()),
        tier: cause.map(|cause| cause.tier.clone()),
        limited_by: diagnosis.limited_by,
        text: cause.map_or_else(|| diagnosis.summary.clone(), |cause| cause.title.clone()),
    }
}

fn tier_step(ctx: &Context<'_>, tier: &Tier, diagnosis: &Diagnosis) -> TierStep {
    let identities: Vec<&Identity> = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first()).collect();
    let is_parent = |identity: &&Identity| identities.iter().any(|other| other.parent == identity.pid);
    let workers: Vec<&Identity> = identities.iter().copied().filter(|identity| !is_parent(identity)).collect();
    let threads = |identity: &&Identity| Some(ctx.obs.processes.get(&identity.pid)?.cpu.last()?.threads);
    let used: Vec<(f64, f64)> = tier.pids.iter().filter_map(|pid| cores_used(ctx, *pid)).collect();
    let all: f64 = used.iter().map(|(all, _)| all).sum();
    let cpu = station(diagnosis, "cpu", &tier.name);
    let pool = station(diagnosis, "worker-pool", &tier.name).filter(|pool| [WORKERS, THREADS].contains(&pool.unit.as_str()));
    let inside = diagnosis.ledger.as_ref().map(|ledger| {
        use LedgerPlaceKind::{Cpu, Ready, Sending, Throttled, Waiting};
        let own = ledger.places.iter().filter(|place| place.tier == tier.name);
        own.filter(|place| matches!(place.place, Cpu | Ready | Throttled | Waiting | Sending)).map(|place| place.mean).sum()
    });
    TierStep {
        name: tier.name.clone(),
        server: identities.iter().find_map(|identity| chokepoint_servers::recognise(identity)),
        processes: workers.len() as u32,
        threads: workers.iter().filter_map(threads).sum(),
        pool: pool.and_then(|pool| pool.limit),
        is_pool_threads: pool.is_some_and(|pool| pool.unit == THREADS),
        has_one_lock: workers.iter().any(|identity| path::has_one_lock(identity)),
        is_pool_full: pool.is_some_and(|pool| pool.state == StationState::Saturated),
        cores_used: (!used.is_empty()).then_some(all),
        system_share: (all > 0.0).then(|| used.iter().map(|(_, system)| system).sum::<f64>() / all),
        cores: cpu.and_then(|cpu| cpu.limit),
        cores_busy: cpu.and_then(|cpu| cpu.utilization),
        core_ceiling_rps: cpu.and_then(|cpu| cpu.ceiling_rps).map(Interval::from),
        memory: PoolMemory::of(ctx, tier),
        inside,
        accept_queue_limit: station(diagnosis, "accept-queue", &tier.name).and_then(|queue| queue.limit),
        in_force: in_force(ctx, tier),
    }
}

/// The station of a tier. The cores of several tiers are one station, whose tier is their names joined by "+".
fn station<'d>(diagnosis: &'d Diagnosis, id: &str, tier: &str) -> Option<&'d Station> {
    diagnosis.path.iter().find(|station| station.station == id && station.tier.split('+').any(|name| name == tier))
}

/// Cores that a process used in the window, and the part of them in the kernel. As in the diagnosis, the larger of clock ticks and the threads' own clocks:
/// ticks miss short work, and the clocks miss threads that ended.
fn cores_used(ctx: &Context<'_>, pid: u32) -> Option<(f64, f64)> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(&pid)?.cpu)?;
    let ticks_per_us = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64 / 1e6;
    let grew = |of: fn(&CpuUse) -> u64| of(last).saturating_sub(of(first)) as f64 / ticks_per_us / elapsed_us as f64;
    let (user, system) = (grew(|used| used.user_ticks), grew(|used| used.system_ticks));
    let ticked = user + system;
    let clocked = last.run_ns.zip(first.run_ns).map_or(0.0, |(last, first)| last.saturating_sub(first) as f64 / 1e3 / elapsed_us as f64);
    let all = ticked.max(clocked);
    let system_share = if ticked > 0.0 { system / ticked } else { 0.0 };
    Some((all, all * system_share))
}

/// The settings of nginx and php-fpm in force, each where it stands.
fn in_force(ctx: &Context<'_>, tier: &Tier) -> Settings {
    fn known<T: Copy + Into<u64>>(setting: &Setting<T>) -> InForce {
        InForce { value: setting.value.into(), file: setting.origin.file.clone(), line: setting.origin.line }
    }
    let views = || tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid));
    let mut settings = Settings::default();
    if let [pool] = php_fpm_pools(ctx, tier).as_slice() {
        settings.workers = Some(known(&pool.max_children));
    }
    if let Some(nginx) = views().find_map(|view| view.nginx()) {
        let soft = |pid: &u32| ctx.obs.processes.get(pid)?.limits.last()?.open_files_soft;
        let inherited = || Some(InForce { value: tier.pids.iter().filter_map(soft).min()?, ..InForce::default() });
        settings.loops = Some(known(&nginx.worker_processes));
        settings.connections = Some(known(&nginx.worker_connections));
        settings.files = nginx.worker_rlimit_nofile.as_ref().map(known).or_else(inherited);
    }
    settings
}
