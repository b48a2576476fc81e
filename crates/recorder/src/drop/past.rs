//! The bounds of what a server did before: what is beyond them, by more than the rule of harm, is worse.

use super::Kind;
use super::block::{REQUESTS_MIN, SECONDS_MAX, Served};

/// So many blocks in a row must be worse than the past. If nothing changed, the chance that the newest 4 of 104 blocks are the 4 worst is one in 4.6 million.
pub(super) const WORSE_BLOCKS: usize = 4;
/// Blocks of the past that are needed.
pub(super) const PAST_MIN: usize = 30;
/// The share of past blocks that may have been as bad: bursts and reloads are part of the past, and no measure of its noise.
const OUTLIERS: f64 = 0.02;
/// Harm, as the judge defines it: goodput would be a tenth higher without it,
const HARM_TIME: f64 = 1.1;
/// or a hundredth of the requests suffer.
const HARM_SHARE: f64 = 0.01;

/// A larger share of failures is bad whatever was before: five hundredths are beyond each objective for availability, and no reload lasts that long.
const BAD_SHARE_MAX: f64 = 0.05;
/// Losses a second that are bad where answers were not counted: thirty in the longest blocks that are judged.
const LOST_PER_S_MIN: f64 = REQUESTS_MIN / (WORSE_BLOCKS as f64 * SECONDS_MAX as f64);

/// In which ways a block is bad whatever was before.
pub(super) fn is_bad(kind: Kind, block: &Served) -> bool {
    match kind {
        Kind::Losses => match block.bad_share {
            Some(share) => share > BAD_SHARE_MAX,
            None => block.lost_per_s.is_some_and(|lost| lost >= LOST_PER_S_MIN),
        },
        Kind::Full => block.is_full,
        Kind::Gone | Kind::Slower => false,
    }
}

/// The bounds of the past's noise.
pub(super) struct Past {
    response_s: Option<f64>,
    bad_share: Option<f64>,
    rate_rps: Option<f64>,
    lost_per_s: Option<f64>,
    has_traffic: bool,
    /// True if something being full is part of it.
    is_often_full: bool,
}

impl Past {
    pub(super) fn of(blocks: impl Iterator<Item = Served>) -> Self {
        let blocks: Vec<Served> = blocks.collect();
        let high = |of: &dyn Fn(&Served) -> Option<f64>| {
            let mut values: Vec<f64> = blocks.iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            let outliers = (values.len() as f64 * OUTLIERS) as usize;
            // Few values tell no bound.
            (values.len() >= PAST_MIN).then(|| values[values.len() - 1 - outliers])
        };
        let with_traffic = blocks.iter().filter(|block| block.has_traffic).count();
        Self {
            response_s: high(&|block| block.response_s.map(|(_, most)| most)),
            bad_share: high(&|block| block.bad_share),
            rate_rps: high(&|block| block.rate_rps),
            lost_per_s: high(&|block| block.lost_per_s),
            has_traffic: 2 * with_traffic > blocks.len(),
            is_often_full: blocks.iter().filter(|block| block.is_full).count() as f64 > OUTLIERS * blocks.len() as f64,
        }
    }

    /// In which ways all these blocks are worse.
    pub(super) fn exceeded(&self, blocks: &[Served]) -> Vec<Kind> {
        let all = |kind: &Kind| blocks.iter().all(|block| self.is_exceeded(*kind, block));
        [Kind::Gone, Kind::Losses, Kind::Full, Kind::Slower].into_iter().filter(all).collect()
    }

    pub(super) fn is_exceeded(&self, kind: Kind, block: &Served) -> bool {
        let is_more = |value: Option<f64>, bound: Option<f64>, by: &dyn Fn(f64) -> f64| {
            value.zip(bound).is_some_and(|(value, bound)| value > by(bound))
        };
        match kind {
            Kind::Gone => self.has_traffic && block.is_gone,
            Kind::Losses => match block.bad_share {
                Some(_) if self.bad_share.is_some() => is_more(block.bad_share, self.bad_share, &|bound| bound + HARM_SHARE),
                // How many were answered is not known, now or before: then losses are compared with losses.
                _ => is_more(block.lost_per_s, self.lost_per_s, &|bound| {
                    bound * HARM_TIME + LOST_PER_S_MIN.max(HARM_SHARE * self.rate_rps.unwrap_or(0.0))
                }),
            },
            Kind::Full => block.is_full && !self.is_often_full,
            // More requests than ever take longer because they are more.
            Kind::Slower => {
                is_more(block.response_s.map(|(least, _)| least), self.response_s, &|bound| bound * HARM_TIME)
                    && !is_more(block.rate_rps, self.rate_rps, &|bound| bound * HARM_TIME)
            }
        }
    }
}
