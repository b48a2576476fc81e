//! Taking back a change of a file over which later changes of the same file may lie: those are made again on the file without it. Where someone else
//! edited the file as well, the change alone is taken out of it.

use crate::apply::restore;
use crate::error::ApplyError;
use crate::record::{Backup, Intent, Print, Record};
use crate::server::Server;
use crate::setting::{self, Setting, State};
use crate::store::Guard;
use crate::undo::UndoOutcome;

/// A later change of the same file: its set, its place in it, and what the journal holds of it.
type Over = (u64, usize, Intent);

impl Guard {
    /// Takes back one change of a file, whatever of ours lies over it. What someone else edited since stays.
    pub(crate) fn take_back_file(
        &mut self,
        id: u64,
        index: usize,
        intent: &Intent,
        backup: &Backup,
        setting: &dyn Setting,
        state: State,
    ) -> Result<UndoOutcome, ApplyError> {
        let overs = self.overs(id, index, &backup.path);
        let Some((.., top)) = overs.last() else { return self.take_back_alone(id, index, intent, setting, state) };
        let server = Server::open(&intent.change)?;
        let now = server.file_now(&backup.path)?;
        if !is_chain(backup, &overs) || !top.backup.as_ref().is_some_and(|top| top.after.contains(&Print::of(&now))) {
            return match overs.iter().find(|(.., over)| setting::same_setting(&over.change, &intent.change)) {
                Some(over) => self.fold(intent, backup, over, &server),
                None => self.take_back_alone(id, index, intent, setting, state),
            };
        }
        self.restoring(id, index, intent);
        let (rebased, text) = rebase(intent, backup, &overs)?;
        for (id, index, intent) in &rebased {
            self.rebased(*id, *index, intent)?;
        }
        let covered = overs.iter().any(|(.., over)| setting::same_setting(&over.change, &intent.change));
        let put = if covered && text == now { Ok(()) } else { server.put_file(backup, &now, &text, (!covered).then(|| intent.before())) };
        if let Err(error) = put {
            // The change stays, and what lies over it lies over it again.
            for (id, index, intent) in &overs {
                self.rebased(*id, *index, intent)?;
            }
            return Err(error);
        }
        Ok(UndoOutcome::Restored { edited: false })
    }

    /// Takes back a change by what its file holds now.
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

    /// Leaves it to a later change of the same setting to return to the value before both, in a file that someone edited in between or since.
    fn fold(&mut self, intent: &Intent, backup: &Backup, (id, index, over): &Over, server: &Server) -> Result<UndoOutcome, ApplyError> {
        let (to, mut over) = (intent.change.to(), over.clone());
        if over.was != to {
            // A process ended just here before; or someone else set it between the two, and the later change has nothing of this one below it.
            return Ok(if over.was == intent.was { UndoOutcome::Restored { edited: false } } else { UndoOutcome::Conflict(over.was) });
        }
        over.inherit(intent);
        let Some(old) = over.backup.take() else { return Ok(UndoOutcome::Conflict(over.was)) };
        let without = |with: String| chokepoint_config::merge::take_out(&backup.before, &with, &old.before);
        let below = server.edit(&backup.path, &backup.before, to).ok().and_then(without);
        over.backup = Some(match below {
            Some(before) => {
                let after = Server::open(&over.change)?.edit(&old.path, &before, over.change.to())?;
                let prints = [&[Print::of(&chokepoint_config::text::encode(&after))], &old.after[..]].concat();
                Backup { before, after: prints, ..old }
            }
            // Without a print the old file is never put back whole, only the value.
            None => Backup { after: Vec::new(), ..old },
        });
        self.rebased(*id, *index, &over)?;
        Ok(UndoOutcome::Folded(*id, *index))
    }

    /// Notes that the old file is about to be put back. Where that cannot be written, the next undo may reload the server once less.
    pub(crate) fn restoring(&mut self, id: u64, index: usize, intent: &Intent) {
        if intent.backup.is_some() && !intent.restoring {
            drop(self.record(Record::Restoring { id, index }));
        }
    }

    fn rebased(&mut self, id: u64, index: usize, intent: &Intent) -> Result<(), ApplyError> {
        let Some(backup) = intent.backup.clone() else { return Ok(()) };
        Ok(self.record(Record::Rebased { id, index, was: intent.was.clone(), backup })?)
    }

    /// Open changes of the file that were made after this one, oldest first.
    fn overs(&self, id: u64, index: usize, path: &str) -> Vec<Over> {
        let all = self.content.ledger.sets.iter().flat_map(|set| set.changes.iter().enumerate().map(move |(at, other)| (set, at, other)));
        let later = all.filter(|(set, at, other)| {
            (set.id, *at) > (id, index) && !set.closed[*at] && other.backup.as_ref().is_some_and(|backup| backup.path == path)
        });
        later.map(|(set, at, other)| (set.id, at, other.clone())).collect()
    }
}

/// True where each change began with the file as the one before it left it: nobody else edited it in between.
fn is_chain(first: &Backup, overs: &[Over]) -> bool {
    let mut below = first;
    for backup in overs.iter().filter_map(|(.., over)| over.backup.as_ref()) {
        if !below.after.contains(&Print::of(&chokepoint_config::text::encode(&backup.before))) {
            return false;
        }
        below = backup;
    }
    true
}

/// The later changes as they are without this one, and the file's bytes with all of them.
fn rebase(intent: &Intent, backup: &Backup, overs: &[Over]) -> Result<(Vec<Over>, Vec<u8>), ApplyError> {
    let mut text = backup.before.clone();
    let mut rebased = Vec::new();
    let mut inherits = true;
    for (id, index, over) in overs {
        let Some(old) = &over.backup else { continue };
        let after = Server::open(&over.change)?.edit(&backup.path, &text, over.change.to())?;
        let mut prints = vec![Print::of(&chokepoint_config::text::encode(&after))];
        // Until the file is written it is as it was.
        prints.extend(old.after.iter().copied().take(1));
        let mut over = Intent { backup: Some(Backup { before: text, after: prints, ..old.clone() }), ..over.clone() };
        if inherits && setting::same_setting(&over.change, &intent.change) {
            over.inherit(intent);
            inherits = false;
        }
        rebased.push((*id, *index, over));
        text = after;
    }
    Ok((rebased, chokepoint_config::text::encode(&text)))
}
