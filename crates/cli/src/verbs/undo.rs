//! `chokepoint undo`: takes back what was applied, and reports what an earlier run left behind.

use anyhow::Result;
use chokepoint_foreign::printable;
use chokepoint_remedy::{Conflict, HostPending, HostSet, Pending, PendingState};
use serde_json::{Value, json};

use crate::args::Undo;
use crate::run::changes::{self, Changes, UndoOutcome, in_words};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::verbs::lab;

/// Takes back, lists or forgets changes; true if nothing is left to do.
pub(crate) fn run(args: &Undo, interrupt: &Interrupt) -> Result<bool> {
    if let Some(id) = args.forget {
        return forget(id, args.json).map(|()| true);
    }
    if args.list {
        return list(args.json).map(|()| true);
    }
    let of_root = changes::of_root();
    // A second Ctrl-C must not end the program with some changes still applied.
    interrupt.set_unproven(changes::pending().map_or(0, |pending| pending.iter().map(|set| set.changes.len()).sum()));
    let outcome =
        Changes::undo_all(None).unwrap_or_else(|error| UndoOutcome { problems: vec![output::once(&error)], ..UndoOutcome::default() });
    interrupt.set_unproven(0);
    let is_of_root = of_root.as_ref().map_or(true, HostPending::is_in_force);
    if args.json {
        let report = json!({
            "schema": "chokepoint/undo/1", "restored": outcome.restored, "gone": outcome.gone, "reloaded_as_well": outcome.unread,
            "problems": outcome.problems, "conflicts": outcome.conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
            "host": host_json(&of_root?),
        });
        output::print_json(&format!("{report:#}\n"))?;
    } else {
        let own = outcome.restored.iter().chain(&outcome.gone).chain(&outcome.unread).chain(&outcome.problems);
        let lines: String = own.cloned().chain(root_in_words(&of_root)).map(|line| printable(&line).into_owned() + "\n").collect();
        output::print(if lines.is_empty() { "nothing is applied\n" } else { &lines })?;
    }
    Ok(outcome.problems.is_empty() && !is_of_root)
}

fn forget(id: u64, json: bool) -> Result<()> {
    let forgotten = changes::forget(id)?;
    if json {
        let one = |one: &chokepoint_remedy::Forgotten| json!({ "id": one.id, "change": one.change, "place": one.place, "was": one.was, "copy": one.copy });
        let report = json!({ "schema": "chokepoint/forgotten/1", "forgotten": forgotten.iter().map(one).collect::<Vec<_>>() });
        return output::print_json(&format!("{report:#}\n"));
    }
    let line = |one: &chokepoint_remedy::Forgotten| {
        let copy =
            one.copy.as_ref().map_or(String::new(), |path| format!("; a copy of the file before the change is in {}", path.display()));
        let (key, place, to) = (one.change.key(), &one.place, one.change.to());
        format!("forgotten: {key} in {place} stays as it is; it was set to {to}, and was {} before{copy}\n", one.was)
    };
    output::print(&forgotten.iter().map(line).collect::<String>())
}

fn list(json: bool) -> Result<()> {
    let (pending, of_root) = (changes::pending()?, changes::of_root());
    let conflicts = changes::conflicts()?;
    let of = |set: &Pending, change: &chokepoint_model::change::Change| {
        conflicts.iter().find(|conflict| conflict.id == set.id && conflict.change == *change)
    };
    if json {
        let one = |set: &Pending| {
            let change = |applied: &chokepoint_remedy::AppliedChange| {
                let found = of(set, &applied.change).map(|conflict| &conflict.found);
                json!({ "change": applied.change, "place": applied.place, "was": applied.was, "conflict": found })
            };
            json!({
                "id": set.id, "state": word(set.state), "at_s": set.at_s, "pid": set.pid, "running": set.alive,
                "finding": set.purpose.finding, "remedy": set.purpose.remedy, "owner": set.purpose.owner,
                "changes": set.changes.iter().map(change).collect::<Vec<_>>(),
            })
        };
        let all: Vec<_> = pending.iter().map(one).collect();
        let report = json!({
            "schema": "chokepoint/pending/1", "pending": all, "conflicts": conflicts.iter().map(conflict_json).collect::<Vec<_>>(),
            "host": host_json(&of_root?),
        });
        return output::print_json(&format!("{report:#}\n"));
    }
    let mut text = String::new();
    for set in &pending {
        text.push_str(&format!("{}  {} for {} (pid {}, {})\n", set.id, set.purpose.remedy, set.purpose.finding, set.pid, stands(set)));
        for applied in &set.changes {
            text.push_str(&format!("   {} (was {})\n", printable(&in_words(&applied.change, &applied.place)), printable(&applied.was)));
            if let Some(conflict) = of(set, &applied.change) {
                text.push_str(&format!("   conflict: {}\n", printable(&changes::conflict(conflict))));
            }
        }
    }
    for line in root_in_words(&of_root) {
        text.push_str(&format!("{line}\n"));
    }
    output::print(if text.is_empty() { "nothing is applied\n" } else { &text })
}

/// How far a set got, and whether its process still runs.
fn stands(set: &Pending) -> String {
    if set.alive { format!("{}; {} runs", word(set.state), set.purpose.owner) } else { word(set.state).to_owned() }
}

fn word(state: PendingState) -> &'static str {
    match state {
        PendingState::Unfinished => "unfinished",
        PendingState::Applied => "applied",
        PendingState::Rebooted => "ended with an earlier boot",
    }
}

fn conflict_json(conflict: &Conflict) -> Value {
    json!({
        "id": conflict.id, "key": conflict.key, "place": conflict.place,
        "ours": conflict.ours, "was": conflict.was, "found": conflict.found,
    })
}

fn host_json(of_root: &HostPending) -> Value {
    let one = |set: &HostSet| {
        let state = word(if set.applied { PendingState::Applied } else { PendingState::Unfinished });
        let change = |change: &chokepoint_remedy::HostChange| json!({ "key": change.key, "place": change.place, "was": change.was, "to": change.to });
        json!({
            "id": set.id, "state": state, "at_s": set.at_s, "pid": set.pid, "start_ticks": set.start_ticks,
            "finding": set.finding, "remedy": set.remedy, "owner": set.owner,
            "changes": set.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    of_root.sets.iter().map(one).collect()
}

/// What root applied, in words, for other users.
fn root_in_words(of_root: &Result<HostPending>) -> Vec<String> {
    let of_root = match of_root {
        Ok(of_root) => of_root,
        Err(error) => return vec![output::once(error)],
    };
    let changes = || of_root.sets.iter().flat_map(|set| &set.changes);
    let applied: Vec<String> =
        changes().map(|change| format!("{} = {} in {} (was {})", change.key, change.to, change.place, change.was)).collect();
    let mut lines = Vec::new();
    if !applied.is_empty() {
        let plural = if applied.len() == 1 { "change" } else { "changes" };
        lines.push(format!("root applied {} {plural} on this host: {}; run `sudo chokepoint undo`", applied.len(), applied.join(", ")));
    }
    if let Some(pid) = of_root.held_by {
        lines.push(format!("a chokepoint of root (process {pid}) is changing this host right now"));
    }
    if let Some(pid) = of_root.broken_off {
        lines.push(format!("a chokepoint of root (process {pid}) ended while it changed this host: run `sudo chokepoint undo`"));
    }
    if of_root.damaged {
        lines.push("root's journal is damaged and may contain more changes: run `sudo chokepoint undo`".to_owned());
    }
    lines
}

/// Notes on stderr what earlier runs left behind; changes nothing.
pub(crate) fn report_leftovers() {
    match (changes::pending(), changes::conflicts()) {
        (Ok(pending), conflicts) => {
            let conflicts = conflicts.unwrap_or_default();
            for set in pending {
                let changes: Vec<String> =
                    set.changes.iter().map(|applied| printable(&in_words(&applied.change, &applied.place)).into_owned()).collect();
                let (changes, pid) = (changes.join(", "), set.pid);
                output::note(&match set.alive {
                    true => format!(
                        "note: chokepoint with process id {pid} is running and has set {changes}: nothing else is changed there meanwhile"
                    ),
                    false => format!("note: an earlier run left {changes} ({}): `chokepoint undo` takes it back", word(set.state)),
                });
                for conflict in conflicts.iter().filter(|conflict| conflict.id == set.id) {
                    output::note(&format!("note: {}", changes::conflict(conflict)));
                }
            }
        }
        (Err(error), _) => output::note(&format!("note: cannot check whether earlier runs left changes: {}", output::once(&error))),
    }
    for line in root_in_words(&changes::of_root()) {
        output::note(&format!("note: {line}"));
    }
    for left in lab::abandoned() {
        output::note(&format!("note: {left}"));
    }
}
