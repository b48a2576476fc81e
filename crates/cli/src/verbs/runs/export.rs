//! `chokepoint runs export`: a run as Markdown, JSON or CSV, to stdout or a file.

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_runs::{Run, Store};
use serde_json::{Value, json};

use super::{SCHEMA, named, run_json};
use crate::args::Export;
use crate::report::markdown;
use crate::run::files::Output;
use crate::run::keeping;
use crate::terminal::output;

/// Writes the run.
pub(super) fn run(args: &Export, store: Option<&Store>, words: &Catalogue) -> Result<()> {
    let file = Output::open_where(args.output.as_deref(), "run")?;
    let (store, run) = named(store, &args.run, words)?;
    let text = if args.json {
        let trials = store.trials(run.id)?;
        let mut exported = run_json(&run, trials.len() as u64);
        exported["document"] = keeping::parts(&run.run.document).0;
        exported["trial_documents"] = trials.iter().map(|trial| parsed(trial)).collect();
        format!("{:#}\n", json!({ "schema": SCHEMA, "run": exported }))
    } else if args.csv {
        csv(&run)
    } else {
        markdown::run(&run, words)
    };
    match file {
        Some(file) => file.write(text.as_bytes()),
        None if args.json => output::print_json(&text),
        None => output::print(&text),
    }
}

/// A kept document; text that is no JSON stays text.
fn parsed(document: &str) -> Value {
    serde_json::from_str(document).unwrap_or_else(|_| Value::String(document.to_owned()))
}

/// A line for each value (RFC 4180): group, name, value and unit.
fn csv(run: &Run) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let line = |group: &str, name: &str, value: &str, unit: &str| format!("{},{},{value},{unit}\n", quoted(group), quoted(name));
    let mut out = "group,name,value,unit\n".to_owned();
    let run = &run.run;
    for (name, value) in
        [("kind", &run.kind), ("target", &run.target), ("began", &run.began), ("label", &run.label), ("version", &run.version)]
    {
        out += &line("run", name, &quoted(value), "");
    }
    for figure in &run.figures {
        out += &line("figures", &figure.name, &figure.value.to_string(), &quoted(&figure.unit));
    }
    let groups = std::iter::once(("load", &run.load)).chain(run.surroundings.iter().map(|(group, values)| (group.as_str(), values)));
    for (group, values) in groups {
        for (name, value) in values {
            out += &line(group, name, &quoted(value), "");
        }
    }
    out
}
