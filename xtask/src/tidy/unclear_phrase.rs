//! Phrases that readers had to read twice, in messages, documents and help.

use super::{Breach, Rule};

/// Phrases in lower case, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("no reading shows", "\"the next limit is not known\", or \"cannot be observed\""),
    ("no reading tells", "\"is unknown; it will be measured\""),
    ("room that is written", "\"the configured backlog\""),
    ("requests there than pass", "\"fixing it first would only overload ...\""),
    ("/s ended", "\"/s completed\""),
    ("nearer to the answer", "\"closer to the backend\""),
    ("can be repeated", "\"safe to re-run\""),
    ("what is dear", "\"expensive\""),
    ("did not want whole", "\"did not fully use\""),
    ("connections held back", "the number that was dropped and what it cost the clients"),
    ("cannot be told:", "\"is unknown:\""),
    ("cannot be told which", "\"is unknown which\""),
    ("which is said", "\"and the report says so\""),
    ("it is said", "\"the report says so\""),
    (" is told as ", "\"is shown as\", or \"counts as\""),
    ("makes no sense", "\"is not valid\""),
    ("is no more;", "\"no longer exists\""),
    ("hangs on it", "\"depends on it\""),
    ("hang on it", "\"depends on it\""),
    ("for want of", "\"because there is no\""),
    ("as none do", "\"which no ... does\""),
    (" is wanted,", "\"give ...\", or \"write ...\""),
    (" are wanted", "\"give ...\", or \"write ...\""),
    ("by turns", "\"in turn\""),
    ("foretold", "\"predicted\""),
    ("passed over", "\"skipped\""),
    ("brings about", "\"causes\""),
    ("so many a second", "the number, or \"per second\""),
    ("as much as can be had", "\"all that can be saved\""),
    ("none does on today's paths", "what is known, and from which source"),
];

/// Documents that quote what a program printed, or that say what it used to print.
const QUOTING: &[&str] = &["CHANGELOG.md", "docs/scoreboard.md"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "unclear-phrase",
    asks: "messages, documents and help do without phrases that have to be read twice; quoted output in documents is not looked at",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (path, text) in workspace.tree.all().filter(|(path, _)| is_read(path)) {
            let mut in_code = false;
            for (index, line) in text.lines().enumerate() {
                in_code ^= line.trim_start().starts_with("```");
                let line = line.to_lowercase();
                for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| !in_code && line.contains(phrase)) {
                    breaches.push(Breach::new(path, index + 1, format!("`{phrase}`: write {instead}")));
                }
            }
        }
        breaches
    },
};

fn is_read(path: &str) -> bool {
    let is_document = path.ends_with(".md") && !path.contains("/tests/") && !QUOTING.contains(&path);
    is_document || path.ends_with(".ftl") || path.starts_with("crates/cli/src/args")
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::{PHRASES, RULE};

    #[test]
    fn fires_on_each_phrase_in_messages_documents_and_help() {
        for (phrase, _) in PHRASES {
            let text = format!("a\nSo {phrase} is it");
            assert_eq!(breaches(&RULE, &[("crates/model/locales/en/a.ftl", &text)]), ["crates/model/locales/en/a.ftl:2"]);
        }
        assert_eq!(breaches(&RULE, &[("README.md", "Both Can Be Repeated.")]), ["README.md:1"]);
        assert_eq!(breaches(&RULE, &[("crates/cli/src/args/a.rs", "/// what is dear")]), ["crates/cli/src/args/a.rs:1"]);
    }

    #[test]
    fn silent_on_quoted_output_the_past_and_code() {
        let files = [
            ("docs/demo.md", "```text\n10/s ended\n```\n10/s completed"),
            ("CHANGELOG.md", "`/s ended` is now `/s completed`"),
            ("crates/cli/tests/data/markdown/a.md", "10/s ended"),
            ("crates/x/src/a.rs", "// can be repeated"),
        ];
        assert!(breaches(&RULE, &files).is_empty(), "{:?}", breaches(&RULE, &files));
    }
}
