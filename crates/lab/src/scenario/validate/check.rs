//! The problems found so far, and checks that several parts of a scenario share.

use crate::scenario::document::Scenario;
use crate::scenario::locate::Path;
use crate::scenario::names;
use crate::scenario::nearest::edit_distance;
use crate::scenario::placeholder::{self, Values};
use crate::scenario::topology::Topology;

/// A scenario and the problems found in it.
pub(super) struct Check<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) topology: Topology,
    pub(super) problems: Vec<(Path, String)>,
}

impl Check<'_> {
    pub(super) fn problem(&mut self, path: Path, message: impl Into<String>) {
        self.problems.push((path, message.into()));
    }

    pub(super) fn result(&mut self, path: Path, result: Result<(), String>) {
        if let Err(message) = result {
            self.problem(path, message);
        }
    }

    pub(super) fn name(&mut self, name: &str, path: Path) {
        self.result(path, names::check_name(name));
    }

    /// Checks that a host exists.
    pub(super) fn host_known(&mut self, name: &str, path: Path) {
        if self.scenario.host(name).is_some() {
            return;
        }
        let known: Vec<&str> = self.scenario.hosts.iter().map(|host| host.name.as_str()).collect();
        let near = known.iter().map(|known| (edit_distance(name, known), *known)).min().filter(|(distance, _)| *distance <= 2);
        let meant = near.map(|(_, known)| format!("; did you mean \"{known}\"?")).unwrap_or_default();
        self.problem(path, format!("there is no host \"{name}\": hosts are {}{meant}", known.join(", ")));
    }

    /// Checks and expands the placeholders of a text, with a stand-in for the run directory.
    pub(super) fn expanded(&mut self, text: &str, server: Option<&placeholder::ServerValues>, path: Path) -> Option<String> {
        let values = Values { lab: &self.scenario.name, topology: &self.topology, run: Some("/run/lab"), server };
        match placeholder::expand(text, &values) {
            Ok(text) => Some(text),
            Err(why) => {
                self.problem(path, why);
                None
            }
        }
    }
}
