//! The run of `size` as `chokepoint runs` keeps it.

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::surroundings::Surroundings;
use chokepoint_runs::{Better, Figure, NewRun};
use chokepoint_sizing::report::Size;

use super::setup::SizeSetup;
use crate::report::page;
use crate::run::keeping;

/// The run with its figures, the highest goodput first: it is what other verbs compare.
pub(super) fn run(report: &Size, setup: &SizeSetup, surroundings: Surroundings, words: &Catalogue, run: NewRun) -> Result<NewRun> {
    let capacity = &report.capacity;
    let rate = |name, value: Option<f64>| value.map(|value| (name, value, "/s", Better::More));
    let at_knee = report.knee.map(|knee| ("connections at the knee", f64::from(knee.connections), "", Better::Neither));
    let all = [
        rate("goodput", capacity.most_rps.map(|most| most.value)),
        rate("rate within the objective", capacity.at_objective_rps.map(|rate| rate.value)),
        rate("safe rate", capacity.safe_rps),
        at_knee,
    ];
    let figure =
        |(name, value, unit, better): (&str, f64, &str, Better)| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better };
    let mut load = keeping::load(&setup.plan);
    let stepped = [
        ("loop", "stepped".to_owned()),
        ("connections", format!("1 to {}", setup.connections_max)),
        ("duration", format!("{} s", setup.budget.as_secs_f64())),
        ("objective of p99", format!("{} ms", setup.objective.p99_us as f64 / 1e3)),
    ];
    load.extend(stepped.map(|(name, value)| (name.to_owned(), value)));
    Ok(NewRun {
        headline: report.summary.clone(),
        figures: all.into_iter().flatten().filter(|(_, value, ..)| value.is_finite()).map(figure).collect(),
        surroundings,
        load,
        document: keeping::document(report, Some(page::size::page(report, words).json()))?,
        ..run
    })
}
