//! `cargo xtask test`: builds the test programs and runs one after the other. A deterministic test that fails is never repeated; a live one is, twice and
//! alone on the machine, and is listed as unstable where it passes both times. What a live program left open when it hung or broke off goes the same way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

mod build;
pub(crate) mod declared;
mod history;
mod output;
mod process;
mod suite;
mod summary;

use build::Workspace;
use history::History;
use suite::Suite;

/// What of the tests is run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Packages by name; all of the workspace where there is none.
    packages: Vec<String>,
    /// A part of the names of the tests.
    filter: Option<String>,
    /// What earlier checks printed.
    earlier: Option<PathBuf>,
}

impl Options {
    /// Reads a command line; nothing where it makes no sense.
    pub(crate) fn of(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--package" | "-p" => options.packages.push((*rest.next()?).to_owned()),
                "--earlier" => options.earlier = Some(PathBuf::from(rest.next()?)),
                flag if flag.starts_with('-') => return None,
                filter if options.filter.is_none() => options.filter = Some(filter.to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Builds and runs the tests of the workspace at `root`, and prints what came of them.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    run_in(&build::workspace(root)?, options)
}

fn run_in(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let place = workspace.target.join("unstable");
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let history = place.join("history");
    let mut suite = Suite::new(&workspace.target, options.filter.clone())?;

    let binaries = build::binaries(workspace, options, suite.processes())?;
    println!("{} test programs are built", binaries.len());
    suite.run(&binaries);
    if options.filter.is_none() {
        suite.run_documentation(workspace, options, &binaries);
    }

    let mut summary = suite.into_summary();
    summary.earlier(options.earlier.as_deref())?;
    let mut kept = History::read(&history)?;
    summary.judge_history(&mut kept, &history);
    kept.write(&history)?;
    print!("{}", summary.text());
    Ok(if summary.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How often each reason was given.
type Reasons = BTreeMap<String, usize>;

/// The reason of a line `skipped: why`.
fn skipped(line: &str) -> Option<&str> {
    line.strip_prefix("skipped: ").map(str::trim).filter(|why| !why.is_empty())
}

#[cfg(test)]
mod tests;
