//! A recorded run of `chokepoint diagnose`: what was measured and done comes from the recording, and what is decided from this version.

use std::collections::VecDeque;

use anyhow::{Result, bail};
use chokepoint_model::fix::Action;
use chokepoint_model::observation::Observation;

use super::{Driver, Permit};
use crate::run::measure;
use crate::run::recordings::Event;
use crate::terminal::output;

/// A recorded run: the same session with the recorded events.
pub(super) struct Replay {
    pub(super) events: VecDeque<Event>,
}

impl Driver for Replay {
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
                output::note(&format!("note: the replay stops here, because the recorded run did not do this: {}", next.name()));
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
    use chokepoint_model::catalogue::Catalogue;

    use super::*;
    use crate::verbs::diagnose::drive;

    fn take_back(remedy: &str) -> Action {
        Action::TakeBack { number: 1, remedy: remedy.to_owned() }
    }

    fn acted(action: &str) -> Event {
        Event::Acted { action: action.to_owned(), failure: None }
    }

    #[test]
    fn a_replay_ends_where_it_decides_differently() {
        let permit = |event: Option<Event>, next: &Action| Replay { events: event.into_iter().collect() }.permit(next);
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
            assert!(drive(&mut Replay { events: events.clone().into() }, true, &words).is_err(), "{events:?}");
        }
        let events = vec![Event::Measured(Vec::new()), Event::Stopped];
        assert!(drive(&mut Replay { events: events.into() }, true, &words).is_ok_and(|report| report.rounds.is_empty()));
    }
}
