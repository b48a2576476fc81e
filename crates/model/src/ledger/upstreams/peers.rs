//! One of several equal servers that takes longer for each request than the others: what requests wait for there is its own, and no lock that they share.

use crate::facts::Context;
use crate::facts::suffered::WAKES_US;
use crate::facts::traffic::on_wire::Answered;

use super::{caller_of, siblings};
use crate::ledger::Account;

/// Fewest responses of each server for its rate.
const ANSWERS_MIN: u64 = 30;
/// How many times as long as at the slowest of the others a request must take, so that the grain of the samples and of the kernel's clock does not explain it. It is also how many times as often as
/// one of the others a server may be asked: whoever gets more requests may be slower for that.
const TIMES: f64 = 2.0;

/// A server beside others that do the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowerThanPeers {
    /// Index of the tier that passes requests to all of them.
    pub(crate) caller: usize,
    /// Mean time of a request there, milliseconds (Little's law: number over rate).
    pub(crate) own_ms: f64,
    /// The longest mean time of the others, milliseconds.
    pub(crate) others_ms: f64,
    /// Number of the others.
    pub(crate) others: usize,
}

impl Account {
    /// Evidence that one server is slower than its siblings, which are asked by the same server, and as often as it or more. `None` if the times of one of them are not
    /// known.
    pub(in crate::ledger) fn slower_than_peers(&self, ctx: &Context<'_>, tier: usize) -> Option<SlowerThanPeers> {
        let own = ctx.path.tiers.get(tier)?;
        let caller = caller_of(ctx, own)?;
        let peers = siblings(ctx, own);
        let (own_rps, own_ms) = self.pace(ctx, tier, false)?;
        let mut others_ms: f64 = 0.0;
        for peer in &peers {
            let (rps, ms) = self.pace(ctx, peer.id.0, true)?;
            if own_rps > TIMES * rps {
                return None;
            }
            others_ms = others_ms.max(ms);
        }
        let is_slower = own_ms > TIMES * others_ms && own_ms > others_ms + WAKES_US / 1e3;
        (!peers.is_empty() && is_slower).then_some(SlowerThanPeers { caller: caller.id.0, own_ms, others_ms, others: peers.len() })
    }

    /// Responses a second of a tier and the mean time of its requests in milliseconds; `undecided`: at most.
    fn pace(&self, ctx: &Context<'_>, tier: usize, undecided: bool) -> Option<(f64, f64)> {
        let answered = Answered::of(ctx, ctx.path.tiers.get(tier)?).filter(|answered| answered.all() >= ANSWERS_MIN)?;
        let rps = answered.all() as f64 / answered.seconds;
        Some((rps, 1e3 * self.at_tier(tier, undecided) / rps))
    }
}
