//! The advice for one tier: workers, memory, and configuration lines.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::LimitedBy;

use super::{Asked, alone_s};
use crate::knee::most;
use crate::report::{ConfigReport, MemoryReport, ServiceReport, TierReport};
use crate::step::{InForce, Step, TierStep, curve};
use crate::workers::{ServiceTime, WorkerMemory, queue};
use chokepoint_servers::ServerDef;
use chokepoint_servers::advice::{Demand, WorkerUnit};

/// Share of its cores that the path's own tiers have to use before full cores count as filled by them, and not by other programs.
const OWN_SHARE_MIN: f64 = 0.5;
/// The finding that says that more workers would wait as well.
const BLOCKED: &str = "workers-blocked-on-upstream";

/// The advice for each tier that has workers, or is a known server.
pub(super) fn advice(asked: &Asked, steps: &[Step], limit: Option<&Step>, words: &Catalogue) -> Vec<TierReport> {
    let Some(last) = limit else { return Vec::new() };
    let mut found: Vec<Advised<'_>> = Vec::new();
    for (place, tier) in last.tiers.iter().enumerate() {
        let unit = unit(tier);
        if unit.is_none() && tier.server.is_none() {
            continue;
        }
        let service = service(asked, steps, last, place);
        found.push(Advised { asked, last, tier, unit, service, steps });
    }
    let workers: Vec<Option<u32>> = found.iter().map(|tier| tier.workers().map(|(workers, _)| workers)).collect();
    let behind = |place: usize| workers[place + 1..].iter().find_map(|workers| *workers);
    found.iter().enumerate().map(|(place, tier)| tier.report(behind(place), words)).collect()
}

/// What serves requests in a tier.
fn unit(tier: &TierStep) -> Option<WorkerUnit> {
    match tier.server.map(|server| server.unit) {
        Some(WorkerUnit::Processes) if tier.is_pool_threads => Some(WorkerUnit::Threads),
        Some(unit) => Some(unit),
        None if tier.is_pool_threads => Some(WorkerUnit::Threads),
        None if tier.processes >= 2 => Some(WorkerUnit::Processes),
        None if tier.pool.is_some() => Some(WorkerUnit::Threads),
        None => None,
    }
}

/// The time of a request at a tier: what it takes alone, without the CPU of the tiers in front of it.
fn service(asked: &Asked, steps: &[Step], last: &Step, place: usize) -> Option<ServiceTime> {
    let tier = &last.tiers[place];
    let curve = curve(steps);
    let first = curve.first()?;
    let in_front: f64 = last.tiers[..place].iter().filter_map(|front| first.cpu_s(&front.name)).sum();
    let held_s = (alone_s(steps)? - in_front).max(0.0);
    let busiest = curve.iter().copied().filter(|step| step.cpu_s(&tier.name).is_some()).max_by(|a, b| {
        let used = |step: &Step| step.tier(&tier.name).and_then(|tier| tier.cores_used).unwrap_or(0.0);
        used(a).total_cmp(&used(b))
    })?;
    let at = busiest.tier(&tier.name)?;
    let (cpu_s, cores) = (busiest.cpu_s(&tier.name)?, at.cores?);
    // Filled cores show what a request costs. Of others the diagnosis says what it will cost once they are full, at the step that says most about it; else the
    // clocks of the tiers say what it costs now.
    let full = curve.iter().rfind(|step| are_full(step, &tier.name)).and_then(|step| step.tier(&tier.name)?.core_ceiling_rps);
    let by_clocks = || {
        let own = own_share(busiest, &tier.name).filter(|share| *share > 0.0)?;
        Some(busiest.goodput_rps.value / own)
    };
    let core_ceiling_rps = full.or(at.core_ceiling_rps).map(|ceiling| ceiling.value).or_else(by_clocks)?;
    // No part of a cost is more than the whole.
    let of_tiers: f64 = beside(busiest, at).filter_map(|tier| busiest.cpu_s(&tier.name)).sum();
    let whole_s = cores / core_ceiling_rps;
    let cpu_s = if of_tiers > whole_s { cpu_s * whole_s / of_tiers } else { cpu_s };
    // Threads under one lock compute on one core of each process, whatever the others have time for.
    let usable =
        if unit(tier) == Some(WorkerUnit::Threads) && tier.has_one_lock { cores.min(f64::from(tier.processes.max(1))) } else { cores };
    let core_ceiling_rps = core_ceiling_rps * usable / cores;
    Some(ServiceTime { held_s: held_s.max(cpu_s), cpu_s, cores: usable, core_ceiling_rps, wanted_rps: asked.rate_rps })
}

/// The tiers on the same cores as one, with it: they have the same station.
fn beside<'s>(step: &'s Step, tier: &'s TierStep) -> impl Iterator<Item = &'s TierStep> {
    step.tiers.iter().filter(|other| other.cores_busy == tier.cores_busy && other.cores == tier.cores)
}

/// Share of a tier's cores that it and the tiers on the same cores used.
fn own_share(step: &Step, name: &str) -> Option<f64> {
    let tier = step.tier(name)?;
    Some(beside(step, tier).filter_map(|other| other.cores_used).sum::<f64>() / tier.cores.filter(|cores| *cores > 0.0)?)
}

/// True if the diagnosis says that the cores were the limit of a step, and the path's own tiers filled them.
fn are_full(step: &Step, name: &str) -> bool {
    step.limit.limited_by == Some(LimitedBy::Cpu) && own_share(step, name).is_some_and(|share| share >= OWN_SHARE_MIN)
}

/// What allows no more workers than are advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Memory,
    /// The connections of the test.
    Connections,
}

struct Advised<'a> {
    asked: &'a Asked,
    last: &'a Step,
    tier: &'a TierStep,
    unit: Option<WorkerUnit>,
    service: Option<ServiceTime>,
    steps: &'a [Step],
}

impl Advised<'_> {
    fn args(&self, id: &'static str) -> Message {
        let message = Message::new(id).with("tier", self.tier.name.as_str());
        let unit = match self.unit {
            Some(WorkerUnit::Threads) => "threads",
            _ => "processes",
        };
        let message = message.with("unit", unit).with("now", f64::from(self.now().unwrap_or(0)));
        let workers = f64::from(self.workers().map_or(0, |(workers, _)| workers));
        message.with("workers", workers).with("rate", self.carried_rps(workers))
    }

    /// Workers now.
    fn now(&self) -> Option<u32> {
        match self.unit? {
            WorkerUnit::Processes => Some(self.tier.pool.map_or(self.tier.processes, |pool| pool as u32)),
            WorkerUnit::Threads => self.tier.pool.map(|pool| pool as u32),
            WorkerUnit::Loops => None,
        }
    }

    /// The rate that so many workers are for: what is wanted or what the cores have time for, as far as they carry it.
    fn carried_rps(&self, workers: f64) -> f64 {
        self.service.map_or(0.0, |service| service.staffing().rate_rps.min(workers / service.held_s.max(1e-9)))
    }

    /// True if the diagnosis says that the workers wait for a server that is at its limit.
    fn is_blocked(&self) -> bool {
        self.last.limit.finding.as_deref() == Some(BLOCKED) && self.last.limit.tier.as_deref() == Some(self.tier.name.as_str())
    }

    fn memory(&self) -> Option<&WorkerMemory> {
        self.asked.memory.get(&self.tier.name)?.as_ref().ok()
    }

    /// Workers to have, and whether memory is what bounds them.
    fn workers(&self) -> Option<(u32, bool)> {
        self.bounded().map(|(workers, bound)| (workers, bound == Some(Bound::Memory)))
    }

    /// What allows no more workers than are advised.
    fn bound(&self) -> Option<Bound> {
        self.bounded()?.1
    }

    fn bounded(&self) -> Option<(u32, Option<Bound>)> {
        let unit = self.unit.filter(|unit| *unit != WorkerUnit::Loops)?;
        if self.is_blocked() {
            return self.now().map(|now| (now, None));
        }
        let enough = self.service?.workers();
        // More than there are connections would never be busy.
        let tried = self.asked.connections_max.max(self.tier.cores.unwrap_or(1.0) as u32);
        let memory = self.memory().filter(|_| unit == WorkerUnit::Processes).and_then(WorkerMemory::workers_max);
        Some(match memory {
            Some(most) if most < enough.min(tried) => (most.max(1), Some(Bound::Memory)),
            _ if tried < enough => (tried, Some(Bound::Connections)),
            _ => (enough, None),
        })
    }

    fn report(&self, behind: Option<u32>, words: &Catalogue) -> TierReport {
        let say = |message: Message| words.text(&message);
        let def = self.tier.server;
        let workers = self.workers();
        let config = def.map(|def| self.config(def, behind, words)).unwrap_or_default();
        TierReport {
            tier: self.tier.name.clone(),
            server: def.map(|def| def.id.to_owned()),
            unit: self.unit,
            workers_now: self.now(),
            workers: workers.map(|(workers, _)| workers),
            memory_limits: workers.is_some_and(|(_, limits)| limits),
            service: self.service.map(|service| self.service_report(&service)),
            memory: self.memory_report(words),
            file: self.place().map(|place| place.file.clone()).or(def.map(|def| def.file.to_owned())).filter(|_| !config.is_empty()),
            line: self.place().map(|place| place.line).filter(|_| !config.is_empty()),
            config,
            source: def.map(|def| def.source.to_owned()),
            text: say(self.text()),
            notes: self.notes().into_iter().map(say).collect(),
        }
    }

    fn service_report(&self, service: &ServiceTime) -> ServiceReport {
        ServiceReport {
            held_us: service.held_s * 1e6,
            cpu_us: service.cpu_s * 1e6,
            system_us: self.tier.system_share.map(|share| share * service.cpu_s * 1e6),
            wait_us: service.wait_s() * 1e6,
            cores: service.cores,
            core_ceiling_rps: service.core_ceiling_rps,
        }
    }

    /// Where the setting that decides stands: the number of workers, or for event loops that of their connections.
    fn place(&self) -> Option<&InForce> {
        let in_force = &self.tier.in_force;
        let known = if self.unit == Some(WorkerUnit::Loops) { &in_force.connections } else { &in_force.workers };
        known.as_ref().filter(|known| !known.file.is_empty())
    }

    /// The advice in one sentence.
    fn text(&self) -> Message {
        let Some((workers, memory_limits)) = self.workers() else {
            let is_loop = self.unit == Some(WorkerUnit::Loops);
            return self.args(if is_loop { "size-workers-loops" } else { "size-workers-unknown" });
        };
        match self.now() {
            _ if self.is_blocked() => self.args("size-workers-blocked"),
            _ if memory_limits => self.args("size-workers-memory"),
            None => self.args("size-workers"),
            Some(now) if now < workers => self.args("size-workers-more"),
            Some(now) if now == workers => self.args("size-workers-same"),
            Some(_) => self.args("size-workers-fewer"),
        }
    }

    /// How the number was computed, and what to watch out for.
    fn notes(&self) -> Vec<Message> {
        let Some(service) = self.service.filter(|_| self.workers().is_some()) else { return Vec::new() };
        let is_wanted = service.wanted_rps.is_some_and(|wanted| wanted < service.core_ceiling_rps);
        let id = match service.is_cpu_bound() {
            _ if is_wanted => "size-service-rate",
            true => "size-service-cpu",
            false => "size-service-wait",
        };
        let how = self.args(id).with("held", service.held_s * 1e3).with("cpu", service.cpu_s * 1e3).with("wait", service.wait_s() * 1e3);
        let how = how
            .with("rate", service.staffing().rate_rps)
            .with("cores", service.cores)
            .with("ceiling", service.core_ceiling_rps)
            .with("cost", service.cost_s() * 1e3);
        let how = how.with("at_once", service.staffing().at_once()).with("enough", f64::from(service.workers()));
        let is_measured = curve(self.steps).iter().any(|step| are_full(step, &self.tier.name));
        let share = self.own_share_most().filter(|_| !is_measured && !service.is_cpu_bound());
        let extrapolated = share.map(|share| self.args("size-note-extrapolated").with("busy", share * 100.0));
        let waits = (!service.is_cpu_bound() && !self.is_blocked()).then(|| self.args("size-note-shared"));
        let most = self.asked.connections_max;
        let bounded = (self.bound() == Some(Bound::Connections)).then(|| self.args("size-note-connections").with("most", f64::from(most)));
        std::iter::once(how).chain(bounded).chain(extrapolated).chain(waits).collect()
    }

    /// The highest share of its cores that the path's tiers used in any step.
    fn own_share_most(&self) -> Option<f64> {
        curve(self.steps).iter().filter_map(|step| own_share(step, &self.tier.name)).reduce(f64::max)
    }

    fn memory_report(&self, words: &Catalogue) -> Option<MemoryReport> {
        let unit = self.unit.filter(|unit| *unit != WorkerUnit::Loops)?;
        let workers = self.workers().map(|(workers, _)| workers);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let none = MemoryReport {
            worker_bytes: None,
            needed_bytes: None,
            process_bytes: None,
            available_bytes: self.last.available_bytes,
            text: String::new(),
        };
        let memory = match self.asked.memory.get(&self.tier.name)? {
            Ok(memory) => memory,
            Err(why) => return Some(MemoryReport { text: words.text(&self.args("size-memory-unread").with("why", why.as_str())), ..none }),
        };
        let available = self.args(if memory.available_bytes.is_some() { "size-memory" } else { "size-memory-unknown" });
        let available = available.with("available", mib(memory.available_bytes.unwrap_or(0))).with("worker", mib(memory.pool.worker_bytes));
        let available = available.with("measure", memory.pool.measure.name());
        if unit == WorkerUnit::Threads {
            let text = available.with("needed", mib(memory.pool.all_bytes)).with("shared", "yes");
            return Some(MemoryReport { process_bytes: Some(memory.pool.all_bytes), text: words.text(&text), ..none });
        }
        let needed = workers.map(|workers| memory.pool.worker_bytes.saturating_mul(workers.into()));
        let text = available.with("needed", mib(needed.unwrap_or(0))).with("shared", "no");
        Some(MemoryReport { worker_bytes: Some(memory.pool.worker_bytes), needed_bytes: needed, text: words.text(&text), ..none })
    }

    fn config(&self, def: &ServerDef, behind: Option<u32>, words: &Catalogue) -> Vec<ConfigReport> {
        let workers = self.workers().map(|(workers, _)| workers);
        let Some(serving) = workers.or(behind) else { return Vec::new() };
        // With these workers at most this rate: what the cores have time for, or the measured one.
        let by_workers = self.service.filter(|service| service.held_s > 0.0).map(|service| f64::from(serving) / service.held_s);
        let ceiling = self.service.map(|service| service.core_ceiling_rps);
        let rate = ceiling.into_iter().chain(by_workers).reduce(f64::min).or(most(self.steps).map(|most| most.value)).unwrap_or(0.0);
        let waiting = queue(rate, self.asked.objective.p99_us as f64 / 1e6);
        let demand = Demand {
            workers: serving,
            cores: self.tier.cores.unwrap_or(1.0) as u32,
            in_flight: serving.saturating_add(waiting),
            queue: waiting,
            queue_now: self.tier.accept_queue_limit.map(|limit| limit as u32),
            behind,
            is_threaded: self.unit == Some(WorkerUnit::Threads),
            has_threads: self.tier.threads > 2 * self.tier.processes,
            processes: self.tier.processes,
            loops_now: self.tier.in_force.loops.as_ref().map(|now| now.value as u32),
            connections_now: self.tier.in_force.connections.as_ref().map(|now| now.value as u32),
            files_now: self.tier.in_force.files.as_ref().map(|now| now.value),
        };
        let lines = def.lines(&demand).into_iter();
        lines.map(|line| ConfigReport { text: line.text, why: words.text(&Message::new(line.why)) }).collect()
    }
}
