//! The sample of a report in a document: the lines between two marks are replaced by what `diagnose --replay` prints.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Lines of the report in the sample.
const LINES_MAX: usize = 20;
/// The beginnings of the lines before and after the sample.
const BEGIN: &str = "<!-- sample";
const END: &str = "<!-- end of the sample";

/// Replays the recording and writes the first lines of its report into the document.
pub(crate) fn write(program: &Path, recording: &Path, document: &Path) -> anyhow::Result<()> {
    let output = Command::new(program).args(["diagnose", "--replay"]).arg(recording).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} ended with {}", program.display(), output.status);
    }
    let report = String::from_utf8(output.stdout).context("the report is no UTF-8")?;
    let text = std::fs::read_to_string(document).with_context(|| format!("cannot read {}", document.display()))?;
    let text = replaced(&text, &report).with_context(|| format!("{} has no marks for a sample", document.display()))?;
    std::fs::write(document, text).with_context(|| format!("cannot write {}", document.display()))?;
    println!("sample: wrote {}", document.display());
    Ok(())
}

/// The document with another sample. `None` without marks.
fn replaced(document: &str, report: &str) -> Option<String> {
    let begin = document.find(BEGIN)?;
    let first = begin + document[begin..].find('\n')? + 1;
    let end = first + document[first..].find(END)?;
    let lines: Vec<&str> = report.lines().collect();
    let (shown, rest) = if lines.len() > LINES_MAX { (LINES_MAX - 1, "...\n") } else { (lines.len(), "") };
    Some(format!("{}```text\n{}\n{rest}```\n{}", &document[..first], lines[..shown].join("\n"), &document[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_between_the_marks_are_replaced_again_and_again() {
        let document = "a\n<!-- sample: x -->\nold\n<!-- end of the sample -->\nb\n";
        let short = replaced(document, "one\ntwo\n").expect("marks");
        assert_eq!(short, "a\n<!-- sample: x -->\n```text\none\ntwo\n```\n<!-- end of the sample -->\nb\n");
        let long = replaced(&short, &"line\n".repeat(30)).expect("marks");
        assert_eq!(long.lines().filter(|line| *line == "line").count(), LINES_MAX - 1);
        assert!(long.contains("line\n...\n```\n<!-- end") && !long.contains("one"));
        assert_eq!(replaced("nothing", "x"), None);
    }
}
