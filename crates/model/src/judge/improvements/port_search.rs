//! The search for a free local port as a profile shows it, where the sockets do not show why it is long.

use crate::facts::Context;
use crate::facts::cores::limiting;
use crate::facts::harm::{NOISE_SHARE, gain_of};
use crate::facts::profile::{PORT_SEARCH, Profiled, is_of};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::Location;
use crate::output::message::Message;
use crate::output::profile::limit_name;
use crate::output::report::Confidence;

/// A finding for each tier whose limiting time goes into the search, beyond noise; always waste. `found`: what station `ephemeral-ports` and others found.
pub(super) fn findings(ctx: &Context<'_>, found: &[Finding]) -> Vec<(Finding, bool)> {
    let Some(profiled) = Profiled::of(ctx) else { return Vec::new() };
    let mut all = Vec::new();
    for limiting in &limiting(ctx) {
        for tier in limiting.tiers.iter().filter(|tier| !is_found(found, tier.id)) {
            let share = profiled.share(limiting, |part| tier.pids.contains(&part.pid) && is_of(part, PORT_SEARCH));
            let Some(share) = share.filter(|share| gain_of(share.low) >= NOISE_SHARE) else { continue };
            let args = |id: &'static str| {
                let message = Message::new(id).with("tier", tier.name.as_str()).with("share", share.value * 100.0);
                let message = message.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of);
                message.with("of", limit_name(limiting)).with("gain", gain_of(share.low) * 100.0)
            };
            let finding = Finding {
                confidence: Confidence::Medium,
                title: args("finding-port-search-sampled-title"),
                explanation: vec![args("finding-port-search-sampled-explanation")],
                evidence: vec![
                    Evidence::new(args("evidence-hot-share"), profiled.source(), Some(share.value)),
                    Evidence::new(args("evidence-port-search-gain"), "Amdahl 1967", Some(gain_of(share.low))),
                ],
                ..Finding::new(FindingId::TIME_WAIT_SEARCH, StationId::EPHEMERAL_PORTS, *tier, Location::in_netns(tier.netns))
            };
            all.push((finding, true));
        }
    }
    all
}

fn is_found(found: &[Finding], tier: crate::facts::TierId) -> bool {
    found.iter().any(|finding| finding.id == FindingId::TIME_WAIT_SEARCH && finding.owner.has(tier))
}
