//! Runs a live test that did not end well twice more, by itself while nothing else runs: it passes with two of three.

use std::path::PathBuf;

use super::super::Reasons;
use super::super::build::Binary;
use super::super::output::{self, Cut};
use super::super::summary::{Failure, Unstable};
use super::{Suite, Which, command};

/// How often a live test that did not end well is run in all.
const RUNS: usize = 3;

/// A live test's run among the others of its program, which it did not end well.
#[derive(Debug)]
pub(super) struct First<'a> {
    pub(super) test: &'a str,
    pub(super) why: String,
    /// What it printed, or its whole program where that ended before the test.
    pub(super) output: &'a str,
    pub(super) blame: Blame,
}

/// Whether the first run says something of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// It failed, or it is why its program ended.
    Certain,
    /// It is one of several that may be why.
    Possible,
    /// Another test is why: this one was only not done.
    Not,
}

/// How a test ended that ran by itself, and what it printed.
#[derive(Debug)]
struct Again {
    ended: Ended,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Passed,
    Skipped,
    Failed,
}

impl Suite {
    /// Runs the live tests again that a program left open, which ended for this reason. True where the end is told by that: by a test that failed or
    /// is unstable.
    pub(super) fn again_each(&mut self, binary: &Binary, cut: &Cut, why: &str, output: &str) -> anyhow::Result<bool> {
        let (why, blame) = match cut.suspects.len() {
            1 => (why.to_owned(), Blame::Certain),
            count => (format!("{why}, by this or by another of {count} tests"), Blame::Possible),
        };
        let mut is_told = false;
        for test in &cut.open {
            let blame = if cut.suspects.contains(test) { blame } else { Blame::Not };
            is_told |= self.again(binary, &First { test, why: why.clone(), output, blame })?;
        }
        Ok(is_told)
    }

    /// Runs a live test twice more, and counts it. True where it is told by name, as failed or as unstable.
    pub(super) fn again(&mut self, binary: &Binary, first: &First<'_>) -> anyhow::Result<bool> {
        let name = binary.test_name(first.test);
        let mut runs = Vec::new();
        for number in 2..=RUNS {
            runs.push(self.once(binary, first, number)?);
        }
        let directory = self.keep(&name, first.output, &runs)?;
        let failed: Vec<&Again> = runs.iter().filter(|run| run.ended == Ended::Failed).collect();
        let skipped = runs.iter().find(|run| run.ended == Ended::Skipped);
        let why = first.why.clone();
        match (first.blame, failed.first(), skipped) {
            (Blame::Not, None, None) => self.summary.count(1, 0, Reasons::new()),
            (Blame::Certain | Blame::Possible, None, None) => self.summary.unstable(Unstable { name, why, directory }),
            (Blame::Not | Blame::Possible, None, Some(skipped)) => self.summary.count(0, 1, output::reasons(&skipped.text)),
            (Blame::Not, Some(run), _) => {
                let why = format!("{} of {}: {}", failed.len(), runs.len(), output::why(&run.text));
                self.summary.fail(Failure { name, why });
            }
            (_, _, _) => {
                let passed = runs.iter().filter(|run| run.ended == Ended::Passed).count();
                self.summary.fail(Failure { name, why: format!("{} of {RUNS}: {why}", RUNS - passed) });
            }
        }
        Ok(first.blame != Blame::Not && (skipped.is_none() || first.blame == Blame::Certain || !failed.is_empty()))
    }

    /// Runs a test by itself for the time of that number.
    fn once(&mut self, binary: &Binary, first: &First<'_>, number: usize) -> anyhow::Result<Again> {
        let name = binary.test_name(first.test);
        self.processes.tell(&format!("{name} did not end well; run {number} of {RUNS}, alone"));
        let mut command = command(binary, Which::One(first.test));
        let doing = |_: &str| format!("{name}: run {number} of {RUNS}, alone");
        let ran = self.processes.run(&mut command, &self.place.join("output.txt"), true, self.bound, &doing)?;
        let results = output::judge(&[first.test.to_owned()], &ran);
        let is_whole = results.broken.is_none() && results.failed.is_empty();
        let ended = match () {
            () if is_whole && results.passed.contains(first.test) => Ended::Passed,
            () if is_whole && results.skipped.contains(first.test) => Ended::Skipped,
            () => Ended::Failed,
        };
        if ended != Ended::Passed {
            println!("---- {name}, run {number} of {RUNS}: {:?} ----\n{}", ran.exit, ran.text);
        }
        Ok(Again { ended, text: ran.text })
    }

    /// Keeps the outputs of a test's runs, in place of those that an earlier run of the tests kept of it.
    fn keep(&self, name: &str, first: &str, runs: &[Again]) -> anyhow::Result<PathBuf> {
        let directory = self.place.join(name.replace(['/', ':'], "_"));
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
