//! `cargo xtask test`: builds the test programs and runs them. A deterministic test is never repeated. A live test that fails is repeated twice, alone on the
//! machine, and is listed as unstable if it then passes both times. So are the live tests that a program left unfinished when it hung or broke off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

mod build;
pub(crate) mod checks;
pub(crate) mod declaration;
mod history;
mod output;
mod process;
mod suite;
mod summary;

use build::{TestProgram, Workspace};
use history::History;
use suite::{Plan, Suite};

/// The options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Options {
    /// Run the tests of this package; may be repeated [default: all packages]
    #[arg(short, long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Run the checks too: format, clippy, dependencies, tidy, generated pages, shell scripts
    #[arg(long)]
    checks: bool,
    /// When the whole run began, in seconds since 1970: the results end with how long it took
    #[arg(long, value_name = "SECONDS")]
    began: Option<u64>,
    /// Run the tests whose names contain this
    filter: Option<String>,
}

/// Builds and runs the tests of the workspace at `root`, and prints the results.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    run_in(&build::workspace(root)?, options)
}

fn run_in(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let directory = workspace.target.join("unstable");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut suite = Suite::new(&workspace.target, options.filter.clone())?;

    let programs = build::test_programs(workspace, options, suite.processes())?;
    suite.processes().print_progress(&format!("{} test programs are built", programs.len()));
    let checks = if options.checks { checks::all(&workspace.root)? } else { Vec::new() };
    let documentation = documentation(workspace, options, &programs);
    suite.run(Plan { checks, programs, documentation });

    let mut summary = suite.into_summary();
    let path: PathBuf = directory.join("history");
    let mut history = History::read(&path)?;
    summary.judge_history(&mut history, &path);
    history.write(&path)?;
    if let Some(began) = options.began {
        let took_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().saturating_sub(began);
        println!("the whole took {} min {:02} s", took_s / 60, took_s % 60);
    }
    print!("{}", summary.text());
    Ok(if summary.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The command that runs the tests in the documentation of the selected libraries, if there are any and no filter selects other tests.
fn documentation(workspace: &Workspace, options: &Options, programs: &[TestProgram]) -> Option<Command> {
    let libraries: Vec<String> = programs.iter().filter(|program| program.is_library).map(|program| program.package.clone()).collect();
    if libraries.is_empty() || options.filter.is_some() {
        return None;
    }
    let packages = if options.packages.is_empty() { Vec::new() } else { libraries };
    let mut command = build::cargo(&workspace.root);
    command.args(["test", "--doc"]).args(build::selection(workspace, &packages)).args(["--", "--show-output"]);
    Some(command)
}

/// How often each reason to skip a test or a check was given.
type Reasons = BTreeMap<String, usize>;

/// The reason in a line `skipped: why`.
fn skipped(line: &str) -> Option<&str> {
    line.strip_prefix("skipped: ").map(str::trim).filter(|why| !why.is_empty())
}

#[cfg(test)]
mod tests;
