//! A recorded run of `chokepoint diagnose`: what was measured and done comes from the recording, and what is decided from this version.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chokepoint_confined::{Reader, Readers};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::fix::Action;
use chokepoint_model::observation::Observation;
use chokepoint_model::report::Diagnosis;
use serde::{Deserialize, Serialize};

use super::{Driver, Permit, drive};
use crate::run::bisect::{self, BisectReplay};
use crate::run::measure;
use crate::run::recordings::{self, Event};
use crate::terminal::output;

/// Replays a recording that the user named.
pub(super) fn replay(file: &Path) -> Result<Diagnosis> {
    let opened = recordings::open(file)?;
    let replayed = Readers::default().read::<RecordingReader>((), vec![opened]);
    let Replayed { notes, report } = replayed.with_context(|| format!("{} cannot be replayed", file.display()))?;
    notes.iter().for_each(|note| output::note(note));
    report.map_err(anyhow::Error::msg)
}

/// Reads a recording and diagnoses what it holds: its entries are what servers, logs and configurations of others said.
pub(crate) struct RecordingReader;

/// What a recording gives.
#[derive(Serialize, Deserialize)]
pub(crate) struct Replayed {
    /// What to tell the user before the report.
    notes: Vec<String>,
    /// The report, or why there is none.
    report: std::result::Result<Diagnosis, String>,
}

impl Reader for RecordingReader {
    const NAME: &'static str = "recording";
    type Question = ();
    type Answer = Replayed;

    fn read((): (), files: Vec<File>) -> std::result::Result<Replayed, String> {
        let file = files.into_iter().next().ok_or("there is no file")?;
        let (events, left_out) = recordings::read(file).map_err(|error| error.to_string())?;
        let missing = (left_out > 0).then(|| format!("note: {left_out} readings did not fit into the recording and were left out"));
        let words = Catalogue::english();
        let mut run = Replay { events: VecDeque::new(), notes: missing.into_iter().collect() };
        let report = match bisect::is_recorded(&events) {
            true => bisect::drive(&mut BisectReplay { events: events.into() }, &words),
            false => {
                run.events = events.into();
                drive(&mut run, true, &words)
            }
        };
        Ok(Replayed { notes: run.notes, report: report.map_err(|error| output::once(&error)) })
    }
}

/// A recorded run: the same session with the recorded events.
struct Replay {
    events: VecDeque<Event>,
    /// What to tell the user.
    notes: Vec<String>,
}

impl Driver for Replay {
    fn replays(&self) -> bool {
        true
    }

    fn permit(&mut self, next: &Action) -> Permit {
        match (self.events.front(), next) {
            (Some(Event::Stopped), Action::Apply { .. } | Action::Measure) => {
                self.events.pop_front();
                Permit::Stopped
            }
            (Some(Event::Measured(_)), Action::Measure) => Permit::Go,
            (Some(Event::Acted { action, .. }), _) if *next != Action::Measure && (action.is_empty() || *action == next.name()) => {
                Permit::Go
            }
            (None, _) => Permit::Over,
            // Another version decided differently. Its later measurements do not show the effect of this version's choice.
            (Some(_), next) => {
                self.notes.push(format!("note: the replay stops here, because the recorded run did not do this: {}", next.name()));
                Permit::Over
            }
        }
    }

    fn measure(&mut self, _: Option<f64>) -> Result<Observation> {
        match self.events.pop_front() {
            Some(Event::Measured(entries)) => measure::recorded(&entries),
            _ => bail!("the recording has no further measurement: record the run again with --record"),
        }
    }

    fn may_watch_on(&self) -> bool {
        true
    }

    fn was_cut(&mut self) -> bool {
        matches!(self.events.front(), Some(Event::Stopped))
    }

    fn act(&mut self, _: &Action) -> std::result::Result<(), String> {
        match self.events.pop_front() {
            Some(Event::Acted { failure: Some(why), .. }) => Err(why),
            Some(Event::Acted { failure: None, .. }) => Ok(()),
            _ => Err("the recording does not contain the result".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(events: Vec<Event>) -> Replay {
        Replay { events: events.into(), notes: Vec::new() }
    }

    fn take_back(remedy: &str) -> Action {
        Action::TakeBack { number: 1, remedy: remedy.to_owned() }
    }

    fn acted(action: &str) -> Event {
        Event::Acted { action: action.to_owned(), failure: None }
    }

    #[test]
    fn a_replay_ends_where_it_decides_differently() {
        let permit = |event: Option<Event>, next: &Action| of(event.into_iter().collect()).permit(next);
        for (event, next, expected) in [
            (Some(acted("take back a")), take_back("a"), Permit::Go),
            (Some(acted("take back a")), take_back("b"), Permit::Over),
            (Some(acted("")), take_back("b"), Permit::Go),
            (Some(acted("")), Action::Measure, Permit::Over),
            (Some(Event::Measured(Vec::new())), Action::Measure, Permit::Go),
            (Some(Event::Measured(Vec::new())), take_back("a"), Permit::Over),
            (Some(Event::Stopped), Action::Measure, Permit::Stopped),
            (Some(Event::Stopped), take_back("a"), Permit::Over),
            (None, Action::Measure, Permit::Over),
        ] {
            assert_eq!(permit(event.clone(), &next), expected, "{event:?} {next:?}");
        }
    }

    #[test]
    fn a_recording_needs_a_measurement_and_may_end_early() {
        let words = Catalogue::english();
        for events in [vec![], vec![Event::Stopped], vec![acted("apply a")]] {
            assert!(drive(&mut of(events.clone()), true, &words).is_err(), "{events:?}");
        }
        let events = vec![Event::Measured(Vec::new()), Event::Stopped];
        assert!(drive(&mut of(events), true, &words).is_ok_and(|report| report.rounds.is_empty()));
    }
}
