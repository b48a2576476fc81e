//! Latency histograms: recording without loss at the top, percentiles, and the text form that other HDR tools read.

use chokepoint_model::load::Percentiles;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// The longest duration that is told apart, microseconds: an hour. Longer ones are recorded as this.
const DURATION_US_MAX: u64 = 3_600_000_000;

/// Durations in microseconds, 1 us to 1 h, three significant digits. `hdrhistogram` takes about 190 KB for this range.
#[derive(Debug)]
pub(crate) struct Durations {
    histogram: Histogram<u64>,
    /// The largest duration itself, not its bucket.
    max_us: u64,
}

impl Durations {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, DURATION_US_MAX, 3).expect("the bounds are constants that the crate accepts");
        Durations { histogram, max_us: 0 }
    }

    pub(crate) fn record_ns(&mut self, duration_ns: u64) {
        self.record_ns_times(duration_ns, 1);
    }

    pub(crate) fn record_ns_times(&mut self, duration_ns: u64, times: u64) {
        let duration_us = duration_ns / 1000;
        self.max_us = self.max_us.max(duration_us);
        self.histogram.saturating_record_n(duration_us, times);
    }

    pub(crate) fn add(&mut self, other: &Durations) {
        self.histogram.add(&other.histogram).expect("both histograms have the same bounds");
        self.max_us = self.max_us.max(other.max_us);
    }

    /// All zero where nothing was recorded.
    pub(crate) fn percentiles(&self) -> Percentiles {
        // The histogram gives the top of a bucket, which may lie above the largest duration.
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max_us);
        Percentiles { p50: at(0.5), p75: at(0.75), p90: at(0.9), p95: at(0.95), p99: at(0.99), p999: at(0.999), max: self.max_us }
    }

    /// HDR V2, deflated, in base64: the form of HdrHistogram's interval logs.
    pub(crate) fn text(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes).expect("writing to a vector cannot fail");
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
    fn base64_is_that_of_the_rfc() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn long_durations_stay_in_the_histogram() {
        let mut durations = Durations::new();
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
        let durations = Durations::new();
        assert_eq!(durations.percentiles(), Percentiles::default());
        assert!(durations.text().starts_with("HISTF"));
    }

    #[test]
    fn percentiles_never_exceed_the_maximum() {
        let mut durations = Durations::new();
        durations.record_ns(1_234_567_890);
        assert_eq!(durations.percentiles().p50, 1_234_567);
    }
}
