//! Diagnoses in threads of their own: during a drop, and now and then while nothing is wrong, to compare with.

use std::collections::BTreeSet;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Request;
use chokepoint_model::report::{Diagnosis, LimitedBy, Role};
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_profile::output::folded;
use chokepoint_recorder::incident::{Cause, Diagnosed};

use crate::args::RedactLevel;
use crate::report::view::{Phrases, Shown, told};
use crate::report::{page, text};
use crate::run::measure::{self, Setup};
use crate::run::recordings::{self, Event};
use crate::run::{last_third, memory};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{self, Style};

/// How long a drop is observed: an incident is to be told within 15 seconds, and four go by until it is seen. The profile of its last third has a hundred samples of
/// each busy core.
const DURING: Duration = Duration::from_secs(5);
/// Columns of a kept report.
const REPORT_COLUMNS: usize = 100;
/// How long a look while nothing is wrong takes.
const BETWEEN: Duration = Duration::from_secs(2);
/// Most bytes of its readings: beside a site with thousands of connections a part of the samples must do, for this program runs beside it all the time.
const BOUND_BYTES: usize = 12 << 20;
/// Most bytes that each of the two profiles of a drop holds of other programs' files: compilers beside the site have hundreds of megabytes of tables.
const PROFILE_BYTES: u64 = 8 << 20;
/// The most bytes of a profile's stacks that are kept.
const STACKS_BYTES_MAX: usize = 4 << 20;

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) diagnosis: Diagnosis,
    pub(super) diagnosed: Diagnosed,
    pub(super) surroundings: Surroundings,
    /// The readings, as `diagnose --replay` takes them.
    pub(super) recording: Vec<u8>,
    /// The CPU profile, as folded stacks.
    pub(super) profile: Option<String>,
}

/// What was seen while nothing was wrong.
#[derive(Debug)]
pub(super) struct Calm {
    /// Of each server, in their order.
    pub(super) surroundings: Vec<Surroundings>,
    pub(super) diagnoses: Vec<Diagnosis>,
    /// The CPU profile, as folded stacks.
    pub(super) profile: Option<String>,
}

/// Diagnoses what is there now. Words are few, so each thread has its own.
pub(super) fn during(request: &Request, interrupt: &Interrupt) -> Option<JoinHandle<Result<Found, String>>> {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (request, interrupt) = (Request { machine: Some(machine), ..request.clone() }, interrupt.clone());
    spawn(move || {
        let profile = profiled(DURING, &interrupt);
        let entries = measured(request, DURING, true, &interrupt)?;
        let observation = measure::observation(&entries);
        let words = Catalogue::english();
        let (diagnosis, surroundings) = (diagnose(&observation, &words), surroundings(&observation));
        drop(observation);
        let (recording, _) = recordings::bytes(&[Event::Measured(entries)], RedactLevel::Public);
        let diagnosed = diagnosed(&diagnosis, &words).map_err(|error| error.to_string())?;
        let profile = joined(profile);
        memory::give_back();
        Ok(Found { diagnosis, diagnosed, surroundings, recording, profile })
    })
}

/// What is kept of a diagnosis.
fn diagnosed(diagnosis: &Diagnosis, words: &Catalogue) -> serde_json::Result<Diagnosed> {
    let found = diagnosis.findings.iter().find(|finding| finding.role == Role::Cause);
    let found = found.map(|found| Cause { id: found.id.clone(), is_limit: false, title: found.title.clone() });
    let plain = Style { color: false, unicode: true, width: REPORT_COLUMNS };
    Ok(Diagnosed {
        document: serde_json::to_value(diagnosis)?,
        page: page::diagnosis::page(diagnosis, words).json(),
        summary: diagnosis.summary.clone(),
        cause: found.or_else(|| limit(diagnosis, words)),
        text: text::brief(diagnosis, &plain, words).to_string(),
    })
}

/// The resource that is used up: where clients are served worse than before, that is the cause.
fn limit(diagnosis: &Diagnosis, words: &Catalogue) -> Option<Cause> {
    let station = match diagnosis.limited_by? {
        LimitedBy::Cpu => "cpu",
        LimitedBy::Link => "link",
        LimitedBy::Demand => return None,
    };
    let title = told(&Shown::of_first(diagnosis).word(Phrases(words)), &diagnosis.summary);
    Some(Cause { id: station.to_owned(), is_limit: true, title })
}

/// Looks at the paths of these servers and at what surrounds them, and with `profile` at what uses the cores.
pub(super) fn between(requests: Vec<Request>, profile: bool, interrupt: &Interrupt) -> Option<JoinHandle<Result<Calm, String>>> {
    let interrupt = interrupt.clone();
    spawn(move || {
        // One after the other, and each gives back what it needed: nobody waits for it, and the memory of a busy host's sockets or of a program's symbols is much.
        let profile = profile.then(|| joined(profiled(BETWEEN, &interrupt))).flatten();
        memory::give_back();
        let words = Catalogue::english();
        let one = |request| {
            let observation = measure::observation(&measured(request, BETWEEN, false, &interrupt)?);
            let found = (surroundings(&observation), diagnose(&observation, &words));
            drop(observation);
            memory::give_back();
            Ok(found)
        };
        let (surroundings, diagnoses) = requests.into_iter().map(one).collect::<Result<Vec<_>, String>>()?.into_iter().unzip();
        Ok(Calm { surroundings, diagnoses, profile })
    })
}

/// Samples all cores for a time. Nothing without the right to: the diagnosis says so.
fn profiled(duration: Duration, interrupt: &Interrupt) -> Option<JoinHandle<Option<String>>> {
    let interrupt = interrupt.clone();
    spawn(move || {
        let begin = Instant::now();
        let profile =
            last_third::sampled(Some(PROFILE_BYTES), BTreeSet::new(), || begin.elapsed() < duration && !interrupt.is_set()).ok()?;
        Some(folded::write_with_left_out(&profile)).filter(|stacks| stacks.len() <= STACKS_BYTES_MAX)
    })
}

fn joined(profile: Option<JoinHandle<Option<String>>>) -> Option<String> {
    profile?.join().ok()?
}

fn measured(
    request: Request,
    duration: Duration,
    profile: bool,
    interrupt: &Interrupt,
) -> Result<Vec<chokepoint_recording::Entry>, String> {
    let bounded = Setup { bound_bytes: BOUND_BYTES, profile_bytes: Some(PROFILE_BYTES), ..Setup::new(request, duration) };
    let setup = Setup { profile, unloaded: false, ..bounded };
    let measured = measure::measure(&setup, "", interrupt).map_err(|error| output::once(&error));
    measured.map(|(entries, _)| entries)
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<JoinHandle<T>> {
    std::thread::Builder::new().name("diagnosing".to_owned()).spawn(work).ok()
}
