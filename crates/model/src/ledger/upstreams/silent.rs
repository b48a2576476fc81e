//! Servers that take requests and were not seen to answer any.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::SAMPLES_MIN;
use crate::facts::traffic::on_wire::Answered;
use crate::observation::{RequestSample, RequestSocket, TcpState};
use crate::output::report::LedgerPlaceKind as Place;

use super::{co_called, siblings, unanswered};
use crate::ledger::connections::tier_of;

/// Chance that a connection was there and no later sample has it, below which it has ended.
const MISSED_MAX: f64 = 0.05;

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
    /// Requests that failed because nobody answered in time, and all that ended; `None` if too few failed to do harm, or it is not known.
    pub(crate) failed: Option<(u64, u64)>,
}

/// What the samples show of a tier's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// At least one was seen.
    Some,
    /// None.
    None(Asked),
    /// It cannot be told.
    Unknown,
}

/// Connections on which a request was seen and no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    connections: usize,
    /// Those of them that ended so, or were left by the caller.
    ended: usize,
    /// How long the oldest of them had waited when it was last seen, milliseconds.
    oldest_ms: u64,
}

/// The tier that most requests wait for, if it was not seen to answer any, and that is its own fault: requests fail for want of an answer, or a server that is asked for the same answers.
/// What is answered at all was answered by another tier that has the same caller: connections that end with their answer show it too seldom. `None` if full cores may be the reason.
pub(crate) fn silent(ctx: &Context<'_>) -> Option<Silent> {
    let account = ctx.account()?;
    let waits_for = |place: Place| matches!(place, Place::Unread | Place::Receiving | Place::Ready | Place::Waiting);
    let at = |tier: &Tier| account.at_places(tier.id.0, waits_for);
    let tier = ctx.path.tiers.iter().max_by(|a, b| at(a).total_cmp(&at(b)))?;
    let waiting = at(tier);
    if !tier.is_known() || 2.0 * waiting <= account.under_way() {
        return None;
    }
    let Answers::None(Asked { connections, ended, oldest_ms }) = answers(ctx, tier) else { return None };
    let failed = unanswered(ctx).filter(|(failed, of)| Cost::of_requests(*failed, *of).hurts());
    // Packets tell as well that none of those that ended had an answer: those of a server that does the same work are seen there.
    let is_read = |other: &&Tier| other.netns == tier.netns && Answered::of(ctx, other).is_some();
    let sibling = siblings(ctx, tier).into_iter().find(is_read).filter(|_| ended >= SAMPLES_MIN && Answered::of(ctx, tier).is_none());
    let other = sibling.or_else(|| co_called(ctx, tier).find(|other| answers(ctx, other) == Answers::Some));
    let is_told = match (failed, sibling) {
        // Whoever does the same work on the same host has the cores that it needs.
        (_, Some(_)) => true,
        (Some((failed, of)), None) => cores_are_spare(ctx) && (failed >= of || other.is_some()),
        (None, None) => false,
    };
    let told = Silent { tier: tier.id.0, other: other.map(|other| other.id.0), connections, oldest_ms, waiting, failed };
    (connections >= SAMPLES_MIN && is_told).then_some(told)
}

/// Whether a tier answered in the window, by what its end of each connection sent. What it sent before the first sample belongs to earlier requests.
fn answers(ctx: &Context<'_>, tier: &Tier) -> Answers {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Answers::Unknown };
    let samples: Vec<&RequestSample> = ctx.in_window(&view.request_samples).map(|(_, sample)| sample).collect();
    let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
    let mut asked: BTreeMap<u64, LastLook> = BTreeMap::new();
    for (nth, sample) in samples.iter().enumerate() {
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
                asked.insert(socket.cookie, LastLook { nth, waited_ms: times.last_data_recv_ms, is_left: false });
            } else if let Some(known) = asked.get_mut(&socket.cookie) {
                *known = LastLook { nth, is_left: socket.state != TcpState::Established, ..*known };
            }
        }
    }
    // Where only a part of all sockets is read, one that is there may be missed by chance.
    let is_gone = |nth: usize| samples[nth + 1..].iter().map(|sample| 1.0 - sample.share).product::<f64>() < MISSED_MAX;
    let has_ended = |look: &&LastLook| look.is_left || (look.nth + 1 < samples.len() && is_gone(look.nth));
    Answers::None(Asked {
        connections: asked.len(),
        ended: asked.values().filter(has_ended).count(),
        oldest_ms: asked.values().map(|look| look.waited_ms).max().unwrap_or(0),
    })
}

/// When a connection with a request was last seen.
#[derive(Debug, Clone, Copy)]
struct LastLook {
    /// Number of the sample.
    nth: usize,
    /// How long the request had waited, milliseconds.
    waited_ms: u64,
    /// True if its caller had closed it.
    is_left: bool,
}
