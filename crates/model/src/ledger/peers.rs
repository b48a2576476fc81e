//! One of several equal servers that takes longer for each request than the others: what requests wait for there is its own, and no lock that they share.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::suffered::WAKES_US;
use crate::facts::traffic::on_wire::Answered;

use super::Account;

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
    /// Evidence that one server is slower than its equals: the same program with the same words, asked by the same server, as often as the others or less. `None` if the times of one of them are not
    /// known.
    pub(super) fn slower_than_peers(&self, ctx: &Context<'_>, tier: usize) -> Option<SlowerThanPeers> {
        let own = ctx.path.tiers.get(tier)?;
        let caller = ctx.path.tiers.iter().find(|caller| caller.id != own.id && caller.upstreams.contains(&tier))?;
        let others: Vec<usize> = caller.upstreams.iter().copied().filter(|other| *other != tier).collect();
        let peers: Vec<usize> = others.into_iter().filter(|other| are_equal(ctx, own, &ctx.path.tiers[*other])).collect();
        let (own_rps, own_ms) = self.pace(ctx, tier, false)?;
        let mut others_ms: f64 = 0.0;
        for peer in &peers {
            let (rps, ms) = self.pace(ctx, *peer, true)?;
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

/// True if both run the same program, started with the same words but for numbers: ports, names with a number.
fn are_equal(ctx: &Context<'_>, one: &Tier, other: &Tier) -> bool {
    let words = |tier: &Tier| {
        let identity = tier.pids.first().and_then(|pid| ctx.obs.processes.get(pid))?.identity.last()?;
        let plain: String = identity.cmdline.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        Some((identity.exe.clone().unwrap_or_else(|| identity.comm.clone()), plain))
    };
    words(one).is_some_and(|words_of_one| Some(words_of_one) == words(other))
}
