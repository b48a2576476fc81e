//! The chain: tries one cause after the other. At its end it compares the result with the best state on the way.

use std::collections::VecDeque;

use super::judge::{FindingIdentity, Seen, Worse, figures, is_gain, judge, judge_improvement, worse};
use super::noise::Gain;
use super::phase::{Attempt, Trial, Tried};
use super::rounds::entry;
use super::service::{fails_anew, meets, reaching};
use super::{Action, NOISE_SHARE, ROUNDS_MAX, Session, State, Step};
use crate::output::message::Message;
use crate::output::report::{Diagnosis, Finding, Kept, Remedy, Role, RoundKind};

/// How often a remedy is tried. The second attempt follows if the first did nothing and other changes were kept since, which may have hidden its effect.
const ATTEMPTS_MAX: u32 = 2;

impl Session<'_> {
    /// The next trial, or the judgement of the whole if no trial is left.
    pub(super) fn advance(&mut self) -> Action {
        self.trial = None;
        let open = self.fix && !self.broken && self.applied < ROUNDS_MAX;
        let Some(current) = self.current.as_ref().filter(|current| open && current.load.is_some()) else {
            return self.judge_whole();
        };
        // Alternatives trade one thing for another. Everything else is fixed first, because it would decide between them.
        let order = [(false, false), (false, true), (true, false), (true, true)];
        // After the confirmation fewer changes stand than at the first attempt, which hide no more than they did then.
        let order = if self.leave_out.is_some() { &order[..2] } else { &order[..] };
        let causes = order.iter().find_map(|(again, grouped)| self.candidates(&current.findings, *again, *grouped));
        // If nothing was wrong with the server, the report says what could be faster and the server is left alone.
        let improvements = || order.iter().find_map(|(again, grouped)| self.candidates(&current.improvements, *again, *grouped));
        let improves = causes.is_none();
        let picked = causes.or_else(|| improvements().filter(|_| !self.made.standing.is_empty()));
        let Some((place, queue)) = picked else { return self.judge_whole() };
        self.trial = Some(Trial { place, improves, queue: queue.into(), results: Vec::new(), in_force: None });
        self.try_next()
    }

    /// The first cause with a remedy that may be tried, and that remedy with its alternatives. `again` asks for second attempts, `grouped` for remedies that
    /// have alternatives.
    fn candidates(&self, findings: &[Finding], again: bool, grouped: bool) -> Option<(FindingIdentity, Vec<Remedy>)> {
        findings.iter().filter(|finding| finding.role == Role::Cause).find_map(|finding| {
            let may = |remedy: &&Remedy| remedy.group.is_some() == grouped && self.may_try(finding, remedy, again);
            let first = finding.remedies.iter().find(may)?;
            let alike = |remedy: &&Remedy| first.group.is_some() && remedy.group == first.group;
            let all: Vec<Remedy> = match first.group {
                Some(_) => finding.remedies.iter().filter(alike).filter(may).cloned().collect(),
                None => vec![first.clone()],
            };
            Some((FindingIdentity::of(finding), all))
        })
    }

    fn may_try(&self, finding: &Finding, remedy: &Remedy, again: bool) -> bool {
        let same = |attempt: &&Attempt| attempt.finding == finding.id && attempt.remedy == remedy.id && attempt.change == remedy.change;
        match self.attempts.iter().find(same) {
            None => !again && !remedy.change.is_empty(),
            Some(attempt) => {
                let changed = attempt.rejected_beside.as_ref().is_some_and(|standing| *standing != self.made.standing);
                again && changed && attempt.times < ATTEMPTS_MAX
            }
        }
    }

    fn attempt(&mut self, finding: &str, remedy: &Remedy) -> &mut Attempt {
        let same = |attempt: &Attempt| attempt.finding == finding && attempt.remedy == remedy.id && attempt.change == remedy.change;
        let index = self.attempts.iter().position(same).unwrap_or_else(|| {
            let (finding, remedy, change) = (finding.to_owned(), remedy.id.clone(), remedy.change.clone());
            self.attempts.push(Attempt { finding, remedy, change, times: 0, rejected_beside: None });
            self.attempts.len() - 1
        });
        &mut self.attempts[index]
    }

    /// Applies the next remedy of the trial. No remedy of the trial is in force at this point.
    pub(super) fn try_next(&mut self) -> Action {
        let budget = self.applied < ROUNDS_MAX;
        let pop = |trial: &mut Trial| Some((trial.place.clone(), trial.improves, trial.queue.pop_front()?));
        let Some((place, improves, remedy)) = self.trial.as_mut().filter(|_| budget).and_then(pop) else { return self.choose() };
        let attempt = self.attempt(&place.finding, &remedy);
        (attempt.times, attempt.rejected_beside) = (attempt.times + 1, None);
        let number = self.made.add(entry(&place, remedy.clone(), improves));
        self.step = Step::Applying(number);
        Action::Apply { number, finding: place.finding, remedy: Box::new(remedy) }
    }

    pub(super) fn now_in_force(&mut self, number: u32) -> Action {
        self.applied += 1;
        if let Some(trial) = &mut self.trial {
            trial.in_force = Some(number);
        }
        self.step = Step::Trying(number);
        Action::Measure
    }

    /// Judges the measurement of the change in trial.
    pub(super) fn tried(&mut self, number: u32, after: Diagnosis) -> Action {
        let (Some(before), Some(made)) = (&self.current, self.made.get(number)) else { return self.unasked(Step::Trying(number)) };
        let judged = if made.improves {
            judge_improvement(before, &after, &made.remedy, self.objective)
        } else {
            let seen = Seen { is_gone: !made.place.is_cause(&after), has_next: self.has_next(before, &after, &made.place) };
            judge((before, &after), &made.place, &made.remedy, self.objective, seen)
        };
        let kept = if judged.works { Kept::Provisional } else { Kept::No };
        let before = before.clone();
        let (works, why, remedy) = (judged.works, judged.why.clone(), made.remedy.clone());
        let round = self.push_round(RoundKind::Apply, Some(number), (&before, &after), kept, &why);
        if let Some(made) = self.made.get_mut(number) {
            made.round = round;
        }
        let Some(trial) = &mut self.trial else { return self.unasked(Step::Trying(number)) };
        trial.results.push(Tried { number, after, judged });
        let (finding, last) = (trial.place.finding.clone(), trial.queue.is_empty());
        if !works {
            let standing = self.made.standing.clone();
            self.attempt(&finding, &remedy).rejected_beside = Some(standing);
        }
        if last || self.applied >= ROUNDS_MAX { self.choose() } else { self.take_back(number, Step::Rejecting(number)) }
    }

    /// True if the next cause explains a loss: a different cause that can be acted on, and that is new or refuses more than before.
    fn has_next(&self, before: &Diagnosis, after: &Diagnosis, tried: &FindingIdentity) -> bool {
        let grew = |finding: &Finding| {
            let place = FindingIdentity::of(finding);
            let refused = place.refusals(after, &finding.station);
            refused > 0.0 && refused > place.refusals(before, &finding.station) * (1.0 + NOISE_SHARE)
        };
        let next = after.findings.iter().filter(|finding| finding.role == Role::Cause && FindingIdentity::of(finding) != *tried);
        let mut open = next.filter(|finding| finding.remedies.iter().any(|remedy| self.may_try(finding, remedy, false)));
        self.applied < ROUNDS_MAX && open.any(|finding| !FindingIdentity::of(finding).is_cause(before) || grew(finding))
    }

    /// A change of the trial was taken back. Next comes the next alternative, or the choice.
    pub(super) fn rejected(&mut self) -> Action {
        if let Some(trial) = &mut self.trial {
            trial.in_force = None;
        }
        self.try_next()
    }

    /// Ends a trial: the best of what was tried is put in force, or nothing is.
    pub(super) fn choose(&mut self) -> Action {
        let Some(trial) = &self.trial else { return self.advance() };
        match (self.best(trial), trial.in_force) {
            (Some(best), Some(number)) if best == number => self.keep(best),
            (_, Some(number)) => self.take_back(number, Step::Rejecting(number)),
            (Some(best), None) => self.put_back(best, Step::Choosing(best)),
            (None, None) => self.advance(),
        }
    }

    /// The best alternative that works. One that makes requests fail that did not fail before never wins over one that does not, and one that meets the objective
    /// wins over one that misses it. Then goodput counts, and among alternatives with similar goodput the lowest p99: more goodput at a multiple of the response
    /// time is not a gain for everybody.
    fn best(&self, trial: &Trial) -> Option<u32> {
        let working = || trial.results.iter().filter(|tried| tried.judged.works);
        let within = |tried: &&Tried| meets(&tried.after, self.objective);
        let fails = |tried: &&Tried| self.current.as_ref().is_some_and(|before| fails_anew(before, &tried.after));
        let any_whole = working().any(|tried| !fails(&tried));
        let whole = || working().filter(|tried| !any_whole || !fails(tried));
        let any_within = whole().any(|tried| within(&tried));
        let eligible = || whole().filter(|tried| !any_within || within(tried));
        let by_goodput = |a: &&Tried, b: &&Tried| reaching(&a.after).total_cmp(&reaching(&b.after));
        let most = eligible().max_by(by_goodput)?;
        let alike = eligible().filter(|tried| reaching(&tried.after) >= reaching(&most.after) * (1.0 - NOISE_SHARE));
        let p99 = |tried: &&Tried| tried.after.load.as_ref().and_then(|load| load.p99_us()).unwrap_or(u64::MAX);
        alike.min_by_key(p99).map(|tried| tried.number)
    }

    /// The best of a trial is in force and stays for now.
    pub(super) fn keep(&mut self, number: u32) -> Action {
        let Some(trial) = self.trial.take() else { return self.advance() };
        let remedy = self.made.remedy_id(number);
        let mut kept = None;
        for tried in trial.results {
            if tried.number == number {
                let gain = self.current.as_ref().map(|before| Gain::of(before, &tried.after)).unwrap_or_default();
                if let Some(made) = self.made.get_mut(number) {
                    (made.explained, made.gain) = (tried.judged.explained, gain);
                }
                kept = Some(tried.after);
            } else if tried.judged.works && self.current.is_some() {
                let why = Message::new("kept-no-alternative").with("remedy", remedy.as_str());
                self.close(tried.number, Kept::No, &why);
            }
        }
        self.made.stand(number);
        if let Some(after) = kept {
            self.states.push(State { standing: self.made.standing.clone(), diagnosis: after.clone() });
            self.current = Some(after);
        }
        self.advance()
    }

    /// The best of several alternatives could not be put back, so none of them stays.
    pub(super) fn choice_lost(&mut self, number: u32, why: &str) -> Action {
        let remedy = self.made.remedy_id(number);
        self.warn(&Message::new("warning-not-put-back").with("remedy", remedy).with("why", why));
        self.drop_trial();
        self.break_off()
    }

    /// Ends a trial without a choice.
    pub(super) fn drop_trial(&mut self) {
        for tried in self.trial.take().into_iter().flat_map(|trial| trial.results).filter(|tried| tried.judged.works) {
            self.close(tried.number, Kept::No, &Message::new("kept-no-alternative-lost"));
        }
    }

    /// A change that does not help could not be taken back. The host stays as it was measured with the change.
    pub(super) fn stuck(&mut self, number: u32, why: &str) -> Action {
        self.warn(&Message::new("warning-not-taken-back").with("why", why));
        let trial = self.trial.as_mut().map(|trial| std::mem::take(&mut trial.results)).unwrap_or_default();
        if let Some(stuck) = trial.into_iter().find(|tried| tried.number == number) {
            self.current = Some(stuck.after);
        }
        self.close(number, Kept::No, &Message::new("kept-no-stuck"));
        self.break_off()
    }

    /// Tries nothing more. Leaves what stands, unless the server does worse with it than it did at first. If changes came or went since the last measurement,
    /// nobody has measured the host as it is now, so it is measured first.
    pub(super) fn break_off(&mut self) -> Action {
        self.broken = true;
        self.drop_held();
        if !self.is_measured() {
            self.step = Step::Stranded;
            return Action::Measure;
        }
        let (Some(first), Some(current)) = (&self.first, &self.current) else { return self.end() };
        if worse(first, current, self.objective).is_none() || self.made.standing.is_empty() {
            return self.end();
        }
        let (first, current) = (first.clone(), current.clone());
        self.warn(&figures("warning-not-better", &first, &current));
        self.retreat_to(&[], &first, &current)
    }

    /// The end of the chain: goes back to the best measured state, or to the first one, if the last state is worse.
    fn judge_whole(&mut self) -> Action {
        let objective = self.objective;
        let gain = |best, state: &State| is_gain(best, &state.diagnosis, objective);
        let best = self.states.iter().reduce(|best, state| if gain(&best.diagnosis, state) { state } else { best });
        let (Some(current), Some(first), Some(best)) = (&self.current, self.states.first(), best) else { return self.end() };
        let is_worse = |state: &&State| worse(&state.diagnosis, current, objective).is_some();
        // Steps that each lost less than the noise may add up to a large loss since the start.
        let best = if worse(&first.diagnosis, &best.diagnosis, objective).is_some() { first } else { best };
        let Some(better) = [best, first].into_iter().find(is_worse) else { return self.leave_out_all() };
        let (standing, state, current) = (better.standing.clone(), better.diagnosis.clone(), current.clone());
        if standing.is_empty() {
            self.warn(&figures("warning-not-better", &state, &current));
        }
        self.current = Some(state.clone());
        self.retreat_to(&standing, &state, &current)
    }

    /// Takes back every change that is not in `standing`, the newest first, because things were worse with all of them.
    fn retreat_to(&mut self, standing: &[u32], without: &Diagnosis, with: &Diagnosis) -> Action {
        let back: VecDeque<u32> = self.made.standing.iter().rev().copied().filter(|number| !standing.contains(number)).collect();
        let id = match worse(without, with, self.objective) {
            Some(Worse::Reach) => "kept-no-whole-reach",
            Some(Worse::Failed) => "kept-no-whole-failed",
            Some(Worse::Objective) => "kept-no-whole-objective",
            Some(Worse::Latency) => "kept-no-whole-latency",
            _ => "kept-no-whole",
        };
        back.iter().for_each(|number| self.close(*number, Kept::No, &figures(id, without, with)));
        self.retreat_next(back)
    }

    /// Takes back the next of these changes. Then leaves out the remaining changes one by one, or confirms what stays where that was done, unless the run is
    /// broken off.
    pub(super) fn retreat_next(&mut self, mut back: VecDeque<u32>) -> Action {
        match back.pop_front() {
            Some(number) => self.take_back(number, Step::Retreating(number, back)),
            None if self.broken => self.end(),
            None if self.leave_out.is_some() && !self.has_late() => self.confirm(),
            None => self.leave_out_all(),
        }
    }
}
