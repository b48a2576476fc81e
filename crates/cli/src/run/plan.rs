//! The load of the command line, the same for every verb that offers one.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chokepoint_foreign::open_named;
use chokepoint_load::{Guard, Options, Plan};
use chokepoint_model::load::Loop;

use crate::args::Load;
use crate::run::settings::{self, Target};
use crate::terminal::output;

/// Connections without `-c`.
pub(crate) const CONNECTIONS_DEFAULT: u32 = 100;
/// Connections that an open loop may use without `-c`.
pub(crate) const CONNECTIONS_OPEN: u32 = 1_000;
/// The largest file that a load reads, bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;
/// Timeout of a request in a diagnosis: a slower answer is a failure for the client.
pub(crate) const TIMEOUT_DIAGNOSE: Duration = Duration::from_secs(2);
/// Timeout of a request in `bench`, which measures times.
pub(crate) const TIMEOUT_BENCH: Duration = Duration::from_secs(10);

/// The load to offer, without its duration and namespace. The caller sets both and checks the complete plan.
pub(crate) fn plan(load: &Load, target: &Target, timeout: Duration, expect: Vec<(u16, u16)>) -> Result<Plan> {
    let mut headers = load.headers.iter().map(|text| settings::header(text)).collect::<Result<Vec<_>>>()?;
    for (name, value) in [("Content-Type", &load.content_type), ("Accept", &load.accept)] {
        headers.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
    }
    let body = match (&load.body, &load.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => read_file("body", file)?,
        (None, None) => Vec::new(),
    };
    check_body(load, &body)?;
    let shape = match load.rate {
        Some(rate_per_s) => Loop::Open { rate_per_s, connections: load.connections.unwrap_or(CONNECTIONS_OPEN) },
        None => Loop::Closed { connections: load.connections.unwrap_or(CONNECTIONS_DEFAULT) },
    };
    let params = load.fcgi_params.iter().map(|text| settings::param(text)).collect::<Result<Vec<_>>>()?;
    let guards = load.guard.as_deref().map(Guard::parse).transpose()?;
    Ok(Plan {
        address: target.address()?,
        protocol: target.protocol(params)?,
        host_header: target.request().host_header(),
        path_and_query: target.path_and_query.clone(),
        method: load.method.clone(),
        headers,
        body,
        shape,
        duration: None,
        requests: load.requests,
        timeout: load.timeout.as_deref().map_or(Ok(timeout), settings::duration)?,
        keep_alive: !load.disable_keepalive,
        expect,
        netns: None,
        cpus: load.cpus.as_deref().map(settings::cores).transpose()?,
        threads: load.threads,
        guards: guards.into_iter().collect(),
        options: Options::default(),
    })
}

/// The value of a Host header on the command line.
pub(crate) fn sent_host(load: &Load) -> Result<Option<String>> {
    let headers = load.headers.iter().map(|text| settings::header(text)).collect::<Result<Vec<_>>>()?;
    Ok(headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value))
}

/// Refuses a body that is a time, which is what wrk's -d takes, and notes that a body goes with GET.
fn check_body(load: &Load, body: &[u8]) -> Result<()> {
    if body.is_empty() || !["GET", "HEAD"].contains(&load.method.as_str()) {
        return Ok(());
    }
    let method = &load.method;
    if let Some(time) = load.body.as_deref().filter(|text| settings::duration(text).is_ok()) {
        bail!(
            "-d {time} would send \"{time}\" as the body of each {method}: for the time of the load write -z {time} (-t is the timeout of a \
             request, --threads the number of threads); to send it as a body, add -m POST"
        );
    }
    output::note(&format!("note: the body is sent with {method}: add -m POST to send it with POST (the time of the load is -z)"));
    Ok(())
}

/// Reads a file for the load. `what`: its name in errors.
pub(crate) fn read_file(what: &str, file: &Path) -> Result<Vec<u8>> {
    let name = file.display();
    let mut bytes = Vec::new();
    let opened = open_named(file).with_context(|| format!("the {what} {name} cannot be read"))?;
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("the {what} {name} cannot be read"))?;
    anyhow::ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "the {what} {name} is larger than {FILE_BYTES_MAX} bytes");
    Ok(bytes)
}
