//! Where the CPU time went, in a few lines: each tier by layer, the bounds of a gain, and the quality of the samples.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, ProfileTier};

use super::Phrases;

/// Layers listed for a tier, and the least share of a listed one.
const LAYERS_MAX: usize = 4;
const LAYER_SHARE_MIN: f64 = 0.03;
/// Tiers and bounds that are listed; the JSON has all.
const TIERS_MAX: usize = 4;
const BOUNDS_MAX: usize = 3;
/// A tier is listed from this use on, cores.
const CORES_MIN: f64 = 0.01;

/// The lines; none if no profile was taken.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<String> {
    let Some(profile) = &diagnosis.profile else { return Vec::new() };
    let tiers = profile.tiers.iter().filter(|tier| tier.cores >= CORES_MIN).take(TIERS_MAX).map(|listed| tier(listed, phrases));
    let bounds = profile.bounds.iter().take(BOUNDS_MAX).map(|bound| bound.text.clone());
    tiers.chain(bounds).chain(profile.no_bound.clone()).chain([profile.quality.clone()]).collect()
}

fn tier(tier: &ProfileTier, phrases: Phrases<'_>) -> String {
    let listed = tier.layers.iter().take(LAYERS_MAX).filter(|layer| layer.share >= LAYER_SHARE_MIN);
    let layer = |title: &str, share: f64| {
        phrases.say(&Message::new("report-profile-layer").with("title", title).with("share", phrases.percent(share)))
    };
    let layers: Vec<String> = listed.map(|listed| layer(&listed.title, listed.share)).collect();
    let args = |id: &'static str| {
        Message::new(id).with("tier", tier.tier.as_str()).with("cores", format!("{:.2}", tier.cores)).with("layers", layers.join(", "))
    };
    phrases.say(&match tier.cpu_us_per_request {
        Some(us) => args("report-profile-tier-cost").with("duration", phrases.duration_us(us)),
        None => args("report-profile-tier"),
    })
}
