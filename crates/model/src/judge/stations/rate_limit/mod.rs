//! Station `rate-limit`: the requests per second, or connections, that the configuration itself allows for this request (nginx's limit_req and limit_conn).
//! Somebody set it on purpose; what it costs this traffic is reported all the same. Of a server whose limits are not known the status 429 tells it, and a rule that answers so.

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::limit::{Limit, LimitEffect, Pace, narrowest, refusing, told};
use crate::facts::path::Tier;
use crate::facts::suffered::answers_with;
use crate::facts::traffic::{Statuses, TOO_MANY};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::StatedRefusal;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["ask-limit-owner"],
    ..StationDef::new(StationId("rate-limit"), StationKind::Rate, &[FindingId::LIMITED_BY_CONFIG], read, judge)
};

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let limits = ctx.path.tiers.iter().filter_map(|tier| Some((tier, narrowest(ctx, tier)?)));
    let configured: Vec<StationReading> = limits.map(|(tier, limit)| reading(ctx, tier, &limit)).collect();
    match TooMany::of(ctx) {
        Some((tier, refused)) if configured.is_empty() => vec![refused.reading(tier)],
        _ => configured,
    }
}

/// Requests that were answered "429 Too Many Requests" (RFC 6585, section 4): whoever answers so counts its clients' requests and refuses those above a number that somebody
/// chose.
struct TooMany<'a> {
    /// The rule of this server's configuration that answers so.
    rule: Option<&'a StatedRefusal>,
    refused: u64,
    requests: u64,
    /// Time in which they were counted.
    seconds: f64,
    source: &'static str,
}

impl<'a> TooMany<'a> {
    /// At the first tier, which gives all answers, if they do harm; at the one behind it if the configuration of the first is known and has no such limit.
    fn of(ctx: &Context<'a>) -> Option<(&'a Tier, Self)> {
        let first = ctx.path.tiers.first()?;
        let tier = match (ctx.nginx_of(first), &first.upstreams[..]) {
            (None, _) => first,
            (Some(_), [only]) => ctx.path.tiers.get(*only)?,
            (Some(_), _) => return None,
        };
        let answers = Statuses::of(ctx)?;
        let refused = answers.by_status.get(&TOO_MANY).copied()?;
        let is_harm = Cost::of_requests(refused, answers.requests).hurts();
        let stated = ctx.path.tiers.iter().find_map(|its| Some((its, Some(refusing(ctx, its)?))));
        let (tier, rule) = stated.unwrap_or((tier, None));
        let (requests, seconds, source) = (answers.requests, answers.seconds, answers.source);
        is_harm.then_some((tier, Self { rule, refused, requests, seconds, source }))
    }

    fn told(&self, tier: &Tier, id: &'static str) -> Message {
        let told = Message::new(id).with("tier", tier.name.as_str()).with("count", self.refused).with("requests", self.requests);
        let told = told.with("behind", if tier.upstreams.is_empty() { "no" } else { "yes" });
        let rule = |of: fn(&StatedRefusal) -> String| self.rule.map_or_else(String::new, of);
        told.with("has_rule", if self.rule.is_some() { "yes" } else { "no" })
            .with("rule", rule(|rule| rule.rule.clone()))
            .with("place", rule(|rule| rule.origin.to_string()))
    }

    fn reading(&self, tier: &Tier) -> StationReading {
        let mut station = STATION.reading(tier, Location::in_netns(tier.netns), "requests/s");
        station.used = Some((self.requests - self.refused) as f64 / self.seconds.max(1e-6));
        station.refused_per_s = Some(self.refused as f64 / self.seconds.max(1e-6));
        station.in_state(StationState::Refusing, self.told(tier, "state-rate-limit-too-many"))
    }

    fn finding(&self, tier: &Tier) -> Finding {
        Finding {
            // Which server of the path counts is not known.
            confidence: if tier.upstreams.is_empty() { Confidence::High } else { Confidence::Medium },
            title: self.told(tier, "finding-rate-limited-by-config-title-too-many"),
            evidence: std::iter::once(Evidence::new(
                self.told(tier, "evidence-rate-limit-too-many"),
                self.source,
                Some(self.refused as f64),
            ))
            .chain(self.rule.map(|rule| Evidence::new(self.told(tier, "evidence-rate-limit-rule"), rule.origin.to_string(), None)))
            .collect(),
            explanation: vec![self.told(tier, "finding-rate-limited-by-config-explanation-too-many")],
            ..STATION.finding(FindingId::LIMITED_BY_CONFIG, tier, Location::in_netns(tier.netns))
        }
    }
}

fn reading(ctx: &Context<'_>, tier: &Tier, limit: &Limit<'_>) -> StationReading {
    let at = Location::in_netns(tier.netns);
    let unit = match (limit.config.rate_per_s, limit.config.bytes_per_s) {
        (Some(_), _) => "requests/s",
        (None, Some(_)) => "bytes/s",
        (None, None) => "connections",
    };
    let mut station = STATION.reading(tier, at, unit);
    let counted = limit.config.connections.or(limit.config.bytes_per_s).map(|count| count as f64);
    station.limit = limit.config.rate_per_s.or(counted);
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
        Some(LimitEffect::Paced) => (StationState::Saturated, args("state-rate-limit-pacing")),
        None if limit.config.bytes_per_s.is_some() => (StationState::Ok, args("state-rate-limit-pace-ok")),
        None if refused.is_some_and(|count| count > 0) => (StationState::Near, args("state-rate-limit-harmless")),
        None => (StationState::Ok, args("state-rate-limit-ok")),
    };
    station.in_state(state, why)
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let is_configured = ctx.path.tiers.iter().any(|tier| narrowest(ctx, tier).is_some());
    if let Some((tier, refused)) = TooMany::of(ctx).filter(|_| !is_configured) {
        return vec![refused.finding(tier)];
    }
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
        (LimitEffect::Paced, _) => ("finding-rate-limited-by-config-title-pace", "finding-rate-limited-by-config-explanation-pace"),
    };
    Finding {
        confidence: if limit.is_logged || effect == LimitEffect::Paced { Confidence::High } else { Confidence::Medium },
        title: told(title, tier, limit.config),
        evidence: proofs(ctx, tier, limit, effect),
        explanation: vec![told(explanation, tier, limit.config)],
        ..placed.finding(FindingId::LIMITED_BY_CONFIG)
    }
}

/// What shows that responses leave at the allowed rate.
fn paced(ctx: &Context<'_>, tier: &Tier, limit: &Limit<'_>, pace: Pace) -> Evidence {
    match pace {
        Pace::Responses { bytes, took_s, paced_s } => {
            let text = told("evidence-rate-limit-pace", tier, limit.config).with("bytes", bytes / 1e3).with("took", took_s * 1e3);
            let source = if ctx.obs.load.is_some() { "load" } else { "access log" };
            Evidence::new(text.with("paced", paced_s * 1e3), source, Some(took_s * 1e6))
        }
        Pace::Connections { count, each_per_s, share } => {
            let text = told("evidence-rate-limit-pace-connections", tier, limit.config).with("count", count as f64);
            let text = text.with("each", each_per_s / 1e3).with("share", 100.0 * share);
            Evidence::new(text, format!("sock_diag struct tcp_info ({})", ctx.netns_name(tier.netns)), Some(each_per_s))
        }
    }
}

fn proofs(ctx: &Context<'_>, tier: &Tier, limit: &Limit<'_>, effect: LimitEffect) -> Vec<Evidence> {
    if let Some(pace) = Pace::of(ctx, tier, limit.config) {
        let configured = told("evidence-rate-limit-pace-configured", tier, limit.config);
        let rate = limit.config.bytes_per_s.map(|rate| rate as f64);
        return vec![paced(ctx, tier, limit, pace), Evidence::new(configured, limit.config.origin.to_string(), rate)];
    }
    let mut proofs: Vec<Evidence> = limit.proofs().map(|logged| logged.proof()).collect();
    let id = if limit.config.connections.is_some() { "evidence-rate-limit-connections" } else { "evidence-rate-limit-rate" };
    proofs.push(Evidence::new(told(id, tier, limit.config), limit.config.origin.to_string(), limit.config.rate_per_s));
    if let Some(load) = &ctx.obs.load {
        let (id, count) = match effect {
            LimitEffect::Refused => ("evidence-rate-limit-answers", answers_with(load, &[limit.config.status]) as f64),
            LimitEffect::Delayed | LimitEffect::Paced => ("evidence-rate-limit-waits", load.latency_us.p50 as f64 / 1e3),
        };
        let text = told(id, tier, limit.config).with("count", count).with("requests", load.requests).with("goodput", load.goodput_rps());
        proofs.push(Evidence::new(text, "load", Some(count)));
    }
    let answers = Statuses::of(ctx).filter(|_| ctx.obs.load.is_none() && effect == LimitEffect::Refused && !limit.is_logged);
    proofs.extend(answers.map(|seen| {
        let count = seen.by_status.get(&limit.config.status).copied().unwrap_or(0);
        let text = told("evidence-rate-limit-answers-watched", tier, limit.config).with("count", count).with("requests", seen.requests);
        Evidence::new(text, seen.source, Some(count as f64))
    }));
    proofs
}
