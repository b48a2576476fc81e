//! A lab as the system under test: built, loaded and diagnosed.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chokepoint_lab::{Lab, Options, Scenario};
use chokepoint_load::{Control, Plan, Tls, Trust};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::{LoadResult, Loop};
use chokepoint_model::observation::Request;
use chokepoint_model::report::Diagnosis;
use chokepoint_sources::{Root, netns};

use crate::args::RedactLevel;
use crate::run::files::Output;
use crate::run::measure::Setup;
use crate::run::recordings::{self, Event};
use crate::run::settings::Target;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::verbs::diagnose::{Live, drive};

/// Connections if the scenario names none.
const CONNECTIONS_DEFAULT: u32 = 100;
/// How long the background load of a passive run lasts before the observer starts.
pub const PASSIVE_LEAD: Duration = Duration::from_secs(1);
/// How long the background load may outlast the scenario's duration.
const BACKGROUND_SPARE: Duration = Duration::from_secs(60);

/// Builds a scenario. Dropping the lab takes it down.
///
/// # Errors
/// If the host cannot build it, as [`Lab::up`].
pub fn build(scenario: &Scenario, interrupt: &Interrupt) -> Result<Lab> {
    build_with(scenario, false, None, interrupt)
}

/// Builds a scenario. `outlive`: it stays up when this process ends. `within`: a lab that is up as well and stays up longer.
pub(super) fn build_with(scenario: &Scenario, outlive: bool, within: Option<&str>, interrupt: &Interrupt) -> Result<Lab> {
    output::note(&format!("building {}: {}", scenario.name, scenario.title));
    let lab = up(scenario, outlive, within, interrupt)?;
    notes(&lab).iter().for_each(|note| output::note(note));
    Ok(lab)
}

/// Builds a scenario without a word.
pub(crate) fn up(scenario: &Scenario, outlive: bool, within: Option<&str>, interrupt: &Interrupt) -> Result<Lab> {
    let mut quiet = |_: &str| {};
    let options = Options { run_root: chokepoint_lab::run_root(), outlive, within, cancelled: Some(interrupt.flag()), on_step: &mut quiet };
    Ok(Lab::up(scenario, options)?)
}

/// What a user has to know of a lab that is up: settings of the whole machine, and remarks.
pub(crate) fn notes(lab: &Lab) -> Vec<String> {
    let set = |(key, found, set): (String, String, String)| {
        format!("{key} of this machine is {set} until the lab is taken down (it was {found})")
    };
    lab.host_sysctls().into_iter().map(set).chain(lab.notes().iter().cloned()).collect()
}

/// What to measure in a lab.
pub(crate) fn setup(lab: &Lab, passive: bool) -> Result<Setup> {
    let load = &lab.scenario().load;
    let target = Target::parse(lab.url())?;
    let client = netns::resolve(&Root::default(), &lab.client_netns_path().to_string_lossy())?;
    let request = Request {
        client_netns: client.id,
        expect: load.expect.0.clone(),
        slo_p99_us: load.slo_p99.map(|span| u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)),
        loaded: !passive,
        ..target.request()
    };
    let plan = if passive { None } else { Some(plan(lab)?) };
    Ok(Setup { plan, foreign: true, profile: true, ..Setup::new(request, load.duration.0) })
}

/// The load of a lab's scenario.
///
/// # Errors
/// If the scenario's URL or load is not valid.
pub fn plan(lab: &Lab) -> Result<Plan> {
    let load = &lab.scenario().load;
    let target = Target::parse(lab.url())?;
    let connections = load.connections.unwrap_or(CONNECTIONS_DEFAULT);
    let plan = Plan {
        address: target.address()?,
        protocol: target.protocol(Vec::new())?,
        host_header: target.request().host_header(),
        path_and_query: target.path_and_query.clone(),
        method: load.method.clone(),
        headers: load.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        body: load.body.clone().unwrap_or_default().into_bytes(),
        shape: match load.rate {
            Some(rate_per_s) => Loop::Open { rate_per_s, connections },
            None => Loop::Closed { connections },
        },
        duration: Some(load.duration.0),
        requests: None,
        timeout: load.timeout.0,
        keep_alive: load.keep_alive,
        expect: load.expect.0.clone(),
        netns: Some(lab.client_netns_path()),
        cpus: lab.client_cpus().map(<[u32]>::to_vec),
        threads: load.threads,
        guards: Vec::new(),
        options: chokepoint_load::Options {
            tls: tls(lab, &target),
            objective: load.slo_p99.map(|span| span.0),
            ..chokepoint_load::Options::default()
        },
    };
    plan.check()?;
    Ok(plan)
}

/// TLS, if the URL asks for it. No authority signed the lab's certificates.
fn tls(lab: &Lab, target: &Target) -> Option<Tls> {
    let resume = lab.scenario().load.tls.is_none_or(|tls| tls.resume);
    (target.scheme == "https").then(|| Tls { server_name: target.host.clone(), trust: Trust::Anybody, resume })
}

/// Runs `work`. In a passive run a background load, unknown to the diagnosis, runs at the same time. Also returns its result, which leaves out
/// [`PASSIVE_LEAD`] but includes the time in which the verdict was computed.
pub(super) fn with_background<T>(lab: &Lab, passive: bool, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<LoadResult>)> {
    if !passive {
        return Ok((work()?, None));
    }
    let mut plan = plan(lab)?;
    plan.duration = Some(plan.duration.unwrap_or_default() + BACKGROUND_SPARE);
    plan.options.warm_up = PASSIVE_LEAD;
    let control = Control::new();
    std::thread::scope(|scope| {
        let background = scope.spawn(|| chokepoint_load::run(&plan, &control));
        std::thread::sleep(PASSIVE_LEAD);
        let result = work();
        control.stop();
        match background.join() {
            Ok(load) => Ok((result?, Some(load?))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A diagnosis of a lab that changed nothing.
pub struct Diagnosed {
    /// What it says.
    pub report: Diagnosis,
    /// The result of the background load of a passive run.
    pub background: Option<LoadResult>,
    /// What was read, if it is recorded.
    events: Vec<Event>,
}

impl Diagnosed {
    /// Writes the recording of a diagnosis made with `keep_recording`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, file: &Path) -> Result<()> {
        recordings::save(Output::open(file, "recording")?, &self.events, RedactLevel::Public)
    }
}

/// Diagnoses a lab under its scenario's load, or watches a background load if `passive`.
///
/// # Errors
/// If the host cannot be observed or loaded.
pub fn diagnose(lab: &Lab, passive: bool, keep_recording: bool, words: &Catalogue, interrupt: &Interrupt) -> Result<Diagnosed> {
    let setup = setup(lab, passive)?;
    let mut live = Live::new(&setup, interrupt, true, "lab", keep_recording);
    let (report, background) = with_background(lab, passive, || drive(&mut live, false, words))?;
    Ok(Diagnosed { report, background, events: live.events })
}
