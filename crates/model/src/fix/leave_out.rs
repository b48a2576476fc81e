//! The last phase: each change is left out alone. What is missed goes back and is final; what is not stays out.

use std::collections::{BTreeSet, VecDeque};

use super::judge::{figures, is_gain, need, worse};
use super::{Action, Session, Step};
use crate::message::Message;
use crate::report::{Diagnosis, Kept, RoundKind};

/// Measurements that confirm what stays before it is believed that it got worse.
const CONFIRMATIONS_MAX: u32 = 2;

/// How far the phase is.
pub(super) struct LeaveOut {
    /// The measurement with all changes, which every measurement without one is held against. It does not slide along with changes that
    /// are dropped, or many small losses would add up; it rises where one was found to do harm.
    with: Diagnosis,
    /// Changes that were left out since the last one was dropped, and are needed.
    seen: BTreeSet<u32>,
    /// Changes that were dropped, in this order.
    dropped: Vec<u32>,
    /// True where the last measurement was of the host as it now is.
    is_measured: bool,
    /// Improvements that are needed and stay out until the others were judged, with the measurement that had them: an improvement may hide
    /// for the time of a measurement what a fix is needed for.
    held: Vec<u32>,
    whole: Option<Diagnosis>,
}

impl Session<'_> {
    /// Begins the phase. A change that stands alone and did what it promised needs none of it: it was measured without and with it.
    pub(super) fn leave_out_all(&mut self) -> Action {
        let is_proven = match *self.made.standing {
            [] => true,
            [only] => self.made.get(only).is_some_and(|made| !made.explained),
            _ => false,
        };
        let Some(with) = self.current.clone().filter(|_| !is_proven && !self.broken) else { return self.end() };
        let (seen, dropped, held) = (BTreeSet::new(), Vec::new(), Vec::new());
        self.leave_out = Some(LeaveOut { with, seen, dropped, is_measured: true, held, whole: None });
        self.leave_out_next()
    }

    /// Leaves out the newest change that was not left out beside those that stand now. A drop opens the question anew for all: what was
    /// needed beside a change (to mend what that one broke) may not be without it.
    fn leave_out_next(&mut self) -> Action {
        let Some(phase) = &self.leave_out else { return self.end() };
        let unseen = |number: &&u32| !phase.seen.contains(number);
        let judged = |number: &&u32| self.made.get(**number).is_some_and(|made| made.needed);
        let open = || self.made.standing.iter().rev().filter(unseen);
        let Some(number) = open().find(|number| !judged(number)).or_else(|| open().next()).copied() else {
            return self.confirm();
        };
        let step = if self.made.is_replaced(number) { Step::Folding(number) } else { Step::LeavingOut(number) };
        self.take_back(number, step)
    }

    /// A change over which a later one lies is gone without any change to the host.
    pub(super) fn folded(&mut self, number: u32) -> Action {
        self.made.fall(number);
        self.close(number, Kept::No, &Message::new("kept-no-replaced"));
        self.leave_out_next()
    }

    /// Judges the measurement without a change.
    pub(super) fn left_out(&mut self, number: u32, without: Diagnosis) -> Action {
        let (Some(phase), Some(first), Some(made)) = (&self.leave_out, &self.first, self.made.get(number)) else {
            return self.unasked(Step::Without(number));
        };
        let with = phase.with.clone();
        let need = match &without.load {
            // A measurement without a load shows nothing; then the safe side is the state that was measured.
            None => Some(super::judge::Need::Finding),
            Some(_) => need((first, &with, &without), &made.place, &made.remedy, made.refused_before, self.objective),
        };
        let improves = made.improves;
        self.current = Some(without.clone());
        self.set_measured(true);
        match need {
            Some(need) => {
                let why = need.told(&with, &without);
                self.push_round(RoundKind::Without, Some(number), (&with, &without), Kept::Final, &why);
                if improves { self.hold(number, without) } else { self.put_back(number, Step::PuttingBack(number)) }
            }
            None => {
                self.push_round(RoundKind::Without, Some(number), (&with, &without), Kept::No, &figures("round-idle", &with, &without));
                self.close(number, Kept::No, &figures("kept-no-idle", &with, &without));
                let gained = is_gain(&with, &without, self.objective);
                if let Some(phase) = &mut self.leave_out {
                    phase.dropped.push(number);
                    phase.seen.clear();
                    if gained {
                        phase.with = without;
                    }
                }
                self.leave_out_next()
            }
        }
    }

    /// An improvement that is needed stays out while the others are judged.
    fn hold(&mut self, number: u32, without: Diagnosis) -> Action {
        if let Some(phase) = &mut self.leave_out {
            let with = std::mem::replace(&mut phase.with, without);
            phase.whole.get_or_insert(with);
            phase.held.push(number);
        }
        self.leave_out_next()
    }

    /// What is still held when the run ends early is not put back.
    pub(super) fn drop_held(&mut self) {
        let held = self.leave_out.as_mut().map(|phase| std::mem::take(&mut phase.held)).unwrap_or_default();
        held.into_iter().for_each(|number| self.close(number, Kept::No, &Message::new("kept-no-held")));
    }

    /// A change that is needed is back.
    pub(super) fn is_back(&mut self, number: u32) -> Action {
        self.made.stand(number);
        if let Some(made) = self.made.get_mut(number) {
            made.needed = true;
        }
        self.set_kept(number, Kept::Final);
        if let Some(phase) = &mut self.leave_out {
            phase.seen.insert(number);
            phase.is_measured = false;
        }
        self.leave_out_next()
    }

    /// A change that is needed could not be put back.
    pub(super) fn lost(&mut self, number: u32, why: &str) -> Action {
        self.not_put_back(number, why);
        self.break_off()
    }

    /// True where the last measurement was of the host as it now is.
    pub(super) fn is_measured(&self) -> bool {
        self.leave_out.as_ref().is_none_or(|phase| phase.is_measured)
    }

    fn set_measured(&mut self, is_measured: bool) {
        if let Some(phase) = &mut self.leave_out {
            phase.is_measured = is_measured;
        }
    }

    /// The measurement of what is left where the phase broke off.
    pub(super) fn seen_stranded(&mut self, now: Diagnosis) -> Action {
        self.set_measured(true);
        self.current = Some(now);
        self.break_off()
    }

    /// Measures once more what stays, with the improvements that were held, unless the last measurement did that.
    fn confirm(&mut self) -> Action {
        if let Some(phase) = &mut self.leave_out
            && let Some(number) = phase.held.pop()
        {
            if let Some(whole) = phase.whole.take() {
                phase.with = whole;
            }
            return self.put_back(number, Step::PuttingBack(number));
        }
        match &self.leave_out {
            Some(phase) if !phase.is_measured => {
                self.step = Step::Confirming(1);
                Action::Measure
            }
            _ => self.end(),
        }
    }

    /// Judges a measurement of all that stays.
    pub(super) fn confirmed(&mut self, times: u32, after: Diagnosis) -> Action {
        let (Some(phase), Some(first)) = (&mut self.leave_out, &self.first) else { return self.unasked(Step::Confirming(times)) };
        let with = phase.with.clone();
        let fell = worse(&with, &after, self.objective).is_some();
        let worse_than_first = worse(first, &after, self.objective).is_some();
        let dropped = std::mem::take(&mut phase.dropped);
        phase.is_measured = true;
        let again = fell && times < CONFIRMATIONS_MAX;
        if again {
            phase.dropped.clone_from(&dropped);
        }
        let why = figures(if fell { "round-confirm-fell" } else { "round-confirm" }, &with, &after);
        self.push_round(RoundKind::Confirm, None, (&with, &after), Kept::Final, &why);
        self.current = Some(after.clone());
        if !fell {
            return self.end();
        }
        if again {
            self.step = Step::Confirming(times + 1);
            return Action::Measure;
        }
        if times == CONFIRMATIONS_MAX && !dropped.is_empty() {
            // What seemed idle one by one may be missed together.
            let why = figures("kept-yes-together", &with, &after);
            dropped.iter().for_each(|number| self.close(*number, Kept::Final, &why));
            return self.restore_next(dropped.into());
        }
        self.warn(&figures("warning-not-confirmed", &with, &after));
        if worse_than_first { self.break_off() } else { self.end() }
    }

    /// A dropped change is back; then the next, and one measurement of them all.
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
            Some(number) => self.put_back(number, Step::Restoring(number, rest)),
            None => {
                self.step = Step::Confirming(CONFIRMATIONS_MAX + 1);
                Action::Measure
            }
        }
    }
}
