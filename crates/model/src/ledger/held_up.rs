//! Requests that stand unread while no thread of their server runs: an event loop is held up by a call which neither computes nor returns. It tells by itself, without a
//! load: whoever comes back to his sockets reads all that has come, so what stands there unread waits for the thread and not for a time of its own.

use std::collections::BTreeMap;

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{RequestSample, RequestSocket};

use super::thread_split::ThreadShares;

/// Most bytes of a request that is read in one piece: those of a packet (RFC 9293, section 3.7.1, on Ethernet). The body of a longer one a server reads when it wants to, perhaps after it
/// waited for something else.
const WHOLE_BYTES_MAX: f64 = 1_460.0;
/// How far the bytes that stand unread may be from those of a request, to be one: what is left of a long body among short ones has another length.
const LIKE_A_REQUEST: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Samples of requests at a tier, and those with whole requests unread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldUp {
    pub(crate) samples: usize,
    pub(crate) seen: usize,
    /// Share of the time that the tier's threads ran, were ready, or were stopped by a quota: all of them one after the other, at most 1.
    pub(crate) busy: f64,
}

impl HeldUp {
    /// `None` if nothing was read of its threads.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let threads = ThreadShares::of(ctx, tier);
        if threads.shares.is_empty() {
            return None;
        }
        let busy = threads.shares.iter().map(|(run, delay)| run + delay).sum::<f64>() + threads.stopped;
        let view = ctx.obs.netns.get(&tier.netns)?;
        let samples: Vec<&RequestSample> = ctx.in_window(&view.request_samples).map(|(_, sample)| sample).collect();
        let typical = request_bytes(&samples, tier).filter(|bytes| *bytes <= WHOLE_BYTES_MAX);
        let is_whole = |socket: &RequestSocket| {
            let (queue, all) = (f64::from(socket.receive_queue), socket.times.and_then(|times| times.bytes_received));
            queue > 0.0
                && (all == Some(u64::from(socket.receive_queue))
                    || typical.is_some_and(|typical| LIKE_A_REQUEST.contains(&(queue / typical))))
        };
        let has_unread = |sample: &&&RequestSample| sample.sockets.iter().any(|socket| is_whole(socket) && is_accepted(tier, socket));
        let seen = samples.iter().filter(has_unread).count();
        Some(Self { samples: samples.len(), seen, busy: busy.min(1.0) })
    }

    /// Share of the time that requests surely stood unread although no thread of the tier ran or was about to, whichever of them served these.
    pub(crate) fn surely(&self) -> f64 {
        let seen = self.seen as f64 / self.samples.max(1) as f64;
        (wilson(seen, self.samples as u64).0 - self.busy).max(0.0)
    }
}

/// What connections carried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carried {
    bytes_read: u64,
    segments_received: u64,
    segments_sent: u64,
}

impl Carried {
    /// Until the connection was seen.
    fn by(socket: &RequestSocket) -> Option<Self> {
        let times = socket.times?;
        let bytes_read = times.bytes_received?.saturating_sub(u64::from(socket.receive_queue));
        Some(Self { bytes_read, segments_received: times.data_segs_in?, segments_sent: times.data_segs_out? })
    }

    fn since(self, first: Self) -> Self {
        Self {
            bytes_read: self.bytes_read.saturating_sub(first.bytes_read),
            segments_received: self.segments_received.saturating_sub(first.segments_received),
            segments_sent: self.segments_sent.saturating_sub(first.segments_sent),
        }
    }

    /// Requests that were surely answered: each has at least a segment, and so has its answer.
    fn answers(self) -> u64 {
        self.segments_sent.min(self.segments_received)
    }

    /// Between the first and the last time that each of these connections was seen: what was read, and the answers.
    pub(super) fn read_and_answers<'a>(sockets: impl Iterator<Item = &'a RequestSocket>) -> (u64, u64) {
        let mut ends: BTreeMap<u64, (Self, Self)> = BTreeMap::new();
        for socket in sockets.filter(|socket| socket.cookie != 0) {
            let Some(now) = Self::by(socket) else { continue };
            ends.entry(socket.cookie).or_insert((now, now)).1 = now;
        }
        let carried = ends.into_values().map(|(first, last)| last.since(first));
        carried.fold((0, 0), |(read, answers), each| (read + each.bytes_read, answers + each.answers()))
    }
}

/// True for the server's end of a connection that this tier accepted.
pub(super) fn is_accepted(tier: &Tier, socket: &RequestSocket) -> bool {
    socket.inode != 0 && tier.accepts(&socket.address)
}

/// Mean length of a request on the connections that were seen more than once. `None` if none was answered.
fn request_bytes(samples: &[&RequestSample], tier: &Tier) -> Option<f64> {
    let own = samples.iter().flat_map(|sample| &sample.sockets).filter(|socket| is_accepted(tier, socket));
    let (read, answers) = Carried::read_and_answers(own);
    (answers > 0 && read > 0).then(|| read as f64 / answers as f64)
}
