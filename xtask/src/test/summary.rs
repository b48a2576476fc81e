//! The results of all checks and tests: the lists at the end, the line of counts, and whether the run is a success.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::Reasons;
use super::history::{History, RUNS, UNSTABLE_MAX};

/// A test, a whole program or a check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) why: String,
}

/// A live test that failed at first and then passed twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unstable {
    pub(crate) name: String,
    /// Why it failed the first time.
    pub(crate) why: String,
    /// Where the outputs of its three runs are.
    pub(crate) directory: PathBuf,
}

/// The counts and lists of a run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    passed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    unstable: Vec<Unstable>,
    /// Live tests that passed in their first run.
    stable: BTreeSet<String>,
    reasons: Reasons,
    interrupted: bool,
}

impl Summary {
    /// Adds tests that did not fail.
    pub(crate) fn count(&mut self, passed: usize, skipped: usize, reasons: Reasons) {
        self.passed += passed;
        self.skipped += skipped;
        for (why, times) in reasons {
            *self.reasons.entry(why).or_default() += times;
        }
    }

    /// Adds the name of a live test that passed in its first run.
    pub(crate) fn stable(&mut self, name: String) {
        self.stable.insert(name);
    }

    /// Adds a failure.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    /// Adds a test that failed at first and then passed twice.
    pub(crate) fn unstable(&mut self, unstable: Unstable) {
        self.passed += 1;
        self.unstable.push(unstable);
    }

    /// Ends the run: nothing more is started.
    pub(crate) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Adds this run to the history, whose file is `path`. Tests that were unstable too often fail.
    pub(crate) fn judge_history(&mut self, history: &mut History, path: &Path) {
        for name in &self.stable {
            history.add(name, false);
        }
        for unstable in &self.unstable {
            history.add(&unstable.name, true);
        }
        let names = self.stable.iter().cloned().chain(self.unstable.iter().map(|unstable| unstable.name.clone()));
        let too_often: Vec<String> = names.filter(|name| history.is_too_often(name)).collect();
        for name in too_often {
            let (at_least, path) = (UNSTABLE_MAX, path.display());
            let why = format!("unstable in {at_least} of its last {RUNS} runs; mend it, then delete its line in {path}");
            self.passed = self.passed.saturating_sub(1);
            self.fail(Failure { name, why });
        }
    }

    /// True if tests ran and nothing failed.
    pub(crate) fn is_success(&self) -> bool {
        self.failures.is_empty() && !self.interrupted && self.passed + self.skipped > 0
    }

    /// The lists and the counts.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.reasons.is_empty() {
            text.push_str("nothing was skipped\n");
        } else {
            text.push_str("skipped:\n");
            for (why, times) in &self.reasons {
                let _ = writeln!(text, "  {times} x {why}");
            }
        }
        for Failure { name, why } in &self.failures {
            let _ = writeln!(text, "failed: {name}: {why}");
        }
        for Unstable { name, why, .. } in &self.unstable {
            let _ = writeln!(text, "unstable: {name}, 1 of 3 failed: {why}");
        }
        for Unstable { directory, .. } in &self.unstable {
            let _ = writeln!(text, "  its output: {}", directory.display());
        }
        if self.passed + self.skipped == 0 && self.failures.is_empty() {
            text.push_str("failed: no test ran\n");
        }
        let _ = writeln!(text, "{} passed, {} failed, {} skipped", self.passed, self.failures.len(), self.skipped);
        text
    }
}
