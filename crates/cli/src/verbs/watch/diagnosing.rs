//! Diagnoses in threads of their own: during a drop, and now and then while nothing is wrong, to compare with.

use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Request;
use chokepoint_model::report::{Diagnosis, Role};
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_recorder::incident::{Cause, Diagnosed};

use crate::args::RedactLevel;
use crate::report::text;
use crate::run::measure::{self, Setup};
use crate::run::recordings::{self, Event};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::Style;

/// How long a drop is observed: an incident is to be told within 15 seconds, and four go by until it is seen. The profile of its last third has a hundred samples of
/// each busy core.
const DURING: Duration = Duration::from_secs(5);
/// Columns of a kept report.
const REPORT_COLUMNS: usize = 100;
/// How long a look at the surroundings takes.
const BETWEEN: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) diagnosed: Diagnosed,
    pub(super) surroundings: Surroundings,
    /// The readings, as `diagnose --replay` takes them.
    pub(super) recording: Vec<u8>,
}

/// Diagnoses what is there now. Words are few, so each thread has its own.
pub(super) fn during(request: &Request, interrupt: &Interrupt) -> Option<JoinHandle<Result<Found, String>>> {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (request, interrupt) = (Request { machine: Some(machine), ..request.clone() }, interrupt.clone());
    spawn(move || {
        let entries = measured(request, DURING, true, &interrupt)?;
        let observation = measure::observation(&entries);
        let (recording, _) = recordings::bytes(&[Event::Measured(entries)], RedactLevel::Public);
        let words = Catalogue::english();
        let diagnosed = diagnosed(&diagnose(&observation, &words), &words).map_err(|error| error.to_string())?;
        Ok(Found { diagnosed, surroundings: surroundings(&observation), recording })
    })
}

/// What is kept of a diagnosis.
fn diagnosed(diagnosis: &Diagnosis, words: &Catalogue) -> serde_json::Result<Diagnosed> {
    let cause = diagnosis.findings.iter().find(|finding| finding.role == Role::Cause);
    let plain = Style { color: false, unicode: true, width: REPORT_COLUMNS };
    Ok(Diagnosed {
        document: serde_json::to_value(diagnosis)?,
        summary: diagnosis.summary.clone(),
        cause: cause.map(|cause| Cause { id: cause.id.clone(), title: cause.title.clone() }),
        text: text::brief(diagnosis, &plain, words).to_string(),
    })
}

/// Looks at what surrounds these servers.
pub(super) fn between(requests: Vec<Request>, interrupt: &Interrupt) -> Option<JoinHandle<Result<Vec<Surroundings>, String>>> {
    let interrupt = interrupt.clone();
    spawn(move || {
        let one = |request| Ok(surroundings(&measure::observation(&measured(request, BETWEEN, false, &interrupt)?)));
        requests.into_iter().map(one).collect()
    })
}

fn measured(
    request: Request,
    duration: Duration,
    profile: bool,
    interrupt: &Interrupt,
) -> Result<Vec<chokepoint_recording::Entry>, String> {
    let setup = Setup { request, plan: None, duration, foreign: false, profile, unloaded: false, capture: None };
    let measured = measure::measure(&setup, "", interrupt).map_err(|error| format!("{error:#}"));
    measured.map(|(entries, _)| entries)
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<JoinHandle<T>> {
    std::thread::Builder::new().name("diagnosing".to_owned()).spawn(work).ok()
}
