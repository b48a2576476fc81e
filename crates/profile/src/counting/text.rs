//! Counts as text: a table by program, then what was not counted and why.

use std::fmt::Write;

use crate::counting::count::{Count, Counts, ProgramCount};
use chokepoint_foreign::printable;

/// Maximum number of programs for one count.
const PROGRAMS_MAX: usize = 12;

/// The whole text.
pub fn render(counts: &Counts) -> String {
    let mut text = format!("counted for {:.1} s: {}", counts.duration_s, counts.scope);
    // Writing to a string cannot fail, here and below.
    if let Some(rate) = counts.requests_per_s {
        let _ = write!(text, "; {rate:.0} requests/s");
    }
    text.push('\n');
    if !counts.counts.is_empty() {
        let _ = write!(text, "\n{:18} {:16} {:>12} {:>11} {:>16}\n", "what", "program", "calls/s", "per request", "probe, % of CPU");
    }
    for count in &counts.counts {
        one(&mut text, count);
    }
    if !counts.not_counted.is_empty() {
        text.push('\n');
    }
    for (what, why) in &counts.not_counted {
        let _ = writeln!(text, "not counted: {what}: {why}");
    }
    text.push('\n');
    for lacking in &counts.lacking {
        let _ = writeln!(text, "note: {lacking}");
    }
    text.push_str("note: all probes are removed; the kernel removes them whenever this program ends\n");
    text
}

fn one(text: &mut String, count: &Count) {
    let rows = count.programs.iter().take(PROGRAMS_MAX);
    let mut first = count.what.as_str();
    for program in rows {
        let _ = writeln!(text, "{}", row(first, program));
        first = "";
    }
    if count.programs.is_empty() {
        let _ = writeln!(text, "{:18} {:16} {:>12}", count.what, "-", 0);
    }
    let more = count.programs.len().saturating_sub(PROGRAMS_MAX);
    if more > 0 {
        let _ = writeln!(text, "{:18} and {more} more programs", "");
    }
    let cost = count
        .cost_ns
        .zip(count.cost_range_ns)
        .map_or_else(String::new, |(median, (low, high))| format!("; {median:.0} ns per call on this host ({low:.0} to {high:.0})"));
    let _ = writeln!(text, "    by {}{cost}", count.how);
    for note in &count.notes {
        let _ = writeln!(text, "    {note}");
    }
}

fn row(what: &str, program: &ProgramCount) -> String {
    let name: String = printable(&program.program).chars().take(16).collect();
    let per_request = program.per_request.map_or_else(|| "-".to_owned(), |calls| format!("{calls:.2}"));
    let share = program.probe_share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", 100.0 * share));
    let rate = if program.per_s < 10.0 { format!("{:.1}", program.per_s) } else { format!("{:.0}", program.per_s) };
    format!("{what:18} {name:16} {rate:>12} {per_request:>11} {share:>16}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::count::COUNTS_SCHEMA;

    #[test]
    fn the_text_has_the_table_and_what_was_not_counted() {
        let program = ProgramCount {
            program: "nginx".to_owned(),
            processes: 2,
            count: 3000,
            per_s: 1000.0,
            per_request: Some(10.0),
            probe_share: Some(0.0123),
        };
        let count = |what: &str, programs| Count {
            what: what.to_owned(),
            how: "uprobe libc.so.6+0x98860".to_owned(),
            cost_ns: Some(812.0),
            cost_range_ns: Some((700.0, 900.0)),
            programs,
            notes: vec!["a note".to_owned()],
        };
        let counts = Counts {
            schema: COUNTS_SCHEMA,
            scope: "process 7 and its children".to_owned(),
            duration_s: 3.0,
            requests_per_s: Some(100.0),
            counts: vec![count("malloc", vec![program]), count("accept", vec![])],
            not_counted: vec![("cycles".to_owned(), "this machine has no PMU".to_owned())],
            lacking: vec!["no kprobes".to_owned()],
        };
        let text = render(&counts);
        for part in [
            "100 requests/s",
            "nginx",
            "10.00",
            "1.23",
            "812 ns per call on this host (700 to 900)",
            "not counted: cycles: this machine has no PMU",
            "no kprobes",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.lines().any(|line| line.starts_with("accept") && line.ends_with(" 0")), "{text}");
    }
}
