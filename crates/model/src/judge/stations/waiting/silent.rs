//! Finding `answers-none`: requests wait for a server that was not seen to answer any.

use crate::facts::path::Tier;
use crate::facts::traffic::Statuses;
use crate::facts::traffic::on_wire::Answered;
use crate::facts::{Context, TierId};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::{Silent, silent, tenths};
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn judge(ctx: &Context<'_>) -> Option<Finding> {
    let found = silent(ctx)?;
    let tier = &ctx.path.tiers[found.tier];
    let args = |id: &'static str| args(ctx, id, (&found, tier));
    let sockets = format!("sock_diag struct tcp_info ({})", ctx.netns_name(tier.netns));
    let source = Statuses::of(ctx).map_or("", |statuses| statuses.source);
    let failed = found.failed.map(|(failed, _)| Evidence::new(args("evidence-answers-none-failed"), source, Some(failed as f64)));
    let other = found.other.and_then(|other| Some((other, Answered::of(ctx, &ctx.path.tiers[other])?.all())));
    let sibling = other.filter(|_| Answered::of(ctx, tier).is_none()).map(|(_, answered)| {
        let text = args("evidence-answers-none-sibling").with("answered", answered);
        Evidence::new(text, format!("packet(7) ({})", ctx.netns_name(tier.netns)), Some(answered as f64))
    });
    let sockets = Evidence::new(args("evidence-answers-none-sockets"), sockets, Some(found.connections as f64));
    Some(Finding {
        confidence: Confidence::Medium,
        title: args("finding-answers-none-title"),
        evidence: [Some(sockets), sibling, failed].into_iter().flatten().collect(),
        explanation: vec![args("finding-answers-none-explanation")],
        ..STATION.finding(FindingId::ANSWERS_NONE, tier, Location::in_netns(tier.netns))
    })
}

/// A message with the arguments of the sentences.
fn args(ctx: &Context<'_>, id: &'static str, (found, tier): (&Silent, &Tier)) -> Message {
    let name = |index: usize| ctx.path.tiers[index].name.as_str();
    let caller = ctx.path.callers(TierId(found.tier)).find(|caller| caller.id != tier.id);
    let listener = tier.listeners.first().map(|placed| placed.listener.address.to_string()).unwrap_or_default();
    let kind = if found.other.is_some() { "other" } else { "alone" };
    let message = Message::new(id).with("tier", tier.name.as_str()).with("listener", listener).with("kind", kind);
    let message = message.with("caller", caller.map_or("", |caller| caller.name.as_str())).with("other", found.other.map_or("", name));
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    let message = message.with("waiting", tenths(found.waiting)).with("under_way", tenths(under_way));
    let message = message.with("connections", found.connections as f64).with("oldest", found.oldest_ms);
    let (failed, requests) = found.failed.unwrap_or_default();
    message.with("failed", failed).with("requests", requests)
}
