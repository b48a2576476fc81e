//! The workspace and its test programs, read from cargo's own messages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::Options;
use super::declaration::{Declaration, declaration};
use super::process::{Exit, ProcessRunner};

/// The package and its feature with which the workspace is tested, if they exist: drops by socket.
const FEATURE: (&str, &str) = ("chokepoint", "bpf");
/// The folder of a package's integration tests, and the root of their program.
const FOLDER: &str = "tests/it";
const MAIN: &str = "tests/it/main.rs";
/// The longest build.
const BUILD_MAX: Duration = Duration::from_secs(3600);

/// What the runner knows about the workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
    /// Whether the feature above exists.
    pub(crate) has_feature: bool,
}

/// A program of tests, or the part of one that runs as a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    /// Its source below the package's directory: "src/lib.rs", "tests/it/live.rs".
    pub(crate) source: String,
    pub(crate) modules: ModuleFilter,
    /// The package's directory.
    pub(crate) directory: PathBuf,
    /// The package's version.
    pub(crate) version: String,
    pub(crate) executable: PathBuf,
    pub(crate) schedule: Schedule,
    /// True for a library: its documentation may hold tests too.
    pub(crate) is_library: bool,
}

/// Beside what a test program may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Schedule {
    /// Beside anything. Only its modules `live` are live.
    Deterministic,
    /// Beside anything. All of its tests are live.
    LiveBesideOthers,
    /// By itself. All of its tests are live.
    LiveAlone,
}

/// Selects tests by the file that declares them. A package's integration tests are one program, because linking one for each file takes longer than most of
/// them run; a live file still runs as a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModuleFilter {
    All,
    /// By the innermost of these modules that contains the test: "fix::impostor" for tests/it/fix/impostor.rs.
    Innermost {
        selected: Vec<String>,
        rejected: Vec<String>,
        /// Whether it selects a test in none of these modules.
        is_default: bool,
    },
}

impl ModuleFilter {
    /// True if it selects the test.
    pub(crate) fn selects(&self, test: &str) -> bool {
        let Self::Innermost { selected, rejected, is_default } = self else { return true };
        let depth = |modules: &[String]| {
            let contains = |module: &&String| test.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with("::"));
            modules.iter().filter(contains).map(String::len).max()
        };
        match (depth(selected), depth(rejected)) {
            (None, None) => *is_default,
            (selected, rejected) => selected > rejected,
        }
    }
}

impl TestProgram {
    /// Its name in what is printed: "chokepoint tests/it/live.rs".
    pub(crate) fn name(&self) -> String {
        let suffix = if self.schedule == Schedule::LiveBesideOthers { ", live beside others" } else { "" };
        format!("{} {}{suffix}", self.package, self.source)
    }

    /// The name of one of its tests in lists and in the history, without a blank: "chokepoint/tests/it/live.rs::live::name".
    pub(crate) fn test_name(&self, test: &str) -> String {
        format!("{}/{}::{test}", self.package, self.source)
    }
}

/// Cargo, without the variables that it set for this process as the package `xtask`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_ours = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"].iter().any(|start| name.starts_with(start))
    };
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| is_ours(name)) {
        command.env_remove(name);
    }
    command.current_dir(root);
    command
}

/// Asks cargo about the workspace at `root`.
pub(crate) fn workspace(root: &Path) -> anyhow::Result<Workspace> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output.context("cannot run cargo")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed");
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?.into();
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let has_feature = packages.any(|package| package["name"] == FEATURE.0 && !package["features"][FEATURE.1].is_null());
    Ok(Workspace { root: root.to_owned(), target, has_feature })
}

/// The arguments that select packages, features and the target directory.
pub(crate) fn selection(workspace: &Workspace, packages: &[String]) -> Vec<String> {
    let target = ["--target-dir".to_owned(), workspace.target.display().to_string()];
    let mut arguments: Vec<String> = target.into_iter().collect();
    arguments.extend(packages.iter().flat_map(|package| ["--package".to_owned(), package.clone()]));
    if packages.is_empty() {
        arguments.push("--workspace".to_owned());
    }
    if workspace.has_feature && (packages.is_empty() || packages.iter().any(|package| package == FEATURE.0)) {
        arguments.extend(["--features".to_owned(), format!("{}/{}", FEATURE.0, FEATURE.1)]);
    }
    arguments
}

/// Builds the test programs and returns them in the order of their names.
///
/// # Errors
/// If something does not build, or if there is no test program.
pub(crate) fn test_programs(workspace: &Workspace, options: &Options, processes: &mut ProcessRunner) -> anyhow::Result<Vec<TestProgram>> {
    let mut command = cargo(&workspace.root);
    // `--tests` leaves out the examples: clippy compiles them, and no test runs them.
    command.args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics", "--tests"]);
    command.args(selection(workspace, &options.packages));
    let messages = workspace.target.join("unstable/build.json");
    let describe = |text: &str| format!("building the tests: {} crates so far", text.lines().filter(|line| is_artifact(line)).count());
    let build = processes.run(&mut command, &messages, false, BUILD_MAX, &describe)?;
    if build.exit != Exit::Code(0) {
        bail!("the tests do not build: {:?}", build.exit);
    }
    artifacts(&build.text)
}

fn is_artifact(line: &str) -> bool {
    line.starts_with("{\"reason\":\"compiler-artifact\"")
}

/// The test programs in cargo's messages.
pub(crate) fn artifacts(messages: &str) -> anyhow::Result<Vec<TestProgram>> {
    let mut programs = Vec::new();
    let mut is_finished = false;
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("cargo printed a message that is no JSON")?;
        is_finished |= message["reason"] == "build-finished" && message["success"] == true;
        if message["reason"] == "compiler-artifact" && message["profile"]["test"] == true {
            programs.extend(artifact(&message)?);
        }
    }
    if !is_finished {
        bail!("cargo did not say that the build was finished");
    }
    if programs.is_empty() {
        bail!("there is no test program");
    }
    programs.sort();
    Ok(programs)
}

fn artifact(message: &Value) -> anyhow::Result<Vec<TestProgram>> {
    let Some(executable) = message["executable"].as_str() else { return Ok(Vec::new()) };
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("a message of cargo is incomplete: {message}"));
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    let directory = manifest.parent().context("a manifest without a directory")?.to_owned();
    let file = PathBuf::from(text(&message["target"]["src_path"])?);
    let has_kind = |kind: &str| message["target"]["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|found| found == kind));
    let (package, version) = identity(&text(&message["package_id"])?, &directory);
    let source = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
    let schedule = match if has_kind("test") { file_declaration(&file)? } else { None } {
        Some(Declaration::LiveAlone) => Schedule::LiveAlone,
        Some(Declaration::LiveBesideOthers) => Schedule::LiveBesideOthers,
        Some(Declaration::Deterministic) | None => Schedule::Deterministic,
    };
    let whole = TestProgram {
        package,
        version,
        executable: executable.into(),
        modules: ModuleFilter::All,
        schedule,
        is_library: has_kind("lib") || has_kind("proc-macro"),
        directory,
        source,
    };
    if has_kind("test") && file.ends_with(MAIN) { parts(&whole, &file) } else { Ok(vec![whole]) }
}

fn file_declaration(file: &Path) -> anyhow::Result<Option<Declaration>> {
    std::fs::read_to_string(file).map(|head| declaration(&head)).with_context(|| format!("cannot read {}", file.display()))
}

/// Splits a package's integration tests: the deterministic files, the live files that may run beside others, and each other live file.
fn parts(whole: &TestProgram, main: &Path) -> anyhow::Result<Vec<TestProgram>> {
    let folder = main.parent().context("a file without a directory")?;
    let mut declared = Vec::new();
    declarations(folder, "", &mut declared)?;
    declared.sort();
    let modules = |is_wanted: &dyn Fn(Declaration) -> bool| -> Vec<String> {
        declared.iter().filter(|(_, declaration)| is_wanted(*declaration)).map(|(module, _)| module.clone()).collect()
    };
    let part = |source: String, selected: Vec<String>, schedule: Schedule| {
        let rejected = declared.iter().map(|(module, _)| module).filter(|module| !selected.contains(module)).cloned().collect();
        let modules = ModuleFilter::Innermost { selected, rejected, is_default: schedule == Schedule::Deterministic };
        TestProgram { source, modules, schedule, ..whole.clone() }
    };
    let deterministic = modules(&|declaration| declaration == Declaration::Deterministic);
    let mut parts = vec![part(FOLDER.to_owned(), deterministic, Schedule::Deterministic)];
    let beside_others = modules(&|declaration| declaration == Declaration::LiveBesideOthers);
    if !beside_others.is_empty() {
        parts.push(part(FOLDER.to_owned(), beside_others, Schedule::LiveBesideOthers));
    }
    for module in modules(&|declaration| declaration == Declaration::LiveAlone) {
        parts.push(part(format!("{FOLDER}/{}.rs", module.replace("::", "/")), vec![module], Schedule::LiveAlone));
    }
    Ok(parts)
}

/// Adds the modules of the files below a folder that have a declaration; `above` is the folder's own module.
fn declarations(folder: &Path, above: &str, found: &mut Vec<(String, Declaration)>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let module = if above.is_empty() { name } else { format!("{above}::{name}") };
        if path.is_dir() {
            declarations(&path, &module, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(file_declaration(&path)?.map(|declaration| (module, declaration)));
        }
    }
    Ok(())
}

/// Name and version in `path+file:///home/me/chokepoint/crates/cli#chokepoint@0.1.0`, or `...crates/cli#0.1.0` if the directory has the package's name.
fn identity(id: &str, directory: &Path) -> (String, String) {
    let fragment = id.rsplit_once('#').map_or(id, |(_, fragment)| fragment);
    let directory_name = || directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fragment
        .split_once('@')
        .map_or_else(|| (directory_name(), fragment.to_owned()), |(name, version)| (name.to_owned(), version.to_owned()))
}
