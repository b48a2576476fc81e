//! The workspace and its test programs, as cargo tells of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::Options;
use super::declared::{Declared, declared};
use super::process::{Exit, Processes};

/// The feature with which the whole workspace is tested, where there is such a package: drops by socket.
const FEATURE: (&str, &str) = ("chokepoint", "bpf");
/// Where the integration tests of a package are, below its directory, and their program's source.
const FOLDER: &str = "tests/it";
const MAIN: &str = "tests/it/main.rs";
/// The longest build.
const BUILD_MAX: Duration = Duration::from_secs(3600);

/// What the runner knows of the workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Where its root is.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// Whether there is the feature.
    pub(crate) has_feature: bool,
}

/// One program of tests, or a part of one that is run by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Binary {
    /// Its package.
    pub(crate) package: String,
    /// Its source below the package's directory: "src/lib.rs", "tests/it/live.rs".
    pub(crate) source: String,
    /// Which of the program's tests it stands for.
    pub(crate) part: Part,
    /// The package's directory.
    pub(crate) directory: PathBuf,
    /// The package's version.
    pub(crate) version: String,
    /// The program.
    pub(crate) program: PathBuf,
    /// What its file says: each of its tests is live.
    pub(crate) is_live: bool,
    /// True for a library, whose documentation may hold tests as well.
    pub(crate) is_library: bool,
}

/// Tests of a program, by the module at its top in which they are. A package's integration tests are one program, for to link one for each file takes
/// longer than most of them run; a live file of it still runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// Those of these modules.
    Of(Vec<String>),
    /// Those of all modules but these.
    Without(Vec<String>),
}

impl Part {
    /// True where a test belongs to it.
    pub(crate) fn has(&self, test: &str) -> bool {
        let module = test.split_once("::").map_or("", |(module, _)| module);
        let is_among = |modules: &[String]| modules.iter().any(|found| found == module);
        match self {
            Self::Whole => true,
            Self::Of(modules) => is_among(modules),
            Self::Without(modules) => !is_among(modules),
        }
    }
}

impl Binary {
    /// What it is called in what is printed: "chokepoint tests/it/live.rs".
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.source)
    }

    /// A name for its test in lists and in the history, without a blank: "chokepoint/tests/it/live.rs::live::name".
    pub(crate) fn test_name(&self, test: &str) -> String {
        format!("{}/{}::{test}", self.package, self.source)
    }
}

/// Cargo, without what it told this process of the package `xtask`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let ours = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"].iter().any(|start| name.starts_with(start))
    };
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| ours(name)) {
        command.env_remove(name);
    }
    command.current_dir(root);
    command
}

/// Asks cargo for the workspace at `root`.
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

/// What selects packages, features and where to build, on cargo's command line.
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

/// Builds the test programs and names them, in the order in which they run.
///
/// # Errors
/// Where something does not build, or there is nothing to run.
pub(crate) fn binaries(workspace: &Workspace, options: &Options, processes: &mut Processes) -> anyhow::Result<Vec<Binary>> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"]).args(selection(workspace, &options.packages));
    let messages = workspace.target.join("unstable/build.json");
    let ran = processes.run(&mut command, &messages, false, BUILD_MAX, &|_| "the tests are being built".to_owned())?;
    if ran.exit != Exit::Code(0) {
        bail!("the tests do not build: {:?}", ran.exit);
    }
    artifacts(&ran.text)
}

/// The test programs in cargo's messages.
pub(crate) fn artifacts(messages: &str) -> anyhow::Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    let mut finished = false;
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("cargo printed a message that is no JSON")?;
        finished |= message["reason"] == "build-finished" && message["success"] == true;
        if message["reason"] == "compiler-artifact" && message["profile"]["test"] == true {
            binaries.extend(artifact(&message)?);
        }
    }
    if !finished {
        bail!("cargo did not say that the build was finished");
    }
    if binaries.is_empty() {
        bail!("there is no test program");
    }
    binaries.sort();
    Ok(binaries)
}

fn artifact(message: &Value) -> anyhow::Result<Vec<Binary>> {
    let Some(program) = message["executable"].as_str() else { return Ok(Vec::new()) };
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("a message of cargo lacks something: {message}"));
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    let directory = manifest.parent().context("a manifest without a directory")?.to_owned();
    let file = PathBuf::from(text(&message["target"]["src_path"])?);
    let is = |kind: &str| message["target"]["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|found| found == kind));
    let (package, version) = identity(&text(&message["package_id"])?, &directory);
    let source = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
    let whole = Binary {
        package,
        version,
        program: program.into(),
        part: Part::Whole,
        is_live: is("test") && declaration(&file)? == Some(Declared::Live),
        is_library: is("lib") || is("proc-macro"),
        directory,
        source,
    };
    if is("test") && file.ends_with(MAIN) { parts(&whole, &file) } else { Ok(vec![whole]) }
}

/// What a file of tests says of itself.
fn declaration(file: &Path) -> anyhow::Result<Option<Declared>> {
    std::fs::read_to_string(file).map(|head| declared(&head)).with_context(|| format!("cannot read {}", file.display()))
}

/// The parts of a package's one program of integration tests: those that are deterministic, those that are live and measure nothing, and each other
/// live file.
fn parts(whole: &Binary, main: &Path) -> anyhow::Result<Vec<Binary>> {
    let folder = main.parent().context("a file without a directory")?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let file = entry?.path();
        let module = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match if file.extension().is_some_and(|extension| extension == "rs") { declaration(&file)? } else { None } {
            Some(Declared::Live) => alone.push(module),
            Some(Declared::LiveBeside) => beside.push(module),
            Some(Declared::Deterministic) | None => {}
        }
    }
    let live = [alone.clone(), beside.clone()].concat();
    let mut parts = vec![Binary { source: FOLDER.to_owned(), part: Part::Without(live), ..whole.clone() }];
    if !beside.is_empty() {
        parts.push(Binary { source: format!("{FOLDER}, live"), part: Part::Of(beside), is_live: true, ..whole.clone() });
    }
    let file =
        |module: String| Binary { source: format!("{FOLDER}/{module}.rs"), part: Part::Of(vec![module]), is_live: true, ..whole.clone() };
    parts.extend(alone.into_iter().map(file));
    Ok(parts)
}

/// Name and version in `path+file:///work/crates/cli#chokepoint@0.1.0`, or `...crates/cli#0.1.0` where the directory has the package's name.
fn identity(id: &str, directory: &Path) -> (String, String) {
    let fragment = id.rsplit_once('#').map_or(id, |(_, fragment)| fragment);
    let named = || directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fragment.split_once('@').map_or_else(|| (named(), fragment.to_owned()), |(name, version)| (name.to_owned(), version.to_owned()))
}
