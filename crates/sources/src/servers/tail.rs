//! Follows the logs of servers without an end, through rotation and truncation.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use chokepoint_foreign::Files;
use chokepoint_model::observation::Request;

use super::access::{Access, files};
use super::counter::{LogCounter, LogGrowth, whole};
use super::follow::marks;
use super::logs::LineKind;
use super::mark::Mark;
use crate::root::Root;

/// Most bytes of one log to read at a time. Of more, only the end is read, and the growth says how much was skipped.
pub(super) const BYTES_MAX: u64 = 64 << 20;
/// Time between two looks for logs in the configuration of a server. A reload may have changed it.
const LOOK_PERIOD: Duration = Duration::from_secs(30);

/// The logs of servers, each by the process id of its master.
#[derive(Default)]
pub struct LogTails {
    root: Root,
    servers: BTreeMap<u32, ServerLogs>,
}

struct ServerLogs {
    looked: Instant,
    requests: Vec<Request>,
    tails: Vec<Tail>,
}

/// A log, and up to where it was read.
struct Tail {
    mark: Mark,
    /// None after a reading that took too long, and has it still.
    counter: Option<LogCounter>,
}

/// What one log gained.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowedLog {
    /// The master of its server.
    pub pid: u32,
    /// Its path, as the server names it.
    pub path: String,
    /// The requests that it may have lines of, by their places among those asked of the server; none if it may have lines of any.
    pub of: BTreeSet<usize>,
    /// The counts; why there are none.
    pub growth: Result<LogGrowth, String>,
}

impl LogTails {
    /// Of the servers of a host whose files are there.
    #[cfg(test)]
    pub(super) fn of(root: Root) -> Self {
        Self { root, ..Self::default() }
    }

    /// What the logs of these servers gained since the last call, each with the requests that are asked of it; those of a server of which none is known have lines of any.
    /// Of a server that is new nothing is known yet. Processes that are no masters of a server of a known kind have no logs.
    pub fn read(&mut self, masters: &BTreeMap<u32, Vec<Request>>) -> Vec<FollowedLog> {
        self.servers.retain(|pid, _| masters.contains_key(pid));
        let mut all = Vec::new();
        for (pid, server) in &mut self.servers {
            all.extend(server.read(&self.root, *pid));
        }
        for (pid, requests) in masters {
            let known = |server: &ServerLogs| server.looked.elapsed() < LOOK_PERIOD && server.requests == *requests;
            if !self.servers.get(pid).is_some_and(known) {
                let new = || ServerLogs { looked: Instant::now(), requests: Vec::new(), tails: Vec::new() };
                self.servers.entry(*pid).or_insert_with(new).look(&self.root, *pid, requests);
            }
        }
        all
    }
}

impl ServerLogs {
    /// Looks for the logs in the configuration. Those that are followed already go on where they are.
    fn look(&mut self, root: &Root, pid: u32, requests: &[Request]) {
        (self.looked, self.requests) = (Instant::now(), requests.to_vec());
        let Some(found) = marks(root, pid, requests) else { return };
        let mut known: Vec<Tail> = std::mem::take(&mut self.tails);
        for mark in found {
            let is_same = |tail: &Tail| tail.mark.path == mark.path && tail.mark.lines == mark.lines && tail.mark.refused.is_none();
            let tail = match known.iter().position(is_same).map(|place| known.swap_remove(place)) {
                Some(tail) => Some(tail.with(mark)),
                None => Tail::of(mark),
            };
            self.tails.extend(tail);
        }
    }

    fn read(&mut self, root: &Root, pid: u32) -> Vec<FollowedLog> {
        let Ok(files) = files(root, pid) else { return Vec::new() };
        let one = |tail: &mut Tail| {
            let growth = tail.read(root, pid, &files).map_err(|error| error.to_string());
            FollowedLog { pid, path: tail.mark.path.clone(), of: tail.mark.of.clone(), growth }
        };
        self.tails.iter_mut().map(one).collect()
    }
}

impl Tail {
    /// Nothing for php-fpm's log of errors, which tells nothing of requests, and for a format that cannot be read.
    fn of(mark: Mark) -> Option<Self> {
        if mark.lines == LineKind::FpmErrors {
            return None;
        }
        LogCounter::new(&mark.lines).ok().map(|counter| Self { mark, counter: Some(counter) })
    }

    /// Goes on where it is, as a new look has it.
    fn with(mut self, mark: Mark) -> Self {
        self.mark.look_again(mark);
        self
    }

    /// Counts the new lines, within the budget of the user who names the log. A line that is not complete is read again.
    fn read(&mut self, root: &Root, pid: u32, files: &Files) -> io::Result<LogGrowth> {
        let counter = self.counter.take().map_or_else(|| LogCounter::new(&self.mark.lines), Ok);
        let mut counter = counter.map_err(io::Error::other)?;
        let (mut mark, root) = (self.mark.clone(), root.clone());
        let read = move |files: &Files, _: &Access| {
            let growth = count(&mut mark, &mut counter, &root, pid, files).map(|()| counter.take());
            (growth, mark, counter)
        };
        let (growth, mark, counter) = self.mark.access.within_budget(files, &self.mark.path, read)?;
        (self.mark, self.counter) = (mark, Some(counter));
        growth
    }
}

fn count(mark: &mut Mark, counter: &mut LogCounter, root: &Root, pid: u32, files: &Files) -> io::Result<()> {
    let pieces = mark.pieces(root, pid, files)?;
    counter.extent.rotated |= pieces.rotated;
    let last = pieces.files.len().saturating_sub(1);
    counter.expect(mark.own.lines());
    for (number, (mut file, from)) in pieces.files.into_iter().enumerate() {
        let next = counter.read(&mut file, from, BYTES_MAX, whole)?;
        if number == last {
            mark.move_to(&mut file, next)?;
        }
    }
    mark.own.note(counter.expected());
    Ok(())
}

/// The counts of a whole access log of this nginx format, for a measurement of the speed.
///
/// # Errors
/// It cannot be read, or the format cannot be compiled.
pub fn count_log(file: &mut std::fs::File, format: &str) -> Result<LogGrowth, String> {
    let mut counter = LogCounter::new(&LineKind::Access(vec![(format.to_owned(), "default".to_owned())]))?;
    counter.read(file, 0, u64::MAX, whole).map_err(|error| error.to_string())?;
    Ok(counter.take())
}
