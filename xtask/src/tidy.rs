//! The rules that the compiler does not check. Each rule is a file, named after what it forbids, with an example on which it fires and one on which it is
//! silent.

use std::path::Path;
use std::process::ExitCode;

use crate::tree::Tree;
use workspace::Workspace;

mod banned_word;
mod dead_file;
mod full_folder;
mod headless_file;
mod host_write;
mod impure_crate;
mod long_file;
mod long_function;
mod module_tree;
pub(crate) mod names;
mod stray_connect;
mod stray_open;
mod stray_print;
mod unclear_phrase;
mod undeclared_test;
mod unlinked_document;
mod unreadable_file;
mod vague_name;
pub(crate) mod workspace;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Breach {
    file: String,
    line: usize,
    text: String,
}

impl Breach {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, text: text.into() }
    }
}

/// A rule: its name, what it asks for, and its check.
struct Rule {
    name: &'static str,
    asks: &'static str,
    check: fn(&Workspace<'_>) -> Vec<Breach>,
}

/// All rules. A new rule is a file and a line here.
const RULES: &[Rule] = &[
    unreadable_file::RULE,
    headless_file::RULE,
    full_folder::RULE,
    long_file::RULE,
    long_function::RULE,
    vague_name::RULE,
    dead_file::RULE,
    impure_crate::RULE,
    host_write::RULE,
    stray_open::RULE,
    stray_connect::RULE,
    stray_print::RULE,
    banned_word::RULE,
    unclear_phrase::RULE,
    undeclared_test::RULE,
    unlinked_document::RULE,
];

/// Checks the repository at `root` and prints each breach as `file:line: [rule] text`.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let tree = Tree::read(root)?;
    let workspace = Workspace::of(&tree);
    let mut count = 0;
    for rule in RULES {
        let mut breaches = (rule.check)(&workspace);
        breaches.sort();
        count += breaches.len();
        for breach in breaches {
            println!("{}:{}: [{}] {}", breach.file, breach.line, rule.name, breach.text);
        }
    }
    if count == 0 {
        println!("tidy: {} source files, {} rules, nothing to say", workspace.files.len(), RULES.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {count} {}; `cargo xtask rules` says what each asks for", if count == 1 { "breach" } else { "breaches" });
    Ok(ExitCode::FAILURE)
}

/// Prints every rule with what it asks for.
pub(crate) fn list() {
    for rule in RULES {
        println!("{:<18} {}", rule.name, rule.asks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The breaches of one rule in a made-up repository, as "file:line".
    pub(super) fn breaches(rule: &Rule, files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let mut found = (rule.check)(&Workspace::of(&tree));
        found.sort();
        found.into_iter().map(|breach| format!("{}:{}", breach.file, breach.line)).collect()
    }

    #[test]
    fn every_rule_has_its_own_name_and_is_explained() {
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(!rule.asks.is_empty(), "{} says nothing", rule.name);
        }
    }
}
