//! `chokepoint undo`: takes back what was applied, and tells what an earlier run left behind.

use anyhow::Result;
use chokepoint_foreign::printable;
use chokepoint_remedy::PendingState;
use serde_json::json;

use crate::args::Undo;
use crate::changes::{Changes, pending, told};
use crate::{lab, output};

/// Takes everything back, or lists it; true where nothing is left to do.
pub(crate) fn run(args: &Undo) -> Result<bool> {
    if args.list {
        return list(args.json).map(|()| true);
    }
    let outcome = Changes::undo_all(None)?;
    if args.json {
        let report = json!({
            "schema": "chokepoint/undo/1", "restored": outcome.restored, "gone": outcome.gone, "reloaded_as_well": outcome.unread, "problems": outcome.problems,
        });
        output::print_json(&format!("{report:#}\n"))?;
    } else if outcome.restored.is_empty() && outcome.gone.is_empty() && outcome.problems.is_empty() {
        output::print("nothing is applied\n")?;
    } else {
        let told = outcome.restored.iter().chain(&outcome.gone).chain(&outcome.unread).chain(&outcome.problems);
        let lines: String = told.map(|line| format!("{}
", printable(line))).collect();
        output::print(&lines)?;
    }
    Ok(outcome.problems.is_empty())
}

fn list(json: bool) -> Result<()> {
    let pending = pending()?;
    if json {
        let one = |pending: &chokepoint_remedy::Pending| {
            json!({
                "id": pending.id, "state": word(pending.state), "at_s": pending.at_s, "pid": pending.pid,
                "finding": pending.purpose.finding, "remedy": pending.purpose.remedy, "owner": pending.purpose.owner,
                "changes": pending.changes.iter().map(|applied| json!({ "change": applied.change, "was": applied.was })).collect::<Vec<_>>(),
            })
        };
        let all: Vec<_> = pending.iter().map(one).collect();
        return output::print_json(&format!("{:#}\n", json!({ "schema": "chokepoint/pending/1", "pending": all })));
    }
    if pending.is_empty() {
        return output::print("nothing is applied\n");
    }
    let mut text = String::new();
    for set in pending {
        text.push_str(&format!("{}  {} for {} (pid {}, {})\n", set.id, set.purpose.remedy, set.purpose.finding, set.pid, word(set.state)));
        for applied in &set.changes {
            text.push_str(&format!("   {} (was {})\n", printable(&told(&applied.change)), printable(&applied.was)));
        }
    }
    output::print(&text)
}

fn word(state: PendingState) -> &'static str {
    match state {
        PendingState::Unfinished => "unfinished",
        PendingState::Applied => "applied",
        PendingState::Rebooted => "ended with an earlier boot",
    }
}

/// Tells on stderr what earlier runs left behind; changes nothing.
pub(crate) fn report_leftovers() {
    match pending() {
        Ok(pending) => {
            for set in pending {
                let changes: Vec<String> = set.changes.iter().map(|applied| printable(&told(&applied.change)).into_owned()).collect();
                let what = format!("{} ({})", changes.join(", "), word(set.state));
                output::note(&format!("note: an earlier run left {what}: chokepoint undo takes it back"));
            }
        }
        Err(error) => output::note(&format!("note: what earlier runs left behind cannot be told: {error:#}")),
    }
    for left in lab::abandoned() {
        output::note(&format!("note: {left}"));
    }
}
