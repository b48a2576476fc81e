//! The time series of a load as comma-separated values (RFC 4180), a row for each interval; docs/bench.md describes the columns.

use std::fmt::Write;

use chokepoint_model::bench::{Bench, Moment};

/// Names of the columns.
const HEADER: &str = "start_s,length_s,started,good,wrong,failed,in_flight,latency_us_mean,latency_us_max\n";

/// The header and the rows. Lines end in LF, which every reader accepts.
pub(super) fn render(bench: &Bench) -> String {
    let mut out = HEADER.to_owned();
    let length_s = f64::from(bench.timeline.interval_ms) / 1e3;
    for (place, moment) in bench.timeline.slices.iter().enumerate() {
        let Moment { started, good, wrong, failed, in_flight, latency_us_mean, latency_us_max } = moment;
        let start_s = place as f64 * length_s;
        let mean = latency_us_mean.map(|mean| format!("{mean:.1}")).unwrap_or_default();
        let max = latency_us_max.map(|max| max.to_string()).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{start_s:.2},{length_s:.2},{started},{good},{wrong},{failed},{in_flight},{mean},{max}");
    }
    out
}
