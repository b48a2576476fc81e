//! The most that throughput could gain if a layer cost nothing (Amdahl 1967), relative to what limits.

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::facts::cores::{Limiting, MainWork, is_main_work_known, limiting};
use crate::facts::harm::gain_of;
use crate::facts::path::Tier;
use crate::facts::profile::{ProfileShare, Profiled, is_of};
use crate::ledger::hundredths;
use crate::output::message::Message;
use crate::output::report::ProfileBound;

/// Smallest share of a reported bound: at most 2 % to gain.
const SHARE_MIN: f64 = 0.02;
/// Most bounds reported.
const BOUNDS_MAX: usize = 20;
/// Layers that must remain, or whose work is unknown.
const NO_BOUND: &[&str] = &["application", "interpreter", "kernel-other", "unknown"];
/// Smallest gain that is written as a factor.
const FACTOR_MIN: f64 = 0.5;

/// All bounds, the most promising first; empty if CPU time is not the limit.
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

fn told(ctx: &Context<'_>, limiting: &Limiting<'_, '_>, tier: &Tier, what: &str, share: ProfileShare) -> ProfileBound {
    let title = title(ctx, what);
    let gain = gain_of(share.value);
    let gained = match gain < FACTOR_MIN {
        true => Message::new("profile-gain-percent").with("gain", gain * 100.0),
        false => Message::new("profile-gain-factor").with("factor", 1.0 + gain),
    };
    let text = Message::new("profile-bound").with("what", title.as_str()).with("tier", tier.name.as_str());
    let text = text.with("share", share.value * 100.0).with("of", limit_name(limiting)).with("gain", ctx.text(gained));
    // The change that could remove it, if it has a name.
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

/// What there is to say of the CPU time that limits where no part of it can be told apart that could go away. `None` if CPU time is not the limit.
pub(super) fn of_own_work(ctx: &Context<'_>) -> Option<Message> {
    let all = limiting(ctx);
    let works = all.iter().flat_map(|limiting| &limiting.tiers).filter_map(|tier| Some((*tier, MainWork::of(ctx, tier)?)));
    let most = works.max_by(|a, b| a.1.share.value.total_cmp(&b.1.share.value));
    let is_known = all.iter().flat_map(|limiting| &limiting.tiers).all(|tier| is_main_work_known(ctx, tier));
    match most {
        Some((tier, work)) => Some(own_work(ctx, tier, &work, "profile-own-work")),
        None if all.is_empty() => None,
        None if is_known => Some(Message::new("profile-no-bound-small")),
        None => Some(Message::new("profile-few-limiting")),
    }
}

/// What most of a tier's CPU time goes into, by a sentence of this id.
pub(crate) fn own_work(ctx: &Context<'_>, tier: &Tier, work: &MainWork, id: &'static str) -> Message {
    let cost = if work.cpu_s.is_some() { "known" } else { "unknown" };
    let text = Message::new(id).with("tier", tier.name.as_str()).with("layer", title(ctx, &work.layer)).with("cost", cost);
    let text = text.with("share", 100.0 * work.share.value).with("ms", 1e3 * work.cpu_s.unwrap_or(0.0));
    text.with("times", hundredths(work.times)).with("threads", if work.is_one_thread { "one" } else { "several" })
}

/// The whole that a share refers to: "core 1", "the one thread of node".
pub(crate) fn limit_name(limiting: &Limiting<'_, '_>) -> Message {
    match limiting.threads {
        Some(threads) => {
            let tier = limiting.tiers.first().map_or("", |tier| tier.name.as_str());
            Message::new("profile-of-threads").with("threads", threads as f64).with("tier", tier)
        }
        None if limiting.own_part.is_some() => {
            Message::new("profile-of-own").with("count", limiting.group.cores.len() as f64).with("cores", limiting.group.list())
        }
        None => Message::new("profile-of-cores").with("count", limiting.group.cores.len() as f64).with("cores", limiting.group.list()),
    }
}

/// The title of a layer or aspect. Its id if the catalogue has no title, as for an id from a newer recording.
pub(super) fn title(ctx: &Context<'_>, id: &str) -> String {
    ctx.words.plain(&format!("layer-{id}")).unwrap_or_else(|| id.to_owned())
}
