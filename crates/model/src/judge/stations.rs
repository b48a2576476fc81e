//! The stations of the request's path, in the order in which a request passes them.
//!
//! A station is one folder (code, messages, page, lines of the cause graph, ids of its remedies, tests) and one line in [`STATIONS`]. It reads its instances out of the
//! observation and judges its own findings; `diagnose` decides what they mean together.

mod accept_queue;
mod clients;
pub(crate) mod conntrack_table;
mod cpu;
pub(crate) mod cpu_quota;
pub(crate) mod ephemeral_ports;
pub(crate) mod file_descriptors;
mod link;
pub(crate) mod load_generator;
pub(crate) mod rate_limit;
pub(crate) mod sending;
pub(crate) mod syn_queue;
pub(crate) mod transport;
pub(crate) mod upstream_connect;
pub(crate) mod waiting;
pub(crate) mod worker_connections;
mod worker_pool;

pub use crate::facts::Context;
use crate::facts::Logged;
use crate::judge::causes::{CouplingDef, Standing};
use crate::judge::findings::NOT_IN_FORCE;
use crate::observation::{NetnsId, Origin};
use crate::output::message::Message;
use crate::output::report::{At, Ceiling, Confidence, Evidence, Finding, Role, Station, StationKind, StationState};

pub(crate) use load_generator::waited as generator_waited;
pub(crate) use worker_pool::waited_for;

/// A station's definition.
pub struct StationDef {
    /// Id, kebab-case.
    pub id: &'static str,
    /// Rate or cliff.
    pub kind: StationKind,
    /// The findings it can make.
    pub findings: &'static [&'static str],
    /// Ids of the remedies and the advice for its findings.
    pub remedies: &'static [&'static str],
    /// Lines of the cause graph with one of its findings as cause or symptom.
    pub graph: &'static [CouplingDef],
    /// What it says of a finding of its own by what it read, and by its own reading at the same place: the cause graph decides what that makes of it.
    pub standing: fn(&Context<'_>, &Finding, Option<&StationReading>) -> Standing,
    /// Its instances on this path; none where the request does not pass it.
    pub read: fn(&Context<'_>) -> Vec<StationReading>,
    /// Its findings, from its own instances.
    pub judge: fn(&Context<'_>, &[StationReading]) -> Vec<Finding>,
}

impl StationDef {
    /// One whose findings stand for nothing else, unless a line of another station's graph says so.
    const fn new(
        id: &'static str,
        kind: StationKind,
        findings: &'static [&'static str],
        read: fn(&Context<'_>) -> Vec<StationReading>,
        judge: fn(&Context<'_>, &[StationReading]) -> Vec<Finding>,
    ) -> Self {
        Self { id, kind, findings, remedies: &[], graph: &[], standing: |_, _, _| Standing::Alone, read, judge }
    }
}

/// All stations, in the order of the path.
pub const STATIONS: &[&StationDef] = &[
    &load_generator::STATION,
    &clients::STATION,
    &link::STATION,
    &transport::STATION,
    &sending::STATION,
    &conntrack_table::STATION,
    &syn_queue::STATION,
    &accept_queue::STATION,
    &worker_connections::STATION,
    &file_descriptors::STATION,
    &rate_limit::STATION,
    &ephemeral_ports::STATION,
    &upstream_connect::STATION,
    &worker_pool::STATION,
    &waiting::STATION,
    &cpu_quota::STATION,
    &cpu::STATION,
];

/// A station's reading with the namespace it was made in.
#[derive(Debug, Clone, PartialEq)]
pub struct StationReading {
    /// The namespace, where the station has one.
    pub netns: Option<NetnsId>,
    /// The reading.
    pub station: Station,
}

impl Logged {
    /// As a proof: how many, and the first of them.
    fn proof(&self, ctx: &Context<'_>) -> Evidence {
        let text = Message::new("evidence-logged")
            .with("count", self.count)
            .with("about", u64::from(self.is_estimated))
            .with("line", self.line.as_str());
        evidence(ctx.text(text), self.path.as_str(), Some(self.count as f64))
    }
}

/// Times the limit in force that a written one must be where it is not known how many want to be served at once.
const TIMES_MIN: f64 = 2.0;

/// The bare reading of a station, to be filled in.
fn blank(def: &StationDef, tier: String, at: At, unit: &str) -> Station {
    Station {
        tier,
        station: def.id.to_owned(),
        at,
        kind: def.kind,
        limit: None,
        used: None,
        waiting: None,
        refused_per_s: None,
        utilization: None,
        unit: unit.to_owned(),
        ceiling_rps: None::<Ceiling>,
        state: StationState::Unknown,
        why: String::new(),
    }
}

/// What a station leaves open of its findings: the role is for the cause graph to say, and the remedies are for theirs.
fn unjudged() -> Finding {
    Finding {
        id: String::new(),
        station: String::new(),
        tier: String::new(),
        at: At::default(),
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence: Confidence::Low,
        title: String::new(),
        evidence: Vec::new(),
        explanation: String::new(),
        remedies: Vec::new(),
    }
}

fn evidence(text: String, source: impl Into<String>, value: Option<f64>) -> Evidence {
    Evidence { text, source: source.into(), value }
}

/// "FILE:LINE" of a setting.
fn place(origin: &Origin) -> String {
    if origin.file.is_empty() { "default".to_owned() } else { format!("{}:{}", origin.file, origin.line) }
}

/// What shows that a file was changed after it was read.
fn changed_proof(ctx: &Context<'_>, file: &str) -> Evidence {
    evidence(ctx.text(Message::new("evidence-not-in-force-changed").with("file", file)), "stat(2), /proc/PID/stat", None)
}

/// The cause of a finding at the same place, with that one's evidence: the harm is the same.
fn unforced(ctx: &Context<'_>, title: Message, explanation: Message, mut proofs: Vec<Evidence>, symptom: &Finding) -> Finding {
    proofs.extend(symptom.evidence.iter().cloned());
    Finding { id: NOT_IN_FORCE.to_owned(), title: ctx.text(title), evidence: proofs, explanation: ctx.text(explanation), ..symptom.clone() }
}
