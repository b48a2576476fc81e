//! Counts of a log's lines, added up while they are read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use chokepoint_config::error_log::{FpmEvent, FpmLine, NginxEvent, NginxLine};
use chokepoint_config::log_format::{Details, Escape, FpmFormat, LogFormat, Measured, Record};
use chokepoint_model::observation::{AccessLog, ErrorLog, LogEvent, LogExtent, is_unserved};
use chokepoint_statistics::histogram::{Counts, Histogram};
use memchr::memmem::Finder;

use super::logs::LineKind;
use super::logs::amplify::AmplifyCounts;
use super::logs::asked::OwnLines;
use super::logs::lines::each_line;
use super::logs::urls::{self, GroupCounts, Groups};
use super::pages::MARK;
use super::tally::{self, add_error};

/// Statuses have three digits (RFC 9110, section 15); larger ones are misfits of a hostile log.
const STATUSES: usize = 1_000;

/// How the lines of one log are parsed.
enum LineParser {
    Access(Vec<(LogFormat, Record)>),
    FpmAccess(Box<(FpmFormat, Record)>),
    Errors,
    FpmErrors,
}

/// What a server wrote of a line of a log, nothing if it did not write it.
pub(super) type Written = fn(&[u8]) -> Option<Cow<'_, [u8]>>;

/// The whole line.
pub(super) fn whole(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    Some(Cow::Borrowed(line))
}

/// The counts of one log.
pub(super) struct LogCounter {
    reader: LineParser,
    /// Finds lines that may be those of this program's own requests, and which are to be expected: they are not counted.
    mark: Finder<'static>,
    own: OwnLines,
    access: AccessLog,
    status: Box<[u64; STATUSES]>,
    errors: ErrorLog,
    request: Histogram,
    upstream_connect: Histogram,
    upstream_header: Histogram,
    upstream: Histogram,
    duration: Histogram,
    urls: Groups,
    upstreams: Groups,
    amplify: AmplifyCounts,
    pub(super) extent: LogExtent,
}

/// What a log gained, for a server that is watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogGrowth {
    /// True for an access log that has statuses: without new lines nothing was answered.
    pub tells_answers: bool,
    /// Lines by status; empty for an error log.
    pub status: BTreeMap<u16, u64>,
    /// Bytes of answers.
    pub bytes: u64,
    /// Lines that do not match the log's format.
    pub misfits: u64,
    /// Durations, microseconds, by name: "request", "upstream-connect", "upstream-header", "upstream-response", "worker". Those that the format has.
    pub durations_us: BTreeMap<&'static str, Counts>,
    /// The groups of URLs with most answers.
    pub urls: Vec<(String, GroupCounts)>,
    /// The upstreams with most answers, by their addresses. Each that was tried for a request counts.
    pub upstreams: Vec<(String, GroupCounts)>,
    /// What the agent of NGINX Amplify counted, by its names. Of methods, versions, caches and lengths a sample if the log is busy.
    pub amplify: BTreeMap<&'static str, u64>,
    /// Means under its names, of a sample if the log is busy.
    pub amplify_means: BTreeMap<&'static str, f64>,
    /// Lines of an error log, by event.
    pub errors: BTreeMap<LogEvent, u64>,
    /// The part of the log that was read.
    pub extent: LogExtent,
}

impl LogCounter {
    /// For lines of this kind; why the format cannot be read.
    pub(super) fn new(lines: &LineKind) -> Result<Self, String> {
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
            LineKind::FpmAccess { format } => {
                let format = FpmFormat::compile(format).map_err(|error| error.to_string())?;
                access.has_status = format.has_status();
                let record = format.record();
                LineParser::FpmAccess(Box::new((format, record)))
            }
            LineKind::Errors => LineParser::Errors,
            LineKind::FpmErrors => LineParser::FpmErrors,
        };
        Ok(Self {
            reader,
            mark: Finder::new(MARK),
            own: OwnLines::default(),
            access,
            status: Box::new([0; STATUSES]),
            errors: ErrorLog::default(),
            request: Histogram::default(),
            upstream_connect: Histogram::default(),
            upstream_header: Histogram::default(),
            upstream: Histogram::default(),
            duration: Histogram::default(),
            urls: Groups::default(),
            upstreams: Groups::default(),
            amplify: AmplifyCounts::default(),
            extent: LogExtent::default(),
        })
    }

    /// Counts the complete lines from a place on, of a longer piece than `bytes_max` its end, and returns where the next line begins. `written` takes off what was put
    /// around the server's own line.
    pub(super) fn read(&mut self, file: &mut File, from: u64, bytes_max: u64, written: Written) -> io::Result<u64> {
        let to = file.metadata()?.len().max(from);
        let skip = (to - from).saturating_sub(bytes_max);
        file.seek(SeekFrom::Start(from + skip))?;
        let mark = (!self.own.are_all_found()).then(|| self.mark.clone());
        let extent = each_line(&mut file.take(to - from - skip), skip > 0, mark.as_ref(), |line, is_marked| {
            if let Some(line) = written(line) {
                self.add(&line, is_marked);
            }
        })?;
        self.extent.read_bytes += extent.read;
        self.extent.skipped_bytes += skip;
        Ok(from + skip + extent.read - extent.incomplete)
    }

    /// Sets the lines of own requests that are to be expected.
    pub(super) fn expect(&mut self, own: OwnLines) {
        self.own = own;
    }

    /// Those that were not found.
    pub(super) fn expected(&self) -> &OwnLines {
        &self.own
    }

    /// Counts a line. `is_marked`: it may be that of an own request.
    fn add(&mut self, line: &[u8], is_marked: bool) {
        let own = &mut self.own;
        match &mut self.reader {
            LineParser::Access(formats) => {
                let is_own = |(format, record): &mut (LogFormat, Record)| {
                    format.extract(line, record).ok().map(|()| own.take(format.asked(line, record)))
                };
                if is_marked && formats.iter_mut().find_map(is_own) == Some(true) {
                    return;
                }
                self.access.lines += 1;
                let parsed = |(format, record): &'_ mut (LogFormat, Record)| {
                    let access = format.measure(line, record).ok()?;
                    let weight = self.urls.weight();
                    if let Some(weight) = weight {
                        let details = format.details(line, record);
                        self.amplify.add(&details, weight);
                        add_upstreams(&mut self.upstreams, &access, &details, weight);
                    }
                    Some((access, weight.and_then(|weight| Some((format.asked(line, record)?, weight)))))
                };
                match formats.iter_mut().find_map(parsed) {
                    Some((access, asked)) => self.add_access(&access, asked),
                    None => self.access.misfits += 1,
                }
            }
            LineParser::FpmAccess(format) => {
                let (format, record) = &mut **format;
                let access = format.read(line, record);
                // A format may lack the query, and with it the mark.
                if access.as_ref().is_ok_and(|access| access.uri.is_some_and(|uri| own.take_uri(uri))) {
                    return;
                }
                self.access.lines += 1;
                match access {
                    Ok(access) => {
                        access.duration_us.into_iter().for_each(|us| self.duration.add(us));
                        access.status.into_iter().for_each(|status| add_status(&mut self.status, status));
                    }
                    Err(_) => self.access.misfits += 1,
                }
            }
            LineParser::Errors if is_marked && own.take_error(line) => {}
            LineParser::Errors => {
                let text = String::from_utf8_lossy(line);
                if let Some(parsed) = NginxLine::parse(&text) {
                    // The referrer comes last and has no effect on throughput.
                    let message = text.split(", referrer: \"").next().unwrap_or_default();
                    add_error(&mut self.errors, nginx_event(&parsed), message);
                }
            }
            LineParser::FpmErrors => {
                let text = String::from_utf8_lossy(line);
                if let Some(parsed) = FpmLine::parse(&text) {
                    add_error(&mut self.errors, fpm_event(&parsed), &text);
                }
            }
        }
    }

    /// The text of the counts, for an entry.
    pub(super) fn text(mut self) -> String {
        if matches!(self.reader, LineParser::Errors | LineParser::FpmErrors) {
            self.errors.extent = self.extent;
            return tally::error_text(&self.errors);
        }
        self.access.extent = self.extent;
        self.access.status = self.statuses();
        self.access.request_time_us = tally::percentiles(&self.request.counts());
        self.access.upstream_time_us = tally::percentiles(&self.upstream.counts());
        self.access.duration_us = tally::percentiles(&self.duration.counts());
        tally::access_text(&self.access)
    }

    /// What was counted since the last call.
    pub(super) fn take(&mut self) -> LogGrowth {
        let mut durations_us = BTreeMap::new();
        let histograms = [
            ("request", &mut self.request),
            ("upstream-connect", &mut self.upstream_connect),
            ("upstream-header", &mut self.upstream_header),
            ("upstream-response", &mut self.upstream),
            ("worker", &mut self.duration),
        ];
        for (name, histogram) in histograms.into_iter().filter(|(_, histogram)| histogram.total() > 0) {
            durations_us.insert(name, histogram.counts());
            histogram.clear();
        }
        let (status, errors) = (self.statuses(), std::mem::take(&mut self.errors).events);
        let growth = LogGrowth {
            tells_answers: matches!(self.reader, LineParser::Access(_) | LineParser::FpmAccess(_)) && self.access.has_status,
            amplify: self.amplify.take(&status, &errors),
            amplify_means: self.amplify.take_means(),
            status,
            bytes: std::mem::take(&mut self.access.bytes),
            misfits: std::mem::take(&mut self.access.misfits),
            durations_us,
            urls: self.urls.take(),
            upstreams: self.upstreams.take(),
            errors,
            extent: std::mem::take(&mut self.extent),
        };
        self.status.fill(0);
        self.access.lines = 0;
        growth
    }

    fn statuses(&self) -> BTreeMap<u16, u64> {
        let met = self.status.iter().enumerate().filter(|(_, count)| **count > 0);
        met.map(|(status, count)| (status as u16, *count)).collect()
    }

    /// `asked`: what was asked for, and for how many requests it stands.
    fn add_access(&mut self, access: &Measured<'_>, asked: Option<(&[u8], u64)>) {
        if let Some((path, weight)) = asked {
            let counts = self.urls.add(path, weight, access.status.is_some_and(is_unserved));
            counts.bytes = counts.bytes.saturating_add(access.bytes.unwrap_or(0).saturating_mul(weight));
            access.request_time_us.into_iter().for_each(|us| counts.add_time(urls::REQUEST, us, weight));
            let attempts = [
                (urls::CONNECT, access.upstream_connect_us),
                (urls::HEADER, access.upstream_header_us),
                (urls::RESPONSE, access.upstream_response_us),
            ];
            attempts.into_iter().for_each(|(kind, times)| times.each_us(&mut |us| counts.add_time(kind, us, weight)));
        }
        access.status.into_iter().for_each(|status| add_status(&mut self.status, status));
        access.request_time_us.into_iter().for_each(|us| self.request.add(us));
        access.upstream_connect_us.each_us(&mut |us| self.upstream_connect.add(us));
        access.upstream_header_us.each_us(&mut |us| self.upstream_header.add(us));
        access.upstream_response_us.each_us(&mut |us| self.upstream.add(us));
        self.access.bytes = self.access.bytes.saturating_add(access.bytes.unwrap_or(0));
    }
}

/// Counts each upstream that was tried for an answer.
fn add_upstreams(upstreams: &mut Groups, access: &Measured<'_>, answer: &Details<'_>, weight: u64) {
    let (mut statuses, mut lengths) = (answer.upstream_status.numbers(), answer.upstream_length.numbers());
    let mut connects = access.upstream_connect_us.times_us();
    let mut headers = access.upstream_header_us.times_us();
    let mut responses = access.upstream_response_us.times_us();
    for address in answer.upstream_addr.texts() {
        let status = statuses.next().flatten().and_then(|status| u16::try_from(status).ok());
        let counts = upstreams.add_named(address, weight, status.is_some_and(is_unserved));
        counts.bytes = counts.bytes.saturating_add(lengths.next().flatten().unwrap_or(0).saturating_mul(weight));
        let times = [(urls::CONNECT, connects.next()), (urls::HEADER, headers.next()), (urls::RESPONSE, responses.next())];
        times.into_iter().filter_map(|(kind, us)| Some((kind, us??))).for_each(|(kind, us)| counts.add_time(kind, us, weight));
    }
}

/// A status that cannot be is counted as the last possible one.
fn add_status(statuses: &mut [u64; STATUSES], status: u16) {
    statuses[usize::from(status).min(STATUSES - 1)] += 1;
}

fn nginx_event(line: &NginxLine<'_>) -> LogEvent {
    let (errno, zone) = (line.errno, || line.zone.map(str::to_owned));
    match line.event {
        NginxEvent::ConnectFailed => LogEvent::ConnectFailed(errno),
        // A reset, or a broken pipe: the request was sent or being sent, and no part of the response had come.
        NginxEvent::TransferFailed if awaits_answer(line) && matches!(errno, Some(104 | 32)) => LogEvent::UpstreamReset,
        NginxEvent::TransferFailed => LogEvent::TransferFailed(errno),
        NginxEvent::AcceptFailed => LogEvent::AcceptFailed(errno),
        NginxEvent::SocketFailed => LogEvent::SocketFailed(errno),
        NginxEvent::OpenFailed => LogEvent::OpenFailed(errno),
        NginxEvent::BindFailed => LogEvent::BindFailed(errno),
        NginxEvent::UpstreamTimedOut => LogEvent::UpstreamTimedOut,
        NginxEvent::UpstreamClosed if awaits_answer(line) => LogEvent::UpstreamClosed,
        NginxEvent::UpstreamClosed => LogEvent::UpstreamClosedWithinAnswer,
        NginxEvent::ClientClosed => LogEvent::ClientClosed,
        NginxEvent::NoLiveUpstreams => LogEvent::NoLiveUpstreams,
        NginxEvent::AnswerHeaderTooBig => LogEvent::AnswerHeaderTooBig,
        NginxEvent::AnswerInvalid => LogEvent::AnswerInvalid,
        NginxEvent::WorkerConnectionsExhausted => LogEvent::ConnectionsExhausted,
        NginxEvent::WorkerConnectionsReused => LogEvent::ConnectionsReused,
        NginxEvent::RateLimited => LogEvent::RateLimited(zone()),
        NginxEvent::RateDelayed => LogEvent::RateDelayed(zone()),
        NginxEvent::ConnLimited => LogEvent::ConnectionsLimited(zone()),
        NginxEvent::BufferedToFile => LogEvent::BufferedToFile,
        NginxEvent::WorkerDied => LogEvent::WorkerDied,
        NginxEvent::Other => LogEvent::Other,
    }
}

/// True if no part of the upstream's response had come yet.
fn awaits_answer(line: &NginxLine<'_>) -> bool {
    line.phase.is_some_and(|phase| ["reading response header from upstream", "sending request to upstream"].contains(&phase))
}

fn fpm_event(line: &FpmLine<'_>) -> LogEvent {
    let pool = line.pool.map(str::to_owned);
    match line.event {
        FpmEvent::MaxChildrenReached { .. } => LogEvent::WorkersExhausted(pool),
        FpmEvent::SeemsBusy { .. } => LogEvent::SeemsBusy(pool),
        FpmEvent::Slow { .. } => LogEvent::Slow(pool),
        FpmEvent::TimedOut { .. } => LogEvent::RequestTimedOut(pool),
        FpmEvent::ChildDied { .. } => LogEvent::ChildDied(pool),
        FpmEvent::Output => LogEvent::Output(pool),
        FpmEvent::BindFailed => LogEvent::BindFailed(None),
        FpmEvent::Ready => LogEvent::Ready,
        FpmEvent::Other => LogEvent::Other,
    }
}
