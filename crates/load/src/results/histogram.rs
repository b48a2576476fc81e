//! Latency histograms: recording, percentiles, and the text form that other HDR tools read.

use std::borrow::Cow;

use chokepoint_model::load::{Bucket, Percentiles, Quantile};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// Maximum recorded duration, microseconds: an hour. Longer ones are recorded as this.
const DURATION_US_MAX: u64 = 3_600_000_000;

/// An answer is slow if it takes longer than this multiple of the median.
const SLOW_FACTOR: u64 = 4;
/// Maximum number of distinct durations with which the requests omitted during one slow answer are recorded.
const CORRECTION_STEPS: u64 = 10_000;
/// Powers of ten at which the steps of a distribution start again.
const BUCKET_BOUNDS_US: [u64; 10] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Points of a percentile distribution for each halving of the distance to 100 %, the default of HdrHistogram's own tools.
const TICKS_PER_HALVING: u32 = 5;

/// Durations in microseconds, 1 us to 1 h, three significant digits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    /// None before the first duration: `hdrhistogram` initialises 190 KB for this range, and most kinds of durations never occur.
    histogram: Option<Histogram<u64>>,
    /// The largest duration itself, not its bucket.
    max_us: u64,
}

#[cold]
fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, DURATION_US_MAX, 3).expect("the bounds are constants that the crate accepts")
}

impl Durations {
    fn histogram(&self) -> Cow<'_, Histogram<u64>> {
        self.histogram.as_ref().map_or_else(|| Cow::Owned(empty()), Cow::Borrowed)
    }

    pub(crate) fn record_ns(&mut self, duration_ns: u64) {
        self.record_ns_times(duration_ns, 1);
    }

    pub(crate) fn record_ns_times(&mut self, duration_ns: u64, times: u64) {
        let duration_us = duration_ns / 1000;
        self.max_us = self.max_us.max(duration_us);
        self.histogram.get_or_insert_with(empty).saturating_record_n(duration_us, times);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.histogram.as_ref().is_none_or(Histogram::is_empty)
    }

    pub(crate) fn add(&mut self, other: &Durations) {
        match (&mut self.histogram, &other.histogram) {
            (_, None) => return,
            (Some(sum), Some(other)) => sum.add(other).expect("both histograms have the same bounds"),
            (none, Some(_)) => none.clone_from(&other.histogram),
        }
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Subtracts a part that this histogram contains.
    pub(crate) fn subtract(&mut self, part: &Durations) {
        let (Some(whole), Some(part)) = (&mut self.histogram, &part.histogram) else { return };
        whole.subtract(part).expect("both histograms have the same bounds and the part is in the whole");
        self.max_us = self.max_us.min(whole.max());
    }

    /// Number of recorded durations.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Number and sum (microseconds) of the durations above this one. Each counts as the middle of its bucket, which is a thousandth wide.
    pub(crate) fn beyond(&self, longest_us: u64) -> (u64, u64) {
        let Some(histogram) = &self.histogram else { return (0, 0) };
        let buckets = histogram.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        let beyond = buckets.filter(|(value_us, _)| histogram.lowest_equivalent(*value_us) > longest_us);
        beyond.fold((0, 0), |(number, sum), (value_us, count)| {
            let middle_us = histogram.median_equivalent(value_us).min(self.max_us);
            (number + count, middle_us.saturating_mul(count).saturating_add(sum))
        })
    }

    /// The duration that this share (0 to 1) of them does not exceed, microseconds; 0 if nothing was recorded.
    pub(crate) fn at(&self, share: f64) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_quantile(share).min(self.max_us))
    }

    /// Mean, microseconds; 0 if nothing was recorded.
    pub(crate) fn mean(&self) -> f64 {
        self.histogram.as_ref().map_or(0.0, Histogram::mean)
    }

    /// Standard deviation, microseconds; 0 if nothing was recorded.
    pub(crate) fn stdev(&self) -> f64 {
        self.histogram.as_ref().filter(|histogram| !histogram.is_empty()).map_or(0.0, Histogram::stdev)
    }

    /// The percentile distribution, denser towards the largest duration.
    pub(crate) fn quantiles(&self) -> Vec<Quantile> {
        let mut count = 0;
        let point = |step: hdrhistogram::iterators::IterationValue<u64>| {
            count += step.count_since_last_iteration();
            Quantile { quantile: step.quantile_iterated_to(), value_us: step.value_iterated_to().min(self.max_us), count }
        };
        self.histogram().iter_quantiles(TICKS_PER_HALVING).map(point).collect()
    }

    /// Adds the requests that slow answers kept a closed loop from sending, each with the time it would have waited.
    ///
    /// A slow answer keeps its connection from sending. The omitted requests are missing exactly where the server was at its worst (coordinated omission,
    /// G. Tene, "How NOT to Measure Latency"). The usual time between two requests of a connection is the mean of the answers that were not slow. For each
    /// slow answer of length L, requests of L - usual, L - 2 usual, ... are added.
    pub(crate) fn corrected(self) -> Durations {
        let Some(histogram) = &self.histogram else { return self };
        let slow_us = histogram.value_at_quantile(0.5).saturating_mul(SLOW_FACTOR);
        let (mut usual_count, mut usual_sum) = (0u64, 0u128);
        let mut slow = Vec::new();
        for bucket in histogram.iter_recorded() {
            let (value_us, count) = (bucket.value_iterated_to().min(self.max_us), bucket.count_at_value());
            if value_us > slow_us {
                slow.push((value_us, count));
            } else {
                usual_count += count;
                usual_sum += u128::from(value_us) * u128::from(count);
            }
        }
        let usual_us = ((usual_sum / u128::from(usual_count.max(1))) as u64).max(1);
        let mut corrected = self;
        for (value_us, count) in slow {
            let missing = value_us / usual_us;
            // They are evenly spaced, so many can be added in few steps.
            let step = missing.div_ceil(CORRECTION_STEPS).max(1);
            for first in (1..=missing).step_by(step as usize) {
                let times = step.min(missing - first + 1);
                let duration_us = value_us - first * usual_us;
                corrected.histogram.get_or_insert_with(empty).saturating_record_n(duration_us, count.saturating_mul(times));
            }
        }
        corrected
    }

    /// Counts in steps of 1, 2, 5, 10, ... microseconds, from the first non-empty step to the last.
    pub(crate) fn distribution(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        let Some(histogram) = &self.histogram else { return buckets };
        let mut bounds = BUCKET_BOUNDS_US.iter().flat_map(|step| [1, 2, 5].map(|factor| step * factor)).chain([u64::MAX]);
        let mut bound = 0;
        for bucket in histogram.iter_recorded() {
            let value_us = histogram.lowest_equivalent(bucket.value_iterated_to());
            while value_us > bound {
                let Some(next) = bounds.next() else { break };
                bound = next;
                if !buckets.is_empty() || value_us <= bound {
                    buckets.push(Bucket { up_to_us: bound.min(DURATION_US_MAX), count: 0 });
                }
            }
            if let Some(last) = buckets.last_mut() {
                last.count += bucket.count_at_value();
            }
        }
        buckets
    }

    /// All zero if nothing was recorded.
    pub(crate) fn percentiles(&self) -> Percentiles {
        // The histogram returns the top of a bucket, which may lie above the largest duration.
        let Some(histogram) = &self.histogram else { return Percentiles::default() };
        let at = |quantile| histogram.value_at_quantile(quantile).min(self.max_us);
        Percentiles { p50: at(0.5), p75: at(0.75), p90: at(0.9), p95: at(0.95), p99: at(0.99), p999: at(0.999), max: self.max_us }
    }

    /// HDR V2, deflated, in base64: the form of HdrHistogram's interval logs.
    pub(crate) fn text(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&*self.histogram(), &mut bytes).expect("writing to a vector cannot fail");
        base64(&bytes)
    }
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let sextet = word >> (18 - 6 * place) & 0x3f;
            text.push(if place <= group.len() { ALPHABET[sextet as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_durations_are_counted_and_summed_to_a_thousandth() {
        let mut durations = Durations::default();
        assert_eq!(durations.beyond(0), (0, 0));
        durations.record_ns_times(1_000_000, 1_000);
        durations.record_ns_times(1_000_000_000, 3);
        durations.record_ns_times(1_030_000_000, 20);
        durations.record_ns(7_200_000_000_000);
        let (number, sum) = durations.beyond(1_000_000);
        assert_eq!(number, 21, "a second is not longer than a second");
        assert!(sum.abs_diff(3_620_600_000) <= sum / 1_000, "an hour is the longest that is told: {sum}");
        assert_eq!(durations.beyond(0).0, 1_024);
    }

    #[test]
    fn base64_matches_the_rfc() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn long_durations_stay_in_the_histogram() {
        let mut durations = Durations::default();
        for _ in 0..98 {
            durations.record_ns(2_000_000);
        }
        durations.record_ns_times(u64::MAX, 2);
        let percentiles = durations.percentiles();
        assert!((2000..=2002).contains(&percentiles.p50), "{percentiles:?}");
        assert!(percentiles.p99 >= DURATION_US_MAX / 1000 * 999, "{percentiles:?}");
        assert_eq!(percentiles.max, u64::MAX / 1000);
    }

    #[test]
    fn an_empty_histogram_has_zero_percentiles_and_a_text() {
        let durations = Durations::default();
        assert_eq!(durations.percentiles(), Percentiles::default());
        assert!(durations.text().starts_with("HISTF"));
    }

    #[test]
    fn a_slow_answer_adds_the_requests_that_it_kept_from_being_sent() {
        let mut durations = Durations::default();
        durations.record_ns_times(1_000_000, 999);
        assert_eq!(durations.clone().corrected().percentiles(), durations.percentiles(), "nothing was slow");
        durations.record_ns(1_000_000_000);
        let corrected = durations.corrected();
        // One second at a request a millisecond: about a thousand more, evenly from 0 to 1 s.
        assert!((1990..=2010).contains(&corrected.histogram().len()), "{}", corrected.histogram().len());
        let percentiles = corrected.percentiles();
        assert!((495_000..=505_000).contains(&percentiles.p75) && percentiles.max == 1_000_000, "{percentiles:?}");
        // The work is bounded, however slow an answer is compared to the usual time.
        let mut extreme = Durations::default();
        extreme.record_ns_times(1_000, 1_000_000);
        extreme.record_ns_times(u64::MAX, 1_000_000);
        assert!(extreme.corrected().histogram().len() > 2_000_000);
        assert_eq!(Durations::default().corrected().percentiles(), Percentiles::default());
    }

    #[test]
    fn a_distribution_has_every_duration_once_without_gaps() {
        let mut durations = Durations::default();
        assert_eq!(durations.distribution(), []);
        for (us, times) in [(3, 2), (5, 1), (6, 1), (100, 4), (1_999, 1), (u64::MAX / 1000, 1)] {
            durations.record_ns_times(us * 1000, times);
        }
        let distribution = durations.distribution();
        let bounds: Vec<u64> = distribution.iter().map(|bucket| bucket.up_to_us).collect();
        assert_eq!(bounds[..8], [5, 10, 20, 50, 100, 200, 500, 1_000], "{bounds:?}");
        let counts: Vec<u64> = distribution.iter().map(|bucket| bucket.count).collect();
        assert_eq!((counts[..5].to_vec(), counts.iter().sum::<u64>()), (vec![3, 1, 0, 0, 4], 10), "{distribution:?}");
        assert_eq!(distribution.last().map(|bucket| (bucket.up_to_us, bucket.count)), Some((DURATION_US_MAX, 1)));
    }

    #[test]
    fn a_part_can_be_subtracted() {
        let (mut whole, mut part) = (Durations::default(), Durations::default());
        whole.record_ns_times(5_000, 3);
        part.record_ns(5_000);
        whole.subtract(&part);
        assert_eq!((whole.histogram().len(), whole.mean()), (2, 5.0));
        part.record_ns_times(5_000, 1);
        whole.subtract(&part);
        assert_eq!(whole.percentiles(), Percentiles::default());
    }

    #[test]
    fn an_empty_histogram_takes_no_memory() {
        let (mut sum, mut some) = (Durations::default(), Durations::default());
        sum.add(&Durations::default());
        sum.subtract(&Durations::default());
        assert!(sum.clone().corrected().is_empty() && sum.histogram.is_none());
        some.record_ns(2_000);
        sum.add(&some);
        assert_eq!((sum.percentiles(), sum.histogram().len()), (some.percentiles(), 1));
    }

    #[test]
    fn percentiles_never_exceed_the_maximum() {
        let mut durations = Durations::default();
        durations.record_ns(1_234_567_890);
        assert_eq!(durations.percentiles().p50, 1_234_567);
    }
}
