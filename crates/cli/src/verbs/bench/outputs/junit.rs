//! The conditions of a load as a JUnit report for CI servers: a test case for each, and one for whether requests were answered.

use std::fmt::Write;

use chokepoint_load::ThresholdResult;
use chokepoint_model::bench::{Bench, BenchOutcome};
use chokepoint_model::catalogue::Catalogue;

use crate::report::view::{Phrases, bench::condition, steers};

/// One test case: its name and, if it failed, why.
struct Case {
    name: String,
    failure: Option<String>,
}

/// The report as XML 1.0.
pub(super) fn render(bench: &Bench, judged: &[ThresholdResult], words: &Catalogue) -> String {
    let phrases = Phrases(words);
    let answered = Case {
        name: phrases.word("bench-junit-answered"),
        failure: (bench.outcome != BenchOutcome::Answered).then(|| bench.summary.clone()),
    };
    let case = |judged: &ThresholdResult| Case {
        name: phrases.say(&chokepoint_model::message::Message::new("bench-junit-not").with("condition", judged.condition.as_str())),
        failure: judged.failed.then(|| condition(phrases, judged)),
    };
    let cases: Vec<Case> = std::iter::once(answered).chain(judged.iter().map(case)).collect();
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{:.3}\"", cases.len(), bench.load.duration_s);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<testsuites {counts}>");
    let _ = writeln!(out, "  <testsuite name=\"{}\" {counts}>", escape(&format!("chokepoint bench {}", bench.target.url)));
    for Case { name, failure } in &cases {
        let _ = write!(out, "    <testcase classname=\"chokepoint.bench\" name=\"{}\" time=\"{:.3}\"", escape(name), bench.load.duration_s);
        let _ = match failure {
            Some(why) => writeln!(out, ">\n      <failure message=\"{0}\">{0}</failure>\n    </testcase>", escape(why)),
            None => writeln!(out, "/>"),
        };
    }
    let _ = writeln!(out, "    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>", escape(&bench.summary));
    out
}

/// Text for an element or a double-quoted attribute. Characters that XML 1.0 does not allow (section 2.2) are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            character if steers(character) => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_is_escaped() {
        assert_eq!(escape("p99>1s && \"a\"<b\n\u{1b}[0m\u{fffe}é"), "p99&gt;1s &amp;&amp; &quot;a&quot;&lt;b&#10;\u{fffd}[0m\u{fffd}é");
    }
}
