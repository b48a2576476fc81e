//! Servers that take requests and were not seen to answer any.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::SAMPLES_MIN;
use crate::facts::traffic;
use crate::observation::{RequestSocket, TcpState};
use crate::output::report::LedgerPlaceKind as Place;

use super::connections::tier_of;

/// The status of a gateway that gave up waiting for a server (RFC 9110, 15.6.5).
const GATEWAY_TIMEOUT: &str = "504";

/// A tier whose connections carried requests, and no answer in any sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Silent {
    /// Index of the tier.
    pub(crate) tier: usize,
    /// Index of a tier with the same caller that answered.
    pub(crate) other: Option<usize>,
    /// Connections on which a request was seen.
    pub(crate) connections: usize,
    /// How long the oldest of them had waited when it was last seen, milliseconds.
    pub(crate) oldest_ms: u64,
    /// Mean number of requests that wait for it.
    pub(crate) waiting: f64,
    /// Requests that failed because nobody answered in time, and all that ended.
    pub(crate) failed: (u64, u64),
}

/// What the samples show of a tier's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// At least one was seen.
    Some,
    /// None on so many connections with a request, of which the oldest had waited for so many milliseconds.
    None(usize, u64),
    /// It cannot be told.
    Unknown,
}

/// The tier that most requests wait for, if it was not seen to answer any while requests fail for want of an answer. What is answered at all was answered by another tier
/// that has the same caller: connections that end with their answer show it too seldom. `None` if full cores may be the reason.
pub(crate) fn silent(ctx: &Context<'_>) -> Option<Silent> {
    let failed = unanswered(ctx).filter(|(failed, of)| Cost::of_requests(*failed, *of).hurts())?;
    let account = ctx.account()?;
    let waits_for = |place: Place| matches!(place, Place::Unread | Place::Receiving | Place::Ready | Place::Waiting);
    let at = |tier: &Tier| account.at_places(tier.id.0, waits_for);
    let tier = ctx.path.tiers.iter().max_by(|a, b| at(a).total_cmp(&at(b)))?;
    let waiting = at(tier);
    if !tier.is_known() || 2.0 * waiting <= account.under_way() || !cores_are_spare(ctx) {
        return None;
    }
    let Answers::None(connections, oldest_ms) = answers(ctx, tier) else { return None };
    let calls_both = |other: &&Tier| {
        let both = [tier.id.0, other.id.0];
        other.id != tier.id && ctx.path.tiers.iter().any(|caller| both.iter().all(|index| caller.upstreams.contains(index)))
    };
    let other = ctx.path.tiers.iter().filter(calls_both).find(|other| answers(ctx, other) == Answers::Some);
    let is_whole = failed.0 >= failed.1;
    let told = Silent { tier: tier.id.0, other: other.map(|other| other.id.0), connections, oldest_ms, waiting, failed };
    (connections >= SAMPLES_MIN && (is_whole || told.other.is_some())).then_some(told)
}

/// Requests that failed because a server did not answer in time, and all that ended. `None` if it is not known how requests ended.
fn unanswered(ctx: &Context<'_>) -> Option<(u64, u64)> {
    let traffic = traffic::of(ctx)?;
    let given_up = traffic.status.get(GATEWAY_TIMEOUT).copied().unwrap_or(0);
    Some((given_up + traffic.errors.response_timeout, traffic.requests))
}

/// Whether a tier answered in the window, by what its end of each connection sent. What it sent before the first sample belongs to earlier requests.
fn answers(ctx: &Context<'_>, tier: &Tier) -> Answers {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Answers::Unknown };
    let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    for (nth, (_, sample)) in ctx.in_window(&view.request_samples).enumerate() {
        let is_own = |socket: &&RequestSocket| socket.inode != 0 && tier_of(ctx, tier.netns, &socket.address) == Some(tier.id.0);
        for socket in sample.sockets.iter().filter(is_own) {
            let Some((times, now)) = socket.times.and_then(|times| Some((times, times.data_segs_out.or(times.bytes_sent)?))) else {
                return Answers::Unknown;
            };
            let before = sent.insert(socket.cookie, now);
            if before.map_or(nth > 0 && now > 0, |before| now > before) {
                return Answers::Some;
            }
            let waits = !times.never_received() && times.received_last() == Some(true);
            if waits && socket.state == TcpState::Established {
                asked.insert(socket.cookie, times.last_data_recv_ms);
            }
        }
    }
    Answers::None(asked.len(), asked.values().copied().max().unwrap_or(0))
}
