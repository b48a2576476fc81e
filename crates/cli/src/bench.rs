//! `chokepoint bench`: the load generator by itself.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::{Result, bail};
use chokepoint_load::{Options, Plan, Threshold, Tls, Trust, Unit};
use chokepoint_model::bench::{self, Asked, Outcome, ThresholdFailed};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{Root, netns};

use crate::args::Bench;
use crate::interrupt::Interrupt;
use crate::settings::{self, Target};
use crate::{EXIT_FAILED, EXIT_THRESHOLD, Usage, measure, output, plan};

/// Time of the load where neither that nor a number of requests is given.
const DURATION_DEFAULT: &str = "10s";

/// Runs the verb; gives the exit status.
pub(crate) fn run(args: &Bench, words: &Catalogue, interrupt: &Interrupt) -> Result<u8> {
    let usage = |error: anyhow::Error| anyhow::Error::new(Usage(format!("{error:#}")));
    let target = Target::parse(&args.url).map_err(usage)?;
    if target.scheme != "https" && (args.insecure || args.cacert.is_some() || args.tls_no_resumption) {
        bail!(Usage(format!("--insecure, --cacert and --tls-no-resumption go with an https URL: {} is none", target.url)));
    }
    let threshold = args.fail_if.as_deref().map(Threshold::parse).transpose().map_err(|error| usage(error.into()))?;
    let netns = client_netns(args)?;
    let plan = Plan { netns, ..planned(args, &target).map_err(usage)? };
    plan.check().map_err(|error| usage(error.into()))?;
    let asked = Asked {
        url: target.url.clone(),
        address: plan.address.to_string(),
        method: plan.method.clone(),
        duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
        requests: plan.requests,
        requests_per_connection: plan.options.requests_per_connection,
        shares_cores: plan.netns.is_none() && plan.cpus.is_none() && is_here(plan.address.tcp()),
    };
    let measured = measure::offer(&plan, "loading", interrupt)?;
    let failed = threshold.iter().flat_map(|threshold| threshold.failed(&measured.result));
    let failed: Vec<(ThresholdFailed, Unit)> =
        failed.map(|failed| (ThresholdFailed { condition: failed.condition, measured: failed.measured }, failed.unit)).collect();
    let units: Vec<Unit> = failed.iter().map(|(_, unit)| *unit).collect();
    let report = bench::report(&asked, measured, failed.into_iter().map(|(failed, _)| failed).collect(), words);
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&report)?),
        false => crate::text::bench_text(&report, &units, &output::style(), words),
    };
    output::print(&text)?;
    Ok(match report.outcome {
        Outcome::NothingAnswered | Outcome::NothingExpected => EXIT_FAILED,
        Outcome::Answered if report.failed.is_empty() => 0,
        Outcome::Answered => EXIT_THRESHOLD,
    })
}

fn planned(args: &Bench, target: &Target) -> Result<Plan> {
    let duration = match (&args.duration, args.load.requests) {
        (Some(text), _) => Some(settings::duration(text)?),
        (None, Some(_)) => None,
        (None, None) => Some(settings::duration(DURATION_DEFAULT)?),
    };
    let warm_up = args.warm_up.as_deref().map(settings::duration).transpose()?.unwrap_or_default();
    Ok(Plan {
        duration,
        options: Options { warm_up, requests_per_connection: args.requests_per_connection, tls: tls(args, target)? },
        ..plan::plan(&args.load, target, plan::TIMEOUT_BENCH, settings::statuses(&args.expect)?)?
    })
}

/// How TLS is to be spoken, where it is.
fn tls(args: &Bench, target: &Target) -> Result<Option<Tls>> {
    if target.scheme != "https" {
        return Ok(None);
    }
    let trust = match &args.cacert {
        _ if args.insecure => Trust::Anybody,
        Some(file) => Trust::Authorities(plan::read_file("certificate", file)?),
        None => Trust::System,
    };
    Ok(Some(Tls { server_name: target.host.clone(), trust, resume: !args.tls_no_resumption }))
}

/// The namespace that the load is sent from, where it is another than this process's.
fn client_netns(args: &Bench) -> Result<Option<PathBuf>> {
    let Some(name) = &args.client_netns else { return Ok(None) };
    let client = netns::resolve(&Root::default(), name)?;
    Ok((client.id != netns::own()?).then_some(client.path))
}

/// True where the address is this host's own, as a unix socket always is: a datagram socket that is connected to it, to which nothing is sent,
/// then has the same address at both ends.
fn is_here(address: Option<SocketAddr>) -> bool {
    let Some(address) = address else { return true };
    let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let own = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
    own.is_ok_and(|own| own.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_told_from_others() {
        assert!(is_here(None) && is_here(Some(([127, 0, 0, 1], 80).into())));
        // A documentation address (RFC 5737) is nobody's.
        assert!(!is_here(Some(([192, 0, 2, 1], 80).into())));
    }
}
