//! The history of unstable tests: a small file that later runs read. A test that was unstable in two of its last five runs counts as failed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Context;

/// Stored runs of a test.
pub(crate) const RUNS: usize = 5;
/// This many unstable runs among them count as a failure.
pub(crate) const UNSTABLE_MAX: usize = 2;
/// Bounds of the file: lines and bytes.
const TESTS_MAX: usize = 1000;
const FILE_BYTES_MAX: u64 = 1 << 20;

const HEAD: &str = "\
# Tests that were unstable in one of their last five runs: S is a run in which the test passed at first, U is one in which it failed and then passed twice;
# the newest run is the last letter. A test with two U counts as failed. Delete the line of a test once it is mended.
";

/// The last runs of each test that was unstable in one of them: true for unstable, the newest run last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    runs: BTreeMap<String, Vec<bool>>,
}

impl History {
    /// Reads the file. Without a file the history is empty. Malformed lines are ignored.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => anyhow::bail!("{} is too long; delete it", path.display()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut runs = BTreeMap::new();
        for line in text.lines().take(TESTS_MAX) {
            let Some((marks, name)) = line.split_once(' ') else { continue };
            let marks: Option<Vec<bool>> = marks.chars().map(|mark| matches!(mark, 'S' | 'U').then_some(mark == 'U')).collect();
            if let Some(marks) = marks.filter(|marks| !marks.is_empty() && marks.len() <= RUNS && !name.trim().is_empty()) {
                runs.insert(name.trim().to_owned(), marks);
            }
        }
        Self { runs }
    }

    /// Adds a run of a test.
    pub(crate) fn add(&mut self, test: &str, unstable: bool) {
        if unstable {
            self.runs.entry(test.to_owned()).or_default().push(true);
        } else if let Some(runs) = self.runs.get_mut(test) {
            runs.push(false);
        }
        if let Some(runs) = self.runs.get_mut(test) {
            runs.drain(..runs.len().saturating_sub(RUNS));
            if !runs.contains(&true) {
                self.runs.remove(test);
            }
        }
    }

    /// True if the test was unstable too often in its last runs.
    pub(crate) fn is_too_often(&self, test: &str) -> bool {
        self.runs.get(test).is_some_and(|runs| runs.iter().filter(|unstable| **unstable).count() >= UNSTABLE_MAX)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, runs) in self.runs.iter().take(TESTS_MAX - HEAD.lines().count()) {
            let marks: String = runs.iter().map(|unstable| if *unstable { 'U' } else { 'S' }).collect();
            let _ = writeln!(text, "{marks} {name}");
        }
        text
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let new = path.with_extension("new");
        std::fs::write(&new, self.text()).with_context(|| format!("cannot write {}", new.display()))?;
        std::fs::rename(&new, path).with_context(|| format!("cannot replace {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: &str) -> History {
        let mut history = History::default();
        runs.chars().for_each(|mark| history.add("a", mark == 'U'));
        History::parse(&history.text())
    }

    #[test]
    fn two_of_the_last_five_are_too_many() {
        for (runs, too_often) in [
            ("", false),
            ("U", false),
            ("UU", true),
            ("USSSU", true),
            ("USSSSU", false),
            ("UUSSS", true),
            ("UUSSSS", false),
            ("UUSSSSSU", false),
        ] {
            assert_eq!(after(runs).is_too_often("a"), too_often, "{runs}");
        }
    }

    #[test]
    fn a_test_is_forgotten_after_five_stable_runs_or_when_its_line_is_deleted() {
        assert_eq!(after("UUSSSSS"), History::default());
        assert_eq!(after("SSSSS"), History::default());
        let text: String = after("UU").text().lines().filter(|line| !line.ends_with(" a")).map(|line| format!("{line}\n")).collect();
        assert!(!History::parse(&text).is_too_often("a"));
    }

    #[test]
    fn malformed_lines_are_ignored() {
        assert_eq!(History::parse("\u{0}\nUU\nUX a\n a\nUUUUUU a\nU \n"), History::default());
        assert!(History::parse("UU a::b").is_too_often("a::b"));
    }

    #[test]
    fn the_file_is_bounded() {
        let mut history = History::default();
        (0..3 * TESTS_MAX).for_each(|number| history.add(&format!("t{number}"), true));
        assert!(history.text().lines().count() <= TESTS_MAX);
    }
}
