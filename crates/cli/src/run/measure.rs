//! One measurement: the observer reads the host while a load runs, or while other programs send traffic.

use std::io::IsTerminal;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_load::{Control, Guard, Plan};
use chokepoint_model::load::{LoadResult, Loop, Measured};
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::path;
use chokepoint_model::settle::{Moment, unsettled};
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_recording::{Entry, Scope};
use chokepoint_sources::assemble::{LOAD, PROFILE, REQUEST, UNLOADED, WARMTH, WINDOW, WIRE};
use chokepoint_sources::{ObserveOptions, Observer, UnderWay, assemble, assemble_recorded};

use crate::Usage;
use crate::run::background_task::BackgroundTask;
use crate::run::last_third;
use crate::run::listeners;
use crate::run::packet_capture;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::progress::{self, Progress};
use crate::terminal::prompt;

/// Stops a load on another host, or with a method that may change something.
const GUARD_FOREIGN: &str = "errors>20% || p99>5s";
/// Sequential requests before a load.
const SINGLE_REQUESTS: u64 = 10;
/// The time limit for all of them together, and for each.
const SINGLE_REQUESTS_MAX: Duration = Duration::from_secs(1);
/// The longest wait for the host to settle between two measurements.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// The wait ends after this time without any change.
const SETTLE_UNCHANGED_MAX: Duration = Duration::from_secs(5);
/// Duration of one observation of a settling host.
const SETTLE_OBSERVATION: Duration = Duration::from_millis(500);
/// How long answers are waited for once the user asked to stop; the others are not counted.
const ANSWERS_PATIENCE: Duration = Duration::from_millis(500);
/// Time between two checks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// What is measured; the same in every round.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) request: Request,
    /// The load; nothing in passive mode.
    pub(crate) plan: Option<Plan>,
    /// How long to watch in passive mode.
    pub(crate) duration: Duration,
    /// True if the user permitted load on another host, and methods that may change something.
    pub(crate) foreign: bool,
    /// True to take a profile in the last third of the time.
    pub(crate) profile: bool,
    /// True to measure before the load what a rest and a single request cost. Explanations need it; comparisons do not.
    pub(crate) unloaded: bool,
    /// Where packets come from; nothing without `--capture`.
    pub(crate) capture: Option<packet_capture::Source>,
    /// Most bytes of readings to keep.
    pub(crate) bound_bytes: usize,
    /// Most bytes that the profile holds of other programs' files; nothing for its own bounds.
    pub(crate) profile_bytes: Option<u64>,
}

impl Setup {
    /// Watches for this long, within the usual bounds, without a profile.
    pub(crate) fn new(request: Request, duration: Duration) -> Self {
        Self {
            request,
            plan: None,
            duration,
            foreign: false,
            profile: false,
            unloaded: true,
            capture: None,
            bound_bytes: ObserveOptions::BOUND_BYTES,
            profile_bytes: None,
        }
    }

    /// Starts an observation. With each sample it counts the requests that the load of `control` has in flight.
    fn observer(&self, control: Option<&Arc<Control>>) -> Result<Observer> {
        let under_way = control.map(|control| {
            let [counts, exchanges] = [Arc::clone(control), Arc::clone(control)];
            UnderWay::new(move || counts.under_way()).with_exchanges(move |port| exchanges.exchange(port))
        });
        let options = ObserveOptions { under_way, bound_bytes: self.bound_bytes, ..ObserveOptions::new(self.request.clone()) };
        Observer::start(options).context("the host cannot be observed")
    }
}

/// Measures once. Returns the raw entries, from which everything else is derived, and when the load or the wait ended.
pub(crate) fn measure(setup: &Setup, label: &str, interrupt: &Interrupt) -> Result<(Vec<Entry>, Instant)> {
    measure_leaving(setup, label, None, interrupt)
}

/// [`measure`] that releases `leaving` once the first readings are taken: from then on there is something to report.
pub(crate) fn measure_leaving(
    setup: &Setup,
    label: &str,
    leaving: Option<&Leaving>,
    interrupt: &Interrupt,
) -> Result<(Vec<Entry>, Instant)> {
    let control = setup.plan.is_some().then(|| Arc::new(Control::observed()));
    let observer = setup.observer(control.as_ref())?;
    leaving.map(Leaving::release);
    observer.note(REQUEST, serde_json::to_vec(&setup.request)?);
    let plan = setup.plan.as_ref().map(|plan| permitted(plan, setup.foreign, observer.path_found())).transpose().map_err(refused)?;
    // This sends nothing to the server. A failure only means that the figure is missing.
    if let Some(plan) = plan.as_ref().filter(|_| setup.unloaded && observer.path_found())
        && let Ok(warmth) = chokepoint_load::warmth::measure(plan.cpus.as_deref().unwrap_or_default())
    {
        observer.note(WARMTH, serde_json::to_vec(&warmth)?);
    }
    // After the observer's first readings: they are the most expensive, and would delay a request.
    if let Some(few) = plan.as_ref().filter(|_| setup.unloaded).and_then(single_requests) {
        observer.note(UNLOADED, serde_json::to_vec(&load(&few, label, interrupt)?)?);
    }
    let packet_capture = setup.capture.as_ref().map(|source| packet_capture::start(source, &setup.request));
    let mut begin_us = observer.elapsed_us();
    let profile = profile(setup, plan.as_ref(), &observer);
    let end_us = match plan.as_ref().zip(control) {
        Some((plan, control)) => {
            let result = offer_with(plan, &control, label, interrupt)?.result;
            observer.note(LOAD, serde_json::to_vec(&result)?);
            // The window is the time in which load was offered: without the start of threads and the wait for the last answers.
            begin_us = control.began().map_or(begin_us, |began| observer.elapsed_us().saturating_sub(began.elapsed().as_micros() as u64));
            begin_us + result.duration_us
        }
        None => {
            watch(setup.duration, label, interrupt);
            observer.elapsed_us()
        }
    };
    let ended = Instant::now();
    let end_us = end_us.min(observer.elapsed_us());
    observer.note(WINDOW, serde_json::to_vec(&(begin_us, end_us))?);
    let mut entries = observer.finish();
    // The tasks finish after the last readings, which must be from the end of the load: looking up names takes time.
    for (source, background_task) in [(PROFILE, profile), (WIRE, packet_capture)] {
        let entry = |outcome| Entry { at_us: end_us, source: source.to_owned(), scope: Scope::Host, item: String::new(), outcome };
        entries.extend(background_task.map(|background_task| entry(background_task.finish())));
    }
    Ok((entries, ended))
}

/// Starts the profile of the window that begins now. Nothing if none is wanted, or if the server runs on another host.
fn profile(setup: &Setup, plan: Option<&Plan>, observer: &Observer) -> Option<BackgroundTask> {
    let warm_up = plan.map_or(Duration::ZERO, |plan| plan.options.warm_up);
    let lasts = plan.map_or(Some(setup.duration), |plan| plan.duration);
    let is_here = plan.is_none() || observer.path_found();
    let lasts = lasts.filter(|_| setup.profile && is_here)?;
    Some(last_third::start(warm_up + lasts, observer.elapsed_us(), setup.profile_bytes, observer.path_so_far()))
}

/// Why a load is not sent.
enum Refusal {
    /// It needs permission; the sentence says for what.
    NeedsLeave(String),
    /// It would meet nobody: the address is this host's, and nothing listens there.
    MeetsNobody(String),
}

/// The plan that may be carried out. Load on another host, or with a method that may change something, needs permission and gets a guard. `answers`: a listener on this
/// host answers for the target.
fn permitted(plan: &Plan, has_leave: bool, answers: bool) -> std::result::Result<Plan, Refusal> {
    let what = match plan.methods().iter().find(|method| !is_harmless(method)) {
        None if answers => return Ok(plan.clone()),
        Some(method) if answers => Refusal::NeedsLeave(format!("method {method} may change something on the server: it is sent")),
        _ => nobody(plan),
    };
    if !has_leave {
        return Err(what);
    }
    let mut plan = plan.clone();
    if plan.guards.is_empty() {
        plan.guards.push(Guard::parse(GUARD_FOREIGN).map_err(|error| Refusal::MeetsNobody(error.to_string()))?);
    }
    Ok(plan)
}

/// That no listener was found, and where this host listens if the target is an address of it.
fn nobody(plan: &Plan) -> Refusal {
    let nobody = format!("nothing on this host listens at {} for this client", plan.address);
    if plan.address.tcp().is_none() {
        return Refusal::MeetsNobody(nobody);
    }
    match plan.address.tcp().filter(|_| plan.netns.is_none()).and_then(listeners::of_this_host) {
        Some(named) => Refusal::MeetsNobody(format!("{nobody} (TCP listeners here: {named})")),
        None => Refusal::NeedsLeave(format!("{nobody}; load is sent elsewhere")),
    }
}

/// An error if the load needs a permission that was not given.
pub(crate) fn permit(setup: &Setup) -> Result<()> {
    let Some(plan) = &setup.plan else { return Ok(()) };
    let observer = setup.observer(None)?;
    let is_found = observer.path_found();
    observer.finish();
    permitted(plan, setup.foreign, is_found).map(drop).map_err(refused)
}

/// The plan that `bench` may carry out, by the same rule. It makes no connection. Without permission it asks on the terminal; without a terminal it refuses
/// the command line.
///
/// Also returns the surroundings of the load, as far as its observation shows them, if they are wanted (`look_around`).
pub(crate) fn permitted_alone(
    plan: &Plan,
    request: Request,
    has_leave: bool,
    look_around: bool,
    interrupt: &Interrupt,
) -> Result<(Plan, Surroundings)> {
    // Without an observation it is unknown whether this host answers; assume that it does not.
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let watched = Request { loaded: false, machine: Some(machine), ..request };
    let observer = Observer::start(ObserveOptions::new(watched.clone())).ok();
    let answers = observer.as_ref().is_some_and(Observer::path_found);
    let around = match observer.filter(|_| look_around) {
        Some(observer) => {
            observer.note(REQUEST, serde_json::to_vec(&watched)?);
            surroundings(&assemble(&observer.finish()))
        }
        None => Surroundings::new(),
    };
    let what = match permitted(plan, has_leave, answers) {
        Ok(plan) => return Ok((plan, around)),
        Err(refusal @ Refusal::MeetsNobody(_)) => return Err(refused(refusal)),
        Err(Refusal::NeedsLeave(what)) => what,
    };
    if !std::io::stdin().is_terminal() {
        bail!(Usage(refused(Refusal::NeedsLeave(what)).to_string()));
    }
    let guard = plan.guards.first().map_or_else(|| GUARD_FOREIGN.to_owned(), ToString::to_string);
    if !prompt::ask(&format!("{what} only if you agree, and stopped when {guard}.\nSend it?"), interrupt)? {
        bail!("nothing was sent: to send it, answer y or add --yes");
    }
    Ok((permitted(plan, true, answers).map_err(refused)?, around))
}

fn refused(refusal: Refusal) -> anyhow::Error {
    match refusal {
        Refusal::NeedsLeave(what) => anyhow::anyhow!("{what} only with --yes"),
        Refusal::MeetsNobody(what) => anyhow::anyhow!(what),
    }
}

fn is_harmless(method: &str) -> bool {
    ["GET", "HEAD"].contains(&method)
}

/// A plan for a few sequential requests before the load: their time without concurrency shows whether requests under load wait for something. Nothing
/// if the number of requests is given, if they may change something, or if the load itself is sequential.
fn single_requests(plan: &Plan) -> Option<Plan> {
    let many = !matches!(plan.shape, Loop::Closed { connections: 0 | 1 });
    (many && plan.requests.is_none() && plan.methods().iter().all(|method| is_harmless(method))).then(|| Plan {
        shape: Loop::Closed { connections: 1 },
        threads: Some(1),
        requests: Some(SINGLE_REQUESTS),
        duration: Some(SINGLE_REQUESTS_MAX),
        timeout: plan.timeout.min(SINGLE_REQUESTS_MAX),
        ..plan.clone()
    })
}

/// Runs a load without an observation.
///
/// # Errors
/// If the generator cannot start, as `chokepoint_load::measure`.
pub fn load(plan: &Plan, label: &str, interrupt: &Interrupt) -> Result<LoadResult> {
    offer(plan, label, interrupt).map(|measured| measured.result)
}

/// [`load`], with the details for a report on the load itself.
pub(crate) fn offer(plan: &Plan, label: &str, interrupt: &Interrupt) -> Result<Measured> {
    offer_with(plan, &Control::new(), label, interrupt)
}

fn offer_with(plan: &Plan, control: &Control, label: &str, interrupt: &Interrupt) -> Result<Measured> {
    let mut progress = Progress::new(label, plan.duration.map(|duration| plan.options.warm_up + duration));
    let measured = offer_shown(plan, control, interrupt, &mut |control| {
        let now = control.progress();
        progress.tick(&format!("{} good, {} failed", now.good, now.ended.saturating_sub(now.good)));
    });
    progress.finish();
    measured
}

/// Runs a load and calls `show` repeatedly while it runs.
pub(crate) fn offer_shown(plan: &Plan, control: &Control, interrupt: &Interrupt, show: &mut dyn FnMut(&Control)) -> Result<Measured> {
    thread::scope(|scope| {
        let running = scope.spawn(|| chokepoint_load::measure(plan, control));
        let mut asked = None;
        while !running.is_finished() {
            if interrupt.is_set() {
                control.stop();
                // A server that does not answer must not hold the program for a whole timeout.
                if asked.get_or_insert_with(Instant::now).elapsed() >= ANSWERS_PATIENCE {
                    control.abort();
                }
            }
            show(control);
            thread::sleep(POLL);
        }
        match running.join() {
            Ok(result) => Ok(result?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Waits with a progress bar, until the user asks to stop.
pub fn watch(duration: Duration, label: &str, interrupt: &Interrupt) {
    let begin = Instant::now();
    let mut progress = Progress::new(label, Some(duration));
    while begin.elapsed() < duration && !interrupt.is_set() {
        progress.tick("");
        thread::sleep(POLL.min(duration.saturating_sub(begin.elapsed())));
    }
    progress.finish();
}

/// The observation of entries that this run read.
pub(crate) fn observation(entries: &[Entry]) -> Observation {
    assemble(entries)
}

/// The observation of the entries of a recording, within bounds.
pub(crate) fn recorded(entries: &[Entry]) -> Result<Observation> {
    assemble_recorded(entries).context("the recording cannot be replayed")
}

/// Says which measurement begins and how long it loads, where no bar can show it.
pub(crate) fn tell(setup: &Setup, label: &str) {
    if let Some(duration) = setup.plan.as_ref().map_or(Some(setup.duration), |plan| plan.duration) {
        progress::announce(&format!("{label}: {} s, once the host has settled", duration.as_secs_f64()));
    }
}

/// Waits until the traces of the last load are gone, at most [`SETTLE_MAX`]. The next measurement reports what remains.
pub(crate) fn settle(setup: &Setup, interrupt: &Interrupt) -> Result<()> {
    let begin = Instant::now();
    let mut progress = Progress::new("settling", None);
    let (mut last, mut changed) = (Vec::new(), begin);
    while begin.elapsed() < SETTLE_MAX && !interrupt.is_set() {
        // Only observe: past traffic shows the path, so no further connection is needed.
        let watched = Request { loaded: false, ..setup.request.clone() };
        let observer = Observer::start(ObserveOptions::new(watched)).context("the host cannot be observed")?;
        observer.note(REQUEST, serde_json::to_vec(&setup.request)?);
        thread::sleep(SETTLE_OBSERVATION);
        let obs = assemble(&observer.finish());
        let left = unsettled(&obs, &path::discover(&obs), Moment::Last);
        if left.is_empty() {
            break;
        }
        // What does not change now will not be gone in time.
        if left != last {
            (last, changed) = (left, Instant::now());
        } else if changed.elapsed() >= SETTLE_UNCHANGED_MAX {
            break;
        }
        progress.tick("");
    }
    progress.finish();
    Ok(())
}
