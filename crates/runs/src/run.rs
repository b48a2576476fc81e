//! A kept run: what was measured, on what, and with which result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Values by name, by group: `surroundings["kernel"]["release"]`. A value that was not read is left out: absent is not zero.
pub type Surroundings = BTreeMap<String, BTreeMap<String, String>>;

/// How far a run got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is under way, or its process was killed.
    Running,
    /// It ended by itself.
    Done,
    /// The user stopped it.
    Interrupted,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Done => "done",
            State::Interrupted => "interrupted",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [State::Running, State::Done, State::Interrupted].into_iter().find(|state| state.name() == name)
    }
}

/// In which direction a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better: goodput.
    More,
    /// Less is better: a response time.
    Less,
    /// Neither.
    Neither,
}

/// A figure of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name: "goodput", "p99".
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit: "/s", "us", "%".
    pub unit: String,
    /// In which direction it is better.
    pub better: Better,
}

/// A run to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// The verb: "diagnose", "bench", "experiment".
    pub kind: String,
    /// How far it got.
    pub state: State,
    /// Its start, RFC 3339 in UTC ("2026-01-02T03:04:05Z"): text order is the order of time.
    pub began: String,
    /// Seconds from the start to the end.
    pub duration_s: f64,
    /// What was measured; runs of the same target can be compared.
    pub target: String,
    /// The user's label; empty without one.
    pub label: String,
    /// The version of chokepoint.
    pub version: String,
    /// The result in one sentence.
    pub headline: String,
    /// The figures, the main one first.
    pub figures: Vec<Figure>,
    /// What it was measured on: kernel, cores, memory, settings, versions.
    pub surroundings: Surroundings,
    /// The load that was offered.
    pub load: BTreeMap<String, String>,
    /// The verb's JSON document.
    pub document: String,
    /// What a run that continues this one must have in common with it: a hash or the text of its plan.
    pub fingerprint: Option<String>,
}

/// A kept run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// What was kept.
    pub run: NewRun,
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Its number.
    pub id: i64,
    /// See [`NewRun`].
    pub kind: String,
    /// How far it got.
    pub state: State,
    /// Its start, RFC 3339.
    pub began: String,
    /// Seconds.
    pub duration_s: f64,
    /// What was measured.
    pub target: String,
    /// The user's label; empty without one.
    pub label: String,
    /// The version of chokepoint.
    pub version: String,
    /// The result in one sentence.
    pub headline: String,
    /// The figures, the main one first.
    pub figures: Vec<Figure>,
    /// The load that was offered; the list does not show it.
    #[serde(skip)]
    pub load: BTreeMap<String, String>,
}

impl Summary {
    /// The value of a figure.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this verb.
    pub kind: Option<String>,
    /// Of this target, exactly.
    pub target: Option<String>,
    /// Whose target contains this.
    pub target_part: Option<String>,
    /// That began before this time (RFC 3339 in UTC).
    pub before: Option<String>,
    /// At most this many, the newest.
    pub limit: Option<u32>,
}
