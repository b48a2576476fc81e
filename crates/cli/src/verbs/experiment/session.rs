//! The trials of an experiment: blocks in which every variant has its turn, until the answer is clear or the time is used up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_experiment::analysis::{self, Looks};
use chokepoint_experiment::report::Ended;
use chokepoint_experiment::{Metric, Plan, Trial, order};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::figures::{Figures, figures};
use chokepoint_model::load::LoadResult;
use chokepoint_model::observation::Request;
use chokepoint_model::report::Verdict;
use chokepoint_recording::Outcome;
use chokepoint_sources::{ObserveOptions, Observer, Root, assemble, netns};

use super::kept::{Earlier, Kept};
use super::subject::{Ready, Subject};
use crate::run::measure;
use crate::terminal::interrupt::Interrupt;

/// How long other programs are watched before the first trial.
const QUIET_CHECK: Duration = Duration::from_secs(1);

/// The trials so far and what they need.
pub(super) struct Session<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
    words: &'a Catalogue,
    began: Instant,
    /// Seconds of an earlier part of the same experiment.
    before_s: f64,
    /// Every trial, in order.
    pub(super) trials: Vec<Trial>,
    /// What was verified of each variant.
    verified: Vec<Vec<String>>,
    /// The rounds after which the figures are looked at; known after the first.
    looks: Option<Looks>,
    kept: &'a mut Kept,
}

impl<'a> Session<'a> {
    /// A session that goes on after what an earlier one measured.
    pub(super) fn new(plan: &'a Plan, earlier: Earlier, interrupt: &'a Interrupt, words: &'a Catalogue, kept: &'a mut Kept) -> Self {
        let Earlier { trials, planned, .. } = earlier;
        let looks = planned.map(|blocks| analysis::looks(plan, blocks));
        let before_s = trials.last().map_or(0.0, |trial| trial.at_s + plan.trial.as_secs_f64());
        let verified = vec![Vec::new(); plan.variants.len()];
        Self { plan, interrupt, words, began: Instant::now(), before_s, trials, verified, looks, kept }
    }

    /// Seconds since the experiment began, pauses aside.
    pub(super) fn used_s(&self) -> f64 {
        self.before_s + self.began.elapsed().as_secs_f64()
    }

    /// The trials, the planned looks, and what was verified of each variant.
    pub(super) fn over(self) -> (Vec<Trial>, Option<Looks>, Vec<Vec<String>>) {
        (self.trials, self.looks, self.verified)
    }

    /// Runs blocks until the experiment ends.
    pub(super) fn run(&mut self, subject: &mut Subject) -> Result<Ended> {
        let mut block = analysis::blocks(self.plan, &self.trials);
        if !self.trials.is_empty() {
            // A block that was not completed is begun again.
            self.trials.retain(|trial| trial.block < block);
            self.kept.continued(block);
        }
        loop {
            let began_s = self.used_s();
            for number in order::block(block, self.plan.variants.len()) {
                if self.interrupt.is_set() {
                    return Ok(Ended::Interrupted);
                }
                self.trial(subject, block, number)?;
            }
            self.repeat_disturbed(subject, block)?;
            block += 1;
            let (used_s, budget_s) = (self.used_s(), self.plan.budget.as_secs_f64());
            let mean_s = (used_s / block as f64).max(1e-3);
            let block_s = (used_s - began_s).max(mean_s);
            let most = (budget_s / mean_s).floor() as usize;
            if self.looks.is_none() {
                self.kept.planned(most.max(block));
            }
            let looks = self.looks.get_or_insert_with(|| analysis::looks(self.plan, most.max(block)));
            if looks.at().contains(&block) && analysis::is_clear(self.plan, &self.trials, looks) {
                return Ok(Ended::Precise);
            }
            // The last block may end a little late, but none is begun for which there is no time.
            if used_s + block_s > budget_s || looks.at().last().is_some_and(|last| block >= *last) {
                return Ok(Ended::Budget);
            }
        }
    }

    /// Measures one variant once.
    fn trial(&mut self, subject: &mut Subject, block: usize, number: usize) -> Result<()> {
        let name = self.plan.variants[number].name.clone();
        let of = || format!("variant \"{name}\"");
        let Some(ready) = subject.ready(self.plan, number, self.interrupt)? else { return Ok(()) };
        let at_s = self.used_s();
        let label = format!("block {}, {name}", block + 1);
        let measured = self.measured(subject, &ready, block, number, &label);
        let over = ready.over();
        let measured = measured.with_context(of)?;
        over.with_context(of)?;
        let Some((measured, verified)) = measured else { return Ok(()) };
        if self.verified[number].is_empty() {
            self.verified[number] = verified;
        }
        let trial = Trial { at_s, ..measured };
        self.kept.trial(&trial);
        self.trials.push(trial);
        Ok(())
    }

    /// Loads a variant. Nothing if the user interrupted it.
    fn measured(
        &self,
        subject: &mut Subject,
        ready: &Ready,
        block: usize,
        number: usize,
        label: &str,
    ) -> Result<Option<(Trial, Vec<String>)>> {
        let throttled_before = throttle_events();
        let (entries, _) = measure::measure(&ready.setup, label, self.interrupt)?;
        let throttled = throttle_events().zip(throttled_before).map(|(after, before)| after.saturating_sub(before));
        let observation = measure::observation(&entries);
        let load = observation.load.as_ref().context("no load was offered")?;
        if load.interrupted || self.interrupt.is_set() {
            return Ok(None);
        }
        answered(load)?;
        let figures = figures(&observation, ready.pid, self.words);
        let mut verified = ready.verified.clone();
        verified.extend(subject.after(ready, &self.plan.variants[number], &figures, load)?);
        let trial = Trial { throttled, ..trial(block, number, &figures, load) };
        let diagnosis = diagnose(&observation, self.words);
        let generator_limited = diagnosis.verdict == Verdict::ClientLimited;
        Ok(Some((Trial { ledger: diagnosis.ledger, generator_limited, ..trial }, verified)))
    }

    /// Repeats each disturbed trial of a block once. The repetition takes its place if it was not disturbed.
    fn repeat_disturbed(&mut self, subject: &mut Subject, block: usize) -> Result<()> {
        analysis::mark_disturbed(&mut self.trials, self.plan.precision);
        let disturbed: Vec<usize> = (0..self.trials.len())
            .filter(|at| self.trials[*at].block == block && !self.trials[*at].disturbed.is_empty() && !self.trials[*at].replaced)
            .collect();
        for at in disturbed {
            if self.interrupt.is_set() {
                return Ok(());
            }
            let before = self.trials.len();
            self.trial(subject, block, self.trials[at].variant)?;
            if self.trials.len() > before {
                self.trials[at].replaced = true;
            }
        }
        analysis::mark_disturbed(&mut self.trials, self.plan.precision);
        Ok(())
    }
}

/// The figures of a trial.
fn trial(block: usize, variant: usize, figures: &Figures, load: &LoadResult) -> Trial {
    let ms = |us: u64| us as f64 / 1e3;
    // Of those that ended in the trial, whenever they began: a response time longer than the trial is no failure.
    let (ended, good) = (load.throughput_rps(), load.goodput_rps());
    let failed = if ended > 0.0 { 1.0 - good / ended } else { 1.0 };
    let mut all = BTreeMap::from([
        (Metric::Throughput, load.throughput_rps()),
        (Metric::Goodput, load.goodput_rps()),
        (Metric::Failed, failed.max(0.0) * 100.0),
        (Metric::P50, ms(load.latency_us.p50)),
        (Metric::P99, ms(load.latency_us.p99)),
        (Metric::Max, ms(load.latency_us.max)),
        (Metric::Connections, load.connections as f64 / load.good.max(1) as f64),
    ]);
    all.extend(figures.cpu_us_per_good.map(|cost| (Metric::CpuPerRequest, cost)));
    all.extend(figures.link_bits_per_s.map(|rate| (Metric::Link, rate / 1e6)));
    all.extend(figures.resident_bytes.map(|bytes| (Metric::Memory, bytes as f64 / 1e6)));
    if let Some(cores) = figures.cores {
        let shares = [
            (Metric::CoreUser, cores.user),
            (Metric::CoreSystem, cores.system),
            (Metric::CoreSoftirq, cores.softirq),
            (Metric::CoreIdle, cores.idle),
        ];
        all.extend(shares.map(|(metric, share)| (metric, share * 100.0)));
    }
    Trial {
        block,
        variant,
        at_s: 0.0,
        figures: all,
        percentiles_ms: vec![
            (50.0, ms(load.latency_us.p50)),
            (75.0, ms(load.latency_us.p75)),
            (90.0, ms(load.latency_us.p90)),
            (95.0, ms(load.latency_us.p95)),
            (99.0, ms(load.latency_us.p99)),
            (99.9, ms(load.latency_us.p999)),
            (100.0, ms(load.latency_us.max)),
        ],
        ledger: None,
        steal_percent: figures.steal_share.unwrap_or(0.0) * 100.0,
        others_cores: figures.others_cores,
        throttled: None,
        disturbed: Vec::new(),
        replaced: false,
        generator_limited: false,
    }
}

/// An error if no answer was as expected: there is nothing to compare then.
fn answered(load: &LoadResult) -> Result<()> {
    if load.good > 0 {
        return Ok(());
    }
    let status = load.status.iter().max_by_key(|(_, count)| **count).map(|(status, _)| format!("most had status {status}"));
    let why = status.or_else(|| load.error_samples.first().cloned()).unwrap_or_else(|| "nothing answered".to_owned());
    bail!("none of {} requests got an expected answer: {why}", load.requests)
}

/// Cores used by other programs while nothing is measured.
pub(super) fn busy_before(interrupt: &Interrupt) -> Result<Option<f64>> {
    let request = Request { client_netns: netns::own()?, loaded: false, ..Request::default() };
    let observer = Observer::start(ObserveOptions::new(request)).context("the host cannot be observed")?;
    measure::watch(QUIET_CHECK, "is the host quiet", interrupt);
    let obs = assemble(&observer.finish());
    let spent = |times: &chokepoint_model::observation::CpuTimes| times.cores.iter().map(|(_, times)| times.busy()).sum::<u64>();
    let ticks_per_s = obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64;
    Ok(obs
        .cpu
        .ends()
        .map(|(first, last, elapsed_us)| spent(last).saturating_sub(spent(first)) as f64 / (ticks_per_s * elapsed_us.max(1) as f64 / 1e6)))
}

/// Events of thermal throttling of all cores since boot (Documentation/admin-guide/abi: `/sys/devices/system/cpu/cpuN/thermal_throttle`). `None` if the
/// processor counts none.
fn throttle_events() -> Option<u64> {
    let root = Root::default();
    let (names, _) = root.names("sys/devices/system/cpu", 10_000, None).ok()?;
    let events = names.iter().filter_map(|name| {
        let name = name.to_str().filter(|name| name.starts_with("cpu"))?;
        match root.read(&format!("sys/devices/system/cpu/{name}/thermal_throttle/core_throttle_count"), 64, None) {
            Outcome::Ok(bytes) => String::from_utf8_lossy(&bytes).trim().parse::<u64>().ok(),
            _ => None,
        }
    });
    events.reduce(|sum, more| sum + more)
}
