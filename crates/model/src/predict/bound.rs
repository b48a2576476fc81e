//! Upper bound of the gain from lifting a station without a known ceiling: the time of requests elsewhere remains.
//!
//! In a closed loop the number of requests under way is fixed (Little 1961). If `L` of `N` requests are outside the lifted station, an answer takes at least
//! `L / N` of its present time, and at most `N / L` times as many pass (Amdahl 1967). This is a bound and no prediction.

use super::{Lift, Scene, expected, refusal, remaining};
use crate::judge::finding::Finding;
use crate::judge::station::StationReading;
use crate::observation::load::Loop;

/// Upper bound of the answers a second, of any kind. `None` if requests are nowhere else, or if other faults hide how long they would be. Also `None` if
/// requests become cheaper: work that is saved also saves waiting, waking and scheduling, and the gain was larger than such a bound allows
/// (docs/measuring.md).
pub(super) fn at_most(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, lift: Lift) -> Option<f64> {
    let load = refusal::measured(scene).ok()?;
    refusal::failing(scene, finding, placed, load).ok()?;
    if matches!(load.shape, Loop::Open { .. }) || matches!(lift, Lift::Cost) {
        return None;
    }
    let [tier] = placed.owner.tiers() else { return None };
    let account = scene.ctx.account()?;
    let left = account.remaining_without(scene.ctx, tier.0).low;
    let by_time = (left > 0.0).then(|| load.throughput_rps() * account.under_way() / left)?;
    let others = remaining(scene, placed, None);
    // A ceiling that no prediction may rely on is no bound either.
    let are_known = !others.is_empty() && refusal::untold(scene, None, &others, expected(&others, load).1, load).is_ok();
    let lowest = if are_known { others.iter().map(|other| other.ceiling.high).fold(by_time, f64::min) } else { by_time };
    Some(lowest).filter(|most| *most > load.throughput_rps())
}
