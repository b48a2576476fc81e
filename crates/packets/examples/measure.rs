//! Analyses a capture and prints the time it took and its peak memory, without any other part of the program.
//! Usage: measure FILE [OPEN-MAX]

#![allow(clippy::disallowed_methods, reason = "it measures time, which the crate itself must not know")]

use std::fs::File;
use std::time::Instant;

use chokepoint_packets::{Analyzer, Capture, Limits};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("no file given")?;
    let mut limits = Limits::default();
    if let Some(streams) = words.next() {
        limits.streams = streams.parse()?;
    }
    let begin = Instant::now();
    let mut capture = Capture::open(File::open(file)?)?;
    let mut analyzer = Analyzer::new(limits);
    let mut over = 0_u64;
    while let Some(packet) = capture.packet()? {
        analyzer.packet(&packet, &mut |_| over += 1);
    }
    let report = analyzer.finish(&mut |_| over += 1);
    let seconds = begin.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().replace("VmHWM:", "").replace('\t', "");
    let totals = report.totals;
    println!(
        "{} packets, {} streams ({over} summarised, {} early), {} edges, {} requests: {seconds:.3} s, {:.0} ns a packet, {} at most",
        totals.packets,
        totals.streams,
        totals.dropped_for_room,
        report.edges.len(),
        report.edges.iter().map(|edge| edge.requests).sum::<u64>(),
        seconds * 1e9 / totals.packets as f64,
        peak.trim()
    );
    Ok(())
}
