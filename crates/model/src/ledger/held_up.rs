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
        let has_unread = |sample: &&&RequestSample| sample.sockets.iter().any(|socket| is_whole(socket) && accepted(tier, socket));
        let seen = samples.iter().filter(has_unread).count();
        Some(Self { samples: samples.len(), seen, busy: busy.min(1.0) })
    }

    /// Share of the time that requests surely stood unread although no thread of the tier ran or was about to, whichever of them served these.
    pub(crate) fn surely(&self) -> f64 {
        let seen = self.seen as f64 / self.samples.max(1) as f64;
        (wilson(seen, self.samples as u64).0 - self.busy).max(0.0)
    }
}

/// What a connection carried until it was seen.
#[derive(Clone, Copy)]
struct Carried {
    bytes_read: u64,
    segments_received: u64,
    segments_sent: u64,
}

impl Carried {
    fn by(socket: &RequestSocket) -> Option<Self> {
        let times = socket.times?;
        let bytes_read = times.bytes_received?.saturating_sub(u64::from(socket.receive_queue));
        Some(Self { bytes_read, segments_received: times.data_segs_in?, segments_sent: times.data_segs_out? })
    }
}

fn accepted(tier: &Tier, socket: &RequestSocket) -> bool {
    socket.inode != 0 && tier.accepts(&socket.address)
}

/// Mean length of a request on the connections that were seen more than once: each has at least a segment, and so has its answer. `None` if none was answered.
fn request_bytes(samples: &[&RequestSample], tier: &Tier) -> Option<f64> {
    // Each connection when first and when last seen.
    let mut ends: BTreeMap<u64, (Carried, Carried)> = BTreeMap::new();
    let own = samples.iter().flat_map(|sample| &sample.sockets).filter(|socket| socket.cookie != 0 && accepted(tier, socket));
    for socket in own {
        let Some(now) = Carried::by(socket) else { continue };
        ends.entry(socket.cookie).or_insert((now, now)).1 = now;
    }
    let (mut read, mut answers) = (0, 0);
    for (first, last) in ends.into_values() {
        let since = |of: fn(Carried) -> u64| of(last).saturating_sub(of(first));
        read += since(|carried| carried.bytes_read);
        answers += since(|carried| carried.segments_sent).min(since(|carried| carried.segments_received));
    }
    (answers > 0 && read > 0).then(|| read as f64 / answers as f64)
}
