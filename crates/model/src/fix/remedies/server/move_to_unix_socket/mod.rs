//! Remedy `move-to-unix-socket`: a proxy and its pool on one host talk through a unix socket. Opening a connection there costs a fraction of one over TCP, takes
//! no local port and holds no worker. It is offered for nginx and php-fpm where nobody else uses the pool's address, and given in words for other servers.

use std::collections::BTreeSet;

use super::raise_accept_backlog::{configured, queue_for, raise_somaxconn};
use super::raise_max_children::by_memory;
use super::servers::{self, Server, is_bound_to};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::fix::change::{Activation, Change, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::upstream_connect::{Edge, edges};
use crate::observation::{ListenerAddress, NginxConfig, PhpFpmConfig, PhpFpmPool, ServerView, SocketAddress};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "move-to-unix-socket", finding: FindingId::CHURN, activation: Activation::Reload, propose };

/// Longest path of a unix socket, bytes: `sun_path` has 108 with the final zero (unix(7)).
const PATH_BYTES_MAX: usize = 107;
/// Where a socket lies if the pool's server names no file of its own that is made at run time (hier(7)).
const RUN_DIR: &str = "/run";

/// What a move takes, on both sides.
struct Move<'a> {
    proxy: Server<'a>,
    pools: Server<'a>,
    pool: &'a PhpFpmPool,
    /// The pool's address as nginx reaches it.
    address: &'a ListenerAddress,
    path: String,
    /// The user of nginx's workers.
    user: &'a str,
}

/// For other servers, and where something that the move depends on is not known.
pub(in crate::fix::remedies) const WORDS: RemedyDef =
    RemedyDef { id: "move-to-unix-socket-by-hand", finding: FindingId::CHURN, activation: Activation::Reload, propose: advise };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let (edge, known) = look(ctx, placed)?;
    let (found, change) = known.ok()?;
    let text = edge.args("remedy-move-to-unix-socket-text").with("pool", found.pool.name.as_str()).with("path", found.path.as_str());
    let risk = edge.args("remedy-move-to-unix-socket-risk").with("workers", found.pool.max_children.value);
    Some(Proposal { reload: None, change, text, risk, signal: Signal::Goodput, lifts: Lift::Cost })
}

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let (edge, known) = look(ctx, placed)?;
    let upstream = edge.upstream?;
    let text = match known.err()? {
        Obstacle::OtherServers => edge.args("remedy-move-to-unix-socket-words-other").with("upstream", upstream.name.as_str()),
        Obstacle::Because(why) => edge.args("remedy-move-to-unix-socket-words").with("why", why),
    };
    let risk = edge.args("remedy-move-to-unix-socket-risk-words");
    Some(Proposal { reload: None, change: Vec::new(), text, risk, signal: Signal::Goodput, lifts: Lift::Cost })
}

/// The move with its changes, or why there is none.
type KnownMove<'a> = Result<(Move<'a>, Vec<Change>), Obstacle>;

/// The edge over TCP on one host, and the move to a unix socket there with its changes.
fn look<'a>(ctx: &Context<'a>, placed: &StationReading) -> Option<(Edge<'a>, KnownMove<'a>)> {
    let edge = edges(ctx).into_iter().find(|edge| edge.is_at(placed))?;
    // What is on another host has no file in common.
    let (upstream, ListenerAddress::Tcp(..)) = (edge.upstream?, edge.address) else { return None };
    let known = the_move(ctx, &edge, upstream).and_then(|found| {
        let changes = changes(ctx, &edge, upstream, &found)?;
        Ok((found, changes))
    });
    Some((edge, known))
}

/// Why the move is not offered.
enum Obstacle {
    /// The two are not nginx and php-fpm.
    OtherServers,
    /// A condition is not known to hold.
    Because(Message),
}

fn because(id: &'static str) -> Obstacle {
    Obstacle::Because(Message::new(id))
}

/// The move, if everything that it depends on is known.
fn the_move<'a>(ctx: &Context<'a>, edge: &Edge<'a>, upstream: &Tier) -> Result<Move<'a>, Obstacle> {
    let proxy = servers::of(ctx, edge.tier).into_iter().find(|server| server.view().nginx().is_some()).ok_or(Obstacle::OtherServers)?;
    let nginx = proxy.view().nginx().ok_or(Obstacle::OtherServers)?;
    let mut found = pools(ctx, upstream);
    let (pools, pool) = found.pop().ok_or(Obstacle::OtherServers)?;
    if !edge.passes.iter().all(|pass| pass.kind == "fastcgi") {
        return Err(Obstacle::OtherServers);
    }
    if !found.is_empty() || upstream.listeners.len() != 1 {
        return Err(because("remedy-move-to-unix-socket-not-one-pool"));
    }
    let ListenerAddress::Tcp(ip, port) = &pool.listen else { return Err(because("remedy-move-to-unix-socket-not-one-pool")) };
    if !ip.is_loopback() || upstream.netns != edge.tier.netns {
        return Err(because("remedy-move-to-unix-socket-reachable"));
    }
    if [&proxy, &pools].iter().any(|server| server.view().files.are_elsewhere != Some(false)) {
        return Err(because("remedy-move-to-unix-socket-file-system"));
    }
    let user = user(ctx, edge.tier, &proxy, nginx).ok_or_else(|| because("remedy-move-to-unix-socket-user"))?;
    if let Some(other) = other_client(ctx, edge) {
        return Err(Obstacle::Because(other));
    }
    let (workers, second) = (f64::from(pool.max_children.value), 2.0 * f64::from(pool.max_children.value));
    if by_memory(ctx, upstream, workers) < second {
        return Err(because("remedy-move-to-unix-socket-memory"));
    }
    let path = format!("{}/{}-{port}.sock", directory(pools.view()), pool.name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if path.len() > PATH_BYTES_MAX || !path.chars().all(is_plain) {
        return Err(because("remedy-move-to-unix-socket-path"));
    }
    Ok(Move { proxy, pools, pool, address: edge.address, path, user })
}

/// The changes in their order: the pool serves at both places while nginx moves from one to the other, so that every request finds a listener.
fn changes(ctx: &Context<'_>, edge: &Edge<'_>, upstream: &Tier, found: &Move<'_>) -> Result<Vec<Change>, Obstacle> {
    let listener =
        upstream.listeners.first().map(|placed| &placed.listener).ok_or_else(|| because("remedy-move-to-unix-socket-not-one-pool"))?;
    let wanted = queue_for(ctx, listener.accept_queue);
    // A full queue of a unix socket refuses at once. A negative backlog is as long as the kernel allows.
    let backlog = configured(ctx, upstream, &listener.address).filter(|backlog| (0..i64::from(wanted)).contains(&backlog.written()));
    let socket = ServerSetting::socket(&found.path, found.user);
    let pool = || found.pool.name.clone();
    let (second, listen) = (ServerSetting::PhpFpmSecondPool { pool: pool() }, ServerSetting::PhpFpmListen { pool: pool() });
    let (from, to) = (found.address.to_string(), format!("unix:{}", found.path));
    let pass = ServerSetting::NginxFastcgiAddress { address: from.clone(), socket: to.clone() };
    check(found.pools.view(), &[(&second, &socket), (&listen, &socket)])?;
    check(found.proxy.view(), &[(&pass, &to)])?;
    let listens = found.pools.view().files.text.as_ref().and_then(|files| files.value(&listen));
    let listens = listens.ok_or_else(|| because("remedy-move-to-unix-socket-files"))?;
    let change = |server: &Server<'_>, setting, from: &str, to: &str| server.change(setting, from, to, Activation::Reload);
    Ok(raise_somaxconn(ctx, edge.tier.netns, wanted)
        .into_iter()
        .chain(backlog.map(|backlog| backlog.change(wanted)))
        .chain([
            change(&found.pools, second, ServerSetting::UNSET, &socket),
            change(&found.proxy, pass, &from, &to),
            change(&found.pools, listen, &listens, &socket),
        ])
        .collect())
}

/// Whether the files can be edited, one in each step.
fn check(view: &ServerView, settings: &[(&ServerSetting, &str)]) -> Result<(), Obstacle> {
    let unread = || because("remedy-move-to-unix-socket-files");
    let files = view.files.text.as_ref().ok_or_else(unread)?;
    match files.changed(settings) {
        Ok(1) => Ok(()),
        Ok(_) => Err(because("remedy-move-to-unix-socket-several-files")),
        Err(why) => Err(Obstacle::Because(Message::new("remedy-move-to-unix-socket-edit").with("why", why))),
    }
}

/// The pools that answer at the tier's listeners.
fn pools<'a>(ctx: &Context<'a>, upstream: &Tier) -> Vec<(Server<'a>, &'a PhpFpmPool)> {
    let here = |pool: &&PhpFpmPool| upstream.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
    let of = |server: Server<'a>| {
        let pools: Vec<&'a PhpFpmPool> =
            server.view().php_fpm().into_iter().flat_map(|fpm: &PhpFpmConfig| &fpm.pools).filter(here).collect();
        pools.into_iter().map(move |pool| (server.clone(), pool)).collect::<Vec<_>>()
    };
    servers::of(ctx, upstream).into_iter().flat_map(of).collect()
}

/// The name of the user of nginx's workers: the configured one, if the master may become another user.
fn user<'a>(ctx: &Context<'_>, tier: &Tier, proxy: &Server<'_>, nginx: &'a NginxConfig) -> Option<&'a str> {
    let uid = |pid: u32| ctx.obs.processes.get(&pid)?.identity.last().map(|identity| identity.uid);
    let is_plain = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let has_workers = tier.pids.iter().any(|pid| *pid != proxy.pid() && uid(*pid).is_some());
    let is_hidden = |name: &&str| *name == "hidden";
    nginx.user.as_deref().filter(|name| is_plain(name) && !is_hidden(name) && has_workers && uid(proxy.pid()) == Some(0))
}

/// What other than nginx's workers was connected to the pool's address, by the sockets' users and owners. A busy namespace is read seldom, so that nobody may
/// have been seen there. Whether it is unused is looked at when nginx has moved, while the pool still serves it.
fn other_client(ctx: &Context<'_>, edge: &Edge<'_>) -> Option<Message> {
    let ListenerAddress::Tcp(ip, port) = edge.address else { return None };
    let uid = |pid: &u32| ctx.obs.processes.get(pid)?.identity.last().map(|identity| identity.uid);
    let users: BTreeSet<u32> = edge.tier.pids.iter().filter_map(uid).collect();
    let processes = ctx.obs.processes.iter().filter(|(pid, _)| !edge.tier.pids.contains(pid));
    let held_elsewhere: BTreeSet<u64> =
        processes.flat_map(|(_, process)| process.files.values()).flat_map(|files| files.sockets.iter().copied()).collect();
    let is_to = |address: &SocketAddress| matches!(address, SocketAddress::Tcp { remote, .. } if remote.1 == *port && remote.0.to_canonical() == ip.to_canonical());
    let sockets = ctx.obs.netns.get(&edge.tier.netns)?.sockets.values().flatten();
    // A socket without an inode belongs to nobody any more.
    let mut held = sockets.filter(|socket| socket.inode != 0 && is_to(&socket.address));
    let other = held.find(|socket| socket.uid.is_some_and(|uid| !users.contains(&uid)) || held_elsewhere.contains(&socket.inode))?;
    Some(
        Message::new("remedy-move-to-unix-socket-other-client")
            .with("uid", other.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string())),
    )
}

/// The directory of the pool's other run-time file, which exists and which its server may write.
fn directory(view: &ServerView) -> &str {
    let pid_file = view.php_fpm().and_then(|fpm| fpm.pid_file.as_deref());
    let directory = pid_file.filter(|path| path.starts_with('/')).and_then(|path| path.rsplit_once('/')).map(|(directory, _)| directory);
    directory.filter(|directory| !directory.is_empty()).unwrap_or(RUN_DIR)
}
