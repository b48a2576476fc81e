//! Reads what a test program printed: which tests passed, which failed and why, and which were skipped. A test passed only if the program's status, its last
//! line of results and its list of failures agree.

use std::collections::{BTreeMap, BTreeSet};

use super::process::{Exit, ProcessOutput};
use super::{Reasons, skipped};

/// The exit status of a test program with failed tests.
const FAILED_STATUS: i32 = 101;

/// The results of one program's tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// Tests that passed and did not print that they were skipped.
    pub(crate) passed: BTreeSet<String>,
    /// Tests that printed that they were skipped, and ignored tests.
    pub(crate) skipped: BTreeSet<String>,
    /// Tests that failed, each with its output.
    pub(crate) failed: BTreeMap<String, String>,
    /// Why the program as a whole failed, whatever its tests report.
    pub(crate) broken: Option<String>,
    /// The tests that the program left unfinished, if it ended before them.
    pub(crate) unfinished: Option<UnfinishedTests>,
}

/// Tests without a result, because their program ended or was killed before they ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnfinishedTests {
    pub(crate) tests: BTreeSet<String>,
    /// The tests among them that may have ended the program: those named in its last output, or all of them if none is named.
    pub(crate) suspects: BTreeSet<String>,
}

/// The counts of a line `test result: ...`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

/// Names in the answer to `--list --format terse`.
pub(crate) fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The results of a program that has the tests `listed`.
pub(crate) fn judge(listed: &[String], output: &ProcessOutput) -> Results {
    let lines: Vec<&str> = output.text.lines().collect();
    let last = lines.iter().rposition(|line| counts(line).is_some());
    let counts = last.and_then(|at| counts(lines[at]));
    let failed = last.map(|at| failed_names(&lines[..at])).unwrap_or_default();
    let ignored = ignored_names(&output.text);
    let broken = broken(&output.exit, counts, &failed).or_else(|| {
        let counts = counts.unwrap_or_default();
        let ended = counts.passed + counts.failed + counts.ignored;
        if ended != listed.len() {
            return Some(format!("{ended} of its {} tests ended", listed.len()));
        }
        let unlisted = failed.iter().find(|name| !listed.contains(name));
        unlisted.map(|name| format!("it has no test `{name}`, which failed"))
    });
    let mut results = sort(listed.iter().cloned(), failed, &ignored, broken, &output.text);
    if counts.is_none() && matches!(output.exit, Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut(_)) {
        add_unfinished(&mut results, listed, output);
    }
    results
}

/// Adds the failed and the unfinished tests of a program that ended before its last test.
fn add_unfinished(results: &mut Results, listed: &[String], output: &ProcessOutput) {
    let has_failed = |name: &&String| output.text.lines().any(|line| result(line) == Some((name, "FAILED")));
    // Their output is lost: libtest prints it after the last test.
    results.failed = listed.iter().filter(has_failed).map(|name| (name.clone(), String::new())).collect();
    let has_ended =
        |name: &&String| results.passed.contains(*name) || results.skipped.contains(*name) || results.failed.contains_key(*name);
    let tests: BTreeSet<String> = listed.iter().filter(|name| !has_ended(name)).cloned().collect();
    let named: BTreeSet<String> = tests.iter().filter(|name| is_named(name, output)).cloned().collect();
    let suspects = if named.is_empty() { tests.clone() } else { named };
    results.unfinished = Some(UnfinishedTests { tests, suspects });
}

/// True if the output names the test as the thread that ended the program, or, if the program ran too long, as one that ran long.
fn is_named(test: &str, output: &ProcessOutput) -> bool {
    let (thread, long) = (format!("thread '{test}' "), format!("test {test} has been running for over "));
    output.text.lines().any(|line| match output.exit {
        Exit::TimedOut(_) => line.contains(&long),
        _ => line.contains(&thread) && (line.contains(" has overflowed its stack") || line.contains(" panicked at ")),
    })
}

/// The results of the tests in documentation: several programs, one after the other, each of which prints the names of its tests.
pub(crate) fn judge_documentation(output: &ProcessOutput) -> Results {
    let mut counts = output.text.lines().filter_map(counts).peekable();
    let sum = counts.peek().is_some().then(|| {
        counts.fold(Counts::default(), |sum, next| Counts {
            passed: sum.passed + next.passed,
            failed: sum.failed + next.failed,
            ignored: sum.ignored + next.ignored,
        })
    });
    let names: Vec<String> = output.text.lines().filter_map(|line| result(line).map(|(name, _)| name.to_owned())).collect();
    let lines: Vec<&str> = output.text.lines().collect();
    let results = (0..lines.len()).filter(|at| self::counts(lines[*at]).is_some());
    let failed: BTreeSet<String> = results.flat_map(|at| failed_names(&lines[..at])).collect();
    let ignored = ignored_names(&output.text);
    let broken = broken(&output.exit, sum, &failed);
    sort(names.into_iter(), failed, &ignored, broken, &output.text)
}

/// Why the program as a whole failed, or how its output contradicts its status.
fn broken(exit: &Exit, counts: Option<Counts>, failed: &BTreeSet<String>) -> Option<String> {
    match exit {
        Exit::Signal(signal) => return Some(format!("ended by signal {signal}")),
        Exit::TimedOut(bound) => return Some(format!("ended after {} s: it took longer than it may", bound.as_secs())),
        Exit::Flooded => return Some("ended: it wrote more than it may".to_owned()),
        Exit::NotStarted(why) => return Some(format!("not started: {why}")),
        Exit::Code(0 | FAILED_STATUS) => {}
        Exit::Code(code) => return Some(format!("ended with status {code}")),
    }
    let Some(counts) = counts else { return Some("it ended without a line of results".to_owned()) };
    if counts.failed != failed.len() {
        return Some(format!("{} of its tests failed, and {} are named", counts.failed, failed.len()));
    }
    if (*exit == Exit::Code(0)) != (counts.failed == 0) {
        return Some(format!("{} of its tests failed, and its status says otherwise", counts.failed));
    }
    None
}

fn sort(
    names: impl Iterator<Item = String>,
    failed: BTreeSet<String>,
    ignored: &BTreeSet<String>,
    broken: Option<String>,
    text: &str,
) -> Results {
    let mut outputs = outputs(text);
    let mut results = Results { broken, ..Results::default() };
    for name in names {
        let output = outputs.get(&name).map_or("", String::as_str);
        if failed.contains(&name) {
            continue;
        }
        // In a program that broke off, a test passed only if the program printed so.
        let has_passed = results.broken.is_none() || text.lines().any(|line| result(line) == Some((&name, "ok")));
        if ignored.contains(&name) || output.lines().any(|line| skipped(line).is_some()) {
            results.skipped.insert(name);
        } else if has_passed {
            results.passed.insert(name);
        }
    }
    results.failed = failed.into_iter().map(|name| (name.clone(), outputs.remove(&name).unwrap_or_default())).collect();
    results
}

/// `test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s`
fn counts(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, rest) = rest.split_once(". ")?;
    let number = |word: &str| rest.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    Some(Counts { passed: number("passed")?, failed: number("failed")?, ignored: number("ignored")? })
}

/// The name and the result in a line `test NAME ... ok`. A child of a test may have printed something before it.
fn result(line: &str) -> Option<(&str, &str)> {
    line.match_indices("test ").find_map(|(start, word)| {
        let (name, result) = line[start + word.len()..].split_once(" ... ")?;
        Some((name.strip_suffix(" - should panic").unwrap_or(name), result.trim()))
    })
}

/// How many tests a program has ended so far, and the names of the others if they are few.
pub(crate) fn progress(listed: &[String], text: &str) -> String {
    let ended: BTreeSet<&str> = text.lines().filter_map(|line| result(line).map(|(name, _)| name)).collect();
    let unfinished: Vec<&str> = listed.iter().map(String::as_str).filter(|name| !ended.contains(name)).collect();
    let names = if unfinished.len() <= 3 { format!(", running: {}", unfinished.join(", ")) } else { String::new() };
    format!("{} of {} tests{names}", listed.len() - unfinished.len(), listed.len())
}

fn ignored_names(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(result).filter(|(_, result)| result.starts_with("ignored")).map(|(name, _)| name.to_owned()).collect()
}

/// The names directly before a line of results: below `failures:`, each after four spaces. A test may print such a list itself, as the tests of this runner
/// do, but only libtest's own list is followed by the line of results.
fn failed_names(before: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in before.iter().rev().skip_while(|line| line.is_empty()) {
        match line.strip_prefix("    ") {
            Some(name) => names.insert(name.to_owned()),
            None if *line == "failures:" => return names,
            None => break,
        };
    }
    BTreeSet::new()
}

/// The output of each test: the blocks that begin with `---- NAME stdout ----`.
fn outputs(text: &str) -> BTreeMap<String, String> {
    let mut outputs: BTreeMap<String, String> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let head = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")).and_then(|rest| rest.strip_suffix(" stdout"));
        if let Some(name) = head {
            current = Some(name.to_owned());
            outputs.entry(name.to_owned()).or_default();
        } else if matches!(line, "failures:" | "successes:") || line.starts_with("test result: ") {
            current = None;
        } else if let Some(output) = current.as_ref().and_then(|name| outputs.get_mut(name)) {
            output.push_str(line);
            output.push('\n');
        }
    }
    outputs
}

/// Every reason for which something was skipped, in the output of a test or outside of it.
pub(crate) fn reasons(text: &str) -> Reasons {
    let mut reasons = Reasons::new();
    for why in text.lines().filter_map(skipped) {
        *reasons.entry(why.to_owned()).or_default() += 1;
    }
    reasons
}

/// Why a test failed: the first line of its panic's message, or its first line of output.
pub(crate) fn why(output: &str) -> String {
    let mut lines = output.lines().skip_while(|line| !(line.starts_with("thread '") && line.contains(" panicked at ")));
    lines.next();
    let line = lines.find(|line| !line.trim().is_empty()).or_else(|| output.lines().find(|line| !line.trim().is_empty()));
    line.map_or_else(|| "it printed nothing".to_owned(), |line| line.trim().to_owned())
}
