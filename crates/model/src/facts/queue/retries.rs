//! When a client whose SYN got no answer sends it again.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::load::INITIAL_RTO_S;
use crate::observation::series::SeriesState;
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;

/// Sysctl: how many SYNs are sent again before the kernel gives up, those of [`KEY_LINEAR`] not counted (ip-sysctl.rst; `tcp_write_timeout`).
pub(crate) const KEY_RETRIES: &str = "net.ipv4.tcp_syn_retries";
/// Sysctl: how many timeouts pass before they double (ip-sysctl.rst). Since Linux 6.5; before, they doubled from the first on.
pub(crate) const KEY_LINEAR: &str = "net.ipv4.tcp_syn_linear_timeouts";
/// The longest timeout, seconds (`TCP_RTO_MAX`).
const RTO_S_MAX: f64 = 120.0;
/// Times that are named. Few clients wait for the later ones.
const NAMED_MAX: usize = 6;

/// The seconds after the first SYN at which it is sent again: 1, 2, 3, 4, 5, 7, 11, ... with 4 linear timeouts, 1, 3, 7, 15, ... with none
/// (net/ipv4/tcp_timer.c, `tcp_retransmit_timer`). `linear` and `retries` are the sysctls.
pub(crate) fn syn_again_s(linear: u64, retries: u64) -> impl Iterator<Item = f64> {
    let timeout_s = move |n: u64| {
        let doubled = i32::try_from(n.saturating_sub(linear)).unwrap_or(i32::MAX);
        (INITIAL_RTO_S * 2.0_f64.powi(doubled)).min(RTO_S_MAX)
    };
    (0..linear.saturating_add(retries)).scan(0.0, move |at_s, n| {
        *at_s += timeout_s(n);
        Some(*at_s)
    })
}

/// The two sysctls of a namespace; `None` if they were not read.
fn settings(view: &NetnsView) -> Option<(u64, u64)> {
    let linear = match view.sysctls.get(KEY_LINEAR)?.state() {
        // An older kernel.
        SeriesState::Absent(_) => 0,
        _ => view.sysctl_number(KEY_LINEAR)?,
    };
    Some((linear, view.sysctl_number(KEY_RETRIES)?))
}

/// The namespaces from which connections to this tier come: those of the tiers that call it, and the load's own. `None` stands for the first tier. Nothing if
/// they are not known: whose traffic is watched is on other hosts.
fn origins(ctx: &Context<'_>, tier: Option<&Tier>) -> Vec<NetnsId> {
    let callers = tier.into_iter().flat_map(|tier| ctx.path.callers(tier.id)).map(|caller| caller.netns);
    let is_first = tier.is_none_or(|tier| ctx.path.is_first(tier));
    let own = (is_first && ctx.obs.load.is_some()).then_some(ctx.obs.request.client_netns);
    let is_watched = is_first && own.is_none();
    if is_watched { Vec::new() } else { callers.chain(own).collect() }
}

/// When clients of this tier (`None`: of the first) send a lost SYN again, as a part of a sentence: "after 1, 2, 3, 4, 5, 7 s and so on".
pub(crate) fn told(ctx: &Context<'_>, tier: Option<&Tier>) -> Message {
    let origins = origins(ctx, tier);
    let read: Option<Vec<(u64, u64)>> = origins.iter().map(|id| settings(ctx.obs.netns.get(id)?)).collect();
    match read.unwrap_or_default().split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => said(first.0, first.1),
        _ => Message::new("syn-again-unknown"),
    }
}

fn said(linear: u64, retries: u64) -> Message {
    let mut times = syn_again_s(linear, retries);
    let named: Vec<String> = times.by_ref().take(NAMED_MAX).map(|at_s| at_s.to_string()).collect();
    let has_more = times.next().is_some();
    Message::new("syn-again").with("times", named.join(", ")).with("more", if has_more { "yes" } else { "no" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::catalogue::Catalogue;

    fn again_s(linear: u64, retries: u64) -> Vec<f64> {
        syn_again_s(linear, retries).collect()
    }

    #[test]
    fn timeouts_are_linear_first_and_double_then() {
        // ip-sysctl.rst: 67 seconds until the last one with the defaults.
        assert_eq!(again_s(4, 6), [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0]);
        assert_eq!(again_s(0, 6), [1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
        assert_eq!(again_s(1, 2), [1.0, 2.0, 4.0]);
        assert_eq!(again_s(4, 1), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(again_s(0, 0).is_empty());
    }

    #[test]
    fn a_timeout_has_an_upper_bound() {
        let times = again_s(0, 127);
        assert_eq!((times.len(), times[126] - times[125]), (127, RTO_S_MAX));
        assert_eq!(syn_again_s(u64::MAX, u64::MAX).take(3).last(), Some(3.0));
    }

    #[test]
    fn few_times_are_named() {
        let text = |linear, retries| Catalogue::english().text(&said(linear, retries));
        assert_eq!(text(4, 6), "after 1, 2, 3, 4, 5, 7 s and so on");
        assert_eq!(text(0, 6), "after 1, 3, 7, 15, 31, 63 s");
        assert_eq!(text(0, 3), "after 1, 3, 7 s");
    }
}
