//! `chokepoint diagnose`: drives the session of the model, live or from a recording.

mod fail_if;
mod replay;

use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_foreign::printable;
use chokepoint_load::{Options, Plan};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::fix::{Action, Objective, Session};
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::report::{Diagnosis, Remedy, Verdict};
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_remedy::{ApplyError, Consent};
use chokepoint_runs::NewRun;
use chokepoint_sources::Root;
use chokepoint_sources::netns;

use crate::args::{Diagnose, RedactLevel};
use crate::report::{page, text};
use crate::run::bisect;
use crate::run::changes::Changes;
use crate::run::confirm;
use crate::run::files;
use crate::run::keeping::{self, Begun};
use crate::run::listeners;
use crate::run::measure::{self, Setup};
use crate::run::packet_capture;
use crate::run::plan;
use crate::run::recordings::{self, Event};
use crate::run::route::Route;
use crate::run::settings::{self, Target};
use crate::run::tls;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;
use crate::{EXIT_FAILED, EXIT_THRESHOLD, Usage};
use fail_if::FailIf;
pub(crate) use replay::RecordingReader;

/// How long it watches or loads without `-z`.
const DURATION_DEFAULT: &str = "10s";

/// Runs the verb and returns the exit status.
pub(crate) fn run(args: &Diagnose, words: &Catalogue, interrupt: &Interrupt) -> Result<u8> {
    let fail_if = fail_if(args)?;
    let outputs = files::DiagnosisFiles::open(args)?;
    let (mut report, recorded) = match &args.replay {
        Some(file) => (replay::replay(file)?, Ok(())),
        None => {
            if args.fix && !args.is_loaded() {
                bail!(Usage("a fix is proven under load, so --fix needs one: add -c, -q, -n or --load".to_owned()));
            }
            if args.fix && !args.yes && !std::io::stdin().is_terminal() {
                bail!(Usage("--fix asks before each change, but there is no terminal to ask on: add --yes".to_owned()));
            }
            let leaving = Leaving::hold_while_preparing(interrupt);
            let setup = setup(args)?;
            if !args.is_loaded() {
                tell_unused_load(args);
                tell_listeners(&setup);
            }
            let begun = Begun::now();
            let measured = live(args, &setup, leaving, words, interrupt);
            // The report is printed even if the recording fails.
            let recorded = outputs.record.map_or(Ok(()), |file| recordings::save(file, &measured.events, args.redact));
            if let Ok(report) = &measured.report {
                keeping::keep(&args.keep, words, || {
                    kept(report, &measured.surroundings, &setup, words, begun.run("diagnose", &report.target.url, interrupt))
                });
            }
            let report = match measured.report {
                Ok(report) => report,
                Err(error) => {
                    recorded.unwrap_or_else(|failed| output::note(&format!("chokepoint: {}", output::once(&failed))));
                    return Err(error);
                }
            };
            (report, recorded)
        }
    };
    // Conditions that cannot be judged keep nobody from the report.
    let judged = fail_if.map(|fail_if| fail_if.judge(&report, words)).transpose();
    report.fail_if = judged.as_ref().ok().and_then(Option::as_ref).map(|judged| judged.report.clone());
    let printed = match args.json {
        true => output::print_json(&format!("{}\n", serde_json::to_string_pretty(&report)?)),
        false if args.verbose => output::print_painted(&text::render(&report, &output::style(), words)),
        false => output::print_painted(&text::brief_of(&report, &output::style(), words, again().as_ref())),
    };
    files::first_error([printed, recorded].into_iter().chain(outputs.pages.write(&report, words)))?;
    let failed = judged?.map(|judged| judged.failed).unwrap_or_default();
    failed.iter().for_each(|condition| output::note(&format!("failed: {condition}")));
    Ok(match report.verdict {
        _ if !failed.is_empty() => EXIT_THRESHOLD,
        Verdict::Unknown => EXIT_FAILED,
        _ => 0,
    })
}

/// The command line of this run.
fn again() -> Option<text::Again> {
    let args = std::env::args_os().skip(1).map(|arg| arg.into_string().ok()).collect::<Option<Vec<_>>>()?;
    text::Again::of(args, rustix::process::geteuid().is_root())
}

/// The conditions of --fail-if. What only a load can show is refused where none is asked for.
fn fail_if(args: &Diagnose) -> Result<Option<FailIf>> {
    let Some(text) = &args.fail_if else { return Ok(None) };
    let fail_if = FailIf::parse(text).map_err(|error| Usage(output::once(&error)))?;
    if fail_if.needs_load() && args.replay.is_none() && !args.is_loaded() {
        bail!(Usage(format!("--fail-if {text:?} needs a load: add -c, -q, -n or --load")));
    }
    Ok(Some(fail_if))
}

/// Names the flags that only a load uses.
fn tell_unused_load(args: &Diagnose) {
    let load = &args.load;
    let given = [
        ("-t", load.timeout.is_some()),
        ("-m", load.method != "GET"),
        ("-H", !load.headers.is_empty()),
        ("-d", load.body.is_some()),
        ("-D", load.body_file.is_some()),
        ("--threads", load.threads.is_some()),
        ("--cacert", args.connection.cacert.is_some()),
        ("--insecure", args.connection.insecure),
        ("--tls-no-resumption", args.connection.tls_no_resumption),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect();
    if !given.is_empty() {
        output::note(&format!("note: {} has no effect without a load: add -c, -q, -n or --load", given.join(", ")));
    }
}

/// Names the listeners of the server's namespace if none of them has the target's port. They may have come with the next second, so it is watched nevertheless.
fn tell_listeners(setup: &Setup) {
    let request = &setup.request;
    if !request.unix.is_empty() {
        return;
    }
    let Some(found) = listeners::unless_at(request.server_netns.unwrap_or(request.client_netns), request.port) else { return };
    let (port, here) = (request.port, found.here);
    let is_here = |ip: &IpAddr| listeners::is_here(Some(SocketAddr::new(*ip, port)));
    // An address of another namespace leads to what listens there.
    if !found.at_port.is_empty() && !request.addresses.iter().any(is_here) {
        return;
    }
    let told = format!("note: nothing listens on port {port} of this network namespace now (TCP listeners: {here})");
    output::note(&match found.at_port.as_str() {
        "" => told,
        places => format!("{told}; something does in {places}, which is found by its address, or named with --server-netns"),
    });
}

/// The run as it is kept, with the figures of the state in which it left the server. `around`: what each measurement was made on.
fn kept(report: &Diagnosis, around: &[Surroundings], setup: &Setup, words: &Catalogue, run: NewRun) -> Result<NewRun> {
    let result = report.result();
    let surroundings = around.get(result.map_or(0, |round| round.n as usize)).or(around.last());
    let figures = result.map(|round| &round.load).or(report.load.as_ref()).map(keeping::figures);
    let before = report.before.iter().flat_map(keeping::figures_before);
    Ok(NewRun {
        headline: result.map_or(&report.summary, |round| &round.summary).clone(),
        figures: figures.into_iter().flatten().chain(before).collect(),
        surroundings: surroundings.cloned().unwrap_or_default(),
        load: setup.plan.as_ref().map(keeping::load).unwrap_or_default(),
        document: keeping::document(report, Some(page::diagnosis::page(report, words).json()))?,
        ..run
    })
}

/// What a live run gives: the report or an error, and in both cases the events and what each measurement was made on.
struct Measured {
    report: Result<Diagnosis>,
    events: Vec<Event>,
    surroundings: Vec<Surroundings>,
}

/// Diagnoses this host.
fn live(args: &Diagnose, setup: &Setup, leaving: Leaving, words: &Catalogue, interrupt: &Interrupt) -> Measured {
    let keep = args.record.is_some();
    if args.bisect {
        drop(leaving);
        let mut live = bisect::LiveBisect::new(setup, interrupt, keep);
        return Measured { report: bisect::drive(&mut live, words), events: live.events, surroundings: vec![live.surroundings] };
    }
    let mut live = Live::new(setup, interrupt, args.yes, "diagnose", keep);
    live.leaving = Some(leaving);
    // Who says how long means that long.
    live.watches_on = !args.is_loaded() && args.duration.is_none();
    live.consent = if args.reload_unseen { Consent::AnyUnread } else { Consent::Nothing };
    let report = drive(&mut live, args.fix, words);
    if args.fix && interrupt.is_set() {
        live.tell_stop();
    }
    Measured { report, events: live.events, surroundings: live.surroundings }
}

/// Whether to carry out an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Carry it out.
    Go,
    /// The user asked to stop: take back unproven changes.
    Stopped,
    /// The recording ends here: end the replay in its present state.
    Over,
}

/// Carries out the actions of a session.
pub(crate) trait Driver {
    /// Decides whether to carry out this action.
    fn permit(&mut self, next: &Action) -> Permit;
    /// Measures, for at least so many seconds if any are given.
    fn measure(&mut self, seconds_min: Option<f64>) -> Result<Observation>;
    /// Applies, takes back or puts back a change; the error says why that failed.
    fn act(&mut self, action: &Action) -> std::result::Result<(), String>;
    /// Called when the last measurement has been judged.
    fn judged(&mut self, _found: Option<&Diagnosis>) {}
    /// Called before each action with the number of unproven changes.
    fn unproven(&mut self, _changes: usize) {}
    /// True if traffic that told nothing may be watched once more, for longer.
    fn may_watch_on(&self) -> bool {
        false
    }
    /// True if it follows what was recorded.
    fn replays(&self) -> bool {
        false
    }
    /// True if the user asked to stop during the last measurement.
    fn was_cut(&mut self) -> bool {
        false
    }
}

/// Runs a session to its end.
pub(crate) fn drive(driver: &mut dyn Driver, fix: bool, words: &Catalogue) -> Result<Diagnosis> {
    let mut session = Session::new(fix, words);
    if driver.may_watch_on() {
        session.watch_on();
    }
    if driver.replays() {
        session.replay();
    }
    let mut action = Action::Measure;
    let mut failure = None;
    while action != Action::Done {
        driver.unproven(session.unproven());
        action = match driver.permit(&action) {
            Permit::Over => break,
            Permit::Stopped => session.interrupted(),
            Permit::Go if action == Action::Measure => match driver.measure(session.measurement_s_min()) {
                // Watching a second time proves nothing if the user cut it short; a load says itself whether it was.
                Ok(seen) if seen.load.is_none() && session.current().is_some() && driver.was_cut() => session.interrupted(),
                Ok(observation) => {
                    let next = take_in(&mut session, &observation, words);
                    driver.judged(session.current());
                    next
                }
                Err(error) if session.current().is_none() => return Err(error),
                // Without a measurement no change can be proven: take back all unproven ones.
                Err(error) => {
                    failure = Some(error);
                    session.interrupted()
                }
            },
            Permit::Go => session.acted(driver.act(&action)),
        };
    }
    driver.unproven(0);
    match failure {
        Some(error) => Err(error.context("the changes that were not proven yet were taken back")),
        None => session.report().context("interrupted before anything was measured: run it again, with a shorter -z if it takes too long"),
    }
}

/// Passes a measurement to the session. A load that was interrupted is reported only if it is the first; a later one proves nothing.
fn take_in(session: &mut Session<'_>, observation: &Observation, words: &Catalogue) -> Action {
    let is_cut = observation.load.as_ref().is_some_and(|load| load.interrupted);
    if is_cut && session.current().is_some() {
        return session.interrupted();
    }
    let timeout_us = observation.load.as_ref().map(|load| load.timeout_us);
    session.set_objective(Objective { latency_us_p99: observation.request.slo_p99_us, timeout_us });
    session.measured(diagnose(observation, words))
}

/// A live run on this host.
pub(crate) struct Live<'a> {
    setup: &'a Setup,
    interrupt: &'a Interrupt,
    yes: bool,
    owner: String,
    changes: Option<Changes>,
    /// Which other edits a reload may activate with a change.
    consent: Consent,
    measured: u32,
    /// Held until there is something to report.
    leaving: Option<Leaving>,
    /// True if the events are recorded.
    keep: bool,
    /// True if traffic that told nothing is watched once more, for longer.
    watches_on: bool,
    /// True once the session knows that the user asked to stop.
    stopped: bool,
    /// What was taken back after the user asked to stop, and what could not be, in words.
    retreat: Vec<String>,
    /// When the last load ended.
    ended: Option<Instant>,
    /// What the last measurement showed, until it was shown: nobody agrees to a change without it.
    found: Option<Diagnosis>,
    /// Milliseconds from the end of the first load to its diagnosis.
    pub(crate) verdict_after_ms: Option<u64>,
    /// The events so far, if the run is recorded.
    pub(crate) events: Vec<Event>,
    /// What each measurement was made on.
    surroundings: Vec<Surroundings>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(setup: &'a Setup, interrupt: &'a Interrupt, yes: bool, owner: &str, keep: bool) -> Self {
        Self {
            setup,
            interrupt,
            yes,
            owner: owner.to_owned(),
            changes: None,
            consent: Consent::Nothing,
            measured: 0,
            leaving: None,
            keep,
            watches_on: false,
            stopped: false,
            retreat: Vec::new(),
            ended: None,
            found: None,
            verdict_after_ms: None,
            events: Vec::new(),
            surroundings: Vec::new(),
        }
    }

    /// The changes of this run; the first call opens the journal.
    fn changes(&mut self) -> Result<&mut Changes> {
        let changes = match self.changes.take() {
            Some(changes) => changes,
            None => Changes::open()?,
        };
        Ok(self.changes.insert(changes))
    }

    fn carry_out(&mut self, action: &Action) -> Result<()> {
        let owner = self.owner.clone();
        match action {
            Action::Apply { remedy, .. } if !self.confirmed(remedy)? => {
                bail!(if self.interrupt.is_set() { "interrupted" } else { text::NOT_CONFIRMED })
            }
            Action::Apply { number, finding, remedy } => {
                output::note(&format!("applying {}: {}", remedy.id, printable(&confirm::commands(remedy).join("; "))));
                self.apply(*number, finding, remedy, &owner)
            }
            Action::PutBack { number, finding, remedy } => {
                output::note(&format!("putting back {}: {}", remedy.id, printable(&confirm::commands(remedy).join("; "))));
                self.apply(*number, finding, remedy, &owner)
            }
            Action::TakeBack { number, remedy } => {
                output::note(&format!("taking back {remedy}"));
                let taken = self.changes()?.take_back(*number);
                if self.interrupt.is_set() {
                    self.retreat.extend(match &taken {
                        Ok(lines) => lines.clone(),
                        Err(error) => vec![format!("{remedy} could not be taken back ({}): run `chokepoint undo`", output::once(error))],
                    });
                }
                taken.map(drop)
            }
            Action::Measure | Action::Done => Ok(()),
        }
    }

    /// Applies a remedy. On a terminal it asks about other edits that the reload would activate.
    fn apply(&mut self, number: u32, finding: &str, remedy: &Remedy, owner: &str) -> Result<()> {
        let consent = self.consent.clone();
        let error = match self.changes()?.apply(number, finding, remedy, owner, &consent) {
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        let Some(ApplyError::Unread { server, files, .. }) = error.downcast_ref() else { return Err(error) };
        if self.yes || !std::io::stdin().is_terminal() || !confirm::unread(server, files, self.interrupt)? {
            return Err(error);
        }
        self.changes()?.apply(number, finding, remedy, owner, &Consent::Unread(files.clone()))
    }

    /// The same for at least so many seconds; `None` if it already lasts as long, or the load ends after a number of requests.
    fn longer(&self, seconds_min: Option<f64>) -> Option<Setup> {
        let seconds = Duration::try_from_secs_f64(seconds_min?.ceil()).ok()?;
        let Some(plan) = self.setup.plan.as_ref() else {
            let (is, was) = (seconds.as_secs(), self.setup.duration.as_secs_f64());
            output::note(&format!(
                "watching for {is} s more: the traffic of {was} s does not show whether requests wait for each other (Ctrl-C: no more)"
            ));
            return Some(Setup { duration: seconds, ..self.setup.clone() });
        };
        let planned = plan.duration.filter(|planned| *planned < seconds && plan.requests.is_none())?;
        let (is, was) = (seconds.as_secs(), planned.as_secs_f64());
        output::note(&format!("measuring for {is} s instead of {was} s: what this change costs those whom it serves last shows later"));
        Some(Setup { plan: Some(Plan { duration: Some(seconds), ..plan.clone() }), ..self.setup.clone() })
    }

    /// Asks, below the verdict, its figures and what is predicted.
    fn confirmed(&mut self, remedy: &Remedy) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if let Some(found) = self.found.take() {
            let style = output::Style { color: false, ..output::style() };
            output::note(text::brief(&found, &style, &Catalogue::english()).trim_end());
        }
        confirm::remedy(remedy, self.interrupt)
    }

    /// Prints in what state a stopped run leaves the host.
    fn tell_stop(&self) {
        for line in &self.retreat {
            output::note(&format!("stopped: {line}"));
        }
        let kept = self.changes.as_ref().map(Changes::in_force).unwrap_or_default();
        for change in &kept {
            output::note(&format!("stopped: {change} stays: `chokepoint undo` takes it back"));
        }
        if self.retreat.is_empty() && kept.is_empty() {
            output::note("stopped: nothing was changed");
        }
    }
}

impl Driver for Live<'_> {
    fn permit(&mut self, next: &Action) -> Permit {
        // Actions that lead back to a proven state are always carried out.
        let begins = matches!(next, Action::Apply { .. } | Action::Measure);
        if !begins || self.stopped || !self.interrupt.is_set() {
            return Permit::Go;
        }
        self.stopped = true;
        if self.keep {
            self.events.push(Event::Stopped);
        }
        Permit::Stopped
    }

    fn measure(&mut self, seconds_min: Option<f64>) -> Result<Observation> {
        let label = match (&self.setup.plan, self.measured) {
            (None, _) => "watching".to_owned(),
            (Some(_), 0) => "loading".to_owned(),
            (Some(_), n) => format!("loading, round {n}"),
        };
        let longer = self.longer(seconds_min);
        let setup = longer.as_ref().unwrap_or(self.setup);
        if self.measured > 0 && setup.plan.is_some() {
            measure::tell(setup, &label);
            measure::settle(setup, self.interrupt)?;
        }
        self.measured += 1;
        let (entries, ended) = measure::measure_leaving(setup, &label, self.leaving.as_ref(), self.interrupt)?;
        self.ended = Some(ended);
        let observation = measure::observation(&entries);
        self.surroundings.push(surroundings(&observation));
        if self.keep {
            self.events.push(Event::Measured(entries));
        }
        Ok(observation)
    }

    fn act(&mut self, action: &Action) -> std::result::Result<(), String> {
        let result = self.carry_out(action).map_err(|error| output::once(&error));
        if self.keep {
            self.events.push(Event::Acted { action: action.name(), failure: result.clone().err() });
        }
        result
    }

    fn unproven(&mut self, changes: usize) {
        self.interrupt.set_unproven(changes);
    }

    fn may_watch_on(&self) -> bool {
        self.watches_on
    }

    fn was_cut(&mut self) -> bool {
        let is_cut = self.setup.plan.is_none() && self.interrupt.is_set();
        if is_cut && self.keep {
            self.events.push(Event::Stopped);
        }
        is_cut
    }

    fn judged(&mut self, found: Option<&Diagnosis>) {
        self.found = found.filter(|_| !self.yes).cloned();
        if let (None, Some(ended)) = (self.verdict_after_ms, self.ended) {
            self.verdict_after_ms = u64::try_from(ended.elapsed().as_millis()).ok();
        }
    }
}

/// What to measure, from the command line.
fn setup(args: &Diagnose) -> Result<Setup> {
    let usage = |error: anyhow::Error| anyhow::Error::new(Usage(output::once(&error)));
    let route = Route::parse(&args.connection.resolve, &args.connection.connect_to).map_err(usage)?;
    let target = Target::parse_routed(args.url.as_deref().unwrap_or_default(), &route).map_err(usage)?;
    let tls = tls::settings(&args.connection, &target).map_err(usage)?;
    let duration = settings::duration(args.duration.as_deref().unwrap_or(DURATION_DEFAULT)).map_err(usage)?;
    let expect = settings::statuses(&args.expect).map_err(usage)?;
    let slo_p99_us = args.slo.as_deref().map(settings::objective).transpose().map_err(usage)?;
    let loaded = args.is_loaded();
    if args.bisect && !loaded {
        bail!(Usage("--bisect loads each tier on its own: add -c, -q, -n or --load".to_owned()));
    }
    let root = Root::default();
    let own = netns::own()?;
    let client = args.client_netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let server = args.server_netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let asked = target.request();
    let request = Request {
        client_netns: client.as_ref().map_or(own, |netns| netns.id),
        server_netns: server.map(|netns| netns.id),
        expect: expect.clone(),
        slo_p99_us,
        loaded,
        watch_us: (!loaded).then(|| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
        in_clear: args.redact == RedactLevel::None,
        machine: (args.redact != RedactLevel::All).then_some(machine),
        sent_host: plan::sent_host(&args.load).map_err(usage)?.or(asked.sent_host),
        ..asked
    };
    let netns_path = client.filter(|netns| netns.id != own).map(|netns| netns.path);
    let planned = || plan::plan(&args.load, &target, plan::TIMEOUT_DIAGNOSE, expect);
    let plan = if loaded { Some(planned().map_err(usage)?) } else { None };
    let objective = slo_p99_us.map(Duration::from_micros);
    let plan =
        plan.map(|plan| Plan { duration: Some(duration), netns: netns_path, options: Options { objective, tls, ..plan.options }, ..plan });
    plan.as_ref().map(Plan::check).transpose().map_err(|error| usage(error.into()))?;
    let capture = args.capture.as_ref().map(|file| file.clone().map_or(packet_capture::Source::Live, packet_capture::Source::File));
    Ok(Setup { plan, foreign: args.yes, profile: !args.no_profile, capture, ..Setup::new(request, duration) })
}
