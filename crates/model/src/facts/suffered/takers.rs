//! Which rules of a packet filter took the packets that nothing else counts.

use std::collections::BTreeSet;

use super::undelivered::Undelivered;
use crate::facts::Context;
use crate::observation::{FilterHook, FilterPorts, FilterRule, FilterRules, ListenerAddress, NetnsView};

/// A rule that may have taken packets in the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taker<'a> {
    /// The rule.
    pub(crate) rule: &'a FilterRule,
    /// Packets that it took. `None` if it does not count them, and another one does not either.
    pub(crate) taken: Option<u64>,
    /// True if it counts them itself. Else it is the only one that does not, and the rest is its.
    pub(crate) is_counted: bool,
    /// True if it asks for the port of a server of the path alone.
    asks_for_path: bool,
}

impl<'a> Taker<'a> {
    /// The rules of a namespace that took packets or may have, most packets first; then those that do not count, first those that ask for a port of the path.
    pub(crate) fn all(ctx: &Context<'a>, view: &'a NetnsView, undelivered: &Undelivered) -> Vec<Self> {
        let Some((first, last, _)) = ctx.around(&view.filter_rules) else { return Vec::new() };
        let grown = |rule: &FilterRule| rule.taken?.checked_sub(first.rules.iter().find(|before| before.is_same(rule))?.taken?);
        let ports = ports(ctx);
        let counted =
            last.rules.iter().map(|rule| Taker { rule, taken: grown(rule), is_counted: true, asks_for_path: asks_for(rule, &ports) });
        let mut takers: Vec<Self> = counted.filter(|taker| taker.taken != Some(0) && may_take(taker.rule, undelivered)).collect();
        if let Some(rest) = rest(&takers, last, undelivered) {
            takers.iter_mut().filter(|taker| taker.taken.is_none()).for_each(|taker| (taker.taken, taker.is_counted) = (Some(rest), false));
        }
        takers.sort_by_key(|taker| std::cmp::Reverse((taker.taken, taker.asks_for_path)));
        takers
    }

    /// The rule that took most of the packets that a namespace's filter took.
    pub(crate) fn of_most(ctx: &Context<'a>, view: &'a NetnsView, undelivered: &Undelivered) -> Option<&'a FilterRule> {
        Self::most_of(&Self::all(ctx, view, undelivered), undelivered.all())
    }

    /// The first of these rules, if it took most of these packets.
    pub(crate) fn most_of(takers: &[Self], all: u64) -> Option<&'a FilterRule> {
        takers.first().filter(|taker| taker.taken.is_some_and(|taken| taken > 0 && 2 * taken >= all)).map(|taker| taker.rule)
    }

    /// True if what it took was sent to or by a server of the path: it asks for that port alone, and for no sender.
    pub(crate) fn is_of_path(&self) -> bool {
        self.asks_for_path && !self.rule.is_by_source
    }
}

/// True if a rule asks for one of these ports alone.
fn asks_for(rule: &FilterRule, ports: &BTreeSet<u16>) -> bool {
    match rule.ports {
        FilterPorts::Destination(first, last) | FilterPorts::Source(first, last) => first == last && ports.contains(&first),
        FilterPorts::Any | FilterPorts::Unknown => false,
    }
}

/// What is left for the only rule that does not count. `None` if there are more of them, or rules that were not read.
fn rest(takers: &[Taker<'_>], all: &FilterRules, undelivered: &Undelivered) -> Option<u64> {
    let is_alone = takers.iter().filter(|taker| taker.taken.is_none()).count() == 1 && all.left_out == 0 && !all.has_others;
    let counted: u64 = takers.iter().filter_map(|taker| taker.taken).fold(0, u64::saturating_add);
    undelivered.all().checked_sub(counted).filter(|rest| is_alone && *rest > 0)
}

/// True if a rule stands where these packets vanished: between an interface and a protocol of IP. Those at an interface or in a bridge see packets that IP does not count.
fn may_take(rule: &FilterRule, undelivered: &Undelivered) -> bool {
    let is_ip = matches!(rule.family.as_str(), "ip" | "ip6" | "inet");
    let stands = |hook: &FilterHook| match hook {
        FilterHook::Prerouting | FilterHook::Input => undelivered.came > 0,
        FilterHook::Output | FilterHook::Postrouting => undelivered.sent.is_some_and(|sent| sent > 0),
        FilterHook::Forward => true,
        FilterHook::Ingress | FilterHook::Egress => false,
    };
    is_ip && rule.hooks.iter().any(stands)
}

/// The ports of the path's servers, and those that are translated to them.
fn ports(ctx: &Context<'_>) -> BTreeSet<u16> {
    let listening = ctx.path.tiers.iter().flat_map(|tier| &tier.listeners).filter_map(|placed| match placed.listener.address {
        ListenerAddress::Tcp(_, port) => Some(port),
        ListenerAddress::Unix(_) => None,
    });
    let translated = ctx.path.translated.iter().flat_map(|hop| [hop.original.1, hop.translated.1]);
    listening.chain(translated).chain([ctx.obs.request.port]).collect()
}
