//! A row of jobs that run one after the other: checks, test programs, the tests in the documentation.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::test::build::{ModuleFilter, Schedule, TestProgram};
use crate::test::checks::Check;
use crate::test::output::{self, Results};
use crate::test::process::{Exit, ProcessOutput, ProcessRunner};
use crate::test::summary::Failure;

/// The longest time in which a program must have listed its tests.
const LIST_MAX: Duration = Duration::from_secs(60);
/// Threads of a program whose tests mostly wait for servers: more than there are cores.
const WAITING_THREADS: usize = 6;

/// Something to run.
#[derive(Debug)]
pub(super) enum Job {
    Check(Check),
    Program(TestProgram),
    /// The command that runs the tests in the documentation.
    Documentation(Command),
}

impl Job {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Check(check) => check.name.to_owned(),
            Self::Program(program) => program.name(),
            Self::Documentation(_) => "documentation".to_owned(),
        }
    }
}

/// A job that ran, successful or not.
#[derive(Debug)]
pub(super) struct FinishedJob {
    pub(super) job: Job,
    pub(super) results: Results,
    pub(super) output: ProcessOutput,
}

/// The results of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneResults {
    pub(super) finished: Vec<FinishedJob>,
    /// The job that could not be run; the jobs behind it were not started.
    pub(super) failure: Option<Failure>,
}

/// How many jobs have ended, in all lanes.
#[derive(Debug)]
pub(super) struct JobCount {
    ended: AtomicUsize,
    total: usize,
}

impl JobCount {
    pub(super) fn new(total: usize) -> Self {
        Self { ended: AtomicUsize::new(0), total }
    }
}

#[derive(Debug)]
pub(super) struct Lane<'a> {
    pub(super) processes: ProcessRunner,
    /// The file for the output of the job that runs.
    pub(super) output: PathBuf,
    pub(super) filter: Option<String>,
    pub(super) program_max: Duration,
    pub(super) count: &'a JobCount,
}

impl Lane<'_> {
    /// Runs jobs until one cannot be run.
    pub(super) fn run(&mut self, jobs: Vec<Job>) -> LaneResults {
        let mut results = LaneResults::default();
        for job in jobs {
            let name = job.name();
            let begin = Instant::now();
            match self.run_job(job) {
                Ok(job) => {
                    let ended = self.count.ended.fetch_add(1, Ordering::Relaxed) + 1;
                    let seconds = begin.elapsed().as_secs_f64();
                    let line = format!("{ended} of {}: {name}: {}, {seconds:.1} s", self.count.total, summary(&job));
                    self.processes.print_progress(&line);
                    results.finished.push(job);
                }
                Err(error) => {
                    results.failure = Some(Failure { name, why: format!("{error:#}") });
                    break;
                }
            }
        }
        results
    }

    fn run_job(&mut self, mut job: Job) -> anyhow::Result<FinishedJob> {
        let name = job.name();
        let (results, output) = match &mut job {
            Job::Check(check) => {
                let output = self.processes.run(&mut check.command, &self.output, true, self.program_max, &|_| name.clone())?;
                (Check::judge(&output), output)
            }
            Job::Documentation(command) => {
                let describe = |text: &str| format!("{name}: {}", output::progress(&[], text));
                let output = self.processes.run(command, &self.output, true, self.program_max, &describe)?;
                (output::judge_documentation(&output), output)
            }
            Job::Program(program) => self.run_program(program)?,
        };
        Ok(FinishedJob { job, results, output })
    }

    fn run_program(&mut self, program: &TestProgram) -> anyhow::Result<(Results, ProcessOutput)> {
        let name = program.name();
        let mut command = test_command(program, TestArguments::Filter(self.filter.as_deref()));
        command.args(["--list", "--format", "terse"]);
        let list = self.processes.run(&mut command, &self.output, false, LIST_MAX, &|_| format!("{name} lists its tests"))?;
        if list.exit != Exit::Code(0) {
            let broken = Some(format!("it does not list its tests: {:?}", list.exit));
            return Ok((Results { broken, ..Results::default() }, list));
        }
        let mut listed = output::listed(&list.text);
        listed.retain(|test| program.modules.selects(test));
        if listed.is_empty() {
            return Ok((Results::default(), list));
        }
        let arguments = match program.modules {
            ModuleFilter::All => TestArguments::Filter(self.filter.as_deref()),
            ModuleFilter::Innermost { .. } => TestArguments::Exactly(&listed),
        };
        let mut command = test_command(program, arguments);
        if program.schedule == Schedule::LiveBesideOthers {
            command.arg(format!("--test-threads={WAITING_THREADS}"));
        }
        let describe = |text: &str| format!("{name}: {}", output::progress(&listed, text));
        let output = self.processes.run(&mut command, &self.output, true, self.program_max, &describe)?;
        Ok((output::judge(&listed, &output), output))
    }
}

fn summary(job: &FinishedJob) -> String {
    let results = &job.results;
    match job.job {
        Job::Check(_) => if results.broken.is_none() { "passed" } else { "failed" }.to_owned(),
        Job::Program(_) | Job::Documentation(_) => {
            format!("{} passed, {} failed, {} skipped", results.passed.len(), results.failed.len(), results.skipped.len())
        }
    }
}

/// Which tests of a program run.
#[derive(Debug, Clone, Copy)]
pub(super) enum TestArguments<'a> {
    /// All whose names contain this.
    Filter(Option<&'a str>),
    Exactly(&'a [String]),
    /// One, on one thread.
    One(&'a str),
}

/// A test program's command line, in the directory and with the variables that cargo gives it.
pub(super) fn test_command(program: &TestProgram, arguments: TestArguments<'_>) -> Command {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.directory);
    command.env("CARGO_MANIFEST_DIR", &program.directory).env("CARGO_MANIFEST_PATH", program.directory.join("Cargo.toml"));
    command.env("CARGO_PKG_NAME", &program.package).env("CARGO_PKG_VERSION", &program.version).arg("--show-output");
    match arguments {
        TestArguments::Filter(filter) => command.args(filter),
        TestArguments::Exactly(tests) => command.arg("--exact").args(tests),
        TestArguments::One(test) => command.args([test, "--exact", "--test-threads=1"]),
    };
    command
}
