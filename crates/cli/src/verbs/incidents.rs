//! `chokepoint incidents`: lists, shows and exports what `watch` kept of drops.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_recorder::incident::{Incident, State};
use chokepoint_runs::History;
use serde_json::{Value, json};

use crate::Usage;
use crate::args::{ExportIncident, IncidentsVerb, ListIncidents, ShowIncident};
use crate::report::page;
use crate::report::text::incidents as text;
use crate::run::files::Output;
use crate::terminal::output;
use crate::verbs::watch;

/// Name and version of the JSON list.
const SCHEMA: &str = "chokepoint/incidents/1";
/// More are never kept.
const ALL: u32 = u32::MAX;

/// Runs the verb.
pub(crate) fn run(verb: &IncidentsVerb, words: &Catalogue) -> Result<()> {
    match verb {
        IncidentsVerb::List(args) => list(args, words),
        IncidentsVerb::Show(args) => show(args, words),
        IncidentsVerb::Export(args) => export(args, words),
    }
}

fn list(args: &ListIncidents, words: &Catalogue) -> Result<()> {
    let history = History::open_existing(&watch::directory(args.data_dir.clone(), words)?)?;
    let (list, shown) = history.map_or_else(|| Ok((listed(&[]), Vec::new())), |history| kept_list(&history, args.all, args.number))?;
    if args.json {
        return output::print_json(&format!("{list:#}\n"));
    }
    output::print_painted(&text::list(&shown, &output::style(), words))
}

/// The newest incidents, `all` with bursts: as the JSON list, and whole.
pub(crate) fn kept_list(history: &History, all: bool, most: u32) -> Result<(Value, Vec<Incident>)> {
    let kept = history.incidents(ALL)?.iter().map(parsed).collect::<Result<Vec<_>>>()?;
    let shown: Vec<Incident> = kept.into_iter().filter(|incident| all || incident.state != State::Passed).take(most as usize).collect();
    Ok((listed(&shown), shown))
}

/// Without the seconds and the diagnosis, which `show --json` has.
fn listed(incidents: &[Incident]) -> Value {
    let short = |incident: &Incident| {
        let Incident { id, state, drop, ended_s, recovered, headline, changes, .. } = incident;
        json!({
            "id": id, "state": state, "drop": drop, "ended_s": ended_s, "recovered": recovered, "headline": headline, "changes": changes,
            "cause": incident.cause.as_ref().map(|cause| &cause.id),
        })
    };
    let short: Vec<Value> = incidents.iter().map(short).collect();
    json!({ "schema": SCHEMA, "incidents": short })
}

fn show(args: &ShowIncident, words: &Catalogue) -> Result<()> {
    let (history, id) = named(args.data_dir.clone(), &args.incident, words)?;
    let incident = parsed(&history.incident(id)?)?;
    if args.json {
        return output::print_json(&format!("{}\n", serde_json::to_string_pretty(&incident)?));
    }
    output::print_painted(&text::show(&incident, &output::style(), words))
}

fn export(args: &ExportIncident, words: &Catalogue) -> Result<()> {
    let open = |path: &Option<PathBuf>, what: &'static str| path.as_deref().map(|path| Output::open(path, what)).transpose();
    let (recording_file, flame_file) = (open(&args.output, "recording")?, open(&args.flame, "flame graph")?);
    let (history, id) = named(args.data_dir.clone(), &args.incident, words)?;
    if let Some(file) = recording_file {
        let Some(recording) = history.recording(id)? else {
            bail!("incident {id} has no recording: it could not be diagnosed, or newer incidents took its place");
        };
        file.write(&recording)?;
    }
    if let Some(file) = flame_file {
        let Some(profiles) = history.profiles(id)? else {
            bail!("incident {id} has no profile: it could not be diagnosed, or CPUs could not be sampled (docs/privileges.md)");
        };
        let incident = parsed(&history.incident(id)?)?;
        let page = page::flame::of_incident(&profiles, &incident, words)?;
        file.write(page::file::render(&page, None, &incident.headline).as_bytes())?;
    }
    Ok(())
}

/// The history, and the number of an incident in it.
fn named(data_dir: Option<PathBuf>, name: &str, words: &Catalogue) -> Result<(History, i64)> {
    let number = match name {
        "last" => None,
        _ => Some(name.parse().map_err(|_| Usage(format!("\"{name}\" is no incident: give its number, or last")))?),
    };
    let dir = watch::directory(data_dir, words)?;
    let history =
        History::open_existing(&dir)?.with_context(|| format!("nothing is kept in {}: run chokepoint watch first", dir.display()))?;
    let id = match number {
        Some(id) => id,
        None => history.incidents(1)?.first().context("no incident is kept")?.id,
    };
    Ok((history, id))
}

fn parsed(kept: &chokepoint_runs::Incident) -> Result<Incident> {
    let incident: Incident = serde_json::from_str(&kept.json).with_context(|| format!("incident {} cannot be read", kept.id))?;
    Ok(Incident { id: kept.id, ..incident })
}
