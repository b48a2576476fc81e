//! `chokepoint diagnose`: drives the model's session, live or from a recording.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_load::{Guard, Plan};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::fix::{Action, Session};
use chokepoint_model::load::Loop;
use chokepoint_model::report::{Diagnosis, Remedy, Request, Verdict};
use chokepoint_sources::Root;
use chokepoint_sources::netns;

use crate::args::{Diagnose, Load};
use crate::changes::Changes;
use crate::interrupt::Interrupt;
use crate::measure::{self, Setup};
use crate::recordings::{self, Event};
use crate::settings::{self, Target};
use crate::{Usage, output};

/// Connections where load is asked for and no number is given.
const CONNECTIONS_DEFAULT: u32 = 100;
/// Connections that an open loop may use where no number is given.
const CONNECTIONS_OPEN: u32 = 1_000;
/// Largest body of a request that is read from a file, bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// What stops a load on a host that is not this one, or one that may change something there.
const GUARD_FOREIGN: &str = "errors>20% || p99>5s";

/// Runs the verb; true where a verdict was reached.
pub(crate) fn run(args: &Diagnose, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let report = match &args.replay {
        Some(file) => {
            let events = recordings::load(file)?;
            drive(&mut Replay { events: events.into() }, true, words)?
        }
        None => {
            if args.fix && !args.yes && !std::io::stdin().is_terminal() {
                bail!(Usage("--fix asks before each change, and there is nobody to ask: add --yes".to_owned()));
            }
            let setup = setup(args)?;
            let mut live = Live::new(&setup, interrupt, args.yes, "diagnose", args.record.is_some());
            let report = drive(&mut live, args.fix, words);
            if let Some(file) = &args.record {
                recordings::save(file, &live.events, args.redact)?;
            }
            report?
        }
    };
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&report)?),
        false => crate::text::render(&report, &output::style(), words),
    };
    output::print(&text)?;
    Ok(report.verdict != Verdict::Unknown)
}

/// What the session's actions are carried out by.
pub(crate) trait Driver {
    /// Measures once more.
    fn measure(&mut self) -> Result<chokepoint_model::observation::Observation>;
    /// Applies a remedy; the inner error says why it could not be.
    fn apply(&mut self, finding: &str, remedy: &Remedy) -> Result<std::result::Result<(), String>>;
    /// Takes the last change back.
    fn take_back(&mut self) -> Result<std::result::Result<(), String>>;
    /// True where no further round is to begin.
    fn stopped(&self) -> bool;
    /// Told when the last measurement has been judged.
    fn judged(&mut self) {}
}

/// Runs a session to its end.
pub(crate) fn drive(driver: &mut dyn Driver, fix: bool, words: &Catalogue) -> Result<Diagnosis> {
    let mut session = Session::new(fix, words);
    let mut action = Action::Measure;
    loop {
        action = match action {
            Action::Measure if driver.stopped() => {
                // The last change was never proven: it does not stay.
                if session.current().is_some() {
                    session.taken_back(driver.take_back()?);
                }
                Action::Done
            }
            Action::Apply { .. } if driver.stopped() => Action::Done,
            Action::Measure => {
                let next = session.measured(&driver.measure()?);
                driver.judged();
                next
            }
            Action::Apply { finding, remedy } => session.applied(driver.apply(&finding, &remedy)?),
            Action::TakeBack => session.taken_back(driver.take_back()?),
            Action::Done => break,
        };
    }
    session.report().context("interrupted before anything was measured")
}

/// A live run on this host.
pub(crate) struct Live<'a> {
    setup: &'a Setup,
    interrupt: &'a Interrupt,
    yes: bool,
    owner: String,
    changes: Option<Changes>,
    measured: u32,
    keep: bool,
    /// When the last load ended.
    ended: Option<Instant>,
    /// Milliseconds from the end of the first load to its diagnosis.
    pub(crate) verdict_after_ms: Option<u64>,
    /// What happened, kept where it is to be recorded.
    pub(crate) events: Vec<Event>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(setup: &'a Setup, interrupt: &'a Interrupt, yes: bool, owner: &str, keep: bool) -> Self {
        Self {
            setup,
            interrupt,
            yes,
            owner: owner.to_owned(),
            changes: None,
            measured: 0,
            keep,
            ended: None,
            verdict_after_ms: None,
            events: Vec::new(),
        }
    }

    fn acted(&mut self, result: std::result::Result<(), String>) -> std::result::Result<(), String> {
        if self.keep {
            self.events.push(Event::Acted(result.clone().err()));
        }
        result
    }

    fn confirmed(&self, remedy: &Remedy) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let mut err = std::io::stderr().lock();
        writeln!(err, "\n{}\n", remedy.text)?;
        for command in &remedy.runtime {
            writeln!(err, "    {command}")?;
        }
        write!(err, "\nRisk: {}\nUndo: chokepoint undo (or {})\nApply it? [y/N] ", remedy.risk, remedy.undo)?;
        err.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }
}

impl Driver for Live<'_> {
    fn measure(&mut self) -> Result<chokepoint_model::observation::Observation> {
        let label = match (&self.setup.plan, self.measured) {
            (None, _) => "watching".to_owned(),
            (Some(_), 0) => "loading".to_owned(),
            (Some(_), n) => format!("loading, round {n}"),
        };
        if self.measured > 0 {
            measure::settle(self.setup, self.interrupt)?;
        }
        self.measured += 1;
        let (entries, ended) = measure::measure(self.setup, &label, self.interrupt)?;
        self.ended = Some(ended);
        let observation = measure::observation(&entries);
        if self.keep {
            self.events.push(Event::Measured(entries));
        }
        Ok(observation)
    }

    fn apply(&mut self, finding: &str, remedy: &Remedy) -> Result<std::result::Result<(), String>> {
        let result = if self.confirmed(remedy)? {
            if self.changes.is_none() {
                self.changes = Some(Changes::open()?);
            }
            let changes = self.changes.as_mut().context("the journal was just opened")?;
            output::note(&format!("applying {}: {}", remedy.id, remedy.runtime.join("; ")));
            changes.apply(finding, remedy, &self.owner).map_err(|error| format!("{error:#}"))
        } else {
            Err("not confirmed".to_owned())
        };
        Ok(self.acted(result))
    }

    fn take_back(&mut self) -> Result<std::result::Result<(), String>> {
        let result = match self.changes.as_mut() {
            Some(changes) => changes.take_back_last().map_err(|error| format!("{error:#}")),
            None => Ok(()),
        };
        Ok(self.acted(result))
    }

    fn stopped(&self) -> bool {
        self.interrupt.is_set()
    }

    fn judged(&mut self) {
        if let (None, Some(ended)) = (self.verdict_after_ms, self.ended) {
            self.verdict_after_ms = u64::try_from(ended.elapsed().as_millis()).ok();
        }
    }
}

/// A recorded run: the same session, fed with what happened then.
struct Replay {
    events: std::collections::VecDeque<Event>,
}

impl Replay {
    fn acted(&mut self) -> Result<std::result::Result<(), String>> {
        match self.events.pop_front() {
            Some(Event::Acted(None)) => Ok(Ok(())),
            Some(Event::Acted(Some(why))) => Ok(Err(why)),
            _ => bail!("the recording does not tell what came of a change"),
        }
    }
}

impl Driver for Replay {
    fn measure(&mut self) -> Result<chokepoint_model::observation::Observation> {
        match self.events.pop_front() {
            Some(Event::Measured(entries)) => Ok(measure::observation(&entries)),
            _ => bail!("the recording holds no further measurement"),
        }
    }

    fn apply(&mut self, _: &str, _: &Remedy) -> Result<std::result::Result<(), String>> {
        self.acted()
    }

    fn take_back(&mut self) -> Result<std::result::Result<(), String>> {
        self.acted()
    }

    fn stopped(&self) -> bool {
        // Where the recorded run ended, so does this one.
        self.events.is_empty()
    }
}

/// What is to be measured, from the command line.
fn setup(args: &Diagnose) -> Result<Setup> {
    let usage = |error: anyhow::Error| anyhow::Error::new(Usage(format!("{error:#}")));
    let target = Target::parse(args.url.as_deref().unwrap_or_default()).map_err(usage)?;
    let duration = settings::duration(&args.duration).map_err(usage)?;
    let expect = settings::statuses(&args.expect).map_err(usage)?;
    let slo_p99_us = args.slo.as_deref().map(settings::objective).transpose().map_err(usage)?;
    let loaded = args.load.load || args.load.connections.is_some() || args.load.rate.is_some() || args.load.requests.is_some();
    if loaded && target.scheme != "http" {
        bail!(Usage("load over https is not supported by this version: watch without load, or load the plain http port".to_owned()));
    }
    let root = Root::default();
    let own = netns::own()?;
    let client = args.client_netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let server = args.server_netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let request = Request {
        url: target.url.clone(),
        scheme: target.scheme.clone(),
        host: target.host.clone(),
        port: target.port,
        addresses: target.addresses.clone(),
        client_netns: client.as_ref().map_or(own, |netns| netns.id),
        server_netns: server.map(|netns| netns.id),
        expect: expect.clone(),
        slo_p99_us,
        loaded,
    };
    let netns_path = client.filter(|netns| netns.id != own).map(|netns| netns.path);
    let plan = if loaded { Some(plan(&args.load, &target, duration, expect, netns_path).map_err(usage)?) } else { None };
    Ok(Setup { request, plan, duration, foreign: args.yes })
}

/// The load to offer.
fn plan(load: &Load, target: &Target, duration: Duration, expect: Vec<(u16, u16)>, netns: Option<std::path::PathBuf>) -> Result<Plan> {
    let mut headers = load.headers.iter().map(|text| settings::header(text)).collect::<Result<Vec<_>>>()?;
    if let Some(content_type) = &load.content_type {
        headers.push(("Content-Type".to_owned(), content_type.clone()));
    }
    let body = match (&load.body, &load.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => read_body(file)?,
        (None, None) => Vec::new(),
    };
    let shape = match load.rate {
        Some(rate_per_s) => Loop::Open { rate_per_s, connections: load.connections.unwrap_or(CONNECTIONS_OPEN) },
        None => Loop::Closed { connections: load.connections.unwrap_or(CONNECTIONS_DEFAULT) },
    };
    let address = target.addresses.first().context("the target has no address")?;
    let guards = load.guard.as_deref().map(Guard::parse).transpose()?;
    let plan = Plan {
        address: SocketAddr::new(*address, target.port),
        host_header: target.host_header(),
        path_and_query: target.path_and_query.clone(),
        method: load.method.clone(),
        headers,
        body,
        shape,
        duration: Some(duration),
        requests: load.requests,
        timeout: settings::duration(&load.timeout)?,
        keep_alive: !load.disable_keepalive,
        expect,
        netns,
        cpus: load.cpus.as_deref().map(settings::cores).transpose()?,
        threads: load.threads,
        guards: guards.into_iter().collect(),
    };
    plan.check()?;
    Ok(plan)
}

/// The body out of a file.
fn read_body(file: &Path) -> Result<Vec<u8>> {
    let name = file.display();
    let mut body = Vec::new();
    let opened = File::open(file).with_context(|| format!("the body {name} cannot be read"))?;
    opened.take(BODY_BYTES_MAX + 1).read_to_end(&mut body).with_context(|| format!("the body {name} cannot be read"))?;
    anyhow::ensure!(body.len() as u64 <= BODY_BYTES_MAX, "the body {name} is larger than {BODY_BYTES_MAX} bytes");
    Ok(body)
}

/// The guard for a load that may harm others.
pub(crate) fn guard_foreign() -> Result<Guard> {
    Ok(Guard::parse(GUARD_FOREIGN)?)
}
