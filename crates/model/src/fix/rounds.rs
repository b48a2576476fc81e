//! The rounds as the report shows them, and the fate of each change in them.

use super::judge::FindingIdentity;
use super::made::Entry;
use super::noise::Gain;
use super::{Action, Session, Step};
use crate::output::message::Message;
use crate::output::outcome;
use crate::output::report::{Diagnosis, Kept, Prediction, Round, RoundKind};
use crate::output::setting;

impl Session<'_> {
    /// Adds a round that is compared with the measurement `before`; does nothing if it holds no load. Returns its index.
    pub(super) fn push_round(
        &mut self,
        kind: RoundKind,
        change: Option<u32>,
        (before, measured): (&Diagnosis, &Diagnosis),
        kept: Kept,
        why: &Message,
    ) -> Option<usize> {
        let load = measured.load.clone()?;
        let entry = change.and_then(|number| self.made.get(number));
        let prediction = match (kind, entry) {
            (RoundKind::Apply, Some(entry)) => entry.remedy.prediction.clone(),
            _ => Prediction::Refused { refused: self.words.text(&Message::new("prediction-refused-round")), at_most: None, unsaid: None },
        };
        let changes = entry.filter(|_| kind == RoundKind::Apply).map_or(&[][..], |entry| &entry.remedy.change);
        let prediction_held = match &prediction {
            Prediction::Refused { .. } => None,
            Prediction::Goodput { low, high, .. } => Some((*low..=*high).contains(&load.goodput_rps)),
        };
        self.rounds.push(Round {
            n: self.rounds.len() as u32 + 1,
            kind,
            before_rps: before.load.as_ref().map(|load| load.goodput_rps),
            measured_rps: load.goodput_rps,
            load,
            finding: entry.map(|entry| entry.place.finding.clone()).unwrap_or_default(),
            remedy: entry.map(|entry| entry.remedy.id.clone()).unwrap_or_default(),
            prediction,
            prediction_held,
            kept,
            why: self.words.text(why),
            verdict: measured.verdict,
            limited_by: measured.limited_by,
            summary: measured.summary.clone(),
            limit: outcome::limit(measured, self.words),
            settings: setting::settings(changes, self.words),
        });
        Some(self.rounds.len() - 1)
    }

    /// Records the final fate of a change, in the round in which it was applied.
    pub(super) fn close(&mut self, number: u32, kept: Kept, why: &Message) {
        let text = self.words.text(why);
        if let Some(round) = self.round_of(number) {
            (round.kept, round.why) = (kept, text);
        }
    }

    /// The same, but keeps the reason that the chain gave.
    pub(super) fn set_kept(&mut self, number: u32, kept: Kept) {
        if let Some(round) = self.round_of(number) {
            round.kept = kept;
        }
    }

    /// Records the fate of a change in a round that judged it.
    pub(super) fn set_fate(&mut self, index: usize, kept: Kept) {
        if let Some(round) = self.rounds.get_mut(index) {
            round.kept = kept;
        }
    }

    fn round_of(&mut self, number: u32) -> Option<&mut Round> {
        let index = self.made.get(number)?.round?;
        self.rounds.get_mut(index)
    }

    pub(super) fn warn(&mut self, message: &Message) {
        self.warnings.push(self.words.text(message));
    }

    pub(super) fn take_back(&mut self, number: u32, step: Step) -> Action {
        self.step = step;
        Action::TakeBack { number, remedy: self.made.remedy_id(number) }
    }

    /// Asks for a change to be put back. If nothing of it is left to be made again, it is already back.
    pub(super) fn put_back(&mut self, number: u32, step: Step) -> Action {
        let finding = self.made.get(number).map(|entry| entry.place.finding.clone()).unwrap_or_default();
        let remedy = self.made.reduce_to_put_back(number);
        self.step = step;
        match remedy.filter(|remedy| !remedy.change.is_empty()) {
            Some(remedy) => Action::PutBack { number, finding, remedy: Box::new(remedy) },
            None => self.acted(Ok(())),
        }
    }

    pub(super) fn not_put_back(&mut self, number: u32, why: &str) {
        let remedy = self.made.remedy_id(number);
        self.warn(&Message::new("warning-not-put-back").with("remedy", remedy).with("why", why));
        self.close(number, Kept::No, &Message::new("kept-no-lost"));
    }

    pub(super) fn end(&mut self) -> Action {
        self.step = Step::Ended;
        Action::Done
    }

    /// The driver handed in a step that was not asked for. What was measured or done can no longer be trusted.
    pub(super) fn unasked(&mut self, step: Step) -> Action {
        debug_assert!(false, "unasked answer in {step:?}");
        self.broken = true;
        self.end()
    }
}

/// An entry for a change that is about to be made.
pub(super) fn entry(place: &FindingIdentity, remedy: crate::output::report::Remedy, improves: bool) -> Entry {
    Entry { place: place.clone(), remedy, round: None, gain: Gain::default(), explained: false, needed: false, improves }
}
