//! Counts of a log's lines, and their text in an entry: one fact per line.

use std::fmt::Write;

use chokepoint_model::load::Percentiles;
use chokepoint_model::observation::{AccessLog, ErrorLog, LogEvent, LogExtent};
use chokepoint_statistics::histogram::Counts;

/// Most events of a log. Further ones count as [`LogEvent::Other`].
const EVENTS_MAX: usize = 64;
/// Most bytes of the first line of an event.
const SAMPLE_BYTES_MAX: usize = 300;
/// The percentiles of counted durations; `None` if there are none.
pub(super) fn percentiles(counts: &Counts) -> Option<Percentiles> {
    let at = |share: f64| counts.percentile(share);
    Some(Percentiles { p50: at(0.5)?, p75: at(0.75)?, p90: at(0.9)?, p95: at(0.95)?, p99: at(0.99)?, p999: at(0.999)?, max: counts.max() })
}

/// Adds a line of an error log to its event.
pub(super) fn add_error(log: &mut ErrorLog, event: LogEvent, line: &str) {
    let has_room = log.events.len() < EVENTS_MAX || log.events.contains_key(&event);
    let event = if has_room { event } else { LogEvent::Other };
    *log.events.entry(event.clone()).or_default() += 1;
    log.samples.entry(event).or_insert_with(|| {
        let mut end = line.len().min(SAMPLE_BYTES_MAX);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line[..end].to_owned()
    });
}

/// The text of an access log's figures.
pub(super) fn access_text(log: &AccessLog) -> String {
    let mut text = String::new();
    let facts = [("lines", log.lines), ("misfits", log.misfits), ("has_status", u64::from(log.has_status)), ("bytes", log.bytes)];
    for (name, value) in facts.into_iter().chain(extent_facts(log.extent)) {
        let _ = writeln!(text, "{name} {value}");
    }
    for (status, count) in &log.status {
        let _ = writeln!(text, "status {status} {count}");
    }
    for (name, times) in
        [("request_time_us", log.request_time_us), ("upstream_time_us", log.upstream_time_us), ("duration_us", log.duration_us)]
    {
        if let Some(t) = times {
            let _ = writeln!(text, "{name} {} {} {} {} {} {} {}", t.p50, t.p75, t.p90, t.p95, t.p99, t.p999, t.max);
        }
    }
    text
}

/// The text of an error log's figures.
pub(super) fn error_text(log: &ErrorLog) -> String {
    let mut text = String::new();
    for (name, value) in extent_facts(log.extent) {
        let _ = writeln!(text, "{name} {value}");
    }
    for (event, count) in &log.events {
        let _ = writeln!(text, "kind {count} {event}");
        if let Some(sample) = log.samples.get(event) {
            let _ = writeln!(text, "sample {}", sample.replace(['\n', '\r'], " "));
        }
    }
    text
}

fn extent_facts(extent: LogExtent) -> [(&'static str, u64); 3] {
    [("rotated", u64::from(extent.rotated)), ("skipped_bytes", extent.skipped_bytes), ("read_bytes", extent.read_bytes)]
}

/// Parses one of [`extent_facts`]; false for any other fact.
fn take_extent(extent: &mut LogExtent, name: &str, value: &str) -> Result<bool, String> {
    match name {
        "rotated" => extent.rotated = number::<u8>(value)? != 0,
        "skipped_bytes" => extent.skipped_bytes = number(value)?,
        "read_bytes" => extent.read_bytes = number(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn facts(text: &str) -> Result<Vec<(&str, &str)>, String> {
    if !text.ends_with('\n') {
        return Err("the last line is not complete".to_owned());
    }
    text.lines().map(|line| line.split_once(' ').ok_or_else(|| format!("expected \"name value\", found {line:?}"))).collect()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}"))
}

fn parsed_percentiles(text: &str) -> Result<Percentiles, String> {
    let numbers: Vec<u64> = text.split(' ').map(number).collect::<Result<_, _>>()?;
    let [p50, p75, p90, p95, p99, p999, max] = numbers[..] else { return Err(format!("expected 7 numbers, found {text:?}")) };
    Ok(Percentiles { p50, p75, p90, p95, p99, p999, max })
}

/// Parses the text of [`access_text`].
pub(super) fn access_log(text: &str) -> Result<AccessLog, String> {
    let mut log = AccessLog::default();
    for (name, value) in facts(text)? {
        match name {
            _ if take_extent(&mut log.extent, name, value)? => {}
            "lines" => log.lines = number(value)?,
            "misfits" => log.misfits = number(value)?,
            "has_status" => log.has_status = number::<u8>(value)? != 0,
            "bytes" => log.bytes = number(value)?,
            "status" => {
                let (status, count) = value.split_once(' ').ok_or("expected a status and a count")?;
                log.status.insert(number(status)?, number(count)?);
            }
            "request_time_us" => log.request_time_us = Some(parsed_percentiles(value)?),
            "upstream_time_us" => log.upstream_time_us = Some(parsed_percentiles(value)?),
            "duration_us" => log.duration_us = Some(parsed_percentiles(value)?),
            _ => {}
        }
    }
    Ok(log)
}

/// Parses the text of [`error_text`].
pub(super) fn error_log(text: &str) -> Result<ErrorLog, String> {
    let mut log = ErrorLog::default();
    let mut last: Option<LogEvent> = None;
    for (name, value) in facts(text)? {
        match name {
            _ if take_extent(&mut log.extent, name, value)? => {}
            "kind" => {
                let (count, event) = value.split_once(' ').ok_or("expected a count and an event")?;
                let event = LogEvent::of_text(event);
                // Several events of a later version are one to this program.
                let counted = log.events.entry(event.clone()).or_default();
                *counted = counted.saturating_add(number(count)?);
                last = Some(event);
            }
            "sample" => {
                let event = last.clone().ok_or("a sample without its event")?;
                log.samples.entry(event).or_insert_with(|| value.to_owned());
            }
            _ => {}
        }
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use chokepoint_statistics::histogram::Histogram;
    use proptest::prelude::*;

    fn access() -> AccessLog {
        let mut times = Histogram::default();
        (1..=1000).for_each(|ms| times.add(ms * 1000));
        let times = percentiles(&times.counts());
        let status = BTreeMap::from([(200, 990), (502, 10)]);
        AccessLog {
            lines: 1001,
            misfits: 1,
            has_status: true,
            status,
            request_time_us: times,
            bytes: 7,
            extent: LogExtent { rotated: false, skipped_bytes: 3, read_bytes: 9 },
            ..AccessLog::default()
        }
    }

    #[test]
    fn percentiles_are_within_a_hundredth() {
        let times = access().request_time_us.unwrap();
        for (found, exact) in [(times.p50, 500_000), (times.p90, 900_000), (times.p99, 990_000), (times.p999, 999_000)] {
            assert!(found >= exact && found as f64 <= exact as f64 * 1.01, "{found} for {exact}");
        }
        assert_eq!((times.max, percentiles(&Histogram::default().counts())), (1_000_000, None));
        let mut wide = Histogram::default();
        [0, u64::MAX].into_iter().for_each(|value| wide.add(value));
        assert_eq!(percentiles(&wide.counts()).map(|times| (times.p50, times.max)), Some((0, u64::MAX)));
    }

    #[test]
    fn written_figures_are_read_back() {
        assert_eq!(access_log(&access_text(&access())), Ok(access()));
        let mut errors = ErrorLog { extent: LogExtent { rotated: true, ..LogExtent::default() }, ..ErrorLog::default() };
        for n in 0..100 {
            add_error(&mut errors, LogEvent::ConnectFailed(Some(n)), &"\u{e4}".repeat(400));
        }
        assert_eq!((errors.events.len(), errors.count(&LogEvent::Other)), (EVENTS_MAX + 1, 36));
        assert!(errors.samples.values().all(|sample| sample.len() <= SAMPLE_BYTES_MAX));
        assert_eq!(error_log(&error_text(&errors)), Ok(errors));
    }

    #[test]
    fn a_text_cut_anywhere_is_an_error_or_whole_lines() {
        let text = access_text(&access());
        for end in 0..text.len() {
            assert_eq!(access_log(&text[..end]).is_ok(), end > 0 && text[..end].ends_with('\n'), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "((lines|status|kind|sample|duration_us|rotated|read_bytes)? ?[0-9a-z -]{0,12}\n?){0,6}") {
            let _ = (access_log(&text), error_log(&text));
        }
    }
}
