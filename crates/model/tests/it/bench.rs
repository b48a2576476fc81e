//! The report of a load without a diagnosis: what it says, and what it says only with a reason.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::bench::{Asked, Bench, BenchOutcome, report};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::{Detail, Errors, LoadResult, Loop, Measured, Percentiles, Slice};

use crate::stage;

/// A calm closed loop of eight seconds.
fn calm() -> Measured {
    let latency = Percentiles { p50: 900, p75: 1_000, p90: 1_200, p95: 1_500, p99: 2_000, p999: 3_000, max: 5_000 };
    let slice = Slice { started: 1_000, good: 1_000, in_flight: 10, ..Slice::default() };
    let mut result = LoadResult {
        shape: Loop::Closed { connections: 10 },
        duration_us: 8_000_000,
        requests: 80_000,
        status: [(200, 80_000)].into(),
        good: 80_000,
        errors: Errors::default(),
        latency_us: latency,
        connections: 10,
        keep_alive: true,
        late: 0,
        slices: vec![slice; 80],
        ..stage::load()
    };
    for thread in &mut result.threads {
        (thread.wall_us, thread.cpu_us, thread.wait_us) = (8_000_000, 800_000, Some(100_000));
    }
    Measured { result, detail: Detail { corrected_latency_us: Some(latency), ..Detail::default() } }
}

fn told(change: impl FnOnce(&mut Measured)) -> Bench {
    let mut measured = calm();
    change(&mut measured);
    report(&Asked::default(), measured, Vec::new(), Vec::new(), &Catalogue::english())
}

fn ids(bench: &Bench) -> Vec<&str> {
    bench.warnings.iter().map(|warning| warning.id).collect()
}

#[test]
fn a_calm_load_has_no_warning() {
    let bench = told(|_| {});
    assert_eq!((ids(&bench), bench.outcome, bench.generator.is_limit), (vec![], BenchOutcome::Answered, false));
    assert_eq!(bench.summary, "10,000 requests/s answered as expected (100\u{a0}%), p99 2\u{a0}ms.");
}

#[test]
fn some_failures_are_never_rounded_away() {
    let bench = told(|measured| (measured.result.good, measured.result.errors.reset) = (79_999, 1));
    assert!(bench.summary.contains("99.9"), "{}", bench.summary);
}

#[test]
fn a_generator_at_its_limit_names_what_kept_it() {
    for (cpu_us, wait_us, id) in
        [(7_300_000, Some(0), Some("generator-cpu")), (4_000_000, Some(3_500_000), Some("generator-waited")), (7_000_000, None, None)]
    {
        let bench = told(|measured| {
            let thread = &mut measured.result.threads[0];
            (thread.cpu_us, thread.wait_us) = (cpu_us, wait_us);
        });
        assert_eq!((ids(&bench).first().copied(), bench.generator.is_limit), (id, id.is_some()), "{bench:?}");
    }
    let bench = told(|measured| (measured.result.errors.local_ports, measured.result.good) = (400, 79_600));
    assert_eq!((ids(&bench), bench.generator.is_limit), (vec!["local"], true));
}

#[test]
fn a_stall_of_a_closed_loop_is_reported_and_a_slow_server_is_no_stall() {
    let stall = |measured: &mut Measured| {
        for slice in &mut measured.result.slices[20..40] {
            *slice = Slice { in_flight: 10, ..Slice::default() };
        }
        let corrected = Percentiles { p90: 1_200_000, p99: 1_920_000, p999: 1_990_000, max: 2_000_000, ..measured.result.latency_us };
        measured.detail.corrected_latency_us = Some(corrected);
    };
    let bench = told(stall);
    assert_eq!(ids(&bench), ["omitted", "stalled"]);
    assert!(
        bench.warnings[0].text.contains("p90 is 1.2\u{a0}ms") && bench.warnings[0].text.contains("1,200"),
        "{}",
        bench.warnings[0].text
    );
    assert!(bench.warnings[1].text.contains("2\u{a0}s, from 2\u{a0}s"), "{}", bench.warnings[1].text);
    // Answers that always take 400 ms come in waves with gaps between them.
    let waves = told(|measured| {
        stall(measured);
        for (place, slice) in measured.result.slices.iter_mut().enumerate() {
            *slice = Slice { good: if place % 4 == 3 { 10 } else { 0 }, in_flight: 10, ..Slice::default() };
        }
        (measured.result.latency_us.p50, measured.detail.corrected_latency_us) = (400_000, Some(measured.result.latency_us));
    });
    assert_eq!(ids(&waves), [""; 0]);
}

#[test]
fn late_sends_are_attributed_to_their_cause() {
    let open = |late: u64, late_held: u64| {
        told(|measured| {
            measured.result.shape = Loop::Open { rate_per_s: 10_000.0, connections: 10 };
            (measured.result.late, measured.detail.late_held) = (late, late_held);
            measured.detail.corrected_latency_us = None;
        })
    };
    assert_eq!(ids(&open(700, 700)), [""; 0], "under one percent");
    assert_eq!(ids(&open(2_000, 1_500)), ["late-held"]);
    assert_eq!(ids(&open(2_000, 100)), ["late-generator"]);
    let unsent = told(|measured| (measured.result.errors.never_sent, measured.result.good) = (10, 79_990));
    assert_eq!(ids(&unsent), ["never-sent"]);
}

#[test]
fn figures_that_may_mislead_have_a_warning() {
    assert_eq!(ids(&told(|measured| measured.result.connections = 79_000)), ["closed"]);
    assert_eq!(ids(&told(|measured| (measured.result.connections, measured.result.keep_alive) = (80_000, false))), [""; 0]);
    assert_eq!(ids(&told(|measured| measured.result.status = [(302, 80_000)].into())), ["redirected"]);
    assert_eq!(ids(&told(|measured| measured.result.status = [(304, 80_000)].into())), [""; 0], "nothing new is no redirect");
    let few = told(|measured| (measured.result.requests, measured.result.good, measured.result.status) = (500, 500, [(200, 500)].into()));
    assert_eq!(ids(&few), ["few"]);
    let shared = report(&Asked { shares_cores: true, ..Asked::default() }, calm(), Vec::new(), Vec::new(), &Catalogue::english());
    assert_eq!(ids(&shared), [""; 0], "a generator that takes a tenth of a core takes nothing away");
    let mut busy = calm();
    busy.result.threads[0].cpu_us = 4_000_000;
    assert_eq!(
        ids(&report(&Asked { shares_cores: true, ..Asked::default() }, busy, Vec::new(), Vec::new(), &Catalogue::english())),
        ["shared"]
    );
}

#[test]
fn an_interrupted_load_is_reported_first() {
    let stopped = report(&Asked { suspended_s: 2.04, ..Asked::default() }, calm(), Vec::new(), Vec::new(), &Catalogue::english());
    assert_eq!(ids(&stopped).first(), Some(&"suspended"));
    assert!(stopped.warnings[0].text.contains("suspended for 2\u{a0}s"), "{}", stopped.warnings[0].text);
}

#[test]
fn a_load_without_measurements_is_reported_as_that() {
    let nothing = |change: fn(&mut LoadResult)| {
        told(|measured| {
            (measured.result.good, measured.result.status) = (0, [].into());
            change(&mut measured.result);
        })
    };
    let refused = nothing(|load| (load.requests, load.errors.connect_refused) = (10, 10));
    assert!(refused.outcome == BenchOutcome::NothingAnswered && refused.summary.contains("refused"), "{}", refused.summary);
    let silent = nothing(|load| (load.requests, load.errors.response_timeout) = (10, 10));
    assert_eq!((silent.outcome, silent.summary.as_str()), (BenchOutcome::NothingAnswered, "None of 10 requests got a response."));
    let wrong = nothing(|load| (load.requests, load.status) = (10, [(404, 10)].into()));
    assert!(wrong.outcome == BenchOutcome::NothingExpected && wrong.summary.contains("404"), "{}", wrong.summary);
    assert_eq!(nothing(|load| load.requests = 0).summary, "No request was sent.");
}
