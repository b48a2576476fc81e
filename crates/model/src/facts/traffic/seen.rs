//! Whether any traffic reached the first tier while it was watched.

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::facts::path::{Path, Tier};
use crate::facts::suffered::others::{have_ended, own_growth};
use crate::observation::{Listener, ListenerAddress, NetnsView, RequestSocket, Socket, SocketAddress};

/// True if connections came or bytes moved in the passive window. What the namespace counts is this server's only if nothing else there had connections.
pub(crate) fn was_seen(ctx: &Context<'_>) -> bool {
    ctx.path.tiers.first().and_then(|tier| Some((tier, ctx.obs.netns.get(&tier.netns)?))).is_some_and(|(first, view)| {
        let grew = |name: &str| own_growth(ctx, first.netns, name).is_some_and(|count| count > 0);
        grew("Tcp.PassiveOpens")
            || connections_changed(ctx.path, view)
            || (grew("Tcp.InSegs") && view.sockets.values().flatten().any(|socket| accepted(ctx.path, &socket.address)))
            || seen_beside_others(ctx, first, view)
    })
}

/// True if the first tier's own sockets or log show traffic.
fn seen_beside_others(ctx: &Context<'_>, first: &Tier, view: &NetnsView) -> bool {
    let is_at_work = |socket: &RequestSocket, at_us: u64| {
        let began_ms = at_us.saturating_sub(ctx.window_us.0) / 1_000;
        first.accepts(&socket.address) && socket.times.is_none_or(|times| times.last_data_recv_ms.min(times.last_data_sent_ms) <= began_ms)
    };
    let mut samples = ctx.in_window(&view.request_samples);
    samples.any(|(at_us, sample)| sample.sockets.iter().any(|socket| is_at_work(socket, *at_us)))
        || have_ended(ctx, first.netns, view)
        || super::of(ctx).is_some_and(|traffic| traffic.requests > 0)
}

/// True if something shows that requests came: connections that were accepted or ended, answers in the log, or data on a connection of the first tier.
pub(crate) fn brought_requests(ctx: &Context<'_>) -> bool {
    ctx.path.tiers.first().and_then(|tier| Some((tier, ctx.obs.netns.get(&tier.netns)?))).is_some_and(|(first, view)| {
        let moved = |socket: &RequestSocket, at_us: u64| {
            let began_ms = at_us.saturating_sub(ctx.window_us.0) / 1_000;
            let last_ms = |times: crate::observation::RequestTimes| times.last_data_recv_ms.min(times.last_data_sent_ms);
            first.accepts(&socket.address) && socket.times.is_some_and(|times| last_ms(times) <= began_ms)
        };
        let came = own_growth(ctx, first.netns, "Tcp.PassiveOpens").is_some_and(|count| count > 0);
        (came && listens_alone(ctx.path, view))
            || connections_changed(ctx.path, view)
            || have_ended(ctx, first.netns, view)
            || super::of(ctx).is_some_and(|traffic| traffic.requests > 0)
            || ctx.in_window(&view.request_samples).any(|(at_us, sample)| sample.sockets.iter().any(|socket| moved(socket, *at_us)))
    })
}

/// True if no other server than the path's listens in the namespace: a connection that came and went between two samples may have been another one's.
fn listens_alone(path: &Path, view: &NetnsView) -> bool {
    let is_own =
        |listener: &Listener| path.tiers.iter().flat_map(|tier| &tier.listeners).any(|placed| placed.listener.address == listener.address);
    let is_tcp = |listener: &&Listener| matches!(listener.address, ListenerAddress::Tcp(..));
    view.listeners.values().flatten().filter(is_tcp).all(is_own)
}

/// True if connections at a unix socket of the first tier came or went, or hold waiting bytes. The kernel has no counters there.
fn connections_changed(path: &Path, view: &NetnsView) -> bool {
    let listeners = path.tiers.first().into_iter().flat_map(|tier| &tier.listeners).map(|placed| &placed.listener.address);
    let names: Vec<&String> =
        listeners.filter_map(|address| if let ListenerAddress::Unix(name) = address { Some(name) } else { None }).collect();
    let own = |socket: &&Socket| matches!(&socket.address, SocketAddress::Unix { path: Some(name), .. } if names.contains(&name));
    let mut seen = view.sockets.values().map(|sockets| sockets.iter().filter(own).collect::<Vec<_>>());
    let inodes = |sockets: &[&Socket]| sockets.iter().map(|socket| socket.inode).collect::<BTreeSet<u64>>();
    let Some(first) = seen.next() else { return false };
    let waits = |sockets: &[&Socket]| sockets.iter().any(|socket| socket.receive_queue > 0 || socket.send_queue > 0);
    waits(&first) || seen.any(|later| waits(&later) || inodes(&later) != inodes(&first))
}

/// True if a socket is an accepted connection of the first tier's TCP listeners.
fn accepted(path: &Path, address: &SocketAddress) -> bool {
    matches!(address, SocketAddress::Tcp { .. }) && path.tiers.first().is_some_and(|tier| tier.accepts(address))
}
