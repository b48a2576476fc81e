//! What most of a tier's CPU time goes into, and what an answer costs of it: whoever has the other cores, half of that work is as good as more of them.

use std::collections::BTreeMap;

use super::{Threads, group_of, own_cores};
use crate::facts::Context;
use crate::facts::harm::{NOISE_SHARE, gain_of};
use crate::facts::path::Tier;
use crate::facts::profile::{NO_STACK, ProfileShare, Profiled};

/// How much less of it is taken as an example. A program that does its main work in half of the time is no rare find, and whoever reads this can tell other factors from it.
const HALF: f64 = 0.5;

/// The kind of work that takes most of a tier's CPU time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MainWork {
    /// The layer's id.
    pub(crate) layer: String,
    /// Its share of the tier's CPU time.
    pub(crate) share: ProfileShare,
    /// CPU time of the tier for each answer, seconds. `None` if it is not known how many there were.
    pub(crate) cpu_s: Option<f64>,
    /// How many times as much the tier could answer with half of it, on the cores that it gets.
    pub(crate) times: f64,
    /// True if one thread does all of it and was always running or ready.
    pub(crate) is_one_thread: bool,
}

impl MainWork {
    /// `None` without a profile, with too few samples, or if half of it would change nothing beyond noise.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let (layer, share) = largest(ctx, tier)?;
        let rate_rps = ctx.account().and_then(|account| account.rate_rps()).filter(|rate_rps| *rate_rps > 0.0);
        let cpu_s = own_cores(ctx, &tier.pids).zip(rate_rps).map(|(cores, rate_rps)| cores / rate_rps);
        let cores = group_of(ctx, tier).map_or(1, |group| group.cores.len());
        let is_one_thread = Threads::exhausted(ctx, tier, cores.max(2)).is_some_and(|threads| threads.serving == 1);
        let work = Self { layer: layer.to_owned(), share, cpu_s, times: 1.0 + gain_of(HALF * share.value), is_one_thread };
        (gain_of(HALF * share.low) >= NOISE_SHARE).then_some(work)
    }
}

/// True if there are enough samples of a tier for the share of its largest layer.
pub(crate) fn is_main_work_known(ctx: &Context<'_>, tier: &Tier) -> bool {
    largest(ctx, tier).is_some()
}

/// The layer that takes most of a tier's CPU time, and its share.
fn largest<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<(&'a str, ProfileShare)> {
    let profiled = Profiled::of(ctx)?;
    let mut layers: BTreeMap<&'a str, u64> = BTreeMap::new();
    for part in profiled.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid) && part.layer != NO_STACK) {
        *layers.entry(part.layer.as_str()).or_default() += part.weight;
    }
    let (layer, _) = layers.into_iter().max_by_key(|(_, weight)| *weight)?;
    Some((layer, profiled.share_within(tier, layer)?))
}
