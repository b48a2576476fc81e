//! Connections that a tier opens to the servers behind it, by the kernel's count for the whole namespace: only where all of them are known to be the tier's or its clients'.

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::ledger::connections::tier_of;
use crate::observation::RequestTimes;

/// Fewest looks at kept connections from which those that come and go would have been met.
const LOOKS_MIN: usize = 30;

/// Connections a second. `None` if others may have opened some, or the tier some to other servers.
pub(super) fn rps(ctx: &Context<'_>, caller: &Tier, asked: &[&Tier]) -> Option<f64> {
    let here = || ctx.path.tiers.iter().filter(|tier| tier.netns == caller.netns);
    let is_asked = |index: &usize| asked.iter().any(|tier| tier.id.0 == *index);
    let dials_others = here().any(|tier| tier.upstreams.iter().any(|index| *index != tier.id.0 && !is_asked(index)));
    if dials_others || !ctx.others(caller.netns).made_none() {
        return None;
    }
    let view = ctx.obs.netns.get(&caller.netns)?;
    // One that came to nothing carried no call: whoever has two addresses of a server may try both.
    let opened = ctx.netstat_growth(view, "Tcp.ActiveOpens")?.saturating_sub(ctx.netstat_growth(view, "Tcp.AttemptFails")?);
    // The counters are read up to an interval apart, in which a load does nothing.
    let seconds = match &ctx.obs.load {
        Some(load) => load.duration_us as f64 / 1e6,
        None => ctx.around(&view.netstat)?.2 as f64 / 1e6,
    };
    Some(opened.saturating_sub(clients(ctx, caller)?) as f64 / seconds.max(1e-6))
}

/// True if at most one segment came: a client that asks again and again is no such one.
fn is_first_request(times: &RequestTimes) -> bool {
    times.data_segs_in.is_none_or(|segments| segments <= 1)
}

/// Connections that the clients of the first tier opened in a tier's namespace, at most.
fn clients(ctx: &Context<'_>, caller: &Tier) -> Option<u64> {
    if let Some(load) = &ctx.obs.load {
        return Some(if ctx.obs.request.client_netns == caller.netns { load.connections } else { 0 });
    }
    let first = ctx.path.tiers.first().filter(|first| first.netns == caller.netns)?;
    let view = ctx.obs.netns.get(&first.netns)?;
    let (mut seen, mut looks) = (BTreeSet::new(), 0);
    for socket in ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets) {
        if tier_of(ctx, first.netns, &socket.address) == Some(0) {
            if socket.times.as_ref().is_none_or(is_first_request) {
                return None;
            }
            seen.insert(socket.cookie);
            looks += 1;
        }
    }
    (looks >= LOOKS_MIN).then_some(seen.len() as u64)
}
