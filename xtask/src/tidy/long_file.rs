//! Source files that are too long.

use super::{Breach, Rule};

/// Lines that a source file may have.
const LINES_MAX: usize = 600;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "long-file",
    asks: "a .rs file has at most 600 lines",
    check: |workspace| {
        let counted = workspace.files.values().map(|file| (file, file.text.lines().count()));
        let long = counted.filter(|(_, lines)| *lines > LINES_MAX);
        long.map(|(file, lines)| Breach::new(file.path, LINES_MAX + 1, format!("{lines} lines; at most {LINES_MAX}"))).collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::{LINES_MAX, RULE};

    #[test]
    fn fires_one_line_above_the_limit() {
        assert_eq!(breaches(&RULE, &[("a.rs", &"//\n".repeat(LINES_MAX + 1))]), ["a.rs:601"]);
    }

    #[test]
    fn silent_at_the_limit() {
        assert!(breaches(&RULE, &[("a.rs", &"//\n".repeat(LINES_MAX))]).is_empty());
    }
}
