//! How many processes and threads the path's cgroups and their ancestors have and may have, from the files of the controller `pids`, versions 1 and 2.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, CgroupTasks, Observation};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::mounts::Mounts;
use crate::root::{Root, WHY_MISSING, reading_of};
use crate::scope::{is_of_host, unplaced};
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts::{self, Fact};

const NAME: &str = "cgroup_tasks";
/// Each of these files has a number, or a line of a name and a number.
const BYTES_MAX: usize = 4 << 10;
/// Most cgroups to read, as for `cgroup_cpu`.
const CGROUPS_MAX: usize = 256;
/// The text of `pids.max` without a limit.
const UNLIMITED: &str = "max";

/// Once a second for the host: for each cgroup with a process of the path that has a limit, item "v1:/path" or "v2:/path" with the facts `dir`, `limit` (`pids.max`), `current`
/// and `events`. One without a limit is read once. Paths may contain names of users and containers.
pub(crate) const CGROUP_TASKS: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

/// The directories of the path's cgroups by the text of their ids, and whether each has a limit: nothing before the first reading.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownCgroups(BTreeMap<String, (String, Option<bool>)>);

/// Adds the cgroups of a process, given by its path in each controller, to those that are read from now on. What no mount shows is left out.
pub(super) fn add_process(context: &ReadContext<'_>, pid: u32, paths: &BTreeMap<String, String>) {
    let Some(own) = CgroupId::of_tasks(paths) else { return };
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let levels = own.levels();
    if levels.iter().all(|level| known.0.contains_key(&level.to_string())) {
        return;
    }
    let mounts = Mounts::read(context.root, pid);
    for level in levels {
        if let Some(dir) = mounts.dir(&level, "pids").filter(|_| known.0.len() < CGROUPS_MAX) {
            known.0.entry(level.to_string()).or_insert((dir, None));
        }
    }
    context.notes.keep(NAME, &known);
}

fn read(context: &ReadContext<'_>) -> Items {
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let mut entries = Vec::new();
    for (item, (dir, is_limited)) in &mut known.0 {
        if *is_limited == Some(false) && context.phase != Phase::Last {
            continue;
        }
        let outcome = facts_of(context.root, dir).map_or_else(|lack| lack, Outcome::Ok);
        *is_limited = match &outcome {
            Outcome::Ok(bytes) => parse(bytes).ok().map(|tasks| tasks.limit.is_some()),
            // Without the file there is no limit: at the root, and where the controller is not switched on (version 2).
            Outcome::Absent(why, _) if why == WHY_MISSING => {
                *is_limited = Some(false);
                continue;
            }
            _ => None,
        };
        entries.push((item.clone(), outcome));
    }
    context.notes.keep(NAME, &known);
    entries
}

fn facts_of(root: &Root, dir: &str) -> Result<Vec<u8>, Outcome> {
    let file = |name: &str| match root.read(&format!("{dir}/{name}"), BYTES_MAX, None) {
        Outcome::Ok(bytes) => Ok(bytes),
        lack => Err(lack),
    };
    let mut text = Vec::new();
    facts::add(&mut text, "dir", dir.as_bytes());
    facts::add(&mut text, "limit", &file("pids.max")?);
    facts::add(&mut text, "current", &file("pids.current")?);
    // Before Linux 4.7 there is no such count.
    if let Ok(events) = file("pids.events") {
        facts::add(&mut text, "events", &events);
    }
    Ok(text)
}

/// Parses the facts. A count that is missing is not zero.
pub(crate) fn parse(bytes: &[u8]) -> Result<CgroupTasks, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let need = |name: &'static str, what: &'static str| facts::need(NAME, &facts, name, what);
    let limit = need("limit", "a limit or \"max\"")?;
    Ok(CgroupTasks {
        dir: need("dir", "the cgroup's directory")?.text().into_owned(),
        limit: if limit.text().trim() == UNLIMITED { None } else { Some(number(limit, &limit.text())?) },
        current: {
            let current = need("current", "a number")?;
            number(current, &current.text())?
        },
        refused: match facts::find(&facts, "events") {
            Some(events) => refused(events)?,
            None => None,
        },
    })
}

fn number(fact: &Fact<'_>, text: &str) -> Result<u64, ParseError> {
    TextLine::new(NAME, fact.line).number("a number", Some(text.trim()))
}

/// The line "max N".
fn refused(events: &Fact<'_>) -> Result<Option<u64>, ParseError> {
    let text = events.text();
    let line = text.lines().find_map(|line| line.strip_prefix("max "));
    line.map(|count| number(events, count)).transpose()
}

fn put(observation: &mut Observation, entry: &Entry) {
    if !is_of_host(observation, entry) {
        return;
    }
    match CgroupId::parse(&entry.item) {
        Some(id) => observation.cgroup_tasks.entry(id).or_default().push(entry.at_us, reading_of(&entry.outcome, parse)),
        None => unplaced(observation, entry, "it names no cgroup"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_refusals_are_parsed_and_what_is_missing_is_not_zero() {
        let facts = "dir /c\nlimit 100\\n\ncurrent 99\\n\nevents max 7\\n\n";
        let tasks = parse(facts.as_bytes()).unwrap();
        assert_eq!((tasks.limit, tasks.current, tasks.refused, tasks.dir.as_str()), (Some(100), 99, Some(7), "/c"));
        let without = parse(b"dir /c\nlimit max\ncurrent 3\n").unwrap();
        assert_eq!((without.limit, without.current, without.refused), (None, 3, None));
        assert_eq!(parse(b"dir /c\nlimit 5\ncurrent 3\nevents other 1\n").unwrap().refused, None);
        for wrong in
            ["limit 5\ncurrent 3\n", "dir /c\nlimit x\ncurrent 3\n", "dir /c\nlimit 5\n", "dir /c\nlimit 5\ncurrent 3\nevents max -1\n"]
        {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
