//! Source `server_log`: the lines that a master's access and error logs gained during the observation, counted while they are read.

use std::io;

use chokepoint_foreign::Files;
use chokepoint_model::observation::{LogEvent, Observation, Request};
use chokepoint_recording::{Entry, Outcome};

use super::access::{Access, NEEDS, files};
use super::config::{ParsedConfig, collect, parsed};
use super::counter::{LogCounter, whole};
use super::logs::written::ServerUsers;
use super::logs::{LineKind, LogFile, logs};
use super::mark::Mark;
use super::master::master;
use super::tally;
use crate::reduction::Reduction;
use crate::root::{Root, outcome_of, reading_of};
use crate::scope::server_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};

const NAME: &str = "server_log";
/// The note with the request that is asked for, if there is one.
pub(crate) const REQUEST: &str = "server_log request";
/// Most bytes of logs to read in one observation. Of more, only the end is read, and the figures say how much was skipped.
const BYTES_MAX: u64 = 64 << 20;
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
        let asked = context.notes.get(REQUEST).and_then(|json| serde_json::from_slice::<Request>(&json).ok());
        if let Some(marks) = marks(context.root, pid, asked.as_slice()).and_then(|marks| serde_json::to_vec(&marks).ok()) {
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

/// The logs of a master that may have lines of these requests, or all logs if there are none; nothing for other processes, and if its configuration cannot be read, which
/// `server_config` reports.
pub(super) fn marks(root: &Root, pid: u32, requests: &[Request]) -> Option<Vec<Mark>> {
    let master = master(root, pid).ok()??;
    let files = files(root, master.pid).ok()?;
    let collected = collect(&files, &master);
    let Outcome::Ok(dump) = &collected.outcome else { return None };
    let (head, parsed) = parsed(&String::from_utf8_lossy(dump)).ok()?;
    // An address is this master's only in the namespace where it was asked for.
    let netns = crate::netns::of_process(root, pid).ok().map(|netns| netns.id);
    let is_here = |request: &Request| Some(request.server_netns.unwrap_or(request.client_netns)) == netns;
    let requests = if requests.iter().all(is_here) { requests } else { &[] };
    let users = ServerUsers::of(root, pid, &files, matches!(parsed, ParsedConfig::Nginx(_)));
    let mark = |(path, log): (String, LogFile)| {
        let (access, writers) = (collected.access(log.named_in.iter()), users.writers(&log.users));
        Mark::of((root, pid), &files, path, log, access, writers)
    };
    Some(logs(&head, &parsed, requests).into_iter().map(mark).collect())
}

/// The new lines of one log, and how many bytes were read.
fn follow(context: &ReadContext<'_>, pid: u32, files: &Files, mark: &Mark, bytes_max: u64) -> (Outcome, u64) {
    let mut counted = match LogCounter::new(&mark.lines) {
        Ok(counted) => counted,
        Err(why) => return (Outcome::Failed(why, None), 0),
    };
    counted.expect(mark.own.lines());
    let (root, named) = (context.root.clone(), mark.clone());
    let count = move |files: &Files, _: &Access| {
        let followed = named.pieces(&root, pid, files).and_then(|pieces| {
            for (mut file, from) in pieces.files {
                counted.read(&mut file, from, bytes_max - counted.extent.read_bytes, whole)?;
            }
            counted.extent.rotated = pieces.rotated;
            Ok(())
        });
        let read_bytes = counted.extent.read_bytes;
        (followed.map(|()| counted.text()), read_bytes)
    };
    // Within the budget of the user who names the log.
    let (followed, read_bytes) = mark.access.within_budget(files, &mark.path, count).unwrap_or_else(|late| (Err(late), 0));
    let outcome = match followed {
        Ok(text) => Outcome::Ok(text.into_bytes()),
        // A log to a terminal or pipe cannot be followed.
        Err(error) if error.kind() == io::ErrorKind::Other => Outcome::Absent(error.to_string(), None),
        Err(error) => match outcome_of(&error, Some(NEEDS)) {
            Outcome::Absent(why, Some(_)) if !mark.access.is_own() => Outcome::Absent(why + &mark.access.remark(), None),
            outcome => outcome,
        },
    };
    (outcome, read_bytes)
}

/// The figures of a log with only the lines that findings may quote.
pub(crate) fn reduced(text: &str, reduction: &mut Reduction) -> Outcome {
    let mut kept = String::new();
    let mut is_quoted = false;
    for line in text.split_inclusive('\n') {
        if let Some((_, event)) = line.strip_prefix("kind ").and_then(|counted| counted.trim_end().split_once(' ')) {
            is_quoted = LogEvent::of_text(event).is_quoted();
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
