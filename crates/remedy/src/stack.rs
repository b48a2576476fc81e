//! Taking back a change of a file over which later changes of the same file may lie: those are made again on the file without it.

use crate::apply::restore;
use crate::error::ApplyError;
use crate::record::{Backup, Intent, Print, Record};
use crate::server::Server;
use crate::setting::{self, Setting, State};
use crate::store::Guard;
use crate::undo::Outcome;

/// A later change of the same file: its set, its place in it, and what the journal holds of it.
type Over = (u64, usize, Intent);

impl Guard {
    /// Takes back one change of a file, whatever of ours lies over it. A file that someone else edited since is left alone.
    pub(crate) fn take_back_file(
        &mut self,
        id: u64,
        index: usize,
        intent: &Intent,
        backup: &Backup,
        setting: &dyn Setting,
        state: State,
    ) -> Result<Outcome, ApplyError> {
        let overs = self.overs(id, index, &backup.path);
        let Some((.., top)) = overs.last() else {
            return match state {
                State::Ours => restore(setting, intent).map(|()| Outcome::Restored),
                State::Other(found) => Ok(Outcome::Conflict(found)),
                State::Old | State::Gone(_) => Ok(Outcome::Restored),
            };
        };
        let server = Server::open(&intent.change)?;
        let now = server.file_now(&backup.path)?;
        if !is_chain(backup, &overs) || !top.backup.as_ref().is_some_and(|top| top.after.contains(&Print::of(&now))) {
            return Ok(Outcome::Conflict(setting.read()?.value));
        }
        let (rebased, text) = rebase(intent, backup, &overs)?;
        for (id, index, intent) in &rebased {
            self.rebased(*id, *index, intent)?;
        }
        let covered = overs.iter().any(|(.., over)| setting::same_setting(&over.change, &intent.change));
        let put = if covered && text == now { Ok(()) } else { server.put_file(backup, &now, &text, (!covered).then_some(&intent.was)) };
        if let Err(error) = put {
            // The change stays, and what lies over it lies over it again.
            for (id, index, intent) in &overs {
                self.rebased(*id, *index, intent)?;
            }
            return Err(error);
        }
        Ok(Outcome::Restored)
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
        let mut over = over.clone();
        if inherits && setting::same_setting(&over.change, &intent.change) {
            over.was.clone_from(&intent.was);
            inherits = false;
        }
        over.backup = Some(Backup { before: text, after: prints, ..old.clone() });
        rebased.push((*id, *index, over));
        text = after;
    }
    Ok((rebased, chokepoint_config::text::encode(&text)))
}
