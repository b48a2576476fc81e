//! `chokepoint size`: loads the server step by step, and tells its capacity and how many workers it takes.

mod kept;
mod memory;
mod outputs;
mod setup;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_load::{Options, Plan};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::load::Loop;
use chokepoint_model::message::Message;
use chokepoint_model::surroundings::{Surroundings, surroundings};
use chokepoint_model::url::without_values;
use chokepoint_sizing::answer::{self, Asked};
use chokepoint_sizing::reading;
use chokepoint_sizing::report::Outcome;
use chokepoint_sizing::search::Search;
use chokepoint_sizing::step::{Offered, Step};
use chokepoint_sizing::workers::WorkerMemory;

use crate::args::Size;
use crate::run::keeping::{self, Begun};
use crate::run::measure;
use crate::run::plan::CONNECTIONS_OPEN;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;
use setup::SizeSetup;

/// Connections of the load that warms the server up: enough to start the workers of a small pool.
const WARM_CONNECTIONS: u32 = 4;
/// The warm-up of each step, and the time that a step takes besides its load.
const STEP_WARM_UP: Duration = Duration::from_secs(1);
const STEP_REST: Duration = Duration::from_millis(1500);
/// Steps for which the budget has to suffice: ten doublings, two refinements, seven rates and the warm-up.
const STEPS_USUAL: u32 = 20;
/// Shortest and longest time that a step counts: thirty slices give an interval, and a longer step would tell no more than another one.
const COUNTED_MIN: Duration = Duration::from_secs(2);
const COUNTED_MAX: Duration = Duration::from_secs(10);

/// Runs the verb. True if a capacity can be told.
pub(crate) fn run(args: &Size, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let leaving = Leaving::hold_while_preparing(interrupt);
    let setup = SizeSetup::parse(args)?;
    let files = outputs::open(args)?;
    measure::permit(&setup.of(setup.plan.clone()))?;
    let begun = Begun::now();
    let mut run = Run {
        setup: &setup,
        words,
        interrupt,
        steps: Vec::new(),
        memory: BTreeMap::new(),
        surroundings: Surroundings::new(),
        warnings: Vec::new(),
    };
    let is_cut = run.measure(&leaving)?;
    let asked = Asked {
        url: without_values(&setup.request.url),
        objective: setup.objective,
        connections_max: setup.connections_max,
        rate_rps: setup.rate_rps,
        is_cut,
        memory: run.memory,
        warnings: run.warnings,
    };
    let report = answer::report(&asked, &run.steps, words);
    keeping::keep(&args.keep, words, || {
        kept::run(&report, &setup, run.surroundings, words, begun.run("size", &setup.request.url, interrupt))
    });
    outputs::write(args, files, &report, words)?;
    Ok(matches!(report.outcome, Outcome::Measured | Outcome::Partial))
}

struct Run<'a> {
    setup: &'a SizeSetup,
    words: &'a Catalogue,
    interrupt: &'a Interrupt,
    steps: Vec<Step>,
    memory: BTreeMap<String, Result<WorkerMemory, String>>,
    /// What the last step was measured on.
    surroundings: Surroundings,
    warnings: Vec<String>,
}

impl Run<'_> {
    /// Measures until the search has all it needs. True if it ended before that.
    fn measure(&mut self, leaving: &Leaving) -> Result<bool> {
        let begin = Instant::now();
        let counted = (self.setup.budget / STEPS_USUAL).saturating_sub(STEP_WARM_UP + STEP_REST).clamp(COUNTED_MIN, COUNTED_MAX);
        let each = STEP_WARM_UP + STEP_REST + counted;
        let search = Search { connections_max: self.setup.connections_max, objective: self.setup.objective };
        // Programs that compile themselves or start workers on demand would look slower at first. It is loaded like a step, and not counted.
        let warm = self.plan(Offered::Closed(WARM_CONNECTIONS.min(self.setup.connections_max)), counted);
        let label = self.words.text(&Message::new("size-warm-up"));
        measure::measure_leaving(&self.setup.of(warm), &label, Some(leaving), self.interrupt)?;
        while let Some((offered, _)) = search.next(&self.steps) {
            if self.interrupt.is_set() || begin.elapsed() + each > self.setup.budget {
                return Ok(true);
            }
            let (entries, _) = match measure::measure(&self.setup.of(self.plan(offered, counted)), &self.label(offered), self.interrupt) {
                Err(error) if !self.steps.is_empty() => {
                    self.warnings.push(output::once(&error));
                    return Ok(true);
                }
                measured => measured?,
            };
            let observation = measure::observation(&entries);
            self.surroundings = surroundings(&observation);
            let diagnosis = diagnose(&observation, self.words);
            let Some(step) = reading::step(&observation, &diagnosis, self.words) else { return Ok(true) };
            memory::take(&step, &mut self.memory);
            let is_interrupted = step.interrupted;
            let guard = observation.load.as_ref().and_then(|load| load.stopped_by.as_deref());
            self.warnings.extend(guard.map(|guard| self.words.text(&Message::new("bench-stopped").with("guard", guard))));
            self.steps.push(step);
            if is_interrupted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn label(&self, offered: Offered) -> String {
        let message = match offered {
            Offered::Closed(connections) => Message::new("size-progress-connections").with("connections", f64::from(connections)),
            Offered::Open(rate) => Message::new("size-progress-rate").with("rate", rate),
        };
        self.words.text(&message)
    }

    fn plan(&self, offered: Offered, counted: Duration) -> Plan {
        let shape = match offered {
            Offered::Closed(connections) => Loop::Closed { connections },
            Offered::Open(rate_per_s) => Loop::Open { rate_per_s, connections: CONNECTIONS_OPEN.max(self.setup.connections_max) },
        };
        let plan = self.setup.plan.clone();
        Plan { shape, duration: Some(counted), options: Options { warm_up: STEP_WARM_UP, ..plan.options }, ..plan }
    }
}
