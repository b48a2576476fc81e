//! The advice for one tier: workers, memory, and configuration lines.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::LimitedBy;

use super::{Asked, alone_s};
use crate::knee::most;
use crate::report::{ConfigReport, MemoryReport, ServiceReport, TierReport};
use crate::servers::{Demand, ServerDef, WorkerUnit};
use crate::step::{Step, TierStep, curve};
use crate::workers::{ServiceTime, WorkerMemory, queue};

/// Share of its cores that the path's own tiers have to use before full cores count as filled by them, and not by other programs.
const OWN_SHARE_MIN: f64 = 0.5;
/// Largest drop of the CPU time of a request from idle to busy cores, as a share of that on busy cores, on the stacks tried (docs/measuring.md).
const FALL_MOST: f64 = 1.5;
/// Share of the cores that other programs may use before no prediction relies on the CPU time of the servers, as in the diagnosis.
const TENANTS_SHARE_MAX: f64 = 0.15;
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
        let service = service(steps, last, place);
        found.push(Advised { asked, last, tier, unit, service, steps });
    }
    let workers: Vec<Option<u32>> = found.iter().map(|tier| tier.workers().map(|(workers, _)| workers)).collect();
    let behind = |place: usize| workers[place + 1..].iter().find_map(|workers| *workers);
    found.iter().enumerate().map(|(place, tier)| tier.report(behind(place), words)).collect()
}

/// What serves requests in a tier.
fn unit(tier: &TierStep) -> Option<WorkerUnit> {
    match tier.server.map(|server| server.def().unit) {
        Some(unit) => Some(unit),
        None if tier.processes >= 2 => Some(WorkerUnit::Processes),
        None if tier.pool.is_some() => Some(WorkerUnit::Threads),
        None => None,
    }
}

/// The time of a request at a tier: what it takes alone, without the CPU of the tiers in front of it.
fn service(steps: &[Step], last: &Step, place: usize) -> Option<ServiceTime> {
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
    // Filled cores show what a request costs. Others have time for as many as the upper end says, at the step that says most
    // about it: the cost falls as load rises, and as a program warms up.
    let full = curve.iter().rfind(|step| are_full(step, &tier.name)).and_then(|step| step.tier(&tier.name)?.core_ceiling_rps);
    let core_ceiling_rps = full.map(|full| full.value).or_else(|| ceiling_most(busiest, at))?;
    Some(ServiceTime { held_s, cpu_s, cores, core_ceiling_rps })
}

/// Upper bound of the requests per second that cores which were not full have time for: that of the diagnosis. Where other programs use the cores, it has part
/// of their use in the cost of a request, and the tiers' own clocks with the largest drop of the cost may allow more.
fn ceiling_most(step: &Step, tier: &TierStep) -> Option<f64> {
    let own = own_share(step, &tier.name).filter(|share| *share > 0.0);
    let is_shared = tier.cores_busy.zip(own).is_none_or(|(busy, own)| busy - own > TENANTS_SHARE_MAX);
    let own = own.filter(|_| is_shared || tier.core_ceiling_rps.is_none());
    let by_clocks = own.map(|share| step.goodput_rps.value / share * (1.0 + FALL_MOST * (1.0 - share).clamp(0.0, 1.0).powi(2)));
    tier.core_ceiling_rps.map(|ceiling| ceiling.high).into_iter().chain(by_clocks).reduce(f64::max)
}

/// Share of a tier's cores that it and the tiers on the same cores used.
fn own_share(step: &Step, name: &str) -> Option<f64> {
    let tier = step.tier(name)?;
    // Tiers on the same cores have the same station.
    let beside = step.tiers.iter().filter(|other| other.cores_busy == tier.cores_busy && other.cores == tier.cores);
    Some(beside.filter_map(|other| other.cores_used).sum::<f64>() / tier.cores.filter(|cores| *cores > 0.0)?)
}

/// True if the diagnosis says that the cores were the limit of a step, and the path's own tiers filled them.
fn are_full(step: &Step, name: &str) -> bool {
    step.limit.limited_by == Some(LimitedBy::Cpu) && own_share(step, name).is_some_and(|share| share >= OWN_SHARE_MIN)
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
        message.with("workers", f64::from(self.workers().map_or(0, |(workers, _)| workers)))
    }

    /// Workers now.
    fn now(&self) -> Option<u32> {
        match self.unit? {
            WorkerUnit::Processes => Some(self.tier.pool.map_or(self.tier.processes, |pool| pool as u32)),
            WorkerUnit::Threads => self.tier.pool.map(|pool| pool as u32),
            WorkerUnit::Loops => None,
        }
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
        let unit = self.unit.filter(|unit| *unit != WorkerUnit::Loops)?;
        if self.is_blocked() {
            return self.now().map(|now| (now, false));
        }
        // More than there are connections would never be busy.
        let wanted = self.service?.workers().min(self.asked.connections_max.max(self.tier.cores.unwrap_or(1.0) as u32));
        let most = self.memory().filter(|_| unit == WorkerUnit::Processes).and_then(WorkerMemory::workers_max);
        Some(most.filter(|most| *most < wanted).map_or((wanted, false), |most| (most.max(1), true)))
    }

    fn report(&self, behind: Option<u32>, words: &Catalogue) -> TierReport {
        let say = |message: Message| words.text(&message);
        let def = self.tier.server.map(|server| server.def());
        let workers = self.workers();
        let config = def.map(|def| self.config(def, behind, words)).unwrap_or_default();
        TierReport {
            tier: self.tier.name.clone(),
            server: self.tier.server,
            unit: self.unit,
            workers_now: self.now(),
            workers: workers.map(|(workers, _)| workers),
            memory_limits: workers.is_some_and(|(_, limits)| limits),
            service: self.service.map(|service| self.service_report(&service)),
            memory: self.memory_report(words),
            file: self
                .tier
                .origin
                .as_ref()
                .map(|(file, _)| file.clone())
                .or(def.map(|def| def.file.to_owned()))
                .filter(|_| !config.is_empty()),
            line: self.tier.origin.as_ref().map(|(_, line)| *line),
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
        let id = if service.is_cpu_bound() { "size-service-cpu" } else { "size-service-wait" };
        let how = self.args(id).with("held", service.held_s * 1e3).with("cpu", service.cpu_s * 1e3).with("wait", service.wait_s() * 1e3);
        let how = how.with("cores", service.cores).with("ceiling", service.core_ceiling_rps).with("waiting", service.waiting_at_once());
        let is_measured = curve(self.steps).iter().any(|step| are_full(step, &self.tier.name));
        let share = self.own_share_most().filter(|_| !is_measured && !service.is_cpu_bound());
        let extrapolated = share.map(|share| self.args("size-note-extrapolated").with("busy", share * 100.0));
        let waits = (!service.is_cpu_bound() && !self.is_blocked()).then(|| self.args("size-note-shared"));
        std::iter::once(how).chain(extrapolated).chain(waits).collect()
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
        let available = available.with("available", mib(memory.available_bytes.unwrap_or(0))).with("worker", mib(memory.private_bytes));
        if unit == WorkerUnit::Threads {
            let text = available.with("needed", mib(memory.all_bytes)).with("shared", "yes");
            return Some(MemoryReport { process_bytes: Some(memory.all_bytes), text: words.text(&text), ..none });
        }
        let needed = workers.map(|workers| memory.private_bytes.saturating_mul(workers.into()));
        let text = available.with("needed", mib(needed.unwrap_or(0))).with("shared", "no");
        Some(MemoryReport { worker_bytes: Some(memory.private_bytes), needed_bytes: needed, text: words.text(&text), ..none })
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
            is_threaded: self.tier.threads > 2 * self.tier.processes,
        };
        let lines = def.lines(&demand).into_iter();
        lines.map(|line| ConfigReport { text: line.text, why: words.text(&Message::new(line.why)) }).collect()
    }
}
