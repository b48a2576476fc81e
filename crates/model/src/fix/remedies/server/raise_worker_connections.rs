//! Remedy `raise-worker-connections`: allows each worker as many connections as come at once, with the file descriptors that they need.

use super::servers::{self, Server};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::fix::change::{Activation, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::{Advised, AtOnce};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::worker_connections::Held;
use crate::observation::NginxConfig;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-worker-connections", finding: FindingId::CONNECTIONS_EXHAUSTED, activation: Activation::Reload, propose };

/// Sysctl with the largest open-file limit that any process can have, and its default (proc_sys_fs(5)).
const KEY_NR_OPEN: &str = "fs.nr_open";
const NR_OPEN_DEFAULT: u64 = 1_048_576;
/// Descriptors per connection: its own, and one for the file that answers or buffers it.
pub(super) const FILES_PER_CONNECTION: u64 = 2;
/// How unevenly workers share connections: the first to wake accepts, so one of several workers may hold twice its share.
const UNEVEN: f64 = 2.0;
/// Room above the demand. It covers listening sockets and the workers' own channels.
const ROOM: f64 = 1.25;
/// Bytes that nginx allocates per connection, used or not: the connection and its two events (ngx_connection_t, ngx_event_t).
const CONNECTION_BYTES: u64 = 450;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let tier = ctx.only_tier(&placed.owner)?;
    let held = Held::of(ctx, tier)?;
    let (server, nginx) = nginx_of(ctx, tier)?;
    let from = nginx.worker_connections.value;
    let most = files_most(ctx, tier, &server);
    let needed = needed(ctx, &held);
    let advised = needed.clone().at_most(most / FILES_PER_CONNECTION, "sum-nr-open-half");
    let wanted = advised.number;
    if wanted <= u64::from(from.max(held.limit)) {
        return None;
    }
    let mut change = vec![server.change(ServerSetting::NginxWorkerConnections, &from.to_string(), &wanted.to_string(), Activation::Reload)];
    let files = wanted * FILES_PER_CONNECTION;
    let mut risk = "remedy-raise-worker-connections-risk";
    if files_now(ctx, tier).is_some_and(|limit| limit < files) {
        change.push(server.change(ServerSetting::NginxWorkerRlimitNofile, &files_set(nginx), &files.to_string(), Activation::Reload));
        risk = "remedy-raise-worker-connections-risk-files";
    }
    let mib = (wanted * CONNECTION_BYTES * held.workers as u64) as f64 / f64::from(1 << 20);
    Some(Proposal {
        reload: None,
        change,
        text: Message::new("remedy-raise-worker-connections-text").with("from", from).with("to", wanted).with("sum", advised.sum),
        risk: Message::new(risk).with("mib", mib).with("files", files).with("limit", files_now(ctx, tier).unwrap_or(0)),
        signal: Signal::Refusals(StationId::WORKER_CONNECTIONS),
        lifts: Lift::to_room(wanted >= needed.number),
    })
}

/// The tier's nginx as changes name it; `None` if there are several, because it is not known which one is meant.
pub(super) fn nginx_of<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<(Server<'a>, &'a NginxConfig)> {
    let mut found: Vec<(Server<'a>, &'a NginxConfig)> =
        servers::of(ctx, tier).into_iter().filter_map(|server| server.view().nginx().map(|nginx| (server, nginx))).collect();
    let only = found.pop()?;
    found.is_empty().then_some(only)
}

/// Connections that a worker needs for the requests under way at once, without reserve; `None` without load.
pub(super) fn at_once(ctx: &Context<'_>, held: &Held) -> Option<f64> {
    let share = if held.workers > 1 { UNEVEN / held.workers as f64 } else { 1.0 };
    AtOnce::of(ctx).map(|at_once| at_once.number * held.each * share)
}

/// Connections that each worker needs: those under way at once, twice as many if requests are passed on, rounded up to a power of two; at least twice the
/// current limit.
fn needed(ctx: &Context<'_>, held: &Held) -> Advised {
    let twice = Advised::twice(u64::from(held.limit));
    let asked = AtOnce::of(ctx).zip(at_once(ctx, held)).map(|(all, at_once)| {
        let id = if held.workers > 1 { "sum-connections-uneven" } else { "sum-connections" };
        let sum = Message::new(id).with("at_once", all.sum).with("each", held.each).with("workers", held.workers as f64);
        Advised::new(at_once * ROOM, sum)
    });
    asked.map_or_else(|| twice.clone(), |asked| asked.at_least(twice.clone())).power_of_two(u64::MAX)
}

/// The most descriptors that the workers can get: a master that runs as root can set any number up to `fs.nr_open`.
pub(super) fn files_most(ctx: &Context<'_>, tier: &Tier, server: &Server<'_>) -> u64 {
    let nr_open = ctx.obs.netns.get(&tier.netns).and_then(|view| view.sysctl_number(KEY_NR_OPEN)).unwrap_or(NR_OPEN_DEFAULT);
    let master = ctx.obs.processes.get(&server.pid());
    let is_root = master.and_then(|process| process.identity.last()).is_some_and(|identity| identity.uid == 0);
    let hard = master.and_then(|process| process.limits.last()).and_then(|limits| limits.open_files_hard);
    if is_root { nr_open } else { hard.unwrap_or(nr_open).min(nr_open) }
}

/// The lowest open-file limit of the tier's processes.
fn files_now(ctx: &Context<'_>, tier: &Tier) -> Option<u64> {
    tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.limits.last()?.open_files_soft).min()
}

/// `worker_rlimit_nofile` as configured.
pub(super) fn files_set(nginx: &NginxConfig) -> String {
    nginx.worker_rlimit_nofile.as_ref().map_or_else(|| ServerSetting::UNSET.to_owned(), |limit| limit.value.to_string())
}
