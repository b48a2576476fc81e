//! Experiments for tests: two variants, a matrix of two factors, and names that are hard to print. Their trials are made up, and judged as measured ones are.

use std::collections::BTreeMap;

use chokepoint_experiment::analysis::{Aside, experiment};
use chokepoint_experiment::report::{Bound, Calls, Ended, Experiment, Host};
use chokepoint_experiment::{Disturbance, Metric, Plan, Trial};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{At, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};

/// All samples by name.
pub(crate) fn all() -> [(&'static str, Experiment); 4] {
    [("pair", pair()), ("matrix", matrix()), ("shares", shares()), ("interrupted", interrupted())]
}

const PAIR: &str = r#"schema = 1
name = "allocator"
title = "Does another allocator let one core of nginx serve more?"
stack = { scenario = "experiment-allocator", server = "nginx" }
measure = { calls = ["malloc"], profile = true }
[[variant]]
name = "glibc"
[[variant]]
name = "jemalloc"
env = { nginx = { LD_PRELOAD = "/usr/lib/libjemalloc.so.2" } }
"#;

const MATRIX: &str = r#"schema = 1
name = "workers"
title = "How many workers for a page that waits?"
stack = { scenario = "experiment-php", server = "php-fpm" }
[[factor]]
name = "workers"
level = [
    { name = "2 workers", set = { workers = 2 } },
    { name = "4 workers", set = { workers = 4 } },
    { name = "8 workers", set = { workers = 8 } },
]
[[factor]]
name = "clients"
level = [
    { name = "1 client", load = { connections = 1 } },
    { name = "4 clients", load = { connections = 4 } },
    { name = "16 clients", load = { connections = 16 } },
]
"#;

/// Two variants, one of which is better; disturbed trials, calls, bounds and warnings.
pub(crate) fn pair() -> Experiment {
    made(PAIR, 12, Ended::Precise, &|variant| [20_000.0, 21_700.0][variant], &aside(2))
}

/// Three levels of one factor and three of another.
pub(crate) fn matrix() -> Experiment {
    let goodput = |variant: usize| f64::from(1 << (variant / 3 + 1).min(variant % 3 * 2)) * 20.0;
    made(MATRIX, 8, Ended::Budget, &goodput, &Aside { used_s: 260.0, ..Aside::default() })
}

/// The share of failures decides, which is none everywhere.
pub(crate) fn shares() -> Experiment {
    let plan = PAIR.replace("calls = [\"malloc\"]", "decide = \"failed\"");
    made(&plan, 7, Ended::Budget, &|_| 100.0, &aside(2))
}

/// Two complete rounds: too few for an interval.
pub(crate) fn interrupted() -> Experiment {
    made(PAIR, 2, Ended::Interrupted, &|_| 20_000.0, &Aside { warnings: Vec::new(), ..aside(2) })
}

/// The sample with a text in every string that the report may hold from outside.
pub(crate) fn hostile(text: &str) -> Experiment {
    let mut report = matrix();
    let add = |old: &mut String| old.push_str(text);
    let twin = pair();
    (report.variants[0].calls, report.variants[0].bounds) = (twin.variants[1].calls.clone(), twin.variants[1].bounds.clone());
    report.variants[1].verified = vec!["seen".to_owned()];
    report.warnings.push("warning".to_owned());
    for (name, levels) in &mut report.design.factors {
        add(name);
        levels.iter_mut().for_each(add);
    }
    for variant in &mut report.variants {
        add(&mut variant.name);
        variant.levels.iter_mut().for_each(add);
        variant.verified.iter_mut().for_each(add);
        variant.ledger.iter_mut().for_each(|standing| add(&mut standing.tier));
        variant.calls.iter_mut().for_each(|calls| add(&mut calls.what));
        variant.bounds.iter_mut().for_each(|bound| add(&mut bound.layer));
    }
    report.comparisons.iter_mut().for_each(|comparison| add(&mut comparison.sentence));
    report.warnings.iter_mut().for_each(add);
    for old in [&mut report.title, &mut report.name, &mut report.design.stack, &mut report.host.kernel, &mut report.plan] {
        add(old);
    }
    report
}

/// What is known besides the trials.
fn aside(variants: usize) -> Aside {
    let calls = |number: usize| Calls {
        what: "malloc".to_owned(),
        per_request: Some(6.0 + number as f64),
        low: Some(6.0),
        high: Some(7.5),
        why_not: None,
    };
    let bound = |layer: &str, share: f64| Bound {
        tier: "nginx".to_owned(),
        layer: layer.to_owned(),
        share,
        gain_percent: share / (1.0 - share) * 100.0,
    };
    Aside {
        stack: "built-in experiment-allocator".to_owned(),
        used_s: 84.0,
        busy_before_cores: Some(0.31),
        verified: (0..variants).map(|number| vec![format!("libjemalloc.so.2 is mapped in {number} processes of nginx")]).collect(),
        calls: (0..variants).map(|number| vec![calls(number)]).collect(),
        bounds: vec![vec![bound("allocator", 0.08), bound("gzip", 0.41)]; variants],
        warnings: vec!["Calls of free were not counted: the program has no symbols.".to_owned()],
        ..Aside::default()
    }
}

/// A report of made-up trials. `goodput`: that of a variant.
fn made(plan: &str, blocks: usize, ended: Ended, goodput: &dyn Fn(usize) -> f64, aside: &Aside) -> Experiment {
    let plan = Plan::parse(plan, "sample").expect("the sample is a plan");
    let count = plan.variants.len();
    let trials: Vec<Trial> = (0..blocks * count).map(|place| trial(place, place / count, place % count, goodput(place % count))).collect();
    let host = Host { kernel: "6.1.0".to_owned(), cores: 2, began: "2025-11-25T12:00:00Z".to_owned(), version: "0.2.0".to_owned() };
    let stack = if aside.stack.is_empty() { "built-in experiment-php".to_owned() } else { aside.stack.clone() };
    experiment(&plan, &trials, None, ended, Aside { host, stack, ..aside.clone() }, &Catalogue::english())
}

fn trial(place: usize, block: usize, variant: usize, goodput: f64) -> Trial {
    // Between -1 and 1, the same at each run.
    let scrambled = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (place as u64 + 7).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 9;
    let noise = (scrambled % 2001) as f64 / 1000.0 - 1.0;
    let goodput = goodput * (1.0 + noise / 100.0);
    let ms = (variant as f64 + 1.0) * (1.0 + noise / 20.0);
    let figures = BTreeMap::from([
        (Metric::Throughput, goodput),
        (Metric::Goodput, goodput),
        (Metric::Failed, 0.0),
        (Metric::P50, ms),
        (Metric::P99, ms * 7.0),
        (Metric::Max, ms * 40.0),
        (Metric::CpuPerRequest, 1e6 / goodput),
        (Metric::CoreUser, 61.0 + noise),
        (Metric::CoreSystem, 31.0 - noise),
        (Metric::CoreSoftirq, 6.0),
        (Metric::CoreIdle, 2.0),
        (Metric::Link, goodput / 100.0),
        (Metric::Memory, 12.5),
        (Metric::Connections, 1.0),
    ]);
    let times = [(50.0, 1.0), (75.0, 1.5), (90.0, 2.2), (95.0, 3.0), (99.0, 7.0), (99.9, 18.0), (100.0, 40.0)];
    Trial {
        block,
        variant,
        at_s: place as f64 * 3.5,
        figures,
        percentiles_ms: times.map(|(percentile, factor)| (percentile, ms * factor)).to_vec(),
        ledger: Some(ledger(variant)),
        steal_percent: 0.0,
        others_cores: Some(0.02),
        throttled: None,
        disturbed: if place % 17 == 9 { vec![Disturbance::OtherPrograms { cores: 0.9, usual: 0.02 }] } else { Vec::new() },
        replaced: false,
        generator_limited: false,
    }
}

fn ledger(variant: usize) -> LedgerReport {
    use LedgerPlaceKind::*;
    let place = |tier: &str, place, mean: f64| LedgerPlace {
        tier: tier.to_owned(),
        at: At::default(),
        place,
        mean,
        share: mean / 16.0,
        low: mean,
        high: mean,
        age_ms: Some(3.0),
    };
    let queue = variant as f64;
    LedgerReport {
        under_way: 16.0,
        rate_rps: Some(1000.0),
        response_time_ms: Some(16.0),
        places: vec![
            place("client", Client, 1.0),
            place("nginx", AcceptQueue, queue),
            place("nginx", Unread, 0.5),
            place("nginx", Cpu, 1.0),
            place("nginx", Ready, 4.0),
            place("php-fpm", Waiting, 7.0 - queue / 2.0),
            place("php-fpm", Sending, 0.5),
            place("php-fpm", Cpu, 0.7),
        ],
        unaccounted: LedgerUnaccounted { mean: 0.6, share: 0.04, low: None, high: None },
        losses: Vec::new(),
    }
}
