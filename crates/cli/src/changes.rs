//! Applying and taking back changes: the wiring between the model's remedies and crate `remedy`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chokepoint_model::change::Change;
use chokepoint_model::report::Remedy;
use chokepoint_remedy::{Consent, Filter, Guard, Pending, Purpose, Store, UndoReport, Unread};

use crate::output;

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
    /// What needed no undo because it is gone.
    pub(crate) gone: Vec<String>,
    /// What the reload of a server put in force beside its old value.
    pub(crate) unread: Vec<String>,
    /// What could not be put back, and what was left alone because someone else changed it since.
    pub(crate) problems: Vec<String>,
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
    /// both.
    pub(crate) fn take_back(&mut self, number: u32) -> Result<()> {
        let id = *self.applied.get(&number).context("it is not in force")?;
        let filter = Filter::Id(id);
        reloaded_as_well(&self.guard, &filter);
        let outcome = UndoOutcome::of(self.guard.undo(&filter));
        if !outcome.problems.is_empty() {
            bail!(outcome.problems.join("; "));
        }
        self.applied.remove(&number);
        Ok(())
    }

    /// Takes back everything, or everything of one owner ("diagnose", "lab:NAME").
    pub(crate) fn undo_all(owner: Option<&str>) -> Result<UndoOutcome> {
        let others = |pending: &Pending| owner.is_some_and(|owner| pending.purpose.owner != owner);
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
        let mut problems: Vec<String> = (report.conflicts.iter())
            .map(|conflict| {
                let (key, ours, found, was) = (&conflict.key, &conflict.ours, &conflict.found, &conflict.was);
                format!("{key} was left alone: it is {found} now, and not {ours} as it was set; before that it was {was}")
            })
            .collect();
        problems.extend(report.failed.iter().map(|failed| format!("{}: {}", told(&failed.change), failed.error)));
        problems.extend(report.journal_error.iter().map(|error| format!("the journal could not be written: {error}")));
        problems.extend(report.corrupt_lines.iter().map(|line| format!("line {line} of the journal is damaged and was passed over")));
        problems.extend(report.set_aside.iter().map(|file| format!("the damaged journal was put aside as {}", file.display())));
        Self {
            restored: report.restored.iter().map(|restored| format!("{} is {} again", key_of(&restored.change), restored.value)).collect(),
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

/// Changes that were applied and not taken back, by this or an earlier run.
pub(crate) fn pending() -> Result<Vec<Pending>> {
    Ok(store()?.pending()?)
}

/// A change in words: "net.core.somaxconn = 1024 in web".
pub(crate) fn told(change: &Change) -> String {
    format!("{} = {} in {}", change.key(), change.to(), change.place())
}

fn key_of(change: &Change) -> String {
    format!("{} in {}", change.key(), change.place())
}

fn store() -> Result<Store> {
    let root = Path::new("/");
    let uid = rustix::process::geteuid().as_raw();
    let directory = chokepoint_remedy::default_state_dir(uid, |name| std::env::var_os(name))
        .context("there is no directory for the journal: set CHOKEPOINT_STATE_DIR")?;
    let boot_id = chokepoint_remedy::boot_id(root).context("the boot id cannot be read")?;
    Ok(Store::open(&directory, root, boot_id)?)
}
