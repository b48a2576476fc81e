//! `cargo xtask`: the rules that the compiler does not check (`tidy`), the pages generated from the code's own text (`docs`), and the runner of the checks
//! and tests (`check`, `test`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;

mod docs;
mod test;
mod thresholds;
mod tidy;
mod tree;
mod unsafe_code;

/// The project's own checks and tests.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Check the rules of the house, which CONTRIBUTING.md lists
    Tidy,
    /// List the rules, one line each
    Rules,
    /// Compare or write the generated pages: docs/stations/*.md, docs/findings.md, docs/thresholds.md, docs/decisions/unsafe.md, and the table of docs/security.md
    Docs(DocsMode),
    /// Run the quick checks: format, tidy, generated pages, clippy
    Check,
    /// Run the tests; a live test that fails is repeated twice by itself
    Test(test::Options),
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct DocsMode {
    /// Fail if a page differs from what would be generated
    #[arg(long)]
    check: bool,
    /// Write the pages
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match run(&Task::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let root = root()?;
    match task {
        Task::Tidy => tidy::run(&root),
        Task::Rules => {
            tidy::list();
            Ok(ExitCode::SUCCESS)
        }
        Task::Docs(mode) if mode.write => docs::write(&root),
        Task::Docs(_) => docs::check(&root),
        Task::Check => test::checks::run_quick(&root),
        Task::Test(options) => test::run(&root, options),
    }
}

/// The workspace's root: the nearest directory at or above the current one whose `Cargo.toml` has a `[workspace]`.
fn root() -> anyhow::Result<PathBuf> {
    let start = std::env::current_dir().context("where are we?")?;
    for directory in start.ancestors() {
        if is_workspace(directory) {
            return Ok(directory.to_owned());
        }
    }
    bail!("no workspace at or above {}", start.display())
}

fn is_workspace(directory: &Path) -> bool {
    std::fs::read_to_string(directory.join("Cargo.toml")).is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}
