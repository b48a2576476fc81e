//! The cgroups of one process, from `/proc/PID/cgroup`.

use std::collections::BTreeMap;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome};

use super::{cpu, freezer, io, tasks};
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, lines, whole};
use crate::text::process::stat::read_while_alive;

const NAME: &str = "process_cgroups";
/// At most some dozen hierarchies with a path (PATH_MAX, 4096 bytes) each.
const BYTES_MAX: usize = 128 << 10;

/// Once for each process: `/proc/PID/cgroup` (cgroups(7)). Paths may contain names of users and containers.
pub(crate) const PROCESS_CGROUPS: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Once, needs: None, read, put, redact: Redact::Text };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let outcome = read_while_alive(context.root, NAME, pid, |_, _| Ok(context.root.read_process(pid, "cgroup", BYTES_MAX, None)));
    if let Outcome::Ok(bytes) = &outcome
        && let Ok(paths) = parse(bytes)
    {
        cpu::add_process(context, pid, &paths);
        tasks::add_process(context, pid, &paths);
        freezer::add_process(context, pid, &paths);
        io::add_process(context, pid, &paths);
    }
    only_item(outcome)
}

/// Parses lines "hierarchy:controllers:path" into path by controller. "" is version 2, "name=systemd" a named hierarchy, "cpu,cpuacct" two controllers with
/// the same path. A path may contain colons. On a kernel without cgroups the file is empty.
pub(crate) fn parse(bytes: &[u8]) -> Result<BTreeMap<String, String>, ParseError> {
    let mut paths = BTreeMap::new();
    if bytes.is_empty() {
        return Ok(paths);
    }
    let text = whole(NAME, bytes)?;
    for (place, line) in lines(NAME, &text) {
        let mut fields = line.splitn(3, ':');
        let (Some(_hierarchy), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(place.expected("hierarchy:controllers:path", line));
        };
        if !path.starts_with('/') {
            return Err(place.expected("a path after the second colon", line));
        }
        for controller in controllers.split(',') {
            paths.insert(controller.to_owned(), path.to_owned());
        }
    }
    Ok(paths)
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.cgroups, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed_together() {
        let paths = parse(b"9:name=systemd:/\n4:cpu,cpuacct:/docker/ab:cd\n0::/system.slice/nginx.service\n").unwrap();
        assert_eq!(paths[""], "/system.slice/nginx.service");
        assert_eq!((paths["cpu"].as_str(), paths["cpuacct"].as_str()), ("/docker/ab:cd", "/docker/ab:cd"));
        assert_eq!(paths["name=systemd"], "/");
        assert_eq!(parse(b""), Ok(BTreeMap::new()));
        for wrong in ["\n", "0:/\n", "0::x\n", "0::/a"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
