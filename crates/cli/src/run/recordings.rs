//! Recordings on disk: written completely or not at all, and replayed through the same code as a live run.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use chokepoint_foreign::open_named_regular;
use chokepoint_recording::{Entry, Hidden, Level, Meta, Outcome, ReadError, Redactor, Scope};
use chokepoint_sources::{Redact, Reduction, redact, reduce, source};

use crate::args::RedactLevel;
use crate::run::files::Output;
use crate::terminal::output;

/// Source name of the entry that begins a measurement (a recording of `--fix` holds several).
const MEASUREMENT: &str = "measurement";
/// Source name of the entry with the result of an action of the loop.
const ACTION: &str = "action";
/// Source name of the entry that marks an interrupt.
const STOPPED: &str = "stopped";
/// Source name of the entry that begins a bisection.
const BISECTED: &str = "bisected";
/// Source name of the entry that begins the measurement of a part, or says why it was not measured.
const PART: &str = "part";
/// The largest recording that is read, bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A measurement, as its entries.
    Measured(Vec<Entry>),
    /// A change was applied, taken back or put back.
    Acted {
        /// The name of the action in the session; empty in old recordings.
        action: String,
        /// Why it failed.
        failure: Option<String>,
    },
    /// The run was interrupted before its next measurement or change.
    Stopped,
    /// What follows is a bisection: the whole, then its parts.
    Bisected,
    /// The measurement of a part alone, or why there is none.
    Part {
        /// The id of the part in the session.
        id: String,
        /// The entries of the measurement, or why the part could not be loaded.
        read: std::result::Result<Vec<Entry>, String>,
    },
}

/// Writes the events of a run into a file, and notes what was kept and what was hidden.
pub(crate) fn save(file: Output, events: &[Event], level: RedactLevel) -> Result<()> {
    let (bytes, summary) = bytes(events, level);
    let path = file.path();
    file.write(&bytes)?;
    output::note(&format!("recording {path} ({} kB): {summary}", bytes.len().div_ceil(1000)));
    Ok(())
}

/// The recording of these events, and what was kept and what was hidden.
pub(crate) fn bytes(events: &[Event], level: RedactLevel) -> (Vec<u8>, String) {
    let level = match level {
        RedactLevel::Public => Level::Public,
        RedactLevel::All => Level::All,
        RedactLevel::None => Level::None,
    };
    let (entries, summary) = redacted(flatten(events), level);
    (chokepoint_recording::write(&entries, &Meta { tool: env!("CARGO_PKG_VERSION").to_owned(), redaction: level }), summary)
}

/// Opens a recording that the user named.
pub(crate) fn open(file: &Path) -> Result<File> {
    let name = file.display();
    let opened = open_named_regular(file).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.with_context(|| format!("the recording {name} cannot be read"))?;
    anyhow::ensure!(metadata.len() <= FILE_BYTES_MAX, "{name} is larger than a recording may be ({} bytes)", metadata.len());
    Ok(file)
}

/// Reads the events of a recorded run, and how many readings are missing from it.
pub(crate) fn read(file: File) -> std::result::Result<(Vec<Event>, u64), ReadError> {
    // The file is read in pieces, and only up to the bound even if it grows.
    let recording = chokepoint_recording::read_from(BufReader::new(file.take(FILE_BYTES_MAX)))?;
    Ok((split(recording.entries), recording.left_out))
}

/// The entries with addresses, secrets and unneeded data hidden, also in binary ones; and a summary of what was kept and hidden.
fn redacted(mut entries: Vec<Entry>, level: Level) -> (Vec<Entry>, String) {
    if level == Level::None {
        let summary = format!("kept all {} readings unchanged; hid nothing", entries.len());
        return (entries, summary);
    }
    let mut reduction = Reduction::default();
    entries.iter_mut().for_each(|entry| *entry = reduce(entry, &mut reduction));
    let mut redactor = Redactor::new(level);
    // A first pass over all entries, so that no pseudonym is equal to a kept address.
    for entry in &entries {
        match (is_binary(entry), &entry.outcome) {
            (true, _) => drop(redact(entry, &mut |address| {
                redactor.survey_address(address);
                address
            })),
            (false, Outcome::Ok(bytes)) if is_text(entry) => redactor.survey(bytes),
            _ => {}
        }
    }
    let one = |entry: &Entry| match (is_binary(entry), is_text(entry)) {
        (true, _) => redact(entry, &mut |address| redactor.address(address)),
        (false, true) => redactor.entry(entry),
        (false, false) => entry.clone(),
    };
    let entries: Vec<Entry> = entries.iter().map(one).collect();
    let summary = summary(entries.len(), &reduction, &redactor.hidden());
    (entries, summary)
}

/// What was kept and what was hidden, by kind and number.
fn summary(readings: usize, reduction: &Reduction, hidden: &Hidden) -> String {
    let counted = |count: usize, one: &str, many: &str| (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }));
    let mut kept = vec![counted(readings, "reading", "readings").unwrap_or_else(|| "no reading".to_owned())];
    kept.extend(counted(reduction.configurations, "configuration file", "configuration files").map(|files| {
        format!("{files} with {}", counted(reduction.directives, "directive", "directives").unwrap_or_else(|| "no directive".to_owned()))
    }));
    let hidden_counts: Vec<String> = [
        (reduction.values, "value of a directive", "values of directives"),
        (reduction.comments, "comment", "comments"),
        (reduction.words, "command-line word", "command-line words"),
        (reduction.log_lines, "line of a log", "lines of logs"),
        (reduction.page_values, "value of a status page", "values of status pages"),
        (hidden.queries, "query value", "query values"),
        (hidden.secrets, "other secret", "other secrets"),
        (hidden.addresses, "address", "addresses"),
        (hidden.hosts, "host name", "host names"),
    ]
    .into_iter()
    .filter_map(|(count, one, many)| counted(count, one, many))
    .collect();
    let hidden = if hidden_counts.is_empty() { "nothing".to_owned() } else { hidden_counts.join(", ") };
    format!("kept {}; hid {hidden}", kept.join(", "))
}

/// True for an entry of binary messages. Crate `sources` rewrites their addresses.
fn is_binary(entry: &Entry) -> bool {
    source(&entry.source).is_some_and(|source| source.redact.is_binary())
}

/// True for an entry of text that may hold addresses or secrets; also for an entry of an unknown source.
fn is_text(entry: &Entry) -> bool {
    source(&entry.source).is_none_or(|source| matches!(source.redact, Redact::Text | Redact::Reduced))
}

fn flatten(events: &[Event]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for event in events {
        match event {
            Event::Measured(read) => {
                entries.push(mark(MEASUREMENT, "", Outcome::Ok(Vec::new())));
                entries.extend(read.iter().cloned());
            }
            Event::Acted { action, failure: None } => entries.push(mark(ACTION, action, Outcome::Ok(Vec::new()))),
            Event::Acted { action, failure: Some(why) } => entries.push(mark(ACTION, action, Outcome::Failed(why.clone(), None))),
            Event::Stopped => entries.push(mark(STOPPED, "", Outcome::Ok(Vec::new()))),
            Event::Bisected => entries.push(mark(BISECTED, "", Outcome::Ok(Vec::new()))),
            Event::Part { id, read: Err(why) } => entries.push(mark(PART, id, Outcome::Failed(why.clone(), None))),
            Event::Part { id, read: Ok(read) } => {
                entries.push(mark(PART, id, Outcome::Ok(Vec::new())));
                entries.extend(read.iter().cloned());
            }
        }
    }
    entries
}

fn split(entries: Vec<Entry>) -> Vec<Event> {
    let mut events = Vec::new();
    for entry in entries {
        match (entry.source.as_str(), events.last_mut()) {
            (MEASUREMENT, _) => events.push(Event::Measured(Vec::new())),
            (ACTION, _) => {
                let failure = match entry.outcome {
                    Outcome::Ok(_) => None,
                    Outcome::Absent(why, _) | Outcome::Failed(why, _) => Some(why),
                };
                events.push(Event::Acted { action: entry.item, failure });
            }
            (STOPPED, _) => events.push(Event::Stopped),
            (BISECTED, _) => events.push(Event::Bisected),
            (PART, _) => {
                let read = match entry.outcome {
                    Outcome::Ok(_) => Ok(Vec::new()),
                    Outcome::Absent(why, _) | Outcome::Failed(why, _) => Err(why),
                };
                events.push(Event::Part { id: entry.item, read });
            }
            (_, Some(Event::Measured(read) | Event::Part { read: Ok(read), .. })) => read.push(entry),
            _ => events.push(Event::Measured(vec![entry])),
        }
    }
    events
}

fn mark(source: &str, item: &str, outcome: Outcome) -> Entry {
    Entry { at_us: 0, source: source.to_owned(), scope: Scope::Host, item: item.to_owned(), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_a_round_trip_through_entries() {
        let reading = Entry { at_us: 7, source: "netstat".to_owned(), ..mark("netstat", "", Outcome::Ok(b"Tcp: 1".to_vec())) };
        let part = reading.clone();
        let acted = |action: &str, failure: Option<&str>| Event::Acted { action: action.to_owned(), failure: failure.map(str::to_owned) };
        let events = [
            Event::Measured(vec![reading.clone(), reading]),
            acted("apply raise-conntrack-max", None),
            Event::Measured(Vec::new()),
            acted("take back raise-conntrack-max", Some("someone else changed it")),
            acted("", None),
            Event::Stopped,
            Event::Bisected,
            Event::Part { id: "php-fpm direct".to_owned(), read: Ok(vec![part]) },
            Event::Part { id: "nginx own".to_owned(), read: Err("it holds no file".to_owned()) },
        ];
        assert_eq!(split(flatten(&events)), events);
        assert_eq!(split(redacted(flatten(&events), Level::All).0), events, "redaction leaves the names of actions");
        assert_eq!(split(Vec::new()), []);
    }
}
