//! Changes whose settings someone else has changed since: listing them, and forgetting them at the user's request.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chokepoint_model::change::Change;

use crate::error::RemedyError;
use crate::journal::Content;
use crate::record::{Checksum, How, Intent, Record, Set};
use crate::setting::{State, kinds};
use crate::store::{Guard, Store};
use crate::undo::Conflict;

/// A change that will not be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
    /// The value before it.
    pub was: String,
    /// A copy of the file before the change, for a setting in a file.
    pub copy: Option<PathBuf>,
}

impl Store {
    /// Pending changes that an undo would leave alone now, because someone else changed them since. Reads the settings and changes nothing. Settings
    /// that cannot be read are left out; an undo reports why.
    ///
    /// # Errors
    /// The journal cannot be read, or is damaged before its last line.
    pub fn conflicts(&self) -> Result<Vec<Conflict>, RemedyError> {
        let content = self.journal.read()?;
        self.refuse_corrupt(&content)?;
        let open = |set: &Set| (0..set.changes.len()).filter(|index| !set.closed[*index]).collect::<Vec<_>>();
        let all = content.ledger.sets.iter().flat_map(|set| open(set).into_iter().map(move |index| (set, index)));
        let conflict = |(set, index): (&Set, usize)| {
            let intent = &set.changes[index];
            self.value_of_others(&content, set, index, intent).map(|found| Conflict::of(set.id, intent, found))
        };
        Ok(all.filter_map(conflict).collect())
    }

    /// The value that someone else set.
    fn value_of_others(&self, content: &Content, set: &Set, index: usize, intent: &Intent) -> Option<String> {
        if self.has_ended(set, &intent.change) {
            return None;
        }
        let setting = kinds::open(&intent.change, &self.root).ok()?;
        if let Some((.., over)) = self.next_change_of_setting(content, set.id, index, intent) {
            return (!setting.same(&over.was, intent.change.to())).then(|| over.was.clone());
        }
        match setting.state(intent).ok()? {
            State::Other(found) if !was_left_by_later_change(content, set.id, index, intent) => Some(found),
            _ => None,
        }
    }

    /// The next later open change of the same setting.
    pub(crate) fn next_change_of_setting<'c>(
        &self,
        content: &'c Content,
        id: u64,
        index: usize,
        intent: &Intent,
    ) -> Option<(u64, usize, &'c Intent)> {
        let sets = content.ledger.sets.iter().filter(|set| !self.has_ended(set, &intent.change));
        let mut later = sets.flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
        let is_it = |set: &Set, at: usize, other: &Intent| {
            (set.id, at) > (id, index)
                && !set.closed[at]
                && kinds::same_setting(&other.change, &intent.change)
                && other.place == intent.place
        };
        later.find(|(set, at, other)| is_it(set, *at, other)).map(|(set, at, other)| (set.id, at, other))
    }
}

/// True where a later change of ours left the file as it is: nobody else edited it.
fn was_left_by_later_change(content: &Content, id: u64, index: usize, intent: &Intent) -> bool {
    let Some(backup) = &intent.backup else { return false };
    let now = crate::server::read_file(Path::new(&backup.path)).map(|bytes| Checksum::of(&bytes));
    let later = content.ledger.sets.iter().flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
    let mut left =
        later.filter(|(set, at, _)| (set.id, *at) > (id, index) && !set.closed[*at]).filter_map(|(.., other)| other.backup.as_ref());
    now.is_ok_and(|now| left.any(|other| other.path == backup.path && other.after.contains(&now)))
}

impl Guard {
    /// Removes the changes of one set from the journal and leaves their settings as they are. A file's content before its change is saved beside the
    /// journal, which held the only copy. Empty where there is no such set.
    ///
    /// # Errors
    /// The journal or a copy cannot be written. Changes not forgotten by then stay pending.
    pub fn forget(&mut self, id: u64) -> Result<Vec<Forgotten>, RemedyError> {
        self.store.refuse_corrupt(&self.content)?;
        let Some(set) = self.content.ledger.sets.iter().find(|set| set.id == id).cloned() else { return Ok(Vec::new()) };
        if let Some(by) = self.owner_of(&set) {
            return Err(RemedyError::Running(by));
        }
        let mut forgotten = Vec::new();
        for (index, intent) in set.changes.iter().enumerate().filter(|(index, _)| !set.closed[*index]) {
            let copy = match &intent.backup {
                Some(backup) => {
                    let path = self.store.journal.beside(&format!("forgotten-{id}-{}", index + 1));
                    write_copy(&path, &chokepoint_config::text::encode(&backup.before))?;
                    Some(path)
                }
                None => None,
            };
            self.record(Record::Closed { id, index, how: How::Forgotten, into: None })?;
            forgotten.push(Forgotten { id, change: intent.change.clone(), place: intent.told_place(), was: intent.was.clone(), copy });
        }
        self.empty_if_done();
        Ok(forgotten)
    }
}

/// Writes a copy that only its owner may read, since configuration may hold secrets. Replaces one left by an interrupted run.
fn write_copy(path: &Path, bytes: &[u8]) -> Result<(), RemedyError> {
    let failed = |error| RemedyError::io("write", path, error);
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}
