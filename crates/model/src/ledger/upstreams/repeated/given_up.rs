//! Calls whose caller closed the connection before the answer came, as samples of the sockets show them at either end.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::path::{Endpoint, Tier};
use crate::ledger::connections::{called, ends, tier_of};
use crate::observation::{NetnsView, RequestSocket, RequestTimes, TcpState};

/// How many calls of a tier to these servers were seen given up in the window: at least so many were. What was closed when the window began is left out.
pub(super) fn count(ctx: &Context<'_>, caller: &Tier, asked: &[&Tier]) -> u64 {
    let is_asked = |tier: Option<usize>| asked.iter().any(|asked| Some(asked.id.0) == tier);
    let at_caller = |socket: &RequestSocket| {
        let is_made = ends(socket).is_some_and(|(_, remote)| is_asked(called(ctx, caller.netns, remote)));
        is_made && tier_of(ctx, caller.netns, &socket.address).is_none()
    };
    let Some(view) = ctx.obs.netns.get(&caller.netns) else { return 0 };
    let calling = ended(ctx, view, &|socket| socket.inode == 0 && is_finishing(socket) && at_caller(socket), &at_caller, &Side::CALLER);
    // One that is still held has only said that it sends nothing more.
    let open: BTreeSet<(Endpoint, Endpoint)> = held(ctx, view);
    let mut accepted = 0;
    for id in asked.iter().map(|tier| tier.netns).collect::<BTreeSet<_>>() {
        let Some(view) = ctx.obs.netns.get(&id) else { continue };
        let is_own = |socket: &RequestSocket| is_asked(tier_of(ctx, id, &socket.address));
        let is_left = |socket: &RequestSocket| {
            let is_held = ends(socket).is_some_and(|(local, remote)| open.contains(&(remote, local)));
            socket.state == TcpState::CloseWait && is_own(socket) && !is_held
        };
        accepted += ended(ctx, view, &is_left, &is_own, &Side::SERVER);
    }
    calling.max(accepted)
}

/// Which end of a connection is looked at: data that this end awaits, and the data before it.
struct Side {
    /// Segments of answers that this end has seen.
    answers: fn(&RequestTimes) -> Option<u64>,
    /// True if a request was the last that went over the connection.
    is_asked_last: fn(&RequestTimes) -> bool,
}

impl Side {
    const CALLER: Self = Self {
        answers: |times| times.data_segs_in,
        is_asked_last: |times| !times.never_sent() && (times.never_received() || times.received_last() == Some(false)),
    };
    const SERVER: Self = Self {
        answers: |times| times.data_segs_out,
        is_asked_last: |times| !times.never_received() && (times.never_sent() || times.received_last() == Some(true)),
    };
}

/// The connections that were seen to be left with a request on them: no answer was ever seen there, or the same request was seen before without an answer. What is sent last on a connection over TLS
/// says that it ends, and is no request.
fn ended(
    ctx: &Context<'_>,
    view: &NetnsView,
    is_left: &dyn Fn(&RequestSocket) -> bool,
    is_own: &dyn Fn(&RequestSocket) -> bool,
    side: &Side,
) -> u64 {
    let mut waiting: BTreeMap<u64, u64> = BTreeMap::new();
    let mut left: BTreeSet<u64> = BTreeSet::new();
    let mut before: BTreeSet<u64> = BTreeSet::new();
    for (nth, (_, sample)) in ctx.in_window(&view.request_samples).enumerate() {
        for (socket, times) in sample.sockets.iter().filter_map(|socket| Some((socket, socket.times.as_ref()?))) {
            let Some(answers) = (side.answers)(times).filter(|_| (side.is_asked_last)(times)) else { continue };
            if socket.state == TcpState::Established {
                if is_own(socket) {
                    waiting.insert(socket.cookie, answers);
                }
            } else if is_left(socket) {
                if nth == 0 {
                    before.insert(socket.cookie);
                } else if answers == 0 || waiting.get(&socket.cookie) == Some(&answers) {
                    left.insert(socket.cookie);
                }
            }
        }
    }
    left.difference(&before).count() as u64
}

fn is_finishing(socket: &RequestSocket) -> bool {
    matches!(socket.state, TcpState::FinWait1 | TcpState::FinWait2)
}

/// The ends of connections whose side that was closed for sending is still held by a process.
fn held(ctx: &Context<'_>, view: &NetnsView) -> BTreeSet<(Endpoint, Endpoint)> {
    let samples = ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets);
    samples.filter(|socket| socket.inode != 0 && is_finishing(socket)).filter_map(ends).collect()
}
