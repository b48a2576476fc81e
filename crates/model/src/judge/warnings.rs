//! Things to know that are no findings: what makes the measurement less certain.

use crate::facts::Context;
use crate::facts::cores::other_tenants;
use crate::facts::path::{PlacedListener, Tier};
use crate::judge::settle::{Moment, unsettled};
use crate::observation::{Listener, ListenerAddress, Socket, SocketAddress};
use crate::output::message::Message;

/// Connections seen at a unix socket from which it is in use.
const UNIX_CONNECTIONS_MIN: usize = 5;

/// Upstreams of other sites that are named.
const ELSEWHERE_MAX: usize = 3;

/// The warnings of an observation. `unread` sources could not be read.
pub(crate) fn warnings(ctx: &Context<'_>, unread: usize) -> Vec<Message> {
    let mut warnings = Vec::new();
    for (cores, share) in other_tenants(ctx) {
        warnings.push(Message::new("warning-other-tenants").with("cores", cores).with("share", share * 100.0));
    }
    if let Some(load) = &ctx.obs.load {
        let generator: Vec<u32> = load.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
        let shares = |pid: &u32| {
            let identity = ctx.obs.processes.get(pid).and_then(|process| process.identity.first());
            identity.is_some_and(|identity| identity.cpus_allowed.iter().any(|core| generator.contains(core)))
        };
        if ctx.path.tiers.iter().flat_map(|tier| &tier.pids).any(shares) {
            warnings.push(Message::new("warning-shared-cores"));
        }
        if let Some(guard) = &load.stopped_by {
            warnings.push(Message::new("warning-guard").with("guard", guard.as_str()));
        }
        if load.interrupted {
            warnings.push(Message::new("warning-interrupted"));
        }
    }
    if ctx.obs.load.is_some() {
        warnings.extend(unsettled(ctx.obs, ctx.path, Moment::First));
    }
    for tier in &ctx.path.tiers {
        let configured = tier.configured.iter().map(|index| &ctx.path.tiers[*index]);
        for upstream in configured.filter(|upstream| !is_connected_to(ctx, upstream)) {
            let warning = Message::new("warning-edge-configured").with("tier", tier.name.as_str());
            warnings.push(warning.with("upstream", upstream.name.as_str()));
        }
    }
    warnings.extend(elsewhere(ctx));
    for hop in &ctx.path.translated {
        let name = |(ip, port)| ListenerAddress::Tcp(ip, port).to_string();
        let warning = Message::new("warning-translated").with("original", name(hop.original)).with("translated", name(hop.translated));
        warnings.push(warning.with("netns", ctx.netns_name(hop.netns)));
    }
    if ctx.path.tiers.is_empty() && ctx.path.ambiguous.is_empty() && ctx.obs.load.is_some() {
        warnings.push(Message::new("warning-no-listener"));
    }
    if unread > 0 {
        warnings.push(Message::new("warning-failed-readings").with("count", unread as f64));
    }
    for what in ctx.obs.unplaced.iter().take(3) {
        warnings.push(Message::new("warning-unplaced").with("what", what.as_str()));
    }
    warnings
}

/// Where requests of other sites and locations go, and whether they wait there: it is no part of the path, but somebody may look for it.
fn elsewhere(ctx: &Context<'_>) -> Option<Message> {
    let tier = ctx.path.tiers.first().filter(|_| !ctx.path.elsewhere.is_empty())?;
    let most_waiting = |placed: &PlacedListener| {
        let own = |all: &Vec<Listener>| all.iter().find(|one| one.inode == placed.listener.inode).map_or(0, |one| one.accept_queue);
        ctx.obs.netns.get(&placed.netns).into_iter().flat_map(|view| view.listeners.values()).map(own).max().unwrap_or(0)
    };
    let waiting: u32 = ctx.path.elsewhere.iter().map(most_waiting).max().unwrap_or(0);
    let mut names: Vec<String> = ctx.path.elsewhere.iter().map(|placed| placed.listener.address.to_string()).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(ELSEWHERE_MAX);
    names.truncate(ELSEWHERE_MAX);
    let id = if waiting > 0 { "warning-elsewhere-waiting" } else { "warning-elsewhere" };
    let warning = Message::new(id).with("tier", tier.name.as_str()).with("upstreams", names.join(", ")).with("more", more as f64);
    Some(warning.with("waiting", f64::from(waiting)))
}

/// True if connections to a tier's unix socket were seen. They are too short to tell whose they are, so the configuration says that.
fn is_connected_to(ctx: &Context<'_>, tier: &Tier) -> bool {
    let count = |placed: &PlacedListener| {
        let ListenerAddress::Unix(path) = &placed.listener.address else { return 0 };
        let sockets = ctx.obs.netns.get(&placed.netns).into_iter().flat_map(|view| view.sockets.values().flatten());
        let is_its = |socket: &&Socket| matches!(&socket.address, SocketAddress::Unix { path: Some(own), .. } if own == path);
        sockets.filter(is_its).take(UNIX_CONNECTIONS_MIN).count()
    };
    tier.listeners.iter().any(|placed| count(placed) >= UNIX_CONNECTIONS_MIN)
}
