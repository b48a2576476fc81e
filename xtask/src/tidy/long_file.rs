//! Source files that are too long.

use super::{Breach, Rule};

/// Lines that a source file may have.
const LINES_MAX: usize = 600;
/// The page that a stranger reads first, and the lines that it may have.
const README: (&str, usize) = ("README.md", 120);

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "long-file",
    asks: "a .rs file has at most 600 lines, README.md 120",
    check: |workspace| {
        let sources = workspace.files.values().map(|file| (file.path, file.text, LINES_MAX));
        let readme = workspace.tree.text(README.0).map(|text| (README.0, text, README.1));
        let counted = sources.chain(readme).map(|(path, text, most)| (path, text.lines().count(), most));
        let long = counted.filter(|(_, lines, most)| lines > most);
        long.map(|(path, lines, most)| Breach::new(path, most + 1, format!("{lines} lines; at most {most}"))).collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::{LINES_MAX, RULE};

    #[test]
    fn fires_one_line_above_the_limit() {
        assert_eq!(breaches(&RULE, &[("a.rs", &"//\n".repeat(LINES_MAX + 1))]), ["a.rs:601"]);
        assert_eq!(breaches(&RULE, &[("README.md", &"x\n".repeat(121))]), ["README.md:121"]);
    }

    #[test]
    fn silent_at_the_limit() {
        assert!(breaches(&RULE, &[("a.rs", &"//\n".repeat(LINES_MAX))]).is_empty());
        assert!(breaches(&RULE, &[("README.md", &"x\n".repeat(120)), ("docs/a.md", &"x\n".repeat(700))]).is_empty());
    }
}
