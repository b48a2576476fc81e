//! A simulated host for the fix loop: settings with a journal like the real one, and worlds that define what is measured under these settings.

pub(crate) mod chance;
pub(crate) mod php;
pub(crate) mod pipe;

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::change::{Activation, Change};
use chokepoint_model::fix::{Action, MEASUREMENTS_MAX, Objective, Session};
use chokepoint_model::load::{Errors, Percentiles};
use chokepoint_model::observation::NetnsId;
use chokepoint_model::report::*;
use chokepoint_model::spread::{Range, Spread};

/// Timeout of a request, microseconds.
pub(crate) const TIMEOUT_US: u64 = 2_000_000;

/// Settings by name.
pub(crate) type Settings = BTreeMap<String, u32>;

/// Pseudo-random numbers (splitmix64): the same seed gives the same run.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The measured values without noise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    pub(crate) goodput_rps: f64,
    pub(crate) failed_rps: f64,
    pub(crate) latency_us_p99: f64,
    /// Share of the clients' time that is lost in requests that fail or take too long.
    pub(crate) lost_share: f64,
    /// Refusals a second by station.
    pub(crate) refusals: BTreeMap<String, f64>,
    /// In the order of the diagnosis.
    pub(crate) findings: Vec<Found>,
    /// Improvements.
    pub(crate) improvements: Vec<Found>,
}

impl Truth {
    /// Goodput times the share of client time that is not lost. No state may be worse than the first in this value.
    pub(crate) fn reaching_rps(&self) -> f64 {
        self.goodput_rps * (1.0 - self.lost_share)
    }

    pub(crate) fn causes(&self) -> Vec<&str> {
        self.findings.iter().filter(|found| found.role == Role::Cause).map(|found| found.id.as_str()).collect()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) station: String,
    pub(crate) role: Role,
    pub(crate) remedies: Vec<Cure>,
}

/// A remedy: settings and their new values.
#[derive(Debug, Clone)]
pub(crate) struct Cure {
    pub(crate) id: String,
    pub(crate) sets: Vec<(String, u32)>,
    pub(crate) signal: Signal,
    pub(crate) group: Option<String>,
    /// How long those wait whom it serves last, seconds.
    pub(crate) starved_s: Option<f64>,
}

/// Defines what is measured.
pub(crate) trait World {
    fn truth(&self, settings: &Settings) -> Truth;
    /// The result of one measurement, if it is random.
    fn seen(&self, settings: &Settings, _random: &mut Random) -> Truth {
        self.truth(settings)
    }
    /// The noise that a measurement reports. `noise` is the largest real deviation in both directions.
    fn noise_told(&self, noise: f64) -> f64 {
        noise
    }
    /// The initial settings.
    fn start(&self) -> Settings;
    /// The diagnosis in the model's form: with its names and places, and in its order.
    fn told(&self, diagnosis: Diagnosis) -> Diagnosis {
        diagnosis
    }
    fn apply_fails(&self, _remedy: &str) -> bool {
        false
    }
    fn undo_fails(&self, _remedy: &str) -> bool {
        false
    }
    fn put_back_fails(&self, _remedy: &str) -> bool {
        false
    }
}

/// A change in force: its settings with the values before and after it.
struct Applied {
    number: u32,
    sets: Vec<(String, u32, u32)>,
}

/// The host with its journal and its history.
pub(crate) struct Host<'w> {
    world: &'w dyn World,
    pub(crate) settings: Settings,
    journal: Vec<Applied>,
    noise: f64,
    random: Random,
    pub(crate) measurements: u32,
    /// The settings at each measurement, in order.
    pub(crate) measured: Vec<Settings>,
    /// How long each measurement had to be, seconds.
    pub(crate) seconds_min: Vec<Option<f64>>,
    pub(crate) actions: Vec<String>,
    last: Option<Diagnosis>,
}

/// How a run ended.
pub(crate) struct Ended {
    /// The last measurement.
    pub(crate) last: Diagnosis,
    pub(crate) report: Diagnosis,
    pub(crate) settings: Settings,
    pub(crate) measurements: u32,
    pub(crate) measured: Vec<Settings>,
    /// How long each measurement had to be, seconds.
    pub(crate) seconds_min: Vec<Option<f64>>,
    pub(crate) actions: Vec<String>,
}

/// Runs the loop to its end. `stop_at` interrupts it in place of that measurement.
pub(crate) fn run(world: &dyn World, noise: f64, seed: u64, objective: Option<u64>, stop_at: Option<u32>) -> Ended {
    let words = Catalogue::english();
    let mut session = Session::new(true, &words);
    session.set_objective(Objective { latency_us_p99: objective, timeout_us: Some(TIMEOUT_US) });
    let mut host = Host {
        world,
        settings: world.start(),
        journal: Vec::new(),
        noise,
        random: Random(seed),
        measurements: 0,
        measured: Vec::new(),
        seconds_min: Vec::new(),
        actions: Vec::new(),
        last: None,
    };
    let mut action = Action::Measure;
    while action != Action::Done {
        host.actions.push(action.name());
        // A second signal must not end the program in the middle of any of these.
        assert!(action == Action::Measure || session.unproven() > 0, "{:?}", host.actions);
        assert!(host.actions.len() <= 4 * MEASUREMENTS_MAX as usize, "it does not end: {:?}", host.actions);
        action = match action {
            Action::Measure if stop_at == Some(host.measurements) => session.interrupted(),
            Action::Measure => {
                host.seconds_min.push(session.measurement_s_min());
                session.measured(host.measure())
            }
            Action::Apply { number, remedy, .. } => session.acted(host.apply(number, &remedy)),
            Action::PutBack { remedy, .. } if world.put_back_fails(&remedy.id) => session.acted(Err("it is gone".to_owned())),
            Action::PutBack { number, remedy, .. } => session.acted(host.apply(number, &remedy)),
            Action::TakeBack { number, remedy } => session.acted(host.undo(number, &remedy)),
            Action::Done => Action::Done,
        };
    }
    assert_eq!(session.unproven(), 0, "{:?}", host.actions);
    assert!(host.measurements <= MEASUREMENTS_MAX, "{} measurements: {:?}", host.measurements, host.actions);
    let report = session.report().expect("a first measurement");
    let last = host.last.expect("a first measurement");
    Ended {
        last,
        report,
        settings: host.settings,
        measurements: host.measurements,
        measured: host.measured,
        seconds_min: host.seconds_min,
        actions: host.actions,
    }
}

impl Ended {
    /// Remedies that were kept and later left out, and not put back.
    pub(crate) fn left_out(&self) -> Vec<&str> {
        let applied = self.report.rounds.iter().filter(|round| round.kind == RoundKind::Apply);
        let out = applied.clone().filter(|round| round.kept == Kept::No && round.why.contains("adds nothing to"));
        // A remedy may have been tried twice, with another value or together with other changes.
        let stays = |remedy: &str| applied.clone().any(|round| round.remedy == remedy && round.kept.stays());
        // What does better without it is no reason to have it back.
        let harms = |remedy: &str| applied.clone().any(|round| round.remedy == remedy && round.why.contains("does harm together"));
        out.map(|round| round.remedy.as_str()).filter(|remedy| !stays(remedy) && !harms(remedy)).collect()
    }

    /// Causes of the last measurement that a kept and later left out remedy fixes.
    pub(crate) fn choked_by_what_was_left_out(&self) -> Vec<&str> {
        let out = self.left_out();
        let causes = self.last.findings.iter().filter(|finding| finding.role == Role::Cause);
        causes
            .filter(|cause| cause.remedies.iter().any(|remedy| out.contains(&remedy.id.as_str())))
            .map(|cause| cause.id.as_str())
            .collect()
    }
}

impl Host<'_> {
    fn apply(&mut self, number: u32, remedy: &Remedy) -> Result<(), String> {
        if self.world.apply_fails(&remedy.id) {
            return Err("it cannot be applied here".to_owned());
        }
        let sets: Vec<(String, u32, u32)> = remedy.change.iter().map(read).collect();
        for (key, from, to) in &sets {
            assert_eq!(self.settings.get(key), Some(from), "{} starts from what the host holds: {:?}", remedy.id, self.actions);
            self.settings.insert(key.clone(), *to);
        }
        self.journal.push(Applied { number, sets });
        Ok(())
    }

    /// Like the real journal: a later change of the same setting takes over the old value.
    fn undo(&mut self, number: u32, remedy: &str) -> Result<(), String> {
        if self.world.undo_fails(remedy) {
            return Err("someone else changed it".to_owned());
        }
        let place = self.journal.iter().position(|applied| applied.number == number).expect("only what is in force is taken back");
        let applied = self.journal.remove(place);
        for (key, was, _) in applied.sets.into_iter().rev() {
            let over = self.journal[place..].iter_mut().flat_map(|later| &mut later.sets).find(|(other, ..)| *other == key);
            match over {
                Some((_, over_was, _)) => *over_was = was,
                None => drop(self.settings.insert(key, was)),
            }
        }
        Ok(())
    }

    fn measure(&mut self) -> Diagnosis {
        self.measurements += 1;
        self.measured.push(self.settings.clone());
        let truth = self.world.seen(&self.settings, &mut self.random);
        let noise = self.noise;
        let mut noisy = |value: f64| value * (1.0 + noise * (2.0 * self.random.share() - 1.0));
        let (good, failed, p99) = (noisy(truth.goodput_rps), noisy(truth.failed_rps), noisy(truth.latency_us_p99));
        let path = truth.refusals.iter().map(|(id, rate)| station(id, noisy(*rate))).collect();
        let findings: Vec<Finding> = truth.findings.iter().map(|found| finding(found, &self.settings)).collect();
        let improvements = truth.improvements.iter().map(|found| finding(found, &self.settings)).collect();
        let spread = spread((good, failed, p99), self.world.noise_told(noise));
        let lost_share = Some(noisy(truth.lost_share).min(1.0));
        let load = LoadReport { spread: Some(spread), lost_share, ..load(good, failed, p99) };
        let told = self.world.told(Diagnosis { improvements, ..diagnosis(load, path, findings) });
        self.last = Some(told.clone());
        told
    }
}

fn read(change: &Change) -> (String, u32, u32) {
    (change.key(), change.from().parse().expect("a number"), change.to().parse().expect("a number"))
}

/// The range of the true values if each figure is off by `noise` at most.
fn spread((good, failed, p99): (f64, f64, f64), noise: f64) -> Spread {
    let share = |failed: f64, good: f64| if failed + good > 0.0 { failed / (failed + good) } else { 0.0 };
    let (less, more) = (1.0 / (1.0 + noise), 1.0 / (1.0 - noise));
    Spread {
        goodput_rps: Range { low: good * less, high: good * more },
        failed_share: Range { low: share(failed * less, good * more), high: share(failed * more, good * less) },
        latency_us_p99: Some(Range { low: p99 * less, high: p99 * more }),
    }
}

fn load(good: f64, failed: f64, p99: f64) -> LoadReport {
    LoadReport {
        requests: ((good + failed) * 10.0) as u64,
        duration_s: 10.0,
        throughput_rps: good + failed,
        goodput_rps: good,
        status: BTreeMap::new(),
        errors: Errors::default(),
        latency_us: Some(Percentiles { p99: p99 as u64, ..Percentiles::default() }),
        lost_share: None,
        tls: None,
        spread: None,
    }
}

fn station(id: &str, rate: f64) -> Station {
    Station {
        tier: "sim".to_owned(),
        station: id.to_owned(),
        at: At::default(),
        kind: StationKind::Cliff,
        limit: None,
        used: None,
        waiting: None,
        refused_per_s: Some(rate),
        utilization: None,
        unit: "connections".to_owned(),
        ceiling_rps: None,
        state: if rate > 0.0 { StationState::Refusing } else { StationState::Ok },
        why: String::new(),
    }
}

fn finding(found: &Found, settings: &Settings) -> Finding {
    let remedy = |cure: &Cure| Remedy {
        id: cure.id.clone(),
        change: (cure.sets.iter())
            .map(|(key, to)| Change::Sysctl {
                key: key.clone(),
                netns: NetnsId(1),
                netns_name: "sim".to_owned(),
                from: settings[key].to_string(),
                to: to.to_string(),
            })
            .collect(),
        text: String::new(),
        runtime: Vec::new(),
        persistent: Vec::new(),
        activation: Activation::Live,
        risk: String::new(),
        undo: Vec::new(),
        signal: cure.signal.clone(),
        prediction: Prediction::Refused { refused: "not in the simulator".to_owned(), at_most: None, unsaid: None },
        group: cure.group.clone(),
        starved: cure.starved_s.map(|wait_s| Starved { wait_s, why: "they waited behind others".to_owned() }),
    };
    Finding {
        id: found.id.clone(),
        station: found.station.clone(),
        tier: "sim".to_owned(),
        at: At::default(),
        role: found.role,
        symptom_of: Vec::new(),
        confidence: Confidence::High,
        title: found.id.clone(),
        evidence: Vec::new(),
        explanation: String::new(),
        remedies: found.remedies.iter().map(remedy).collect(),
    }
}

fn diagnosis(load: LoadReport, path: Vec<Station>, findings: Vec<Finding>) -> Diagnosis {
    let choked = findings.iter().any(|finding| finding.role == Role::Cause);
    Diagnosis {
        schema: "chokepoint/diagnosis/1".to_owned(),
        target: Target { url: "http://sim/".to_owned(), addresses: Vec::new(), listener: None, netns: None, tiers: Vec::new() },
        verdict: if choked { Verdict::Choked } else { Verdict::Healthy },
        limited_by: (!choked).then_some(LimitedBy::Cpu),
        summary: String::new(),
        undecided: false,
        mode: Mode::Load,
        load: Some(load),
        path,
        findings,
        couplings: Vec::new(),
        order: Vec::new(),
        improvements: Vec::new(),
        readings: Vec::new(),
        warnings: Vec::new(),
        not_applied: Vec::new(),
        bisect: None,
        rounds: Vec::new(),
        before: None,
        after: None,
        run: None,
        fail_if: None,
        profile: None,
        wire: None,
        harm: None,
        ledger: None,
    }
}
