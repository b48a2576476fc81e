//! Malformed captures: no panic, no hang, and no more memory than stated.
//!
//! Deterministic: captures in, facts out.

use std::io::Write;

use chokepoint_hostile::{Corpus, run};
use chokepoint_packets::{Analyzer, Capture, CaptureError, Limits, Packet};
use proptest::prelude::*;

/// Reads all packets. Returns their number, and why reading ended early, if it did.
fn read(bytes: &[u8]) -> (u64, Option<CaptureError>) {
    let mut capture = match Capture::open(bytes) {
        Ok(capture) => capture,
        Err(error) => return (0, Some(error)),
    };
    let mut analyzer = Analyzer::new(Limits { streams: 16, edges: 2, notable: 2, held_bytes: 4096 });
    let mut over = 0;
    let failed = loop {
        match capture.packet() {
            Ok(Some(packet)) => analyzer.packet(&packet, &mut |_| over += 1),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let packets = analyzer.totals().packets;
    let report = analyzer.finish(&mut |_| over += 1);
    assert_eq!(over, report.totals.streams, "each stream is summarised once");
    assert!(report.edges.len() <= 5 && report.notable.len() <= 2);
    serde_json::to_string(&report.edges).expect("facts can be written");
    (packets, failed)
}

fn fixture(name: &str) -> Vec<u8> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{name}.pcap.gz"));
    let mut bytes = Vec::new();
    let mut packed = flate2::read::GzDecoder::new(std::fs::File::open(file).expect("the capture is there"));
    std::io::Read::read_to_end(&mut packed, &mut bytes).expect("whole");
    bytes
}

/// Converts the packets of a little-endian pcap to a pcapng of either byte order, with a clock of nanoseconds.
fn as_pcapng(pcap: &[u8], big: bool) -> Vec<u8> {
    let word = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let half = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let length = word(12 + body.len().next_multiple_of(4) as u32);
        let mut block = [&word(kind)[..], &length, body].concat();
        block.resize(8 + body.len().next_multiple_of(4), 0);
        [block, length.to_vec()].concat()
    };
    let mut out = block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat());
    let link = u16::from_le_bytes([pcap[20], pcap[21]]);
    let options = [&half(9)[..], &half(1), &[9, 0, 0, 0], &half(0), &half(0)].concat();
    out.extend(block(1, &[&half(link)[..], &[0, 0], &word(0), &options].concat()));
    out.extend(block(0x0bad, b"something that nobody knows"));
    let mut rest = &pcap[24..];
    while rest.len() >= 16 {
        let number = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let (kept, wire) = (number(8), number(12));
        let stamp = (u64::from(number(0)) * 1_000_000 + u64::from(number(4))) * 1000;
        let head = [word(0), word((stamp >> 32) as u32), word(stamp as u32), word(kept), word(wire)].concat();
        out.extend(block(6, &[&head[..], &rest[16..16 + kept as usize]].concat()));
        rest = &rest[16 + kept as usize..];
    }
    out
}

/// Every stream of a capture as JSON.
fn streams(bytes: &[u8]) -> Vec<String> {
    let mut capture = Capture::open(bytes).expect("a capture");
    let mut analyzer = Analyzer::new(Limits::default());
    let mut out = Vec::new();
    while let Some(packet) = capture.packet().expect("whole") {
        analyzer.packet(&packet, &mut |stream| out.push(serde_json::to_string(stream).unwrap()));
    }
    analyzer.finish(&mut |stream| out.push(serde_json::to_string(stream).unwrap()));
    out
}

#[test]
fn every_format_gives_the_same_streams() {
    let pcap = fixture("keepalive");
    let expected = streams(&pcap);
    assert_eq!(expected.len(), 2);
    let mut swapped = pcap[..24].to_vec();
    swapped[..4].reverse();
    swapped[20..24].reverse();
    let mut rest = &pcap[24..];
    while rest.len() >= 16 {
        let kept = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        rest[..16].chunks(4).for_each(|word| swapped.extend(word.iter().rev()));
        swapped.extend_from_slice(&rest[16..16 + kept]);
        rest = &rest[16 + kept..];
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&pcap).unwrap();
    let two_sections = [as_pcapng(&pcap, false), as_pcapng(&pcap[..24], true)].concat();
    // Compressed by `zstd -3`.
    let zstd = include_bytes!("../data/keepalive.pcap.zst");
    for (name, bytes) in [
        ("big-endian pcap", swapped),
        ("pcapng", as_pcapng(&pcap, false)),
        ("big-endian pcapng", as_pcapng(&pcap, true)),
        ("two sections", two_sections),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd.to_vec()),
        ("zstd in two frames", [&zstd[..], &[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]].concat()),
    ] {
        assert_eq!(streams(&bytes), expected, "{name}");
    }
}

#[test]
fn a_capture_cut_anywhere_gives_the_packets_before_the_cut() {
    let bytes = fixture("rst");
    let (all, failed) = read(&bytes);
    assert!(failed.is_none());
    let mut before = 0;
    for cut in (0..bytes.len()).step_by(41) {
        let (packets, failed) = read(&bytes[..cut]);
        assert!(packets >= before && packets <= all);
        before = packets;
        assert!(failed.is_some() || packets > 0 || cut >= 24, "cut at {cut}");
    }
    let packed = as_pcapng(&bytes, true);
    for cut in (0..packed.len()).step_by(53) {
        read(&packed[..cut]);
    }
}

#[test]
fn streams_above_the_limit_are_summarised_early() {
    let mut analyzer = Analyzer::new(Limits { streams: 10, edges: 4, notable: 1, ..Limits::default() });
    let mut early = 0;
    for number in 0..1000_u32 {
        let mut bytes = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0];
        bytes.extend_from_slice(&(number as u16).to_be_bytes());
        bytes.extend_from_slice(&[10, 1, 0, 1, 0x80, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 255, 255, 0, 0, 0, 0]);
        let packet = Packet { at_ns: i64::from(number), link: 101, wire_bytes: 40, bytes: &bytes };
        analyzer.packet(&packet, &mut |stream| early += u64::from(stream.dropped_for_room));
    }
    let report = analyzer.finish(&mut |_| {});
    assert_eq!((report.totals.streams, early, report.totals.dropped_for_room), (1000, 990, 990));
    assert!(report.edges.len() <= 9);
}

#[test]
fn damaged_captures_stay_within_the_bounds() {
    let rst = fixture("rst");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&rst).unwrap();
    let zstd = include_bytes!("../data/keepalive.pcap.zst").to_vec();
    let captures = vec![
        as_pcapng(&rst, false),
        as_pcapng(&rst, true),
        fixture("snapped"),
        fixture("qinq"),
        fixture("keepalive"),
        zstd,
        gzip.finish().unwrap(),
        rst,
    ];
    run("capture", &Corpus::bytes(captures), |input| drop(read(input)));
}

proptest! {
    #[test]
    fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..600), head in 0_usize..6) {
        let heads: [&[u8]; 6] = [
            b"",
            b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x65\x00\x00\x00",
            b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
            b"\x28\xb5\x2f\xfd\x04\x58",
            b"\x50\x2a\x4d\x18",
        ];
        read(&[heads[head], &bytes].concat());
    }

    #[test]
    fn any_packet_of_any_link_ends(bytes in proptest::collection::vec(any::<u8>(), 0..120), link in 0_usize..9, wire in any::<u32>(), at in any::<i64>()) {
        let link = [0, 1, 101, 108, 113, 276, 228, 229, 9999][link];
        let mut analyzer = Analyzer::new(Limits::default());
        analyzer.packet(&Packet { at_ns: at, link, wire_bytes: wire, bytes: &bytes }, &mut |_| {});
        analyzer.finish(&mut |_| {});
    }

    #[test]
    fn a_damaged_capture_ends(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30), which in 0_usize..4, ng in any::<bool>()) {
        let mut bytes = fixture(["rst", "snapped", "qinq", "keepalive"][which]);
        if ng {
            bytes = as_pcapng(&bytes, which % 2 == 0);
        }
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        read(&bytes);
    }

    /// Segments with random numbers between two ends: every step through the state machine is allowed.
    #[test]
    fn any_segments_end(segments in proptest::collection::vec((any::<bool>(), any::<u8>(), 0_u32..4, 0_u32..4, 0_usize..3, any::<u16>(), 0_i64..400), 1..60), wild in any::<bool>()) {
        let mut analyzer = Analyzer::new(Limits::default());
        analyzer.follow(0);
        let mut at_ns = 0;
        for (from_client, flags, sequence, acknowledged, payload, window, pause_ms) in segments {
            let text = [&b""[..], b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"][payload];
            let factor = if wild { 0x3fff_ffff } else { 18 };
            let mut bytes = vec![0x45, 0];
            bytes.extend_from_slice(&(40 + text.len() as u16).to_be_bytes());
            bytes.extend_from_slice(&[0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0]);
            bytes.extend_from_slice(if from_client { &[1, 10, 0, 0, 2, 0x90, 0, 0, 80] } else { &[2, 10, 0, 0, 1, 0, 80, 0x90, 0] });
            bytes.extend_from_slice(&(sequence.wrapping_mul(factor)).to_be_bytes());
            bytes.extend_from_slice(&(acknowledged.wrapping_mul(factor)).to_be_bytes());
            bytes.extend_from_slice(&[0x50, flags]);
            bytes.extend_from_slice(&window.to_be_bytes());
            bytes.extend_from_slice(&[0, 0, 0, 0]);
            bytes.extend_from_slice(text);
            at_ns += pause_ms * 1_000_000;
            analyzer.packet(&Packet { at_ns, link: 101, wire_bytes: bytes.len() as u32, bytes: &bytes }, &mut |_| {});
        }
        let report = analyzer.finish(&mut |_| {});
        prop_assert!(report.totals.segments > 0 && report.totals.unreadable == 0);
    }
}
