//! Remedies `reuse-upstream-connections-*`: keep connections to a FastCGI pool for some requests, in three lengths. A kept connection holds a worker: a
//! longer one costs less, but the connections that are not kept wait longer. A measurement of each decides.

use std::net::IpAddr;

use super::raise_max_children::by_memory;
use super::servers::{self, Server, is_bound_to};
use crate::facts::Context;
use crate::facts::pool::{Pool, Service};
use crate::fix::change::{Activation, Change, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::{Signal, Starved};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::ephemeral_ports::{KEY_REUSE, reuses};
use crate::judge::stations::upstream_connect::{Edge, edges};
use crate::observation::load::Loop;
use crate::observation::{ListenerAddress, NginxPass, PhpFpmPool};
use crate::output::message::Message;
use crate::predict::Lift;

/// The group of the three.
pub(in crate::fix::remedies) const GROUP: &str = "reuse-upstream-connections";

pub(in crate::fix::remedies) const SHORT: RemedyDef =
    def("reuse-upstream-connections-short", |ctx, placed| propose(ctx, placed, REQUESTS[0]));
pub(in crate::fix::remedies) const MEDIUM: RemedyDef =
    def("reuse-upstream-connections-medium", |ctx, placed| propose(ctx, placed, REQUESTS[1]));
pub(in crate::fix::remedies) const LONG: RemedyDef =
    def("reuse-upstream-connections-long", |ctx, placed| propose(ctx, placed, REQUESTS[2]));
/// For servers of which it is not known how many connections they may keep.
pub(in crate::fix::remedies) const ADVICE: RemedyDef = def("reuse-upstream-connections", advise);

/// Requests per connection. Each length again saves the same share of connects (4 of 5, 19 of 20, 99 of 100). Beyond the last nothing more can be gained, and
/// below the first hardly anything is saved.
const REQUESTS: [u32; 3] = [5, 20, 100];
/// One of this many workers, and at least one, is left to connections that are not kept.
const RESERVE: u32 = 5;
/// Connections that each of nginx's workers should keep if the pool can be made large enough. With four in each of two workers a fifth could be gained, with
/// eight four fifths (docs/measuring.md, "What a connection costs").
const KEPT_WANTED: u32 = 8;
/// How many times larger the pool may become for that. A larger factor would change the character of the server.
const POOL_TIMES_MAX: u32 = 4;
/// The first nginx version with `keepalive_requests` in an upstream (nginx's changes, 1.15.3).
const VERSION_MIN: (u16, u16, u16) = (1, 15, 3);

const fn def(id: &'static str, propose: fn(&Context<'_>, &StationReading) -> Option<Proposal>) -> RemedyDef {
    RemedyDef { id, finding: FindingId::CHURN, activation: Activation::Reload, propose }
}

/// What an edge can keep.
struct Keep<'a> {
    server: Server<'a>,
    /// The target of the pass: an upstream's name or an address.
    pass: String,
    /// Connections that each worker of nginx keeps.
    connections: u32,
    /// Workers of nginx.
    workers: u32,
    /// Workers of the pool, including those added for this.
    children: u32,
    /// The change that gives the pool more workers, if it has too few to spare one.
    grown: Option<Change>,
}

fn edge_at<'a>(ctx: &Context<'a>, placed: &StationReading) -> Option<Edge<'a>> {
    edges(ctx).into_iter().find(|edge| edge.is_at(placed))
}

/// As many connections as leave some of the pool's workers free, whichever of nginx's workers holds the connections.
fn keep<'a>(ctx: &Context<'a>, edge: &Edge<'a>) -> Option<Keep<'a>> {
    let server = servers::of(ctx, edge.tier).into_iter().find(|server| server.view().nginx().is_some())?;
    let nginx = server.view().nginx()?;
    let (pool_server, pool) = pool_of(ctx, edge)?;
    let pass = pass_of(edge)?;
    if nginx.version.is_some_and(|version| version < VERSION_MIN) {
        return None;
    }
    let (found, workers) = (pool.max_children.value, nginx.worker_processes.value.max(1));
    let children = grown(ctx, edge, found, workers).unwrap_or(found);
    let grown = (children > found).then(|| {
        let setting = ServerSetting::PhpFpmMaxChildren { pool: pool.name.clone() };
        pool_server.change(setting, &found.to_string(), &children.to_string(), Activation::Reload)
    });
    let connections = kept(children, workers);
    (connections > 0).then_some(Keep { server, pass, connections, workers, children, grown })
}

/// Connections that each of nginx's workers may keep, for a pool with this many workers.
fn kept(children: u32, workers: u32) -> u32 {
    children.saturating_sub(reserved(children)) / workers
}

/// Workers of a pool that are left to connections that are not kept.
fn reserved(children: u32) -> u32 {
    (children / RESERVE).max(1)
}

/// Workers that the pool needs for a worthwhile number of kept connections; `None` if it has them or cannot have them.
fn grown(ctx: &Context<'_>, edge: &Edge<'_>, children: u32, workers: u32) -> Option<u32> {
    if kept(children, workers) >= KEPT_WANTED {
        return None;
    }
    let needed = KEPT_WANTED.saturating_mul(workers).saturating_mul(RESERVE).div_ceil(RESERVE - 1);
    let room = by_memory(ctx, edge.upstream?, f64::from(children));
    (needed <= children.saturating_mul(POOL_TIMES_MAX) && f64::from(needed) <= room).then_some(needed)
}

/// The pool that answers, if there is certainly only one.
fn pool_of<'a>(ctx: &Context<'a>, edge: &Edge<'a>) -> Option<(Server<'a>, &'a PhpFpmPool)> {
    let upstream = edge.upstream?;
    let here = |pool: &&PhpFpmPool| upstream.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
    let mut found: Vec<(Server<'a>, &'a PhpFpmPool)> = Vec::new();
    for server in servers::of(ctx, upstream) {
        let pools: Vec<&PhpFpmPool> = server.view().php_fpm().into_iter().flat_map(|php_fpm| &php_fpm.pools).filter(here).collect();
        found.extend(pools.into_iter().map(|pool| (server.clone(), pool)));
    }
    let only = found.pop()?;
    found.is_empty().then_some(only)
}

/// The one name that all FastCGI passes to the pool use. Two names would be two upstreams with connections of their own. An upstream with several servers
/// shares its connections between them, so the number per server has no bound.
fn pass_of(edge: &Edge<'_>) -> Option<String> {
    let one = |pass: &NginxPass| match &pass.upstream {
        Some(upstream) => upstream.clone(),
        None => pass.servers.first().map(ToString::to_string).unwrap_or_default(),
    };
    let first = one(edge.passes.first()?);
    let fits = |pass: &&NginxPass| {
        let single = pass.upstream.is_none() || pass.servers.len() == 1;
        pass.kind == "fastcgi" && single && one(pass) == first
    };
    (!first.is_empty() && edge.passes.iter().all(fits)).then_some(first)
}

fn propose(ctx: &Context<'_>, placed: &StationReading, requests: u32) -> Option<Proposal> {
    let edge = edge_at(ctx, placed)?;
    let keep = keep(ctx, &edge)?;
    let setting = ServerSetting::NginxFastcgiReuse { pass: keep.pass };
    let to = ServerSetting::reuse(keep.connections, requests);
    let id = if keep.grown.is_some() { "remedy-reuse-upstream-connections-text-grown" } else { "remedy-reuse-upstream-connections-text" };
    let sum = Message::new("sum-kept").with("children", keep.children).with("free", reserved(keep.children)).with("workers", keep.workers);
    let grown = Message::new("sum-kept-grown").with("workers", keep.workers).with("needed", keep.children);
    let text = edge.args(id).with("connections", keep.connections).with("requests", requests);
    let text = text.with("sum", sum.with("needed", keep.connections)).with("grown", grown);
    let risk = Message::new("remedy-reuse-upstream-connections-risk").with("kept", keep.connections * keep.workers);
    Some(Proposal {
        reload: None,
        change: keep
            .grown
            .into_iter()
            .chain(take_over(ctx, &edge))
            .chain([keep.server.change(setting, ServerSetting::UNSET, &to, Activation::Reload)])
            .collect(),
        text: text.with("workers", keep.workers).with("children", keep.children),
        risk: risk.with("children", keep.children),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}

/// What kept connections cost the requests that go without one: they wait behind each other for the workers that are left. All clients but those that the pool
/// serves can wait there. If the pool grows, its workers are taken to share the cores they have: a request then holds one for longer.
pub(in crate::fix::remedies) fn starved(ctx: &Context<'_>, placed: &StationReading) -> Option<Starved> {
    let edge = edge_at(ctx, placed)?;
    let keep = keep(ctx, &edge)?;
    let upstream = edge.upstream?;
    let pool = Pool::of(ctx, upstream)?;
    let held_s = Service::of(ctx, upstream, &pool)?.held_s * f64::from(keep.children) / pool.workers as f64;
    let free = keep.children.checked_sub(keep.connections * keep.workers).filter(|free| *free > 0)?;
    let (Loop::Closed { connections } | Loop::Open { connections, .. }) = ctx.obs.load.as_ref()?.shape;
    let waiting = connections.saturating_sub(keep.children);
    let why = Message::new("remedy-reuse-upstream-connections-starved");
    (waiting > 0).then(|| Starved { wait_s: f64::from(waiting) * held_s / f64::from(free), why })
}

/// The change that lets connections take over ports in TIME_WAIT, if they may not yet. With kept connections nginx closes first, after the last request of a
/// kept connection and for each one that is not kept. Its side then has the TIME_WAIT sockets that the pool's side had before.
fn take_over(ctx: &Context<'_>, edge: &Edge<'_>) -> Option<Change> {
    let addresses: Vec<IpAddr> = (edge.passes.iter().flat_map(|pass| &pass.servers))
        .filter_map(|server| match server {
            ListenerAddress::Tcp(ip, _) => Some(*ip),
            ListenerAddress::Unix(_) => None,
        })
        .collect();
    let netns = edge.tier.netns;
    let view = ctx.obs.netns.get(&netns)?;
    let from = view.sysctl(KEY_REUSE)?.to_owned();
    let may = reuses(view, addresses.iter().all(IpAddr::is_loopback));
    (!addresses.is_empty() && !may && from != "1").then(|| Change::Sysctl {
        key: KEY_REUSE.to_owned(),
        netns,
        netns_name: ctx.netns_name(netns),
        from,
        to: "1".to_owned(),
    })
}

/// Text for the case that the numbers are not known.
fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let edge = edge_at(ctx, placed)?;
    if keep(ctx, &edge).is_some() {
        return None;
    }
    let text = match edge.passes.first().map(|pass| pass.kind.as_str()) {
        None => "remedy-reuse-upstream-connections-advice-other",
        Some("fastcgi") => "remedy-reuse-upstream-connections-advice",
        Some(_) => "remedy-reuse-upstream-connections-advice-proxy",
    };
    Some(Proposal {
        reload: None,
        change: Vec::new(),
        text: edge.args(text),
        risk: Message::new("remedy-reuse-upstream-connections-advice-risk"),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}
