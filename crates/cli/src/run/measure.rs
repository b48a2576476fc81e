//! One measurement: the observer watches while load runs, or while other programs' traffic does.

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
use chokepoint_recording::{Entry, Scope};
use chokepoint_sources::assemble::{LOAD, PROFILE, REQUEST, UNLOADED, WARMTH, WINDOW, WIRE};
use chokepoint_sources::{ObserveOptions, Observer, UnderWay, assemble, assemble_recorded};

use crate::Usage;
use crate::run::background_task::BackgroundTask;
use crate::run::last_third;
use crate::run::packet_capture;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::progress::Progress;
use crate::terminal::prompt;

/// What stops a load on a host that is not this one, or one that may change something there.
const GUARD_FOREIGN: &str = "errors>20% || p99>5s";
/// Requests that are sent one behind the other before a load.
const SINGLE_REQUESTS: u64 = 10;
/// The longest that they may take, and each of them.
const SINGLE_REQUESTS_MAX: Duration = Duration::from_secs(1);
/// Longest wait for the host to settle between two measurements.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Time after which a host that did not change at all while it settled is not waited for any more.
const SETTLE_STILL_MAX: Duration = Duration::from_secs(5);
/// Time over which one look at a settling host is taken.
const SETTLE_LOOK: Duration = Duration::from_millis(500);
/// How often a wait looks whether the user asked to stop.
const POLL: Duration = Duration::from_millis(50);

/// What is measured, the same in every round.
pub(crate) struct Setup {
    pub(crate) request: Request,
    /// The load; nothing in passive mode.
    pub(crate) plan: Option<Plan>,
    /// How long to watch in passive mode.
    pub(crate) duration: Duration,
    /// True where the user allowed load on a host that is not this one, and methods that may change something.
    pub(crate) foreign: bool,
    /// True where a profile is to be taken in the last third of the time.
    pub(crate) profile: bool,
    /// Where packets are to come from, where they are wanted.
    pub(crate) capture: Option<packet_capture::Source>,
}

impl Setup {
    /// An observation, that counts what the load of this control has under way with its samples.
    fn observer(&self, control: Option<&Arc<Control>>) -> Result<Observer> {
        let under_way = control.cloned().map(|control| UnderWay::new(move || control.under_way()));
        let options = ObserveOptions { under_way, ..ObserveOptions::new(self.request.clone()) };
        Observer::start(options).context("the host cannot be observed")
    }
}

/// Measures once and gives the raw entries, from which everything else follows, and when the load (or the watch) ended.
pub(crate) fn measure(setup: &Setup, label: &str, interrupt: &Interrupt) -> Result<(Vec<Entry>, Instant)> {
    let control = setup.plan.is_some().then(|| Arc::new(Control::new()));
    let observer = setup.observer(control.as_ref())?;
    observer.note(REQUEST, serde_json::to_vec(&setup.request)?);
    let plan = setup.plan.as_ref().map(|plan| permitted(plan, setup.foreign, observer.path_found())).transpose().map_err(refused)?;
    // It asks nothing of the server, and where it cannot be measured nothing is told of it.
    if let Some(plan) = plan.as_ref().filter(|_| observer.path_found())
        && let Ok(warmth) = chokepoint_load::warmth::measure(plan.cpus.as_deref().unwrap_or_default())
    {
        observer.note(WARMTH, serde_json::to_vec(&warmth)?);
    }
    // After that, for the observer's first readings, which are its dearest, are over by then and keep no request waiting.
    if let Some(few) = plan.as_ref().and_then(single_requests) {
        observer.note(UNLOADED, serde_json::to_vec(&load(&few, label, interrupt)?)?);
    }
    let packet_capture = setup.capture.as_ref().map(|source| packet_capture::start(source, &setup.request));
    let mut begin_us = observer.elapsed_us();
    let profile = profile(setup, plan.as_ref(), &observer);
    let end_us = match plan.as_ref().zip(control) {
        Some((plan, control)) => {
            let result = offer_with(plan, &control, label, interrupt)?.result;
            observer.note(LOAD, serde_json::to_vec(&result)?);
            // The window is the time in which load was offered; without the time in which its threads are made, and without the wait for the last answers.
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
    // Names are looked up after the last readings, which are to be of the load's end.
    for (source, background_task) in [(PROFILE, profile), (WIRE, packet_capture)] {
        let entry = |outcome| Entry { at_us: end_us, source: source.to_owned(), scope: Scope::Host, item: String::new(), outcome };
        entries.extend(background_task.map(|background_task| entry(background_task.finish())));
    }
    Ok((entries, ended))
}

/// The profile of the window that is about to begin; nothing where none is wanted, or it is another host that answers: what runs here is not it.
fn profile(setup: &Setup, plan: Option<&Plan>, observer: &Observer) -> Option<BackgroundTask> {
    let warm_up = plan.map_or(Duration::ZERO, |plan| plan.options.warm_up);
    let lasts = plan.map_or(Some(setup.duration), |plan| plan.duration);
    let is_here = plan.is_none() || observer.path_found();
    let lasts = lasts.filter(|_| setup.profile && is_here)?;
    Some(last_third::start(warm_up + lasts, observer.elapsed_us()))
}

/// The plan as it may be carried out: load on another host, or by a method that may change something, needs leave and gets a guard. The error is the
/// sentence that says what needs leave. `answers`: a listener on this host answers for the target.
fn permitted(plan: &Plan, has_leave: bool, answers: bool) -> std::result::Result<Plan, String> {
    let what = match plan.methods().iter().find(|method| !is_harmless(method)) {
        None if answers => return Ok(plan.clone()),
        Some(method) if answers => format!("method {method} may change something on the server: it is sent"),
        _ => format!("nothing on this host listens at {} for this client; load is sent elsewhere", plan.address),
    };
    if !has_leave {
        return Err(what);
    }
    let mut plan = plan.clone();
    if plan.guards.is_empty() {
        plan.guards.push(Guard::parse(GUARD_FOREIGN).map_err(|error| error.to_string())?);
    }
    Ok(plan)
}

/// An error where the load may not be sent without leave that was not given.
pub(crate) fn permit(setup: &Setup) -> Result<()> {
    let Some(plan) = &setup.plan else { return Ok(()) };
    let observer = setup.observer(None)?;
    let is_found = observer.path_found();
    observer.finish();
    permitted(plan, setup.foreign, is_found).map(drop).map_err(refused)
}

/// The plan as it may be carried out without a diagnosis, by the same rule. No connection is made to tell. Without leave a terminal is asked, and where
/// there is none the command line is at fault.
pub(crate) fn permitted_alone(plan: &Plan, request: Request, has_leave: bool, interrupt: &Interrupt) -> Result<Plan> {
    // Where nothing can be observed, nobody knows that it is this host which answers.
    let watched = Request { loaded: false, ..request };
    let answers = Observer::start(ObserveOptions::new(watched)).is_ok_and(|observer| observer.path_found());
    let what = match permitted(plan, has_leave, answers) {
        Ok(plan) => return Ok(plan),
        Err(what) => what,
    };
    if !std::io::stdin().is_terminal() {
        bail!(Usage(refused(what).to_string()));
    }
    let guard = plan.guards.first().map_or_else(|| GUARD_FOREIGN.to_owned(), ToString::to_string);
    if !prompt::ask(&format!("{what} only with your leave, and stopped where {guard}.\nSend it?"), interrupt)? {
        bail!("nothing was sent");
    }
    permitted(plan, true, answers).map_err(refused)
}

fn refused(what: String) -> anyhow::Error {
    anyhow::anyhow!("{what} only with --yes")
}

fn is_harmless(method: &str) -> bool {
    ["GET", "HEAD"].contains(&method)
}

/// A few requests one behind the other, to be sent before the load: what an answer takes without others beside it tells whether the load waits for
/// something. Nothing where requests are counted, may change something, or are single ones anyway.
fn single_requests(plan: &Plan) -> Option<Plan> {
    let many = !matches!(plan.shape, Loop::Closed { connections: 0 | 1 });
    (many && plan.requests.is_none() && plan.methods().iter().all(|method| is_harmless(method))).then(|| Plan {
        shape: Loop::Closed { connections: 1 },
        threads: 1,
        requests: Some(SINGLE_REQUESTS),
        duration: Some(SINGLE_REQUESTS_MAX),
        timeout: plan.timeout.min(SINGLE_REQUESTS_MAX),
        ..plan.clone()
    })
}

/// Offers a load that nothing watches.
///
/// # Errors
/// Where the generator cannot start, as `chokepoint_load::measure`.
pub fn load(plan: &Plan, label: &str, interrupt: &Interrupt) -> Result<LoadResult> {
    offer(plan, label, interrupt).map(|measured| measured.result)
}

/// As [`load`], with what a report on the load itself asks for.
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

/// Offers a load; `show` is called again and again while it runs.
pub(crate) fn offer_shown(plan: &Plan, control: &Control, interrupt: &Interrupt, show: &mut dyn FnMut(&Control)) -> Result<Measured> {
    thread::scope(|scope| {
        let running = scope.spawn(|| chokepoint_load::measure(plan, control));
        while !running.is_finished() {
            if interrupt.is_set() {
                control.stop();
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

/// Lets time pass, until the user asks to stop.
pub fn watch(duration: Duration, label: &str, interrupt: &Interrupt) {
    let begin = Instant::now();
    let mut progress = Progress::new(label, Some(duration));
    while begin.elapsed() < duration && !interrupt.is_set() {
        progress.tick("");
        thread::sleep(POLL.min(duration.saturating_sub(begin.elapsed())));
    }
    progress.finish();
}

/// The observation that entries give which this run read.
pub(crate) fn observation(entries: &[Entry]) -> Observation {
    assemble(entries)
}

/// The observation that a recording's entries give: the same, within bounds.
pub(crate) fn recorded(entries: &[Entry]) -> Result<Observation> {
    assemble_recorded(entries).context("the recording cannot be replayed")
}

/// Waits until what the last load left has gone, at most [`SETTLE_MAX`]; what remains then is told by the next measurement.
pub(crate) fn settle(setup: &Setup, interrupt: &Interrupt) -> Result<()> {
    let begin = Instant::now();
    let mut progress = Progress::new("settling", None);
    let (mut last, mut moved) = (Vec::new(), begin);
    while begin.elapsed() < SETTLE_MAX && !interrupt.is_set() {
        // It is watched only: the traffic that was there tells the way, and no further connection is made for that.
        let watched = Request { loaded: false, ..setup.request.clone() };
        let observer = Observer::start(ObserveOptions::new(watched)).context("the host cannot be observed")?;
        observer.note(REQUEST, serde_json::to_vec(&setup.request)?);
        thread::sleep(SETTLE_LOOK);
        let obs = assemble(&observer.finish());
        let left = unsettled(&obs, &path::discover(&obs), Moment::Last);
        if left.is_empty() {
            break;
        }
        // What does not move now will not be gone in time: it is told by the next measurement.
        if left != last {
            (last, moved) = (left, Instant::now());
        } else if moved.elapsed() >= SETTLE_STILL_MAX {
            break;
        }
        progress.tick("");
    }
    progress.finish();
    Ok(())
}
