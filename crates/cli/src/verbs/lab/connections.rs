//! Connections in a lab under load: compares what a packet capture and what the sockets show with the scenario's expectations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_lab::Lab;
use chokepoint_lab::scenario::{CaptureExpect, SocketsExpect};
use chokepoint_model::edge::{Keepalive, keepalive};
use chokepoint_packets::filter::Filter;
use chokepoint_packets::{Analyzer, Edge, Limits, Packet};
use chokepoint_sources::{PacketRing, Root, netns};

use super::expectation::word;
use crate::verbs::tcp::cycles::{self, EdgeCycles};
use crate::verbs::tcp::edge_filter::EdgeFilter;

/// Bytes captured of each packet; headers suffice.
const SNAP_BYTES: u32 = 1024;
/// How often the capture checks whether the run is over.
const POLL: Duration = Duration::from_millis(200);

/// Runs `work`. At the same time it captures packets and watches sockets, if the scenario asks for it. Also returns a sentence for each expectation that did
/// not hold.
pub(super) fn checked_during<T>(lab: &Lab, work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<String>)> {
    let expect = &lab.scenario().expect;
    let mut ring = expect.capture.as_ref().map(|wanted| ring(lab, wanted)).transpose()?;
    let flag = AtomicBool::new(false);
    let is_over = &flag;
    std::thread::scope(|scope| {
        let capture = ring.as_mut().map(|ring| scope.spawn(move || capture(ring, is_over)));
        let sockets = expect.sockets.as_ref().map(|wanted| scope.spawn(move || sockets(wanted, is_over)));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        if let (Some(capture), Some(wanted)) = (capture, &expect.capture) {
            let (edge, dropped) = capture.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            failures.extend(compare_capture(wanted, edge.as_ref(), dropped));
        }
        if let (Some(sockets), Some(wanted)) = (sockets, &expect.sockets) {
            let edge = sockets.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            failures.extend(compare_sockets(wanted, edge.as_ref()));
        }
        Ok((result?, failures))
    })
}

fn ring(lab: &Lab, wanted: &CaptureExpect) -> Result<PacketRing> {
    let name = lab.netns_name(&wanted.host).with_context(|| format!("there is no host {}", wanted.host))?;
    let root = Root::default();
    Ok(PacketRing::open(&root, Some(netns::resolve(&root, &name)?), &wanted.interface, &Filter::default().program(SNAP_BYTES))?)
}

/// The busiest edge, from the sockets.
fn sockets(wanted: &SocketsExpect, is_over: &AtomicBool) -> Result<Option<EdgeCycles>> {
    let filter: EdgeFilter = format!("*->{}", wanted.server).parse()?;
    let cycles = cycles::watch(filter, &|_| is_over.load(Ordering::Relaxed))?;
    Ok(cycles.edges.into_iter().next())
}

fn compare_sockets(wanted: &SocketsExpect, edge: Option<&EdgeCycles>) -> Vec<String> {
    let Some(edge) = edge else { return vec![format!("the sockets show no connection to {}", wanted.server)] };
    let open = if edge.verdict.open { " (one of the reasons)" } else { "" };
    let failures = compare(&format!("the sockets say{open}"), &edge.verdict, &wanted.kept, &wanted.reasons);
    failures.into_iter().map(|failure| format!("{failure}: {:?}", edge.facts)).collect()
}

/// The busiest edge, from packets, and the number of lost packets.
fn capture(ring: &mut PacketRing, is_over: &AtomicBool) -> Result<(Option<Edge>, u64)> {
    let mut analyzer = Analyzer::new(Limits::default());
    let mut left = PacketRing::BLOCKS;
    while left > 0 {
        ring.wait(POLL)?;
        let more = ring.block(&mut |live| {
            let packet = Packet { at_ns: live.at_ns, link: live.link, wire_bytes: live.wire_bytes, bytes: live.bytes };
            analyzer.packet(&packet, &mut |_| {});
        });
        if is_over.load(Ordering::Relaxed) {
            left = if more { left - 1 } else { 0 };
        }
    }
    let dropped = ring.counts()?.1;
    Ok((analyzer.finish(&mut |_| {}).edges.into_iter().next(), dropped))
}

fn compare_capture(wanted: &CaptureExpect, edge: Option<&Edge>, dropped: u64) -> Vec<String> {
    let Some(edge) = edge else { return vec!["the capture shows no connection".to_owned()] };
    compare(&format!("the capture says ({dropped} packets were dropped)"), &keepalive(&edge.facts()), &wanted.kept, &wanted.reasons)
}

fn compare(who: &str, verdict: &Keepalive, kept: &str, wanted: &[String]) -> Vec<String> {
    let mut failures = Vec::new();
    if word(&verdict.kept) != kept {
        failures.push(format!("{who} that keepalive is {}, expected {kept}", word(&verdict.kept)));
    }
    let reasons: Vec<String> = verdict.reasons.iter().map(word).collect();
    if reasons != wanted {
        failures.push(format!("{who} as reasons: {}; expected: {}", reasons.join(", "), wanted.join(", ")));
    }
    failures
}
