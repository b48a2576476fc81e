//! The last phase: each change is left out alone. A needed change goes back and is final, and so does an undecided one. A change that is not needed stays
//! out.

use std::collections::BTreeSet;

use super::judge::{Missed, figures, is_gain, missed};
use super::phase::LeaveOut;
use super::{Action, Session, Step};
use crate::output::message::Message;
use crate::output::report::{Diagnosis, Kept, RoundKind};

impl Session<'_> {
    /// Begins the phase. A single change that did what it promised skips it: it was already measured without and with it.
    pub(super) fn leave_out_all(&mut self) -> Action {
        if self.leave_out.is_some() {
            return self.leave_out_late();
        }
        let is_proven = match *self.made.standing {
            [] => true,
            [only] => self.made.get(only).is_some_and(|made| !made.explained),
            _ => false,
        };
        let Some(with) = self.current.clone().filter(|_| !is_proven && !self.broken) else { return self.end() };
        let (seen, dropped, folded, held) = (BTreeSet::new(), Vec::new(), Vec::new(), Vec::new());
        self.leave_out = Some(LeaveOut {
            with,
            seen,
            again: None,
            dropped,
            has_better: false,
            folded,
            short: None,
            is_measured: true,
            held,
            whole: None,
            unimproved: None,
        });
        self.leave_out_next()
    }

    /// Once more for the changes that came after the confirmation. Those that it confirmed were judged without them.
    fn leave_out_late(&mut self) -> Action {
        let Some(with) = self.current.clone().filter(|_| !self.broken && self.has_late()) else { return self.end() };
        let confirmed = self.confirmed_changes().iter().copied().collect();
        let Some(phase) = &mut self.leave_out else { return self.end() };
        phase.seen = confirmed;
        (phase.with, phase.whole, phase.unimproved, phase.is_measured) = (with, None, None, true);
        self.leave_out_next()
    }

    /// True if a change stands that came after the confirmation and was not left out yet.
    pub(super) fn has_late(&self) -> bool {
        let is_late = |number: &u32| !self.confirmed_changes().contains(number) && self.made.get(*number).is_some_and(|made| !made.needed);
        self.made.standing.iter().any(is_late)
    }

    /// The changes that stood where the present chain began: none, or those that a confirmation left.
    pub(super) fn confirmed_changes(&self) -> &[u32] {
        self.states.first().map_or(&[], |state| &state.standing)
    }

    /// Leaves out the newest change that was not yet left out beside those that stand now. After a drop all changes are asked about again: a change needed
    /// only to repair what the dropped one broke may no longer be needed.
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

    /// A change whose settings a later one overrides is gone without any change to the host.
    pub(super) fn folded(&mut self, number: u32) -> Action {
        self.made.fall(number);
        self.close(number, Kept::Replaced, &Message::new("kept-replaced"));
        if let Some(phase) = &mut self.leave_out {
            phase.folded.push(number);
        }
        self.leave_out_next()
    }

    /// Judges the measurement without a change.
    pub(super) fn left_out(&mut self, number: u32, without: Diagnosis) -> Action {
        let (Some(phase), Some(first), Some(made)) = (&mut self.leave_out, &self.first, self.made.get(number)) else {
            return self.unasked(Step::Without(number));
        };
        let with = phase.with.clone();
        let again = phase.again.take();
        let seen: Vec<&Diagnosis> = again.iter().map(|(before, _)| before).chain([&without]).collect();
        let judged = missed((first, &with, &seen), (&made.place, &made.remedy, made.gain), self.objective);
        let (improves, needed) = (made.improves, made.needed);
        self.current = Some(without.clone());
        self.set_measured(true);
        let kept = match &judged {
            Missed::No => Kept::No,
            // The change that is out now would stay out if the run ended here.
            Missed::Perhaps(_) if !needed => Kept::No,
            _ => Kept::Final,
        };
        let why = match &judged {
            Missed::Yes(need) => need.message(&with, &without),
            Missed::Perhaps(_) => figures("round-again", &with, &without),
            Missed::Unsure => figures("round-unsure", &with, &without),
            Missed::Unknown => figures("round-unknown", &with, &without),
            Missed::No if is_gain(&with, &without, self.objective) => figures("round-better", &with, &without),
            Missed::No => figures("round-idle", &with, &without),
        };
        let round = self.push_round(RoundKind::Without, Some(number), (&with, &without), kept, &why);
        if let Some((_, Some(before))) = again {
            self.set_fate(before, kept);
        }
        match judged {
            Missed::Perhaps(_) => {
                if let Some(phase) = &mut self.leave_out {
                    phase.again = Some((without, round));
                }
                self.step = Step::Without(number);
                Action::Measure
            }
            Missed::No => self.drop_change(number, &with, without),
            _ if improves => self.hold(number, without),
            _ => self.put_back(number, Step::PuttingBack(number)),
        }
    }

    /// Drops a change that does nothing, or does harm, besides the others.
    fn drop_change(&mut self, number: u32, with: &Diagnosis, without: Diagnosis) -> Action {
        let gained = is_gain(with, &without, self.objective);
        self.close(number, Kept::No, &figures(if gained { "kept-no-better" } else { "kept-no-idle" }, with, &without));
        let confirmed = self.confirmed_changes().iter().copied().collect();
        if let Some(phase) = &mut self.leave_out {
            phase.seen = confirmed;
            if gained {
                (phase.has_better, phase.with) = (true, without);
            } else {
                phase.dropped.push(number);
            }
        }
        self.leave_out_next()
    }

    /// A needed improvement stays out while the others are judged.
    fn hold(&mut self, number: u32, without: Diagnosis) -> Action {
        if let Some(phase) = &mut self.leave_out {
            let with = std::mem::replace(&mut phase.with, without);
            phase.whole.get_or_insert(with);
            phase.held.push(number);
        }
        self.leave_out_next()
    }

    /// If the run ends early, held improvements are not put back.
    pub(super) fn drop_held(&mut self) {
        let held = self.leave_out.as_mut().map(|phase| std::mem::take(&mut phase.held)).unwrap_or_default();
        held.into_iter().for_each(|number| self.close(number, Kept::No, &Message::new("kept-no-held")));
    }

    /// A needed change is back.
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

    /// A needed change could not be put back.
    pub(super) fn lost(&mut self, number: u32, why: &str) -> Action {
        self.not_put_back(number, why);
        self.break_off()
    }

    /// True if the last measurement shows the host as it is now.
    pub(super) fn is_measured(&self) -> bool {
        self.leave_out.as_ref().is_none_or(|phase| phase.is_measured)
    }

    pub(super) fn set_measured(&mut self, is_measured: bool) {
        if let Some(phase) = &mut self.leave_out {
            phase.is_measured = is_measured;
        }
    }

    pub(super) fn seen_stranded(&mut self, now: Diagnosis) -> Action {
        self.set_measured(true);
        self.current = Some(now);
        self.break_off()
    }
}
