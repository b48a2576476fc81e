//! Unified diffs of edited files, as patch(1) reads them.

use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The most lines that may differ. Beyond it the search for the shortest diff stops, and the whole middle is replaced.
const DISTANCE_MAX: usize = 1_000;

/// One line of the edit script from old to new, by its index in the old and the new lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Keep(usize, usize),
    Remove(usize),
    Add(usize),
}

/// The unified diff with `--- a/path` and `+++ b/path` and three lines of context; empty if nothing changed. `patch -p1 -d /` takes it.
pub fn unified(path: &str, before: &str, after: &str) -> String {
    of(path, before, after, CONTEXT)
}

/// The unified diff without context: it shows nothing of the file but the lines that change. `patch FILE` takes it while the file is as it was.
pub fn changed_lines(path: &str, before: &str, after: &str) -> String {
    of(path, before, after, 0)
}

fn of(path: &str, before: &str, after: &str, context: usize) -> String {
    if before == after {
        return String::new();
    }
    let old = lines(before);
    let new = lines(after);
    let steps = script(&old, &new);
    let name = path.trim_start_matches('/');
    let mut out = format!("--- a/{name}\n+++ b/{name}\n");
    let (mut done, mut old_line, mut new_line) = (0, 0, 0);
    for hunk in hunks(&steps, context) {
        let skipped = &steps[done..hunk.start];
        old_line += old_count(skipped);
        new_line += new_count(skipped);
        let inside = &steps[hunk.clone()];
        write_hunk(&mut out, inside, (&old, &new), (old_line, new_line));
        old_line += old_count(inside);
        new_line += new_count(inside);
        done = hunk.end;
    }
    out
}

/// Lines of the old text in a part of the script.
fn old_count(steps: &[Step]) -> usize {
    steps.iter().filter(|step| !matches!(step, Step::Add(_))).count()
}

/// Lines of the new text in a part of the script.
fn new_count(steps: &[Step]) -> usize {
    steps.iter().filter(|step| !matches!(step, Step::Remove(_))).count()
}

/// Lines with their endings; the last may have none.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The shortest edit script. A common start and end are skipped first.
pub(crate) fn script(old: &[&str], new: &[&str]) -> Vec<Step> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut steps: Vec<Step> = (0..head).map(|index| Step::Keep(index, index)).collect();
    match shortest(old_middle, new_middle) {
        Some(middle) => steps.extend(middle.into_iter().map(|step| match step {
            Step::Keep(a, b) => Step::Keep(a + head, b + head),
            Step::Remove(a) => Step::Remove(a + head),
            Step::Add(b) => Step::Add(b + head),
        })),
        None => {
            steps.extend((head..old.len() - tail).map(Step::Remove));
            steps.extend((head..new.len() - tail).map(Step::Add));
        }
    }
    steps.extend((0..tail).map(|index| Step::Keep(old.len() - tail + index, new.len() - tail + index)));
    steps
}

/// Myers' greedy algorithm (An O(ND) difference algorithm and its variations, 1986); `None` beyond [`DISTANCE_MAX`].
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Step>> {
    let most = (old.len() + new.len()).min(DISTANCE_MAX);
    let offset = most + 1;
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for distance in 0..=most {
        trace.push(furthest[offset - distance..=offset + distance].to_vec());
        for step in 0..=distance {
            // Diagonal k = x - y runs over -distance, -distance + 2, ..., distance.
            let at = offset + 2 * step - distance;
            let down = step == 0 || step < distance && furthest[at - 1] < furthest[at + 1];
            let mut x = if down { furthest[at + 1] } else { furthest[at - 1] + 1 };
            let mut y = (x + offset).wrapping_sub(at);
            while x < old.len() && y < new.len() && old[x] == new[y] {
                x += 1;
                y += 1;
            }
            furthest[at] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(&trace, old.len(), new.len(), distance));
            }
        }
    }
    None
}

/// Rebuilds the script from the furthest points that each distance had reached before it began.
fn walk_back(trace: &[Vec<usize>], old_len: usize, new_len: usize, distance: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut x, mut y) = (old_len, new_len);
    for d in (1..=distance).rev() {
        // trace[d] holds diagonals -d..=d as they stood after d - 1.
        let reached = |k: isize| trace[d].get((k + d as isize) as usize).copied().unwrap_or(0);
        let k = x as isize - y as isize;
        let down = k == -(d as isize) || k != d as isize && reached(k - 1) < reached(k + 1);
        let from_k = if down { k + 1 } else { k - 1 };
        let from_x = reached(from_k);
        let from_y = (from_x as isize - from_k) as usize;
        let begin_x = if down { from_x } else { from_x + 1 };
        while x > begin_x {
            x -= 1;
            y -= 1;
            steps.push(Step::Keep(x, y));
        }
        steps.push(if down { Step::Add(from_y) } else { Step::Remove(from_x) });
        (x, y) = (from_x, from_y);
    }
    while x > 0 {
        x -= 1;
        y -= 1;
        steps.push(Step::Keep(x, y));
    }
    steps.reverse();
    steps
}

/// Ranges of steps: each change with its context. Ranges whose contexts meet are joined.
fn hunks(steps: &[Step], context: usize) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, _) in steps.iter().enumerate().filter(|(_, step)| !matches!(step, Step::Keep(..))) {
        let from = index.saturating_sub(context);
        let to = (index + 1 + context).min(steps.len());
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

/// Writes a hunk, given the lines of both texts before it.
fn write_hunk(out: &mut String, steps: &[Step], (old, new): (&[&str], &[&str]), (old_before, new_before): (usize, usize)) {
    // An empty side gets the number of the line before it (POSIX diff -u).
    let position = |before: usize, count: usize| match count {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        count => format!("{},{count}", before + 1),
    };
    let (removed, added) = (position(old_before, old_count(steps)), position(new_before, new_count(steps)));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "@@ -{removed} +{added} @@");
    for step in steps {
        let (mark, line) = match *step {
            Step::Keep(a, _) => (' ', old[a]),
            Step::Remove(a) => ('-', old[a]),
            Step::Add(b) => ('+', new[b]),
        };
        out.push(mark);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The new text as the script builds it. Every removed and kept line is compared with the old text.
    fn replay(before: &str, after: &str) -> String {
        let (old, new) = (lines(before), lines(after));
        let mut consumed = 0;
        let mut result = String::new();
        for step in script(&old, &new) {
            match step {
                Step::Keep(a, b) => {
                    assert_eq!((a, old[a]), (consumed, new[b]));
                    consumed += 1;
                    result.push_str(new[b]);
                }
                Step::Remove(a) => {
                    assert_eq!(a, consumed);
                    consumed += 1;
                }
                Step::Add(b) => result.push_str(new[b]),
            }
        }
        assert_eq!(consumed, old.len());
        result
    }

    #[test]
    fn one_changed_line_has_three_lines_of_context() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let expected = "--- a/etc/x.conf\n+++ b/etc/x.conf\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified("/etc/x.conf", before, after), expected);
    }

    #[test]
    fn far_changes_get_hunks_of_their_own() {
        let before: String = (0..40).map(|n| format!("{n}\n")).collect();
        let after = before.replace("\n3\n", "\nthree\n").replace("\n30\n", "\n30\nx\n");
        let diff = unified("f", &before, &after);
        assert_eq!(diff.matches("\n@@ ").count(), 2, "{diff}");
        assert!(diff.contains("@@ -29,6 +29,7 @@"), "{diff}");
    }

    #[test]
    fn a_missing_last_line_feed_is_marked() {
        let diff = unified("f", "a", "a\nb\n");
        assert_eq!(diff, "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n");
        assert_eq!(unified("f", "", "a\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("f", "a\n", ""), "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n");
        assert_eq!(unified("f", "a", "a"), "");
    }

    #[test]
    fn without_context_only_the_changed_lines_are_shown() {
        let before = "1\n2\n3\n4\n5\n";
        assert_eq!(changed_lines("/f", before, "1\ntwo\n3\n4\n5\nsix\n"), "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-2\n+two\n@@ -5,0 +6 @@\n+six\n");
        assert_eq!(changed_lines("/f", before, "0\n1\n2\n5\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+0\n@@ -3,2 +3,0 @@\n-3\n-4\n");
    }

    #[test]
    fn a_text_with_too_many_differences_is_replaced_whole() {
        let before: String = (0..900).map(|n| format!("a{n}\n")).collect();
        let after: String = (0..900).map(|n| format!("b{n}\n")).collect();
        assert_eq!(replay(&before, &after), after);
    }

    proptest! {
        #[test]
        fn scripts_turn_the_old_into_the_new(before in "([abc]\r?\n){0,12}[ab]?", after in "([abc]\r?\n){0,12}[ab]?") {
            prop_assert_eq!(replay(&before, &after), after.clone());
            prop_assert_eq!(unified("f", &before, &after).is_empty(), before == after);
        }
    }
}
