//! The connections of samples: which tier each belongs to, its two ends, and the same socket in the previous sample.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use crate::facts::Context;
use crate::facts::path::{Endpoint, answers};
use crate::observation::{ListenerAddress, NetnsId, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};

/// A socket and the same socket in the previous sample.
pub(super) type Pair<'s> = (&'s RequestSocket, Option<&'s RequestSocket>);

/// Each sample as pairs.
pub(super) fn pairs<'s>(samples: &[&'s (u64, RequestSample)]) -> Vec<Vec<Pair<'s>>> {
    let mut before: HashMap<u64, &RequestSocket> = HashMap::new();
    let mut all = Vec::new();
    for (_, sample) in samples {
        all.push(sample.sockets.iter().map(|socket| (socket, before.get(&socket.cookie).copied())).collect());
        before = sample.sockets.iter().filter(|socket| socket.cookie != 0).map(|socket| (socket.cookie, socket)).collect();
    }
    all
}

/// The tier that a connection belongs to, by its accepted end.
pub(super) fn tier_of(ctx: &Context<'_>, id: NetnsId, end: &SocketAddress) -> Option<usize> {
    let listeners = ctx.path.tiers.iter().enumerate().flat_map(|(tier, of)| of.listeners.iter().map(move |placed| (tier, placed)));
    let is_apart = |tier: usize| matches!(end, SocketAddress::Tcp { local, .. } if ctx.path.tiers[tier].is_apart(id, *local));
    let accepting = listeners.filter(|(tier, placed)| placed.netns == id && placed.listener.accepts(end) && !is_apart(*tier));
    // A listener bound to a single address precedes one bound to all addresses.
    accepting.max_by_key(|(tier, placed)| (placed.listener.is_bound_to_one(), std::cmp::Reverse(*tier))).map(|(tier, _)| tier)
}

/// The tier that a connection from this namespace to this address reaches.
pub(super) fn called(ctx: &Context<'_>, id: NetnsId, (ip, port): Endpoint) -> Option<usize> {
    ctx.path.tiers.iter().position(|tier| {
        tier.listeners.iter().any(|placed| {
            let is_tcp = matches!(placed.listener.address, ListenerAddress::Tcp(..)) && !tier.is_apart(placed.netns, (ip, port));
            is_tcp && ctx.obs.netns.get(&placed.netns).is_some_and(|view| answers(view, placed.netns == id, &placed.listener, ip, port))
        })
    })
}

/// The tier of the path at one end of a socket of this namespace: the one that accepted it, or the one that it was made to. `None` for what is not the path's.
pub(crate) fn path_end(ctx: &Context<'_>, id: NetnsId, address: &SocketAddress) -> Option<usize> {
    let SocketAddress::Tcp { remote, .. } = address else { return tier_of(ctx, id, address) };
    let request = &ctx.obs.request;
    let is_asked = || {
        let at_target = request.addresses.iter().any(|one| one.to_canonical() == remote.0.to_canonical());
        id == request.client_netns && remote.1 == request.port && at_target && !ctx.path.tiers.is_empty()
    };
    tier_of(ctx, id, address).or_else(|| called(ctx, id, *remote)).or_else(|| is_asked().then_some(0))
}

/// True if a socket of this namespace is a caller's end of a connection that the caller has closed: nobody waits for what is still on its way.
pub(crate) fn is_left(ctx: &Context<'_>, id: NetnsId, address: &SocketAddress, state: TcpState) -> bool {
    use TcpState::{Close, Closing, FinWait1, FinWait2, LastAck, TimeWait};
    tier_of(ctx, id, address).is_none() && matches!(state, FinWait1 | FinWait2 | Closing | LastAck | TimeWait | Close)
}

/// Local and remote end of a TCP socket.
pub(super) fn ends(socket: &RequestSocket) -> Option<(Endpoint, Endpoint)> {
    match socket.address {
        SocketAddress::Tcp { local, remote } => Some(((local.0.to_canonical(), local.1), (remote.0.to_canonical(), remote.1))),
        SocketAddress::Unix { .. } => None,
    }
}

/// Addresses of the other sampled namespaces, without those that this one has too (127.0.0.1).
pub(super) fn away(ctx: &Context<'_>, id: NetnsId, sampled: &[NetnsId]) -> BTreeSet<IpAddr> {
    let of = |id: &NetnsId| {
        let addresses = ctx.obs.netns.get(id).and_then(|view| view.addresses.last());
        addresses.into_iter().flatten().map(|address| address.ip.to_canonical()).collect::<BTreeSet<IpAddr>>()
    };
    let others = sampled.iter().filter(|other| **other != id).flat_map(of).collect::<BTreeSet<IpAddr>>();
    others.difference(&of(&id)).copied().collect()
}

/// True if a request was received and an answer sent.
pub(super) fn has_answered(times: &RequestTimes) -> bool {
    !times.never_received() && !times.never_sent()
}

pub(super) fn at_least(times: BTreeMap<u64, u32>, least: u32) -> BTreeSet<u64> {
    times.into_iter().filter(|(_, times)| *times >= least).map(|(cookie, _)| cookie).collect()
}

/// True if a request was sent and the peer acknowledged nothing but the SYN.
pub(super) fn is_unacknowledged(socket: &RequestSocket) -> bool {
    let nothing = |times: &RequestTimes| {
        times.data_segs_in == Some(0)
            && times.data_segs_out.is_some_and(|segments| segments > 0)
            && times.bytes_acked.is_some_and(|bytes| bytes <= 1)
    };
    socket.state == TcpState::Established && socket.send_queue > 0 && socket.times.as_ref().is_some_and(nothing)
}
