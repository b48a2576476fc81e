//! Whether the path's cgroups are frozen, from the files of both versions: a frozen process runs nothing and says nothing of it in its own state.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, CgroupVersion, Freezer, Observation};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::mounts::Mounts;
use crate::root::{Root, reading_of};
use crate::scope::{is_of_host, unplaced};
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts;

const NAME: &str = "cgroup_freezer";
/// A word, or two lines of a name and a number.
const BYTES_MAX: usize = 4 << 10;
/// Most cgroups to read: each costs some 10 us, four times a second.
const CGROUPS_MAX: usize = 64;

/// Four times a second for the host: for each cgroup with a process of the path, item "v1:/path" or "v2:/path" with the facts `dir` and `state` (`freezer.state` of version 1,
/// Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst) or `events` (`cgroup.events` of version 2, with "frozen 1"). The state includes what its ancestors impose. The root cannot be
/// frozen. Paths may contain names of users and containers.
pub(crate) const CGROUP_FREEZER: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Often, needs: None, read, put, redact: Redact::Text };

/// The directories of the path's cgroups by the text of their ids.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownCgroups(BTreeMap<String, String>);

/// The file that tells, and the fact that it is kept as.
fn file(version: CgroupVersion) -> (&'static str, &'static str) {
    match version {
        CgroupVersion::V1 => ("freezer.state", "state"),
        CgroupVersion::V2 => ("cgroup.events", "events"),
    }
}

/// Adds the cgroups of a process, given by its path in each controller, to those that are read from now on. What no mount shows is left out.
pub(super) fn add_process(context: &ReadContext<'_>, pid: u32, paths: &BTreeMap<String, String>) {
    let mut known = context.notes.kept::<KnownCgroups>(NAME);
    let own = CgroupId::freezable(paths).into_iter().filter(|id| !known.0.contains_key(&id.to_string())).collect::<Vec<_>>();
    if own.is_empty() || known.0.len() + own.len() > CGROUPS_MAX {
        return;
    }
    let mounts = Mounts::read(context.root, pid);
    for id in own {
        if let Some(dir) = mounts.dir(&id, "freezer") {
            known.0.insert(id.to_string(), dir);
        }
    }
    context.notes.keep(NAME, &known);
}

fn read(context: &ReadContext<'_>) -> Items {
    let known = context.notes.kept::<KnownCgroups>(NAME);
    known
        .0
        .into_iter()
        .filter_map(|(item, dir)| Some((CgroupId::parse(&item)?, item, dir)))
        .map(|(id, item, dir)| (item, look(context.root, id.version, &dir)))
        .collect()
}

fn look(root: &Root, version: CgroupVersion, dir: &str) -> Outcome {
    let (name, fact) = file(version);
    let bytes = match root.read(&format!("{dir}/{name}"), BYTES_MAX, None) {
        Outcome::Ok(bytes) => bytes,
        lack => return lack,
    };
    let mut text = Vec::new();
    facts::add(&mut text, "dir", dir.as_bytes());
    facts::add(&mut text, fact, &bytes);
    Outcome::Ok(text)
}

/// Parses the facts. Of version 1, FREEZING counts as frozen: most of its processes are. Before Linux 5.2 version 2 has no "frozen".
pub(crate) fn parse(bytes: &[u8]) -> Result<Freezer, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let dir = facts::need(NAME, &facts, "dir", "the cgroup's directory")?.text().into_owned();
    if let Some(events) = facts::find(&facts, "events") {
        let text = events.text();
        let frozen = text.lines().find_map(|line| line.strip_prefix("frozen "));
        let frozen = frozen.map(|frozen| TextLine::new(NAME, events.line).number::<u8>("0 or 1", Some(frozen.trim()))).transpose()?;
        return Ok(Freezer { dir, is_frozen: frozen.is_some_and(|frozen| frozen > 0) });
    }
    let state = facts::need(NAME, &facts, "state", "a state")?;
    let is_frozen = match state.text().trim() {
        "THAWED" => false,
        "FROZEN" | "FREEZING" => true,
        other => return Err(TextLine::new(NAME, state.line).expected("THAWED, FREEZING or FROZEN", other)),
    };
    Ok(Freezer { dir, is_frozen })
}

fn put(observation: &mut Observation, entry: &Entry) {
    if !is_of_host(observation, entry) {
        return;
    }
    match CgroupId::parse(&entry.item) {
        Some(id) => observation.freezers.entry(id).or_default().push(entry.at_us, reading_of(&entry.outcome, parse)),
        None => unplaced(observation, entry, "it names no cgroup"),
    }
}

#[cfg(test)]
mod tests {
    use chokepoint_recording::Scope;

    use super::*;
    use crate::table::{Notes, Phase};

    #[test]
    fn both_versions_are_parsed_and_damaged_text_is_an_error() {
        for (text, expected) in [
            ("dir /c\nstate THAWED\\n\n", false),
            ("dir /c\nstate FROZEN\\n\n", true),
            ("dir /c\nstate FREEZING\\n\n", true),
            ("dir /c\nevents populated 1\\nfrozen 1\\n\n", true),
            ("dir /c\nevents populated 1\\nfrozen 0\\n\n", false),
            ("dir /c\nevents populated 1\\n\n", false),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(Freezer { dir: "/c".into(), is_frozen: expected }), "{text:?}");
        }
        for wrong in [
            "",
            "dir /c\n",
            "state FROZEN\n",
            "dir /c\nstate frozen\n",
            "dir /c\nstate \n",
            "dir /c\nevents frozen x\\n\n",
            "dir /c\nevents frozen -1\\n\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_cgroup_is_read_once_and_the_root_never() {
        let tree = tempfile::tempdir().unwrap();
        let at = |file: &str, text: &str| {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        at("proc/self/mountinfo", "1 0 0:1 / /cg/fr rw - cgroup cgroup rw,freezer\n2 0 0:2 / /cg/two rw - cgroup2 cgroup2 rw\n");
        at("cg/fr/web/freezer.state", "FROZEN\n");
        at("cg/two/a/cgroup.events", "populated 1\nfrozen 0\n");
        let (root, notes) = (Root::new(tree.path()), Notes::default());
        let context = ReadContext::new(&root, Scope::Host, Phase::First, &notes);
        for (pid, paths) in [(7, "4:freezer:/web\n0::/a\n"), (8, "4:freezer:/web\n0::/\n"), (9, "4:freezer:/\n0::/\n")] {
            add_process(&context, pid, &super::super::process::parse(paths.as_bytes()).unwrap());
        }
        let frozen = |items: Items| -> Vec<(String, bool)> {
            let parsed = |outcome: &Outcome| matches!(outcome, Outcome::Ok(bytes) if parse(bytes).unwrap().is_frozen);
            items.iter().map(|(item, outcome)| (item.clone(), parsed(outcome))).collect()
        };
        assert_eq!(frozen(read(&context)), [("v1:/web".to_owned(), true), ("v2:/a".to_owned(), false)]);
    }
}
