//! An incident: a drop that was diagnosed while it lasted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drop::Drop;
use crate::grown::{GrownPlace, grown_places};
use crate::host::{BusierProgram, busier_programs};
use crate::sample::Sample;

/// Name and version of the document.
pub const SCHEMA: &str = "chokepoint/incident/1";

/// How far an incident is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A drop was seen, and its cause is being looked for.
    Diagnosing,
    /// It lasts.
    Open,
    /// It is over.
    Over,
    /// The drop was over before it was diagnosed, and nothing was found: a burst. No incident, but kept.
    Passed,
}

/// Something of the host that differs from before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Whose: "host", "kernel", a server.
    pub of: String,
    /// What.
    pub name: String,
    /// Before; null if there was none.
    pub before: Option<String>,
    /// Now; null if there is none.
    pub now: Option<String>,
}

/// The first cause that the diagnosis found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Id of the finding; of a limit the station: "cpu", "link".
    pub id: String,
    /// True if nothing is wrong with the path: a resource is used up.
    #[serde(default)]
    pub is_limit: bool,
    /// What it is, in one sentence.
    pub title: String,
}

/// What a diagnosis found. It is kept as it was printed: an old incident reads the same in a newer program.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosed {
    /// As `diagnose --json` prints it.
    pub document: Value,
    /// As the page of `watch` shows it.
    pub page: Value,
    /// The verdict in one sentence.
    pub summary: String,
    /// The first cause, if one was found.
    pub cause: Option<Cause>,
    /// The report as plain text.
    pub text: String,
}

/// The document of an incident.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// "chokepoint/incident/1".
    pub schema: String,
    /// Its number in the history; 0 before it is kept.
    pub id: i64,
    /// How far it is.
    pub state: State,
    /// What dropped, when and how much.
    pub drop: Drop,
    /// When the drop was last seen, seconds since 1970; null while it lasts.
    pub ended_s: Option<u64>,
    /// True if the server serves its clients as before; false if what lasts was taken for how it is now; null while it lasts, and if recording ended before it did.
    pub recovered: Option<bool>,
    /// The incident in one sentence.
    pub headline: String,
    /// What changed on the host since the last look before the drop.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Places where more requests stand during the drop than before.
    #[serde(default)]
    pub grown: Vec<GrownPlace>,
    /// Programs that used more CPU time during the drop than before.
    #[serde(default)]
    pub busier: Vec<BusierProgram>,
    /// The first cause; null if none was found.
    pub cause: Option<Cause>,
    /// The diagnosis during the drop, as `diagnose --json` prints it; null while it is made, and if it failed.
    pub diagnosis: Option<Value>,
    /// The same as the page of `watch` shows it; nothing without one, and in an incident of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Value>,
    /// The report of the diagnosis as plain text; empty without one.
    #[serde(default)]
    pub report: String,
    /// Why there is no diagnosis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undiagnosed: Option<String>,
    /// The seconds before the drop and during it.
    #[serde(default)]
    pub series: Vec<Sample>,
}

impl Incident {
    /// Of a drop that was just seen.
    pub fn began(drop: Drop, headline: String, series: Vec<Sample>) -> Self {
        let mut incident = Self {
            schema: SCHEMA.to_owned(),
            id: 0,
            state: State::Diagnosing,
            drop,
            ended_s: None,
            recovered: None,
            headline,
            changes: Vec::new(),
            grown: Vec::new(),
            busier: Vec::new(),
            cause: None,
            diagnosis: None,
            page: None,
            report: String::new(),
            undiagnosed: None,
            series: Vec::new(),
        };
        incident.see(series);
        incident
    }

    /// Takes the seconds up to now.
    pub fn see(&mut self, series: Vec<Sample>) {
        self.grown = grown_places(&series, &self.drop.target, self.drop.since_s);
        self.busier = busier_programs(&series, self.drop.since_s);
        self.series = series;
    }

    /// Takes the diagnosis, or why there is none.
    pub fn diagnosed(&mut self, result: Result<Diagnosed, String>) {
        match result {
            Ok(Diagnosed { document, page, cause, text, .. }) => {
                (self.diagnosis, self.page, self.cause, self.report) = (Some(document), Some(page), cause, text);
            }
            Err(why) => self.undiagnosed = Some(why),
        }
        self.settle();
    }

    /// Takes the end of the drop.
    pub fn ended(&mut self, at_s: u64, recovered: bool) {
        (self.ended_s, self.recovered) = (Some(at_s), Some(recovered));
        self.settle();
    }

    /// True while the recorder follows it.
    pub fn is_followed(&self) -> bool {
        matches!(self.state, State::Diagnosing | State::Open)
    }

    /// Recording ended, at this time: what is not known by now stays unknown.
    pub fn left(&mut self, at_s: u64) {
        self.ended_s = Some(at_s);
        if self.diagnosis.is_none() && self.undiagnosed.is_none() {
            self.undiagnosed = Some("recording ended before".to_owned());
        }
        self.state = State::Over;
    }

    /// The state that follows from what is known. A drop that is over before it was diagnosed, and of which the diagnosis found no cause, was a burst.
    fn settle(&mut self) {
        let is_diagnosed = self.diagnosis.is_some() || self.undiagnosed.is_some();
        self.state = match (self.state, is_diagnosed, self.ended_s) {
            (_, false, _) => State::Diagnosing,
            (State::Diagnosing, true, Some(_)) if self.cause.is_none() => State::Passed,
            (State::Passed, true, _) => State::Passed,
            (_, true, Some(_)) => State::Over,
            (_, true, None) => State::Open,
        };
    }

    /// True if it is to be told to somebody: it is diagnosed and no burst.
    pub fn is_told(&self) -> bool {
        matches!(self.state, State::Open | State::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident() -> Incident {
        let drop = Drop { target: "t".to_owned(), since_s: 9, ..Drop::default() };
        Incident::began(drop, String::new(), Vec::new())
    }

    #[test]
    fn a_drop_that_is_over_without_a_cause_is_no_incident() {
        let mut burst = incident();
        burst.ended(12, true);
        assert_eq!(burst.state, State::Diagnosing);
        burst.diagnosed(Err("it failed".to_owned()));
        assert_eq!((burst.state, burst.is_told()), (State::Passed, false));
    }

    #[test]
    fn a_drop_that_lasts_is_one_whatever_was_found() {
        let mut lasting = incident();
        lasting.diagnosed(Err("it failed".to_owned()));
        assert_eq!((lasting.state, lasting.is_told()), (State::Open, true));
        lasting.ended(60, true);
        assert_eq!((lasting.state, lasting.is_told()), (State::Over, true));
    }

    #[test]
    fn an_incident_that_nobody_follows_any_more_is_over_and_its_end_unknown() {
        let mut killed = incident();
        assert!(killed.is_followed());
        killed.left(30);
        assert_eq!((killed.state, killed.ended_s, killed.recovered, killed.is_followed()), (State::Over, Some(30), None, false));
        assert!(killed.undiagnosed.is_some());
    }
}
