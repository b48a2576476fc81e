//! Runs the test programs one after the other, and a live test that failed twice more by itself while nothing else runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::build::{self, Binary, Workspace};
use super::declared::is_in_live_module;
use super::output::{self, Results};
use super::process::{Exit, Processes, Ran};
use super::summary::{Failure, Summary, Unstable};
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
        let listed = output::listed(&ran.text);
        if ran.exit != Exit::Code(0) {
            self.summary.fail(Failure { name: binary.name(), why: format!("it does not name its tests: {:?}", ran.exit) });
            return Ok(());
        }
        if listed.is_empty() {
            return Ok(());
        }
        let mut command = self::command(binary, Which::All(filter.as_deref()));
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
        for (test, output) in results.failed {
            print!("---- {} ----\n{output}", binary.test_name(&test));
            if live(&test) && results.broken.is_none() {
                self.again(binary, &test, output)?;
            } else {
                self.summary.fail(Failure { name: binary.test_name(&test), why: output::why(&output) });
            }
        }
        if let Some(why) = results.broken {
            println!("---- {}: {why} ----\n{}", binary.name(), ran.text);
            self.summary.fail(Failure { name: binary.name(), why });
        }
        Ok(())
    }

    /// Runs a live test that failed twice more, alone: it passes where both pass.
    fn again(&mut self, binary: &Binary, test: &str, first: String) -> anyhow::Result<()> {
        let name = binary.test_name(test);
        let mut outputs = vec![first];
        let mut failed = 1;
        while outputs.len() < 3 && failed < 2 {
            self.processes.tell(&format!("{name} failed; run {} of 3, alone", outputs.len() + 1));
            let mut command = command(binary, Which::One(test));
            let doing = |_: &str| format!("{name}: run {} of 3, alone", outputs.len() + 1);
            let ran = self.processes.run(&mut command, &self.place.join("output.txt"), true, self.bound, &doing)?;
            let results = output::judge(&[test.to_owned()], &ran);
            let passed = results.broken.is_none() && results.failed.is_empty() && results.passed.contains(test);
            failed += usize::from(!passed);
            if !passed {
                println!("---- {name}, run {} of 3: {:?} ----\n{}", outputs.len() + 1, ran.exit, ran.text);
            }
            outputs.push(ran.text);
        }
        let directory = self.keep(&name, &outputs)?;
        let why = output::why(&outputs[0]);
        if failed == 1 {
            self.summary.unstable(Unstable { name, why, directory });
        } else {
            let why = format!("{failed} of {}: {why}", outputs.len());
            self.summary.fail(Failure { name, why });
        }
        Ok(())
    }

    /// Keeps the outputs of a test's runs, in place of those that an earlier run of the tests kept of it.
    fn keep(&self, name: &str, outputs: &[String]) -> anyhow::Result<PathBuf> {
        let directory = self.place.join(name.replace(['/', ':'], "_"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        for (number, output) in outputs.iter().enumerate() {
            std::fs::write(directory.join(format!("{}.txt", number + 1)), output)?;
        }
        Ok(directory)
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
        Which::One(test) => command.args([test, "--exact", "--test-threads=1"]),
    };
    command
}
