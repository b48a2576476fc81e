//! CPU bandwidth of the path's cgroups and their ancestors, from the files of the controller `cpu`, versions 1 and 2.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupCpu, CgroupId, CgroupVersion, Observation};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::mounts::Mounts;
use crate::root::{Root, WHY_MISSING, reading_of};
use crate::scope::{is_of_host, unplaced};
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts::{self, Fact};
use crate::text::net::sysctls;

const NAME: &str = "cgroup_cpu";
/// The largest of these files, `cpu.stat`, has some dozen short lines.
const BYTES_MAX: usize = 16 << 10;
/// Most cgroups to read. The path's processes are in few cgroups, each with a handful of ancestors.
const CGROUPS_MAX: usize = 256;
/// Item with the number of cgroups that were left out.
const LEFT_OUT: &str = "left out";
/// Represents a missing file: the root of version 2 has no limit.
const ABSENT: &[u8] = b"absent";
/// The cgroup was removed.
const WHY_GONE: &str = "the cgroup no longer exists";

/// Once a second for the host: for each cgroup with a process of the path, item "v1:/path" or "v2:/path" with the facts `dir`, `quota_us` and `period_us`
/// (version 1) or `max` (version 2), `stat`, `share` (`cpu.shares`, `cpu.weight`), `usage_ns` (version 1, `cpuacct.usage`) and `mode` of the limit's file. A cgroup without a limit is read only at
/// both ends. Paths may contain names of users and containers.
pub(crate) const CGROUP_CPU: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

/// Location of the files of one cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CgroupFiles {
    /// Directory of its files; nothing if no visible mount shows its hierarchy.
    dir: Option<String>,
    /// Version 1: directory of its CPU time account, if known.
    account: Option<String>,
    /// Whether it had a limit at the last read; nothing before the first read.
    limited: Option<bool>,
}

/// The path's cgroups by the text of their ids.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownCgroups {
    levels: BTreeMap<String, CgroupFiles>,
    left_out: usize,
}

/// Adds the cgroups of a process, given by its path in each controller, to those that are read from now on.
pub(super) fn add_process(context: &ReadContext<'_>, pid: u32, paths: &BTreeMap<String, String>) {
    let Some(own) = CgroupId::of_cpu(paths) else { return };
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let levels = own.levels();
    if levels.iter().all(|level| known.levels.contains_key(&level.to_string())) {
        return;
    }
    let mounts = Mounts::read(context.root, pid);
    // Version 1 may have the account in a separate hierarchy. The cgroup is the same only if the process has the same path in both.
    let accounted = own.version == CgroupVersion::V1 && paths.get("cpuacct") == Some(&own.path);
    for (at, level) in levels.iter().enumerate() {
        let dir = mounts.dir(level, "cpu");
        // Ancestors above the mounted part are not visible. A hierarchy without any mount is reported for the process's own cgroup.
        if (dir.is_none() && at > 0) || known.levels.contains_key(&level.to_string()) {
            continue;
        }
        if known.levels.len() >= CGROUPS_MAX {
            known.left_out += 1;
            continue;
        }
        let account = mounts.dir(level, "cpuacct").filter(|_| accounted);
        known.levels.insert(level.to_string(), CgroupFiles { dir, account, limited: None });
    }
    context.notes.keep(NAME, &known);
}

fn read(context: &ReadContext<'_>) -> Items {
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let mut entries = Vec::new();
    for (item, level) in &mut known.levels {
        let Some(id) = CgroupId::parse(item) else { continue };
        let Some(dir) = &level.dir else {
            if context.phase == Phase::Last {
                let why = "its hierarchy is not mounted where this process can see it";
                entries.push((item.clone(), Outcome::Absent(why.to_owned(), None)));
            }
            continue;
        };
        if level.limited == Some(false) && context.phase != Phase::Last {
            continue;
        }
        let outcome = read_level(context.root, id.version, dir, level.account.as_deref());
        level.limited = match &outcome {
            Outcome::Ok(bytes) => parse(bytes).ok().map(|cpu| cpu.quota_us.is_some()),
            _ => None,
        };
        entries.push((item.clone(), outcome));
    }
    if known.left_out > 0 && context.phase == Phase::Last {
        entries.push((LEFT_OUT.to_owned(), Outcome::Ok(known.left_out.to_string().into_bytes())));
    }
    context.notes.keep(NAME, &known);
    entries
}

fn read_level(root: &Root, version: CgroupVersion, dir: &str, account: Option<&str>) -> Outcome {
    match facts_of(root, version, dir, account) {
        Ok(text) => Outcome::Ok(text),
        Err(lack) => lack,
    }
}

fn facts_of(root: &Root, version: CgroupVersion, dir: &str, account: Option<&str>) -> Result<Vec<u8>, Outcome> {
    let file = |name: &str| match root.read(&format!("{dir}/{name}"), BYTES_MAX, None) {
        Outcome::Ok(bytes) => Ok(Some(bytes)),
        Outcome::Absent(why, _) if why == WHY_MISSING => Ok(None),
        lack => Err(lack),
    };
    let (limits, limit): (&[(&str, &str)], &str) = match version {
        CgroupVersion::V1 => (&[("quota_us", "cpu.cfs_quota_us"), ("period_us", "cpu.cfs_period_us")], "cpu.cfs_quota_us"),
        CgroupVersion::V2 => (&[("max", "cpu.max")], "cpu.max"),
    };
    let mut text = Vec::new();
    facts::add(&mut text, "dir", dir.as_bytes());
    for (name, of) in limits {
        facts::add(&mut text, name, file(of)?.as_deref().unwrap_or(ABSENT));
    }
    if let Some(stat) = file("cpu.stat")? {
        facts::add(&mut text, "stat", &stat);
    }
    if let Some(share) = file(version.usual_share().0)? {
        facts::add(&mut text, "share", &share);
    }
    if !root.path(dir).is_dir() {
        return Err(Outcome::Absent(WHY_GONE.to_owned(), None));
    }
    // The account is optional: the CPU time of its processes is known.
    if let Some(Outcome::Ok(usage)) = account.map(|account| root.read(&format!("{account}/cpuacct.usage"), BYTES_MAX, None)) {
        facts::add(&mut text, "usage_ns", &usage);
    }
    if let Some(mode) = sysctls::mode(root, &format!("{dir}/{limit}")) {
        facts::add(&mut text, "mode", mode.as_bytes());
    }
    Ok(text)
}

/// Parses the facts. The limit is required, even if it says that there is none. A missing counter is not zero.
pub(crate) fn parse(bytes: &[u8]) -> Result<CgroupCpu, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let dir = facts::need(NAME, &facts, "dir", "the cgroup's directory")?.text();
    let (quota_us, period_us) = match facts::find(&facts, "max") {
        Some(max) => unified_limit(max)?,
        None => {
            let quota = facts::need(NAME, &facts, "quota_us", "a limit")?;
            let period = facts::need(NAME, &facts, "period_us", "a period")?;
            (quota_of(quota, -1)?, if period.value == ABSENT { 0 } else { number(period)? })
        }
    };
    let stat = facts::find(&facts, "stat");
    let count = |name: &str| stat.map_or(Ok(None), |stat| counter(stat, name));
    let micros = |name: &str| count(name).map(|micros| micros.map(|micros| micros.saturating_mul(1_000)));
    let used_ns = match facts::find(&facts, "usage_ns") {
        Some(usage) => Some(number(usage)?),
        None => micros("usage_usec")?,
    };
    Ok(CgroupCpu {
        dir: dir.into_owned(),
        quota_us,
        period_us,
        periods: count("nr_periods")?,
        throttled_periods: count("nr_throttled")?,
        throttled_ns: match count("throttled_time")? {
            Some(time) => Some(time),
            None => micros("throttled_usec")?,
        },
        used_ns,
        writable: facts::find(&facts, "mode").map(|mode| mode.text() == "rw"),
        share: facts::find(&facts, "share").map(number).transpose()?,
    })
}

/// Parses `cpu.max`: "50000 100000", "max 100000". Without it there is no limit.
fn unified_limit(max: &Fact<'_>) -> Result<(Option<u64>, u64), ParseError> {
    const EXPECTED: &str = "a quota or \"max\", and a period";
    let place = TextLine::new(NAME, max.line);
    if max.value == ABSENT {
        return Ok((None, 0));
    }
    let text = max.text();
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next(), place.number::<u64>(EXPECTED, words.next())?);
    let quota = match quota {
        Some("max") => None,
        quota => Some(place.number::<u64>(EXPECTED, quota)?),
    };
    if period == 0 || quota == Some(0) || words.next().is_some() {
        return Err(place.expected(EXPECTED, &text));
    }
    Ok((quota, period))
}

/// Parses `cpu.cfs_quota_us`. The value `none` means no limit.
fn quota_of(quota: &Fact<'_>, none: i64) -> Result<Option<u64>, ParseError> {
    const EXPECTED: &str = "a quota in microseconds, or -1";
    let place = TextLine::new(NAME, quota.line);
    if quota.value == ABSENT {
        return Ok(None);
    }
    let text = quota.text();
    match place.number::<i64>(EXPECTED, Some(&text))? {
        number if number == none => Ok(None),
        number => u64::try_from(number).ok().filter(|number| *number > 0).map(Some).ok_or_else(|| place.expected(EXPECTED, &text)),
    }
}

fn number(fact: &Fact<'_>) -> Result<u64, ParseError> {
    TextLine::new(NAME, fact.line).number("a number", Some(&fact.text()))
}

/// A counter of `cpu.stat`, lines "name number". The set of counters depends on version, kernel and controllers.
fn counter(stat: &Fact<'_>, name: &str) -> Result<Option<u64>, ParseError> {
    let text = stat.text();
    let value = text.lines().find_map(|line| line.split_once(' ').filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned()));
    value.map(|value| TextLine::new(NAME, stat.line).number("a number behind each name", Some(value.trim()))).transpose()
}

fn put(observation: &mut Observation, entry: &Entry) {
    if !is_of_host(observation, entry) {
        return;
    }
    if entry.item == LEFT_OUT {
        let count = match &entry.outcome {
            Outcome::Ok(count) => String::from_utf8_lossy(count).into_owned(),
            Outcome::Absent(why, _) | Outcome::Failed(why, _) => why.clone(),
        };
        return observation.bounded.push(format!("cgroup_cpu: {CGROUPS_MAX} cgroups of the path were read and {count} left out"));
    }
    match CgroupId::parse(&entry.item) {
        Some(id) => observation.cgroups.entry(id).or_default().push(entry.at_us, reading_of(&entry.outcome, parse)),
        None => unplaced(observation, entry, "it names no cgroup"),
    }
}

#[cfg(test)]
mod tests;
