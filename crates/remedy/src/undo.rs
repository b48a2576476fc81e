//! Undo: compare-and-set, newest first. A setting that someone else has changed is left alone and stays in the journal until the user decides.

use std::path::PathBuf;

use chokepoint_model::change::Change;

use crate::apply::restore;
use crate::error::{ApplyError, RemedyError};
use crate::owner::Running;
use crate::record::{How, Intent, Record, Set};
use crate::server::configuration::Server;
use crate::setting::{State, kinds};
use crate::store::Guard;

/// Selects the sets of changes to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Every set.
    All,
    /// The set with this number.
    Id(u64),
    /// The sets of this owner ("diagnose", "lab:NAME").
    Owner(String),
}

/// The result of an undo.
#[derive(Debug, Default)]
pub struct UndoReport {
    /// Settings with their old value again.
    pub restored: Vec<Restored>,
    /// Settings that someone else has changed. They were left alone and stay pending until they hold the old or the new value again or are forgotten
    /// ([`Guard::forget`]).
    pub conflicts: Vec<Conflict>,
    /// Changes whose place no longer exists.
    pub gone: Vec<Gone>,
    /// Changes whose old value a later, remaining change took over: its undo now restores the value before both.
    pub folded: Vec<Restored>,
    /// Changes that could not be taken back. They stay pending.
    pub failed: Vec<Failed>,
    /// Processes that still run, with changes that were left alone: their own, which they take back themselves, and those of ended runs in their places.
    pub running: Vec<Running>,
    /// The journal could not be written (a full disk). The report still describes the host, and the next undo will find it so.
    pub journal_error: Option<RemedyError>,
    /// Damaged lines of the journal, counted from 1. Their changes are unknown and must be checked by hand.
    pub corrupt_lines: Vec<usize>,
    /// New path of the damaged journal, after all readable changes were taken back.
    pub set_aside: Option<PathBuf>,
}

impl UndoReport {
    /// True where there was nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.folded.is_empty() && self.conflicts.is_empty() && self.gone.is_empty() && self.failed.is_empty()
    }

    /// True where nothing needs a person's attention.
    pub fn is_clean(&self) -> bool {
        self.running.is_empty()
            && self.conflicts.is_empty()
            && self.failed.is_empty()
            && self.corrupt_lines.is_empty()
            && self.journal_error.is_none()
    }
}

/// A change that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
    /// The old value; for a folded change, the value that the later change's undo now restores.
    pub value: String,
    /// True where the change was removed from a file that someone else has edited. Those edits stay and are in force now.
    pub edited: bool,
}

/// A change whose setting someone else has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// The setting.
    pub key: String,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
    /// The value of the change.
    pub ours: String,
    /// The value before the change.
    pub was: String,
    /// The present value.
    pub found: String,
}

impl Conflict {
    pub(crate) fn of(id: u64, intent: &Intent, found: String) -> Self {
        let change = intent.change.clone();
        Self { id, key: change.key(), place: intent.told_place(), ours: change.to().to_owned(), was: intent.was.clone(), change, found }
    }
}

/// A change whose place no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
    /// The reason, as a clause: "the host was rebooted since".
    pub why: String,
}

/// A change that could not be taken back.
#[derive(Debug)]
pub struct Failed {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
    /// Why.
    pub error: ApplyError,
}

/// How far the undo of one change got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStep {
    /// The old value is written and in force.
    Restored,
    /// The journal on disk says that the change is settled.
    Closed,
}

/// The outcome of one change's undo.
pub(crate) enum UndoOutcome {
    Restored { edited: bool },
    Conflict(String),
    Gone(String),
    Folded(u64, usize),
}

impl Guard {
    /// Takes back the selected changes, newest first. Nothing to take back is no error. A second undo has no further effect.
    pub fn undo(&mut self, filter: &Filter) -> UndoReport {
        self.undo_watched(filter, &mut |_| {})
    }

    /// [`Guard::undo`] with a call after each step, for progress and for tests that stop the process there.
    pub fn undo_watched(&mut self, filter: &Filter, checkpoint: &mut dyn FnMut(UndoStep)) -> UndoReport {
        let mut report =
            UndoReport { corrupt_lines: self.content.corrupt_lines.clone(), running: self.running(filter), ..UndoReport::default() };
        for (id, index) in self.selected_by(filter) {
            let Some(intent) = self.intent(id, index).cloned() else { continue };
            match self.take_back_one(id, index, &intent) {
                Ok(outcome) => {
                    if matches!(outcome, UndoOutcome::Restored { .. }) {
                        checkpoint(UndoStep::Restored);
                    }
                    self.close(id, index, &intent, outcome, &mut report);
                    checkpoint(UndoStep::Closed);
                }
                Err(error) => report.failed.push(Failed { id, place: intent.told_place(), change: intent.change, error }),
            }
        }
        self.clean_journal(&mut report);
        report
    }

    /// The selected sets, newest first.
    fn sets_by<'s>(&'s self, filter: &'s Filter) -> impl Iterator<Item = &'s Set> {
        self.content.ledger.sets.iter().rev().filter(move |set| match filter {
            Filter::All => true,
            Filter::Id(id) => set.id == *id,
            Filter::Owner(owner) => set.purpose.owner == *owner,
        })
    }

    /// The running processes for which selected changes are left alone.
    fn running(&self, filter: &Filter) -> Vec<Running> {
        self.sets_by(filter).filter_map(|set| self.kept_by(set)).collect()
    }

    /// The selected open changes, newest first, without those that are left alone for other processes that run.
    pub(crate) fn selected_by(&self, filter: &Filter) -> Vec<(u64, usize)> {
        let sets = self.sets_by(filter).filter(|set| self.kept_by(set).is_none());
        let open = sets.flat_map(|set| (0..set.changes.len()).rev().filter(|index| !set.closed[*index]).map(|index| (set.id, index)));
        open.collect()
    }

    pub(crate) fn intent(&self, id: u64, index: usize) -> Option<&Intent> {
        self.content.ledger.sets.iter().find(|set| set.id == id)?.changes.get(index)
    }

    /// The first later change of the set that is still in force, if it relies on this one.
    fn relying(&self, id: u64, index: usize, intent: &Intent) -> Option<ApplyError> {
        let set = self.content.ledger.sets.iter().find(|set| set.id == id).filter(|_| kinds::is_relied_on(&intent.change))?;
        let later = (index + 1..set.changes.len()).find(|later| !set.closed[*later])?;
        Some(ApplyError::ReliedOn { key: intent.change.key(), later: set.changes[later].change.key() })
    }

    fn take_back_one(&mut self, id: u64, index: usize, intent: &Intent) -> Result<UndoOutcome, ApplyError> {
        if let Some(waits) = self.relying(id, index, intent) {
            return Err(waits);
        }
        let gone = |why: &str| Ok(UndoOutcome::Gone(why.to_owned()));
        let set = self.content.ledger.sets.iter().find(|set| set.id == id);
        if set.is_some_and(|set| self.store.has_ended(set, &intent.change)) {
            return gone("a reboot since then ended it");
        }
        let setting = match kinds::open(&intent.change, &self.store.root) {
            Err(ApplyError::NetnsGone { .. }) => return gone("its network namespace no longer exists"),
            opened => opened?,
        };
        let state = setting.state(intent)?;
        if let State::Gone(why) = state {
            return gone(why);
        }
        if let Some(backup) = &intent.backup {
            let taken_back = self.take_back_file(id, index, intent, backup, setting.as_ref(), state);
            return taken_back.inspect(|_| Server::clear_leftovers(&backup.path));
        }
        if let Some((over_id, over_index, over)) = self.store.next_change_of_setting(&self.content, id, index, intent) {
            // If someone else set the value in between, the two changes are independent.
            let chained = setting.same(&over.was, intent.change.to());
            return Ok(if chained { UndoOutcome::Folded(over_id, over_index) } else { UndoOutcome::Conflict(over.was.clone()) });
        }
        match state {
            State::Ours | State::Edited => restore(setting.as_ref(), intent).map(|()| UndoOutcome::Restored { edited: false }),
            State::Other(found) => Ok(UndoOutcome::Conflict(found)),
            State::Old | State::Gone(_) => Ok(UndoOutcome::Restored { edited: false }),
        }
    }

    fn close(&mut self, id: u64, index: usize, intent: &Intent, outcome: UndoOutcome, report: &mut UndoReport) {
        let change = intent.change.clone();
        let restored = |change, edited| Restored { id, change, place: intent.told_place(), value: intent.was.clone(), edited };
        let (how, into) = match &outcome {
            // It stays pending until the user decides.
            UndoOutcome::Conflict(found) => return report.conflicts.push(Conflict::of(id, intent, found.clone())),
            UndoOutcome::Restored { .. } => (How::Restored, None),
            UndoOutcome::Gone(_) => (How::Gone, None),
            UndoOutcome::Folded(over, at) => (How::Folded, Some((*over, *at))),
        };
        match outcome {
            UndoOutcome::Restored { edited } => report.restored.push(restored(change, edited)),
            UndoOutcome::Folded(..) => report.folded.push(restored(change, false)),
            UndoOutcome::Gone(why) => report.gone.push(Gone { id, change, place: intent.told_place(), why }),
            UndoOutcome::Conflict(_) => {}
        }
        let record = Record::Closed { id, index, how, into };
        if let Err(error) = self.record(record.clone()) {
            // The rest of this undo relies on it, even if it could not be written.
            self.content.ledger.take(record);
            report.journal_error.get_or_insert(error);
        }
    }

    /// Empties the journal when nothing is pending.
    pub(crate) fn empty_if_done(&mut self) {
        if self.content.ledger.sets.is_empty() {
            // A journal that could not be emptied is longer than needed, not wrong.
            drop(self.store.journal.start_anew(self.content.ledger.next_id.max(1)));
        }
    }

    /// Empties the journal when nothing is pending, and renames a damaged one, so that it blocks nothing.
    fn clean_journal(&mut self, report: &mut UndoReport) {
        if !self.content.ledger.sets.is_empty() || report.journal_error.is_some() {
            return;
        }
        if self.content.corrupt_lines.is_empty() {
            if !report.is_empty() {
                self.empty_if_done();
            }
            return;
        }
        let next_id = self.content.ledger.next_id.max(1);
        match self.store.journal.set_aside(next_id) {
            Ok(path) => {
                report.set_aside = Some(path);
                self.content.corrupt_lines.clear();
                self.publish(true);
            }
            Err(error) => report.journal_error = Some(error),
        }
    }
}
