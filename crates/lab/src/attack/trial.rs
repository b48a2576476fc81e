//! Carrying out an attack: its scene is built, its steps run, what must hold is checked, and everything is taken down.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::document::Attack;
use super::hold::Before;
use super::step::{Actor, Ground, RunningStep, StepResult};
use crate::error::LabError;
use crate::machine::netns;
use crate::preflight;
use crate::scenario::names;
use crate::up::builder::Options;
use crate::{Lab, Scenario};

/// Exit status of a step of the attacker or of root that cannot be tried on this host, as automake has it. Its last line says why.
const UNTRIED: i32 = 77;

/// How an attack is carried out.
pub struct TrialOptions<'o> {
    /// The `chokepoint` that is attacked.
    pub chokepoint: PathBuf,
    /// The directory for state and run files; [`crate::run_root`] gives the usual one.
    pub run_root: PathBuf,
    /// No further step begins after this becomes true (Ctrl-C).
    pub cancelled: &'o AtomicBool,
}

/// What came of an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that must hold held.
    Held,
    /// A sentence for everything that did not hold.
    Broken(Vec<String>),
    /// It could not be tried here, and why.
    Skipped(String),
}

/// A carried-out attack.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took with its scene.
    pub seconds: f64,
    /// Its steps as far as they were run.
    pub steps: Vec<StepResult>,
}

impl Attack {
    /// Carries the attack out.
    ///
    /// # Errors
    /// [`LabError`] where its scene cannot be built or taken down.
    pub fn carry_out(&self, options: &TrialOptions<'_>) -> Result<Trial, LabError> {
        let begin = Instant::now();
        let directories = preflight::directories();
        let missing = |need: &&String| {
            if need.starts_with('/') { !Path::new(need).exists() } else { preflight::find_program(need, &directories).is_none() }
        };
        if let Some(missing) = self.needs.iter().find(missing) {
            return Ok(self.skipped(format!("{missing} is not installed"), begin));
        }
        let scene = self.scene(&options.chokepoint.display().to_string()).map_err(|error| LabError::Scenario(error.to_string()))?;
        let mut quiet = |_: &str| {};
        let build = Options {
            run_root: options.run_root.clone(),
            outlive: false,
            within: None,
            cancelled: Some(options.cancelled),
            on_step: &mut quiet,
        };
        let lab = match Lab::up(&scene, build) {
            Ok(lab) => lab,
            Err(LabError::Preflight { missing }) => {
                let why = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Ok(self.skipped(why, begin));
            }
            Err(error) => return Err(error),
        };
        let carried_out = Before::of(self, &lab.run_path()).map(|before| self.on(&lab, &scene, &before, options));
        let report = lab.down()?;
        let (failures, steps) = match carried_out {
            Ok(carried_out) => carried_out,
            Err(why) => return Ok(self.skipped(why, begin)),
        };
        let untried = self.untried(&steps);
        if options.cancelled.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let mut failures = failures;
        if !report.is_clean() {
            failures.push(report.to_string());
        }
        let outcome = match untried {
            Some(why) => Outcome::Skipped(why),
            None if failures.is_empty() => Outcome::Held,
            None => Outcome::Broken(failures),
        };
        Ok(Trial { outcome, seconds: begin.elapsed().as_secs_f64(), steps })
    }

    fn skipped(&self, why: String, begin: Instant) -> Trial {
        Trial { outcome: Outcome::Skipped(why), seconds: begin.elapsed().as_secs_f64(), steps: Vec::new() }
    }

    /// Why the attacker could not try it here: what a step that ended with [`UNTRIED`] said last.
    fn untried(&self, steps: &[StepResult]) -> Option<String> {
        let is_untried = |step: &&StepResult| step.status == Some(UNTRIED) && step.actor != Actor::Chokepoint;
        let last = |step: &StepResult| step.output.trim_end().lines().last().unwrap_or("it says nothing").to_owned();
        steps.iter().find(is_untried).map(last)
    }

    /// Runs the steps on a lab that is up, and checks them.
    fn on(&self, lab: &Lab, scene: &Scenario, before: &Before, options: &TrialOptions<'_>) -> (Vec<String>, Vec<StepResult>) {
        let run = lab.run_path();
        let netns = netns::path(&names::netns_name(&scene.name, &scene.client.host));
        let pids = lab.servers().into_iter().map(|server| (server.name, server.pid)).collect();
        let ground = Ground { chokepoint: &options.chokepoint, run: &run, netns: &netns, pids };
        let (mut failures, mut results, mut background) = (Vec::new(), Vec::new(), Vec::new());
        for (index, step) in self.steps.iter().enumerate() {
            if options.cancelled.load(Ordering::Relaxed) {
                break;
            }
            let mut running: RunningStep = match step.start(index + 1, &ground) {
                Ok(running) => running,
                Err(error) => {
                    failures.push(format!("step {} cannot be started: {error}", index + 1));
                    break;
                }
            };
            if !step.background {
                running.wait(step.time_max(), |_| options.cancelled.load(Ordering::Relaxed));
                results.push((index, running.finish(false)));
                continue;
            }
            if let Some(until) = step.until.as_deref().map(|until| ground.expand(until)) {
                let met = running.wait(step.time_max(), |running| running.output().contains(&until));
                if !met || running.has_ended() {
                    background.push((index, running));
                    failures.push(format!("step {} did not say \"{until}\" before it ended or its time was over", index + 1));
                    break;
                }
            }
            background.push((index, running));
        }
        // In the reverse order: what attacks ends last, so that the product is attacked while it ends.
        for (index, running) in background.into_iter().rev() {
            let is_kind = self.steps[index].actor() == Actor::Chokepoint;
            results.push((index, running.finish(is_kind)));
        }
        results.sort_by_key(|(index, _)| *index);
        for (index, result) in &results {
            failures.extend(self.steps[*index].failures(index + 1, result, &ground));
        }
        failures.extend(before.failures(self, &run));
        (failures, results.into_iter().map(|(_, result)| result).collect())
    }
}

/// A time as reports print it.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
