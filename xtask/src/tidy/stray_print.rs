//! Text that reaches the terminal without the functions that make it harmless.

use super::names;
use super::workspace::FileUse;
use super::{Breach, Rule};

/// Files that write to the terminal. Each function of the first escapes control characters. The view and the progress bar draw text that they have escaped
/// themselves. The signal handler writes a fixed sentence with a number in it.
const PRINTERS: &[&str] = &[
    "crates/cli/src/terminal/output.rs",
    "crates/cli/src/terminal/screen.rs",
    "crates/cli/src/terminal/progress.rs",
    "crates/cli/src/terminal/interrupt.rs",
];
/// Folders of programs for developers. Build scripts, which talk to cargo, are exempt too.
const TOOLS: &[&str] = &["xtask/", "benches/", "scoreboard/", "packaging/", "crates/hostile/"];

const PRINTING: &[&str] = &[
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "std::io::stdout",
    "std::io::stderr",
    "std::io::Stdout",
    "std::io::Stderr",
    "rustix::stdio",
    "libc::STDOUT_FILENO",
    "libc::STDERR_FILENO",
    "indicatif",
];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "stray-print",
    asks: "what reaches the terminal goes through the cli's output.rs, which spells out control characters; the view and the progress bar are named in the rule",
    check: |workspace| {
        let mut breaches = Vec::new();
        for (file, syntax) in workspace.parsed() {
            let is_tool = TOOLS.iter().any(|folder| file.path.starts_with(folder));
            if file.file_use != FileUse::Code || is_tool || PRINTERS.contains(&file.path) {
                continue;
            }
            let prints = |name: &&names::Name| !name.in_test && PRINTING.iter().any(|printing| name.is_within(printing));
            for name in names::names(syntax).iter().filter(prints) {
                breaches.push(Breach::new(file.path, name.line, format!("`{}` goes past output.rs", name.path)));
            }
        }
        breaches
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    const MANIFEST: (&str, &str) = ("crates/cli/Cargo.toml", "[package]\nname = \"chokepoint\"");

    #[test]
    fn fires_on_every_way_to_print() {
        for source in [
            "fn main() { println!(\"{name}\"); }",
            "fn main() { std::io::stderr().lock(); }",
            "use std::io; fn main() { io::stdout(); }",
            "use indicatif::ProgressBar; fn main() {}",
        ] {
            let found = breaches(&RULE, &[MANIFEST, ("crates/cli/src/main.rs", source)]);
            assert!(!found.is_empty() && found.iter().all(|line| line == "crates/cli/src/main.rs:1"), "{source}: {found:?}");
        }
    }

    #[test]
    fn silent_on_the_printers_tools_and_tests() {
        let print = "fn main() { println!(\"{name}\"); }";
        for path in ["crates/cli/src/terminal/output.rs", "xtask/src/main.rs", "crates/cli/tests/a.rs"] {
            assert!(breaches(&RULE, &[MANIFEST, ("crates/cli/src/main.rs", "mod output;"), (path, print)]).is_empty(), "{path}");
        }
        let inside = format!("fn f() {{ let format = format!(\"\"); output::print(&format); }} #[cfg(test)] mod tests {{ {print} }}");
        assert!(breaches(&RULE, &[MANIFEST, ("crates/cli/src/main.rs", &inside)]).is_empty());
    }
}
