//! Where requests are now: the account of a short window, whose requests they are, and what could not be read for it.

use crate::facts::path::Path;
use crate::facts::{Context, TierId};
use crate::judge::stations::ephemeral_ports;
use crate::ledger;
use crate::observation::{ListenerAddress, Observation};
use crate::output::catalogue::Catalogue;
use crate::output::diagnose::target;
use crate::output::message::Message;
use crate::output::readings::readings;
use crate::output::report::{SourceReport, SourceStatus, WhereWindow, Whereabouts};

/// Name and version of the document.
pub const SCHEMA: &str = "chokepoint/where/1";

/// The sources of the path and the account.
const SOURCES: [&str; 12] = [
    "namespaces",
    "netns",
    "addresses",
    "listeners",
    "sockets",
    "requests",
    "conntrack_translations",
    "processes",
    "process_files",
    "process_cpu",
    "process_cgroups",
    "cgroup_cpu",
];

/// The account of the observation's window along a path that may come from an earlier look. `began_s` is the time at which the observation's clock was zero,
/// seconds since 1970.
pub fn whereabouts(obs: &Observation, path: &Path, began_s: f64, words: &Catalogue) -> Whereabouts {
    with_ages(obs, path, began_s, words).0
}

/// The unanswered requests of a window, each once for every sample that met it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// The most that the time since each came can be, microseconds. It is less by at most a tick.
    pub ages_us: Vec<u64>,
    /// The kernel's clock tick, microseconds.
    pub tick_us: u64,
    /// The mean time that reading the sockets took, microseconds.
    pub took_us: u64,
}

/// [`whereabouts`], with the ages of the unanswered requests.
pub fn with_ages(obs: &Observation, path: &Path, began_s: f64, words: &Catalogue) -> (Whereabouts, Unanswered) {
    let ctx = Context::new(obs, path, words);
    let (ledger, told, clients) = match ledger::with_clients(&ctx) {
        Some((ledger, told, clients)) => (Some(ledger), told, clients),
        None => (None, Vec::new(), Vec::new()),
    };
    let missing = ledger.is_none().then(|| ctx.text(missing(&ctx)));
    let seconds = |us: u64| ((began_s + us as f64 / 1e6) * 1e3).round() / 1e3;
    let (tick_us, took_us, ages_us) = ledger::unanswered(&ctx);
    let report = Whereabouts {
        schema: SCHEMA.to_owned(),
        window: WhereWindow { from_s: seconds(ctx.window_us.0), to_s: seconds(ctx.window_us.1) },
        target: target(&ctx),
        ledger,
        clients,
        warnings: missing.into_iter().chain(told).collect(),
        lacking: lacking(obs, path),
    };
    (report, Unanswered { ages_us, tick_us, took_us })
}

/// The sources of the account that were not read.
pub fn lacking(obs: &Observation, path: &Path) -> Vec<SourceReport> {
    let is_needed = |source: &str| SOURCES.contains(&source.split(' ').next().unwrap_or_default());
    readings(obs, path).into_iter().filter(|reading| reading.status != SourceStatus::Ok && is_needed(&reading.source)).collect()
}

/// The local ports from which a tier dials an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgePorts {
    /// The dialling tier and the address that it dials.
    pub edge: String,
    /// Most ports of live connections from one local address.
    pub live: u64,
    /// Most in TIME_WAIT on the dialling side.
    pub time_wait: u64,
    /// Ports that the range has.
    pub usable: u64,
}

/// The ports of each edge of the path, in an observation that has its sockets, whatever its window: they are read rarely.
pub fn edge_ports(obs: &Observation, path: &Path, words: &Catalogue) -> Vec<EdgePorts> {
    let mut ctx = Context::new(obs, path, words);
    ctx.window_us = (0, u64::MAX);
    let name = |id: TierId| path.tiers.iter().find(|tier| tier.id == id).map(|tier| tier.name.as_str()).unwrap_or_default();
    let ports = ephemeral_ports::all(&ctx).into_iter();
    ports
        .map(|ports| EdgePorts {
            edge: format!("{} to {}", name(ports.from), ports.remote),
            live: ports.live,
            time_wait: ports.time_wait,
            usable: u64::from(ports.usable),
        })
        .collect()
}

/// Why there is no account.
fn missing(ctx: &Context<'_>) -> Message {
    let request = &ctx.obs.request;
    if !ctx.path.ambiguous.is_empty() {
        let names: Vec<String> = ctx.path.ambiguous.iter().map(|id| ctx.netns_name(*id)).collect();
        return Message::new("verdict-unknown-ambiguous").with("netns", names.join(", "));
    }
    match (ctx.path.tiers.first(), request.unix.first(), request.addresses.first()) {
        (Some(tier), ..) => Message::new("where-no-sample").with("tier", tier.name.as_str()),
        (None, Some(name), _) => Message::new("where-no-listener").with("address", ListenerAddress::Unix(name.clone()).to_string()),
        (None, None, Some(ip)) => Message::new("where-no-listener").with("address", ListenerAddress::Tcp(*ip, request.port).to_string()),
        (None, None, None) => Message::new("where-no-listener").with("address", f64::from(request.port)),
    }
}
