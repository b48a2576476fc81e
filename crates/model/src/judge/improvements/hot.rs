//! A kind of work that takes much of the limiting CPU time: what it is judged by, and what the judgement says.

use crate::facts::Context;
use crate::facts::cores::Limiting;
use crate::facts::harm::{NOISE_SHARE, gain_of};
use crate::facts::path::Tier;
use crate::facts::profile::{ProfileShare, Profiled};
use crate::judge::finding::Evidence;
use crate::judge::id::FindingId;
use crate::observation::ProfilePart;
use crate::output::report::Confidence;

/// The layer of all TLS work.
pub(super) const TLS: &str = "tls";

/// A kind of work that could be reduced.
pub(super) struct Hot {
    /// The finding.
    pub(super) id: FindingId,
    /// The layer, or an aspect across layers.
    pub(super) what: &'static str,
    /// The layer of the function that is named as evidence, if it tells more than the above.
    pub(super) layer: Option<&'static str>,
    /// The largest share of it that could be saved.
    pub(super) avoidable: f64,
    /// True if it is as good a reason as other programs on the same cores, where servers lack these: not if some of such work always remains, and nobody knows how much.
    pub(super) is_reason: bool,
    /// Judges whose doing it is, by its share of the limiting time; `None` if it is not the kind of work that the finding is about.
    pub(super) judge: fn(&Sight<'_, '_>, &Hot, ProfileShare) -> Option<WorkJudgement>,
    pub(super) title: &'static str,
    pub(super) explanation: &'static str,
}

/// What a kind of work is judged by.
pub(super) struct Sight<'s, 'a> {
    pub(super) ctx: &'s Context<'a>,
    pub(super) profiled: &'s Profiled<'a>,
    pub(super) limiting: &'s Limiting<'s, 'a>,
    pub(super) tier: &'s Tier,
}

impl Sight<'_, '_> {
    /// The share of the limiting time that this tier spends on the wanted parts.
    pub(super) fn share(&self, wanted: impl Fn(&ProfilePart) -> bool) -> Option<ProfileShare> {
        self.profiled.share(self.limiting, |part| self.tier.pids.contains(&part.pid) && wanted(part))
    }
}

/// The cost of a kind of work, and whose doing it is.
pub(super) struct WorkJudgement {
    /// Its share of the time that limits.
    pub(super) share: ProfileShare,
    /// The part of it that could go away.
    pub(super) could_go: ProfileShare,
    /// True if a known remedy removes it and costs nobody anything: not if it is a trade-off, a matter of the program, or the clients' doing.
    pub(super) is_wasted: bool,
    /// True if it is as good a reason as other programs on the same cores.
    pub(super) is_reason: bool,
    /// The highest confidence that this allows.
    pub(super) confidence: Confidence,
    pub(super) title: &'static str,
    pub(super) explanation: &'static str,
    /// The evidence besides the share.
    pub(super) proofs: Vec<Evidence>,
}

impl WorkJudgement {
    /// A trade-off.
    pub(super) fn of(hot: &Hot, share: ProfileShare) -> Self {
        let could_go = share.times(hot.avoidable);
        let confidence = Confidence::High;
        Self {
            share,
            could_go,
            is_wasted: false,
            is_reason: hot.is_reason,
            confidence,
            title: hot.title,
            explanation: hot.explanation,
            proofs: Vec::new(),
        }
    }

    /// True if even the smallest part that could go away would give more than noise.
    pub(super) fn is_sure(&self) -> bool {
        gain_of(self.could_go.low) >= NOISE_SHARE
    }
}
