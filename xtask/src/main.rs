//! `cargo xtask`: the checks that the compiler does not make (`tidy`), the pages that are generated out of the code's own text (`docs`), and the
//! runner of the tests (`test`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

mod docs;
mod test;
mod thresholds;
mod tidy;
mod tree;

const USAGE: &str = "\
usage: cargo xtask tidy     check the rules of the house; CONTRIBUTING.md lists them
       cargo xtask rules    list the rules, one line each
       cargo xtask docs --check | --write
                            compare or write the pages that are generated out of the catalogue: docs/stations/*.md, docs/findings.md
       cargo xtask test [--package NAME]... [--earlier FILE] [FILTER]
                            run the tests, and a live test that failed twice more by itself; FILE is the output of earlier checks, whose
                            `skipped: why` lines are listed at the end too";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tidy::run(&root()?),
        ["rules"] => {
            tidy::list();
            Ok(ExitCode::SUCCESS)
        }
        ["docs", "--check"] => docs::check(&root()?),
        ["docs", "--write"] => docs::write(&root()?),
        ["test", options @ ..] => match test::Options::of(options) {
            Some(options) => test::run(&root()?, &options),
            None => {
                eprintln!("{USAGE}");
                Ok(ExitCode::from(2))
            }
        },
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The workspace's root: the nearest directory above the current one whose `Cargo.toml` has a `[workspace]`.
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
