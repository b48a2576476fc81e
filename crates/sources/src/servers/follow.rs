//! Source `server_log`: the lines that a master's access and error logs gained during the observation, counted while they are read.

use std::io::{self, Read, Seek, SeekFrom};

use chokepoint_config::error_log::{FpmEvent, FpmLine, NginxEvent, NginxLine};
use chokepoint_config::log_format::{Access, Escape, FpmFormat, LINE_BYTES_MAX, LogFormat, Record};
use chokepoint_foreign::Files;
use chokepoint_model::observation::{AccessLog, ErrorLog, LogExtent, Observation};
use chokepoint_recording::{Entry, Outcome};

use super::access::{NEEDS, files};
use super::config::{collect, parsed};
use super::logs::{LineKind, LogFile, logs};
use super::mark::Mark;
use super::master::master;
use super::pages::MARK;
use super::status::is_polled;
use super::tally::{self, Histogram, add_error};
use crate::reduction::Reduction;
use crate::root::{Root, outcome_of, reading_of};
use crate::scope::server_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};

const NAME: &str = "server_log";
/// Most bytes of logs to read in one observation. Of more, only the end is read, and the figures say how much was skipped.
const BYTES_MAX: u64 = 64 << 20;
/// Bytes of one read(2).
const CHUNK_BYTES: usize = 256 << 10;
const ITEM_ACCESS: &str = "access ";
const ITEM_ERRORS: &str = "error ";

/// At both ends for each master of a known kind. The first read notes the sizes of its logs. The last read gives one item for each log with counts of the new
/// lines. Logs are counted here and not recorded, since they grow by megabytes a second. A line costs about half a microsecond, 64 MiB about a quarter of a
/// second, both after the load has ended.
pub(crate) const SERVER_LOG: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::Reduced };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let key = format!("{NAME} {pid}");
    if context.phase != Phase::Last {
        if let Some(marks) = marks(context.root, pid).and_then(|marks| serde_json::to_vec(&marks).ok()) {
            context.notes.set(&key, marks);
        }
        return Vec::new();
    }
    let Some(marks) = context.notes.get(&key).and_then(|json| serde_json::from_slice::<Vec<Mark>>(&json).ok()) else { return Vec::new() };
    let files = match files(context.root, pid) {
        Ok(files) => files,
        Err(lack) => return only_item(lack),
    };
    // The first server may use half of the bound, and each further one half of the rest.
    let spent = context.notes.get(NAME).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))).unwrap_or(0);
    let allowed = BYTES_MAX.saturating_sub(spent) / 2;
    let mut left = allowed;
    let mut items = Vec::new();
    for (done, mark) in marks.iter().enumerate() {
        let share = left / (marks.len() - done) as u64;
        let (outcome, took) = follow(context, pid, &files, mark, share);
        left -= took.min(left);
        let kind = if matches!(mark.lines, LineKind::Access(_) | LineKind::FpmAccess { .. }) { ITEM_ACCESS } else { ITEM_ERRORS };
        items.push((format!("{kind}{}", mark.path), outcome));
    }
    context.notes.set(NAME, (spent + allowed - left).to_le_bytes().to_vec());
    items
}

/// The logs of a master; nothing for other processes, and if its configuration cannot be read, which `server_config` reports.
fn marks(root: &Root, pid: u32) -> Option<Vec<Mark>> {
    let master = master(root, pid).ok()??;
    let files = files(root, pid).ok()?;
    let collected = collect(&files, &master);
    let Outcome::Ok(dump) = &collected.outcome else { return None };
    let (head, parsed) = parsed(&String::from_utf8_lossy(dump)).ok()?;
    let mark = |(path, log): (String, LogFile)| Mark::of(&files, path, log.lines, collected.access(log.named_in.iter()));
    Some(logs(&head, &parsed).into_iter().map(mark).collect())
}

/// The new lines of one log, and how many bytes were read.
fn follow(context: &ReadContext<'_>, pid: u32, files: &Files, mark: &Mark, bytes_max: u64) -> (Outcome, u64) {
    let mut counted = match LogCounter::new(&mark.lines, is_polled(context, pid)) {
        Ok(counted) => counted,
        Err(why) => return (Outcome::Failed(why, None), 0),
    };
    let mut left = bytes_max;
    let followed = mark.pieces(context.root, pid, files).and_then(|pieces| {
        for (mut file, from) in pieces.files {
            let to = file.metadata()?.len();
            let skip = (to - from.min(to)).saturating_sub(left);
            file.seek(SeekFrom::Start(from + skip))?;
            let read = count(&mut file.take(to.saturating_sub(from + skip)), skip > 0, &mut |line| counted.add(line))?;
            left -= read;
            counted.extent.read_bytes += read;
            counted.extent.skipped_bytes += skip;
        }
        counted.extent.rotated = pieces.rotated;
        Ok(())
    });
    let outcome = match followed {
        Ok(()) => Outcome::Ok(counted.text().into_bytes()),
        // A log to a terminal or pipe cannot be followed.
        Err(error) if error.kind() == io::ErrorKind::Other => Outcome::Absent(error.to_string(), None),
        Err(error) => match outcome_of(&error, Some(NEEDS)) {
            Outcome::Absent(why, Some(_)) if !mark.access.is_own() => Outcome::Absent(why + &mark.access.remark(), None),
            outcome => outcome,
        },
    };
    (outcome, bytes_max - left)
}

/// Passes each complete line, without its line feed, to `each`. Skips the first line if reading begins in its middle. Lines longer than any server writes are
/// cut.
fn count(from: &mut impl Read, in_the_middle: bool, each: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut line: Vec<u8> = Vec::new();
    let mut skipping = in_the_middle;
    let mut read = 0;
    loop {
        let length = match from.read(&mut buffer) {
            Ok(0) => return Ok(read),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        read += length as u64;
        let mut rest = &buffer[..length];
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            if skipping {
                skipping = false;
            } else if line.is_empty() {
                each(&rest[..end]);
            } else {
                line.extend_from_slice(&rest[..end]);
                each(&line);
            }
            line.clear();
            rest = &rest[end + 1..];
        }
        let room = (LINE_BYTES_MAX + 1).saturating_sub(line.len());
        line.extend_from_slice(&rest[..rest.len().min(room)]);
    }
}

/// How the lines of one log are parsed.
enum LineParser {
    Access(Vec<(LogFormat, Record)>),
    /// With the path of the status page, whose requests are no work of the application.
    FpmAccess(Box<(FpmFormat, Record, Option<String>)>),
    Errors,
    FpmErrors,
}

struct LogCounter {
    reader: LineParser,
    /// True if the log has lines of this program's own requests.
    has_ours: bool,
    access: AccessLog,
    errors: ErrorLog,
    request: Histogram,
    upstream: Histogram,
    duration: Histogram,
    extent: LogExtent,
}

impl LogCounter {
    fn new(lines: &LineKind, has_ours: bool) -> Result<Self, String> {
        let mut access = AccessLog::default();
        let reader = match lines {
            LineKind::Access(formats) => {
                let compile = |(text, escape): &(String, String)| {
                    let escape = match escape.as_str() {
                        "json" => Escape::Json,
                        "none" => Escape::None,
                        _ => Escape::Default,
                    };
                    let format = LogFormat::nginx(text, escape).map_err(|error| error.to_string())?;
                    let record = format.record();
                    Ok((format, record))
                };
                let formats = formats.iter().map(compile).collect::<Result<Vec<_>, String>>()?;
                access.has_status = formats.iter().all(|(format, _)| format.has_status());
                LineParser::Access(formats)
            }
            LineKind::FpmAccess { format, status_path } => {
                let format = FpmFormat::compile(format).map_err(|error| error.to_string())?;
                access.has_status = format.has_status();
                let record = format.record();
                LineParser::FpmAccess(Box::new((format, record, status_path.clone())))
            }
            LineKind::Errors => LineParser::Errors,
            LineKind::FpmErrors => LineParser::FpmErrors,
        };
        let histogram = Histogram::default;
        let errors = ErrorLog::default();
        Ok(Self {
            reader,
            has_ours,
            access,
            errors,
            request: histogram(),
            upstream: histogram(),
            duration: histogram(),
            extent: LogExtent::default(),
        })
    }

    fn add(&mut self, line: &[u8]) {
        if self.has_ours && contains(line, MARK.as_bytes()) {
            return;
        }
        match &mut self.reader {
            LineParser::Access(formats) => {
                self.access.lines += 1;
                let access = formats.iter_mut().find_map(|(format, record)| format.read(line, record).ok());
                match access {
                    Some(access) => add_access(&mut self.access, &mut self.request, &mut self.upstream, &access),
                    None => self.access.misfits += 1,
                }
            }
            LineParser::FpmAccess(format) => {
                let (format, record, status_path) = &mut **format;
                let access = format.read(line, record);
                let path = access.as_ref().ok().and_then(|access| access.uri?.split(|byte| *byte == b'?').next());
                if status_path.as_ref().is_some_and(|status| path == Some(status.as_bytes())) {
                    return;
                }
                self.access.lines += 1;
                match access {
                    Ok(access) => {
                        access.duration_us.into_iter().for_each(|us| self.duration.add(us));
                        access.status.into_iter().for_each(|status| *self.access.status.entry(status).or_default() += 1);
                    }
                    Err(_) => self.access.misfits += 1,
                }
            }
            LineParser::Errors => {
                let text = String::from_utf8_lossy(line);
                if let Some(parsed) = NginxLine::parse(&text) {
                    // The referrer comes last and has no effect on throughput.
                    let message = text.split(", referrer: \"").next().unwrap_or_default();
                    add_error(&mut self.errors, &nginx_kind(&parsed), message);
                }
            }
            LineParser::FpmErrors => {
                let text = String::from_utf8_lossy(line);
                if let Some(parsed) = FpmLine::parse(&text) {
                    add_error(&mut self.errors, &fpm_kind(&parsed), &text);
                }
            }
        }
    }

    fn text(mut self) -> String {
        if matches!(self.reader, LineParser::Errors | LineParser::FpmErrors) {
            self.errors.extent = self.extent;
            return tally::error_text(&self.errors);
        }
        self.access.extent = self.extent;
        self.access.request_time_us = self.request.percentiles();
        self.access.upstream_time_us = self.upstream.percentiles();
        self.access.duration_us = self.duration.percentiles();
        tally::access_text(&self.access)
    }
}

fn contains(line: &[u8], mark: &[u8]) -> bool {
    let Some((first, rest)) = mark.split_first() else { return false };
    let mut at = line.iter().enumerate().filter(|(_, byte)| *byte == first);
    at.any(|(at, _)| line[at + 1..].starts_with(rest))
}

fn add_access(log: &mut AccessLog, request: &mut Histogram, upstream: &mut Histogram, access: &Access<'_>) {
    access.status.into_iter().for_each(|status| *log.status.entry(status).or_default() += 1);
    access.request_time_us.into_iter().for_each(|us| request.add(us));
    access.upstream_response_us.times_us().flatten().for_each(|us| upstream.add(us));
    log.bytes = log.bytes.saturating_add(access.bytes_sent.or(access.body_bytes_sent).unwrap_or(0));
}

fn nginx_kind(line: &NginxLine<'_>) -> String {
    let numbered = |name: &str| line.errno.map_or_else(|| name.to_owned(), |errno| format!("{name} {errno}"));
    let of_zone = |name: &str| line.zone.map_or_else(|| name.to_owned(), |zone| format!("{name} {zone}"));
    let plain = match line.event {
        NginxEvent::ConnectFailed => return numbered("connect"),
        // A reset, or a broken pipe: the request was sent or being sent, and no part of the response had come.
        NginxEvent::TransferFailed if awaits_answer(line) && matches!(line.errno, Some(104 | 32)) => "upstream reset",
        NginxEvent::TransferFailed => return numbered("transfer"),
        NginxEvent::AcceptFailed => return numbered("accept"),
        NginxEvent::SocketFailed => return numbered("socket"),
        NginxEvent::OpenFailed => return numbered("open"),
        NginxEvent::BindFailed => return numbered("bind"),
        NginxEvent::UpstreamTimedOut => "upstream timed out",
        NginxEvent::UpstreamClosed if awaits_answer(line) => "upstream closed",
        NginxEvent::UpstreamClosed => "upstream closed within its answer",
        NginxEvent::ClientClosed => "client closed",
        NginxEvent::NoLiveUpstreams => "no live upstreams",
        NginxEvent::WorkerConnectionsExhausted => "worker_connections",
        NginxEvent::WorkerConnectionsReused => "worker_connections reused",
        NginxEvent::RateLimited => return of_zone("limiting requests"),
        NginxEvent::RateDelayed => return of_zone("delaying requests"),
        NginxEvent::ConnLimited => return of_zone("limiting connections"),
        NginxEvent::BufferedToFile => "buffered to file",
        NginxEvent::WorkerDied => "worker died",
        NginxEvent::Other => "other",
    };
    plain.to_owned()
}

/// True if no part of the upstream's response had come yet.
fn awaits_answer(line: &NginxLine<'_>) -> bool {
    line.phase.is_some_and(|phase| ["reading response header from upstream", "sending request to upstream"].contains(&phase))
}

fn fpm_kind(line: &FpmLine<'_>) -> String {
    let of_pool = |name: &str| line.pool.map_or_else(|| name.to_owned(), |pool| format!("{name} {pool}"));
    match line.event {
        FpmEvent::MaxChildrenReached { .. } => of_pool("max_children"),
        FpmEvent::SeemsBusy { .. } => of_pool("seems busy"),
        FpmEvent::Slow { .. } => of_pool("slow"),
        FpmEvent::TimedOut { .. } => of_pool("timed out"),
        FpmEvent::ChildDied { .. } => of_pool("child died"),
        FpmEvent::Output => of_pool("output"),
        FpmEvent::BindFailed => "bind".to_owned(),
        FpmEvent::Ready => "ready".to_owned(),
        FpmEvent::Other => "other".to_owned(),
    }
}

/// Beginnings of the kinds whose lines the model quotes. Other kinds, such as program output, keep only their number.
const QUOTED: &[&str] = &[
    "accept",
    "bind",
    "client closed",
    "connect",
    "delaying",
    "limiting",
    "max_children",
    "no live upstreams",
    "open",
    "socket",
    "transfer",
    "upstream",
    "worker_connections",
];

/// The figures of a log with only the lines that the model quotes.
pub(crate) fn reduced(text: &str, reduction: &mut Reduction) -> Outcome {
    let mut kept = String::new();
    let mut is_quoted = false;
    for line in text.split_inclusive('\n') {
        if let Some((_, kind)) = line.strip_prefix("kind ").and_then(|counted| counted.split_once(' ')) {
            is_quoted = QUOTED.iter().any(|known| kind.starts_with(known));
        }
        match line.starts_with("sample ") && !is_quoted {
            true => reduction.log_lines += 1,
            false => kept.push_str(line),
        }
    }
    Outcome::Ok(kept.into_bytes())
}

fn put(observation: &mut Observation, entry: &Entry) {
    let Some(server) = server_view(observation, entry) else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Some(path) = entry.item.strip_prefix(ITEM_ACCESS) {
        let log = server.access_logs.entry(path.to_owned()).or_default();
        log.push(entry.at_us, reading_of(&entry.outcome, |bytes| tally::access_log(&text(bytes))));
    } else {
        // A lack of all logs has no path.
        let path = entry.item.strip_prefix(ITEM_ERRORS).unwrap_or("all");
        let log = server.error_logs.entry(path.to_owned()).or_default();
        log.push(entry.at_us, reading_of(&entry.outcome, |bytes| tally::error_log(&text(bytes))));
    }
}
