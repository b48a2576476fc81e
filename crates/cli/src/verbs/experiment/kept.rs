//! Keeps an experiment in the store of runs, trial by trial, so that one that was interrupted or killed can be continued.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use chokepoint_experiment::report::{Ended, Experiment as Report, Host};
use chokepoint_experiment::trial::Better as MetricBetter;
use chokepoint_experiment::{Plan, Trial};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_runs::{Better, Figure, NewRun, State, Store};
use serde::{Deserialize, Serialize};

use crate::args::Experiment;
use crate::report::page;
use crate::run::keeping;
use crate::terminal::output;

/// The verb, as the kind of a run.
const KIND: &str = "experiment";

/// What is kept while an experiment runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The rounds for which there was time when the looks were planned.
    Planned(usize),
    /// A trial.
    Trial(Box<Trial>),
    /// It was continued here, and this round was begun again.
    Continued(usize),
}

/// What an earlier part of the same experiment measured.
#[derive(Default)]
pub(super) struct Earlier {
    pub(super) trials: Vec<Trial>,
    /// The rounds for which the looks were planned.
    pub(super) planned: Option<usize>,
    /// When it began.
    pub(super) began: Option<String>,
}

/// An experiment in the store; nothing is kept if there is no store.
pub(super) struct Kept {
    store: Option<Store>,
    id: i64,
    lines: u32,
    /// The run as it was kept last.
    run: NewRun,
}

impl Kept {
    /// Begins to keep an experiment, or continues the last one of the same plan. A store that cannot be used is a note, unless it is to be continued.
    pub(super) fn begin(plan: &Plan, target: &str, host: &Host, args: &Experiment, words: &Catalogue) -> Result<(Self, Earlier)> {
        let run = NewRun {
            kind: KIND.to_owned(),
            state: State::Running,
            began: host.began.clone(),
            duration_s: 0.0,
            target: target.to_owned(),
            label: args.keep.label.clone().unwrap_or_default(),
            version: host.version.clone(),
            headline: plan.title.clone(),
            figures: Vec::new(),
            surroundings: surroundings(host),
            load: BTreeMap::new(),
            document: "{}".to_owned(),
            fingerprint: Some(fingerprint(plan, host)),
        };
        let mut kept = Self { store: None, id: 0, lines: 0, run };
        if args.resume {
            let earlier = kept.resume(words).context("an experiment cannot be continued")?;
            return Ok((kept, earlier));
        }
        if !args.keep.no_keep
            && let Err(error) = kept.add(words)
        {
            output::note(&format!("note: the experiment is not kept, so it cannot be continued: {}", output::once(&error)));
        }
        Ok((kept, Earlier::default()))
    }

    /// Adds the run to the store.
    fn add(&mut self, words: &Catalogue) -> Result<()> {
        let mut store = Store::open(&keeping::directory(words)?)?;
        self.id = store.add(&self.run)?;
        self.store = Some(store);
        Ok(())
    }

    /// Takes up the last unfinished run of the same plan. Returns what it measured.
    fn resume(&mut self, words: &Catalogue) -> Result<Earlier> {
        let store = Store::open(&keeping::directory(words)?)?;
        let fingerprint = self.run.fingerprint.as_deref().unwrap_or_default();
        let Some(id) = store.latest_unfinished(KIND, fingerprint)? else {
            bail!("there is no unfinished experiment of this plan on this kernel: leave out --resume");
        };
        let lines = store.trials(id)?;
        let before = store.get(id)?.run;
        if self.run.label.is_empty() {
            self.run.label = before.label;
        }
        self.run.began.clone_from(&before.began);
        (self.id, self.lines, self.store) = (id, u32::try_from(lines.len()).unwrap_or(u32::MAX), Some(store));
        Ok(Earlier { began: Some(before.began), ..earlier(&lines)? })
    }

    /// Keeps that the experiment goes on with this round: what was kept of it before does not count.
    pub(super) fn continued(&mut self, block: usize) {
        self.line(&Line::Continued(block));
    }

    /// Keeps for how many rounds the looks were planned: an experiment that goes on looks at the same ones.
    pub(super) fn planned(&mut self, blocks: usize) {
        self.line(&Line::Planned(blocks));
    }

    /// Keeps a trial.
    pub(super) fn trial(&mut self, trial: &Trial) {
        self.line(&Line::Trial(Box::new(trial.clone())));
    }

    fn line(&mut self, line: &Line) {
        let Some(store) = &mut self.store else { return };
        self.lines += 1;
        let kept =
            serde_json::to_string(line).map_err(anyhow::Error::from).and_then(|json| Ok(store.add_trial(self.id, self.lines, &json)?));
        if let Err(error) = kept {
            // The measurement goes on: a full disk must not end it.
            output::note(&format!("note: further trials are not kept: {}", output::once(&error)));
            self.store = None;
        }
    }

    /// Keeps the result.
    pub(super) fn end(&mut self, report: &Report, words: &Catalogue) {
        let Some(store) = &mut self.store else { return };
        let state = if report.ended == Ended::Interrupted { State::Interrupted } else { State::Done };
        let kept = keeping::document(report, Some(page::experiment::page(report, words).json())).and_then(|document| {
            let run = NewRun {
                state,
                duration_s: report.design.used_s,
                headline: report.comparisons.first().map_or_else(|| self.run.headline.clone(), |first| first.sentence.clone()),
                figures: figures(report),
                load: BTreeMap::from([
                    ("trial_s".to_owned(), report.design.trial_s.to_string()),
                    ("variants".to_owned(), report.variants.len().to_string()),
                ]),
                document,
                ..self.run.clone()
            };
            Ok(store.update(self.id, &run)?)
        });
        match kept {
            Ok(()) if state == State::Interrupted => output::note("the trials are kept: --resume goes on with them"),
            Ok(()) => {}
            Err(error) => output::note(&format!("note: the result is not kept: {}", output::once(&error))),
        }
    }
}

/// What an experiment that is continued must have in common with the earlier part: the plan and the kernel.
fn fingerprint(plan: &Plan, host: &Host) -> String {
    format!("{}\n{}\n{}", plan.text, host.kernel, host.cores)
}

fn surroundings(host: &Host) -> BTreeMap<String, BTreeMap<String, String>> {
    let facts = [("kernel", host.kernel.clone()), ("cores", host.cores.to_string())];
    BTreeMap::from([("host".to_owned(), facts.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())])
}

/// The deciding figure of each variant.
fn figures(report: &Report) -> Vec<Figure> {
    let Some(decide) = chokepoint_experiment::Metric::parse(&report.design.decide) else { return Vec::new() };
    let better = match decide.better() {
        MetricBetter::More => Better::More,
        MetricBetter::Less => Better::Less,
        MetricBetter::Neither => Better::Neither,
    };
    let figure = |variant: &chokepoint_experiment::report::VariantReport| {
        let value = variant.figures.get(&decide)?.median;
        Some(Figure { name: format!("{} of {}", decide.name(), variant.name), value, unit: decide.unit().to_owned(), better })
    };
    report.variants.iter().filter_map(figure).collect()
}

/// The trials that were kept.
fn earlier(lines: &[String]) -> Result<Earlier> {
    let mut earlier = Earlier::default();
    for line in lines {
        match serde_json::from_str(line).context("a kept trial cannot be read")? {
            Line::Planned(blocks) => earlier.planned = Some(blocks),
            Line::Trial(trial) => {
                // A trial was kept before it was known to be disturbed; its repetition follows.
                let repeated = |other: &&mut Trial| (other.block, other.variant) == (trial.block, trial.variant);
                earlier.trials.iter_mut().filter(repeated).for_each(|other| other.replaced = true);
                earlier.trials.push(*trial);
            }
            Line::Continued(block) => earlier.trials.retain(|trial| trial.block < block),
        }
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(block: usize, variant: usize) -> Line {
        let json = serde_json::json!({
            "block": block, "variant": variant, "at_s": 1.0, "figures": {}, "percentiles_ms": [], "steal_percent": 0.0, "disturbed": [],
            "replaced": false, "generator_limited": false,
        });
        Line::Trial(Box::new(serde_json::from_value(json).unwrap()))
    }

    fn read(lines: &[Line]) -> Earlier {
        earlier(&lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn kept_lines_are_read_back() {
        let repeated = read(&[trial(0, 0), trial(0, 1), Line::Planned(16), trial(0, 0)]);
        assert_eq!(repeated.planned, Some(16));
        assert_eq!(repeated.trials.iter().map(|trial| trial.replaced).collect::<Vec<_>>(), [true, false, false]);
        assert!(earlier(&["{}".to_owned()]).is_err() && earlier(&["".to_owned()]).is_err());
    }

    #[test]
    fn a_round_that_was_begun_again_counts_once() {
        let twice =
            read(&[trial(0, 0), trial(0, 1), trial(1, 1), Line::Continued(1), trial(1, 1), Line::Continued(1), trial(1, 1), trial(1, 0)]);
        let all: Vec<_> = twice.trials.iter().map(|trial| (trial.block, trial.variant, trial.replaced)).collect();
        assert_eq!(all, [(0, 0, false), (0, 1, false), (1, 1, false), (1, 0, false)]);
    }
}
