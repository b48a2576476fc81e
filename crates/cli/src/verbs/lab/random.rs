//! `lab run --random`: stacks drawn at random. First it is proven whether their faults hurt, by runs with and without them by turns; then the diagnosis
//! is asked, and its answer held against that. It compares; the verdict is the model's.

mod answer;

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use chokepoint_lab::Lab;
use chokepoint_lab::random::proof::{self, Figures, Harm, Proof};
use chokepoint_lab::random::{self, Draw, With};
use chokepoint_load::{Options, Plan};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Loop;
use chokepoint_model::report::{Diagnosis, LoadReport};
use chokepoint_model::traffic::load_report;
use serde::Serialize;

use super::{build, expectation, plan, setup, with_background};
use crate::args::{LabRun, RedactLevel};
use crate::run::files::{self, Output};
use crate::run::interrupt::Interrupt;
use crate::run::measure;
use crate::run::recordings;
use crate::run::recordings::Event;
use crate::run::settings::Target;
use crate::terminal::output;
use crate::verbs::diagnose::{Live, drive};

use answer::{Answer, DrawResult, Total};

/// Name and version of the schema of a draw's line.
pub(super) const SCHEMA: &str = "chokepoint/lab-random/1";
/// Runs with and without a fault at least, and at most where those do not tell.
const PAIRS: (usize, usize) = (2, 4);
/// Draws that could not be built or measured, one after the other, after which there is no hope.
const ERRORS_MAX: u32 = 3;

/// Draws and diagnoses; true where every verdict was right.
pub(super) fn run(args: &LabRun, draws: u32, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let seed = args.seed.unwrap_or_else(seed_of_clock);
    let last = args.index.checked_add(draws - 1).context("there is no draw of so high a number")?;
    if let Some(directory) = &args.keep {
        files::make_directory(directory)?;
    }
    let (mut total, mut errors) = (Total::new(seed, args.index), 0);
    for index in args.index..=last {
        let mut draw = random::draw(seed, index);
        if let Some(seconds) = args.duration {
            draw.load_s = seconds;
        }
        output::note(&format!("draw {index} of seed {seed}: {}", draw.words()));
        let outcome = Trial { draw: &draw, args, words, interrupt }.outcome();
        // What was interrupted is no judgement; every lab was taken down on the way out.
        if interrupt.is_set() {
            bail!("interrupted; the lab was taken down");
        }
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                errors += 1;
                if errors >= ERRORS_MAX {
                    return Err(error.context(format!("{errors} draws one after the other could not be run")));
                }
                total.error();
                output::note(&format!("draw {index} could not be run: {error:#}"));
                continue;
            }
        };
        errors = 0;
        total.count(&outcome);
        print(&outcome.line(args.json)?, args.json)?;
    }
    print(&total.line(args.json)?, args.json)?;
    Ok(total.all_right())
}

fn print(line: &str, json: bool) -> Result<()> {
    if json { output::print_json(line) } else { output::print(line) }
}

/// A seed nobody chose: the microseconds of the clock.
fn seed_of_clock() -> u32 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_micros() ^ (since.as_secs() as u32))
}

/// What was proven of a draw's faults.
#[derive(Debug, Clone, Serialize)]
struct Proven {
    /// All faults against none; nothing where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<Proof>,
    /// Of two faults each alone against none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alone: Vec<Proof>,
    /// Of two faults each against the other alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    background_task: Vec<Proof>,
    /// What the load of the very run that was diagnosed came to: the diagnosis's own, or the one that it watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    suffered: Option<Figures>,
    /// That run against those without.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnosed: Option<Harm>,
}

impl Proven {
    fn all(&self) -> impl Iterator<Item = &Proof> {
        self.together.iter().chain(&self.alone).chain(&self.background_task)
    }

    /// The harm of each fault: what it does alone or beside the other, whichever is more. One that hurt in the run that was diagnosed and in no
    /// other does at least a little.
    fn harms(&self) -> Vec<Harm> {
        let two = self.alone.iter().zip(&self.background_task).map(|(alone, background_task)| alone.harm.max(background_task.harm));
        let harms: Vec<Harm> = if self.alone.is_empty() { self.together.iter().map(|proof| proof.harm).collect() } else { two.collect() };
        let least = if self.diagnosed == Some(Harm::Hurt) { Harm::Little } else { Harm::None };
        harms.into_iter().map(|harm| harm.max(least)).collect()
    }

    /// The harm of all: what did not hurt in the very run that was diagnosed need not be named.
    fn together(&self) -> Harm {
        let proven = self.together.as_ref().map_or(Harm::None, |proof| proof.harm);
        proven.min(self.diagnosed.unwrap_or(Harm::Hurt).max(Harm::Little))
    }
}

/// One draw on its way to an outcome.
struct Trial<'t> {
    draw: &'t Draw,
    args: &'t LabRun,
    words: &'t Catalogue,
    interrupt: &'t Interrupt,
}

impl Trial<'_> {
    fn outcome(&self) -> Result<DrawResult> {
        let begin = Instant::now();
        let mut proven = self.prove()?;
        let (report, suffered, events) = self.ask()?;
        if let (Some(suffered), Some(together)) = (suffered, &proven.together) {
            proven.diagnosed = Some(proof::judge(vec![suffered], together.without.clone()).harm);
            proven.suffered = Some(suffered);
        }
        let expected = self.draw.expected(&proven.harms(), proven.together());
        let answer = Answer::of(&report, &expected);
        if let Some(directory) = &self.args.keep {
            let path = |ending: &str| directory.join(format!("{}.{ending}", self.draw.name(With::All)));
            let told = format!("{}.", answer::proof_in_words(&proven));
            files::write(&path("toml"), "scenario", self.draw.kept(&expected, &told)?.text().as_bytes())?;
            if !answer.right {
                recordings::save(Output::open(&path("rec"), "recording")?, &events, RedactLevel::Public)?;
            }
        }
        Ok(DrawResult::new(self.draw, self.args.passive, proven, expected, answer, begin.elapsed()))
    }

    /// Measures with all faults, with none, and of two with each alone, by turns; every run on servers that were started for it, so that
    /// nothing of one run (TIME_WAIT, tracked connections, grown pools) is met by the next.
    fn prove(&self) -> Result<Proven> {
        let mut variants = vec![With::None, With::All];
        match self.draw.faults.len() {
            0 => return Ok(Proven { together: None, alone: Vec::new(), background_task: Vec::new(), suffered: None, diagnosed: None }),
            1 => {}
            count => variants.extend((0..count).map(With::Alone)),
        }
        let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); variants.len()];
        for round in 0..PAIRS.1 {
            // Back and forth, so that what changes steadily meanwhile meets all alike.
            let mut order: Vec<usize> = (0..variants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                runs[at].push(self.measured(variants[at])?);
            }
            let proven = compare(&runs);
            if round + 1 >= PAIRS.0 && !proven.all().any(|proof| proof.unclear) {
                return Ok(proven);
            }
        }
        Ok(compare(&runs))
    }

    /// Loads one variant of the stack, with nobody watching. Where the diagnosis comes to traffic that is there already, what its beginning cost is left out
    /// here, too: a queue that is short for so many connections at once hurts nobody any more when they are made.
    fn measured(&self, with: With) -> Result<Figures> {
        let lab = build(&self.draw.scenario(with)?, false, None, self.interrupt)?;
        let warm_up = if self.args.passive { super::PASSIVE_LEAD } else { Duration::ZERO };
        let steady = |plan: Plan| Plan { options: Options { warm_up, ..plan.options }, ..plan };
        let loaded = self.warmed(&lab).and_then(|plan| measure::load(&steady(plan), "loading", self.interrupt));
        take_down(lab)?;
        let load = load_report(&loaded?);
        if self.interrupt.is_set() {
            bail!("interrupted");
        }
        Ok(figures(&load))
    }

    /// The load of a lab, after one request alone: servers have had visitors before, and the neighbours of a network know each other. The first
    /// packet of all may wait for a second until they do. What fills by and by is waited for, too.
    fn warmed(&self, lab: &Lab) -> Result<Plan> {
        let plan = plan(lab, &Target::parse(lab.url())?)?;
        let first = Plan { shape: Loop::Closed { connections: 1 }, requests: Some(1), ..plan.clone() };
        measure::load(&first, "first request", self.interrupt)?;
        measure::watch(self.draw.grows_for(), "faults growing", self.interrupt);
        Ok(plan)
    }

    /// Asks the diagnosis, which knows nothing of what was drawn; with what it said, what the load suffered meanwhile.
    fn ask(&self) -> Result<(Diagnosis, Option<Figures>, Vec<Event>)> {
        let lab = build(&self.draw.scenario(With::All)?, false, None, self.interrupt)?;
        self.warmed(&lab)?;
        let setup = setup(&lab, self.args.passive)?;
        let mut live = Live::new(&setup, self.interrupt, true, "lab", self.args.keep.is_some());
        let outcome = with_background(&lab, self.args.passive, || drive(&mut live, false, self.words));
        let events = std::mem::take(&mut live.events);
        drop(live);
        take_down(lab)?;
        let (report, watched) = outcome?;
        let load = watched.as_ref().map(load_report);
        let suffered = load.as_ref().or(report.load.as_ref()).map(figures);
        Ok((report, suffered, events))
    }
}

fn figures(load: &LoadReport) -> Figures {
    Figures {
        goodput_rps: load.reaching_rps(),
        failed_share: expectation::failed_share(load),
        latency_us_p99: load.latency_us.p99 as f64,
        latency_us_p999: load.latency_us.p999 as f64,
    }
}

fn take_down(lab: Lab) -> Result<()> {
    let down = lab.down()?;
    if !down.is_clean() {
        bail!("the lab could not be taken down: {down}");
    }
    Ok(())
}

/// The runs of none, all, and each alone, held against each other.
fn compare(runs: &[Vec<Figures>]) -> Proven {
    let against = |with: usize, without: usize| proof::judge(runs[with].clone(), runs[without].clone());
    let count = runs.len();
    let alone = (2..count).map(|at| against(at, 0)).collect();
    // Of two faults one is what the other alone has not.
    let background_task = if count == 4 { vec![against(1, 3), against(1, 2)] } else { Vec::new() };
    Proven { together: Some(against(1, 0)), alone, background_task, suffered: None, diagnosed: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(goodput: &[f64]) -> Vec<Vec<Figures>> {
        let run = |goodput_rps: &f64| Figures { goodput_rps: *goodput_rps, failed_share: 0.0, latency_us_p99: 1e4, latency_us_p999: 1e4 };
        goodput.iter().map(|rate| vec![run(rate), run(rate)]).collect()
    }

    #[test]
    fn each_fault_is_judged_alone_and_beside_the_other() {
        // None, all, the first alone, the second alone: the first hides the second.
        let proven = compare(&runs(&[1000.0, 100.0, 100.0, 500.0]));
        assert_eq!((proven.together(), proven.harms()), (Harm::Hurt, vec![Harm::Hurt, Harm::Hurt]));
        // Only both together hurt.
        let proven = compare(&runs(&[1000.0, 500.0, 1000.0, 1000.0]));
        assert_eq!(proven.harms(), [Harm::Hurt, Harm::Hurt]);
        // The second is harmless.
        let proven = compare(&runs(&[1000.0, 500.0, 500.0, 1000.0]));
        assert_eq!(proven.harms(), [Harm::Hurt, Harm::None]);
        let proven = compare(&runs(&[1000.0, 500.0]));
        assert_eq!((proven.harms(), proven.all().count()), (vec![Harm::Hurt], 1));
    }

    #[test]
    fn the_run_that_was_diagnosed_counts_too() {
        let judged = |with: f64, diagnosed: Harm| {
            let proven = Proven { diagnosed: Some(diagnosed), ..compare(&runs(&[1000.0, with])) };
            (proven.together(), proven.harms())
        };
        assert_eq!(judged(500.0, Harm::Hurt), (Harm::Hurt, vec![Harm::Hurt]));
        assert_eq!(judged(500.0, Harm::None), (Harm::Little, vec![Harm::Hurt]), "it may be named and need not");
        assert_eq!(judged(1000.0, Harm::Hurt), (Harm::None, vec![Harm::Little]));
        assert_eq!(judged(1000.0, Harm::None), (Harm::None, vec![Harm::None]));
    }
}
