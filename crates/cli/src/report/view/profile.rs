//! Where the CPU time went, in few lines: how good the samples are, each tier by layer, and the most that there is to gain.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, ProfileTier};

use super::Phrases;

/// Layers of a tier that are told at most, and the least share of one that is.
const LAYERS_TOLD_MAX: usize = 4;
const LAYER_SHARE_MIN: f64 = 0.03;
/// Tiers and bounds that are told at most; the JSON has all.
const TIERS_TOLD_MAX: usize = 4;
const BOUNDS_TOLD_MAX: usize = 3;
/// The least that a tier must have run to be told, in cores.
const CORES_TOLD_MIN: f64 = 0.01;

/// The lines; none where no profile was taken.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<String> {
    let Some(profile) = &diagnosis.profile else { return Vec::new() };
    let tiers = profile.tiers.iter().filter(|tier| tier.cores >= CORES_TOLD_MIN).take(TIERS_TOLD_MAX).map(|told| tier(told, phrases));
    let bounds = profile.bounds.iter().take(BOUNDS_TOLD_MAX).map(|bound| bound.text.clone());
    tiers.chain(bounds).chain(profile.no_bound.clone()).chain([profile.quality.clone()]).collect()
}

fn tier(tier: &ProfileTier, phrases: Phrases<'_>) -> String {
    let told = tier.layers.iter().take(LAYERS_TOLD_MAX).filter(|layer| layer.share >= LAYER_SHARE_MIN);
    let layer = |title: &str, share: f64| {
        phrases.say(&Message::new("report-profile-layer").with("title", title).with("share", phrases.percent(share)))
    };
    let layers: Vec<String> = told.map(|told| layer(&told.title, told.share)).collect();
    let args = |id: &'static str| {
        Message::new(id).with("tier", tier.tier.as_str()).with("cores", format!("{:.2}", tier.cores)).with("layers", layers.join(", "))
    };
    phrases.say(&match tier.cpu_us_per_request {
        Some(us) => args("report-profile-tier-cost").with("duration", phrases.duration_us(us)),
        None => args("report-profile-tier"),
    })
}
