//! What could be faster if nothing but its cores holds a server back.
//!
//! CPU time that is **wasted** is a cause like any other: without it throughput would rise beyond noise, and its remedy costs nobody anything (connections to
//! an upstream that are not kept, scripts that are compiled for each request), and so are cores that stay idle because a
//! server has too few threads for them. A trade-off, or what the clients do, is no cause. It is reported, and tried
//! only if something else was fixed before.

mod churn;
mod debug_log;
mod from_profile;
mod handshakes;
mod hot;
mod polling;
mod port_search;
mod process_starts;
mod single_core;
mod taken;

pub(crate) use single_core::IDLE_MIN;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::traffic::Statuses;
use crate::judge::finding::Finding;
use crate::judge::id::StationId;
use crate::judge::station::StationReading;
use crate::observation::load::LoadResult;
use crate::output::report::{Role, StationState};

/// What could be faster.
#[derive(Default)]
pub(crate) struct Faster {
    /// Causes: work that the server could do without.
    pub(crate) wasted: Vec<Finding>,
    /// Improvements that are no causes.
    pub(crate) other: Vec<Finding>,
}

/// A finding with what the servers would gain without it, as a share of today's throughput.
pub(crate) struct Gained {
    finding: Finding,
    is_cause: bool,
    gain: f64,
}

/// The improvements of a server that nothing but its cores holds back.
pub(crate) fn faster(ctx: &Context<'_>, stations: &[StationReading], findings: &[Finding]) -> Faster {
    let is_choked = findings.iter().any(|finding| finding.role == Role::Cause);
    let failed = || ctx.failed_share().is_some_and(|share| Cost::share_of_requests(share).hurts());
    let mut faster = Faster::default();
    // Whoever lacks cores lets requests wait: where most of them fail at once, that comes first.
    let is_rejecting = are_mostly_rejected(ctx);
    let is_countable = |load: &LoadResult| ctx.can_divide_by_good() && hardly_failed(load);
    if !is_choked && !failed() && ctx.obs.load.as_ref().is_none_or(is_countable) {
        faster.extend(churn::findings(ctx, stations));
    }
    let mut taken = if is_choked || is_rejecting { Vec::new() } else { taken::findings(ctx, stations) };
    if !is_choked && !failed() && !is_rejecting {
        for found in from_profile::findings(ctx, stations, &taken) {
            let place = taken.iter().position(|taken| taken.finding.at == found.finding.at && taken.gain > found.gain);
            match place.filter(|_| found.is_cause) {
                Some(place) => taken.insert(place + 1, found),
                None => faster.extend([(found.finding, found.is_cause)]),
            }
        }
        faster.extend(port_search::findings(ctx, findings));
        // Threads that wait for each other's locks have no use for more cores.
        let lock_takes_most = |finding: &Finding| faster.other.iter().any(|other| from_profile::is_mostly_lock(other, finding));
        let threads: Vec<(Finding, bool)> =
            single_core::findings(ctx, stations).into_iter().filter(|(found, _)| !lock_takes_most(found)).collect();
        faster.extend(threads);
    }
    for found in &mut taken {
        taken::tell_own_work(ctx, &mut found.finding, &faster.wasted);
    }
    faster.extend(taken.into_iter().map(|found| (found.finding, found.is_cause)));
    if !can_rise(ctx, stations) {
        faster.other.append(&mut faster.wasted);
    }
    // Whatever else is wrong, the reader must know that the busy share of these cores says nothing about load.
    faster.other.extend(polling::findings(ctx, stations));
    faster
}

impl Faster {
    fn extend(&mut self, found: impl IntoIterator<Item = (Finding, bool)>) {
        for (finding, is_wasted) in found {
            if is_wasted { &mut self.wasted } else { &mut self.other }.push(finding);
        }
    }
}

/// True if less work for the cores means more throughput: not if everything offered was answered, and not behind a full link.
fn can_rise(ctx: &Context<'_>, stations: &[StationReading]) -> bool {
    let wants_more = ctx.obs.load.as_ref().is_none_or(LoadResult::wants_more);
    let is_full = |reading: &StationReading| reading.station == StationId::LINK && reading.state == StationState::Saturated;
    wants_more && !stations.iter().any(is_full)
}

/// True if most requests fail at once: by a reset, a refusal, a close or a wrong answer. Whoever lacks cores lets them wait. What only looks like answers with an error counts too: it
/// makes no cause, and takes one away.
fn are_mostly_rejected(ctx: &Context<'_>) -> bool {
    let (rejected, requests) = match &ctx.obs.load {
        Some(load) => {
            let errors = load.errors;
            let waited = errors.connect_timeout + errors.response_timeout + errors.never_sent;
            (load.requests.saturating_sub(load.good).saturating_sub(waited), load.requests)
        }
        None => match Statuses::of(ctx).or_else(|| Statuses::perhaps(ctx)) {
            Some(seen) => (seen.failed(), seen.requests),
            None => return false,
        },
    };
    2 * rejected > requests
}

fn hardly_failed(load: &LoadResult) -> bool {
    !Cost::of_requests(load.requests.saturating_sub(load.good), load.requests).hurts()
}
