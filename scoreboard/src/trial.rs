//! `scoreboard run`: measures whether the faults of drawn stacks do harm, diagnoses each stack, and grades the answer.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use chokepoint::lab::{Diagnosed, Interrupt, PASSIVE_LEAD, build, diagnose, load, plan, watch};
use chokepoint_lab::Lab;
use chokepoint_load::{Options, Plan};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Loop;
use chokepoint_model::report::LoadReport;
use chokepoint_model::traffic::load_report;

use crate::answer::{Answer, DrawResult, Total, proof_in_words};
use crate::args::Run;
use crate::draw::{Draw, With, draw};
use crate::proof::{self, Figures, Proven};

/// Fewest runs with and without a fault, and most where the fewest leave it unclear.
const PAIRS: (usize, usize) = (2, 4);
/// Consecutive draws that fail before the program gives up.
const ERRORS_MAX: u32 = 3;

/// Draws and diagnoses. True where every verdict was right.
pub(crate) fn run(args: &Run, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let (seed, first) = (args.draws.seed.unwrap_or_else(seed_of_clock), args.draws.index);
    if let Some(directory) = &args.keep {
        std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be created", directory.display()))?;
    }
    let (mut total, mut errors) = (Total::new(seed, first), 0);
    for index in first..=args.draws.last()? {
        let mut draw = draw(seed, index);
        if let Some(seconds) = args.duration {
            draw.load_s = seconds;
        }
        eprintln!("draw {index} of seed {seed}: {}", draw.words());
        let result = Trial { draw: &draw, args, words, interrupt }.result();
        // An interrupted draw has no grade. Every lab was taken down on the way out.
        if interrupt.is_set() {
            bail!("interrupted; the lab was taken down");
        }
        match result {
            Ok(result) => {
                errors = 0;
                total.count(&result);
                print!("{}", result.line(args.json)?);
            }
            Err(error) => {
                errors += 1;
                if errors >= ERRORS_MAX {
                    return Err(error.context(format!("{errors} consecutive draws could not be run")));
                }
                total.errors += 1;
                eprintln!("draw {index} could not be run: {error:#}");
            }
        }
    }
    print!("{}", total.line(args.json)?);
    Ok(total.all_right())
}

/// A seed from the microseconds of the clock.
fn seed_of_clock() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_micros() ^ (since.as_secs() as u32))
}

/// One draw to be measured, diagnosed and graded.
struct Trial<'t> {
    draw: &'t Draw,
    args: &'t Run,
    words: &'t Catalogue,
    interrupt: &'t Interrupt,
}

impl Trial<'_> {
    fn result(&self) -> Result<DrawResult> {
        let begin = Instant::now();
        let mut proven = self.prove()?;
        let diagnosed = self.diagnose()?;
        let background = diagnosed.background.as_ref().map(load_report);
        let suffered = background.as_ref().or(diagnosed.report.load.as_ref()).map(figures);
        if let (Some(suffered), Some(together)) = (suffered, &proven.together) {
            proven.diagnosed = Some(proof::judge(vec![suffered], together.without.clone()).harm);
            proven.suffered = Some(suffered);
        }
        let expected = self.draw.expected(&proven.harms(), proven.together());
        let answer = Answer::new(&diagnosed.report, &expected);
        if let Some(directory) = &self.args.keep {
            let path = |ending: &str| directory.join(format!("{}.{ending}", self.draw.name(With::All)));
            let description = format!("{}.", proof_in_words(&proven));
            let scenario = self.draw.scenario_with_expectation(&expected, &description)?;
            std::fs::write(path("toml"), scenario.text()).context("the scenario cannot be written")?;
            if !answer.right {
                diagnosed.save(&path("rec"))?;
            }
        }
        Ok(DrawResult::new(self.draw, self.args.passive, proven, expected, answer, begin.elapsed()))
    }

    /// Measures in turn with all faults, with none, and with each of two alone. Every run has servers of its own, so that nothing of one run
    /// (TIME_WAIT, tracked connections, grown pools) affects the next.
    fn prove(&self) -> Result<Proven> {
        let mut variants = vec![With::None, With::All];
        match self.draw.faults.len() {
            0 => return Ok(Proven::default()),
            1 => {}
            count => variants.extend((0..count).map(With::Alone)),
        }
        let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); variants.len()];
        for round in 0..PAIRS.1 {
            // The order alternates, so that a steady drift affects all variants alike.
            let mut order: Vec<usize> = (0..variants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                runs[at].push(self.measure(variants[at])?);
            }
            let proven = proof::compare(&runs);
            if round + 1 >= PAIRS.0 && !proven.is_unclear() {
                return Ok(proven);
            }
        }
        Ok(proof::compare(&runs))
    }

    /// Loads one variant of the stack without an observer. A passive diagnosis watches a load that has run for a while, so the beginning is left out
    /// here too: a queue that is too short only while all connections are opened at once does no harm later.
    fn measure(&self, with: With) -> Result<Figures> {
        let lab = build(&self.draw.scenario(with)?, self.interrupt)?;
        let warm_up = if self.args.passive { PASSIVE_LEAD } else { Duration::ZERO };
        let steady = |plan: Plan| Plan { options: Options { warm_up, ..plan.options }, ..plan };
        let loaded = self.warm_up(&lab).and_then(|plan| load(&steady(plan), "loading", self.interrupt));
        take_down(lab)?;
        let report = load_report(&loaded?);
        if self.interrupt.is_set() {
            bail!("interrupted");
        }
        Ok(figures(&report))
    }

    /// Sends one request, because the first packet of a network may wait a second for its neighbours' addresses. Then waits until all faults have
    /// built up. Returns the load.
    fn warm_up(&self, lab: &Lab) -> Result<Plan> {
        let plan = plan(lab)?;
        let first = Plan { shape: Loop::Closed { connections: 1 }, requests: Some(1), ..plan.clone() };
        load(&first, "first request", self.interrupt)?;
        watch(self.draw.grows_for(), "faults growing", self.interrupt);
        Ok(plan)
    }

    /// Diagnoses the stack with all faults. The diagnosis knows nothing of the draw.
    fn diagnose(&self) -> Result<Diagnosed> {
        let lab = build(&self.draw.scenario(With::All)?, self.interrupt)?;
        self.warm_up(&lab)?;
        let diagnosed = diagnose(&lab, self.args.passive, self.args.keep.is_some(), self.words, self.interrupt);
        take_down(lab)?;
        diagnosed
    }
}

fn figures(load: &LoadReport) -> Figures {
    Figures {
        goodput_rps: load.reaching_rps(),
        failed_share: load.failed_share().unwrap_or(0.0),
        latency_us_p99: load.latency_us.map_or(0.0, |times| times.p99 as f64),
        latency_us_p999: load.latency_us.map_or(0.0, |times| times.p999 as f64),
    }
}

fn take_down(lab: Lab) -> Result<()> {
    let down = lab.down()?;
    if !down.is_clean() {
        bail!("the lab could not be taken down: {down}");
    }
    Ok(())
}
