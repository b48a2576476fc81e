//! Memory does not grow with the length of a capture. Compares many connections, generated while they are read, with few.
//! For the long run: `CONNECTIONS=5000000 cargo test --release -p chokepoint-packets --test it bounded:: -- --nocapture`.
//!
//! Deterministic: captures in, facts out.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the crate starts no thread and reads no environment; this test makes its capture beside it"
)]

#[path = "../../examples/generate.rs"]
#[allow(dead_code, reason = "the generator is a program, too")]
mod generate;

use chokepoint_packets::{Analyzer, Capture, Limits};

/// Default number of connections.
const CONNECTIONS: u64 = 400_000;
/// Connections open at once: a sixth of the limit of streams.
const OPEN: u64 = 10_000;
/// Additional memory allowed for a capture five times as long, MiB: allocators keep freed memory.
const GROWS_MAX_MB: u64 = 16;
/// The limit stated in docs/streams.md: 60,000 streams of 2.7 KB, the edges, and the reader, MiB.
const BOUND_MB: u64 = 200;

/// Peak memory of this process, MiB (proc_pid_status(5)).
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") / 1024
}

/// The number of streams, and the number summarised during reading.
fn analysed(connections: u64) -> (u64, u64) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let generator = std::thread::spawn(move || generate::write_capture(writer, connections, 1, 100, OPEN));
    let mut capture = Capture::open(reader).expect("a capture");
    let (mut analyzer, mut over) = (Analyzer::new(Limits::default()), 0);
    while let Some(packet) = capture.packet().expect("whole packets") {
        analyzer.packet(&packet, &mut |_| over += 1);
    }
    let report = analyzer.finish(&mut |_| {});
    let packets = generator.join().expect("it ends").expect("it writes");
    assert_eq!(report.totals.packets, packets);
    (report.totals.streams, over)
}

#[test]
fn memory_is_bounded_for_any_length() {
    let connections = std::env::var("CONNECTIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(CONNECTIONS);
    let few = (connections / 5).clamp(60_000, 400_000);
    // The short capture runs twice, because the first run leaves memory with the allocator that is not growth with length.
    for _ in 0..2 {
        assert_eq!(analysed(few).0, few);
    }
    let before = peak_mb();
    let (streams, over) = analysed(connections);
    let peak = peak_mb();
    println!("{connections} connections: {peak} MiB at most, {before} MiB with {few}");
    assert_eq!(streams, connections);
    assert!(over + 60_000 >= connections, "{over} were summarised while it was read");
    assert!(peak <= before + GROWS_MAX_MB && peak <= BOUND_MB, "{before} MiB, then {peak} MiB");
}
