//! The latency distribution in the text format of HdrHistogram's tools (`outputPercentileDistribution` of the Java library), which its plotters read. Values
//! are milliseconds.

use std::fmt::Write;

use chokepoint_model::bench::Bench;

/// The unit, microseconds.
const UNIT_US: f64 = 1e3;
/// Buckets, and sub-buckets of each, of a histogram from 1 us to 1 h with three digits: 2,048 sub-buckets resolve three digits, and 21 doublings reach an
/// hour.
const BUCKETS: u32 = 22;
const SUB_BUCKETS: u32 = 2_048;

/// The file. Without a completed request it has no value lines.
pub(super) fn render(bench: &Bench) -> String {
    let mut out = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for point in &bench.quantiles {
        let value = point.value_us as f64 / UNIT_US;
        // Writing to a String cannot fail.
        let _ = write!(out, "{value:>12.3} {:>14.12} {:>10}", point.quantile, point.count);
        // The last point is quantile 1, whose inverse is infinite.
        let _ = if point.quantile < 1.0 { writeln!(out, " {:>14.2}", 1.0 / (1.0 - point.quantile)) } else { writeln!(out) };
    }
    let (mean, stdev) = (bench.latency_us_mean.unwrap_or(0.0) / UNIT_US, bench.latency_us_stdev / UNIT_US);
    let (max, count) = (bench.load.latency_us.map_or(0.0, |times| times.max as f64) / UNIT_US, bench.load.requests);
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]");
    let _ = writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]");
    let _ = writeln!(out, "#[Buckets = {BUCKETS:>12}, SubBuckets     = {SUB_BUCKETS:>12}]");
    out
}
