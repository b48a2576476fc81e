//! The metrics as OpenTelemetry takes them: the JSON form of OTLP (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"), posted to a collector.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::board::Board;
use crate::families::{BUCKETS_US, Family, Labels, Points, Unit, buckets, families};
use crate::post::{PostError, post};

/// Sums are since the start of the program (AGGREGATION_TEMPORALITY_CUMULATIVE).
const CUMULATIVE: u8 = 2;
/// The longest time of one delivery.
const PATIENCE: Duration = Duration::from_secs(5);

/// Posts the metrics of what a board shows to a collector, "http://HOST:4318/v1/metrics". Times are nanoseconds since 1970.
///
/// # Errors
/// Why they were not delivered.
pub fn deliver(url: &str, board: &Arc<Board>, host: &str, (started_ns, now_ns): (u64, u64)) -> Result<(), PostError> {
    let families = families(board);
    post(url, document(&families, host, (started_ns, now_ns)).to_string(), PATIENCE)
}

fn document(families: &[Family], host: &str, times: (u64, u64)) -> Value {
    let metrics: Vec<Value> = families.iter().map(|family| metric(family, times)).collect();
    let resource = json!({ "attributes": [attribute("service.name", "chokepoint"), attribute("host.name", host)] });
    let scope = json!({ "name": "chokepoint", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceMetrics": [{ "resource": resource, "scopeMetrics": [{ "scope": scope, "metrics": metrics }] }] })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn metric(family: &Family, (started_ns, now_ns): (u64, u64)) -> Value {
    let attributes = |labels: &Labels| -> Vec<Value> { labels.iter().map(|(name, value)| attribute(name, value)).collect() };
    // 64-bit numbers are strings in this form.
    let (started, now) = (started_ns.to_string(), now_ns.to_string());
    let number = |(labels, value): &(Labels, f64)| json!({ "attributes": attributes(labels), "startTimeUnixNano": started, "timeUnixNano": now, "asDouble": value });
    let unit = match family.unit {
        Unit::None => "1",
        Unit::Seconds => "s",
        Unit::Bytes => "By",
    };
    let mut metric = json!({ "name": family.name, "description": family.help, "unit": unit });
    match &family.points {
        Points::Gauges(members) => metric["gauge"] = json!({ "dataPoints": members.iter().map(number).collect::<Vec<_>>() }),
        Points::Counters(members) => {
            let points: Vec<Value> = members.iter().map(number).collect();
            metric["sum"] = json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
        }
        Points::Histograms(members) => {
            let bounds: Vec<f64> = BUCKETS_US.iter().map(|upper_us| *upper_us as f64 / 1e6).collect();
            let one = |(labels, counts): &(Labels, chokepoint_statistics::histogram::Counts)| {
                json!({
                    "attributes": attributes(labels), "startTimeUnixNano": started, "timeUnixNano": now, "count": counts.total().to_string(),
                    "sum": counts.sum() / 1e6, "explicitBounds": bounds,
                    "bucketCounts": buckets(counts).iter().map(u64::to_string).collect::<Vec<_>>(),
                })
            };
            metric["histogram"] =
                json!({ "dataPoints": members.iter().map(one).collect::<Vec<_>>(), "aggregationTemporality": CUMULATIVE });
        }
    }
    metric
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::board;

    #[test]
    fn each_family_has_its_kind_and_its_points() {
        let families = families(&board());
        let document = document(&families, "web1", (5, 7));
        let resource = &document["resourceMetrics"][0];
        assert_eq!(resource["resource"]["attributes"][1], json!({ "key": "host.name", "value": { "stringValue": "web1" } }));
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}: {document:#}"));
        let sum = &of("chokepoint_requests")["sum"];
        assert_eq!(
            (&sum["isMonotonic"], &sum["aggregationTemporality"], &sum["dataPoints"][0]["asDouble"]),
            (&json!(true), &json!(2), &json!(16.0))
        );
        assert_eq!(of("chokepoint_requests_standing")["gauge"]["dataPoints"][0]["timeUnixNano"], "7");
        let histogram = of("chokepoint_log_duration");
        let point = &histogram["histogram"]["dataPoints"][0];
        assert_eq!((&histogram["unit"], &point["count"], point["bucketCounts"].as_array().unwrap().len()), (&json!("s"), &json!("6"), 16));
    }
}
