//! The verdict on a server that nothing but its cores or a link limits, and what to know about these.

use crate::facts::Context;
use crate::facts::cores::{idle_beside, own_cores};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::judge::improvements::IDLE_MIN;
use crate::judge::station::StationReading;
use crate::judge::verdict::Judgement;
use crate::ledger::hundredths;
use crate::output::message::Message;
use crate::output::report::LimitedBy;

/// Nothing but cores or a link limits the server. With a load of which a part fails for that reason, the sentence is another one than where all of it is answered.
pub(super) fn at_limit(ctx: &Context<'_>, by: LimitedBy, (all, part): (&'static str, &'static str), full: &StationReading) -> Judgement {
    let failed = ctx.failed_share().filter(|share| Cost::share_of_requests(*share).hurts());
    let told = failed.map_or_else(|| Message::new(all), |share| Message::new(part).with("failed", share * 100.0));
    let of_cores = || kept_on(ctx, full, most_used_by(ctx, full).unwrap_or_else(|| full.why.clone()));
    Judgement::healthy(by, told.with("why", if by == LimitedBy::Cpu { of_cores() } else { full.why.clone() }))
}

/// Why cores are full, with the server that used twice as much as all others of the path together, and how much for each answer.
fn most_used_by(ctx: &Context<'_>, full: &StationReading) -> Option<Message> {
    let tiers: Vec<&Tier> = full.owner.tiers().iter().filter_map(|tier| ctx.path.tiers.get(tier.0)).collect();
    let used: Vec<(f64, &Tier)> = tiers.into_iter().filter_map(|tier| Some((own_cores(ctx, &tier.pids)?, tier))).collect();
    let all: f64 = used.iter().map(|(cores, _)| cores).sum();
    let (cores, tier) =
        used.iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(cores, _)| used.len() > 1 && *cores > 2.0 * (all - cores))?;
    let told =
        Message::new("state-cpu-most").with("why", full.why.clone()).with("tier", tier.name.as_str()).with("share", 100.0 * cores / all);
    let ms = ctx.answers_rps().filter(|rate| *rate > 0.0).map(|rate| 1e3 * cores / rate);
    Some(told.with("ms", ms.unwrap_or(0.0)).with("kind", if ms.is_some() { "each" } else { "share" }))
}

/// The same for servers that may use some of the host's cores only, while others are idle.
fn kept_on(ctx: &Context<'_>, full: &StationReading, why: Message) -> Message {
    let group = ctx.core_groups().iter().find(|group| full.owner.tiers().iter().any(|tier| group.tiers.iter().any(|own| own.id == *tier)));
    let beside = group.and_then(|group| idle_beside(ctx, group)).filter(|idle| *idle >= IDLE_MIN);
    let Some(idle) = beside else { return why };
    Message::new("state-cpu-kept-on").with("why", why).with("idle", hundredths(idle))
}
