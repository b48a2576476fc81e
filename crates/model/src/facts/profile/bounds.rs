//! The most that throughput could gain if something cost nothing (Amdahl 1967), of what limits.

use std::collections::BTreeSet;

use super::{Profiled, Share, is_of};
use crate::facts::Context;
use crate::facts::cores::{Limiting, limiting};
use crate::facts::path::Tier;
use crate::judge::harm::gain_of;
use crate::output::message::Message;
use crate::output::report::ProfileBound;

/// Share below which a bound is not told: at most 2 % to gain.
const SHARE_MIN: f64 = 0.02;
/// Bounds that are told at most.
const BOUNDS_MAX: usize = 20;
/// Layers without which there is nothing left to do, or of which nobody knows what they are.
const NO_BOUND: &[&str] = &["application", "interpreter", "kernel-other", "unknown"];
/// Gain from which it is told as a factor.
const FACTOR_MIN: f64 = 0.5;

/// All bounds, the most promising first; none where CPU time is not what limits.
pub(super) fn bounds(ctx: &Context<'_>, profiled: &Profiled<'_>) -> Vec<ProfileBound> {
    let mut all: Vec<ProfileBound> = Vec::new();
    for limiting in limiting(ctx) {
        for tier in &limiting.tiers {
            all.extend(of_tier(ctx, profiled, &limiting, tier));
        }
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all.truncate(BOUNDS_MAX);
    all
}

fn of_tier(ctx: &Context<'_>, profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, tier: &Tier) -> Vec<ProfileBound> {
    let own = || profiled.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid));
    let layers = own().map(|part| part.layer.as_str()).filter(|layer| !NO_BOUND.contains(layer));
    let names: BTreeSet<&str> = layers.chain(own().flat_map(|part| part.aspects.iter().map(String::as_str))).collect();
    let bound = |what: &&str| {
        let share = profiled.share(limiting, |part| tier.pids.contains(&part.pid) && is_of(part, what))?;
        (share.value >= SHARE_MIN).then(|| told(ctx, limiting, tier, what, share))
    };
    names.iter().filter_map(bound).collect()
}

fn told(ctx: &Context<'_>, limiting: &Limiting<'_, '_>, tier: &Tier, what: &str, share: Share) -> ProfileBound {
    let title = super::told::title(ctx, what);
    let gain = gain_of(share.value);
    let gained = match gain < FACTOR_MIN {
        true => Message::new("profile-gain-percent").with("gain", gain * 100.0),
        false => Message::new("profile-gain-factor").with("factor", 1.0 + gain),
    };
    let text = Message::new("profile-bound").with("what", title.as_str()).with("tier", tier.name.as_str());
    let text = text.with("share", share.value * 100.0).with("of", limit_name(ctx, limiting)).with("gain", ctx.text(gained));
    // By what it could go, where that has a name.
    let how = ctx.words.plain(&format!("profile-bound-by-{what}")).unwrap_or_else(|| ctx.text(Message::new("profile-bound-by-none")));
    let text = text.with("how", how);
    ProfileBound {
        tier: tier.name.clone(),
        what: what.to_owned(),
        title,
        share: share.value,
        low: share.low,
        high: share.high,
        factor: 1.0 + gain,
        text: ctx.text(text),
    }
}

/// "core 1", "the one thread of node": what a share is a share of.
pub(crate) fn limit_name(ctx: &Context<'_>, limiting: &Limiting<'_, '_>) -> String {
    ctx.text(match limiting.threads {
        Some(threads) => {
            let tier = limiting.tiers.first().map_or("", |tier| tier.name.as_str());
            Message::new("profile-of-threads").with("threads", threads as f64).with("tier", tier)
        }
        None => Message::new("profile-of-cores").with("count", limiting.group.cores.len() as f64).with("cores", limiting.group.list()),
    })
}
