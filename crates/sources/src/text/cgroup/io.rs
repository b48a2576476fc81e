//! What the path's cgroups may do with disks and what they did, from the files of the controllers `blkio` (version 1) and `io` (version 2).

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, CgroupIo, CgroupVersion, IoKind, Observation};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::mounts::Mounts;
use crate::root::{Root, reading_of};
use crate::scope::{is_of_host, unplaced};
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts::{self, Fact};

const NAME: &str = "cgroup_io";
/// A line for each disk, or six.
const BYTES_MAX: usize = 64 << 10;
/// Most cgroups to read, as for `cgroup_cpu`.
const CGROUPS_MAX: usize = 256;
/// The value of a key in `io.max` without a limit.
const UNLIMITED: &str = "max";

/// Once a second for the host: for each cgroup with a process of the path that limits what is done with a disk, item "v1:/path" or "v2:/path" with the facts `dir` and, of version 1, the limits by
/// kind (`read-bytes`, `written-bytes`, `reads`, `writes`), `bytes` and `operations`; of version 2 `max` (`io.max`) and `stat` (`io.stat`). One without a limit is read at both ends only, and is no
/// item. Paths may contain names of users and containers.
pub(crate) const CGROUP_IO: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

/// The directories of the path's cgroups by the text of their ids, and whether each has a limit: nothing before the first reading.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownCgroups(BTreeMap<String, (String, Option<bool>)>);

/// Adds the cgroups of a process, given by its path in each controller, to those that are read from now on. What no mount shows is left out.
pub(super) fn add_process(context: &ReadContext<'_>, pid: u32, paths: &BTreeMap<String, String>) {
    let own = CgroupId::of_io(paths);
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    if own.iter().all(|id| known.0.contains_key(&id.to_string())) {
        return;
    }
    let mounts = Mounts::read(context.root, pid);
    for id in own {
        let controller = if id.version == CgroupVersion::V1 { "blkio" } else { "io" };
        if let Some(dir) = mounts.dir(&id, controller).filter(|_| known.0.len() < CGROUPS_MAX) {
            known.0.entry(id.to_string()).or_insert((dir, None));
        }
    }
    context.notes.keep(NAME, &known);
}

fn read(context: &ReadContext<'_>) -> Items {
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let mut entries = Vec::new();
    for (item, (dir, is_limited)) in &mut known.0 {
        let Some(id) = CgroupId::parse(item).filter(|_| *is_limited != Some(false) || context.phase == Phase::Last) else { continue };
        // Without the files there is no limit: at the root of version 2, and where the controller is not switched on.
        let text = facts_of(context.root, id.version, dir);
        let has_limit = text.as_ref().is_some_and(|text| parse(text).map_or(true, |io| !io.limits.is_empty()));
        *is_limited = Some(has_limit);
        if let Some(text) = text.filter(|_| has_limit) {
            entries.push((item.clone(), Outcome::Ok(text)));
        }
    }
    context.notes.keep(NAME, &known);
    entries
}

fn facts_of(root: &Root, version: CgroupVersion, dir: &str) -> Option<Vec<u8>> {
    let file = |name: &str| match root.read(&format!("{dir}/{name}"), BYTES_MAX, None) {
        Outcome::Ok(bytes) => Some(bytes),
        _ => None,
    };
    let mut text = Vec::new();
    facts::add(&mut text, "dir", dir.as_bytes());
    match version {
        CgroupVersion::V1 => {
            for kind in IoKind::ALL {
                facts::add(&mut text, kind.word(), &file(kind.file_v1())?);
            }
            facts::add(&mut text, "bytes", &file(IoKind::ReadBytes.counters_v1())?);
            facts::add(&mut text, "operations", &file(IoKind::Reads.counters_v1())?);
        }
        CgroupVersion::V2 => {
            facts::add(&mut text, "max", &file("io.max")?);
            facts::add(&mut text, "stat", &file("io.stat")?);
        }
    }
    Some(text)
}

/// Parses the facts. A limit of zero is none (version 1).
pub(crate) fn parse(bytes: &[u8]) -> Result<CgroupIo, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let need = |name: &'static str, what: &'static str| facts::need(NAME, &facts, name, what);
    let dir = need("dir", "the cgroup's directory")?.text().into_owned();
    if let Some(max) = facts::find(&facts, "max") {
        let limits = by_key(max, |kind| kind.keys_v2().0)?;
        let done = by_key(need("stat", "lines of io.stat")?, |kind| kind.keys_v2().1)?;
        return Ok(CgroupIo { dir, limits, done });
    }
    let mut io = CgroupIo { dir, ..CgroupIo::default() };
    for kind in IoKind::ALL {
        let limits = need(kind.word(), "lines of a disk and a limit")?;
        for line in limits.text().lines() {
            let (disk, limit) = disk_of(limits, line)?;
            let limit = number(limits, limit)?;
            if limit > 0 {
                io.limits.insert((disk, kind), limit);
            }
        }
    }
    let counted = [("bytes", IoKind::ReadBytes, IoKind::WrittenBytes), ("operations", IoKind::Reads, IoKind::Writes)];
    for (name, read, written) in counted {
        let counts = need(name, "lines of a disk, a word and a count")?;
        // The last line is the sum of all.
        for line in counts.text().lines().filter(|line| !line.starts_with("Total ")) {
            let (disk, rest) = disk_of(counts, line)?;
            let (word, count) =
                rest.split_once(' ').ok_or_else(|| TextLine::new(NAME, counts.line).expected("a word and a count", rest))?;
            let kind = match word {
                "Read" => read,
                "Write" => written,
                _ => continue,
            };
            io.done.insert((disk, kind), number(counts, count)?);
        }
    }
    Ok(io)
}

/// Lines "254:0 key=value key=value" (io.max, io.stat). A key that is not known here is left out.
fn by_key(fact: &Fact<'_>, key_of: impl Fn(IoKind) -> &'static str) -> Result<BTreeMap<(String, IoKind), u64>, ParseError> {
    let mut all = BTreeMap::new();
    for line in fact.text().lines() {
        let (disk, pairs) = disk_of(fact, line)?;
        let pairs = pairs.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
        for (key, value) in pairs.filter(|(_, value)| *value != UNLIMITED) {
            if let Some(kind) = IoKind::ALL.into_iter().find(|kind| key_of(*kind) == key) {
                all.insert((disk.clone(), kind), number(fact, value)?);
            }
        }
    }
    Ok(all)
}

/// The disk by its numbers, and the rest of the line.
fn disk_of<'l>(fact: &Fact<'_>, line: &'l str) -> Result<(String, &'l str), ParseError> {
    let is_disk =
        |disk: &str| disk.split_once(':').is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok());
    match line.split_once(' ') {
        Some((disk, rest)) if is_disk(disk) => Ok((disk.to_owned(), rest)),
        // A disk without activity (io.stat).
        None if is_disk(line) => Ok((line.to_owned(), "")),
        _ => Err(TextLine::new(NAME, fact.line).expected("MAJOR:MINOR of a disk", line)),
    }
}

fn number(fact: &Fact<'_>, text: &str) -> Result<u64, ParseError> {
    TextLine::new(NAME, fact.line).number("a number", Some(text.trim()))
}

fn put(observation: &mut Observation, entry: &Entry) {
    if !is_of_host(observation, entry) {
        return;
    }
    match CgroupId::parse(&entry.item) {
        Some(id) => observation.cgroup_io.entry(id).or_default().push(entry.at_us, reading_of(&entry.outcome, parse)),
        None => unplaced(observation, entry, "it names no cgroup"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "dir /c\nread-bytes 254:0 1048576\\n8:16 0\\n\nwritten-bytes \nreads \nwrites 254:0 40\\n\n\
        bytes 254:0 Read 655360\\n254:0 Write 4096\\n254:0 Sync 655360\\n254:0 Total 659456\\nTotal 659456\\n\n\
        operations 254:0 Read 10\\n254:0 Write 1\\nTotal 11\\n\n";

    #[test]
    fn both_versions_are_parsed_and_damaged_text_is_an_error() {
        let disk = |kind| ("254:0".to_owned(), kind);
        let io = parse(V1.as_bytes()).unwrap();
        assert_eq!(io.limits, [(disk(IoKind::ReadBytes), 1_048_576), (disk(IoKind::Writes), 40)].into(), "zero is no limit");
        let done = [(IoKind::ReadBytes, 655_360), (IoKind::WrittenBytes, 4_096), (IoKind::Reads, 10), (IoKind::Writes, 1)];
        assert_eq!(io.done, done.map(|(kind, count)| (disk(kind), count)).into());
        let text = "dir /c\nmax 254:0 rbps=max wbps=2097152 riops=max wiops=max\\n\n\
            stat 254:0 rbytes=90 wbytes=80 rios=7 wios=6 dbytes=0 dios=0\\n8:0\\n\n";
        let io = parse(text.as_bytes()).unwrap();
        assert_eq!(io.limits, [(disk(IoKind::WrittenBytes), 2_097_152)].into());
        assert_eq!((io.done[&disk(IoKind::WrittenBytes)], io.done.len()), (80, 4));
        for wrong in [
            "",
            "dir /c\n",
            "max 254:0 rbps=1\nstat \n",
            "dir /c\nmax 254:0 rbps=1\n",
            "dir /c\nmax x rbps=1\nstat \n",
            "dir /c\nmax 254:0 rbps=-1\nstat \n",
            "dir /c\nmax 254:0 rbps=1\nstat 254 rbytes=3\n",
            &V1.replace("1048576", "x"),
            &V1.replace("Read 655360", "Read"),
            &V1.replace("254:0 Write 1", "254:0"),
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
