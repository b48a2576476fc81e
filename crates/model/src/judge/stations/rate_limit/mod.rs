//! Station `rate-limit`: the requests per second, or connections, that the configuration itself allows for this request (nginx's limit_req and limit_conn).
//! Somebody set it on purpose; what it costs this traffic is reported all the same.

use crate::facts::Context;
use crate::facts::limit::{Limit, LimitEffect, narrowest, place, told};
use crate::facts::path::Tier;
use crate::facts::suffered::answers_with;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["ask-limit-owner"],
    ..StationDef::new(StationId("rate-limit"), StationKind::Rate, &[FindingId::LIMITED_BY_CONFIG], read, judge)
};

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let limits = ctx.path.tiers.iter().filter_map(|tier| Some((tier, narrowest(ctx, tier)?)));
    limits.map(|(tier, limit)| reading(ctx, tier, &limit)).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, limit: &Limit<'_>) -> StationReading {
    let at = Location::in_netns(tier.netns);
    let unit = if limit.config.rate_per_s.is_some() { "requests/s" } else { "connections" };
    let mut station = STATION.reading(tier, at, unit);
    station.limit = limit.config.rate_per_s.or(limit.config.connections.map(|count| count as f64));
    let load = ctx.obs.load.as_ref();
    if limit.effect.is_none() && load.is_some_and(|load| limit.is_exceeded(load)) {
        return station.in_state(StationState::Ok, told("state-rate-limit-exceeded", tier, limit.config));
    }
    if let (Some(load), Some(allowed)) = (load, load.and_then(|load| limit.allowed_rps(load))) {
        station.used = Some(load.goodput_rps());
        station.utilization = Some(load.goodput_rps() / allowed.value.max(f64::MIN_POSITIVE));
        // One load comes from one address, so it has one key.
        station.ceiling_rps = (limit.applies == Some(true)).then_some(allowed);
    }
    let answers = load.map(|load| answers_with(load, &[limit.config.status]));
    let refused = limit.refused.as_ref().map(|logged| logged.count).or(answers.filter(|_| limit.effect == Some(LimitEffect::Refused)));
    station.refused_per_s = refused.map(|count| count as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| told(id, tier, limit.config).with("count", refused.unwrap_or(0));
    let (state, why) = match limit.effect {
        Some(LimitEffect::Refused) => (StationState::Refusing, args("state-rate-limit-refusing")),
        Some(LimitEffect::Delayed) => (StationState::Saturated, args("state-rate-limit-delaying")),
        None if refused.is_some_and(|count| count > 0) => (StationState::Near, args("state-rate-limit-harmless")),
        None => (StationState::Ok, args("state-rate-limit-ok")),
    };
    station.in_state(state, why)
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    read.iter()
        .filter_map(|placed| {
            let tier = ctx.only_tier(&placed.owner)?;
            let limit = narrowest(ctx, tier)?;
            Some(finding(ctx, placed, tier, &limit, limit.effect?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &StationReading, tier: &Tier, limit: &Limit<'_>, effect: LimitEffect) -> Finding {
    let (title, explanation) = match (effect, limit.config.connections) {
        (LimitEffect::Refused, None) => ("finding-rate-limited-by-config-title", "finding-rate-limited-by-config-explanation"),
        (LimitEffect::Refused, Some(_)) => {
            ("finding-rate-limited-by-config-title-connections", "finding-rate-limited-by-config-explanation-connections")
        }
        (LimitEffect::Delayed, _) => ("finding-rate-limited-by-config-title-delay", "finding-rate-limited-by-config-explanation-delay"),
    };
    Finding {
        confidence: if limit.is_logged { Confidence::High } else { Confidence::Medium },
        title: told(title, tier, limit.config),
        evidence: proofs(ctx, tier, limit, effect),
        explanation: vec![told(explanation, tier, limit.config)],
        ..placed.finding(FindingId::LIMITED_BY_CONFIG)
    }
}

fn proofs(ctx: &Context<'_>, tier: &Tier, limit: &Limit<'_>, effect: LimitEffect) -> Vec<Evidence> {
    let mut proofs: Vec<Evidence> = limit.proofs().map(|logged| logged.proof()).collect();
    let id = if limit.config.connections.is_some() { "evidence-rate-limit-connections" } else { "evidence-rate-limit-rate" };
    proofs.push(Evidence::new(told(id, tier, limit.config), place(&limit.config.origin), limit.config.rate_per_s));
    if let Some(load) = &ctx.obs.load {
        let (id, count) = match effect {
            LimitEffect::Refused => ("evidence-rate-limit-answers", answers_with(load, &[limit.config.status]) as f64),
            LimitEffect::Delayed => ("evidence-rate-limit-waits", load.latency_us.p50 as f64 / 1e3),
        };
        let text = told(id, tier, limit.config).with("count", count).with("requests", load.requests).with("goodput", load.goodput_rps());
        proofs.push(Evidence::new(text, "load", Some(count)));
    }
    proofs
}
