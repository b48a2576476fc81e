//! Counts values by size, exact to about three per cent, in a few kilobytes.

use serde::Serialize;

/// Buckets per power of two.
const STEPS: u64 = 16;
const STEPS_LOG2: u32 = 4;

/// A distribution of non-negative numbers. Takes at most 976 counters of eight bytes, and no more than its largest number needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// Quantiles of a distribution, in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Count of numbers.
    pub count: u64,
    /// Mean, exact.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest, exact.
    pub max: f64,
}

impl Histogram {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        let place = place(number);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.sum += u128::from(number);
        self.max = self.max.max(number);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The count of numbers.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the numbers.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The number that this share of all numbers does not exceed; `None` if empty.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && *count > 0 {
                return Some(middle(place).min(self.max));
            }
        }
        None
    }

    /// The usual quantiles, each multiplied by `unit`; `None` if empty.
    pub fn quantiles(&self, unit: f64) -> Option<Quantiles> {
        let at = |share| self.quantile(share).map(|number| number as f64 * unit);
        Some(Quantiles {
            count: self.count,
            mean: self.mean()? * unit,
            p50: at(0.5)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            max: self.max as f64 * unit,
        })
    }
}

fn place(number: u64) -> usize {
    if number < STEPS {
        return number as usize;
    }
    let power = 63 - number.leading_zeros();
    let step = (number >> (power - STEPS_LOG2)) - STEPS;
    (u64::from(power - STEPS_LOG2 + 1) * STEPS + step) as usize
}

/// The middle of a bucket.
fn middle(place: usize) -> u64 {
    let place = place as u64;
    if place < STEPS {
        return place;
    }
    let shift = place / STEPS - 1;
    let low = (STEPS + place % STEPS) << shift;
    low + ((1_u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_are_exact_and_nothing_has_no_quantile() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean()), (None, None));
        for number in [1, 2, 3, 4, 15] {
            histogram.add(number);
        }
        assert_eq!((histogram.quantile(0.0), histogram.quantile(0.5), histogram.quantile(1.0)), (Some(1), Some(3), Some(15)));
        assert_eq!(histogram.mean(), Some(5.0));
    }

    #[test]
    fn two_are_merged_as_if_they_had_been_one() {
        let (mut whole, mut parts) = (Histogram::default(), [Histogram::default(), Histogram::default()]);
        for number in 0..5000_u64 {
            whole.add(number * 7);
            parts[usize::from(number > 100)].add(number * 7);
        }
        let [mut one, other] = parts;
        one.merge(&other);
        assert_eq!(one, whole);
    }

    proptest! {
        #[test]
        fn any_number_is_found_again_within_its_width(number in any::<u64>()) {
            let mut histogram = Histogram::default();
            histogram.add(number);
            histogram.add(u64::MAX);
            let found = histogram.quantile(0.5).unwrap();
            prop_assert!(found.abs_diff(number) as f64 <= number as f64 * 0.033, "{number} {found}");
            prop_assert!(histogram.counts.len() <= 976);
        }
    }
}
