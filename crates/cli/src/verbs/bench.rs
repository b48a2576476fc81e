//! `chokepoint bench`: the load generator alone.

mod live;
mod outputs;
mod targets;

use std::path::PathBuf;

use anyhow::{Result, bail};
use chokepoint_load::{Options, Order, Plan, Stages, Targets, Threshold, ThresholdResult};
use chokepoint_model::bench::{self, Asked, BenchOutcome, Ramp, RampStage, TargetList, TcpConnection, ThresholdFailed};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Loop;
use chokepoint_model::observation::Request;
use chokepoint_model::url::without_values;
use chokepoint_runs::NewRun;
use chokepoint_sources::{Root, TcpInfo, netns};

use crate::EXIT_FAILED;
use crate::EXIT_THRESHOLD;
use crate::Usage;
use crate::args::Bench;
use crate::run::keeping::{self, Begun};
use crate::run::listeners::is_here;
use crate::run::measure;
use crate::run::plan;
use crate::run::route::Route;
use crate::run::settings::{self, Target};
use crate::run::tls;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;

/// Duration of the load without `-z` and `-n`.
const DURATION_DEFAULT: &str = "10s";

/// Runs the verb and returns the exit status.
pub(crate) fn run(args: &Bench, words: &Catalogue, interrupt: &Interrupt) -> Result<u8> {
    let usage = |error: anyhow::Error| anyhow::Error::new(Usage(output::once(&error)));
    let leaving = Leaving::hold_while_preparing(interrupt);
    let (target, targets) = asked_for(args).map_err(usage)?;
    outputs::check(args).map_err(usage)?;
    let threshold = args.fail_if.as_deref().map(Threshold::parse).transpose().map_err(|error| usage(error.into()))?;
    let netns = client_netns(args)?;
    let plan = Plan { netns, ..planned(args, &target, targets).map_err(usage)? };
    plan.check().map_err(|error| usage(error.into()))?;
    let (plan, surroundings) = measure::permitted_alone(&plan, request(args, &target)?, args.yes, !args.keep.no_keep, interrupt)?;
    let files = outputs::open(args)?;
    drop(leaving);
    let begun = Begun::now();
    let mut asked = Asked {
        url: target.url.clone(),
        address: plan.address.to_string(),
        method: plan.method.clone(),
        duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
        requests: plan.requests,
        requests_per_connection: plan.options.requests_per_connection,
        ramp: plan.options.stages.as_ref().map(ramp),
        targets: plan.options.targets.as_ref().map(|targets| TargetList { count: targets.targets.len() as u64, seed: args.seed }),
        bind: plan.options.bind.iter().map(ToString::to_string).collect(),
        shares_cores: plan.netns.is_none() && plan.cpus.is_none() && is_here(plan.address.tcp()),
        suspended_s: 0.0,
    };
    let measured = match outputs::is_report(args) && crate::terminal::output::is_watched() {
        true => {
            let (measured, suspended) = live::offer(&plan, &without_values(&target.url), words, interrupt)?;
            asked.suspended_s = suspended.as_secs_f64();
            measured
        }
        false => measure::offer(&plan, "loading", interrupt)?,
    };
    let judged: Vec<ThresholdResult> = threshold.iter().flat_map(|threshold| threshold.judge(&measured.result)).collect();
    let failed = judged.iter().filter(|judged| judged.failed);
    let failed = failed.map(|judged| ThresholdFailed { condition: judged.condition.clone(), measured: judged.measured }).collect();
    let tcp = measured.detail.tcp_info.iter().map(|bytes| connection(bytes)).collect();
    let report = bench::report(&asked, measured, tcp, failed, words);
    keeping::keep(&args.keep, words, || {
        let run = begun.run("bench", &target.url, interrupt);
        let (figures, load, document) = (keeping::figures(&report.load), keeping::load(&plan), keeping::document(&report, None)?);
        Ok(NewRun { headline: report.summary.clone(), figures, surroundings, load, document, ..run })
    });
    outputs::write(args, files, &report, &judged, words)?;
    Ok(match report.outcome {
        BenchOutcome::NothingAnswered | BenchOutcome::NothingExpected => EXIT_FAILED,
        BenchOutcome::Answered if report.failed.is_empty() => 0,
        BenchOutcome::Answered => EXIT_THRESHOLD,
    })
}

/// The target, and the list of `--targets`.
fn asked_for(args: &Bench) -> Result<(Target, Option<Targets>)> {
    let route = Route::parse(&args.connection.resolve, &args.connection.connect_to)?;
    let target = args.url.as_deref().map(|url| Target::parse_routed(url, &route)).transpose()?;
    match (&args.targets, target) {
        (Some(file), target) => {
            let (target, targets) = targets::read(file, target, &args.load.method)?;
            let order = args.seed.map_or(Order::InTurn, |seed| Order::Drawn { seed });
            Ok((target, Some(Targets { targets, order })))
        }
        (None, Some(target)) => Ok((target, None)),
        (None, None) => bail!("a URL is needed, or --targets FILE"),
    }
}

fn planned(args: &Bench, target: &Target, targets: Option<Targets>) -> Result<Plan> {
    let stages = args.stages.as_deref().map(|text| Stages::parse(args.load.rate.unwrap_or(0.0), text)).transpose()?;
    let duration = match (&stages, &args.duration, args.load.requests) {
        (Some(stages), ..) => Some(stages.duration()),
        (None, Some(text), _) => Some(settings::duration(text)?),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(settings::duration(DURATION_DEFAULT)?),
    };
    let warm_up = args.warm_up.as_deref().map(settings::duration).transpose()?.unwrap_or_default();
    let base = plan::plan(&args.load, target, plan::TIMEOUT_BENCH, settings::statuses(&args.expect)?)?;
    let shape = match &stages {
        Some(stages) => {
            Loop::Open { rate_per_s: stages.mean_per_s(), connections: args.load.connections.unwrap_or(plan::CONNECTIONS_OPEN) }
        }
        None => base.shape,
    };
    let options = Options {
        warm_up,
        requests_per_connection: args.requests_per_connection,
        tls: tls::settings(&args.connection, target)?,
        stages,
        targets,
        objective: None,
        bind: args.bind.clone(),
    };
    Ok(Plan { duration, shape, options, ..base })
}

/// Values of a struct tcp_info.
fn connection(bytes: &[u8]) -> TcpConnection {
    let info = TcpInfo::of(bytes.to_vec());
    TcpConnection {
        rtt_us: info.value("rtt"),
        rtt_us_min: info.value("min_rtt"),
        cwnd: info.value("snd_cwnd"),
        retransmits: info.value("total_retrans"),
        busy_us: info.value("busy_time"),
        rwnd_limited_us: info.value("rwnd_limited"),
        sndbuf_limited_us: info.value("sndbuf_limited"),
    }
}

/// The stages for the report.
fn ramp(stages: &Stages) -> Ramp {
    let told = stages.stages.iter().map(|stage| RampStage { duration_s: stage.duration.as_secs_f64(), rate_per_s: stage.rate_per_s });
    Ramp { start_per_s: stages.start_per_s, stages: told.collect() }
}

/// The request for the search for the listener of the target.
fn request(args: &Bench, target: &Target) -> Result<Request> {
    let root = Root::default();
    let client = args.client_netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let own = netns::own()?;
    Ok(Request { client_netns: client.map_or(own, |client| client.id), port: target.connect_port, ..target.request() })
}

/// The namespace from which the load is sent; nothing if it is the namespace of this process.
fn client_netns(args: &Bench) -> Result<Option<PathBuf>> {
    let Some(name) = &args.client_netns else { return Ok(None) };
    let client = netns::resolve(&Root::default(), name)?;
    Ok((client.id != netns::own()?).then_some(client.path))
}
