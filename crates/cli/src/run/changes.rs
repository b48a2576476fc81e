//! Applying and taking back changes: the wiring between the model's remedies and crate `remedy`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chokepoint_model::change::Change;
use chokepoint_model::report::Remedy;
use chokepoint_remedy::{Conflict, Consent, Filter, Forgotten, Guard, HostPending, Pending, Purpose, Restored, Store, UndoReport, Unread};

use crate::terminal::output;

/// The changes of one run, under the host's lock.
pub(crate) struct Changes {
    guard: Guard,
    /// The journal's number of each change in force, by its number in the session.
    applied: BTreeMap<u32, u64>,
}

/// What came of an undo, in words.
#[derive(Debug, Default)]
pub(crate) struct UndoOutcome {
    /// What was put back and verified.
    pub(crate) restored: Vec<String>,
    /// What lay below a later change, which now returns to the value before both.
    pub(crate) folded: Vec<String>,
    /// What needed no undo because it is gone.
    pub(crate) gone: Vec<String>,
    /// What the reload of a server put in force beside its old value.
    pub(crate) unread: Vec<String>,
    /// What could not be put back, and what was left alone because someone else changed it since.
    pub(crate) problems: Vec<String>,
    /// What was left alone.
    pub(crate) conflicts: Vec<Conflict>,
}

impl Changes {
    /// Takes the host's lock.
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { guard: store()?.lock()?, applied: BTreeMap::new() })
    }

    /// Applies a remedy's changes as one: all of them, in force, or none.
    pub(crate) fn apply(&mut self, number: u32, finding: &str, remedy: &Remedy, owner: &str, consent: &Consent) -> Result<()> {
        let purpose = Purpose { finding: finding.to_owned(), remedy: remedy.id.clone(), owner: owner.to_owned() };
        let applied = self.guard.apply_agreed(&remedy.change, &purpose, consent, &mut |_| {})?;
        self.applied.insert(number, applied.id);
        Ok(())
    }

    /// Takes one change back, whatever was applied after it. Where a later change lies over it, that one's undo returns to the value before
    /// both. Says what was done.
    pub(crate) fn take_back(&mut self, number: u32) -> Result<Vec<String>> {
        let id = *self.applied.get(&number).context("it is not in force")?;
        let filter = Filter::Id(id);
        reloaded_as_well(&self.guard, &filter);
        let outcome = UndoOutcome::of(self.guard.undo(&filter));
        if !outcome.problems.is_empty() {
            bail!(outcome.problems.join("; "));
        }
        self.applied.remove(&number);
        Ok(outcome.restored.into_iter().chain(outcome.folded).collect())
    }

    /// The changes of this run that are in force, in words.
    pub(crate) fn told(&self) -> Vec<String> {
        let own = |pending: &Pending| self.applied.values().any(|id| *id == pending.id);
        let pending = self.guard.pending().into_iter().filter(own);
        pending.flat_map(|set| set.changes).map(|applied| told(&applied.change)).collect()
    }

    /// Takes back everything, or everything of one owner ("diagnose", "lab:NAME").
    pub(crate) fn undo_all(owner: Option<&str>) -> Result<UndoOutcome> {
        let others = |pending: &Pending| owner.is_some_and(|owner| pending.purpose.owner != owner);
        if own_store()?.is_none() {
            return Ok(UndoOutcome::default());
        }
        // A journal that cannot be read whole is a case for the undo itself, which takes back what is readable.
        if pending().is_ok_and(|pending| pending.iter().all(others)) {
            return Ok(UndoOutcome::default());
        }
        let filter = owner.map_or(Filter::All, |owner| Filter::Owner(owner.to_owned()));
        let mut guard = store()?.lock()?;
        let unread = reloaded_as_well(&guard, &filter);
        Ok(UndoOutcome { unread, ..UndoOutcome::of(guard.undo(&filter)) })
    }
}

impl UndoOutcome {
    fn of(report: UndoReport) -> Self {
        let mut problems: Vec<String> = report.conflicts.iter().map(conflict).collect();
        problems.extend(report.failed.iter().map(|failed| format!("{}: {}", told(&failed.change), failed.error)));
        problems.extend(report.journal_error.iter().map(|error| format!("the journal could not be written: {error}")));
        problems.extend(report.corrupt_lines.iter().map(|line| format!("line {line} of the journal is damaged and was passed over")));
        problems.extend(report.set_aside.iter().map(|file| format!("the damaged journal was put aside as {}", file.display())));
        Self {
            restored: report.restored.iter().map(restored).collect(),
            folded: report
                .folded
                .iter()
                .map(|below| format!("{} was taken back below a later change of it", told(&below.change)))
                .collect(),
            conflicts: report.conflicts,
            gone: report.gone.iter().map(|gone| format!("{}: {}", told(&gone.change), gone.why)).collect(),
            unread: Vec::new(),
            problems,
        }
    }
}

/// Tells what an undo puts in force beside the old values, and gives it for the report of what was done.
fn reloaded_as_well(guard: &Guard, filter: &Filter) -> Vec<String> {
    let unread = guard.unread(filter);
    let told = |will: &str| -> Vec<String> {
        let one =
            |unread: &Unread| format!("the reload of {} {will} also what it had not read: {}", unread.server, unread.files.join(", "));
        unread.iter().map(one).collect()
    };
    told("puts in force").iter().for_each(|line| output::note(&format!("note: {line}")));
    told("put in force")
}

fn restored(restored: &Restored) -> String {
    let edited = if restored.edited { "; what someone else edited in the file stays, and a reload puts it in force as well" } else { "" };
    format!("{} is {} again{edited}", key_of(&restored.change), restored.value)
}

/// A change that was left alone, and what to do with it.
pub(crate) fn conflict(conflict: &Conflict) -> String {
    let (key, ours, found, was, id) = (key_of(&conflict.change), &conflict.ours, &conflict.found, &conflict.was, conflict.id);
    format!(
        "{key} was left alone: it is {found} now, and not {ours} as it was set; before that it was {was}. \
         Set it by hand, or leave it as it is: chokepoint undo --forget {id}"
    )
}

/// Changes that were applied and not taken back, by this or an earlier run of this user.
pub(crate) fn pending() -> Result<Vec<Pending>> {
    own_store()?.map_or_else(|| Ok(Vec::new()), |store| Ok(store.pending()?))
}

/// Those of them that someone else changed since.
pub(crate) fn conflicts() -> Result<Vec<Conflict>> {
    own_store()?.map_or_else(|| Ok(Vec::new()), |store| Ok(store.conflicts()?))
}

/// Takes the changes of one number out of the journal and leaves them as they are; says what is forgotten.
pub(crate) fn forget(id: u64) -> Result<Vec<Forgotten>> {
    let forgotten = store()?.lock()?.forget(id)?;
    if forgotten.is_empty() {
        bail!("no change has number {id}: `chokepoint undo --list` shows those that are applied");
    }
    Ok(forgotten)
}

/// What root applied on this host, for other users; nothing for root, who has it in the journal.
pub(crate) fn of_root() -> Result<HostPending> {
    match chokepoint_remedy::host_state_dir(euid(), |name| std::env::var_os(name)) {
        Some(dir) => Ok(HostPending::read(&dir, &boot_id()?)?),
        None => Ok(HostPending::default()),
    }
}

/// A change in words: "net.core.somaxconn = 1024 in web".
pub(crate) fn told(change: &Change) -> String {
    format!("{} = {} in {}", change.key(), change.to(), change.place())
}

fn key_of(change: &Change) -> String {
    format!("{} in {}", change.key(), change.place())
}

fn store() -> Result<Store> {
    own_store()?.context("the journal there is root's: run as root, or without CHOKEPOINT_STATE_DIR")
}

/// The store of this user; nothing where CHOKEPOINT_STATE_DIR names root's, which is closed to others.
fn own_store() -> Result<Option<Store>> {
    let env = |name: &str| std::env::var_os(name);
    let directory = chokepoint_remedy::default_state_dir(euid(), env)
        .context("there is no directory for the journal: set HOME, XDG_STATE_HOME or CHOKEPOINT_STATE_DIR")?;
    let host = chokepoint_remedy::host_state_dir(euid(), env);
    let is_roots = || std::fs::metadata(&directory).is_ok_and(|meta| meta.uid() == 0);
    if host.as_ref() == Some(&directory) && is_roots() {
        return Ok(None);
    }
    let store = Store::open(&directory, Path::new("/"), boot_id()?)?;
    Ok(Some(match host {
        Some(host) => store.beside_host(host),
        None => store,
    }))
}

fn boot_id() -> Result<String> {
    chokepoint_remedy::boot_id(Path::new("/")).context("the boot id cannot be read")
}

fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}
