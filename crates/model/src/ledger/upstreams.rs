//! The servers that a tier passes requests to, one by one: which of them do the same work, and which of them costs the requests that reach it more than the others do.

mod peers;
mod repeated;
mod silent;
mod unreached;

pub(crate) use peers::SlowerThanPeers;
pub(crate) use repeated::{Failing, Repeated, repeated};
pub(crate) use silent::{Silent, silent};
pub(crate) use unreached::{Unreachable, Unreached, unreached};

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::traffic::Statuses;
use crate::observation::{ListenerAddress, ServerConfig};

/// The statuses of a gateway that got no answer from a server, or had none to ask (RFC 9110, 15.6.3 to 15.6.5).
const GAVE_UP: [u16; 3] = [502, 503, 504];

/// Requests that failed because a server behind the first one did not answer, and all that ended. `None` if it is not known how requests ended.
fn unanswered(ctx: &Context<'_>) -> Option<(u64, u64)> {
    let statuses = Statuses::of(ctx)?;
    let given_up: u64 = GAVE_UP.iter().filter_map(|status| statuses.by_status.get(status)).sum();
    Some((given_up + ctx.obs.load.as_ref().map_or(0, |load| load.errors.response_timeout), statuses.requests))
}

/// The tier that passes requests to another one.
fn caller_of<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a Tier> {
    ctx.path.callers(tier.id).find(|caller| caller.id != tier.id)
}

/// The other tiers that have the same caller.
fn co_called<'a>(ctx: &Context<'a>, tier: &Tier) -> impl Iterator<Item = &'a Tier> {
    let upstreams = caller_of(ctx, tier).map(|caller| caller.upstreams.as_slice()).unwrap_or_default();
    upstreams.iter().filter_map(|index| ctx.path.tiers.get(*index)).filter(|other| other.id != tier.id)
}

/// Servers to which a tier may pass the same requests by its configuration as to another one, to which it passes all of them; and that one. `None` if requests were seen at none or several.
pub(crate) fn left_out<'a>(ctx: &Context<'a>, caller: &Tier) -> Option<(Vec<&'a Tier>, &'a Tier)> {
    let account = ctx.account()?;
    let upstreams: Vec<&Tier> = caller.upstreams.iter().filter_map(|index| ctx.path.tiers.get(*index)).collect();
    let mut used = upstreams.iter().filter(|upstream| account.at_tier(upstream.id.0, false) > 0.0);
    let (Some(used), None) = (used.next(), used.next()) else { return None };
    let unused = upstreams.iter().copied().filter(|other| other.id != used.id && caller.configured.contains(&other.id.0));
    let sets = sets_of(ctx, caller);
    let others: Vec<&Tier> = unused.filter(|other| are_in_one(ctx, caller, &sets, [used, other])).collect();
    (!others.is_empty()).then_some((others, *used))
}

/// Those of them to which the caller passes the same requests: by its configuration, or because they run the same program with the same words.
fn siblings<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a Tier> {
    let Some(caller) = caller_of(ctx, tier) else { return Vec::new() };
    let sets = sets_of(ctx, caller);
    co_called(ctx, tier).filter(|other| are_in_one(ctx, caller, &sets, [tier, other]) || are_equal(ctx, tier, other)).collect()
}

/// The sets of servers to which a tier passes the same requests by its configuration, one or another.
fn sets_of<'a>(ctx: &Context<'a>, caller: &Tier) -> Vec<Vec<&'a ListenerAddress>> {
    let configs = caller.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.config.last());
    configs.flat_map(ServerConfig::alternatives).collect()
}

/// True if one of a caller's sets has both.
fn are_in_one(ctx: &Context<'_>, caller: &Tier, sets: &[Vec<&ListenerAddress>], both: [&Tier; 2]) -> bool {
    let is_in = |set: &[&ListenerAddress], one: &Tier| set.iter().any(|address| one.is_named(ctx.obs, caller.netns, address));
    sets.iter().any(|set| both.iter().all(|one| is_in(set, one)))
}

/// True if both run the same program, started with the same words but for numbers: ports, names with a number.
fn are_equal(ctx: &Context<'_>, one: &Tier, other: &Tier) -> bool {
    let words = |tier: &Tier| {
        let identity = tier.pids.first().and_then(|pid| ctx.obs.processes.get(pid))?.identity.last()?;
        let plain: String = identity.cmdline.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        Some((identity.exe.clone().unwrap_or_else(|| identity.comm.clone()), plain))
    };
    words(one).is_some_and(|words_of_one| Some(words_of_one) == words(other))
}
