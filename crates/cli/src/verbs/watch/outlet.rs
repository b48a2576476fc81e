//! What is printed: a line for each second, JSON, or incidents only.

use std::time::Instant;

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_recorder::incident::{Incident, State};
use chokepoint_recorder::{Ring, Sample, TargetSample};
use serde::Serialize;

use super::page::{self, WatchState};
use super::seconds::Look;
use crate::args::Watch;
use crate::report::view::ledger::place_label;
use crate::report::view::{Phrases, time};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::keys::Key;
use crate::terminal::live::{Live, Waited};
use crate::terminal::output;

/// Name and version of the JSON line of a second.
const SCHEMA: &str = "chokepoint/sample/1";

/// Where it is shown.
pub(super) struct Outlet<'a> {
    words: &'a Catalogue,
    form: Form,
    /// Where the page is in a browser.
    address: Option<String>,
}

enum Form {
    Json,
    Text,
    IncidentsOnly,
    /// On a terminal.
    View(Box<View>),
}

/// The live view.
struct View {
    live: Live,
    ring: Ring,
    /// The last whole minute.
    minute: Option<Sample>,
    /// The newest first.
    incidents: Vec<Incident>,
    chosen: usize,
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

impl<'a> Outlet<'a> {
    /// As the command line asks.
    pub(super) fn of(args: &Watch, address: Option<String>, words: &'a Catalogue) -> Result<Self> {
        let form = match (args.json, args.headless) {
            (true, _) => Form::Json,
            (_, true) => Form::IncidentsOnly,
            _ if output::is_watched() => Form::View(Box::new(View {
                live: Live::open()?,
                ring: Ring::new(VIEW_SAMPLES_MAX),
                minute: None,
                incidents: Vec::new(),
                chosen: 0,
            })),
            _ => Form::Text,
        };
        let mut outlet = Self { words, form, address };
        outlet.draw()?;
        Ok(outlet)
    }

    fn draw(&mut self) -> Result<()> {
        let Form::View(view) = &mut self.form else { return Ok(()) };
        let View { live, ring, minute, incidents, chosen } = &mut **view;
        let (words, address) = (self.words, self.address.as_deref());
        live.draw(|buffer, has_keys, unicode| {
            let state = WatchState {
                samples: ring.all().collect(),
                minute: minute.as_ref(),
                incidents,
                chosen: *chosen,
                has_keys,
                address,
                unicode,
            };
            page::draw(&state, Phrases(words), buffer);
        })
    }

    /// Waits until a time, or until the user asks to stop. False if that was by a key.
    pub(super) fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<bool> {
        loop {
            let Form::View(view) = &mut self.form else {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return Ok(true);
            };
            match view.live.wait(until, interrupt)? {
                Waited::Over => return Ok(true),
                Waited::Redraw => {}
                Waited::Key(Key::Char('q' | 'Q')) => {
                    view.live.hide();
                    return Ok(false);
                }
                Waited::Key(Key::Char('s' | 'S')) => view.chosen += 1,
                Waited::Key(_) => {}
            }
            self.draw()?;
        }
    }

    /// Prints a second. False if nobody reads any more.
    pub(super) fn second(&mut self, look: &Look, sample: &Sample) -> Result<bool> {
        match &mut self.form {
            Form::View(view) => {
                view.ring.push(sample.clone());
                self.draw().map(|()| true)
            }
            Form::IncidentsOnly => Ok(true),
            Form::Json => output::print_json_on(&format!("{}\n", serde_json::to_string(&SampleLine { schema: SCHEMA, sample })?)),
            Form::Text => {
                let words = self.words;
                let lines: Vec<String> = look.targets.iter().filter_map(|target| line(look.at_s, &target.sample, words)).collect();
                lines.iter().try_fold(true, |is_read, line| Ok(is_read && output::print_on(line)?))
            }
        }
    }

    /// Takes a whole minute, which the view shows with the next second.
    pub(super) fn minute(&mut self, minute: &Sample) {
        if let Form::View(view) = &mut self.form {
            view.minute = Some(minute.clone());
        }
    }

    /// Prints an incident.
    pub(super) fn incident(&mut self, incident: &Incident) -> Result<()> {
        if let Form::View(view) = &mut self.form {
            view.incidents.retain(|known| known.id != incident.id);
            view.incidents.insert(0, incident.clone());
            view.incidents.truncate(VIEW_INCIDENTS_MAX);
            return self.draw();
        }
        if matches!(self.form, Form::Json) {
            return output::print_json_on(&format!("{}\n", serde_json::to_string(incident)?)).map(drop);
        }
        let id = match incident.state {
            State::Over => "watch-incident-over",
            _ => "watch-incident",
        };
        let at_s = incident.ended_s.filter(|_| incident.state == State::Over).unwrap_or(incident.drop.since_s);
        let message =
            Message::new(id).with("time", time(at_s)).with("number", incident.id.to_string()).with("headline", incident.headline.as_str());
        output::print_on(&(self.words.text(&message) + "\n")).map(drop)
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
        .with("rate", sample.rate.value().map_or_else(|| "?".to_owned(), |rate| rounded(rate).to_string()));
    if let Some(most) = sample.places.iter().max_by(|a, b| a.request_seconds.total_cmp(&b.request_seconds)) {
        let place = place_label(&most.tier, most.place, Phrases(words));
        message = message.with("place", place).with("most", rounded(sample.mean_at(most)));
    }
    Some(words.text(&message) + "\n")
}

fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 10.0).round() / 10.0 }
}
