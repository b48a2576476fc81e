//! `chokepoint streams`: TCP streams of captures.

mod live;
mod pictures;
mod result;
mod text;
mod windows;

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use chokepoint_foreign::open_named;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::keepalive;
use chokepoint_packets::{Analyzer, Capture, CaptureError, Limits, Report, Sink, StreamSummary};
use chokepoint_runs::NewRun;

use crate::Usage;
use crate::args::Streams;
use crate::report::page::{self, ReportPage};
use crate::report::view::Phrases;
use crate::run::files;
use crate::run::keeping::{self, Begun};
use crate::run::packet_capture::{PACKETS_AT_ONCE, UnpackingTime};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;
use pictures::Gallery;
use result::{StreamsResult, UnreadFile};
use windows::Windows;

/// Reads and reports the captures; false if one could not be read to its end.
pub(crate) fn run(args: &Streams, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    if args.html.is_some() && args.stream.is_none() && reread(args).is_none() {
        let why = "packets from stdin or an interface can be read only once: name the stream to draw with --stream, or store the packets with --write";
        return Err(Usage(why.to_owned()).into());
    }
    let begun = Begun::now();
    let file = files::Output::open_where(args.html.as_deref(), "page")?;
    let limits = Limits { streams: args.open_max as usize, ..Limits::default() };
    let mut lines = Lines { wanted: args.each, text: String::new(), failed: None };
    let windows = args.cwnd.as_deref().map(Windows::read).transpose()?;
    let mut gallery = Gallery::new(windows.clone());
    let mut sink = |stream: &StreamSummary| {
        lines.put(stream);
        gallery.add(stream, args.stream);
    };
    let mut analyzer = analyzer(limits, args.stream);
    let (mut failed, mut caught) = (Vec::new(), None);
    match &args.interface {
        Some(interface) => caught = Some(live::capture(args, interface, &mut analyzer, &mut sink, interrupt)?),
        None => failed = read_all(&args.files, &mut analyzer, &mut sink, interrupt),
    }
    let mut report = analyzer.finish(&mut sink);
    lines.flush();
    if let Some(error) = lines.failed {
        return Err(error);
    }
    let followed = if args.html.is_some() { follow(args, &mut gallery, windows, &mut report, limits, interrupt) } else { Ok(()) };
    let verdicts = report.edges.iter().map(|edge| keepalive(&edge.facts())).collect();
    let result = StreamsResult { source: source(args), report, verdicts, failed, open_max: args.open_max, caught };
    let page = gallery.page(&result, words);
    let drawn = match file {
        Some(file) if followed.is_ok() => file.write(page::file::render(&page, None, &result.summary(Phrases(words))).as_bytes()),
        _ => followed,
    };
    if !result.is_nothing_read() {
        keep(args, &begun, &result, &page, words, interrupt);
    }
    print(args, &result, words)?;
    drawn?;
    Ok(result.failed.is_empty())
}

/// Prints the result, unless each stream was printed.
fn print(args: &Streams, result: &StreamsResult, words: &Catalogue) -> Result<()> {
    // The text report names what was not read; where nothing was, there is no report. A terminal shows it once.
    let is_text = !args.json && !args.each && !result.is_nothing_read();
    let is_told = is_text && output::is_terminal();
    for UnreadFile { file, why } in result.failed.iter().filter(|_| !is_told) {
        output::note(&format!("chokepoint: {}: {why}: a capture is a pcap or pcapng file, plain, .gz or .zst; - is stdin", file.display()));
    }
    if args.json {
        output::print_json(&format!("{:#}\n", result.json(words)))?;
    } else if is_text {
        output::print_painted(&text::render(result, &output::style(), words))?;
    }
    Ok(())
}

/// The files or the interface, for people.
fn source(args: &Streams) -> String {
    match &args.interface {
        Some(interface) => interface.clone(),
        None => args.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" "),
    }
}

/// Keeps the run with its page: the packets may be gone when somebody looks at it.
fn keep(args: &Streams, begun: &Begun, result: &StreamsResult, page: &ReportPage, words: &Catalogue, interrupt: &Interrupt) {
    keeping::keep(&args.keep, words, || {
        let document = keeping::document(&result.json(words), Some(page.json()))?;
        let headline = result.summary(Phrases(words));
        Ok(NewRun { headline, figures: result.figures(), document, ..begun.run("streams", &result.source, interrupt) })
    });
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

/// Follows the stream to draw: the one of `--stream`, else the watched one, else the one that lost most time, else the largest. All but the first are known
/// only after the first reading, so that the files are read again.
fn follow(
    args: &Streams,
    gallery: &mut Gallery,
    windows: Option<Windows>,
    report: &mut Report,
    limits: Limits,
    interrupt: &Interrupt,
) -> Result<()> {
    let Some(stream) =
        args.stream.or(gallery.watched()).or_else(|| report.notable.first().map(|stream| stream.index)).or(gallery.largest())
    else {
        bail!("the capture has no TCP stream to draw");
    };
    if args.stream.is_some() {
        let is_there = report.trace.as_ref().is_some_and(|trace| !trace.points.is_empty());
        let why = || format!("the capture has no stream {stream}: `chokepoint streams --each` lists the streams by number (index)");
        return if is_there { Ok(()) } else { bail!(why()) };
    }
    let (mut analyzer, mut second) = (analyzer(limits, Some(stream)), Gallery::new(windows));
    let mut sink = |summary: &StreamSummary| second.add(summary, Some(stream));
    // Errors of the first reading were reported then.
    read_all(reread(args).unwrap_or_default(), &mut analyzer, &mut sink, interrupt);
    report.trace = analyzer.finish(&mut sink).trace;
    *gallery = second;
    if report.trace.is_some() { Ok(()) } else { bail!("the capture changed while it was read: wait until it is complete") }
}

fn read(file: &Path, analyzer: &mut Analyzer, sink: Sink<'_>, progress: &mut Progress, interrupt: &Interrupt) -> Result<(), String> {
    let named = (file.as_os_str() != "-").then(|| open_named(file)).transpose().map_err(|error| error.to_string())?;
    let time = UnpackingTime::of(named.as_ref());
    let reader: Box<dyn Read> = match named {
        Some(named) => Box::new(named),
        None => Box::new(std::io::stdin().lock()),
    };
    let mut capture = Capture::open(reader).map_err(|error: CaptureError| error.to_string())?;
    while let Some(packet) = capture.packet().map_err(|error| error.to_string())? {
        analyzer.packet(&packet, sink);
        let packets = analyzer.totals().packets;
        if packets.is_multiple_of(PACKETS_AT_ONCE) {
            if interrupt.is_set() {
                return Ok(());
            }
            time.check(&capture)?;
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
