//! The builder of a lab: what it knows while it builds, and the record of each step.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::LabError;
use crate::machine::netns;
use crate::preflight::Tools;
use crate::scenario::document::Scenario;
use crate::scenario::names;
use crate::scenario::placeholder::{ServerValues, Values};
use crate::scenario::topology::Topology;
use crate::state::{LabDir, State};

/// How a lab is built.
pub struct Options<'o> {
    /// The directory for state and run files; [`crate::run_root`] gives the usual one.
    pub run_root: PathBuf,
    /// True: the lab stays when this process ends (`lab up`). False: dropping the [`Lab`](crate::Lab) takes it down, and a killed process leaves it
    /// behind.
    pub outlive: bool,
    /// A lab that is up and outlives this one. Machine settings that it has set may be set again: this lab restores them first.
    pub within: Option<&'o str>,
    /// Building stops soon after this becomes true (Ctrl-C) and removes what it has built.
    pub cancelled: Option<&'o AtomicBool>,
    /// Called before each step with its name.
    pub on_step: &'o mut dyn FnMut(&str),
}

/// A lab while it is built.
pub(crate) struct Builder<'b, 'o> {
    pub(crate) scenario: &'b Scenario,
    pub(crate) tools: Tools,
    pub(crate) topology: Topology,
    pub(crate) dir: LabDir,
    pub(crate) state: State,
    pub(crate) sysctls_set: BTreeSet<(String, String)>,
    pub(crate) options: &'b mut Options<'o>,
    pub(crate) cores: Vec<u32>,
    pub(crate) notes: Vec<String>,
    pub(crate) children: Vec<Child>,
}

impl Builder<'_, '_> {
    /// Announces the next step and records it in the state file before the caller takes it.
    pub(crate) fn step(&mut self, text: &str, begin: impl FnOnce(&mut State)) -> Result<(), LabError> {
        (self.options.on_step)(text);
        if self.is_cancelled() {
            return Err(LabError::Interrupted);
        }
        begin(&mut self.state);
        self.dir.save(&self.state)
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    pub(crate) fn values<'v>(&'v self, run: &'v str, server: Option<&'v ServerValues>) -> Values<'v> {
        Values { lab: &self.scenario.name, topology: &self.topology, run: Some(run), server }
    }

    pub(crate) fn netns_name(&self, host: &str) -> String {
        names::netns_name(&self.scenario.name, host)
    }

    pub(crate) fn netns_path(&self, host: &str) -> PathBuf {
        netns::path(&self.netns_name(host))
    }
}
