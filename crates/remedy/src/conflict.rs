//! Changes that somebody else changed again: which they are, without touching anything, and how the user has done with one.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chokepoint_model::change::Change;

use crate::error::RemedyError;
use crate::journal::Content;
use crate::record::{How, Intent, Print, Record, Set};
use crate::setting::{self, State};
use crate::store::{Guard, Store};
use crate::undo::Conflict;

/// A change that is no longer to be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// Number of its set.
    pub id: u64,
    /// The change.
    pub change: Change,
    /// The value before it.
    pub was: String,
    /// Where the file as it was before the change is kept, for a setting in a file.
    pub copy: Option<PathBuf>,
}

impl Store {
    /// Pending changes that an undo would leave alone now, because someone else changed them since. Reads the settings and changes nothing. What
    /// cannot be read is none: an undo tells why.
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
            self.set_by_others(&content, set, index, intent).map(|found| Conflict::of(set.id, intent, found))
        };
        Ok(all.filter_map(conflict).collect())
    }

    /// What a setting holds that someone else set.
    fn set_by_others(&self, content: &Content, set: &Set, index: usize, intent: &Intent) -> Option<String> {
        if self.is_over(set, &intent.change) {
            return None;
        }
        let setting = setting::open(&intent.change, &self.root).ok()?;
        if let Some((.., over)) = self.over(content, set.id, index, intent) {
            return (!setting.same(&over.was, intent.change.to())).then(|| over.was.clone());
        }
        match setting.state(intent).ok()? {
            State::Other(found) if !is_below(content, set.id, index, intent) => Some(found),
            _ => None,
        }
    }

    /// The next later open change of the same setting.
    pub(crate) fn over<'c>(&self, content: &'c Content, id: u64, index: usize, intent: &Intent) -> Option<(u64, usize, &'c Intent)> {
        let sets = content.ledger.sets.iter().filter(|set| !self.is_over(set, &intent.change));
        let mut later = sets.flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
        let is_it = |set: &Set, at: usize, other: &Intent| {
            (set.id, at) > (id, index)
                && !set.closed[at]
                && setting::same_setting(&other.change, &intent.change)
                && other.place == intent.place
        };
        later.find(|(set, at, other)| is_it(set, *at, other)).map(|(set, at, other)| (set.id, at, other))
    }
}

/// True where the file is as a later change of ours left it: nobody else edited it, and the two can be told apart.
fn is_below(content: &Content, id: u64, index: usize, intent: &Intent) -> bool {
    let Some(backup) = &intent.backup else { return false };
    let now = fs::read(&backup.path).map(|bytes| Print::of(&bytes));
    let later = content.ledger.sets.iter().flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
    let mut left =
        later.filter(|(set, at, _)| (set.id, *at) > (id, index) && !set.closed[*at]).filter_map(|(.., other)| other.backup.as_ref());
    now.is_ok_and(|now| left.any(|other| other.path == backup.path && other.after.contains(&now)))
}

impl Guard {
    /// Takes the changes of one set out of the journal and leaves their settings as they are. What a file held before its change is kept beside the
    /// journal, since that was the only copy. Gives nothing where there is no such set.
    ///
    /// # Errors
    /// The journal or a copy cannot be written; what was not forgotten by then stays pending.
    pub fn forget(&mut self, id: u64) -> Result<Vec<Forgotten>, RemedyError> {
        self.store.refuse_corrupt(&self.content)?;
        let Some(set) = self.content.ledger.sets.iter().find(|set| set.id == id).cloned() else { return Ok(Vec::new()) };
        let mut forgotten = Vec::new();
        for (index, intent) in set.changes.iter().enumerate().filter(|(index, _)| !set.closed[*index]) {
            let copy = match &intent.backup {
                Some(backup) => {
                    let path = self.store.journal.beside(&format!("forgotten-{id}-{}", index + 1));
                    keep(&path, &chokepoint_config::text::encode(&backup.before))?;
                    Some(path)
                }
                None => None,
            };
            self.record(Record::Closed { id, index, how: How::Forgotten, into: None })?;
            forgotten.push(Forgotten { id, change: intent.change.clone(), was: intent.was.clone(), copy });
        }
        self.empty_if_done();
        Ok(forgotten)
    }
}

/// Writes a copy that its owner alone may read; configuration may hold secrets. One of the same name was left by a run that ended before its end.
fn keep(path: &Path, bytes: &[u8]) -> Result<(), RemedyError> {
    let failed = |error| RemedyError::io("write", path, error);
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}
