//! Source files that do not begin with a sentence about their purpose.

use super::{Breach, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "headless-file",
    asks: "every .rs file begins with a `//!` of one or two sentences",
    check: |workspace| {
        let headless = workspace.files.values().filter(|file| !has_head(file.text));
        headless.map(|file| Breach::new(file.path, 1, "does not begin with `//!` and a sentence")).collect()
    },
};

fn has_head(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|rest| rest.split_whitespace().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    #[test]
    fn fires_without_a_head() {
        for text in ["", "fn a() {}\n//! late", "// plain comment\n", "//!\n//! second line", "/*! block */"] {
            assert_eq!(breaches(&RULE, &[("a.rs", text)]), ["a.rs:1"], "{text:?}");
        }
    }

    #[test]
    fn silent_with_a_head() {
        assert!(breaches(&RULE, &[("a.rs", "//! What it is for.\nfn a() {}")]).is_empty());
    }
}
