//! Checks of a scenario beyond the kinds of its fields: names exist, values agree. Finds every problem, not only the first.

mod cgroups;
mod check;
mod expect;
mod network;
mod programs;

use std::collections::BTreeSet;

use self::check::Check;
use super::document::{FileSpec, Scenario};
use super::locate::Path;
use super::names;
use super::topology::Topology;
use crate::machine::sysctl;

/// The schema that this program reads.
const SCHEMA: i64 = 1;

const FILES_BYTES_MAX: u64 = 256 << 20;

/// Refuses a text with another schema. Ignores texts that are not TOML or have no schema; other checks report those.
pub(super) fn check_schema(text: &str) -> Result<(), (Path, String)> {
    let Ok(document) = toml::de::DeTable::parse(text) else { return Ok(()) };
    let schema = document.get_ref().iter().find(|(key, _)| key.get_ref() == "schema").and_then(|(_, value)| value.get_ref().as_integer());
    match schema {
        Some(schema) if i64::from_str_radix(schema.as_str(), schema.radix()) != Ok(SCHEMA) => {
            let message = format!("this chokepoint reads schema {SCHEMA}, but the file has schema {schema}");
            Err((Path::root().key("schema"), message))
        }
        _ => Ok(()),
    }
}

/// Every problem of a scenario.
pub(super) fn validate(scenario: &Scenario) -> Vec<(Path, String)> {
    let mut check = Check { scenario, topology: Topology::of(scenario), problems: Vec::new() };
    let root = Path::root();
    check.name(&scenario.name, root.key("name"));
    if scenario.title.trim().is_empty() || scenario.title.contains('\n') {
        check.problem(root.key("title"), "write one sentence on one line");
    }
    check.hosts();
    check.links();
    for key in scenario.host_sysctls.keys() {
        check.result(root.key("host_sysctls").key(key), sysctl::check_key(key));
    }
    check.files(&scenario.files);
    check.cgroups();
    check.programs();
    check.load(&scenario.load, &root.key("load"));
    check.expect(&scenario.expect, &root.key("expect"));
    check.problems
}

impl Check<'_> {
    fn files(&mut self, files: &[FileSpec]) {
        let root = Path::root();
        let mut seen: BTreeSet<String> = self.scenario.servers.iter().flat_map(|server| names::server_files(&server.name)).collect();
        seen.extend(self.scenario.hosts.iter().map(|host| format!("{}.nft", host.name)));
        let mut total: u64 = 0;
        for (index, file) in files.iter().enumerate() {
            let path = root.key("file").index(index);
            let parts_good = file.path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
            if !parts_good || file.path.contains('\0') || file.path.len() > 200 {
                let message = format!(
                    "\"{}\" is not a path below the run directory: such a path does not begin with / and has no `.` or `..`",
                    file.path
                );
                self.problem(path.key("path"), message);
            } else if !seen.insert(file.path.clone()) {
                self.problem(path.key("path"), format!("there is a file \"{}\" already (one given here, or a server's own)", file.path));
            }
            if file.content.is_some() == file.size.is_some() {
                self.problem(path.clone(), "give either `content` or `size`");
            }
            if let Some(content) = &file.content {
                self.expanded(content, None, path.key("content"));
            }
            total = total.saturating_add(file.size.map_or(0, |size| size.0));
            if total > FILES_BYTES_MAX {
                self.problem(path.key("size"), format!("all files together may have at most {} MiB", FILES_BYTES_MAX >> 20));
            }
        }
    }
}
