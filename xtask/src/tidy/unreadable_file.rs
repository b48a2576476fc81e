//! Files that do not parse.

use super::{Breach, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "unreadable-file",
    asks: "every .rs file is Rust and every Cargo.toml is TOML",
    check: |workspace| {
        let sources = workspace.files.values().filter_map(|file| {
            let (line, text) = file.syntax.as_ref().err()?;
            Some(Breach::new(file.path, *line, format!("no Rust: {text}")))
        });
        let manifests = workspace.bad_manifests.iter().map(|(path, text)| Breach::new(path, 1, format!("no TOML: {text}")));
        sources.chain(manifests).collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    #[test]
    fn fires_on_syntax_errors() {
        assert_eq!(breaches(&RULE, &[("a.rs", "fn a() {\n  )\n}")]), ["a.rs:2"]);
        assert_eq!(breaches(&RULE, &[("crates/x/Cargo.toml", "[package")]), ["crates/x/Cargo.toml:1"]);
    }

    #[test]
    fn silent_on_files_that_parse() {
        assert!(breaches(&RULE, &[("a.rs", "fn a() {}"), ("Cargo.toml", "[workspace]")]).is_empty());
    }
}
