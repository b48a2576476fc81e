//! Compares captures made in network namespaces with the output of tshark 4.0.17 (`tests/data/tshark/`, written by `tests/data/oracle.sh`).
//!
//! Deterministic: captures in, facts out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chokepoint_model::edge::{ConnectionReuse, Reason, keepalive};
use chokepoint_packets::summary::{Direction, Manner, StreamSummary};
use chokepoint_packets::{Analyzer, Capture, Limits, Report};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn analyse(file: &Path) -> (Vec<StreamSummary>, Report) {
    let mut capture = Capture::open(std::fs::File::open(file).expect("the capture is there")).expect("a capture");
    let mut analyzer = Analyzer::new(Limits::default());
    let mut streams = Vec::new();
    while let Some(packet) = capture.packet().expect("whole") {
        analyzer.packet(&packet, &mut |stream| streams.push(stream.clone()));
    }
    let report = analyzer.finish(&mut |stream| streams.push(stream.clone()));
    streams.sort_by_key(|stream| stream.index);
    (streams, report)
}

/// Statistics of one direction. docs/streams.md explains three deliberate differences: retransmitted and out-of-order segments are compared as a sum,
/// duplicate acknowledgements are not compared, and bytes in flight may be fewer if acknowledged bytes were sent again.
#[derive(Debug, PartialEq, Eq)]
struct DirectionFigures {
    packets: u64,
    bytes: u64,
    again_or_out_of_order: u64,
    bytes_in_flight_max: u64,
    zero_windows: u64,
}

fn tshark_figures(file: &Path) -> BTreeMap<(u64, String), DirectionFigures> {
    let text = std::fs::read_to_string(file).expect("the output of tshark");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<u64>().expect("a number");
        let figures = DirectionFigures {
            packets: number(2),
            bytes: number(3),
            again_or_out_of_order: number(4) + number(5),
            bytes_in_flight_max: number(6),
            zero_windows: number(7),
        };
        ((number(0), fields[1].to_owned()), figures)
    };
    text.lines().skip(1).map(row).collect()
}

/// Each direction, and whether acknowledged bytes were retransmitted in it.
fn ours(streams: &[StreamSummary]) -> BTreeMap<(u64, String), (DirectionFigures, bool)> {
    let one = |direction: &Direction| {
        let figures = DirectionFigures {
            packets: direction.packets,
            bytes: direction.bytes,
            again_or_out_of_order: direction.retransmissions + direction.out_of_order,
            bytes_in_flight_max: direction.bytes_in_flight_max,
            zero_windows: direction.zero_windows,
        };
        (figures, direction.spurious_retransmissions > 0)
    };
    let both = |stream: &StreamSummary| {
        [(stream.client, &stream.client_sent), (stream.server, &stream.server_sent)]
            .into_iter()
            .filter(|(_, direction)| direction.packets > 0)
            .map(|(end, direction)| ((stream.index, end.to_string()), one(direction)))
            .collect::<Vec<_>>()
    };
    streams.iter().flat_map(both).collect()
}

#[test]
fn streams_have_the_statistics_of_tshark() {
    let mut differences = Vec::new();
    let mut captures = 0;
    for entry in std::fs::read_dir(data()).expect("a directory") {
        let file = entry.expect("an entry").path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".pcap.gz") else { continue };
        captures += 1;
        let (streams, _) = analyse(&file);
        let (tshark, mut ours) = (tshark_figures(&data().join(format!("tshark/{stem}.tsv"))), ours(&streams));
        for (key, theirs) in &tshark {
            if let Some((ours, true)) = ours.get_mut(key) {
                ours.bytes_in_flight_max = ours.bytes_in_flight_max.max(theirs.bytes_in_flight_max);
            }
            if ours.get(key).map(|(ours, _)| ours) != Some(theirs) {
                differences.push(format!("{stem} {key:?}\n  tshark {theirs:?}\n  ours   {:?}", ours.get(key)));
            }
        }
        if tshark.len() != ours.len() {
            differences.push(format!("{stem}: {} directions, tshark has {}", ours.len(), tshark.len()));
        }
    }
    assert!(captures >= 10, "{captures}");
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn each_capture_shows_its_intended_effects() {
    let of = |name: &str| analyse(&data().join(format!("{name}.pcap.gz")));
    let sum = |streams: &[StreamSummary], of: fn(&Direction) -> u64| -> u64 {
        streams.iter().map(|stream| of(&stream.client_sent) + of(&stream.server_sent)).sum()
    };
    let (streams, report) = of("keepalive");
    assert!(streams.iter().all(|stream| stream.requests == 8 && stream.answers == 8));
    assert_eq!(keepalive(&report.edges[0].facts()).kept, ConnectionReuse::InForce);
    let (streams, report) = of("close");
    assert!(streams.iter().all(|stream| stream.requests == 1));
    assert_eq!(keepalive(&report.edges[0].facts()).reasons, [Reason::ServerCloses]);
    let (streams, report) = of("rst");
    assert!(streams.iter().all(|stream| stream.close.is_some_and(|close| close.manner == Manner::Rst)));
    assert_eq!(keepalive(&report.edges[0].facts()).reasons, [Reason::ServerClosesSilently]);
    for name in ["loss-at-sender", "loss-at-receiver"] {
        assert!(sum(&of(name).0, |side| side.fast_retransmissions) > 0, "{name}");
    }
    let slow = of("slow-reader").0;
    assert!(sum(&slow, |side| side.window_full) > 0 && sum(&slow, |side| side.tail_retransmissions) > 0);
    assert!(of("mid-stream").0.iter().any(|stream| !stream.from_begin && stream.requests > 1));
    assert!(of("snapped").1.totals.snapped > 0);
    assert!(of("ipv6").0.iter().all(|stream| stream.client.is_ipv6()));
}
