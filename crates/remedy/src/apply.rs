//! Applying a set of changes: all of them, verified to be in force, or none.

use std::time::{SystemTime, UNIX_EPOCH};

use chokepoint_model::change::Change;

use crate::consent::Consent;
use crate::error::ApplyError;
use crate::process;
use crate::record::{AppliedChange, Backup, How, Intent, Purpose, Record};
use crate::setting::{ChangeContext, Setting, State, Toward, kinds};
use crate::store::Guard;

/// A set of changes that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its number, for [`Filter::Id`](crate::Filter::Id).
    pub id: u64,
    /// Its changes, in order.
    pub changes: Vec<AppliedChange>,
}

/// How far an [`apply`](Guard::apply) got. The number is the change's index in the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All settings were read and hold the values that the changes expect. Nothing is written yet.
    Read,
    /// The intent is on disk.
    Journalled,
    /// This change is written.
    Written(usize),
    /// This change was read back and is in force.
    Verified(usize),
    /// The journal on disk says that all are in force.
    Applied,
}

/// A setting to be changed, with the values to journal.
type OpenedSetting = (Box<dyn Setting>, Intent);

impl Guard {
    /// Applies a set of changes as one unit. `checkpoint` is called after each step, for progress and for tests that stop the process there.
    ///
    /// The intent with the old values is on disk before the first write. If a change fails, the earlier ones are taken back.
    ///
    /// # Errors
    /// [`ApplyError`]. Except for [`ApplyError::LeftBehind`], the host is then as it was.
    pub fn apply(&mut self, changes: &[Change], purpose: &Purpose, checkpoint: &mut dyn FnMut(Step)) -> Result<Applied, ApplyError> {
        self.apply_agreed(changes, purpose, &Consent::Nothing, checkpoint)
    }

    /// [`Guard::apply`] with the user's consent.
    ///
    /// # Errors
    /// As of [`Guard::apply`].
    pub fn apply_agreed(
        &mut self,
        changes: &[Change],
        purpose: &Purpose,
        consent: &Consent,
        checkpoint: &mut dyn FnMut(Step),
    ) -> Result<Applied, ApplyError> {
        self.store.refuse_corrupt(&self.content)?;
        self.make_appendable()?;
        let opened = self.read_all(changes, consent)?;
        checkpoint(Step::Read);

        self.claim(&purpose.owner, opened.iter().map(|(_, intent)| intent))?;
        let id = self.content.ledger.next_id.max(1);
        let intents: Vec<Intent> = opened.iter().map(|(_, intent)| intent.clone()).collect();
        self.record(Record::Intent {
            id,
            at_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            pid: std::process::id(),
            start_ticks: process::start_ticks(std::process::id()).unwrap_or(0),
            boot_id: self.store.boot_id.clone(),
            purpose: purpose.clone(),
            changes: intents,
        })?;
        checkpoint(Step::Journalled);

        for (index, (setting, intent)) in opened.iter().enumerate() {
            if let Err(cause) = apply_one(setting.as_ref(), intent, index, checkpoint) {
                return Err(self.roll_back(id, &opened[..=index], cause));
            }
        }
        if let Err(error) = self.record(Record::Applied { id }) {
            return Err(self.roll_back(id, &opened, error.into()));
        }
        checkpoint(Step::Applied);
        let done = |(_, intent): OpenedSetting| AppliedChange::of(&intent);
        Ok(Applied { id, changes: opened.into_iter().map(done).collect() })
    }

    /// Reads every setting. Refuses the set if one does not hold the expected value.
    fn read_all(&self, changes: &[Change], consent: &Consent) -> Result<Vec<OpenedSetting>, ApplyError> {
        let context = ChangeContext { consent, backups: self.backups() };
        let bad = |key: String, why: &str| ApplyError::BadChange { key, why: why.to_owned() };
        if changes.is_empty() {
            return Err(bad(String::new(), "the set of changes is empty"));
        }
        let mut opened: Vec<OpenedSetting> = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let key = change.key();
            if changes[..index].iter().any(|earlier| kinds::same_setting(earlier, change)) {
                return Err(bad(key, "it is in the set of changes twice"));
            }
            let setting = kinds::open(change, &self.store.root)?;
            setting.check(change.to())?;
            let found = setting.read()?;
            setting.check(&found.value)?;
            let busy = |intent: &Intent| match self.busy(intent) {
                Some(by) => Err(ApplyError::Busy { key: key.clone(), place: change.place().to_owned(), by }),
                None => Ok(()),
            };
            let mut intent =
                Intent { change: change.clone(), was: found.value.clone(), place: found.place, backup: None, restoring: false };
            busy(&intent)?;
            if let Some(id) = self.unfinished(change, found.place, setting.as_ref()) {
                return Err(ApplyError::Unfinished { key, id });
            }
            if !setting.same(&found.value, change.from()) {
                return Err(ApplyError::Changed { key, proposed_from: change.from().to_owned(), found: found.value });
            }
            let earlier: Vec<Intent> = opened.iter().map(|(_, intent)| intent.clone()).collect();
            intent.backup = setting.backup(change.to(), &earlier, &context)?;
            busy(&intent)?;
            opened.push((setting, intent));
        }
        Ok(opened)
    }

    /// The backups of the changes that are not taken back.
    pub(crate) fn backups(&self) -> Vec<&Backup> {
        let open = self.content.ledger.sets.iter().flat_map(|set| set.changes.iter().zip(&set.closed));
        open.filter(|(_, closed)| !**closed).filter_map(|(intent, _)| intent.backup.as_ref()).collect()
    }

    /// An interrupted set that may have changed this setting, so that nobody knows whose value it holds. A value that is neither the old nor the new
    /// one is somebody else's: that conflict stays pending and blocks nothing.
    fn unfinished(&self, change: &Change, place: Option<u64>, setting: &dyn Setting) -> Option<u64> {
        let sets = self.content.ledger.sets.iter().filter(|set| !set.applied && !self.store.has_ended(set, change));
        let mut open = sets.flat_map(|set| set.changes.iter().zip(&set.closed).map(move |(intent, closed)| (set.id, intent, closed)));
        let is_it = |intent: &Intent| {
            let same = kinds::same_setting(&intent.change, change) && intent.place == place;
            same && !matches!(setting.state(intent), Ok(State::Other(_)))
        };
        open.find(|(_, intent, closed)| !**closed && is_it(intent)).map(|(id, ..)| id)
    }

    /// Restores the settings of a failed set. Returns the error to report.
    fn roll_back(&mut self, id: u64, opened: &[OpenedSetting], cause: ApplyError) -> ApplyError {
        let mut left = Vec::new();
        let mut why = String::new();
        for (index, (setting, intent)) in opened.iter().enumerate().rev() {
            let last = index + 1 == opened.len();
            if !left.is_empty() && kinds::is_relied_on(&intent.change) {
                left.push(intent.change.key());
                continue;
            }
            self.restoring(id, index, intent);
            match put_back(setting.as_ref(), intent, &cause, last) {
                // If the journal cannot be written either, an undo finds the old value and has nothing to do.
                Ok(how) => drop(self.record(Record::Closed { id, index, how, into: None })),
                Err(error) => {
                    left.push(intent.change.key());
                    why = error.to_string();
                }
            }
        }
        if !left.is_empty() {
            return ApplyError::LeftBehind { cause: Box::new(cause), left, why };
        }
        self.close_unmade(id);
        cause
    }

    /// Closes the changes of a failed set that were never applied.
    fn close_unmade(&mut self, id: u64) {
        let Some(set) = self.content.ledger.sets.iter().find(|set| set.id == id) else { return };
        let open: Vec<usize> = set.closed.iter().enumerate().filter(|(_, closed)| !**closed).map(|(index, _)| index).collect();
        for index in open {
            drop(self.record(Record::Closed { id, index, how: How::TakenBack, into: None }));
        }
    }
}

/// Applies one change and reads it back.
fn apply_one(setting: &dyn Setting, intent: &Intent, index: usize, checkpoint: &mut dyn FnMut(Step)) -> Result<(), ApplyError> {
    let to = intent.change.to();
    setting.put(intent, Toward::New)?;
    checkpoint(Step::Written(index));
    let found = setting.read()?.value;
    if !setting.same(&found, to) {
        return Err(ApplyError::NotInForce { key: intent.change.key(), wanted: to.to_owned(), found });
    }
    checkpoint(Step::Verified(index));
    Ok(())
}

/// Restores one setting of a failed set. A third value is someone else's, unless our own write left it.
fn put_back(setting: &dyn Setting, intent: &Intent, cause: &ApplyError, last: bool) -> Result<How, ApplyError> {
    match setting.state(intent)? {
        State::Old => Ok(How::TakenBack),
        // If it cannot be read, it stays in the journal for an undo to report.
        State::Gone(_) => setting.read().map(|_| How::Gone),
        // A value that did not come into force came from our write.
        State::Other(_) if last && matches!(cause, ApplyError::NotInForce { .. }) => restore(setting, intent).map(|()| How::TakenBack),
        // It was never written, or was replaced at once.
        State::Other(_) if last => Ok(How::Conflict),
        // It was in force, and others may rely on the present value: a person decides.
        State::Other(found) => Err(ApplyError::SetByOthers { key: intent.change.key(), found }),
        State::Ours | State::Edited => restore(setting, intent).map(|()| How::TakenBack),
    }
}

/// Restores the old value and reads it back.
pub(crate) fn restore(setting: &dyn Setting, intent: &Intent) -> Result<(), ApplyError> {
    setting.put(intent, Toward::Old)?;
    let found = setting.read()?.value;
    if setting.same(&found, &intent.was) {
        return Ok(());
    }
    Err(ApplyError::NotInForce { key: intent.change.key(), wanted: intent.was.clone(), found })
}
