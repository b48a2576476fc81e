//! Uncertainty of a load's figures: 95 % intervals from the differences between parts of the load.

use chokepoint_statistics::wilson;

use crate::observation::load::{LoadResult, SLICE_US, Slice};

/// Number of batches. Ten is the lowest number advised for batch means (B. Schmeiser, "Batch size effects in the analysis of simulation output", 1982): the
/// longer a batch, the less it depends on the one before.
const BATCHES: usize = 10;
/// Student's t for one to nine degrees of freedom, two-sided 95 %.
const T_95: [f64; BATCHES - 1] = [12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157];

/// The interval of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// The interval of a multiple of the figure.
    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }

    /// The interval, extended to contain the value.
    pub fn around(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value) }
    }
}

/// Intervals of the figures by which a change is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Good answers a second: batch means.
    pub goodput_rps: Range,
    /// Share of failed requests, 0 to 1: the interval of a share (Wilson, 1927). Failures come in bursts, so the number of requests is reduced to as many
    /// independent requests with the same information (the design effect).
    pub failed_share: Range,
    /// p99 of the response time, microseconds: order statistics, corrected in the same way. `None` if too few requests ended.
    pub latency_us_p99: Option<Range>,
}

impl Spread {
    /// The intervals of a load. `None` if it was shorter than ten slices or no request ended.
    pub fn of(load: &LoadResult) -> Option<Self> {
        let offered = load.offered();
        let each = offered.len() / BATCHES;
        if each == 0 {
            return None;
        }
        let batches: Vec<(f64, f64)> = offered.chunks_exact(each).take(BATCHES).map(batch).collect();
        let ended: f64 = batches.iter().map(|(good, failed)| good + failed).sum();
        if ended <= 0.0 {
            return None;
        }
        let latency_us_p99 = load.latency_us_p99_range.map(|(low, high)| Range { low: low as f64, high: high as f64 });
        let seconds = each as f64 * SLICE_US as f64 / 1e6;
        Some(Self { goodput_rps: goodput(load.goodput_rps(), &batches, seconds), failed_share: failed(&batches, ended), latency_us_p99 })
    }
}

/// Good answers and other ends in a batch.
fn batch(slices: &[Slice]) -> (f64, f64) {
    let sum = |count: fn(&Slice) -> u64| slices.iter().map(count).sum::<u64>() as f64;
    (sum(|slice| slice.good.into()), sum(|slice| u64::from(slice.wrong) + u64::from(slice.failed)))
}

fn goodput(mean_rps: f64, batches: &[(f64, f64)], seconds: f64) -> Range {
    let rates: Vec<f64> = batches.iter().map(|(good, _)| good / seconds).collect();
    let half = half_interval(&rates).unwrap_or(f64::INFINITY);
    Range { low: (mean_rps - half).max(0.0), high: mean_rps + half }
}

/// Half of the 95 % interval of a mean, from the means of two to ten batches of equal length. `None` for fewer or more.
pub(crate) fn half_interval(batches: &[f64]) -> Option<f64> {
    let t = T_95.get(batches.len().checked_sub(2)?)?;
    let number = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / number;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (number - 1.0);
    Some(t * (variance / number).sqrt())
}

fn failed(batches: &[(f64, f64)], ended: f64) -> Range {
    let share = batches.iter().map(|(_, failed)| failed).sum::<f64>() / ended;
    let chance = ended * share * (1.0 - share);
    let squares: f64 = batches.iter().map(|(good, failed)| (failed - share * (good + failed)).powi(2)).sum();
    let effect = if chance > 0.0 { (squares * BATCHES as f64 / (BATCHES - 1) as f64 / chance).max(1.0) } else { 1.0 };
    let (low, high) = wilson(share, (ended / effect).max(1.0) as u64);
    Range { low, high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::load::{Errors, Loop, Percentiles};

    fn load(slices: Vec<Slice>) -> LoadResult {
        let sum = |count: fn(&Slice) -> u32| slices.iter().map(|slice| u64::from(count(slice))).sum::<u64>();
        LoadResult {
            shape: Loop::Closed { connections: 10 },
            keep_alive: true,
            timeout_us: 1_000_000,
            duration_us: slices.len() as u64 * SLICE_US,
            requests: sum(|slice| slice.good + slice.failed),
            status: Default::default(),
            good: sum(|slice| slice.good),
            drained: 0,
            drained_good: 0,
            early: 0,
            early_good: 0,
            under_way_us: None,
            without_connection_us: None,
            errors: Errors::default(),
            latency_us: Percentiles::default(),
            latency_us_p99_range: Some((90, 110)),
            good_latency_us: Percentiles::default(),
            lost: None,
            connect_us: Percentiles::default(),
            latency_histogram: String::new(),
            connections: 10,
            tls: None,
            received_bytes: 0,
            sent_bytes: 0,
            late: 0,
            resent: 0,
            slices,
            threads: Vec::new(),
            stopped_by: None,
            interrupted: false,
            error_samples: Vec::new(),
        }
    }

    fn slice(good: u32, failed: u32) -> Slice {
        Slice { good, failed, ..Slice::default() }
    }

    #[test]
    fn the_interval_of_goodput_is_that_of_ten_means() {
        // Ten batches of 90 and 110 in turn, a tenth of a second each: a mean of 1,000/s, a standard deviation of 105.4.
        let spread = Spread::of(&load((0..10).map(|n| slice(if n % 2 == 0 { 90 } else { 110 }, 0)).collect())).unwrap();
        let half = 2.262_157 * 105.409 / 10.0_f64.sqrt();
        assert!(
            (spread.goodput_rps.low - (1000.0 - half)).abs() < 0.01 && (spread.goodput_rps.high - (1000.0 + half)).abs() < 0.01,
            "{spread:?}"
        );
        assert_eq!(spread.latency_us_p99, Some(Range { low: 90.0, high: 110.0 }));
        // None of a thousand requests failed: at most 0.4 % fail (Wilson).
        assert!(spread.failed_share.low < 1e-9 && (spread.failed_share.high - 0.00383).abs() < 1e-4, "{spread:?}");
    }

    #[test]
    fn failures_in_a_burst_tell_less_than_as_many_that_come_alone() {
        let width = |slices: Vec<Slice>| {
            let range = Spread::of(&load(slices)).unwrap().failed_share;
            assert!(range.low <= 0.01 && 0.01 <= range.high, "{range:?}");
            range.high - range.low
        };
        let (even, burst) = (
            width(vec![slice(990, 10); 40]),
            width((0..40).map(|n| slice(1000 - if n < 4 { 100 } else { 0 }, if n < 4 { 100 } else { 0 })).collect()),
        );
        assert!(burst > 5.0 * even, "{even} {burst}");
    }

    #[test]
    fn what_is_too_short_tells_nothing() {
        assert_eq!(Spread::of(&load(vec![slice(100, 0); 9])), None);
        assert_eq!(Spread::of(&load(vec![slice(0, 0); 40])), None);
        assert_eq!(Spread::of(&load(Vec::new())), None);
    }
}
