//! What lifting a station gives at the most where no ceiling tells what it will give: the requests' time elsewhere stays.
//!
//! In a closed loop as many requests are under way whatever is gained (Little 1961). If of `N` of them `L` stand where nothing is lifted, an answer takes at
//! least `L / N` of the time that it takes now, and no more than `N / L` times as many get through (Amdahl 1967). It is a bound and no prediction.

use super::{Lift, Scene, expected, refusal, remaining};
use crate::judge::stations::StationReading;
use crate::observation::load::Loop;
use crate::output::report::Finding;

/// Answers a second, of whatever kind; nothing where requests do not stand elsewhere, or where other faults hide how long they would. Nothing either where
/// requests become cheaper: what is not done is not waited, woken and scheduled for, and more was gained than such a bound allows (docs/measuring.md).
pub(super) fn at_most(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, lift: Lift) -> Option<f64> {
    let load = refusal::measured(scene).ok()?;
    refusal::failing(scene, finding, placed, load).ok()?;
    if matches!(load.shape, Loop::Open { .. }) || matches!(lift, Lift::Cost) {
        return None;
    }
    let tier = scene.ctx.path.tiers.iter().position(|tier| tier.name == placed.station.tier)?;
    let account = scene.ctx.account()?;
    let left = account.left_without(scene.ctx, tier).low;
    let by_time = (left > 0.0).then(|| load.throughput_rps() * account.under_way() / left)?;
    let others = remaining(scene, placed, None);
    // A ceiling on which no prediction may rest is no bound either.
    let are_known = !others.is_empty() && refusal::untold(scene, None, &others, expected(&others, load).1, load).is_ok();
    let lowest = if are_known { others.iter().map(|other| other.ceiling.high).fold(by_time, f64::min) } else { by_time };
    Some(lowest).filter(|most| *most > load.throughput_rps())
}
