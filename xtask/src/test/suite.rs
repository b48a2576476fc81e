//! Runs the test programs one after the other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

mod again;

use again::{Blame, First};

use super::build::{self, Binary, Part, Workspace};
use super::declared::is_in_live_module;
use super::output::{self, Results};
use super::process::{Exit, Processes, Ran};
use super::summary::{Failure, Summary};
use super::{Options, Reasons};

/// The longest run of one program.
const BINARY_MAX: Duration = Duration::from_secs(20 * 60);
/// The longest that a program may take to name its tests.
const LIST_MAX: Duration = Duration::from_secs(60);

/// Which tests of a program are run.
#[derive(Debug, Clone, Copy)]
enum Which<'a> {
    /// All whose names contain this.
    All(Option<&'a str>),
    /// These.
    These(&'a [String]),
    /// One, by itself.
    One(&'a str),
}

/// What has run so far.
#[derive(Debug)]
pub(crate) struct Suite {
    filter: Option<String>,
    bound: Duration,
    processes: Processes,
    /// Below cargo's target directory: what the tests print, and what the unstable ones printed.
    place: PathBuf,
    summary: Summary,
}

impl Suite {
    pub(crate) fn new(target: &Path, filter: Option<String>) -> anyhow::Result<Self> {
        Ok(Self { filter, bound: BINARY_MAX, processes: Processes::new()?, place: target.join("unstable"), summary: Summary::default() })
    }

    /// The same with another bound of a program's time.
    #[cfg(test)]
    pub(crate) fn with_bound(self, bound: Duration) -> Self {
        Self { bound, ..self }
    }

    /// What runs its programs.
    pub(crate) fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    /// What came of it.
    pub(crate) fn into_summary(self) -> Summary {
        self.summary
    }

    /// Runs the programs; one that cannot be run is a failure.
    pub(crate) fn run(&mut self, binaries: &[Binary]) {
        for (number, binary) in binaries.iter().enumerate() {
            let place = format!("{} of {} programs: {}", number + 1, binaries.len(), binary.name());
            if self.summary.is_interrupted() {
                return;
            }
            if let Err(error) = self.run_binary(binary, &place) {
                self.summary.fail(Failure { name: binary.name(), why: format!("{error:#}") });
                self.summary.interrupt();
            }
        }
    }

    fn run_binary(&mut self, binary: &Binary, place: &str) -> anyhow::Result<()> {
        let filter = self.filter.clone();
        let mut command = command(binary, Which::All(filter.as_deref()));
        command.args(["--list", "--format", "terse"]);
        let output = self.place.join("output.txt");
        let ran = self.processes.run(&mut command, &output, false, LIST_MAX, &|_| format!("{place} names its tests"))?;
        let mut listed = output::listed(&ran.text);
        listed.retain(|test| binary.part.has(test));
        if ran.exit != Exit::Code(0) {
            self.summary.fail(Failure { name: binary.name(), why: format!("it does not name its tests: {:?}", ran.exit) });
            return Ok(());
        }
        if listed.is_empty() {
            return Ok(());
        }
        let which = if binary.part == Part::Whole { Which::All(filter.as_deref()) } else { Which::These(&listed) };
        let mut command = self::command(binary, which);
        let doing = |text: &str| format!("{place}: {}", output::progress(&listed, text));
        let ran = self.processes.run(&mut command, &output, true, self.bound, &doing)?;
        let results = output::judge(&listed, &ran);
        self.add(binary, results, &ran, place)
    }

    /// Counts the results of a program's first run, after looking again at its live tests that failed.
    fn add(&mut self, binary: &Binary, results: Results, ran: &Ran, place: &str) -> anyhow::Result<()> {
        let counts = format!("{} passed, {} failed, {} skipped", results.passed.len(), results.failed.len(), results.skipped.len());
        self.processes.tell(&format!("{place}: {counts}"));
        self.summary.count(results.passed.len(), results.skipped.len(), output::reasons(&ran.text));
        let live = |test: &str| binary.is_live || is_in_live_module(test);
        for test in results.passed.iter().filter(|test| live(test)) {
            self.summary.stable(binary.test_name(test));
        }
        let can_repeat = results.broken.is_none() || results.cut.is_some();
        for (test, output) in results.failed {
            print!("---- {} ----\n{output}", binary.test_name(&test));
            let why = if results.cut.is_some() { "it failed, and then its program ended".to_owned() } else { output::why(&output) };
            if live(&test) && can_repeat {
                let output = if results.cut.is_some() { &ran.text } else { &output };
                self.again(binary, &First { test: &test, why, output, blame: Blame::Certain })?;
            } else {
                self.summary.fail(Failure { name: binary.test_name(&test), why });
            }
        }
        if let Some(why) = results.broken {
            println!("---- {}: {why} ----\n{}", binary.name(), ran.text);
            // A deterministic test that did not end is not looked at again, and without it the program has failed.
            let cut = results.cut.filter(|cut| cut.open.iter().all(|test| live(test)));
            let is_told = cut.map_or(Ok(false), |cut| self.again_each(binary, &cut, &why, &ran.text))?;
            if !is_told {
                self.summary.fail(Failure { name: binary.name(), why });
            }
        }
        Ok(())
    }

    /// Runs the tests in the documentation of the libraries among the packages.
    pub(crate) fn run_documentation(&mut self, workspace: &Workspace, options: &Options, binaries: &[Binary]) {
        let libraries: Vec<String> = binaries.iter().filter(|binary| binary.is_library).map(|binary| binary.package.clone()).collect();
        if libraries.is_empty() || self.summary.is_interrupted() {
            return;
        }
        let packages = if options.packages.is_empty() { Vec::new() } else { libraries };
        let mut command = build::cargo(&workspace.root);
        command.args(["test", "--doc"]).args(build::selection(workspace, &packages)).args(["--", "--show-output"]);
        let place = "documentation";
        let doing = |text: &str| format!("{place}: {}", output::progress(&[], text));
        match self.processes.run(&mut command, &self.place.join("output.txt"), true, self.bound, &doing) {
            Ok(ran) => {
                let results = output::judge_documentation(&ran);
                let counts = format!("{} passed, {} failed, {} skipped", results.passed.len(), results.failed.len(), results.skipped.len());
                self.processes.tell(&format!("{place}: {counts}"));
                self.summary.count(results.passed.len(), results.skipped.len(), Reasons::new());
                for (name, output) in results.failed {
                    println!("---- {name} ----\n{output}");
                    self.summary.fail(Failure { why: output::why(&output), name });
                }
                if let Some(why) = results.broken {
                    println!("---- {place}: {why} ----\n{}", ran.text);
                    self.summary.fail(Failure { name: place.to_owned(), why });
                }
            }
            Err(error) => {
                self.summary.fail(Failure { name: place.to_owned(), why: format!("{error:#}") });
                self.summary.interrupt();
            }
        }
    }
}

/// A test program's command line, in the directory and with the variables that cargo gives it.
fn command(binary: &Binary, which: Which<'_>) -> Command {
    let mut command = Command::new(&binary.program);
    command.current_dir(&binary.directory);
    command.env("CARGO_MANIFEST_DIR", &binary.directory).env("CARGO_MANIFEST_PATH", binary.directory.join("Cargo.toml"));
    command.env("CARGO_PKG_NAME", &binary.package).env("CARGO_PKG_VERSION", &binary.version).arg("--show-output");
    match which {
        Which::All(filter) => command.args(filter),
        Which::These(tests) => command.arg("--exact").args(tests),
        Which::One(test) => command.args([test, "--exact", "--test-threads=1"]),
    };
    command
}
