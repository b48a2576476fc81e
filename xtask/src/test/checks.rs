//! The checks that are no tests: format, lints, dependencies, the rules of the house, generated pages, shell scripts, spelling.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context;

use super::build::{self, cargo};
use super::output::Results;
use super::process::{Exit, ProcessOutput, ProcessRunner};

/// Compilers leave the processor to the live tests that run beside them (nice(1)).
const NICENESS: &str = "10";
/// The longest check: the first one compiles the dependencies.
const CHECK_MAX: Duration = Duration::from_secs(3600);
/// Checks the shell scripts if shellcheck is installed.
const SHELLCHECK: &str = "if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh packaging/*.sh packaging/debian/p* .ci/run; else echo 'skipped: shellcheck is not installed'; fi";

/// Checks the spelling of code, documents and messages if codespell is installed; `.codespellrc` says what it reads.
const SPELLING: &str = "if command -v codespell >/dev/null; then codespell; else echo 'skipped: codespell is not installed'; fi";

/// A program that must end with status 0.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
}

impl Check {
    /// The results of a check that ran.
    pub(crate) fn judge(output: &ProcessOutput) -> Results {
        let broken = (output.exit != Exit::Code(0)).then(|| format!("{:?}", output.exit));
        Results { broken, ..Results::default() }
    }
}

/// The checks of `make check`.
pub(crate) fn quick(root: &Path) -> anyhow::Result<Vec<Check>> {
    let xtask = std::env::current_exe().context("this program has no name")?;
    Ok(vec![
        Check { name: "format", command: in_root(root, cargo(root), &["fmt", "--all", "--check"]) },
        Check { name: "tidy", command: in_root(root, Command::new(&xtask), &["tidy"]) },
        Check { name: "generated pages", command: in_root(root, Command::new(&xtask), &["docs", "--check"]) },
        Check { name: "shell scripts", command: in_root(root, Command::new("sh"), &["-c", SHELLCHECK]) },
        Check { name: "spelling", command: in_root(root, Command::new("sh"), &["-c", SPELLING]) },
        Check { name: "clippy", command: clippy(root, &["--workspace", "--features", "chokepoint/bpf"]) },
    ])
}

/// The checks of `make test`.
pub(crate) fn all(root: &Path) -> anyhow::Result<Vec<Check>> {
    let mut checks = quick(root)?;
    // Without BPF and so without clang, as a plain `cargo build` has it.
    let without_bpf = clippy(root, &["--package", "chokepoint", "--package", "chokepoint-profile"]);
    checks.push(Check { name: "clippy without BPF", command: without_bpf });
    checks.push(Check { name: "dependencies", command: in_root(root, nice("scripts/deny.sh"), &[]) });
    Ok(checks)
}

/// Runs the quick checks one after the other.
pub(crate) fn run_quick(root: &Path) -> anyhow::Result<ExitCode> {
    let directory = build::workspace(root)?.target.join("unstable");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut processes = ProcessRunner::new()?;
    let mut is_success = true;
    for Check { name, mut command } in quick(root)? {
        let output = processes.run(&mut command, &directory.join("checks.txt"), true, CHECK_MAX, &|_| name.to_owned())?;
        let broken = Check::judge(&output).broken;
        if let Some(why) = &broken {
            println!("---- {name}: {why} ----\n{}", output.text);
        }
        processes.print_progress(&format!("{name}: {}", if broken.is_none() { "passed" } else { "failed" }));
        is_success &= broken.is_none();
    }
    Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn clippy(root: &Path, selection: &[&str]) -> Command {
    let cargo = cargo(root);
    let mut command = nice(cargo.get_program());
    for (name, _) in cargo.get_envs() {
        command.env_remove(name);
    }
    in_root(root, command, &[&["clippy", "--all-targets", "--quiet"], selection, &["--", "-D", "warnings"]].concat())
}

fn nice(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", NICENESS]).arg(program);
    command
}

fn in_root(root: &Path, mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments).current_dir(root);
    command
}
