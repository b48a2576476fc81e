//! Counts of values in buckets whose width grows with the value, so that histograms of any spans can be added and percentiles of the sum are right. (The mean of
//! two percentiles is a percentile of nothing.)
//!
//! Values up to 255 have a bucket each. Above, each power of two is divided into 128 buckets, so a bucket's upper end is at most one part in 128 above any value in
//! it. This is the layout of HdrHistogram (G. Tene) with seven bits.

/// Bits of a value that a bucket keeps, besides the leading one.
const BITS: u32 = 7;
/// Leading bits of a value that a wide bucket keeps.
const COARSE_BITS: u32 = 5;
/// Buckets of a power of two.
const STEPS: u32 = 1 << BITS;
/// Number of buckets of all values.
pub const BUCKETS: u32 = (u64::BITS - BITS) * STEPS + STEPS;

/// The bucket of a value.
fn bucket(value: u64) -> u32 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    shift * STEPS + (value >> shift) as u32
}

/// The largest value with the same leading bits.
fn coarse(value: u64) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(COARSE_BITS);
    value | ((1 << shift) - 1)
}

/// The largest value of a bucket.
fn upper(bucket: u32) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let leading = u64::from(bucket - shift * STEPS);
    // Of the last bucket the next one would begin beyond 64 bits.
    (leading << shift) | ((1 << shift) - 1)
}

/// The smallest and the largest value of a bucket.
pub fn bounds(bucket: u16) -> (u64, u64) {
    let at = u32::from(bucket).min(BUCKETS - 1);
    (at.checked_sub(1).map_or(0, |before| upper(before) + 1), upper(at))
}

/// A histogram that is quick to add to: a count for each bucket between the smallest and the largest value so far, some ten kilobytes for durations from
/// a millisecond to a minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    first: u32,
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// Counts a value several times.
    pub fn add_times(&mut self, value: u64, times: u64) {
        *self.count_of(bucket(value)) += times;
        self.total += times;
        self.sum += u128::from(value) * u128::from(times);
        self.max = self.max.max(value);
    }

    /// The count of a bucket, which is made if there is none yet.
    fn count_of(&mut self, bucket: u32) -> &mut u64 {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = (self.first - bucket) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let at = (bucket - self.first) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        &mut self.counts[at]
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The buckets that are not empty. Small enough to keep many of them.
    pub fn counts(&self) -> Counts {
        let filled = self.counts.iter().zip(self.first..).filter(|(count, _)| **count > 0);
        Counts { buckets: filled.map(|(count, bucket)| (bucket as u16, *count)).collect(), sum: self.sum as f64, max: self.max }
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.sum, self.max) = (0, 0, 0);
    }
}

/// The filled buckets of a histogram, to keep and to add up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// Bucket and count, in the order of the buckets.
    buckets: Vec<(u16, u64)>,
    sum: f64,
    max: u64,
}

impl Counts {
    /// From its parts as [`Counts::parts`] gives them. `None` if they are not in order or cannot be: a kept file may be damaged.
    pub fn from_parts(buckets: Vec<(u16, u64)>, sum: f64, max: u64) -> Option<Self> {
        let in_order = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let are_counts = buckets.iter().all(|(at, count)| u32::from(*at) < BUCKETS && (1..=u64::MAX >> 16).contains(count));
        let holds_max = match buckets.last() {
            Some((last, _)) => (bucket(max)..=bucket(coarse(max))).contains(&u32::from(*last)),
            None => max == 0,
        };
        (in_order && are_counts && holds_max && sum.is_finite() && sum >= 0.0).then_some(Self { buckets, sum, max })
    }

    /// Counts a value several times in a wide bucket, so that many histograms have room: above 31 only the five leading bits decide, and a percentile is at most one part
    /// in 16 too high. Sum and largest value are exact.
    pub fn add_coarse(&mut self, value: u64, times: u64) {
        let at = bucket(coarse(value)) as u16;
        match self.buckets.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(times),
            Err(place) => self.buckets.insert(place, (at, times)),
        }
        self.sum += value as f64 * times as f64;
        self.max = self.max.max(value);
    }

    /// Bucket and count of all filled buckets, the sum of the values, and the largest one.
    pub fn parts(&self) -> (&[(u16, u64)], f64, u64) {
        (&self.buckets, self.sum, self.max)
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Sum of the values.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean of the values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum / self.total() as f64)
    }

    /// Adds those of another span.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len().max(other.buckets.len()));
        let (mut ours, mut theirs) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        loop {
            let next = match (ours.peek(), theirs.peek()) {
                (Some((ours_at, _)), Some((theirs_at, _))) => (*ours_at).min(*theirs_at),
                (Some((at, _)), None) | (None, Some((at, _))) => *at,
                (None, None) => break,
            };
            let take = |from: &mut std::iter::Peekable<std::slice::Iter<'_, (u16, u64)>>| {
                from.next_if(|(at, _)| *at == next).map_or(0, |(_, count)| *count)
            };
            let count = take(&mut ours).saturating_add(take(&mut theirs));
            merged.push((next, count));
        }
        self.buckets = merged;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The value that this share (0 to 1) of all values does not exceed: the upper end of its bucket, at most one part in 128 too high. `None` if there are none.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let total = self.total();
        let rank = ((total as f64 * share.clamp(0.0, 1.0)).ceil() as u64).clamp(1, total.max(1));
        let mut below = 0u64;
        let reached = self.buckets.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank
        });
        reached.map(|(at, _)| upper(u32::from(*at)).min(self.max))
    }

    /// Number of values up to this one, whole buckets.
    pub fn up_to(&self, value: u64) -> u64 {
        let last = bucket(value);
        self.buckets
            .iter()
            .filter(|(at, _)| u32::from(*at) <= last)
            .map(|(_, count)| count)
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Counts {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        histogram.counts()
    }

    proptest! {
        #[test]
        fn wide_buckets_are_few_and_at_most_a_sixteenth_too_high(values in prop::collection::vec(1_u64..10_000_000, 1..300)) {
            let mut counts = Counts::default();
            values.iter().for_each(|value| counts.add_coarse(*value, 1));
            let (buckets, sum, max) = counts.parts();
            prop_assert_eq!((sum, max), (values.iter().sum::<u64>() as f64, values.iter().copied().max().unwrap_or(0)));
            prop_assert_eq!(Counts::from_parts(buckets.to_vec(), sum, max), Some(counts.clone()));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for share in [0.5, 0.95] {
                let exact = sorted[((share * sorted.len() as f64).ceil() as usize).max(1) - 1];
                let told = counts.percentile(share).unwrap();
                prop_assert!(told >= exact && told as f64 <= exact as f64 * (1.0 + 1.0 / 16.0) * (1.0 + 1.0 / 128.0) + 1.0, "{} {}", told, exact);
            }
            prop_assert!(counts.buckets.len() <= 16 * 24);
        }
    }

    #[test]
    fn the_largest_value_has_a_wide_bucket() {
        let mut counts = Counts::default();
        counts.add_coarse(u64::MAX, 1);
        counts.add_coarse(0, u64::MAX);
        counts.add_coarse(0, 1);
        assert_eq!((counts.max(), counts.percentile(0.5), counts.percentile(1.0)), (u64::MAX, Some(0), Some(0)));
    }

    #[test]
    fn buckets_adjoin_and_cover_all_values() {
        for at in 0..BUCKETS - 1 {
            assert_eq!(bucket(upper(at)), at);
            assert_eq!(bucket(upper(at) + 1), at + 1);
        }
        assert_eq!((bucket(u64::MAX), upper(BUCKETS - 1)), (BUCKETS - 1, u64::MAX));
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let counts = of(&(1..=1000).map(|ms| ms * 1000).collect::<Vec<_>>());
        for (share, value) in [(0.0, 1_000), (0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let found = counts.percentile(share).unwrap();
            assert!((value..=value + value / 128 + 1).contains(&found), "{share}: {found}");
        }
        assert_eq!((counts.total(), counts.max(), counts.mean()), (1000, 1_000_000, Some(500_500.0)));
        assert_eq!((of(&[]).percentile(0.5), of(&[]).mean(), of(&[7]).percentile(0.5)), (None, None, Some(7)));
        assert_eq!((of(&[1, 2, 3]).up_to(2), of(&[]).up_to(9)), (2, 0));
    }

    #[test]
    fn what_was_cleared_counts_anew() {
        let mut histogram = Histogram::default();
        [5, 70_000].into_iter().for_each(|value| histogram.add(value));
        histogram.clear();
        assert!(histogram.counts().is_empty() && histogram.total() == 0);
        histogram.add_times(9, 3);
        assert_eq!(histogram.counts(), of(&[9, 9, 9]));
    }

    #[test]
    fn parts_that_cannot_be_are_refused() {
        let (buckets, sum, max) = of(&[1, 1, 900]).parts().clone_parts();
        assert!(Counts::from_parts(buckets.clone(), sum, max).is_some() && Counts::from_parts(Vec::new(), 0.0, 0).is_some());
        let mut swapped = buckets.clone();
        swapped.swap(0, 1);
        for (buckets, sum, max) in [
            (swapped, sum, max),
            (vec![(1, 0)], 0.0, 1),
            (vec![(u16::MAX, 1)], 1.0, u64::MAX),
            (buckets.clone(), f64::NAN, max),
            (buckets.clone(), -1.0, max),
            (buckets, sum, 7),
            (Vec::new(), 0.0, 3),
        ] {
            assert_eq!(Counts::from_parts(buckets, sum, max), None);
        }
    }

    trait CloneParts {
        fn clone_parts(self) -> (Vec<(u16, u64)>, f64, u64);
    }

    impl CloneParts for (&[(u16, u64)], f64, u64) {
        fn clone_parts(self) -> (Vec<(u16, u64)>, f64, u64) {
            (self.0.to_vec(), self.1, self.2)
        }
    }

    proptest! {
        #[test]
        fn parts_added_up_are_the_whole(first in prop::collection::vec(any::<u64>(), 0..50), second in prop::collection::vec(0u64..5_000, 0..50)) {
            let mut sum = of(&first);
            sum.merge(&of(&second));
            let whole = of(&[first, second].concat());
            prop_assert_eq!(sum.parts().0, whole.parts().0);
            prop_assert_eq!(sum.max(), whole.max());
            let (buckets, total, max) = sum.parts();
            prop_assert_eq!(Counts::from_parts(buckets.to_vec(), total, max), Some(sum.clone()));
        }

        #[test]
        fn a_percentile_is_at_most_a_part_in_128_too_high(mut values in prop::collection::vec(any::<u64>(), 1..50), share in 0.0f64..=1.0) {
            let found = of(&values).percentile(share).unwrap();
            values.sort_unstable();
            let rank = ((values.len() as f64 * share).ceil() as usize).max(1);
            let value = values[rank - 1];
            prop_assert!(found >= value && found - value <= value / 128 + 1, "{found} {value}");
        }
    }
}
