//! What an experiment measures: a scenario of the lab, built anew for each trial, or a running server whose settings are changed and put back.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chokepoint_experiment::{Plan, Variant, patch};
use chokepoint_lab::{Lab, Scenario};
use chokepoint_model::figures::Figures;
use chokepoint_model::load::LoadResult;
use chokepoint_model::url::without_values;

use super::presets;
use super::running::Running;
use super::verify::{self, Subjects};
use crate::run::measure::Setup;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::verbs::lab::stack;

/// What is measured.
pub(super) enum Subject {
    /// A scenario.
    Lab {
        /// The scenario of each variant.
        scenarios: Vec<Scenario>,
        /// Where its text came from, as the user knows it.
        origin: String,
        /// The measured server's name, if the plan names one.
        server: Option<String>,
        /// Remarks that were printed already.
        told: Vec<String>,
    },
    /// A running server.
    Running(Box<Running>),
}

/// A variant that is ready for a trial.
pub(super) struct Ready {
    /// What to measure.
    pub(super) setup: Setup,
    /// A process of the measured server, if it is known.
    pub(super) pid: Option<u32>,
    /// What was verified, in words.
    pub(super) verified: Vec<String>,
    lab: Option<Lab>,
    teardown: Vec<Vec<String>>,
}

impl Subject {
    /// The subject of a plan. `near`: the folder of the plan's file.
    pub(super) fn of(plan: &Plan, near: Option<&std::path::Path>, yes: bool) -> Result<Self> {
        if let Some(url) = &plan.stack.url {
            return Ok(Self::Running(Box::new(Running::new(plan, url, yes)?)));
        }
        let (text, origin) = presets::scenario(plan.stack.scenario.as_deref().unwrap_or_default(), near)?;
        // All before the first is measured: a mistake in the last one would cost all trials before it.
        let scenarios = plan.variants.iter().map(|variant| derived(&text, &origin, variant)).collect::<Result<_>>()?;
        Ok(Self::Lab { scenarios, origin, server: plan.stack.server.clone(), told: Vec::new() })
    }

    /// The scenario or URL, for the report.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Lab { origin, .. } => origin.clone(),
            Self::Running(running) => without_values(running.url()),
        }
    }

    /// Builds a variant and verifies it. Nothing if the user interrupted that.
    pub(super) fn ready(&mut self, plan: &Plan, number: usize, interrupt: &Interrupt) -> Result<Option<Ready>> {
        match self.built(plan, number, interrupt) {
            Err(_) if interrupt.is_set() => Ok(None),
            ready => ready.map(Some).with_context(|| format!("variant \"{}\"", plan.variants[number].name)),
        }
    }

    fn built(&mut self, plan: &Plan, number: usize, interrupt: &Interrupt) -> Result<Ready> {
        let variant = &plan.variants[number];
        let (mut setup, pid, verified, lab) = match self {
            Self::Running(running) => {
                let (setup, verified) = running.switch(number, variant)?;
                let pid = plan.stack.server.as_deref().map(|server| running.pid_of(server)).transpose()?;
                (setup, pid, verified, None)
            }
            Self::Lab { scenarios, server, told, .. } => {
                let lab = stack::up(&scenarios[number], false, None, interrupt)?;
                for note in stack::notes(&lab) {
                    if !told.contains(&note) {
                        output::note(&note);
                        told.push(note);
                    }
                }
                let mut subjects = &lab;
                let verified = verify::before(&mut subjects, variant)?;
                let pid = server.as_deref().map(|server| subjects.pid_of(server)).transpose()?;
                (stack::setup(&lab, false)?, pid, verified, Some(lab))
            }
        };
        (setup.profile, setup.unloaded) = (false, false);
        setup.duration = plan.trial;
        if let Some(load) = &mut setup.plan {
            load.duration = Some(plan.trial);
            load.options.warm_up = plan.warm_up;
        }
        let ready = Ready { setup, pid, verified, lab, teardown: variant.change.teardown.clone() };
        for command in &variant.change.setup {
            if let Err(error) = carry_out(command) {
                // What was set up so far is torn down before the error is told.
                let undone = ready.over();
                return Err(undone.err().map_or(error, |also| anyhow::anyhow!("and then: {also:#}")));
            }
        }
        Ok(ready)
    }

    /// Checks what the load of a trial showed. Returns what was verified, in words.
    pub(super) fn after(&mut self, ready: &Ready, variant: &Variant, figures: &Figures, load: &LoadResult) -> Result<Vec<String>> {
        match (self, &ready.lab) {
            (Self::Running(running), _) => verify::after(running.as_mut(), variant, figures, load),
            (Self::Lab { .. }, Some(lab)) => verify::after(&mut &*lab, variant, figures, load),
            (Self::Lab { .. }, None) => Ok(Vec::new()),
        }
    }

    /// Puts everything back.
    pub(super) fn end(self) -> Result<()> {
        match self {
            Self::Lab { .. } => Ok(()),
            Self::Running(running) => running.end(),
        }
    }
}

impl Ready {
    /// Ends the trial: tears down, and takes the lab down.
    pub(super) fn over(self) -> Result<()> {
        let torn: Vec<Result<()>> = self.teardown.iter().map(|command| carry_out(command)).collect();
        if let Some(lab) = self.lab {
            let report = lab.down()?;
            if !report.is_clean() {
                bail!("{report}");
            }
        }
        torn.into_iter().collect()
    }
}

/// The scenario of a variant.
fn derived(text: &str, origin: &str, variant: &Variant) -> Result<Scenario> {
    let of = || format!("variant \"{}\"", variant.name);
    let text = patch::scenario(text, variant).map_err(anyhow::Error::msg).with_context(of)?;
    Scenario::parse(&text, origin).with_context(of)
}

/// The longest time of a command for setup or teardown.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// Time between two checks whether it ended.
const POLL: Duration = Duration::from_millis(10);

/// Runs a command of the plan to its end. An error if it fails.
fn carry_out(command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("a command of the plan is empty")?;
    let words = || command.join(" ");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("\"{}\" could not be started", words()))?;
    let begin = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            anyhow::ensure!(status.success(), "\"{}\" ended with {status}", words());
            return Ok(());
        }
        if begin.elapsed() > COMMAND_MAX {
            child.kill()?;
            child.wait()?;
            bail!("\"{}\" did not end within {} s", words(), COMMAND_MAX.as_secs());
        }
        std::thread::sleep(POLL);
    }
}
