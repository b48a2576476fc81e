//! Which of the servers behind the first tier the requests asked for can reach: its configuration passes those of other sites and locations elsewhere.

use super::{ListenerRef, Tier, names_listener};
use crate::observation::{ListenerAddress, Observation};

/// True if the configuration of a tier passes requests to a listener, but by no way those that were asked for. What the configuration does not name, or does not
/// decide, may be theirs.
pub(super) fn is_for_others(obs: &Observation, tier: &Tier, (netns, listener): ListenerRef<'_>) -> bool {
    let Some(view) = obs.netns.get(&netns) else { return false };
    let names = |address: &ListenerAddress| names_listener(view, netns == tier.netns, listener, address);
    let mut is_named = false;
    for config in tier.pids.iter().filter_map(|pid| obs.servers.get(pid)?.config.last()) {
        let is_asked = config.leads_to().is_none_or(|asked| asked.iter().any(names));
        if is_asked {
            return false;
        }
        is_named |= config.passes_to().into_iter().any(names);
    }
    is_named
}
