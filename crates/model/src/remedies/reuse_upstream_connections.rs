//! Remedies `reuse-upstream-connections-*`: connections to a FastCGI pool are kept for some requests, in three lengths. A kept connection holds
//! a worker: the longer, the less it costs and the longer the connections beyond the kept ones wait. Measuring chooses.

use super::servers::{self, Server, is_bound_to};
use super::{Proposal, RemedyDef};
use crate::change::{Activation, ServerSetting};
use crate::message::Message;
use crate::observation::{NginxPass, PhpFpmPool};
use crate::predict::Lift;
use crate::report::Signal;
use crate::stations::upstream_connect::{CHURN, Edge, edges};
use crate::stations::{Context, Placed};

/// The group of the three.
pub(super) const GROUP: &str = "reuse-upstream-connections";

pub(super) const SHORT: RemedyDef = def("reuse-upstream-connections-short", |ctx, placed| propose(ctx, placed, REQUESTS[0]));
pub(super) const MEDIUM: RemedyDef = def("reuse-upstream-connections-medium", |ctx, placed| propose(ctx, placed, REQUESTS[1]));
pub(super) const LONG: RemedyDef = def("reuse-upstream-connections-long", |ctx, placed| propose(ctx, placed, REQUESTS[2]));
/// For servers of which it is not known how many connections they may keep.
pub(super) const ADVICE: RemedyDef = def("reuse-upstream-connections", advise);

/// Requests on one connection. Each length saves the same share of connects again (4 of 5, 19 of 20, 99 of 100): beyond the last there is nothing
/// to be had, and below the first hardly anything is saved.
const REQUESTS: [u32; 3] = [5, 20, 100];
/// One worker of this many is left to connections that are not kept, and at least one.
const RESERVE: u32 = 5;
/// The first version in which an upstream has `keepalive_requests` (nginx's changes, 1.15.3).
const VERSION_MIN: (u16, u16, u16) = (1, 15, 3);

const fn def(id: &'static str, propose: fn(&Context<'_>, &Placed) -> Option<Proposal>) -> RemedyDef {
    RemedyDef { id, finding: CHURN, activation: Activation::Reload, propose }
}

/// What can be kept on an edge.
struct Keep<'a> {
    server: Server<'a>,
    /// What is passed to: an upstream's name or an address.
    pass: String,
    /// Connections that each worker of nginx keeps.
    connections: u32,
    /// Workers of nginx.
    workers: u32,
    children: u32,
}

fn edge_at<'a>(ctx: &Context<'a>, placed: &Placed) -> Option<Edge<'a>> {
    edges(ctx).into_iter().find(|edge| edge.is_at(placed))
}

/// As many connections as leave some workers of the pool to everybody else, whichever of nginx's workers holds them.
fn keep<'a>(ctx: &Context<'a>, edge: &Edge<'a>) -> Option<Keep<'a>> {
    let server = servers::of(ctx, edge.tier).into_iter().find(|server| server.view().nginx().is_some())?;
    let nginx = server.view().nginx()?;
    let pool = pool_of(ctx, edge)?;
    let pass = pass_of(edge)?;
    if nginx.version.is_some_and(|version| version < VERSION_MIN) {
        return None;
    }
    let (children, workers) = (pool.max_children.value, nginx.worker_processes.value.max(1));
    let connections = children.saturating_sub((children / RESERVE).max(1)) / workers;
    (connections > 0).then_some(Keep { server, pass, connections, workers, children })
}

/// The pool that answers, where it is known that there is but one.
fn pool_of<'a>(ctx: &Context<'a>, edge: &Edge<'a>) -> Option<&'a PhpFpmPool> {
    let upstream = edge.upstream?;
    let pools = servers::of(ctx, upstream).into_iter().filter_map(|server| server.view().php_fpm()).flat_map(|php_fpm| &php_fpm.pools);
    let here = |pool: &&PhpFpmPool| upstream.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
    let mut pools = pools.filter(here);
    pools.next().filter(|_| pools.next().is_none())
}

/// What all FastCGI passes to the pool name. Two names would be two upstreams, each with connections of its own; an upstream with several
/// servers shares its connections between them, which bounds none.
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

fn propose(ctx: &Context<'_>, placed: &Placed, requests: u32) -> Option<Proposal> {
    let edge = edge_at(ctx, placed)?;
    let keep = keep(ctx, &edge)?;
    let setting = ServerSetting::NginxFastcgiReuse { pass: keep.pass };
    let to = ServerSetting::reuse(keep.connections, requests);
    let text = edge.args("remedy-reuse-upstream-connections-text").with("connections", keep.connections).with("requests", requests);
    let risk = Message::new("remedy-reuse-upstream-connections-risk").with("kept", keep.connections * keep.workers);
    Some(Proposal {
        change: vec![keep.server.change(setting, ServerSetting::UNSET, &to, Activation::Reload)],
        text: text.with("workers", keep.workers),
        risk: risk.with("children", keep.children),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}

/// Words where the numbers are not known.
fn advise(ctx: &Context<'_>, placed: &Placed) -> Option<Proposal> {
    let edge = edge_at(ctx, placed)?;
    if keep(ctx, &edge).is_some() {
        return None;
    }
    let is_fastcgi = edge.passes.iter().any(|pass| pass.kind == "fastcgi");
    let text = if is_fastcgi { "remedy-reuse-upstream-connections-advice" } else { "remedy-reuse-upstream-connections-advice-proxy" };
    Some(Proposal {
        change: Vec::new(),
        text: edge.args(text),
        risk: Message::new("remedy-reuse-upstream-connections-advice-risk"),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}
