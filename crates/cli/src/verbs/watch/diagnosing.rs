//! Diagnoses in threads of their own: during a drop, and now and then while nothing is wrong, to compare with.

use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Request;
use chokepoint_model::report::Diagnosis;
use chokepoint_model::surroundings::{Surroundings, surroundings};

use crate::args::RedactLevel;
use crate::run::measure::{self, Setup};
use crate::run::recordings::{self, Event};
use crate::terminal::interrupt::Interrupt;

/// How long a drop is observed: an incident is to be told within 15 seconds, and four go by until it is seen. The profile of its last third has a hundred samples of
/// each busy core.
const DURING: Duration = Duration::from_secs(5);
/// How long a look at the surroundings takes.
const BETWEEN: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) diagnosis: Diagnosis,
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
        Ok(Found { diagnosis: diagnose(&observation, &Catalogue::english()), surroundings: surroundings(&observation), recording })
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
