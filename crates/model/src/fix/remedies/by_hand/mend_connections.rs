//! Advice for problems of the connections themselves: on the network path, or between two servers whose settings do not match.

use crate::facts::Context;
use crate::facts::suffered::standing::Standing;
use crate::facts::suffered::takers::Taker;
use crate::facts::suffered::undelivered::Undelivered;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::steps::read_in_netns;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::{FilterRule, NetnsId};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const FIND_LOSS: AdviceDef = AdviceDef {
    id: "find-lossy-link",
    finding: FindingId::PACKET_LOSS,
    activation: Activation::Live,
    advise: |ctx, _| {
        let is_of_size = Standing::of(ctx).is_some_and(|standing| standing.is_of_size());
        let text = if is_of_size { "remedy-find-lossy-link-text-size" } else { "remedy-find-lossy-link-text" };
        Some(advice(Message::new(text), "remedy-find-lossy-link-risk"))
    },
};

pub(in crate::fix::remedies) const LET_PACKETS_PASS: AdviceDef = AdviceDef {
    id: "let-packets-pass",
    finding: FindingId::PACKETS_FILTERED,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let netns = placed.at.netns.map_or_else(String::new, |netns| ctx.netns_name(netns));
        let rule = placed.at.netns.and_then(|netns| taking_rule(ctx, netns));
        let text = match rule.filter(|rule| rule.is_plain()) {
            Some(rule) => {
                let id = if rule.handle == 0 { "remedy-let-packets-pass-text-policy" } else { "remedy-let-packets-pass-text-rule" };
                let chain = format!("{} {} {}", rule.family, rule.table, rule.chain);
                // Where no shell of the host gets into the namespace, the text names it.
                let there = |command: String| placed.at.netns.and_then(|netns| read_in_netns(ctx, netns, &command)).unwrap_or(command);
                let text = Message::new(id).with("list", there(format!("nft -a list chain {chain}")));
                let text = text.with("delete", there(format!("nft delete rule {}", rule.name())));
                text.with("rule", rule.name()).with("says", rule.text.as_str()).with("chain", chain)
            }
            None => Message::new("remedy-let-packets-pass-text"),
        };
        Some(advice(text.with("netns", netns), "remedy-let-packets-pass-risk"))
    },
};

/// The rule of a namespace that took most of the packets which were taken there.
fn taking_rule<'a>(ctx: &Context<'a>, netns: NetnsId) -> Option<&'a FilterRule> {
    let view = ctx.obs.netns.get(&netns)?;
    let taken = Undelivered::of(ctx, netns, view)?;
    Taker::of_most(ctx, view, &taken)
}

pub(in crate::fix::remedies) const KEEP_IDLE_LONGER: AdviceDef = AdviceDef {
    id: "keep-idle-longer",
    finding: FindingId::CLOSE_RACE,
    activation: Activation::Reload,
    advise: |ctx, placed| {
        let kind = ctx.only_tier(&placed.owner).map_or("other", |tier| ctx.words_for(tier));
        let text = remote(placed, "remedy-keep-idle-longer-text").with("kind", kind).with("tier", ctx.owner_name(&placed.owner));
        Some(advice(text, "remedy-keep-idle-longer-risk"))
    },
};

pub(in crate::fix::remedies) const LEAVE_IT_OUT: AdviceDef = AdviceDef {
    id: "leave-it-out",
    finding: FindingId::UNREACHABLE,
    activation: Activation::Reload,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner);
        let kind = tier.map_or("other", |tier| ctx.words_for(tier));
        let is_known = placed.at.listener.is_some();
        let text = remote(placed, if is_known { "remedy-leave-it-out-text" } else { "remedy-leave-it-out-text-unknown" });
        let pid = tier.and_then(|tier| tier.pids.first()).map_or_else(String::new, u32::to_string);
        let text = text.with("kind", kind).with("tier", ctx.owner_name(&placed.owner)).with("pid", pid);
        Some(advice(text, "remedy-leave-it-out-risk"))
    },
};

/// A message with the remote address of this reading's edge.
fn remote(placed: &StationReading, id: &'static str) -> Message {
    Message::new(id).with("remote", placed.at.listener_name())
}

/// Its gain must be measured: no ceiling or count predicts it.
fn advice(text: Message, risk: &'static str) -> Advice {
    Advice::words(text, risk, Lift::Further)
}
