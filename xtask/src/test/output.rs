//! What a test program printed: which of its tests passed, which failed and why, and which said that they were skipped. Nothing is taken for passed that
//! the program's status, its last line of results and its list of failures do not agree on.

use std::collections::{BTreeMap, BTreeSet};

use super::process::{Exit, Ran};
use super::{Reasons, skipped};

/// The status of a test program some of whose tests failed.
const FAILED_STATUS: i32 = 101;

/// What came of the tests of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// Tests that passed and did not say that they were skipped.
    pub(crate) passed: BTreeSet<String>,
    /// Tests that said that they were skipped, and ignored ones.
    pub(crate) skipped: BTreeSet<String>,
    /// Tests that failed, each with what it printed.
    pub(crate) failed: BTreeMap<String, String>,
    /// Why the program as a whole failed, whatever its tests say.
    pub(crate) broken: Option<String>,
    /// What a program left open that ended in the middle of its tests.
    pub(crate) cut: Option<Cut>,
}

/// Tests that a program did not end, because it ended itself, or was ended, before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) open: BTreeSet<String>,
    /// Those among them that may be why: the ones that its last words name, else all.
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

/// What came of a program that has the tests `listed`.
pub(crate) fn judge(listed: &[String], ran: &Ran) -> Results {
    let lines: Vec<&str> = ran.text.lines().collect();
    let last = lines.iter().rposition(|line| counts(line).is_some());
    let counts = last.and_then(|at| counts(lines[at]));
    let failed = last.map(|at| failed_names(&lines[..at])).unwrap_or_default();
    let ignored = ignored_names(&ran.text);
    let broken = broken(&ran.exit, counts, &failed).or_else(|| {
        let counts = counts.unwrap_or_default();
        let ended = counts.passed + counts.failed + counts.ignored;
        if ended != listed.len() {
            return Some(format!("{ended} of its {} tests ended", listed.len()));
        }
        let stranger = failed.iter().find(|name| !listed.contains(name));
        stranger.map(|name| format!("it has no test `{name}`, which failed"))
    });
    let mut results = sort(listed.iter().cloned(), failed, &ignored, broken, &ran.text);
    if counts.is_none() && matches!(ran.exit, Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut(_)) {
        cut(&mut results, listed, ran);
    }
    results
}

/// Takes what a program told before it ended in the middle of its tests.
fn cut(results: &mut Results, listed: &[String], ran: &Ran) {
    let has_failed = |name: &&String| ran.text.lines().any(|line| result(line) == Some((name, "FAILED")));
    // What they printed was never told: that comes after the last test.
    results.failed = listed.iter().filter(has_failed).map(|name| (name.clone(), String::new())).collect();
    let has_ended =
        |name: &&String| results.passed.contains(*name) || results.skipped.contains(*name) || results.failed.contains_key(*name);
    let open: BTreeSet<String> = listed.iter().filter(|name| !has_ended(name)).cloned().collect();
    let named: BTreeSet<String> = open.iter().filter(|name| is_named(name, ran)).cloned().collect();
    let suspects = if named.is_empty() { open.clone() } else { named };
    results.cut = Some(Cut { open, suspects });
}

/// True where the program's last words name a test: as the thread that ended it, or as one that took long, where it was ended for that.
fn is_named(test: &str, ran: &Ran) -> bool {
    let (thread, long) = (format!("thread '{test}' "), format!("test {test} has been running for over "));
    ran.text.lines().any(|line| match ran.exit {
        Exit::TimedOut(_) => line.contains(&long),
        _ => line.contains(&thread) && (line.contains(" has overflowed its stack") || line.contains(" panicked at ")),
    })
}

/// What came of the tests in documentation, several programs one after the other, whose names are in their own lines.
pub(crate) fn judge_documentation(ran: &Ran) -> Results {
    let mut counts = ran.text.lines().filter_map(counts).peekable();
    let sum = counts.peek().is_some().then(|| {
        counts.fold(Counts::default(), |sum, next| Counts {
            passed: sum.passed + next.passed,
            failed: sum.failed + next.failed,
            ignored: sum.ignored + next.ignored,
        })
    });
    let names: Vec<String> = ran.text.lines().filter_map(|line| result(line).map(|(name, _)| name.to_owned())).collect();
    let lines: Vec<&str> = ran.text.lines().collect();
    let results = (0..lines.len()).filter(|at| self::counts(lines[*at]).is_some());
    let failed: BTreeSet<String> = results.flat_map(|at| failed_names(&lines[..at])).collect();
    let ignored = ignored_names(&ran.text);
    let broken = broken(&ran.exit, sum, &failed);
    sort(names.into_iter(), failed, &ignored, broken, &ran.text)
}

/// Why the program as a whole failed, or said one thing and did another.
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
        // A test of a program that broke off has passed only where that is told of it.
        let told = results.broken.is_none() || text.lines().any(|line| result(line) == Some((&name, "ok")));
        if ignored.contains(&name) || output.lines().any(|line| skipped(line).is_some()) {
            results.skipped.insert(name);
        } else if told {
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

/// The name and the result in a line `test NAME ... ok`; something that a child of a test printed may stand before it.
fn result(line: &str) -> Option<(&str, &str)> {
    line.match_indices("test ").find_map(|(start, word)| {
        let (name, result) = line[start + word.len()..].split_once(" ... ")?;
        Some((name.strip_suffix(" - should panic").unwrap_or(name), result.trim()))
    })
}

/// How many tests a program has ended so far, and which of `listed` it has not, where those are few.
pub(crate) fn progress(listed: &[String], text: &str) -> String {
    let ended: BTreeSet<&str> = text.lines().filter_map(|line| result(line).map(|(name, _)| name)).collect();
    let open: Vec<&str> = listed.iter().map(String::as_str).filter(|name| !ended.contains(name)).collect();
    let names = if open.len() <= 3 { format!(", running: {}", open.join(", ")) } else { String::new() };
    format!("{} of {} tests{names}", listed.len() - open.len(), listed.len())
}

fn ignored_names(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(result).filter(|(_, result)| result.starts_with("ignored")).map(|(name, _)| name.to_owned()).collect()
}

/// The names that stand right before a line of results, four spaces before each, below `failures:`. What a test printed may look like such a list (a
/// test of this very runner prints some); nothing but libtest's own stands between it and the line.
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

/// What each test printed: the blocks that begin with `---- NAME stdout ----`.
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

/// Every reason for which something was skipped, also where no test's output holds it.
pub(crate) fn reasons(text: &str) -> Reasons {
    let mut reasons = Reasons::new();
    for why in text.lines().filter_map(skipped) {
        *reasons.entry(why.to_owned()).or_default() += 1;
    }
    reasons
}

/// Why a test failed: the first line of its panic's message, or the first line that it printed.
pub(crate) fn why(output: &str) -> String {
    let mut lines = output.lines().skip_while(|line| !(line.starts_with("thread '") && line.contains(" panicked at ")));
    lines.next();
    let line = lines.find(|line| !line.trim().is_empty()).or_else(|| output.lines().find(|line| !line.trim().is_empty()));
    line.map_or_else(|| "it printed nothing".to_owned(), |line| line.trim().to_owned())
}
