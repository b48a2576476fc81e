//! Finding `upstream-unreachable`: requests wait for connections to a server that nobody answers, or fail for want of them.

use super::STATION;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::traffic::Statuses;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::StationReading;
use crate::ledger::{Unreachable, Unreached, tenths, unreached};
use crate::observation::ListenerAddress;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationState};

/// A reading for each such address.
pub(super) fn readings(ctx: &Context<'_>) -> Vec<StationReading> {
    unreached(ctx).iter().map(|found| reading(ctx, found)).collect()
}

fn reading(ctx: &Context<'_>, found: &Unreached) -> StationReading {
    let tier = &ctx.path.tiers[found.tier];
    let mut reading = STATION.reading(tier, at(tier, found), "connects/s");
    reading.waiting = Some(found.waiting);
    reading.refused_per_s = Some(found.how.connections() as f64 / ctx.seconds().max(1e-6));
    reading.in_state(StationState::Refusing, args(ctx, found, "state-upstream-connect-unreachable"))
}

pub(super) fn findings(ctx: &Context<'_>) -> Vec<Finding> {
    unreached(ctx).iter().map(|found| finding(ctx, found)).collect()
}

fn finding(ctx: &Context<'_>, found: &Unreached) -> Finding {
    let tier = &ctx.path.tiers[found.tier];
    let netns = ctx.netns_name(tier.netns);
    let (is_sure, id, source) = match found.how {
        Unreachable::Unanswered(_) => (true, "evidence-unreachable-unanswered", format!("sock_diag SYN-SENT ({netns})")),
        Unreachable::Refused(_) | Unreachable::Absent(_) => {
            let source = format!("/proc/net/snmp Tcp.AttemptFails, /proc/net/tcp ({netns})");
            // Other programs of the namespace may connect in vain, too.
            (found.remote.is_some() && ctx.others(tier.netns).made_none(), "evidence-unreachable-refused", source)
        }
    };
    let tried = Evidence::new(args(ctx, found, id), source, Some(found.how.connections() as f64));
    let waiting = args(ctx, found, "evidence-unreachable-waiting");
    let waiting = Evidence::new(waiting, format!("sock_diag struct tcp_info ({netns})"), Some(tenths(found.waiting)));
    // Of requests that fail at once hardly any is ever seen to stand.
    let waiting = Some(waiting).filter(|_| tenths(found.waiting) > 0.0 || found.failed.is_none());
    let failed = found.failed.map(|(failed, requests)| {
        let text = args(ctx, found, "evidence-unreachable-failed").with("failed", failed).with("requests", requests);
        Evidence::new(text, Statuses::of(ctx).map_or("packets", |statuses| statuses.source), Some(failed as f64))
    });
    let under_way = ctx.account().map_or(f64::INFINITY, |account| account.under_way());
    Finding {
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        title: args(ctx, found, "finding-upstream-unreachable-title"),
        evidence: [Some(tried), waiting, failed].into_iter().flatten().collect(),
        explanation: vec![args(ctx, found, "finding-upstream-unreachable-explanation")],
        lost_time: Some((found.waiting / under_way).clamp(0.0, 1.0)),
        ..STATION.finding(FindingId::UNREACHABLE, tier, at(tier, found))
    }
}

fn at(tier: &Tier, found: &Unreached) -> Location {
    let Some((ip, port)) = found.remote else { return Location::in_netns(tier.netns) };
    let address = ListenerAddress::Tcp(ip, port);
    let edge = Some(EdgeId::Elsewhere(tier.id, address.clone()));
    Location { edge, ..Location::at_listener(tier.netns, address) }
}

/// A message with the arguments of the sentences.
fn args(ctx: &Context<'_>, found: &Unreached, id: &'static str) -> Message {
    let kind = match found.how {
        Unreachable::Unanswered(_) => "unanswered",
        Unreachable::Refused(_) => "refused",
        Unreachable::Absent(_) => "absent",
    };
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    let remote = found.remote.map_or_else(String::new, |remote| std::net::SocketAddr::from(remote).to_string());
    let message = Message::new(id).with("tier", ctx.path.tiers[found.tier].name.as_str()).with("remote", remote);
    let message = message.with("kind", kind).with("tried", found.how.connections());
    message.with("waiting", tenths(found.waiting)).with("under_way", tenths(under_way))
}
