//! The loop of `--fix` as a pure state machine: what to do next, given what was measured. The driver measures, applies and takes back.
//!
//! It goes in three phases. The **chain** takes the first cause that has a remedy not yet tried, applies it, measures, and keeps it for now
//! where the signal that the remedy named improved and nothing got worse beyond noise, or the loss is explained by the next cause. Where no
//! cause is left and something was mended, what could be faster is tried in the same way, for goodput within the objective. The
//! **whole** is then held against the best state seen on the way, the start included; changes that only led away from it are taken back.
//! Last, each change is **left out** alone: what is missed is put back and final, what is not worse without it within the noise that was measured in this
//! very run stays out, and what cannot be told stays in, for it was proven to help. An improvement is left out first and put back last: the others are
//! judged without it. What is left is **confirmed**: what a change that was left out would mend there puts it back, for good. A
//! cause or an improvement that only this measurement shows is then tried beside what stays, left out and confirmed like the others.

mod chain;
pub mod change;
mod confirm;
mod judge;
mod leave_out;
mod made;
mod noise;
mod phase;
pub mod remedies;
pub mod remedy;
mod rounds;
mod service;
mod steps;

use std::collections::VecDeque;

use crate::ledger::tenths;
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::outcome;
use crate::output::report::{Diagnosis, Kept, NotApplied, Remedy, Role, Round, Verdict};

pub use crate::facts::harm::{FAILED_SHARE_NOISE, LATENCY_NOISE_SHARE, NOISE_SHARE};
use made::Made;
use phase::{Attempt, LeaveOut, Trial};
pub use service::Objective;

/// Changes that are applied at the most, the alternatives of one group counted singly.
pub const ROUNDS_MAX: u32 = 8;
/// Measurements at the most: the first, one a change, each of them left out once more after each that was dropped and measured twice then, and what stays
/// twice, once more after each time that changes were put back, after improvements were taken back, and after each change that came later.
pub const MEASUREMENTS_MAX: u32 = 1 + ROUNDS_MAX + ROUNDS_MAX * (ROUNDS_MAX + 1) + 2 * (2 * ROUNDS_MAX + 2);
/// How many times as long as the wait of those whom a change serves last a measurement with it is. Of the requests that begin to wait in it, all but one in so many also
/// end in it.
const STARVED_WAITS: f64 = 5.0;
/// The longest that a measurement becomes for that, seconds.
const MEASUREMENT_S_MOST: f64 = 120.0;
/// How long traffic is watched a second time where the first told nothing, seconds: three times the usual ten, so that its chance variation tells what a third of it did not.
const WATCHED_ON_S: f64 = 30.0;
/// What the driver is to do next. It answers [`Action::Measure`] with [`Session::measured`], and the others with [`Session::acted`].
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Apply this remedy.
    Apply {
        /// The change's number in this session, by which it is named later.
        number: u32,
        /// The finding that it removes.
        finding: String,
        /// The remedy.
        remedy: Box<Remedy>,
    },
    /// Apply a change that was taken back once more.
    PutBack {
        /// Its number.
        number: u32,
        /// The finding that it removes.
        finding: String,
        /// The remedy, with those of its changes that must be made again and the values that they start from now.
        remedy: Box<Remedy>,
    },
    /// Take this change back, whatever was applied after it.
    TakeBack {
        /// Its number.
        number: u32,
        /// Id of its remedy.
        remedy: String,
    },
    /// Let the host settle and measure again under the same load.
    Measure,
    /// Nothing is left to do.
    Done,
}

impl Action {
    /// The action in words, the same in every language: what a recording names it by.
    pub fn name(&self) -> String {
        match self {
            Action::Apply { remedy, .. } => format!("apply {}", remedy.id),
            Action::PutBack { remedy, .. } => format!("put back {}", remedy.id),
            Action::TakeBack { remedy, .. } => format!("take back {remedy}"),
            Action::Measure => "measure".to_owned(),
            Action::Done => "done".to_owned(),
        }
    }
}

/// What the session waits for.
#[derive(Debug)]
enum Step {
    /// The first measurement.
    First,
    /// Whether the change in trial could be applied.
    Applying(u32),
    /// The measurement with the change in trial.
    Trying(u32),
    /// Whether the change in trial could be taken back.
    Rejecting(u32),
    /// Whether the best of several alternatives could be put back.
    Choosing(u32),
    /// Whether a change could be taken back that is to go for good; the others follow.
    Retreating(u32, VecDeque<u32>),
    /// Whether a change could be taken back that a later one replaced.
    Folding(u32),
    /// Whether a change could be left out.
    LeavingOut(u32),
    /// The measurement without a change.
    Without(u32),
    /// Whether a change that is needed could be put back.
    PuttingBack(u32),
    /// The measurement with all that stays.
    Confirming,
    /// The measurement of what is left where the last phase broke off.
    Stranded,
    /// Whether a change could be put back that was dropped; the others follow.
    Restoring(u32, VecDeque<u32>),
    /// Whether a needed change could be put back in an interrupted run; those that are to be taken back then.
    Rescuing(u32, VecDeque<u32>),
    /// Nothing: it is over.
    Ended,
}

/// A state of the host that was measured in the chain. The first is where the chain began: the host as found, or as confirmed.
struct State {
    standing: Vec<u32>,
    diagnosis: Diagnosis,
}

/// One run of `diagnose`, with or without `--fix`.
pub struct Session<'w> {
    words: &'w Catalogue,
    fix: bool,
    objective: Objective,
    step: Step,
    /// True where traffic that told nothing is watched once more, for longer.
    watches_on: bool,
    first: Option<Diagnosis>,
    /// The state of things as last measured with all changes that stand.
    current: Option<Diagnosis>,
    rounds: Vec<Round>,
    made: Made,
    applied: u32,
    attempts: Vec<Attempt>,
    trial: Option<Trial>,
    states: Vec<State>,
    leave_out: Option<LeaveOut>,
    warnings: Vec<String>,
    not_applied: Vec<NotApplied>,
    /// True where something could not be done or the user stopped it: no more is tried.
    broken: bool,
    /// True if it follows what was recorded. Whether changes were asked for is not in a recording without any.
    replays: bool,
}

/// Share of the requests under way that must be left for two times of watching to have seen the same traffic: fewer than half are mostly gone.
const LEFT_SHARE_MIN: f64 = 0.5;

impl<'w> Session<'w> {
    /// A session that changes nothing unless `fix` is set.
    pub fn new(fix: bool, words: &'w Catalogue) -> Self {
        Self {
            words,
            fix,
            objective: Objective::default(),
            step: Step::First,
            watches_on: false,
            first: None,
            current: None,
            rounds: Vec::new(),
            made: Made::default(),
            applied: 0,
            attempts: Vec::new(),
            trial: None,
            states: Vec::new(),
            leave_out: None,
            warnings: Vec::new(),
            not_applied: Vec::new(),
            broken: false,
            replays: false,
        }
    }

    /// Sets what counts besides goodput; before the first measurement.
    pub fn set_objective(&mut self, objective: Objective) {
        self.objective = objective;
    }

    /// Follows what was recorded.
    pub fn replay(&mut self) {
        self.replays = true;
    }

    /// Lets the session watch once more, for longer, where the first time told nothing; before the first measurement.
    pub fn watch_on(&mut self) {
        self.watches_on = true;
    }

    /// The diagnosis of the host with all changes that stand, as last measured.
    pub fn current(&self) -> Option<&Diagnosis> {
        self.current.as_ref()
    }

    /// Takes in a measurement.
    pub fn measured(&mut self, after: Diagnosis) -> Action {
        match std::mem::replace(&mut self.step, Step::Ended) {
            Step::First if after.undecided && std::mem::take(&mut self.watches_on) => {
                (self.first, self.current) = (Some(after.clone()), Some(after));
                self.step = Step::First;
                Action::Measure
            }
            Step::First => {
                let after = self.with_its_traffic(after);
                self.states.push(State { standing: Vec::new(), diagnosis: after.clone() });
                self.first = Some(after.clone());
                self.current = Some(after);
                self.advance()
            }
            Step::Trying(number) => self.tried(number, after),
            Step::Without(number) => self.left_out(number, after),
            Step::Confirming => self.confirmed(after),
            Step::Stranded => self.seen_stranded(after),
            other => self.unasked(other),
        }
    }

    /// Of traffic that was watched once more: what the first time showed, where most of it had ended before the second. That a server keeps up with little says nothing of
    /// what was asked of it before.
    fn with_its_traffic(&mut self, after: Diagnosis) -> Diagnosis {
        let under_way = |diagnosis: &Diagnosis| diagnosis.ledger.as_ref().map(|ledger| ledger.under_way);
        let Some(first) = self.first.take().filter(|_| after.verdict == Verdict::Healthy) else { return after };
        match under_way(&first).zip(under_way(&after)) {
            Some((before, later)) if later < LEFT_SHARE_MIN * before => {
                let told = Message::new("warning-watched-ended").with("before", tenths(before)).with("after", tenths(later));
                self.warn(&told);
                first
            }
            _ => after,
        }
    }

    /// Takes in whether what was asked for could be done.
    pub fn acted(&mut self, result: Result<(), String>) -> Action {
        match (std::mem::replace(&mut self.step, Step::Ended), result) {
            (Step::Applying(number), Ok(())) => self.now_in_force(number),
            (Step::Applying(number), Err(why)) => {
                let remedy = self.made.remedy_id(number);
                self.warn(&Message::new("warning-not-applied").with("remedy", remedy.as_str()).with("why", why.as_str()));
                self.not_applied.push(NotApplied { remedy, why });
                self.try_next()
            }
            (Step::Rejecting(_), Ok(())) => self.rejected(),
            (Step::Rejecting(number), Err(why)) => self.stuck(number, &why),
            (Step::Choosing(number), Ok(())) => self.keep(number),
            (Step::Choosing(number), Err(why)) => self.choice_lost(number, &why),
            (Step::Retreating(number, rest), result) => {
                match result {
                    Ok(()) => self.made.fall(number),
                    // The others are taken back all the same: the fewer are left, the better.
                    Err(why) => self.warn(&Message::new("warning-not-taken-back").with("why", why)),
                }
                self.retreat_next(rest)
            }
            (Step::Folding(number), Ok(())) => self.folded(number),
            (Step::LeavingOut(number), Ok(())) => {
                self.made.fall(number);
                self.step = Step::Without(number);
                Action::Measure
            }
            (Step::Folding(_) | Step::LeavingOut(_), Err(why)) => {
                self.warn(&Message::new("warning-not-taken-back").with("why", why));
                self.break_off()
            }
            (Step::PuttingBack(number), Ok(())) => self.is_back(number),
            (Step::Restoring(number, rest), Ok(())) => self.restored(number, rest),
            (Step::Rescuing(number, back), result) => {
                match result {
                    Ok(()) => self.made.stand(number),
                    Err(why) => self.not_put_back(number, &why),
                }
                self.retreat_next(back)
            }
            (Step::PuttingBack(number) | Step::Restoring(number, _), Err(why)) => self.lost(number, &why),
            (other, _) => self.unasked(other),
        }
    }

    /// Ends the run early: gives the actions that leave the host in a state that was proven. To be called instead of carrying out
    /// [`Action::Apply`] or [`Action::Measure`], or of handing in a measurement that was cut short.
    ///
    /// A change that was not finally judged is taken back, because nobody has seen yet that it is needed and nobody will look after it;
    /// what is final stays.
    pub fn interrupted(&mut self) -> Action {
        let step = std::mem::replace(&mut self.step, Step::Ended);
        let alone = self.made.standing.len() == 1 && self.leave_out.is_none();
        // The only change that stands was measured without and with it: that is the proof that the others still await.
        let proven = |number: &u32| self.made.get(*number).is_some_and(|entry| entry.needed || (alone && !entry.explained));
        let (stay, back): (Vec<u32>, Vec<u32>) = self.made.standing.iter().rev().partition(|number| proven(number));
        let mut back = VecDeque::from(back);
        stay.into_iter().for_each(|number| self.set_kept(number, Kept::Final));
        self.broken = true;
        for number in back.clone() {
            self.close(number, Kept::No, &Message::new("kept-no-interrupted"));
        }
        self.drop_trial();
        self.drop_held();
        match step {
            Step::Trying(number) => {
                let remedy = self.made.remedy_id(number);
                self.warn(&Message::new("warning-not-judged").with("remedy", remedy));
                back.push_front(number);
            }
            // A change that had been found to be needed, and is out for another look, goes back first.
            Step::Without(number) if self.made.get(number).is_some_and(|entry| entry.needed) => {
                return self.put_back(number, Step::Rescuing(number, back));
            }
            Step::Without(number) => self.close(number, Kept::No, &Message::new("kept-no-interrupted")),
            _ => {}
        }
        self.retreat_next(back)
    }

    /// How many changes an interruption would take back now, or is taking back.
    pub fn unproven(&self) -> usize {
        let standing = self.made.standing.iter().filter(|number| !self.made.get(**number).is_some_and(|entry| entry.needed)).count();
        match &self.step {
            Step::First | Step::Ended => 0,
            Step::Retreating(_, rest) | Step::Rescuing(_, rest) => 1 + rest.len(),
            Step::Without(_) | Step::Confirming | Step::Stranded => standing,
            Step::Applying(_) | Step::Trying(_) | Step::Rejecting(_) | Step::Choosing(_) | Step::PuttingBack(_) | Step::Restoring(..) => {
                standing + 1
            }
            // These stand until they are out.
            Step::Folding(_) | Step::LeavingOut(_) => standing.max(1),
        }
    }

    /// How long the next measurement must be, seconds, to show what the changes in force cost the requests that they serve last. A request that is given up waits no
    /// longer than the client's timeout. Or to show of traffic what a shorter time did not.
    pub fn measurement_s_min(&self) -> Option<f64> {
        if matches!(self.step, Step::First) && self.first.is_some() {
            return Some(WATCHED_ON_S);
        }
        let tried = self.trial.as_ref().and_then(|trial| trial.in_force);
        let in_force = self.made.standing.iter().copied().chain(tried).filter_map(|number| self.made.get(number));
        let waits_s = in_force.filter_map(|made| Some(made.remedy.starved.as_ref()?.wait_s));
        let timeout_s = self.objective.timeout_us.map_or(f64::INFINITY, |timeout_us| timeout_us as f64 / 1e6);
        waits_s.reduce(f64::max).map(|wait_s| (STARVED_WAITS * wait_s.min(timeout_s)).min(MEASUREMENT_S_MOST))
    }

    /// The report: what was found at first, and the rounds.
    pub fn report(mut self) -> Option<Diagnosis> {
        if !self.broken
            && let [only] = *self.made.standing
            && self.made.get(only).is_some_and(|entry| !entry.explained)
        {
            self.set_kept(only, Kept::Final);
        }
        let mut report = self.first?;
        // What could be faster is told of the host as the run leaves it.
        if let Some(last) = self.current.filter(|_| !self.rounds.is_empty()) {
            report.improvements = last.improvements;
            // What limits how far the figures can be trusted is told of the last measurement as well, where changes stay.
            if !self.made.standing.is_empty() {
                report.warnings = last.warnings;
            }
        }
        report.rounds = self.rounds;
        report.not_applied = self.not_applied;
        // What could not be done comes first: it asks for something.
        report.warnings.splice(0..0, self.warnings);
        if self.fix && !self.broken && !self.replays && report.rounds.is_empty() && report.load.is_some() && has_nothing_to_apply(&report) {
            report.warnings.push(self.words.text(&Message::new("warning-nothing-to-apply")));
        }
        outcome::compare(&mut report, self.words);
        Some(report)
    }
}

/// True if there are causes, and `--fix` can change nothing about any of them.
fn has_nothing_to_apply(report: &Diagnosis) -> bool {
    let mut causes = report.findings.iter().filter(|finding| finding.role == Role::Cause).peekable();
    causes.peek().is_some() && causes.flat_map(|cause| &cause.remedies).all(|remedy| remedy.change.is_empty())
}
