//! Tests of the law: known parameters, ceilings and other curves, noise, and hostile points.

use super::*;
use proptest::prelude::*;

const LOADS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0];

fn measured(curve: impl Fn(f64) -> f64, loads: &[f64], repeats: usize, noise: f64, random: &mut Random) -> Vec<Point> {
    let all = loads.iter().flat_map(|load| std::iter::repeat_n(*load, repeats));
    all.map(|load| Point::new(load, curve(load) * (noise * random.normal()).exp())).collect()
}

fn law(lambda: f64, sigma: f64, kappa: f64) -> impl Fn(f64) -> f64 + Copy {
    move |load| lambda * load / (1.0 + sigma * (load - 1.0) + kappa * load * (load - 1.0))
}

fn includes(interval: &Interval, value: f64) -> bool {
    interval.low <= value && value <= interval.high
}

#[test]
fn known_parameters_come_out_without_noise() {
    for (lambda, sigma, kappa) in [(1000.0, 0.05, 0.001), (3.0, 0.2, 0.01), (50.0, 0.0, 0.002), (1e6, 0.02, 0.0), (7.0, 0.0, 0.0)] {
        let found = fit(&measured(law(lambda, sigma, kappa), &LOADS, 1, 0.0, &mut Random::new(1)), 0.95, 1).unwrap();
        let near = |found: f64, truth: f64| (found - truth).abs() < 1e-6 * truth.max(1e-2);
        assert!(near(found.lambda.estimate, lambda) && near(found.sigma.estimate, sigma) && near(found.kappa.estimate, kappa), "{found:?}");
        assert!(near(found.throughput(10.0), law(lambda, sigma, kappa)(10.0)) && found.misfit < 1e-6);
        if kappa > 0.0 {
            assert!(near(found.peak.unwrap().load.estimate, ((1.0 - sigma) / kappa).sqrt()), "{found:?}");
        }
    }
}

/// How often, of so many simulated measurements, the intervals of sigma, kappa, the peak's load and its throughput include the truth, and how many were fitted.
fn coverage(loads: &[f64], repeats: usize, noise: f64, runs: u64) -> ([f64; 4], u64) {
    let (lambda, sigma, kappa): (f64, f64, f64) = (100.0, 0.05, 0.002);
    let peak = ((1.0 - sigma) / kappa).sqrt();
    let (mut hits, mut fits) = ([0; 4], 0);
    for seed in 0..runs {
        let mut random = Random::new(seed + 1000);
        let Ok(found) = fit(&measured(law(lambda, sigma, kappa), loads, repeats, noise, &mut random), 0.95, seed) else { continue };
        let Some(found_peak) = found.peak else { continue };
        fits += 1;
        let seen = [
            includes(&found.sigma, sigma),
            includes(&found.kappa, kappa),
            includes(&found_peak.load, peak),
            includes(&found_peak.throughput, law(lambda, sigma, kappa)(peak)),
        ];
        (0..4).for_each(|at| hits[at] += u64::from(seen[at]));
    }
    (hits.map(|hits| hits as f64 / fits as f64), fits)
}

#[test]
fn intervals_include_the_truth_in_95_of_100_cases() {
    for (loads, repeats, noise) in [(&LOADS[..], 1, 0.02), (&LOADS[..], 3, 0.05), (&LOADS[1..7], 1, 0.01), (&LOADS[2..7], 1, 0.005)] {
        let (shares, fits) = coverage(loads, repeats, noise, 200);
        println!("{loads:?} x {repeats}, noise {noise}: {shares:?} of {fits}");
        assert!(
            fits >= 180 && shares.iter().all(|share| (0.91..=0.99).contains(share)),
            "{loads:?} {repeats} {noise}: {shares:?} of {fits}"
        );
    }
}

/// How many of 60 simulated measurements are fitted, have a peak, hit a ceiling, and have another shape.
fn outcomes(curve: impl Fn(f64) -> f64 + Copy, repeats: usize, noise: f64) -> [u32; 4] {
    let mut counts = [0; 4];
    for seed in 0..60 {
        match fit(&measured(curve, &LOADS, repeats, noise, &mut Random::new(seed)), 0.95, seed) {
            Ok(found) => {
                counts[0] += 1;
                counts[1] += u32::from(found.peak.is_some());
            }
            Err(Refused::HardCeiling { .. }) => counts[2] += 1,
            Err(Refused::AnotherShape) => counts[3] += 1,
            Err(refused) => panic!("{refused:?}"),
        }
    }
    counts
}

#[test]
fn a_hard_ceiling_is_not_fitted() {
    for (knee, repeats, noise) in [(10.0, 1, 0.02), (20.0, 1, 0.02), (10.0, 3, 0.05), (20.0, 3, 0.05)] {
        let counts = outcomes(|load: f64| 100.0 * load.min(knee), repeats, noise);
        println!("ceiling at {knee} x {repeats}, noise {noise}: {counts:?}");
        assert!(counts[2] >= 57, "ceiling at {knee} x {repeats}, noise {noise}: {counts:?}");
    }
    let points = measured(|load: f64| 100.0 * load.min(10.0), &LOADS, 2, 0.01, &mut Random::new(4));
    let Err(Refused::HardCeiling { knee, ceiling }) = fit(&points, 0.95, 1) else { panic!("fitted") };
    assert!((knee - 10.0).abs() < 0.3 && (ceiling - 1000.0).abs() < 20.0, "{knee} {ceiling}");
}

#[test]
fn points_of_the_law_are_not_refused() {
    for (sigma, kappa) in [(0.05, 0.002), (0.3, 0.0), (0.05, 0.0), (0.0, 0.0), (0.0, 0.001), (0.5, 0.01)] {
        for (repeats, noise) in [(1, 0.02), (3, 0.05), (3, 0.2)] {
            let counts = outcomes(law(100.0, sigma, kappa), repeats, noise);
            println!("sigma {sigma}, kappa {kappa} x {repeats}, noise {noise}: {counts:?}");
            assert!(counts[0] >= 57, "sigma {sigma}, kappa {kappa} x {repeats}, noise {noise}: {counts:?}");
        }
    }
}

#[test]
fn without_coherency_costs_there_is_no_peak() {
    for (sigma, noise) in [(0.05, 0.01), (0.3, 0.03), (0.0, 0.02)] {
        let counts = outcomes(law(100.0, sigma, 0.0), 2, noise);
        assert!(counts[1] <= 5, "{sigma} {noise}: {counts:?}");
    }
    let far = fit(&measured(law(100.0, 0.02, 0.00005), &LOADS[..6], 3, 0.001, &mut Random::new(2)), 0.95, 1).unwrap();
    assert!(far.peak.is_none() && includes(&far.sigma, 0.02), "{far:?}");
}

#[test]
fn a_curve_of_another_shape_is_refused() {
    // A cliff: half of the throughput from one load on.
    for (repeats, noise) in [(1, 0.02), (3, 0.02), (3, 0.05)] {
        let counts = outcomes(|load: f64| 100.0 * load * if load > 20.0 { 0.3 } else { 1.0 }, repeats, noise);
        assert!(counts[3] >= 57, "{repeats} {noise}: {counts:?}");
    }
}

#[test]
fn a_point_of_little_weight_counts_little() {
    let mut points = measured(law(100.0, 0.05, 0.002), &LOADS, 2, 0.001, &mut Random::new(3));
    points[9].throughput *= 3.0;
    let wrong = fit(&points, 0.95, 1).unwrap();
    assert!((wrong.sigma.estimate - 0.05).abs() > 0.02, "{wrong:?}");
    points[9].weight = 1e-9;
    let found = fit(&points, 0.95, 1).unwrap();
    assert!((found.sigma.estimate - 0.05).abs() < 0.002 && (found.kappa.estimate - 0.002).abs() < 1e-4, "{found:?}");
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let good = measured(law(100.0, 0.05, 0.002), &LOADS, 1, 0.01, &mut Random::new(1));
    let with = |point: Point| {
        let mut points = good.clone();
        points[3] = point;
        fit(&points, 0.95, 1)
    };
    for value in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        assert_eq!(with(Point { throughput: value, ..good[3] }), Err(Refused::OutOfRange));
        assert_eq!(with(Point { weight: value, ..good[3] }), Err(Refused::OutOfRange));
        assert_eq!(with(Point { load: value, ..good[3] }), Err(Refused::OutOfRange));
        assert_eq!(fit(&good, value, 1), Err(Refused::OutOfRange));
    }
    assert_eq!(fit(&good[..4], 0.95, 1), Err(Refused::TooFewLoads(4)));
    assert_eq!(fit(&[good[0]; 20], 0.95, 1), Err(Refused::TooFewLoads(1)));
    assert_eq!(fit(&[], 0.95, 1), Err(Refused::TooFewLoads(0)));
    assert_eq!(fit(&good, 0.95, 9), fit(&good, 0.95, 9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_points_are_survived(points in proptest::collection::vec((1.0..1e4f64, 1e-3..1e9f64), 0..12), seed in any::<u64>()) {
        let points: Vec<Point> = points.into_iter().map(|(load, throughput)| Point::new(load, throughput)).collect();
        if let Ok(found) = fit(&points, 0.95, seed) {
            for interval in [found.lambda, found.sigma, found.kappa] {
                prop_assert!(interval.low >= 0.0 && interval.low <= interval.estimate && interval.estimate <= interval.high, "{:?}", found);
            }
        }
    }

    #[test]
    fn another_unit_of_throughput_scales_lambda_only(sigma in 0.0..0.5f64, kappa in 0.0..0.01f64, unit in 1e-3..1e3f64, seed in any::<u64>()) {
        let points = measured(law(100.0, sigma, kappa), &LOADS, 2, 0.03, &mut Random::new(seed));
        let scaled: Vec<Point> = points.iter().map(|point| Point::new(point.load, point.throughput * unit)).collect();
        if let (Ok(one), Ok(other)) = (fit(&points, 0.95, 1), fit(&scaled, 0.95, 1)) {
            prop_assert!((other.lambda.estimate / one.lambda.estimate / unit - 1.0).abs() < 1e-5);
            prop_assert!((other.sigma.estimate - one.sigma.estimate).abs() < 1e-5 && (other.kappa.estimate - one.kappa.estimate).abs() < 1e-6);
        }
    }
}
