//! The metrics as Prometheus scrapes them: OpenMetrics 1.0, or its text format.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{self, Registry};

use crate::accept::Format;
use crate::board::Board;
use crate::families::{BUCKETS_US, Family, Labels, Points, Unit, buckets, families};
use crate::text_format;

/// The metrics of what a board shows.
pub fn render(board: &Arc<Board>, format: Format) -> String {
    let text = open_metrics(board);
    match format {
        Format::OpenMetrics => text,
        Format::Text => text_format::of_open_metrics(&text),
    }
}

fn open_metrics(board: &Arc<Board>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Shown(Arc::clone(board))));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Shown(Arc<Board>);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // The board is free again before anything is written.
        let families = families(&self.0);
        families.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::None => None,
            Unit::Seconds => Some(registry::Unit::Seconds),
            Unit::Bytes => Some(registry::Unit::Bytes),
        };
        let kind = match self.points {
            Points::Gauges(_) => MetricType::Gauge,
            Points::Counters(_) => MetricType::Counter,
            Points::Histograms(_) => MetricType::Histogram,
        };
        // Names with dots are those of another tool.
        let name = self.name.replace('.', "_");
        let mut family = encoder.encode_descriptor(&name, self.help, unit.as_ref(), kind)?;
        match &self.points {
            Points::Gauges(members) => each(&mut family, members, |value, encoder| ConstGauge::new(*value).encode(encoder)),
            Points::Counters(members) => each(&mut family, members, |value, encoder| ConstCounter::new(*value).encode(encoder)),
            Points::Histograms(members) => each(&mut family, members, |counts, mut encoder| {
                let ends = BUCKETS_US.iter().map(|upper_us| *upper_us as f64 / 1e6).chain([f64::INFINITY]);
                let buckets: Vec<(f64, u64)> = ends.zip(buckets(counts)).collect();
                encoder.encode_histogram::<NoLabelSet>(counts.sum() / 1e6, counts.total(), &buckets, None)
            }),
        }
    }
}

fn each<V>(family: &mut MetricEncoder<'_>, members: &[(Labels, V)], one: impl Fn(&V, MetricEncoder<'_>) -> fmt::Result) -> fmt::Result {
    members.iter().try_for_each(|(labels, value)| one(value, family.encode_family(labels)?))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use chokepoint_model::report::{LedgerLossKind, LedgerPlaceKind};
    use chokepoint_recorder::{Durations, Logged, Loss, Mean, Queue, Sample, Standing, TargetSample};
    use chokepoint_statistics::histogram::Histogram;
    use proptest::prelude::*;

    use super::*;
    use crate::board::Seen;

    /// What a server of which everything is known shows, measured this long ago.
    pub(crate) fn board_of(age: Duration) -> Arc<Board> {
        let mut histogram = Histogram::default();
        [900, 3_000, 70_000_000].into_iter().for_each(|us| histogram.add(us));
        let logged = Logged {
            status: BTreeMap::from([(200, 2), (502, 1)]),
            bytes: 10,
            unread: 0,
            urls: BTreeMap::new(),
            durations_us: BTreeMap::from([("request".to_owned(), Durations(histogram.counts()))]),
            upstreams: BTreeMap::new(),
        };
        let target = TargetSample {
            target: "a\"b\\c\nd".to_owned(),
            under_way: Mean::of(Some(4.0), 1.0),
            rate: Mean::of(Some(8.0), 1.0),
            places: vec![Standing { tier: "nginx".to_owned(), place: LedgerPlaceKind::AcceptQueue, request_seconds: 3.0 }],
            queues: vec![Queue { listener: "0.0.0.0:80".to_owned(), most: 3, limit: 511 }],
            logged: Some(logged),
            ..TargetSample::default()
        };
        let board = Arc::new(Board::default());
        let ages = BTreeMap::from([(target.target.clone(), age)]);
        let sample = Sample { at_s: 10, span_s: 1, targets: vec![target], host: None };
        let seen = Seen { sample, age: Some(age), ages, ..Seen::default() };
        board.see(seen.clone());
        board.see(seen);
        board.incident("a", true);
        board
    }

    pub(crate) fn board() -> Arc<Board> {
        board_of(Duration::ZERO)
    }

    #[test]
    fn sums_of_parts_have_no_noise() {
        let loss = Loss { tier: None, place: None, kind: LedgerLossKind::Refused, count: 0.1 };
        let target = TargetSample { target: "a".to_owned(), losses: vec![loss], ..TargetSample::default() };
        let board = Arc::new(Board::default());
        for at_s in 1..=3 {
            let sample = Sample { at_s, span_s: 1, targets: vec![target.clone()], host: None };
            board.see(Seen { sample, age: Some(Duration::ZERO), ..Seen::default() });
        }
        // 0.1 + 0.1 + 0.1 is 0.30000000000000004.
        let text = render(&board, Format::OpenMetrics);
        let line = text.lines().find(|line| line.starts_with("chokepoint_requests_lost_total{")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.ends_with(" 0.3"), "{line}");
    }

    #[test]
    fn what_is_old_is_not_told_as_now_and_its_time_is() {
        let now_s = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let (old, before_s) = (board_of(Duration::from_secs(8)), now_s());
        let text = render(&old, Format::OpenMetrics);
        for gone in
            ["chokepoint_up{", "chokepoint_requests_standing{", "chokepoint_response_time_mean_seconds{", "chokepoint_accept_queue_limit{"]
        {
            assert!(!text.contains(gone) && render(&board(), Format::OpenMetrics).contains(gone), "{gone}\n{text}");
        }
        // Sums since the start are as true as before.
        assert!(text.contains("chokepoint_requests_total{") && text.contains("chokepoint_incidents_open{"), "{text}");
        for name in ["chokepoint_last_sample_timestamp_seconds", "chokepoint_target_last_sample_timestamp_seconds"] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
            let at_s: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(at_s <= before_s - 7.9 && at_s > before_s - 3_600.0, "{line}");
        }
        assert!(!render(&Arc::new(Board::default()), Format::Text).contains("last_sample_timestamp"), "nothing was measured yet");
    }

    /// A server with few names for much: several sockets of one address, places and losses of one name.
    fn any_target() -> impl Strategy<Value = TargetSample> {
        let queues = prop::collection::vec((0..3_u8, 0..600_u32), 0..4);
        let places = prop::collection::vec((0..2_u8, 0.0..9.0_f64), 0..4);
        let losses = prop::collection::vec((0..2_u8, 0.0..9.0_f64), 0..4);
        (0..3_u8, queues, places, losses).prop_map(|(name, queues, places, losses)| TargetSample {
            target: format!("nginx:{name}"),
            under_way: Mean::of(Some(4.0), 1.0),
            rate: Mean::of(Some(8.0), 1.0),
            queues: queues.into_iter().map(|(port, most)| Queue { listener: format!("0.0.0.0:{port}"), most, limit: 511 }).collect(),
            places: places.into_iter().map(|(tier, request_seconds)| standing(tier, request_seconds)).collect(),
            losses: losses.into_iter().map(|(tier, count)| loss(tier, count)).collect(),
            ..TargetSample::default()
        })
    }

    fn standing(tier: u8, request_seconds: f64) -> Standing {
        Standing { tier: format!("nginx-{tier}"), place: LedgerPlaceKind::AcceptQueue, request_seconds }
    }

    fn loss(tier: u8, count: f64) -> Loss {
        Loss { tier: Some(format!("nginx-{tier}")), place: None, kind: LedgerLossKind::Refused, count }
    }

    proptest! {
        /// Prometheus takes nothing of a page in which one series comes twice.
        #[test]
        fn no_series_comes_twice(seconds in prop::collection::vec(prop::collection::vec(any_target(), 0..5), 1..3)) {
            let board = Arc::new(Board::default());
            for targets in seconds {
                let ages = targets.iter().map(|target| (target.target.clone(), Duration::ZERO)).collect();
                let sample = Sample { at_s: 10, span_s: 1, targets, host: None };
                board.see(Seen { sample, age: Some(Duration::ZERO), ages, ..Seen::default() });
            }
            for format in [Format::OpenMetrics, Format::Text] {
                let text = render(&board, format);
                let mut seen = std::collections::BTreeSet::new();
                for line in text.lines().filter(|line| !line.starts_with('#')) {
                    let series = line.rsplit_once(' ').map_or(line, |(series, _)| series);
                    prop_assert!(seen.insert(series), "{} twice\n{}", series, text);
                }
            }
        }
    }

    #[test]
    fn counters_are_sums_and_gauges_the_newest_second() {
        let text = render(&board(), Format::OpenMetrics);
        for line in [
            "chokepoint_requests_standing{target=\"a\\\"b\\\\c\\nd\",tier=\"nginx\",place=\"accept-queue\"} 3.0",
            "chokepoint_requests_total{target=\"a\\\"b\\\\c\\nd\"} 16.0",
            "chokepoint_response_time_mean_seconds{target=\"a\\\"b\\\\c\\nd\"} 0.5",
            "chokepoint_responses_total{target=\"a\\\"b\\\\c\\nd\",code=\"502\"} 2.0",
            "chokepoint_incidents_open{target=\"a\"} 1.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("nginx_up") && text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn the_buckets_of_a_histogram_add_up() {
        let text = render(&board(), Format::OpenMetrics);
        let bucket = |le: &str| {
            let line = text.lines().find(|line| line.contains("duration_seconds_bucket") && line.contains(&format!("le=\"{le}\"")));
            line.and_then(|line| line.rsplit(' ').next())
                .and_then(|value| value.parse::<u64>().ok())
                .unwrap_or_else(|| panic!("{le}\n{text}"))
        };
        assert_eq!(["0.001", "0.002", "0.005", "60.0", "+Inf"].map(bucket), [2, 2, 4, 4, 6]);
    }
}
