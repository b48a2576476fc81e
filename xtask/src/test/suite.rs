//! Runs the checks and the test programs: first all that may share the machine, side by side; then each other program by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

mod lane;
mod repeat;

use lane::{FinishedJob, Job, JobCount, Lane, LaneResults, TestArguments, test_command};
use repeat::{FirstRun, Suspicion};

use super::Reasons;
use super::build::{Schedule, TestProgram};
use super::checks::Check;
use super::declaration::is_in_live_module;
use super::output::{self, Results};
use super::process::{ProcessOutput, ProcessRunner};
use super::summary::{Failure, Summary};

/// The longest run of one program.
const PROGRAM_MAX: Duration = Duration::from_secs(20 * 60);

/// Everything that a run of the suite executes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) checks: Vec<Check>,
    pub(crate) programs: Vec<TestProgram>,
    /// The command that runs the tests in the documentation of the libraries.
    pub(crate) documentation: Option<Command>,
}

/// Runs a plan and collects its results.
#[derive(Debug)]
pub(crate) struct Suite {
    filter: Option<String>,
    program_max: Duration,
    processes: ProcessRunner,
    /// Below cargo's target directory: the output of the program that runs, and the outputs of unstable tests.
    directory: PathBuf,
    summary: Summary,
}

impl Suite {
    pub(crate) fn new(target: &Path, filter: Option<String>) -> anyhow::Result<Self> {
        let directory = target.join("unstable");
        Ok(Self { filter, program_max: PROGRAM_MAX, processes: ProcessRunner::new()?, directory, summary: Summary::default() })
    }

    #[cfg(test)]
    pub(crate) fn with_program_max(self, program_max: Duration) -> Self {
        Self { program_max, ..self }
    }

    pub(crate) fn processes(&mut self) -> &mut ProcessRunner {
        &mut self.processes
    }

    pub(crate) fn into_summary(self) -> Summary {
        self.summary
    }

    /// Runs a plan. A job that cannot be run counts as failed and ends the run.
    pub(crate) fn run(&mut self, plan: Plan) {
        let count = JobCount::new(plan.checks.len() + plan.programs.len() + usize::from(plan.documentation.is_some()));
        let (mut deterministic, mut beside_others, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for program in plan.programs {
            let jobs = match program.schedule {
                Schedule::Deterministic => &mut deterministic,
                Schedule::LiveBesideOthers => &mut beside_others,
                Schedule::LiveAlone => &mut alone,
            };
            jobs.push(Job::Program(program));
        }
        // The documentation's tests are built by cargo, as clippy's check is: they would wait for each other in two lanes.
        let checks = plan.checks.into_iter().map(Job::Check).chain(plan.documentation.map(Job::Documentation));
        let lanes = [("checks", checks.collect()), ("deterministic", deterministic), ("live", beside_others)];
        for results in self.run_lanes(lanes, &count) {
            self.add_lane(results);
        }
        for job in alone {
            if self.summary.is_interrupted() {
                return;
            }
            let results = self.lane("alone", &count).run(vec![job]);
            self.add_lane(results);
        }
    }

    /// Runs the jobs of each lane one after the other, the lanes side by side.
    fn run_lanes(&self, lanes: [(&str, Vec<Job>); 3], count: &JobCount) -> Vec<LaneResults> {
        std::thread::scope(|scope| {
            let threads = lanes.map(|(name, jobs)| {
                let mut lane = self.lane(name, count);
                scope.spawn(move || lane.run(jobs))
            });
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).into()
        })
    }

    fn lane<'a>(&self, name: &str, count: &'a JobCount) -> Lane<'a> {
        Lane {
            processes: self.processes.clone(),
            output: self.directory.join(format!("{name}.txt")),
            filter: self.filter.clone(),
            program_max: self.program_max,
            count,
        }
    }

    fn add_lane(&mut self, results: LaneResults) {
        let mut failures: Vec<Failure> = results.failure.into_iter().collect();
        for finished in results.finished {
            let name = finished.job.name();
            if let Err(error) = self.add(finished) {
                failures.push(Failure { name, why: format!("{error:#}") });
            }
        }
        for failure in failures {
            self.summary.fail(failure);
            self.summary.interrupt();
        }
    }

    fn add(&mut self, finished: FinishedJob) -> anyhow::Result<()> {
        let FinishedJob { job, results, output } = finished;
        match job {
            Job::Program(program) => return self.add_program(&program, results, &output),
            Job::Check(_) => self.summary.count(0, 0, output::reasons(&output.text)),
            Job::Documentation(_) => self.summary.count(results.passed.len(), results.skipped.len(), Reasons::new()),
        }
        for (name, output) in results.failed {
            println!("---- {name} ----\n{output}");
            self.summary.fail(Failure { why: output::why(&output), name });
        }
        if let Some(why) = results.broken {
            println!("---- {}: {why} ----\n{}", job.name(), output.text);
            self.summary.fail(Failure { name: job.name(), why });
        }
        Ok(())
    }

    /// Counts the results of a program's first run, and repeats its live tests that failed.
    fn add_program(&mut self, program: &TestProgram, results: Results, output: &ProcessOutput) -> anyhow::Result<()> {
        self.summary.count(results.passed.len(), results.skipped.len(), output::reasons(&output.text));
        let is_live = |test: &str| program.schedule != Schedule::Deterministic || is_in_live_module(test);
        for test in results.passed.iter().filter(|test| is_live(test)) {
            self.summary.stable(program.test_name(test));
        }
        let can_repeat = results.broken.is_none() || results.unfinished.is_some();
        for (test, printed) in results.failed {
            print!("---- {} ----\n{printed}", program.test_name(&test));
            let (why, printed) = if results.unfinished.is_some() {
                ("it failed, and then its program ended".to_owned(), &output.text)
            } else {
                (output::why(&printed), &printed)
            };
            if is_live(&test) && can_repeat {
                self.repeat(program, &FirstRun { test: &test, why, output: printed, suspicion: Suspicion::Certain })?;
            } else {
                self.summary.fail(Failure { name: program.test_name(&test), why });
            }
        }
        if let Some(why) = results.broken {
            println!("---- {}: {why} ----\n{}", program.name(), output.text);
            // A deterministic test that did not end is not repeated, and without it the program has failed.
            let unfinished = results.unfinished.filter(|unfinished| unfinished.tests.iter().all(|test| is_live(test)));
            let is_explained = match unfinished {
                Some(unfinished) => self.repeat_unfinished(program, &unfinished, &why, &output.text)?,
                None => false,
            };
            if !is_explained {
                self.summary.fail(Failure { name: program.name(), why });
            }
        }
        Ok(())
    }
}
