//! `chokepoint streams`: TCP streams of captures.

mod live;
mod pictures;
mod result;
mod text;
mod windows;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::keepalive;
use chokepoint_packets::{Analyzer, Capture, CaptureError, Limits, Report, Sink, StreamSummary};

use crate::Usage;
use crate::args::Streams;
use crate::run::files;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;
use pictures::Gallery;
use result::{StreamsResult, UnreadFile};
use windows::Windows;

/// Packets between two checks for Ctrl-C.
const PACKETS_AT_ONCE: u64 = 16_384;

/// Reads and reports the captures; false if one could not be read to its end.
pub(crate) fn run(args: &Streams, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    if args.html.is_some() && args.stream.is_none() && reread(args).is_none() {
        let why = "packets from stdin or an interface can be read only once: name the stream to draw with --stream, or store the packets with --write";
        return Err(Usage(why.to_owned()).into());
    }
    let page = files::Output::open_where(args.html.as_deref(), "page")?;
    let limits = Limits { streams: args.open_max as usize, ..Limits::default() };
    let mut lines = Lines { wanted: args.each, text: String::new(), failed: None };
    let windows = args.cwnd.as_deref().map(Windows::read).transpose()?;
    let mut gallery = args.html.as_ref().map(|_| Gallery::new(windows.clone()));
    let mut sink = |stream: &StreamSummary| {
        lines.put(stream);
        if let Some(gallery) = &mut gallery {
            gallery.add(stream, args.stream);
        }
    };
    let mut analyzer = analyzer(limits, args.stream);
    let (mut failed, mut caught) = (Vec::new(), None);
    match &args.interface {
        Some(interface) => caught = Some(live::capture(args, interface, &mut analyzer, &mut sink, interrupt)?),
        None => failed = read_all(&args.files, &mut analyzer, &mut sink, interrupt),
    }
    let report = analyzer.finish(&mut sink);
    lines.flush();
    if let Some(error) = lines.failed {
        return Err(error);
    }
    let drawn = match (page, gallery) {
        (Some(file), Some(gallery)) => {
            draw(args, gallery, windows, &report, limits, words, interrupt).and_then(|text| file.write(text.as_bytes()))
        }
        _ => Ok(()),
    };
    let verdicts = report.edges.iter().map(|edge| keepalive(&edge.facts())).collect();
    let result = StreamsResult { report, verdicts, failed, open_max: args.open_max, caught };
    // The text report names what was not read; where nothing was, there is no report. A terminal shows it once.
    let is_text = !args.json && !args.each && !result.is_nothing_read();
    let is_told = is_text && output::is_terminal();
    for UnreadFile { file, why } in result.failed.iter().filter(|_| !is_told) {
        output::note(&format!("chokepoint: {}: {why}: a capture is a pcap or pcapng file, plain, .gz or .zst; - is stdin", file.display()));
    }
    if args.json {
        output::print_json(&format!("{:#}\n", result.json(words)))?;
    } else if is_text {
        output::print_painted(&text::render(&result, &output::style(), words))?;
    }
    drawn?;
    Ok(result.failed.is_empty())
}

fn analyzer(limits: Limits, follow: Option<u64>) -> Analyzer {
    let mut analyzer = Analyzer::new(limits);
    if let Some(stream) = follow {
        analyzer.follow(stream);
    }
    analyzer
}

/// Analyzes all files.
fn read_all(files: &[PathBuf], analyzer: &mut Analyzer, sink: Sink<'_>, interrupt: &Interrupt) -> Vec<UnreadFile> {
    let mut failed = Vec::new();
    let mut progress = Progress::new("reading", None);
    for file in files {
        if interrupt.is_set() {
            break;
        }
        if let Err(error) = read(file, analyzer, sink, &mut progress, interrupt) {
            failed.push(UnreadFile { file: file.clone(), why: error });
        }
    }
    progress.finish();
    failed
}

/// The files with the analyzed packets, if they can be read a second time.
fn reread(args: &Streams) -> Option<&[PathBuf]> {
    match args.interface {
        Some(_) => args.write.as_ref().map(std::slice::from_ref),
        None => args.files.iter().all(|file| file.as_os_str() != "-").then_some(&args.files[..]),
    }
}

/// The page of plots: of the stream of `--stream`, else the watched one, else the one that lost most time, else the largest.
fn draw(
    args: &Streams,
    gallery: Gallery,
    windows: Option<Windows>,
    report: &Report,
    limits: Limits,
    words: &Catalogue,
    interrupt: &Interrupt,
) -> Result<String> {
    let Some(stream) =
        args.stream.or(gallery.watched()).or_else(|| report.notable.first().map(|stream| stream.index)).or(gallery.largest())
    else {
        bail!("the capture has no TCP stream to draw");
    };
    if args.stream.is_some() {
        let trace = report.trace.as_ref().filter(|trace| !trace.points.is_empty());
        return trace.map(|trace| gallery.page(trace, words)).with_context(|| {
            format!("the capture has no stream {stream}: `chokepoint streams --each` lists the streams by number (index)")
        });
    }
    let (mut analyzer, mut second) = (analyzer(limits, Some(stream)), Gallery::new(windows));
    let mut sink = |summary: &StreamSummary| second.add(summary, Some(stream));
    // Errors of the first reading were reported then.
    read_all(reread(args).unwrap_or_default(), &mut analyzer, &mut sink, interrupt);
    let report = analyzer.finish(&mut sink);
    report.trace.map(|trace| second.page(&trace, words)).context("the capture changed while it was read: wait until it is complete")
}

fn read(file: &Path, analyzer: &mut Analyzer, sink: Sink<'_>, progress: &mut Progress, interrupt: &Interrupt) -> Result<(), String> {
    let reader: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(|error| error.to_string())?)
    };
    let mut capture = Capture::open(reader).map_err(|error: CaptureError| error.to_string())?;
    while let Some(packet) = capture.packet().map_err(|error| error.to_string())? {
        analyzer.packet(&packet, sink);
        let packets = analyzer.totals().packets;
        if packets.is_multiple_of(PACKETS_AT_ONCE) {
            if interrupt.is_set() {
                return Ok(());
            }
            progress.tick(&format!("{packets} packets"));
        }
    }
    Ok(())
}

/// Streams as lines of JSON, printed in blocks.
struct Lines {
    wanted: bool,
    text: String,
    failed: Option<anyhow::Error>,
}

impl Lines {
    fn put(&mut self, stream: &StreamSummary) {
        /// Bytes of a block.
        const PIECE: usize = 64 << 10;
        if !self.wanted || self.failed.is_some() {
            return;
        }
        match serde_json::to_string(stream) {
            Ok(line) => {
                self.text.push_str(&line);
                self.text.push('\n');
            }
            Err(error) => self.failed = Some(error.into()),
        }
        if self.text.len() > PIECE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.failed = output::print_json(&self.text).err();
            self.text.clear();
        }
    }
}
