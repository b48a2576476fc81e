//! "connect() ... failed (99: Cannot assign requested address)": the ports that were taken towards one address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Belief;
use super::looks::{longest_gap_s, opened};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::port_range::{self, KEY_RANGE};
use crate::observation::{Socket, SocketAddress};
use crate::output::message::Message;

/// Share of the ports that counts as all of them: sockets are read about once a second and change in between.
const FULL_SHARE: f64 = 0.9;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier) -> Belief {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Belief::Alone };
    let usable = f64::from(port_range::usable(view, port_range::of(view)));
    let live = view.sockets.values().map(|sockets| most_towards_one(sockets)).max();
    let waits = view.time_waits.values().map(|waits| waits.dialled.iter().map(|wait| wait.count).max().unwrap_or(0)).max();
    let peak = live.unwrap_or(0) + waits.unwrap_or(0);
    if peak as f64 >= FULL_SHARE * usable {
        return Belief::Shown;
    }
    // Whether they were read, and read whole.
    let is_whole =
        live.is_some() && waits.is_some() && view.sockets_left_out.values().all(BTreeMap::is_empty) && view.sysctl(KEY_RANGE).is_some();
    let gap = |times: Vec<u64>| longest_gap_s(ctx, times.into_iter());
    let gaps = gap(view.sockets.points().iter().map(|(at, _)| *at).collect())
        .zip(gap(view.time_waits.points().iter().map(|(at, _)| *at).collect()))
        .filter(|_| is_whole);
    let more = gaps.and_then(|(live_s, waits_s)| opened(ctx, tier.netns, &["Tcp.ActiveOpens"], live_s.max(waits_s)));
    match more {
        Some(more) if peak as f64 + more < usable => {
            Belief::Against(Message::new("log-but-ports").with("peak", peak).with("limit", usable).with("more", more.ceil()))
        }
        _ => Belief::Alone,
    }
}

/// The most connections from one local address to one remote address and port.
fn most_towards_one(sockets: &[Socket]) -> u64 {
    let mut towards: BTreeMap<(IpAddr, (IpAddr, u16)), u64> = BTreeMap::new();
    for socket in sockets {
        if let SocketAddress::Tcp { local, remote } = &socket.address {
            *towards.entry((local.0, *remote)).or_default() += 1;
        }
    }
    towards.into_values().max().unwrap_or(0)
}
