//! Clients that wait in the accept queue while others are served again and again. Busy cores explain why all wait, not why some are never accepted.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::observation::load::INITIAL_RTO_US;
use crate::observation::{RequestSample, RequestSocket, TcpState};

/// Means over the window, for the first tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Starved {
    /// Connections with a request that were still not accepted a second later.
    pub(crate) waiting: f64,
    /// Connections with at least two answers within that second.
    pub(crate) served: f64,
}

impl Starved {
    /// True if clients would notice: those that wait are some, and a part of all that counts.
    pub(crate) fn hurts(&self) -> bool {
        self.waiting >= 1.0 && self.served >= 1.0 && Cost::of_time(self.waiting / (self.waiting + self.served)).hurts()
    }
}

/// `None` if no two complete samples are a second apart. TCP takes a second as a sign of loss (RFC 6298): whoever waits longer waits for more than a turn.
pub(crate) fn starved(ctx: &Context<'_>) -> Option<Starved> {
    let tier = ctx.path.tiers.first()?;
    let view = ctx.obs.netns.get(&tier.netns)?;
    let is_whole = |(_, sample): &&(u64, RequestSample)| sample.share >= 1.0;
    let samples: Vec<&(u64, RequestSample)> = ctx.in_window(&view.request_samples).filter(is_whole).collect();
    let is_own = |socket: &&RequestSocket| tier.accepts(&socket.address);
    let own = |sample| established(sample).filter(is_own).map(|socket| (socket.cookie, socket)).collect::<BTreeMap<u64, &RequestSocket>>();
    let (mut waiting, mut served, mut pairs) = (0_u32, 0_u32, 0_u32);
    for (place, (at_us, sample)) in samples.iter().enumerate() {
        let Some((_, later)) = samples[place..].iter().find(|(later_us, _)| *later_us >= at_us + INITIAL_RTO_US) else { break };
        let later = own(later);
        for (cookie, socket) in own(sample) {
            let Some(then) = later.get(&cookie) else { continue };
            waiting += u32::from(socket.inode == 0 && socket.receive_queue > 0 && then.inode == 0);
            served += u32::from(socket.inode != 0 && segments_sent(socket, then) >= 2);
        }
        pairs += 1;
    }
    (pairs > 0).then(|| Starved { waiting: f64::from(waiting) / f64::from(pairs), served: f64::from(served) / f64::from(pairs) })
}

fn established(sample: &RequestSample) -> impl Iterator<Item = &RequestSocket> {
    sample.sockets.iter().filter(|socket| socket.state == TcpState::Established && socket.cookie != 0)
}

/// Segments with data sent in between: at least as many as answers.
fn segments_sent(socket: &RequestSocket, then: &RequestSocket) -> u64 {
    let sent = |socket: &RequestSocket| socket.times.and_then(|times| times.data_segs_out).unwrap_or(0);
    let came = |socket: &RequestSocket| socket.times.and_then(|times| times.data_segs_in).unwrap_or(0);
    // A long answer has many segments, and each answer had a request.
    sent(then).saturating_sub(sent(socket)).min(came(then).saturating_sub(came(socket)))
}
