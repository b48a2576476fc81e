//! How many processes and threads each user has, from `/proc/PID/status` of all of them.

use std::collections::BTreeMap;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome};

use crate::root::reading_of;
use crate::scope::is_of_host;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, lines, whole};

const NAME: &str = "user_tasks";
/// `status` has some sixty lines.
const STATUS_BYTES_MAX: usize = 16 << 10;
/// Most processes that are counted. Each takes some 15 us.
const PROCESSES_MAX: usize = 4096;
const WHY_MANY: &str = "there are too many processes to count them";

/// At both ends for the host: lines "USER TASKS". RLIMIT_NPROC counts all tasks of a real user id (getrlimit(2)).
pub(crate) const USER_TASKS: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Ends, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let pids = match context.root.pids() {
        Ok(pids) => pids,
        Err(lack) => return only_item(lack),
    };
    if pids.len() > PROCESSES_MAX {
        return only_item(Outcome::Absent(WHY_MANY.to_owned(), None));
    }
    let mut users: BTreeMap<u32, u64> = BTreeMap::new();
    for pid in pids {
        let Outcome::Ok(bytes) = context.root.read_process(pid, "status", STATUS_BYTES_MAX, None) else { continue };
        if let Some((user, tasks)) = user_and_tasks(&String::from_utf8_lossy(&bytes)) {
            *users.entry(user).or_default() += tasks;
        }
    }
    let text: String = users.into_iter().map(|(user, tasks)| format!("{user} {tasks}\n")).collect();
    only_item(Outcome::Ok(text.into_bytes()))
}

/// The real user of a process, and how many threads it has.
fn user_and_tasks(status: &str) -> Option<(u32, u64)> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next();
    Some((field("Uid:")?.parse().ok()?, field("Threads:")?.parse().ok()?))
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<u32, u64>, ParseError> {
    const EXPECTED: &str = "a user and a number of tasks";
    let text = whole(NAME, bytes)?;
    let of_line = |(place, line): (crate::text::error::TextLine, &str)| {
        let mut tokens = line.split_ascii_whitespace();
        Ok((place.number(EXPECTED, tokens.next())?, place.number(EXPECTED, tokens.next())?))
    };
    lines(NAME, &text).map(of_line).collect()
}

fn put(observation: &mut Observation, entry: &Entry) {
    if is_of_host(observation, entry) {
        observation.user_tasks.push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_tasks_are_read_from_a_status() {
        let status = "Name:\tnginx\nUid:\t33\t33\t33\t33\nGid:\t33\t33\t33\t33\nThreads:\t4\n";
        assert_eq!(user_and_tasks(status), Some((33, 4)));
        assert_eq!(user_and_tasks("Name:\tx\nThreads:\t4\n"), None);
        assert_eq!(user_and_tasks("Uid:\t-1\nThreads:\t4\n"), None);
    }

    #[test]
    fn lines_are_parsed_back() {
        assert_eq!(parse(b"0 120\n33 4\n").unwrap(), [(0, 120), (33, 4)].into());
        assert!(parse(b"0\n").is_err() && parse(b"x 1\n").is_err());
    }
}
