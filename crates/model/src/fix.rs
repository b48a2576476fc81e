//! The loop of `--fix` as a pure state machine: what to do next, given what was measured. The driver measures, applies and takes back.
//!
//! A change is judged by the signal that its remedy named beforehand and by goodput. It stays provisionally while the chain goes on; the
//! first measurement without it and the last with it prove it where it is the only one.

use std::collections::BTreeSet;

use crate::catalogue::Catalogue;
use crate::diagnose::{diagnose, load_report};
use crate::message::Message;
use crate::observation::Observation;
use crate::report::{Diagnosis, Kept, Remedy, Role, Round, Signal, StationState, Verdict};

/// Rounds at the most.
pub const ROUNDS_MAX: u32 = 8;
/// Relative change of goodput or p99 between two runs alike that noise alone explains: docs/measuring.md, "Noise floor".
pub const NOISE_SHARE: f64 = 0.10;
/// Share of its former refusals that a station may still show for the remedy to count as having worked.
const REFUSALS_LEFT_MAX: f64 = 0.01;

/// What the driver is to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Apply this remedy, then call [`Session::applied`].
    Apply {
        /// The finding that it removes.
        finding: String,
        /// The remedy.
        remedy: Box<Remedy>,
    },
    /// Let the host settle and measure again under the same load, then call [`Session::measured`].
    Measure,
    /// Take the last change back, then call [`Session::taken_back`].
    TakeBack,
    /// Nothing is left to do.
    Done,
}

/// One run of `diagnose`, with or without `--fix`.
pub struct Session<'w> {
    words: &'w Catalogue,
    fix: bool,
    first: Option<Diagnosis>,
    /// The state of things as last measured with all changes that stand.
    current: Option<Diagnosis>,
    rounds: Vec<Round>,
    tried: BTreeSet<(String, String)>,
    applied: Option<(String, Remedy)>,
    warnings: Vec<String>,
}

impl<'w> Session<'w> {
    /// A session that changes nothing unless `fix` is set.
    pub fn new(fix: bool, words: &'w Catalogue) -> Self {
        let (rounds, tried, warnings) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { words, fix, first: None, current: None, rounds, tried, applied: None, warnings }
    }

    /// The newest measurement's diagnosis.
    pub fn current(&self) -> Option<&Diagnosis> {
        self.current.as_ref()
    }

    /// Takes in a measurement.
    pub fn measured(&mut self, obs: &Observation) -> Action {
        let after = diagnose(obs, self.words);
        let (Some(before), Some((finding, remedy))) = (self.current.take(), self.applied.take()) else {
            self.first.get_or_insert_with(|| after.clone());
            self.current = Some(after);
            return self.next();
        };
        let (works, why) = judge(&before, &after, &remedy);
        let Some(load) = obs.load.as_ref().map(load_report) else {
            self.current = Some(before);
            return Action::TakeBack;
        };
        self.rounds.push(Round {
            n: self.rounds.len() as u32 + 1,
            measured_rps: load.goodput_rps,
            load,
            finding,
            remedy: remedy.id.clone(),
            prediction: remedy.prediction.clone(),
            kept: if works { Kept::Provisional } else { Kept::No },
            why: self.words.text(&why),
            verdict: after.verdict,
            limited_by: after.limited_by,
            summary: after.summary.clone(),
        });
        if works {
            self.current = Some(after);
            self.next()
        } else {
            self.current = Some(before);
            Action::TakeBack
        }
    }

    /// Takes in whether the change could be applied.
    pub fn applied(&mut self, result: Result<(), String>) -> Action {
        match result {
            Ok(()) => Action::Measure,
            Err(why) => {
                if let Some((_, remedy)) = self.applied.take() {
                    let message = Message::new("warning-not-applied").with("remedy", remedy.id.as_str()).with("why", why.as_str());
                    self.warnings.push(self.words.text(&message));
                }
                self.next()
            }
        }
    }

    /// Takes in whether the last change could be taken back; where it could not, nothing more is tried.
    pub fn taken_back(&mut self, result: Result<(), String>) -> Action {
        match result {
            Ok(()) => self.next(),
            Err(why) => {
                self.warnings.push(self.words.text(&Message::new("warning-not-taken-back").with("why", why.as_str())));
                self.fix = false;
                Action::Done
            }
        }
    }

    /// The report: what was found at first, and the rounds.
    pub fn report(mut self) -> Option<Diagnosis> {
        self.settle_rounds();
        let mut report = self.first?;
        report.rounds = self.rounds;
        report.warnings.extend(self.warnings);
        Some(report)
    }

    /// The next remedy not yet tried, of the first cause that has one.
    fn next(&mut self) -> Action {
        let Some(current) = self.current.as_ref().filter(|_| self.fix && (self.rounds.len() as u32) < ROUNDS_MAX) else {
            return Action::Done;
        };
        for finding in current.findings.iter().filter(|finding| finding.role == Role::Cause) {
            for remedy in finding.remedies.iter().filter(|remedy| !remedy.change.is_empty()) {
                if self.tried.insert((finding.id.clone(), remedy.id.clone())) {
                    self.applied = Some((finding.id.clone(), remedy.clone()));
                    return Action::Apply { finding: finding.id.clone(), remedy: Box::new(remedy.clone()) };
                }
            }
        }
        Action::Done
    }

    /// A change that is the only one kept was measured without and with it: that is the proof, and it is final.
    fn settle_rounds(&mut self) {
        let mut kept: Vec<&mut Round> = self.rounds.iter_mut().filter(|round| round.kept == Kept::Provisional).collect();
        if let [only] = kept.as_mut_slice() {
            only.kept = Kept::Final;
        }
    }
}

/// Whether a change did what its remedy promised, and why.
fn judge(before: &Diagnosis, after: &Diagnosis, remedy: &Remedy) -> (bool, Message) {
    let goodput = |diagnosis: &Diagnosis| diagnosis.load.as_ref().map_or(0.0, |load| load.goodput_rps);
    let p99 = |diagnosis: &Diagnosis| diagnosis.load.as_ref().map_or(0.0, |load| load.latency_us.p99 as f64);
    let (was, is) = (goodput(before), goodput(after));
    let fell = is < was * (1.0 - NOISE_SHARE);
    let args = |id: &'static str| Message::new(id).with("before", was).with("after", is);
    if after.verdict == Verdict::ClientLimited && fell {
        return (false, args("kept-no-client"));
    }
    let improved = match &remedy.signal {
        Signal::Refusals { station } => refusals(after, station) <= REFUSALS_LEFT_MAX * refusals(before, station),
        Signal::Goodput => is > was * (1.0 + NOISE_SHARE),
        Signal::LatencyP99 => p99(after) < p99(before) * (1.0 - NOISE_SHARE),
    };
    // A fall is accepted only where another cause explains it: the next one in the chain.
    let explained =
        after.findings.iter().any(|finding| finding.role == Role::Cause && !before.findings.iter().any(|old| old.id == finding.id));
    match (improved, fell) {
        (true, false) => (true, args("kept-yes")),
        (true, true) if explained => (true, args("kept-yes-explained")),
        (true, true) => (false, args("kept-no-fell")),
        (false, _) => (false, args("kept-no-signal")),
    }
}

/// Refusals a second at all instances of a station that suffered from them.
fn refusals(diagnosis: &Diagnosis, station: &str) -> f64 {
    let refusing = diagnosis.path.iter().filter(|read| read.station == station && read.state == StationState::Refusing);
    refusing.filter_map(|read| read.refused_per_s).sum()
}
