//! Looks at an experiment while it runs, planned so that all of them together have the false alarm rate that one look would have (K. Lan, D. DeMets, 1983).
//!
//! Who tests after each few pairs and ends at the first significant result finds a difference between equal variants far more often than in 5 % of the
//! experiments. So each look has a stricter level of its own. By the look at `n` of `most` pairs, `alpha * (n / most)^3` of the false alarms is spent (the
//! power family of K. Kim and D. DeMets, 1987, with exponent 3). Why this one: the function after O'Brien and Fleming spends less than 1e-6 on a look at 6 of
//! 40 pairs, which no exact test of so few pairs can use; the function after Pocock spends so much early that the last look of five has a level of 0.017
//! instead of 0.05. With exponent 3, a look at 11 of 40 pairs is possible, and the last look of five keeps a level of 0.041.
//!
//! What that is worth, in experiments with equal variants (`tests/it/calibration.rs`): the share, in percent, in which a difference is found. The noise is
//! normal, Student's t with three degrees of freedom, a drift that both variants share, and one in ten trials 30 % lower. The right columns are the 95 %
//! percentile bootstrap of the mean for normal noise: once at the end, at the same looks, and after every second pair from the sixth.
//!
//! | pairs at the most | normal | heavy tails | drift | outliers | bootstrap once | at the same looks | every second pair |
//! |---|---|---|---|---|---|---|---|
//! | 8 | 4.7 | 4.8 | 5.5 | 4.5 | 10.0 | 13.7 | 17.0 |
//! | 16 | 5.8 | 5.1 | 5.1 | 5.9 | 9.0 | 15.7 | 31.5 |
//! | 40 | 4.6 | 5.1 | 4.8 | 4.6 | 5.9 | 18.4 | 36.0 |

use crate::normal::{density, quantile_above, tail};
use crate::signed_rank::{attained, pairs_needed};

/// The exponent of the spending function.
const SPENDING_EXPONENT: i32 = 3;

/// Each look is at this many times the pairs of the one before.
const GROWTH: f64 = 1.5;

/// The walk is followed as far as so many of its standard deviations where no boundary ends it: what is beyond has a chance below 1e-14.
const FARTHEST: f64 = 8.0;

/// Steps of the integral in a standard deviation of an increment of the walk. Simpson's rule with six of them is right to about 1e-7.
const STEPS_PER_DEVIATION: f64 = 6.0;

/// Steps of the integral at the most, and at the least.
const STEPS: (usize, usize) = (200, 2_000);

/// The numbers of pairs at which an experiment is looked at, and the level of each look. The same plan gives the same looks, so an experiment that is resumed
/// continues with those that it began with.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    at: Vec<usize>,
    levels: Vec<f64>,
    alpha: f64,
}

impl Looks {
    /// Looks from `first` pairs (or the first number of pairs at which the level of a look can be reached) to `most`, each at about 1.5 times the pairs of
    /// the one before, with a false alarm rate of `alpha` (two-sided) over all of them. There is always the look at `most`. `most` below 1 is 1. An
    /// `alpha` that is not between 0 and 1 is 0: no look finds anything.
    ///
    /// The levels come from the recursion of P. Armitage, C. McPherson and B. Rowe (1969) for a normal walk. The exact test has only certain levels; what one
    /// look cannot use of its share is left to the next.
    pub fn plan(first: usize, most: usize, alpha: f64) -> Looks {
        let most = most.max(1);
        let alpha = if alpha > 0.0 && alpha < 1.0 { alpha } else { 0.0 };
        let possible = |pairs: &usize| pairs_needed(spent(*pairs, most, alpha)) <= *pairs;
        let mut at = Vec::new();
        let mut next = if alpha > 0.0 { (first.max(1)..most).find(possible) } else { None };
        while let Some(pairs) = next.filter(|pairs| *pairs < most) {
            at.push(pairs);
            next = Some((pairs as f64 * GROWTH).round().max(pairs as f64 + 1.0) as usize);
        }
        // A look shortly before the last would cost level and save little time.
        if at.len() > 1 && at[at.len() - 1] as f64 * (1.0 + GROWTH) / 2.0 > most as f64 {
            at.pop();
        }
        at.push(most);
        let levels = levels(&at, most, alpha);
        Looks { at, levels, alpha }
    }

    /// The numbers of pairs at which one looks, in ascending order. It is never empty.
    pub fn at(&self) -> &[usize] {
        &self.at
    }

    /// The two-sided level of the look with this index (from 0) in [`Looks::at`]: a difference is found if [`crate::signed_rank::difference`] with it
    /// excludes zero. The intervals of all looks together include the true difference with the chance `1 - alpha` (the repeated confidence intervals of C.
    /// Jennison and B. Turnbull, 1989). The estimate of an experiment that ended early is rather too far from zero. 0 for an index that is not a look.
    pub fn level(&self, look: usize) -> f64 {
        self.levels.get(look).copied().unwrap_or(0.0)
    }

    /// The level of a last look at `pairs` pairs, if the experiment ends there because its time ran out: all that the looks at fewer pairs left. The reason for
    /// the end must not be what the pairs show. It may be at a planned look that found nothing. More pairs than planned count as those planned.
    pub fn level_at_end(&self, pairs: usize) -> f64 {
        let last = self.at[self.at.len() - 1];
        let pairs = pairs.clamp(1, last);
        let mut walk = Walk::start();
        for (before, level) in self.at.iter().zip(&self.levels).take_while(|(before, _)| **before < pairs) {
            walk.look(*before, usable(*before, *level));
        }
        walk.level_for(pairs, self.alpha)
    }
}

/// The false alarms spent by the look at `pairs` of `most`.
fn spent(pairs: usize, most: usize, alpha: f64) -> f64 {
    alpha * (pairs as f64 / most as f64).powi(SPENDING_EXPONENT)
}

/// The part of a level that the exact test can use with so many pairs.
fn usable(pairs: usize, level: f64) -> f64 {
    attained(pairs, level)
}

fn levels(at: &[usize], most: usize, alpha: f64) -> Vec<f64> {
    let mut walk = Walk::start();
    at.iter()
        .map(|&pairs| {
            let level = walk.level_for(pairs, spent(pairs, most, alpha));
            if pairs < most {
                walk.look(pairs, usable(pairs, level));
            }
            level
        })
        .collect()
}

/// A normal walk without drift: the sum of `n` values of variance 1, of which is known how likely it is where without having left at a look.
struct Walk {
    pairs: f64,
    /// Points with equal distances, symmetric about zero, and the density times the weight of Simpson's rule at each. None at the start, where it is at zero.
    density: Option<Vec<(f64, f64)>>,
    /// The chance that it left at a look so far.
    left: f64,
}

impl Walk {
    fn start() -> Walk {
        Walk { pairs: 0.0, density: None, left: 0.0 }
    }

    /// The chance that the walk first leaves at `pairs`, beyond `boundary` on either side.
    fn leaves(&self, pairs: f64, boundary: f64) -> f64 {
        let deviation = (pairs - self.pairs).sqrt();
        let beyond = |from: f64| tail((boundary - from) / deviation) + tail((boundary + from) / deviation);
        match &self.density {
            None => beyond(0.0),
            Some(points) => points.iter().map(|(from, weight)| weight * beyond(*from)).sum(),
        }
    }

    /// The two-sided level of a look at `pairs` after which the walk has left with the chance `target` in all; 0 if it has already.
    fn level_for(&self, pairs: usize, target: f64) -> f64 {
        if target - self.left <= 0.0 {
            return 0.0;
        }
        let (pairs, scale) = (pairs as f64, (pairs as f64).sqrt());
        let (mut low, mut high) = (0.0, FARTHEST * 2.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if self.left + self.leaves(pairs, middle * scale) > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        2.0 * tail(high)
    }

    /// Goes on to a look at `pairs`, of this two-sided level (0: nothing leaves).
    fn look(&mut self, pairs: usize, level: f64) {
        let pairs = pairs as f64;
        let boundary = quantile_above(level / 2.0).min(FARTHEST) * pairs.sqrt();
        if level > 0.0 {
            self.left += self.leaves(pairs, boundary);
        }
        let deviation = (pairs - self.pairs).sqrt();
        let steps = ((2.0 * boundary / deviation * STEPS_PER_DEVIATION) as usize).clamp(STEPS.0, STEPS.1).next_multiple_of(2);
        let width = 2.0 * boundary / steps as f64;
        let arrives = |to: f64| match &self.density {
            None => density(to / deviation) / deviation,
            Some(points) => points.iter().map(|(from, weight)| weight * density((to - from) / deviation) / deviation).sum(),
        };
        let points = (0..=steps)
            .map(|step| {
                let to = width * step as f64 - boundary;
                let simpson = if step == 0 || step == steps { 1.0 } else { 2.0 + 2.0 * (step % 2) as f64 };
                (to, arrives(to) * simpson * width / 3.0)
            })
            .collect();
        self.density = Some(points);
        self.pairs = pairs;
    }
}

#[cfg(test)]
mod tests;
