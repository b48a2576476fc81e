//! Taking back a change of a file that later changes have edited too: those are applied again to the file without it. If someone else has edited the
//! file, only the lines of the change are removed.

use crate::apply::restore;
use crate::error::ApplyError;
use crate::record::{Backup, Checksum, Intent, Record};
use crate::server::configuration::Server;
use crate::setting::{Setting, State, kinds};
use crate::store::Guard;
use crate::undo::UndoOutcome;

/// A later change of the same file: its set, its index, and its intent.
type LaterChange = (u64, usize, Intent);

impl Guard {
    /// Takes back one change of a file, whether or not later changes follow. Edits of others stay.
    pub(crate) fn take_back_file(
        &mut self,
        id: u64,
        index: usize,
        intent: &Intent,
        backup: &Backup,
        setting: &dyn Setting,
        state: State,
    ) -> Result<UndoOutcome, ApplyError> {
        let later = self.later_changes(id, index, &backup.path);
        let Some((.., top)) = later.last() else { return self.take_back_alone(id, index, intent, setting, state) };
        let server = Server::open(&intent.change)?;
        let now = server.file_now(&backup.path)?;
        if !is_chain(backup, &later) || !top.backup.as_ref().is_some_and(|top| top.after.contains(&Checksum::of(&now))) {
            return match later.iter().find(|(.., over)| kinds::same_setting(&over.change, &intent.change)) {
                Some(over) => self.fold(intent, backup, over, &server),
                None => self.take_back_alone(id, index, intent, setting, state),
            };
        }
        self.restoring(id, index, intent);
        let (rebased, text) = rebase(intent, backup, &later)?;
        for (id, index, intent) in &rebased {
            self.rebased(*id, *index, intent)?;
        }
        let covered = later.iter().any(|(.., over)| kinds::same_setting(&over.change, &intent.change));
        let put = if covered && text == now { Ok(()) } else { server.put_file(backup, &now, &text, (!covered).then(|| intent.before())) };
        if let Err(error) = put {
            // The change stays, and the later changes are as before.
            for (id, index, intent) in &later {
                self.rebased(*id, *index, intent)?;
            }
            return Err(error);
        }
        Ok(UndoOutcome::Restored { edited: false })
    }

    /// Takes back a change without later changes.
    fn take_back_alone(
        &mut self,
        id: u64,
        index: usize,
        intent: &Intent,
        setting: &dyn Setting,
        state: State,
    ) -> Result<UndoOutcome, ApplyError> {
        let edited = state == State::Edited;
        match state {
            State::Ours | State::Edited => {
                self.restoring(id, index, intent);
                restore(setting, intent).map(|()| UndoOutcome::Restored { edited })
            }
            State::Other(found) => Ok(UndoOutcome::Conflict(found)),
            State::Old | State::Gone(_) => Ok(UndoOutcome::Restored { edited }),
        }
    }

    /// Hands the old value over to a later change of the same setting, in a file that someone else has edited.
    fn fold(
        &mut self,
        intent: &Intent,
        backup: &Backup,
        (id, index, over): &LaterChange,
        server: &Server,
    ) -> Result<UndoOutcome, ApplyError> {
        let (to, mut over) = (intent.change.to(), over.clone());
        if over.was != to {
            // An earlier undo was interrupted here; or someone else set the value between the two changes, which are then independent.
            return Ok(if over.was == intent.was { UndoOutcome::Restored { edited: false } } else { UndoOutcome::Conflict(over.was) });
        }
        over.inherit(intent);
        let Some(old) = over.backup.take() else { return Ok(UndoOutcome::Conflict(over.was)) };
        let without = |with: String| chokepoint_config::merge::take_out(&backup.before, &with, &old.before);
        let below = server.edit(&backup.path, &backup.before, to).ok().and_then(without);
        over.backup = Some(match below {
            Some(before) => {
                let after = Server::open(&over.change)?.edit(&old.path, &before, over.change.to())?;
                let checksums = [&[Checksum::of(&chokepoint_config::text::encode(&after))], &old.after[..]].concat();
                Backup { before, after: checksums, ..old }
            }
            // Without a checksum only the value is restored, never the whole file.
            None => Backup { after: Vec::new(), ..old },
        });
        self.rebased(*id, *index, &over)?;
        Ok(UndoOutcome::Folded(*id, *index))
    }

    /// Journals that the old file is about to be restored. If that cannot be written, the next undo may miss a reload.
    pub(crate) fn restoring(&mut self, id: u64, index: usize, intent: &Intent) {
        if intent.backup.is_some() && !intent.restoring {
            drop(self.record(Record::Restoring { id, index }));
        }
    }

    fn rebased(&mut self, id: u64, index: usize, intent: &Intent) -> Result<(), ApplyError> {
        let Some(backup) = intent.backup.clone() else { return Ok(()) };
        Ok(self.record(Record::Rebased { id, index, was: intent.was.clone(), backup })?)
    }

    /// Later open changes of the file, oldest first.
    fn later_changes(&self, id: u64, index: usize, path: &str) -> Vec<LaterChange> {
        let all = self.content.ledger.sets.iter().flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
        let later = all.filter(|(set, at, other)| {
            (set.id, *at) > (id, index) && !set.closed[*at] && other.backup.as_ref().is_some_and(|backup| backup.path == path)
        });
        later.map(|(set, at, other)| (set.id, at, other.clone())).collect()
    }
}

/// True where each change began with the file that the previous one left: nobody else edited it in between.
fn is_chain(first: &Backup, later: &[LaterChange]) -> bool {
    let mut below = first;
    for backup in later.iter().filter_map(|(.., over)| over.backup.as_ref()) {
        if !below.after.contains(&Checksum::of(&chokepoint_config::text::encode(&backup.before))) {
            return false;
        }
        below = backup;
    }
    true
}

/// The later changes without this one, and the file's bytes with all of them.
fn rebase(intent: &Intent, backup: &Backup, later: &[LaterChange]) -> Result<(Vec<LaterChange>, Vec<u8>), ApplyError> {
    let mut text = backup.before.clone();
    let mut rebased = Vec::new();
    let mut inherits = true;
    for (id, index, over) in later {
        let Some(old) = &over.backup else { continue };
        let after = Server::open(&over.change)?.edit(&backup.path, &text, over.change.to())?;
        let mut checksums = vec![Checksum::of(&chokepoint_config::text::encode(&after))];
        // Until the file is written, the old checksum holds.
        checksums.extend(old.after.iter().copied().take(1));
        let mut over = Intent { backup: Some(Backup { before: text, after: checksums, ..old.clone() }), ..over.clone() };
        if inherits && kinds::same_setting(&over.change, &intent.change) {
            over.inherit(intent);
            inherits = false;
        }
        rebased.push((*id, *index, over));
        text = after;
    }
    Ok((rebased, chokepoint_config::text::encode(&text)))
}
