//! What is printed: a line for each second, JSON, or incidents only; and what the live view shows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_recorder::incident::{Incident, State};
use chokepoint_recorder::{Ring, Sample, TargetSample};
use serde::Serialize;

use super::seconds::Look;
use crate::args::Watch;
use crate::report::view::ledger::place_label;
use crate::report::view::{Phrases, time};
use crate::terminal::output;

/// Name and version of the JSON line of a second.
const SCHEMA: &str = "chokepoint/sample/1";

/// Where it is shown.
pub(super) struct Outlet {
    form: Form,
}

enum Form {
    Json,
    Text,
    IncidentsOnly,
    /// On a terminal, where the front draws it.
    View(Arc<Mutex<Shown>>),
}

/// What the front needs to know of the form.
pub(super) enum Face {
    Json,
    Lines,
    View(Arc<Mutex<Shown>>),
}

/// What the live view shows.
pub(super) struct Shown {
    pub(super) ring: Ring,
    /// The last whole minute.
    pub(super) minute: Option<Sample>,
    /// The newest first.
    pub(super) incidents: Vec<Incident>,
    /// Servers that were not measured lately.
    pub(super) unmeasured: BTreeSet<String>,
    /// Where the page is in a browser.
    pub(super) address: Option<String>,
    /// Counts the changes; 0 until it is watched.
    pub(super) changes: u64,
}

/// Samples and incidents that the view holds.
const VIEW_SAMPLES_MAX: usize = 60;
const VIEW_INCIDENTS_MAX: usize = 8;

#[derive(Serialize)]
struct SampleLine<'a> {
    schema: &'static str,
    #[serde(flatten)]
    sample: &'a Sample,
}

impl Outlet {
    /// As the command line asks.
    pub(super) fn of(args: &Watch) -> Self {
        let shown = || Shown {
            ring: Ring::new(VIEW_SAMPLES_MAX),
            minute: None,
            incidents: Vec::new(),
            unmeasured: BTreeSet::new(),
            address: None,
            changes: 0,
        };
        let form = match (args.json, args.headless) {
            (true, _) => Form::Json,
            (_, true) => Form::IncidentsOnly,
            _ if output::is_watched() => Form::View(Arc::new(Mutex::new(shown()))),
            _ => Form::Text,
        };
        Self { form }
    }

    pub(super) fn face(&self) -> Face {
        match &self.form {
            Form::Json => Face::Json,
            Form::Text | Form::IncidentsOnly => Face::Lines,
            Form::View(shown) => Face::View(Arc::clone(shown)),
        }
    }

    /// It is watched, and the page is there.
    pub(super) fn begin(&self, address: Option<String>) {
        self.show(|shown| shown.address = address);
    }

    /// Changes what the live view shows, if there is one.
    fn show(&self, change: impl FnOnce(&mut Shown)) {
        if let Form::View(shown) = &self.form {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut shown);
            shown.changes += 1;
        }
    }

    /// Prints a second. False if nobody reads any more.
    pub(super) fn second(&mut self, look: &Look, sample: &Sample, words: &Catalogue) -> Result<bool> {
        match &self.form {
            Form::View(_) => {
                let unmeasured = look.targets.iter().filter(|target| !target.is_measured()).map(|target| target.sample.target.clone());
                self.show(|shown| {
                    shown.ring.push(sample.clone());
                    shown.unmeasured = unmeasured.collect();
                });
                Ok(true)
            }
            Form::IncidentsOnly => Ok(true),
            Form::Json => output::print_json_on(&format!("{}\n", serde_json::to_string(&SampleLine { schema: SCHEMA, sample })?)),
            Form::Text => {
                let lines: Vec<String> = look.targets.iter().filter_map(|target| line(look.at_s, &target.sample, words)).collect();
                lines.iter().try_fold(true, |is_read, line| Ok(is_read && output::print_on(line)?))
            }
        }
    }

    /// Takes a whole minute, which the view shows.
    pub(super) fn minute(&mut self, minute: &Sample) {
        self.show(|shown| shown.minute = Some(minute.clone()));
    }

    /// Prints an incident.
    pub(super) fn incident(&mut self, incident: &Incident, words: &Catalogue) -> Result<()> {
        match &self.form {
            Form::View(_) => {
                self.show(|shown| {
                    shown.incidents.retain(|known| known.id != incident.id);
                    shown.incidents.insert(0, incident.clone());
                    shown.incidents.truncate(VIEW_INCIDENTS_MAX);
                });
                return Ok(());
            }
            Form::Json => return output::print_json_on(&format!("{}\n", serde_json::to_string(incident)?)).map(drop),
            Form::Text | Form::IncidentsOnly => {}
        }
        let id = match incident.state {
            State::Over => "watch-incident-over",
            _ => "watch-incident",
        };
        let at_s = incident.ended_s.filter(|_| incident.state == State::Over).unwrap_or(incident.drop.since_s);
        let message =
            Message::new(id).with("time", time(at_s)).with("number", incident.id.to_string()).with("headline", incident.headline.as_str());
        output::print_on(&(words.text(&message) + "\n")).map(drop)
    }
}

/// One server in one second; nothing while it has no requests.
fn line(at_s: u64, sample: &TargetSample, words: &Catalogue) -> Option<String> {
    let under_way = sample.under_way.value()?;
    if under_way <= 0.0 && sample.rate.value().is_none_or(|rate| rate <= 0.0) {
        return None;
    }
    let mut message = Message::new(if sample.places.is_empty() { "watch-second-nowhere" } else { "watch-second" })
        .with("time", time(at_s))
        .with("target", sample.target.as_str())
        .with("number", rounded(under_way))
        .with("rate", rate(sample.rate.value().map(|rate| Phrases(words).number(rounded(rate)))));
    if let Some(most) = sample.places.iter().max_by(|a, b| a.request_seconds.total_cmp(&b.request_seconds)) {
        let place = place_label(&most.tier, most.place, Phrases(words));
        message = message.with("place", place).with("most", rounded(sample.mean_at(most)));
    }
    Some(words.text(&message) + "\n")
}

/// Requests a second, or that they are not known: without a log, few connections show no rate.
pub(super) fn rate(number: Option<String>) -> Message {
    number.map_or_else(|| Message::new("watch-rate-unknown"), |number| Message::new("watch-rate").with("rate", number))
}

fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 10.0).round() / 10.0 }
}
