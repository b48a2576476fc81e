//! The exact Wilcoxon signed-rank test of paired differences, with its estimate and interval. It assumes only that the differences are independent and that
//! their distribution is symmetric, which a comparison of two like variants has by construction.

use crate::normal;
use crate::selection::kth;

/// Up to so many pairs the null distribution is counted exactly (some 30 ms at the most); beyond, the normal approximation differs from it by less than 2e-4.
const EXACT_PAIRS: usize = 500;

/// What paired differences say of the true one, in the unit of the differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The Hodges-Lehmann estimate: the median of the Walsh averages, which are the means of any two differences (and of each with itself).
    pub estimate: f64,
    /// The lower end of the interval; minus infinity if there are too few pairs for the level.
    pub low: f64,
    /// The upper end of the interval; infinity if there are too few pairs for the level.
    pub high: f64,
    /// The two-sided exact p-value of no difference: the smallest `alpha` of which the interval excludes zero, and 1 if there is none.
    pub p: f64,
}

impl Difference {
    /// Whether the interval excludes zero. It is the same as `p <= alpha`.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The estimate, the interval of confidence `1 - alpha` and the p-value of these paired differences. None if there are none, one of them is not finite, or
/// `alpha` is not between 0 and 1.
///
/// The interval is the test turned round (J. Hodges, E. Lehmann, 1963; M. Hollander, D. Wolfe, "Nonparametric Statistical Methods", 3.3): its ends are order
/// statistics of the Walsh averages, and the interval includes its ends. Up to 500 pairs the null distribution is exact, beyond it is the normal
/// approximation with continuity correction.
///
/// Zeros and ties: each difference counts, none is dropped. A Walsh average of exactly zero counts for neither side. The false alarm rate stays at most
/// `alpha` whatever the rounding: if the ties are broken at random, the result is an exact test, and it finds a difference in every case where this one does.
/// Many zeros cost power only.
pub fn difference(differences: &[f64], alpha: f64) -> Option<Difference> {
    if differences.is_empty() || differences.iter().any(|value| !value.is_finite()) || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let walsh = Walsh::new(differences);
    let null = Null::new(differences.len());
    let (low, high) = walsh.ends(null.rank_outside(alpha));
    let (not_above, below) = (walsh.count_at_most(0.0), walsh.count_below_zero());
    let against = not_above.min(walsh.count() - below);
    Some(Difference { estimate: walsh.median(), low, high, p: (2.0 * null.at_most(against)).min(1.0) })
}

/// The least number of pairs that can show a difference at this two-sided level: with fewer, even differences of the same sign have a p-value above it. 6 for
/// 0.05. `usize::MAX` if `alpha` is not positive.
pub fn pairs_needed(alpha: f64) -> usize {
    if alpha.is_nan() || alpha <= 0.0 {
        return usize::MAX;
    }
    let mut pairs = 1;
    while least_p(pairs) > alpha {
        pairs += 1;
    }
    pairs
}

/// The p-value of so many differences of the same sign.
fn least_p(pairs: usize) -> f64 {
    2f64.powi(1 - i32::try_from(pairs).unwrap_or(i32::MAX))
}

/// The largest two-sided level not above `alpha` that the test can have with so many pairs; 0 if there is none.
pub(crate) fn attained(pairs: usize, alpha: f64) -> f64 {
    let null = Null::new(pairs);
    match null.rank_outside(alpha) {
        0 => 0.0,
        rank => 2.0 * null.at_most(rank - 1),
    }
}

/// The ends of the intervals of experiments with the same number of pairs and the same level.
pub(crate) struct Ends {
    rank: u64,
}

impl Ends {
    pub(crate) fn new(pairs: usize, alpha: f64) -> Self {
        Ends { rank: Null::new(pairs).rank_outside(alpha) }
    }

    /// The interval of these differences, which must be finite and of that number.
    pub(crate) fn of(&self, differences: &[f64]) -> (f64, f64) {
        Walsh::new(differences).ends(self.rank)
    }
}

/// The differences in order, which stand for all their n(n+1)/2 Walsh averages.
struct Walsh {
    sorted: Vec<f64>,
}

impl Walsh {
    /// The values must be finite.
    fn new(values: &[f64]) -> Self {
        // Adding zero makes a negative zero positive.
        let mut sorted: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        Walsh { sorted }
    }

    fn count(&self) -> u64 {
        let n = self.sorted.len() as u64;
        n * (n + 1) / 2
    }

    /// How many averages the order of the values puts before those that `is_beyond` is true of.
    fn count_before(&self, is_beyond: impl Fn(f64) -> bool) -> u64 {
        let (mut count, mut end) = (0, self.sorted.len());
        for (at, value) in self.sorted.iter().enumerate() {
            // Halves are added, not sums halved: the sum of two large values is not finite.
            while end > at && is_beyond(value / 2.0 + self.sorted[end - 1] / 2.0) {
                end -= 1;
            }
            if end <= at {
                break;
            }
            count += (end - at) as u64;
        }
        count
    }

    fn count_at_most(&self, limit: f64) -> u64 {
        self.count_before(|average| average > limit)
    }

    fn count_below_zero(&self) -> u64 {
        self.count_before(|average| average >= 0.0)
    }

    /// The k-th smallest average, from 1.
    fn kth(&self, k: u64) -> f64 {
        kth(self.sorted[0], self.sorted[self.sorted.len() - 1], k, |limit| self.count_at_most(limit))
    }

    /// The averages with this rank from below and from above; no ends if it is 0.
    fn ends(&self, rank: u64) -> (f64, f64) {
        if rank == 0 { (f64::NEG_INFINITY, f64::INFINITY) } else { (self.kth(rank), self.kth(self.count() + 1 - rank)) }
    }

    fn median(&self) -> f64 {
        let count = self.count();
        self.kth(count.div_ceil(2)) / 2.0 + self.kth(count / 2 + 1) / 2.0
    }
}

/// The distribution of the rank sum of one sign if there is no difference.
enum Null {
    /// The chance of at most so much, by rank sum, as far as the middle.
    Exact(Vec<f64>),
    /// The mean and the standard deviation.
    Normal(f64, f64),
}

impl Null {
    fn new(pairs: usize) -> Self {
        let n = pairs as f64;
        if pairs > EXACT_PAIRS {
            return Null::Normal(n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
        }
        // Each rank is in the sum or not, with the same chance. The distribution is symmetric: its lower half suffices.
        let half = pairs * (pairs + 1) / 4;
        let mut chances = vec![0.0; half + 1];
        chances[0] = 1.0;
        let mut reached = 0;
        for rank in 1..=pairs {
            reached = (reached + rank).min(half);
            for sum in (0..=reached).rev() {
                let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
                chances[sum] = (chances[sum] + with) / 2.0;
            }
        }
        let mut below = 0.0;
        for chance in &mut chances {
            below += *chance;
            *chance = below;
        }
        Null::Exact(chances)
    }

    /// The chance of a rank sum of at most so much; right in the lower half, and at least a half above.
    fn at_most(&self, sum: u64) -> f64 {
        match self {
            Null::Exact(below) => usize::try_from(sum).ok().and_then(|sum| below.get(sum)).copied().unwrap_or(1.0),
            Null::Normal(mean, deviation) => normal::tail((mean - 0.5 - sum as f64) / deviation),
        }
    }

    /// The number of rank sums in each tail that together have at most the chance `alpha`: the rank of the lower end of the interval among the averages.
    fn rank_outside(&self, alpha: f64) -> u64 {
        match self {
            Null::Exact(below) => below.iter().take_while(|chance| **chance * 2.0 <= alpha).count() as u64,
            Null::Normal(mean, deviation) => {
                let edge = (mean - 0.5 - deviation * normal::quantile_above(alpha / 2.0)).floor();
                if edge < 0.0 { 0 } else { edge as u64 + 1 }
            }
        }
    }
}

#[cfg(test)]
mod tests;
