//! The fix loop with random measurements. It leaves out no change that is needed, puts a change back if the confirmation shows the need, and ends.
//!
//! Deterministic: simulators with seeds.

use chokepoint_model::fix::MEASUREMENTS_MAX;
use chokepoint_model::report::{Kept, Role, RoundKind, Signal, Verdict};

use crate::simulator::chance::Chance;
use crate::simulator::{Cure, Ended, Found, Random, Settings, Truth, World, run};

fn cure(id: &str, signal: Signal) -> Cure {
    Cure { id: format!("mend-{id}"), sets: vec![(id.to_owned(), 1)], signal, group: None, starved_s: None }
}

fn cause(id: &str, signal: Signal) -> Found {
    Found { id: id.to_owned(), station: id.to_owned(), role: Role::Cause, remedies: vec![cure(id, signal)] }
}

fn settings(keys: &[&str]) -> Settings {
    keys.iter().map(|key| ((*key).to_owned(), 0)).collect()
}

fn told(ended: &Ended) -> String {
    let line = |round: &chokepoint_model::report::Round| {
        format!("{} {:?} {} {:?} {:.0}/s: {}\n", round.n, round.kind, round.remedy, round.kept, round.measured_rps, round.why)
    };
    ended.report.rounds.iter().map(line).collect::<String>() + &ended.report.warnings.join("\n")
}

/// A pool that is too small. In front of it is a queue that overflows in some measurements once the pool is large.
struct Flicker {
    /// Share of the measurements in which the queue overflows.
    shows: f64,
}

impl Flicker {
    fn at(settings: &Settings, overflows: bool) -> Truth {
        let mut truth = Truth { goodput_rps: 4_000.0, latency_us_p99: 100_000.0, ..Truth::default() };
        if settings["pool"] == 0 {
            (truth.goodput_rps, truth.latency_us_p99) = (1_000.0, 900_000.0);
            truth.findings.push(cause("pool", Signal::Goodput));
        } else if settings["queue"] == 0 && overflows {
            // It costs a few clients time, and no goodput.
            truth.latency_us_p99 = 220_000.0;
            truth.refusals.insert("queue".to_owned(), 80.0);
            truth.findings.push(cause("queue", Signal::Refusals { station: "queue".to_owned() }));
        }
        truth
    }
}

impl World for Flicker {
    fn start(&self) -> Settings {
        settings(&["pool", "queue"])
    }

    fn truth(&self, settings: &Settings) -> Truth {
        Self::at(settings, true)
    }

    fn seen(&self, settings: &Settings, random: &mut Random) -> Truth {
        Self::at(settings, random.share() < self.shows)
    }
}

#[test]
fn a_run_never_ends_choked_by_a_cause_it_fixed_and_left_out() {
    let (mut left_out, mut put_back) = (0, 0);
    for shows in [0.3, 0.5, 0.8] {
        for seed in 0..400 {
            let ended = run(&Flicker { shows }, 0.03, seed, None, None);
            assert_eq!(ended.choked_by_what_was_left_out(), Vec::<&str>::new(), "{shows} {seed}\n{}", told(&ended));
            if ended.last.verdict == Verdict::Choked {
                // The cause appeared for the first time when nothing was left to try.
                assert!(!told(&ended).contains("mend-queue"), "{shows} {seed}\n{}", told(&ended));
            }
            let out_once = ended
                .report
                .rounds
                .iter()
                .any(|round| round.kind == RoundKind::Without && round.remedy == "mend-queue" && round.kept == Kept::No);
            left_out += u32::from(out_once && ended.settings["queue"] == 0);
            put_back += u32::from(out_once && ended.settings["queue"] == 1);
            let back = ended.actions.iter().filter(|action| *action == "put back mend-queue").count();
            assert!(back <= 2, "put back for good once: {:?}", ended.actions);
        }
    }
    assert!(left_out >= 10 && put_back >= 50, "chance decides both ways: {left_out} {put_back}");
}

/// A change that gave much while the pool was too small. These are its remaining effects with the larger pool.
#[derive(Default)]
struct Rest {
    goodput_share: f64,
    failed_share: f64,
    latency_share: f64,
    /// The noise that the measurements report, if it differs from the real noise.
    noise_told: Option<f64>,
}

impl World for Rest {
    fn start(&self) -> Settings {
        settings(&["tune", "pool"])
    }

    fn truth(&self, settings: &Settings) -> Truth {
        let mut truth = Truth { goodput_rps: 4_000.0, latency_us_p99: 100_000.0, ..Truth::default() };
        if settings["pool"] == 0 {
            (truth.goodput_rps, truth.latency_us_p99) = (1_300.0, 500_000.0);
            if settings["tune"] == 0 {
                truth.goodput_rps = 1_000.0;
                truth.findings.push(cause("tune", Signal::Goodput));
            }
            truth.findings.push(cause("pool", Signal::Goodput));
        } else if settings["tune"] == 0 {
            truth.failed_rps = truth.goodput_rps * self.failed_share / (1.0 - self.failed_share);
            truth.goodput_rps *= 1.0 - self.goodput_share;
            truth.latency_us_p99 *= 1.0 + self.latency_share;
        }
        truth
    }

    fn noise_told(&self, noise: f64) -> f64 {
        self.noise_told.unwrap_or(noise)
    }
}

/// How many of 200 runs keep the change, and the texts of their rounds.
fn stays(world: &Rest, noise: f64) -> (u32, String) {
    let (mut stays, mut rounds) = (0, String::new());
    for seed in 0..200 {
        let ended = run(world, noise, seed, None, None);
        stays += ended.settings["tune"];
        rounds += &told(&ended);
        assert_eq!(ended.settings["pool"], 1, "{seed}\n{}", told(&ended));
    }
    (stays, rounds)
}

#[test]
fn a_loss_beyond_the_noise_of_the_run_in_any_figure_keeps_a_change() {
    // Each loss is too small to be detected if the noise is unknown.
    for (world, says) in [
        (Rest { goodput_share: 0.05, ..Rest::default() }, "good"),
        (Rest { failed_share: 0.005, ..Rest::default() }, "failed"),
        (Rest { latency_share: 0.2, ..Rest::default() }, "p99"),
    ] {
        let (stays, rounds) = stays(&world, 0.01);
        assert_eq!(stays, 200, "{says}");
        assert!(
            rounds.contains("Measured again")
                && rounds.contains(&format!("Needed: without it {}", if says == "failed" { "0.5" } else { says })),
            "{rounds}"
        );
    }
}

#[test]
fn a_change_without_loss_beyond_the_noise_is_left_out_and_the_figures_are_reported() {
    let (stays, rounds) = stays(&Rest::default(), 0.02);
    assert_eq!(stays, 0);
    for part in ["Left out: without it", "good requests/s (", "with it), failures 0 % (", "Nothing got worse beyond the noise of this run"]
    {
        assert!(rounds.contains(part), "{part}: {rounds}");
    }
}

#[test]
fn a_change_stays_if_the_noise_is_as_large_as_its_gain() {
    // It gave about 30 %. A measurement says that it may be off by up to 60 %.
    let world = Rest { noise_told: Some(0.6), ..Rest::default() };
    let mut unsure = 0;
    for seed in 0..200 {
        let ended = run(&world, 0.05, seed, None, None);
        let without = |round: &&chokepoint_model::report::Round| round.kind == RoundKind::Without && round.remedy == "mend-tune";
        let round = ended.report.rounds.iter().find(without).expect("it was kept at first");
        unsure += u32::from(round.why.contains("as large as its gain"));
        assert_eq!((round.kept, ended.settings["tune"]), (Kept::Final, 1), "{seed}\n{}", told(&ended));
    }
    assert_eq!(unsure, 200);
}

#[test]
fn noise_that_one_load_does_not_show_is_seen_by_measuring_again() {
    // Runs differ by up to 4 %, but each reports an uncertainty of half a percent.
    let (stays, rounds) = stays(&Rest { noise_told: Some(0.005), ..Rest::default() }, 0.04);
    assert!(rounds.contains("Measured again"), "{rounds}");
    assert!(stays < 160, "what does nothing is left out often enough: {stays} of 200 stay");
}

/// Measurements that do not report their uncertainty.
struct Blind;

impl World for Blind {
    fn start(&self) -> Settings {
        Rest::default().start()
    }

    fn truth(&self, settings: &Settings) -> Truth {
        Rest::default().truth(settings)
    }

    fn told(&self, mut diagnosis: chokepoint_model::report::Diagnosis) -> chokepoint_model::report::Diagnosis {
        if let Some(load) = &mut diagnosis.load {
            load.spread = None;
        }
        diagnosis
    }
}

#[test]
fn if_the_noise_is_unknown_nothing_is_left_out() {
    let ended = run(&Blind, 0.0, 1, None, None);
    assert_eq!(ended.settings["tune"], 1, "{}", told(&ended));
    assert!(told(&ended).contains("The load was too short, or too few requests completed"), "{}", told(&ended));
}

#[test]
fn the_loop_ends_within_its_bound_for_any_measurements() {
    for seed in 0..3_000 {
        let remedies = 1 + (seed % 8) as u32;
        let world = Chance { seed, remedies, apply_fails: 0.0, undo_fails: 0.0, put_back_fails: 0.0, loses: seed % 2 == 1 };
        for noise in [0.02, 0.3] {
            let ended = run(&world, noise, seed, None, None);
            assert!(ended.measurements <= MEASUREMENTS_MAX, "{seed} {noise}: {}", ended.measurements);
            assert_eq!(ended.choked_by_what_was_left_out(), Vec::<&str>::new(), "{seed} {noise}\n{}", told(&ended));
        }
    }
}
