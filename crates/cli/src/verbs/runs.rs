//! `chokepoint runs`: lists, shows, compares, exports and removes kept runs.

mod export;
mod removal;

use anyhow::{Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_runs::comparison::{self, Chosen, Comparison};
use chokepoint_runs::{Filter, Run, State, Store, Summary};
use serde_json::{Value, json};

use crate::args::{Compare, List, RunsVerb, Show};
use crate::report::text::runs as text;
use crate::run::keeping;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// Name and version of the JSON form.
const SCHEMA: &str = "chokepoint/runs/1";

/// Runs the verb.
pub(crate) fn run(verb: &RunsVerb, words: &Catalogue, interrupt: &Interrupt) -> Result<()> {
    let store = Store::open_existing(&keeping::directory(words)?)?;
    match verb {
        RunsVerb::List(args) => list(args, store.as_ref(), words),
        RunsVerb::Show(args) => show(args, store.as_ref(), words),
        RunsVerb::Compare(args) => compare(args, store.as_ref(), words),
        RunsVerb::Export(args) => export::run(args, store.as_ref(), words),
        RunsVerb::Rm(args) => removal::run(args, store, words, interrupt),
    }
}

fn print_json(document: &Value) -> Result<()> {
    output::print_json(&format!("{document:#}\n"))
}

fn list(args: &List, store: Option<&Store>, words: &Catalogue) -> Result<()> {
    let filter = Filter { kind: args.kind.clone(), target_part: args.target.clone(), limit: Some(args.number), ..Filter::default() };
    let runs = store.map(|store| store.list(&filter)).transpose()?.unwrap_or_default();
    if args.json {
        return print_json(&json!({ "schema": SCHEMA, "runs": runs }));
    }
    let is_filtered = args.kind.is_some() || args.target.is_some();
    output::print_painted(&text::list(&runs, is_filtered, &output::style(), words))
}

fn show(args: &Show, store: Option<&Store>, words: &Catalogue) -> Result<()> {
    let (store, run) = named(store, &args.run, words)?;
    if args.document {
        return output::print_json(&format!("{}\n", keeping::parts(&run.run.document).0));
    }
    let trials = store.trials(run.id)?.len() as u64;
    if args.json {
        return print_json(&json!({ "schema": SCHEMA, "run": run_json(&run, trials) }));
    }
    output::print_painted(&text::show(&run, trials, &output::style(), words))
}

/// A run without its document.
fn run_json(run: &Run, trials: u64) -> Value {
    let Run { id, run } = run;
    json!({
        "id": id, "kind": run.kind, "state": run.state, "began": run.began, "duration_s": run.duration_s, "target": run.target, "label": run.label,
        "version": run.version, "headline": run.headline, "figures": run.figures, "surroundings": run.surroundings, "load": run.load, "trials": trials,
    })
}

fn compare(args: &Compare, store: Option<&Store>, words: &Catalogue) -> Result<()> {
    let comparison = compared(args, store, words)?;
    if args.json {
        return print_json(&json!({ "schema": SCHEMA, "comparison": comparison }));
    }
    output::print_painted(&text::compare(&comparison, &output::style(), words))
}

fn compared(args: &Compare, store: Option<&Store>, words: &Catalogue) -> Result<Comparison> {
    let (store, first) = named(store, &args.run, words)?;
    if let Some(other) = &args.other {
        return Ok(comparison::compare(&first, &named(Some(store), other, words)?.1, Chosen::Named));
    }
    with_earlier(store, &first, words)
}

/// A run compared with the latest comparable one that was faster, or with the one before.
///
/// # Errors
/// There is no earlier run of the same kind and target, or the runs cannot be read.
pub(crate) fn with_earlier(store: &Store, run: &Run, words: &Catalogue) -> Result<Comparison> {
    let all = store.list(&Filter::default())?;
    let Some((earlier, chosen)) = all.iter().find(|other| other.id == run.id).and_then(|run| comparison::earlier(run, &all)) else {
        bail!(words.text(&Message::new("runs-no-previous").with("run", run.id.to_string()).with("id", run.id.to_string())));
    };
    Ok(comparison::compare(&store.get(earlier.id)?, run, chosen))
}

/// The run of this number, "last" or "previous".
fn named<'a>(store: Option<&'a Store>, name: &str, words: &Catalogue) -> Result<(&'a Store, Run)> {
    let Some((store, id)) = store.map(|store| Ok::<_, anyhow::Error>((store, numbered(store, name, words)?))).transpose()? else {
        bail!(words.text(&Message::new("runs-no-such").with("run", name)));
    };
    Ok((store, store.get(id)?))
}

/// The number of a run. `previous`: the run before the last one with the same kind and target.
fn numbered(store: &Store, name: &str, words: &Catalogue) -> Result<i64> {
    let no_such = || anyhow::anyhow!(words.text(&Message::new("runs-no-such").with("run", name)));
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let all = store.list(&Filter::default())?;
    let last: &Summary = all.iter().find(|run| run.state != State::Running).ok_or_else(no_such)?;
    match name {
        "last" => Ok(last.id),
        "previous" => {
            let is_before =
                |run: &&Summary| run.id < last.id && run.kind == last.kind && run.target == last.target && run.state != State::Running;
            let previous = all.iter().find(is_before);
            previous
                .map(|run| run.id)
                .ok_or_else(|| anyhow::anyhow!(words.text(&Message::new("runs-no-previous").with("id", last.id.to_string()))))
        }
        _ => Err(no_such()),
    }
}
