//! A capture in a lab while it is loaded, and whether it alone tells what the scenario expects of its connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_lab::Lab;
use chokepoint_lab::scenario::CaptureExpect;
use chokepoint_model::edge::{Keepalive, keepalive};
use chokepoint_packets::filter::Filter;
use chokepoint_packets::{Analyzer, Edge, Limits, Packet};
use chokepoint_sources::{PacketRing, Root, netns};

use super::expectation::word;

/// Heads of packets are enough for what is asked here, bytes.
const SNAP_BYTES: u32 = 1024;
/// Time between two looks at whether the run is over.
const LOOK: Duration = Duration::from_millis(200);

/// Runs `work` while packets are captured where the scenario wants it; gives what did not come as expected, a sentence each.
pub(super) fn watched<T>(lab: &Lab, work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<String>)> {
    let Some(wanted) = &lab.scenario().expect.capture else { return Ok((work()?, Vec::new())) };
    let name = lab.netns_name(&wanted.host).with_context(|| format!("there is no host {}", wanted.host))?;
    let root = Root::default();
    let mut ring = PacketRing::open(&root, Some(netns::resolve(&root, &name)?), &wanted.interface, &Filter::default().program(SNAP_BYTES))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let capture = scope.spawn(|| capture(&mut ring, &over));
        let result = work();
        over.store(true, Ordering::Relaxed);
        let (edge, dropped) = capture.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((result?, compare(wanted, edge.as_ref(), dropped)))
    })
}

/// The edge that carried most requests, and the packets that were lost.
fn capture(ring: &mut PacketRing, over: &AtomicBool) -> Result<(Option<Edge>, u64)> {
    let mut analyzer = Analyzer::new(Limits::default());
    let mut left = PacketRing::BLOCKS;
    while left > 0 {
        ring.wait(LOOK)?;
        let more = ring.block(&mut |live| {
            let packet = Packet { at_ns: live.at_ns, link: live.link, wire_bytes: live.wire_bytes, bytes: live.bytes };
            analyzer.packet(&packet, &mut |_| {});
        });
        if over.load(Ordering::Relaxed) {
            left = if more { left - 1 } else { 0 };
        }
    }
    let dropped = ring.counts()?.1;
    Ok((analyzer.finish(&mut |_| {}).edges.into_iter().next(), dropped))
}

fn compare(wanted: &CaptureExpect, edge: Option<&Edge>, dropped: u64) -> Vec<String> {
    let Some(edge) = edge else { return vec!["the capture shows no connection".to_owned()] };
    let Keepalive { kept, reasons, .. } = keepalive(&edge.facts());
    let mut failures = Vec::new();
    if word(&kept) != wanted.kept {
        failures.push(format!(
            "the capture says that keepalive is {}, expected {} ({dropped} packets were dropped)",
            word(&kept),
            wanted.kept
        ));
    }
    let reasons: Vec<String> = reasons.iter().map(word).collect();
    if reasons != wanted.reasons {
        failures.push(format!("the capture gives as reasons: {}; expected: {}", reasons.join(", "), wanted.reasons.join(", ")));
    }
    failures
}
