//! The search on synthetic servers: it ends, finds the knee and the rate at the objective, and says what it could not find.
//!
//! Deterministic: pure functions.

use chokepoint_sizing::knee::{Knee, knee, most};
use chokepoint_sizing::objective::{Bracket, Objective};
use chokepoint_sizing::search::Search;
use chokepoint_sizing::step::{Offered, Step};

use crate::queues::{Bench, Server};

const SLO: Objective = Objective { p99_us: 200_000, given: true };

/// Most steps of a search: ten doublings, two refinements, seven rates, and as many again for curves with few points.
const STEPS_MAX: usize = 30;

/// All steps of a search.
fn run(bench: &mut Bench, connections_max: u32) -> Vec<Step> {
    let search = Search { connections_max, objective: SLO };
    let mut steps = Vec::new();
    while let Some((offered, _)) = search.next(&steps) {
        assert!(steps.len() < STEPS_MAX, "it does not end: {:?}", steps.iter().map(|step| step.offered).collect::<Vec<_>>());
        steps.push(bench.measure(offered));
    }
    steps
}

fn connections(steps: &[Step]) -> Vec<u32> {
    steps.iter().filter_map(Step::connections).collect()
}

#[test]
fn a_pool_has_its_knee_at_its_workers() {
    for (workers, each_s) in [(1, 0.01), (2, 0.62), (25, 0.1), (100, 0.02), (300, 0.1)] {
        let steps = run(&mut Bench::new(Server::Pool(workers, each_s)), 1024);
        let Knee::At(at, best) = knee(&steps) else { panic!("no knee for {workers}: {:?}", connections(&steps)) };
        let found = f64::from(at.connections().unwrap());
        // Between the workers and the next number that was measured.
        assert!(found >= f64::from(workers) && found < 1.5 * f64::from(workers) + 1.0, "{workers}: {found}");
        assert!((best.goodput_rps.value - f64::from(workers) / each_s).abs() < 1e-6);
    }
}

#[test]
fn noise_moves_the_knee_little_and_a_single_flat_step_ends_nothing() {
    for seed in 0..40 {
        let steps = run(&mut Bench::noisy(Server::Pool(25, 0.1), 0.03, seed), 1024);
        let Knee::At(at, _) = knee(&steps) else { panic!("seed {seed}: {:?}", connections(&steps)) };
        let found = at.connections().unwrap();
        assert!((19..=40).contains(&found), "seed {seed}: {found}");
        assert!(most(&steps).unwrap().value > 240.0, "seed {seed}");
    }
}

#[test]
fn goodput_that_falls_beyond_the_knee_has_a_knee_at_its_peak() {
    // Its peak is at sqrt((1 - 0.02) / 0.0005) = 44.
    let steps = run(&mut Bench::new(Server::Law(100.0, 0.02, 0.0005)), 1024);
    let Knee::At(at, _) = knee(&steps) else { panic!("no knee") };
    assert!((32..=64).contains(&at.connections().unwrap()), "{:?}", at.offered);
    let steps = run(&mut Bench::new(Server::Collapses(50, 0.1, 100)), 1024);
    let Knee::At(at, best) = knee(&steps) else { panic!("no knee") };
    assert!((50..=76).contains(&at.connections().unwrap()) && best.failed_share == 0.0, "{:?}", at.offered);
}

#[test]
fn without_a_knee_in_range_none_is_claimed() {
    let steps = run(&mut Bench::new(Server::Pool(500, 0.1)), 100);
    assert!(matches!(knee(&steps), Knee::Beyond(step) if step.connections() == Some(100)));
    assert_eq!(connections(&steps).iter().max(), Some(&100));
}

#[test]
fn the_rate_at_the_objective_is_between_held_and_missed_and_as_fine_as_the_noise() {
    for server in [Server::Pool(1, 0.01), Server::Pool(25, 0.1), Server::Pool(100, 0.02)] {
        let steps = run(&mut Bench::new(server), 1024);
        let bracket = Bracket::of(&steps, SLO);
        let capacity = bracket.capacity(&steps).unwrap();
        let Server::Pool(workers, each_s) = server else { unreachable!() };
        assert!(capacity.value < f64::from(workers) / each_s, "{server:?}: {capacity:?}");
        assert!(capacity.high / capacity.value < 1.1, "{server:?}: {capacity:?}");
        // The last rate that was held has the objective in the queue's own formula, and the missed one has not.
        let mut bench = Bench::new(server);
        assert!(SLO.is_held(&bench.measure(Offered::Open(bracket.held.unwrap()))));
    }
}

#[test]
fn an_objective_that_a_single_request_misses_is_not_searched() {
    let steps = run(&mut Bench::new(Server::Pool(4, 0.5)), 1024);
    assert!(steps.iter().all(|step| step.rate_per_s().is_none()));
    assert_eq!(Bracket::of(&steps, SLO), Bracket::default());
}

#[test]
fn a_rate_above_a_missed_one_does_not_count() {
    let mut bench = Bench::new(Server::Pool(10, 0.1));
    let steps: Vec<Step> = [50.0, 110.0, 60.0].map(|rate| bench.measure(Offered::Open(rate))).into();
    let mut lucky = steps.clone();
    lucky[0].latency_us.p99 = 900_000;
    assert_eq!(Bracket::of(&lucky, SLO), Bracket { held: None, missed: Some(50.0) });
    assert_eq!(Bracket::of(&steps, SLO).missed, Some(110.0));
}

#[test]
fn a_dead_server_and_a_limited_generator_end_the_search() {
    let steps = run(&mut Bench::new(Server::Dead), 1024);
    assert_eq!((steps.len(), matches!(knee(&steps), Knee::Unknown)), (1, true));
    let mut bench = Bench { generator_rps: 200.0, ..Bench::new(Server::Pool(100, 0.1)) };
    let steps = run(&mut bench, 1024);
    let usable = steps.iter().filter(|step| step.is_usable()).count();
    assert!(usable < steps.len() && steps.iter().all(|step| step.rate_per_s().is_none()), "no rate is known: {:?}", connections(&steps));
}
