//! What could be faster though no station holds a server back but its cores.
//!
//! CPU time that is **wasted** is a cause like any other: without it throughput would rise beyond noise, and what does away with it takes nothing from anybody
//! (connections to a server behind that are not kept, scripts that are compiled for each request). A trade, or what the clients do, is no cause: it is reported,
//! and tried only where something else was mended before.

mod churn;
mod debug_log;
mod from_profile;
mod handshakes;
mod polling;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::judge::finding::Finding;
use crate::judge::id::StationId;
use crate::judge::station::StationReading;
use crate::observation::load::LoadResult;
use crate::output::report::{Role, StationState};

/// What could be faster.
#[derive(Default)]
pub(crate) struct Faster {
    /// Causes: the server could do without it.
    pub(crate) wasted: Vec<Finding>,
    /// No causes.
    pub(crate) other: Vec<Finding>,
}

/// Of a server that nothing holds back but its cores.
pub(crate) fn faster(ctx: &Context<'_>, stations: &[StationReading], findings: &[Finding]) -> Faster {
    let is_choked = findings.iter().any(|finding| finding.role == Role::Cause);
    let failed = || ctx.failed_share().is_some_and(|share| Cost::share_of_requests(share).hurts());
    let mut faster = Faster::default();
    if let Some(load) = ctx.obs.load.as_ref().filter(|load| !is_choked && ctx.can_divide_by_good() && hardly_failed(load)) {
        faster.extend(churn::findings(ctx, stations, load));
    }
    if !is_choked && !failed() {
        faster.extend(from_profile::findings(ctx, stations));
    }
    if !can_rise(ctx, stations) {
        faster.other.append(&mut faster.wasted);
    }
    // Whatever else is wrong: the reader must know that the figures of these cores show no load.
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

/// True where less work for the cores is more throughput: not where all that was offered was answered, and not behind a full link.
fn can_rise(ctx: &Context<'_>, stations: &[StationReading]) -> bool {
    let wants_more = ctx.obs.load.as_ref().is_none_or(LoadResult::wants_more);
    let is_full = |reading: &StationReading| reading.station == StationId::LINK && reading.state == StationState::Saturated;
    wants_more && !stations.iter().any(is_full)
}

fn hardly_failed(load: &LoadResult) -> bool {
    !Cost::of_requests(load.requests.saturating_sub(load.good), load.requests).hurts()
}
