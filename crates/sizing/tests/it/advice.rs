//! The report on synthetic steps: capacity, workers, memory and lines, and what it refuses to say.
//!
//! Deterministic: pure functions.

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{LimitedBy, Verdict};
use chokepoint_model::{MemoryMeasure, PoolMemory};
use chokepoint_servers::advice::WorkerUnit;
use chokepoint_servers::{SERVERS, ServerDef};
use chokepoint_sizing::answer::{Asked, report};
use chokepoint_sizing::interval::Interval;
use chokepoint_sizing::objective::Objective;
use chokepoint_sizing::report::{Outcome, Size};
use chokepoint_sizing::step::{Offered, Step, TierStep};
use chokepoint_sizing::workers::WorkerMemory;

use crate::queues::{Bench, Server};

fn asked() -> Asked {
    let objective = Objective { p99_us: 200_000, given: true };
    Asked {
        url: "http://127.0.0.1/".to_owned(),
        objective,
        connections_max: 1024,
        rate_rps: None,
        is_cut: false,
        memory: BTreeMap::new(),
        warnings: Vec::new(),
    }
}

/// A pool of 5 workers that wait 19 ms and compute 1 ms, behind a proxy that takes 0.2 ms, on one core.
fn steps() -> Vec<Step> {
    let mut bench = Bench::new(Server::Pool(5, 0.0202));
    let loads = [1, 2, 4, 8, 16, 32].map(Offered::Closed).into_iter().chain([Offered::Open(210.0), Offered::Open(220.0)]);
    loads.map(|offered| with_tiers(bench.measure(offered))).collect()
}

fn with_tiers(step: Step) -> Step {
    let goodput = step.goodput_rps.value;
    let tier = |name: &str, cpu_s: f64| TierStep {
        name: name.to_owned(),
        server: known(name),
        processes: 5,
        threads: 5,
        cores_used: Some(goodput * cpu_s),
        cores: Some(1.0),
        cores_busy: Some((goodput * 0.0012).min(1.0)),
        core_ceiling_rps: Some(Interval { value: 833.0, low: 700.0, high: 900.0 }),
        accept_queue_limit: Some(100.0),
        ..TierStep::default()
    };
    let tiers = vec![tier("nginx", 0.0002), tier("php-fpm", 0.001)];
    Step { tiers, available_bytes: Some(1 << 30), ..step }
}

fn known(id: &str) -> Option<&'static ServerDef> {
    SERVERS.iter().find(|def| def.id == id).copied()
}

fn of(asked: &Asked, steps: &[Step]) -> Size {
    let report = report(asked, steps, &Catalogue::english());
    let json = serde_json::to_string(&report).unwrap();
    assert!(!json.contains("[size-"), "every message is in the catalogue: {json}");
    assert_eq!(serde_json::from_str::<Size>(&json).unwrap(), report);
    report
}

fn memory(private_mib: u64) -> BTreeMap<String, Result<WorkerMemory, String>> {
    let pool = PoolMemory { worker_bytes: private_mib << 20, all_bytes: 5 * (private_mib << 20), measure: MemoryMeasure::Private };
    let memory = WorkerMemory { pool, available_bytes: Some(1 << 30) };
    [("php-fpm".to_owned(), Ok(memory))].into()
}

#[test]
fn a_small_pool_gets_the_workers_that_keep_its_core_full() {
    let size = of(&Asked { memory: memory(10), ..asked() }, &steps());
    assert_eq!(size.outcome, Outcome::Measured);
    let [nginx, php_fpm] = size.tiers.as_slice() else { panic!("{size:#?}") };
    assert_eq!((nginx.workers, nginx.workers_now), (None, None));
    // 20 ms in the pool, 19 of them waiting; the core has time for 833/s, and 833/s x 20 ms = 16.7, and 4.0 in reserve.
    assert_eq!((php_fpm.workers_now, php_fpm.workers), (Some(5), Some(21)));
    let service = php_fpm.service.unwrap();
    assert!((service.held_us - 20_000.0).abs() < 1.0 && (service.wait_us - 19_000.0).abs() < 1.0, "{service:?}");
    assert_eq!(php_fpm.memory.as_ref().unwrap().needed_bytes, Some(210 << 20));
    let lines: Vec<&str> = php_fpm.config.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["pm = static", "pm.max_children = 21", "listen.backlog = 167"]);
    assert!(php_fpm.text.contains("21 workers instead of 5"), "{}", php_fpm.text);
    assert!(nginx.config.iter().any(|line| line.text.contains("worker_connections")), "{nginx:#?}");
}

#[test]
fn cores_that_other_programs_fill_do_not_show_what_a_request_costs() {
    let advised = |limited_by| {
        let mut steps = steps();
        for step in &mut steps {
            step.limit.limited_by = limited_by;
            // Their own use stays as it is.
            step.tiers.iter_mut().for_each(|tier| tier.cores_busy = Some(0.99));
        }
        let size = of(&asked(), &steps);
        (size.tiers[1].service.unwrap().core_ceiling_rps.round(), size.tiers[1].notes.iter().any(|note| note.contains("estimate")))
    };
    // No more than the diagnosis says that the cores carry, whoever fills them.
    assert_eq!(advised(Some(LimitedBy::Cpu)), (833.0, true), "five workers used a quarter of the core");
    assert_eq!(advised(None), (833.0, true));
    let mut full = steps();
    full.iter_mut().for_each(|step| step.limit.limited_by = Some(LimitedBy::Cpu));
    full.iter_mut().flat_map(|step| &mut step.tiers).for_each(|tier| tier.cores_used = tier.cores_used.map(|used| used * 3.0));
    assert_eq!(of(&asked(), &full).tiers[1].service.unwrap().core_ceiling_rps, 833.0, "measured");
    let few = of(&Asked { connections_max: 10, ..asked() }, &steps());
    assert_eq!(few.tiers[1].workers, Some(10), "more than there are connections are never busy");
    assert!(few.tiers[1].notes.iter().any(|note| note.contains("--max-connections")), "{:?}", few.tiers[1].notes);
}

#[test]
fn memory_bounds_the_advice_and_unread_memory_is_called_so() {
    let size = of(&Asked { memory: memory(100), ..asked() }, &steps());
    assert_eq!((size.tiers[1].workers, size.tiers[1].memory_limits), (Some(15), true));
    let unread = [("php-fpm".to_owned(), Err("permission denied (CAP_SYS_PTRACE)".to_owned()))].into();
    let size = of(&Asked { memory: unread, ..asked() }, &steps());
    let text = &size.tiers[1].memory.as_ref().unwrap().text;
    assert!(text.contains("not read") && text.contains("CAP_SYS_PTRACE"), "{text}");
}

#[test]
fn the_capacity_is_a_rate_that_held_and_the_safe_rate_is_below() {
    let size = of(&asked(), &steps());
    let held = size.capacity.at_objective_rps.unwrap();
    assert_eq!(held.value, 220.0);
    assert!(size.capacity.safe_rps.unwrap() <= held.low, "{size:#?}");
    assert_eq!(size.knee.unwrap().connections, 8);
    assert!(size.summary.starts_with("220 requests per second at p99 < 200 ms"), "{}", size.summary);
    assert_eq!(size.warnings, ["other programs used the cores"], "the warnings of the step past the knee");
    assert!(size.scaling.is_none() && size.scaling_refused.is_some(), "a pool is a hard ceiling: {:?}", size.scaling);
}

#[test]
fn workers_that_wait_for_a_server_at_its_limit_stay() {
    let mut steps = steps();
    for step in &mut steps {
        step.limit.finding = Some("workers-blocked-on-upstream".to_owned());
        step.limit.tier = Some("php-fpm".to_owned());
    }
    let size = of(&asked(), &steps);
    assert_eq!(size.tiers[1].workers, Some(5));
    assert!(size.tiers[1].text.contains("more would wait as well"), "{}", size.tiers[1].text);
    assert_eq!(size.limits_first.unwrap().finding.as_deref(), Some("workers-blocked-on-upstream"));
}

#[test]
fn steps_that_cannot_tell_what_limits_give_way_to_any_past_the_knee_that_can() {
    let all = steps();
    let knee = of(&asked(), &all).knee.unwrap().connections;
    let past: Vec<u32> = all.iter().filter_map(Step::connections).filter(|connections| *connections > knee).collect();
    assert!(past.len() >= 2, "{past:?}");
    for able in &past {
        let mut steps = all.clone();
        for step in steps.iter_mut().filter(|step| step.connections() > Some(knee)) {
            let can_tell = step.connections() == Some(*able);
            step.verdict = if can_tell { Verdict::Choked } else { Verdict::Unknown };
            step.limit.finding = can_tell.then(|| "worker-pool-exhausted".to_owned());
        }
        let found = of(&asked(), &steps).limits_first.unwrap().finding;
        assert_eq!(found.as_deref(), Some("worker-pool-exhausted"), "only {able} connections tell it");
    }
}

#[test]
fn a_limited_generator_gives_no_capacity() {
    let mut steps = steps();
    steps.truncate(2);
    steps.push(Step { verdict: Verdict::ClientLimited, ..steps[1].clone() });
    let size = of(&asked(), &steps);
    assert_eq!(size.outcome, Outcome::ClientLimited);
    assert!(size.capacity.most_rps.is_none() && size.capacity.at_objective_rps.is_none() && size.tiers.is_empty() && size.knee.is_none());
    assert!(size.summary.contains("load generator was the limit"), "{}", size.summary);
    assert_eq!(size.steps.len(), 3);
}

#[test]
fn nothing_measured_and_nothing_answered_are_no_capacity() {
    assert_eq!(of(&asked(), &[]).outcome, Outcome::NothingAnswered);
    let dead = vec![Bench::new(Server::Dead).measure(Offered::Closed(1))];
    let size = of(&asked(), &dead);
    assert_eq!((size.outcome, size.capacity.most_rps), (Outcome::NothingAnswered, None));
    let limited = dead.into_iter().map(|step| Step { verdict: Verdict::ClientLimited, ..step }).collect::<Vec<_>>();
    assert_eq!(of(&asked(), &limited).outcome, Outcome::NothingAnswered, "wrong answers at the generator's limit");
}

#[test]
fn a_run_that_was_cut_says_so_and_keeps_what_it_has() {
    let size = of(&Asked { is_cut: true, ..asked() }, &steps()[..4]);
    assert_eq!(size.outcome, Outcome::Partial);
    assert!(size.capacity.most_rps.is_some() && size.warnings.iter().any(|warning| warning.contains("Stopped after 4 steps")), "{size:#?}");
}

#[test]
fn an_interrupted_step_is_no_point() {
    let mut steps = steps();
    let last = steps.len() - 1;
    steps[last] = Step { interrupted: true, ..steps[last].clone() };
    let size = of(&asked(), &steps);
    assert_eq!(size.capacity.at_objective_rps.unwrap().value, 210.0);
}

#[test]
fn an_objective_that_one_request_misses_is_said_plainly() {
    let mut asked = asked();
    asked.objective.p99_us = 5_000;
    let measured: Vec<Step> = steps().into_iter().filter(|step| step.rate_per_s().is_none()).collect();
    let text = of(&asked, &measured).capacity.text;
    assert!(text.starts_with("a single request alone takes longer than the objective of 5 ms"), "{text}");
}

/// One process of gunicorn with four threads, each of which waits, on two cores.
fn threaded() -> Vec<Step> {
    let mut steps = steps();
    for step in &mut steps {
        let [_, pool] = &mut step.tiers[..] else { unreachable!() };
        *pool = TierStep {
            server: known("gunicorn"),
            processes: 1,
            threads: 5,
            pool: Some(4.0),
            is_pool_threads: true,
            has_one_lock: true,
            cores: Some(2.0),
            core_ceiling_rps: Some(Interval { value: 1_666.0, low: 1_400.0, high: 1_800.0 }),
            ..pool.clone()
        };
    }
    steps
}

#[test]
fn threads_are_advised_as_threads_and_for_the_rate_that_is_asked_for() {
    let all = of(&asked(), &threaded());
    let pool = &all.tiers[1];
    assert_eq!((pool.unit, pool.workers_now), (Some(WorkerUnit::Threads), Some(4)));
    // One lock: one core of the two.
    assert!((pool.service.unwrap().core_ceiling_rps - 833.0).abs() < 1.0, "{pool:#?}");
    assert!(pool.config[0].text == "threads = 21" && pool.text.contains("21 threads instead of 4, for 833/s"), "{pool:#?}");
    let some = of(&Asked { rate_rps: Some(230.0), ..asked() }, &threaded());
    let pool = &some.tiers[1];
    // 230/s x 20 ms = 4.6, and the root of 4.4.
    assert_eq!((pool.workers, pool.config[0].text.as_str()), (Some(7), "threads = 7"));
    assert!(pool.notes[0].contains("230/s x 20 ms = 4.6 at once, plus reserve: 7"), "{:?}", pool.notes);
}

#[test]
fn no_rate_is_said_to_miss_the_objective_where_none_was_tried() {
    let closed: Vec<Step> = steps().into_iter().filter(|step| matches!(step.offered, Offered::Closed(_))).collect();
    let untried = of(&asked(), &closed);
    assert!(untried.capacity.at_objective_rps.is_none());
    assert!(untried.capacity.text.contains("was not measured"), "{}", untried.capacity.text);
    // Goodput still rises with the most connections that may be tried.
    let few: Vec<Step> = closed.into_iter().filter(|step| step.connections().is_some_and(|number| number <= 4)).collect();
    let knee = |connections_max| {
        let size = of(&Asked { connections_max, ..asked() }, &few);
        (size.knee.is_none(), serde_json::to_string(&size).unwrap().contains("the most that --max-connections allows"))
    };
    assert_eq!((knee(4), knee(1024)), ((true, true), (true, false)));
}
