//! What the agent of NGINX Amplify, whose service has ended, counted of access and error logs, under its names.
//!
//! Unlike that agent, each upstream that was tried counts for itself: it added up lists of values, so that a retry looked like one long request.

use std::collections::BTreeMap;

use chokepoint_config::log_format::Details;
use chokepoint_model::observation::LogEvent;

/// Methods by name.
const METHODS: [(&[u8], &str); 6] = [
    (b"GET", "nginx.http.method.get"),
    (b"HEAD", "nginx.http.method.head"),
    (b"POST", "nginx.http.method.post"),
    (b"PUT", "nginx.http.method.put"),
    (b"DELETE", "nginx.http.method.delete"),
    (b"OPTIONS", "nginx.http.method.options"),
];
const OTHER_METHOD: &str = "nginx.http.method.other";
/// Versions of HTTP by the protocol's name.
const VERSIONS: [(&[u8], &str); 5] = [
    (b"HTTP/0.9", "nginx.http.v0_9"),
    (b"HTTP/1.0", "nginx.http.v1_0"),
    (b"HTTP/1.1", "nginx.http.v1_1"),
    (b"HTTP/2.0", "nginx.http.v2"),
    (b"HTTP/3.0", "nginx.http.v3"),
];
const MALFORMED: &str = "nginx.http.request.malformed";
/// What the cache did by `$upstream_cache_status`.
const CACHE: [(&[u8], &str); 7] = [
    (b"BYPASS", "nginx.cache.bypass"),
    (b"EXPIRED", "nginx.cache.expired"),
    (b"HIT", "nginx.cache.hit"),
    (b"MISS", "nginx.cache.miss"),
    (b"REVALIDATED", "nginx.cache.revalidated"),
    (b"STALE", "nginx.cache.stale"),
    (b"UPDATING", "nginx.cache.updating"),
];
/// Classes of statuses, and single ones that have a name.
const CLASSES: [&str; 5] =
    ["nginx.http.status.1xx", "nginx.http.status.2xx", "nginx.http.status.3xx", "nginx.http.status.4xx", "nginx.http.status.5xx"];
const STATUSES: [(u16, &str); 7] = [
    (403, "nginx.http.status.403"),
    (404, "nginx.http.status.404"),
    (499, "nginx.http.status.discarded"),
    (500, "nginx.http.status.500"),
    (502, "nginx.http.status.502"),
    (503, "nginx.http.status.503"),
    (504, "nginx.http.status.504"),
];
const UPSTREAM_CLASSES: [&str; 5] = [
    "nginx.upstream.status.1xx",
    "nginx.upstream.status.2xx",
    "nginx.upstream.status.3xx",
    "nginx.upstream.status.4xx",
    "nginx.upstream.status.5xx",
];

const GZIP_RATIO: &str = "nginx.http.gzip.ratio";

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::servers) struct AmplifyCounts {
    counts: BTreeMap<&'static str, u64>,
    /// Sum and number of the ratios of compressed answers.
    gzip: (f64, u64),
}

impl AmplifyCounts {
    fn count(&mut self, name: &'static str, number: u64) {
        if number > 0 {
            let sum = self.counts.entry(name).or_default();
            *sum = sum.saturating_add(number);
        }
    }

    /// Counts an answer that stands for this many.
    pub(in crate::servers) fn add(&mut self, answer: &Details<'_>, weight: u64) {
        let mut words = answer.request.unwrap_or_default().split(|byte| *byte == b' ');
        let (first, last) = (words.next(), words.nth(1));
        let (method, protocol) = (answer.method.or(first.filter(|word| !word.is_empty())), answer.protocol.or(last));
        let known = |all: &[(&[u8], &'static str)], value: &[u8]| all.iter().find(|(known, _)| *known == value).map(|(_, name)| *name);
        if let Some(method) = method {
            // A request without a protocol is none of HTTP, or one of its first version, which nobody sends.
            let is_well_formed = method.iter().all(u8::is_ascii_uppercase) && protocol.is_some();
            let name = if is_well_formed { known(&METHODS, method).unwrap_or(OTHER_METHOD) } else { MALFORMED };
            self.count(name, weight);
        }
        if let Some(name) = protocol.and_then(|protocol| known(&VERSIONS, protocol)) {
            self.count(name, weight);
        }
        if let Some(name) = answer.cache_status.and_then(|status| known(&CACHE, status)) {
            self.count(name, weight);
        }
        for (name, bytes) in [
            ("nginx.http.request.bytes_sent", answer.bytes_sent),
            ("nginx.http.request.body_bytes_sent", answer.body_bytes_sent),
            ("nginx.http.request.length", answer.request_length),
        ] {
            self.count(name, bytes.unwrap_or(0).saturating_mul(weight));
        }
        if let Some(ratio) = answer.gzip_ratio {
            self.gzip = (self.gzip.0 + ratio * weight as f64, self.gzip.1 + weight);
        }
        let mut tried = 0;
        for status in answer.upstream_status.numbers() {
            tried += 1;
            if let Some(name) = status.and_then(|status| class(&UPSTREAM_CLASSES, status)) {
                self.count(name, weight);
            }
        }
        self.count("nginx.upstream.request.count", tried * weight);
        self.count("nginx.upstream.next.count", u64::from(tried > 1) * weight * tried.saturating_sub(1));
        let length: u64 = answer.upstream_length.numbers().flatten().fold(0, u64::saturating_add);
        self.count("nginx.upstream.response.length", length.saturating_mul(weight));
    }

    /// Takes the means since the last call.
    pub(in crate::servers) fn take_means(&mut self) -> BTreeMap<&'static str, f64> {
        let (sum, number) = std::mem::take(&mut self.gzip);
        (number > 0).then(|| (GZIP_RATIO, sum / number as f64)).into_iter().collect()
    }

    /// Takes the counts since the last call, with those that follow from statuses and from the lines of the error log.
    pub(in crate::servers) fn take(
        &mut self,
        status: &BTreeMap<u16, u64>,
        errors: &BTreeMap<LogEvent, u64>,
    ) -> BTreeMap<&'static str, u64> {
        for (status, count) in status {
            if let Some(name) = class(&CLASSES, u64::from(*status)) {
                self.count(name, *count);
            }
            if let Some((_, name)) = STATUSES.iter().find(|(known, _)| known == status) {
                self.count(name, *count);
            }
        }
        for (event, count) in errors {
            if let Some(name) = error_name(event) {
                self.count(name, *count);
            }
        }
        std::mem::take(&mut self.counts)
    }
}

/// The agent's name for an event of the error log.
fn error_name(event: &LogEvent) -> Option<&'static str> {
    match event {
        LogEvent::ConnectFailed(_) | LogEvent::NoLiveUpstreams => Some("nginx.upstream.request.failed"),
        LogEvent::UpstreamTimedOut | LogEvent::UpstreamReset | LogEvent::UpstreamClosed => Some("nginx.upstream.response.failed"),
        LogEvent::BufferedToFile => Some("nginx.upstream.response.buffered"),
        _ => None,
    }
}

fn class(names: &[&'static str; 5], status: u64) -> Option<&'static str> {
    names.get(usize::try_from(status / 100).ok()?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use chokepoint_config::log_format::{Escape, LogFormat};

    use super::*;

    /// The format that the agent asked for, and the ratio of compression.
    const FORMAT: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \
                          \"$http_x_forwarded_for\" \"$host\" sn=\"$server_name\" rt=$request_time ua=\"$upstream_addr\" us=\"$upstream_status\" \
                          ut=\"$upstream_response_time\" ul=\"$upstream_response_length\" cs=$upstream_cache_status gzip=$gzip_ratio";

    #[test]
    fn lines_of_the_agents_own_format_are_counted_under_its_names() {
        let format = LogFormat::nginx(FORMAT, Escape::Default).unwrap();
        let mut record = format.record();
        let mut counts = AmplifyCounts::default();
        for (request, status, upstream, cache) in [
            ("GET / HTTP/1.1", 200, "us=\"200\" ut=\"0.1\" ul=\"10\"", "HIT gzip=3.50"),
            ("PATCH /a HTTP/2.0", 502, "us=\"502, 200\" ut=\"0.1, 0.2\" ul=\"0, 7\"", "- gzip=4.50"),
            ("\\x16\\x03", 400, "us=\"-\" ut=\"-\" ul=\"-\"", "- gzip=-"),
        ] {
            let line = format!(
                "10.0.0.1 - - [20/Nov/2026:07:17:47 +0000] \"{request}\" {status} 5 \"-\" \"c\" \"-\" \"h\" sn=\"s\" rt=0.1 ua=\"-\" {upstream} cs={cache}"
            );
            format.measure(line.as_bytes(), &mut record).unwrap();
            counts.add(&format.details(line.as_bytes(), &record), 2);
        }
        let status = BTreeMap::from([(200, 1), (502, 1), (499, 3)]);
        let errors = BTreeMap::from([(LogEvent::ConnectFailed(Some(111)), 4), (LogEvent::UpstreamClosedWithinAnswer, 9)]);
        assert_eq!(counts.take_means(), BTreeMap::from([(GZIP_RATIO, 4.0)]), "of those that were compressed");
        let taken = counts.take(&status, &errors);
        for (name, count) in [
            ("nginx.http.method.get", 2),
            ("nginx.http.method.other", 2),
            ("nginx.http.request.malformed", 2),
            ("nginx.http.v1_1", 2),
            ("nginx.http.v2", 2),
            ("nginx.cache.hit", 2),
            ("nginx.http.request.body_bytes_sent", 30),
            ("nginx.upstream.request.count", 6),
            ("nginx.upstream.next.count", 2),
            ("nginx.upstream.status.2xx", 4),
            ("nginx.upstream.status.5xx", 2),
            ("nginx.upstream.response.length", 34),
            ("nginx.http.status.2xx", 1),
            ("nginx.http.status.4xx", 3),
            ("nginx.http.status.discarded", 3),
            ("nginx.http.status.502", 1),
            ("nginx.upstream.request.failed", 4),
        ] {
            assert_eq!(taken.get(name), Some(&count), "{name}: {taken:?}");
        }
        assert!(!taken.contains_key("nginx.upstream.response.failed") && counts.take(&BTreeMap::new(), &BTreeMap::new()).is_empty());
        assert!(counts.take_means().is_empty());
    }
}
