//! Repeats a live test that did not pass, twice, in a process of its own and while nothing else runs: it passes if both runs pass.

use std::path::PathBuf;

use super::super::Reasons;
use super::super::build::TestProgram;
use super::super::output::{self, UnfinishedTests};
use super::super::summary::{Failure, Unstable};
use super::{Suite, TestArguments, test_command};

/// The runs of a live test that did not pass at first, the first included.
const RUNS: usize = 3;

/// The first run of a live test, among the others of its program, in which it did not pass.
#[derive(Debug)]
pub(super) struct FirstRun<'a> {
    pub(super) test: &'a str,
    pub(super) why: String,
    /// What it printed, or what its program printed if that ended before the test did.
    pub(super) output: &'a str,
    pub(super) suspicion: Suspicion,
}

/// Whether the first run counts against the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// It failed, or it ended its program.
    Certain,
    /// One of several tests ended the program.
    Possible,
    /// Another test ended the program before this one ended.
    None,
}

#[derive(Debug)]
struct RepeatedRun {
    outcome: RepeatOutcome,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatOutcome {
    Passed,
    Skipped,
    Failed,
}

impl Suite {
    /// Repeats the live tests that a program left unfinished when it ended for the reason `why`. True if one of them explains that end: it failed or it
    /// is unstable.
    pub(super) fn repeat_unfinished(
        &mut self,
        program: &TestProgram,
        unfinished: &UnfinishedTests,
        why: &str,
        output: &str,
    ) -> anyhow::Result<bool> {
        let (why, suspicion) = match unfinished.suspects.len() {
            1 => (why.to_owned(), Suspicion::Certain),
            count => (format!("{why}, by this or by another of {count} tests"), Suspicion::Possible),
        };
        let mut is_explained = false;
        for test in &unfinished.tests {
            let suspicion = if unfinished.suspects.contains(test) { suspicion } else { Suspicion::None };
            is_explained |= self.repeat(program, &FirstRun { test, why: why.clone(), output, suspicion })?;
        }
        Ok(is_explained)
    }

    /// Repeats a live test and counts it. True if it explains the end of its program.
    pub(super) fn repeat(&mut self, program: &TestProgram, first: &FirstRun<'_>) -> anyhow::Result<bool> {
        let name = program.test_name(first.test);
        let mut runs = Vec::new();
        for number in 2..=RUNS {
            runs.push(self.run_once(program, first, number)?);
        }
        let directory = self.store_outputs(&name, first.output, &runs)?;
        let failed: Vec<&RepeatedRun> = runs.iter().filter(|run| run.outcome == RepeatOutcome::Failed).collect();
        let skipped = runs.iter().find(|run| run.outcome == RepeatOutcome::Skipped);
        let why = first.why.clone();
        match (first.suspicion, failed.first(), skipped) {
            (Suspicion::None, None, None) => self.summary.count(1, 0, Reasons::new()),
            (Suspicion::Certain | Suspicion::Possible, None, None) => self.summary.unstable(Unstable { name, why, directory }),
            (Suspicion::None | Suspicion::Possible, None, Some(skipped)) => {
                self.summary.count(0, 1, output::reasons(&skipped.text));
            }
            (Suspicion::None, Some(run), _) => {
                let why = format!("{} of {}: {}", failed.len(), runs.len(), output::why(&run.text));
                self.summary.fail(Failure { name, why });
            }
            (_, _, _) => {
                let passed = runs.iter().filter(|run| run.outcome == RepeatOutcome::Passed).count();
                self.summary.fail(Failure { name, why: format!("{} of {RUNS}: {why}", RUNS - passed) });
            }
        }
        let is_suspect = first.suspicion != Suspicion::None;
        Ok(is_suspect && (skipped.is_none() || first.suspicion == Suspicion::Certain || !failed.is_empty()))
    }

    fn run_once(&mut self, program: &TestProgram, first: &FirstRun<'_>, number: usize) -> anyhow::Result<RepeatedRun> {
        let name = program.test_name(first.test);
        self.processes.print_progress(&format!("{name} did not pass; run {number} of {RUNS}, alone"));
        let mut command = test_command(program, TestArguments::One(first.test));
        let describe = |_: &str| format!("{name}: run {number} of {RUNS}, alone");
        let output = self.processes.run(&mut command, &self.directory.join("repeat.txt"), true, self.program_max, &describe)?;
        let results = output::judge(&[first.test.to_owned()], &output);
        let is_whole = results.broken.is_none() && results.failed.is_empty();
        let outcome = match () {
            () if is_whole && results.passed.contains(first.test) => RepeatOutcome::Passed,
            () if is_whole && results.skipped.contains(first.test) => RepeatOutcome::Skipped,
            () => RepeatOutcome::Failed,
        };
        if outcome == RepeatOutcome::Failed {
            println!("---- {name}, run {number} of {RUNS}: {:?} ----\n{}", output.exit, output.text);
        }
        Ok(RepeatedRun { outcome, text: output.text })
    }

    /// Stores the outputs of a test's runs, in place of those from an earlier run of the suite.
    fn store_outputs(&self, name: &str, first: &str, runs: &[RepeatedRun]) -> anyhow::Result<PathBuf> {
        let directory = self.directory.join(name.replace(['/', ':'], "_"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        for (number, output) in std::iter::once(first).chain(runs.iter().map(|run| run.text.as_str())).enumerate() {
            std::fs::write(directory.join(format!("{}.txt", number + 1)), output)?;
        }
        Ok(directory)
    }
}
