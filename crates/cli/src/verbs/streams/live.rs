//! `chokepoint streams -i`: live capture, analyzed at once and optionally written to a file.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chokepoint_packets::capture::PcapngWriter;
use chokepoint_packets::filter::Filter;
use chokepoint_packets::{Analyzer, Packet, Sink};
use chokepoint_sources::{PacketRing, Root, netns};
use serde::Serialize;

use crate::Usage;
use crate::args::Streams;
use crate::run::files::GrowingFile;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;

/// Time between two checks for Ctrl-C and the end.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes written at once.
const PIECE: usize = 256 << 10;

/// Counts of a live capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Caught {
    /// Packets that passed the filter.
    pub(crate) packets: u64,
    /// Packets among them that were lost because the ring was full.
    pub(crate) dropped: u64,
}

/// Captures until the time is over or the user asks to stop.
pub(super) fn capture(args: &Streams, interface: &str, analyzer: &mut Analyzer, sink: Sink<'_>, interrupt: &Interrupt) -> Result<Caught> {
    let words: Vec<_> = args.files.iter().map(|word| word.to_string_lossy()).collect();
    let filter: Filter = words.join(" ").parse().map_err(|error| Usage(format!("{error}")))?;
    let duration = args.duration.as_deref().map(settings::duration).transpose().map_err(|error| Usage(error.to_string()))?;
    let root = Root::default();
    let netns = args.netns.as_deref().map(|name| netns::resolve(&root, name)).transpose()?;
    let mut out = args.write.as_deref().map(Out::open).transpose()?;
    let mut ring = PacketRing::open(&root, netns, interface, &filter.program(args.snap))
        .with_context(|| format!("cannot capture on {interface} (`ip link` lists the interfaces; a capture needs CAP_NET_RAW)"))?;
    output::note(&format!("capturing on {interface}{}", if duration.is_some() { "" } else { " until Ctrl-C" }));
    let end = duration.map(|duration| Instant::now() + duration);
    let mut progress = Progress::new("capturing", duration);
    let mut failed = None;
    let mut take = |analyzer: &mut Analyzer, ring: &mut PacketRing, failed: &mut Option<anyhow::Error>| {
        ring.block(&mut |live| {
            let packet = Packet { at_ns: live.at_ns, link: live.link, wire_bytes: live.wire_bytes, bytes: live.bytes };
            analyzer.packet(&packet, sink);
            if let Some(out) = &mut out
                && let Err(error) = out.packet(&packet)
            {
                failed.get_or_insert(error);
            }
        })
    };
    while failed.is_none() && !interrupt.is_set() && end.is_none_or(|end| Instant::now() < end) {
        let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()).min(LOOK));
        ring.wait(left).with_context(|| format!("the capture on {interface} ended"))?;
        // One block at a time, so that the end and Ctrl-C are checked however fast packets come.
        take(analyzer, &mut ring, &mut failed);
        progress.tick(&format!("{} packets", analyzer.totals().packets));
    }
    // Read the packets that the kernel still holds. It hands them over within a moment.
    for _ in 0..PacketRing::BLOCKS {
        ring.wait(LOOK).with_context(|| format!("the capture on {interface} ended"))?;
        if failed.is_some() || !take(analyzer, &mut ring, &mut failed) {
            break;
        }
    }
    progress.finish();
    let (packets, dropped) = ring.counts().context("the number of dropped packets cannot be read")?;
    let end_ns = analyzer.totals().end_ns;
    match (failed, out) {
        (Some(error), _) => Err(error),
        (None, Some(out)) => out.finish(end_ns, packets, dropped).map(|()| Caught { packets, dropped }),
        (None, None) => Ok(Caught { packets, dropped }),
    }
}

/// The file of captured packets.
struct Out {
    file: GrowingFile,
    writer: PcapngWriter,
    piece: Vec<u8>,
}

impl Out {
    fn open(file: &Path) -> Result<Self> {
        Ok(Self { file: GrowingFile::open(file)?, writer: PcapngWriter::default(), piece: Vec::new() })
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<()> {
        self.writer.packet(&mut self.piece, packet);
        if self.piece.len() >= PIECE {
            self.file.append(&self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }

    fn finish(mut self, at_ns: i64, received: u64, dropped: u64) -> Result<()> {
        self.writer.end(&mut self.piece, at_ns, received, dropped);
        self.file.append(&self.piece)
    }
}
