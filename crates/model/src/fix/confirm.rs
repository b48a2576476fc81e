//! The confirmation: what stays is measured once more. Dropped changes that turn out to be needed go back permanently.

use std::collections::VecDeque;

use super::judge::{figures, gave_up, is_back, worse};
use super::noise::{self, Figures};
use super::service::fails_anew;
use super::{Action, Session, State, Step};
use crate::fix::change::Change;
use crate::output::message::Message;
use crate::output::report::{Diagnosis, Kept, Role, RoundKind};

impl Session<'_> {
    /// Measures what stays once more, with the improvements that were held, unless the last measurement already did. If a change was dropped, a measurement
    /// is always taken, because only one measurement so far says that it is not needed.
    pub(super) fn confirm(&mut self) -> Action {
        if let Some(phase) = &mut self.leave_out
            && let Some(number) = phase.held.pop()
        {
            if let Some(whole) = phase.whole.take() {
                phase.unimproved = Some(std::mem::replace(&mut phase.with, whole));
            }
            return self.put_back(number, Step::PuttingBack(number));
        }
        match &self.leave_out {
            Some(phase) if !phase.is_measured || !phase.dropped.is_empty() || phase.has_better => {
                self.step = Step::Confirming;
                Action::Measure
            }
            Some(_) => self.go_on(),
            None => self.end(),
        }
    }

    /// What only now shows is tried too, beside everything that stays: one measurement of some seconds may miss what the next one sees. It ends where a
    /// measurement shows nothing that was not tried.
    fn go_on(&mut self) -> Action {
        let Some(diagnosis) = self.current.clone() else { return self.end() };
        self.states = vec![State { standing: self.made.standing.clone(), diagnosis }];
        self.advance()
    }

    /// Judges the measurement of everything that stays.
    pub(super) fn confirmed(&mut self, after: Diagnosis) -> Action {
        let (Some(phase), Some(first)) = (&self.leave_out, &self.first) else { return self.unasked(Step::Confirming) };
        let with = phase.with.clone();
        let worse_than_first = worse(first, &after, self.objective).is_some();
        // If a later change sets the same settings again, putting the earlier one back changes nothing.
        let (replaced, missed): (Vec<u32>, Vec<u32>) =
            self.missed_after_all(&with, &after).into_iter().partition(|number| self.made.is_replaced(*number));
        // Only now is an improvement seen beside everything that stays, and once more: what it makes fail may not have shown in its trial.
        let without = phase.unimproved.clone().filter(|without| fails_anew(without, &after));
        let fell = without.is_some() || self.fell_short(&with, &after);
        let id = match (missed.is_empty(), fell) {
            (false, _) => "round-confirm-missed",
            (true, true) => "round-confirm-fell",
            (true, false) => "round-confirm",
        };
        let why = figures(id, &with, &after);
        self.push_round(RoundKind::Confirm, None, (&with, &after), Kept::Final, &why);
        replaced.into_iter().for_each(|number| self.close(number, Kept::Replaced, &Message::new("kept-replaced")));
        self.set_measured(true);
        self.current = Some(after.clone());
        let Some(phase) = &mut self.leave_out else { return self.end() };
        let short = phase.short.take();
        if !missed.is_empty() {
            return self.restore("kept-yes-missed", missed, &with, &after);
        }
        if !fell {
            // Only where improvements were given up: what is left was never held against the beginning.
            return if worse_than_first { self.break_off() } else { self.go_on() };
        }
        if short.is_none() {
            phase.short = Some(after);
            self.step = Step::Confirming;
            return Action::Measure;
        }
        if let Some(without) = without {
            return self.give_improvements_up(&without, &after);
        }
        if !phase.dropped.is_empty() {
            // Changes that seemed idle one by one may be needed together.
            let all = phase.dropped.clone();
            return self.restore("kept-yes-together", all, &with, &after);
        }
        self.warn(&figures("warning-not-confirmed", &with, &after));
        if worse_than_first { self.break_off() } else { self.end() }
    }

    /// Takes back the improvements that were not confirmed before, because requests fail with them that do not fail without. What stays is confirmed once more.
    fn give_improvements_up(&mut self, without: &Diagnosis, with: &Diagnosis) -> Action {
        let improves =
            |number: &&u32| !self.confirmed_changes().contains(number) && self.made.get(**number).is_some_and(|made| made.improves);
        let back: VecDeque<u32> = self.made.standing.iter().rev().filter(improves).copied().collect();
        for number in &back {
            let why = self.made.get(*number).map(|made| gave_up(without, with, &made.remedy));
            why.iter().for_each(|why| self.close(*number, Kept::No, why));
        }
        if let Some(phase) = &mut self.leave_out {
            (phase.with, phase.unimproved, phase.is_measured) = (without.clone(), None, false);
        }
        self.retreat_next(back)
    }

    /// Dropped changes that would fix what the confirmation shows: their cause is back, their station refuses again, or a cause has their remedy.
    fn missed_after_all(&self, with: &Diagnosis, after: &Diagnosis) -> Vec<u32> {
        let Some(phase) = &self.leave_out else { return Vec::new() };
        let causes = || after.findings.iter().filter(|finding| finding.role == Role::Cause);
        let is_missed = |number: &u32| {
            self.made.get(*number).is_some_and(|made| {
                // If a change was put back before, the settings that later changes set again were removed from it. Only the rest is compared.
                let sets = |change: &[Change]| made.remedy.change.iter().all(|own| change.iter().any(|one| one.is_same_setting(own)));
                let mut remedies = causes().flat_map(|finding| &finding.remedies);
                let mends = remedies.any(|remedy| remedy.id == made.remedy.id && sets(&remedy.change));
                mends || made.place.is_cause(after) || is_back((with, after), &made.place, &made.remedy).is_some()
            })
        };
        phase.dropped.iter().chain(&phase.folded).copied().filter(|number| is_missed(number)).collect()
    }

    /// True if what stays gives less than all changes did. With the same changes as then, only a loss beyond the noise between two identical runs counts.
    /// With fewer changes, a loss beyond the noise of this run counts.
    fn fell_short(&self, with: &Diagnosis, after: &Diagnosis) -> bool {
        let Some(phase) = self.leave_out.as_ref().filter(|phase| !phase.dropped.is_empty()) else {
            return worse(with, after, self.objective).is_some();
        };
        let now = match &phase.short {
            Some(before) => Figures::of(before).zip(Figures::of(after)).map(|(before, after)| before.joined(after)),
            None => Figures::of(after),
        };
        match Figures::of(with).zip(now) {
            Some((with, now)) => noise::worse(&with, &now, self.objective).is_some(),
            None => worse(with, after, self.objective).is_some(),
        }
    }

    /// Puts changes back permanently and confirms again.
    fn restore(&mut self, id: &'static str, numbers: Vec<u32>, with: &Diagnosis, after: &Diagnosis) -> Action {
        // The oldest first, so that later changes override the same settings as before.
        let mut numbers = numbers;
        numbers.sort_unstable();
        let why = figures(id, with, after);
        numbers.iter().for_each(|number| self.close(*number, Kept::Final, &why));
        if let Some(phase) = &mut self.leave_out {
            phase.dropped.retain(|number| !numbers.contains(number));
            phase.folded.retain(|number| !numbers.contains(number));
        }
        self.restore_next(numbers.into())
    }

    /// A dropped change is back. Puts back the next one, or measures all of them once.
    pub(super) fn restored(&mut self, number: u32, rest: VecDeque<u32>) -> Action {
        self.made.stand(number);
        if let Some(made) = self.made.get_mut(number) {
            made.needed = true;
        }
        self.set_measured(false);
        self.restore_next(rest)
    }

    fn restore_next(&mut self, mut rest: VecDeque<u32>) -> Action {
        match rest.pop_front() {
            // Putting it back would change nothing, so there would be nothing to take back later.
            Some(number) if self.made.is_replaced(number) => {
                self.close(number, Kept::Replaced, &Message::new("kept-replaced"));
                self.restore_next(rest)
            }
            Some(number) => self.put_back(number, Step::Restoring(number, rest)),
            None => {
                self.step = Step::Confirming;
                Action::Measure
            }
        }
    }
}
