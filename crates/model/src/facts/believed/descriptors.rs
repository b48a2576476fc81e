//! "(24: Too many open files)": the descriptors that each process had open.

use super::Belief;
use super::looks::{at_once_most, came, longest_gap_s, opened};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::sum::mean;
use crate::observation::ProcessView;
use crate::output::message::Message;

/// Descriptors that may be free for a moment in a process at its limit: one, or this share of them.
pub(crate) const CHURN_SHARE: f64 = 0.01;
/// Descriptors that a request takes at most beside its connection: one to an upstream or the file that is sent (ngx_http_upstream.c, ngx_http_static_module.c), and a temporary file
/// (ngx_event_pipe.c).
const BESIDE: f64 = 2.0;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier) -> Belief {
    let processes: Vec<&ProcessView> = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)).collect();
    let open: Vec<Option<Open>> = processes.iter().map(|process| Open::of(process)).collect();
    if open.iter().flatten().any(Open::is_full) {
        return Belief::Shown;
    }
    let all: Option<Vec<Open>> = open.into_iter().collect();
    let Some(all) = all.filter(|all| !all.is_empty() && all.len() == tier.pids.len()) else { return Belief::Alone };
    let mut closest: Option<(f64, Open, f64)> = None;
    for one in all {
        let Some(more) = one.more(ctx, tier) else { return Belief::Alone };
        let share = (one.peak as f64 + more) / one.limit.max(1) as f64;
        if closest.as_ref().is_none_or(|(most, ..)| share > *most) {
            closest = Some((share, one, more));
        }
    }
    match closest {
        Some((share, one, more)) if share < 1.0 => {
            Belief::Against(Message::new("log-but-files").with("peak", one.peak).with("limit", one.limit).with("more", more.ceil()))
        }
        // Between two looks it may have been at its limit, and whoever cannot accept leaves connections waiting.
        _ if mean(ctx.queued(tier)) >= 1.0 => Belief::Shown,
        _ => Belief::Alone,
    }
}

/// The open files of one process in all looks at it.
struct Open {
    limit: u64,
    peak: u64,
    looks_us: Vec<u64>,
}

impl Open {
    fn of(process: &ProcessView) -> Option<Self> {
        let limit = process.limits.last()?.open_files_soft?;
        let looks = process.files.points().iter().map(|(at, files)| (*at, files.count));
        let looks: Vec<(u64, u32)> = looks.chain(process.fd_count.points().iter().copied()).collect();
        let peak = looks.iter().map(|(_, count)| u64::from(*count)).max()?;
        Some(Self { limit, peak, looks_us: looks.into_iter().map(|(at, _)| at).collect() })
    }

    fn is_full(&self) -> bool {
        self.peak + ((self.limit as f64 * CHURN_SHARE) as u64).max(1) >= self.limit
    }

    /// The most descriptors that can have come between two looks.
    fn more(&self, ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
        let gap_s = longest_gap_s(ctx, self.looks_us.iter().copied())?;
        let opened = opened(ctx, tier.netns, &["Tcp.PassiveOpens", "Tcp.ActiveOpens"], gap_s);
        let by_rate = opened.zip(came(ctx, tier, gap_s)).map(|(connections, requests)| connections + BESIDE * requests);
        let by_load = at_once_most(ctx, tier).map(|requests| (1.0 + BESIDE) * requests);
        by_rate.into_iter().chain(by_load).reduce(f64::min)
    }
}
