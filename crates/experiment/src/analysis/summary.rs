//! The result of an experiment from its trials.

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::LedgerPlaceKind;
use chokepoint_statistics::{bootstrap, median, precision, signed_rank};

use super::difference::counting;
use super::{ALPHA, Looks, POWER, blocks, level_after, looks, paired, seen};
use crate::plan::Plan;
use crate::report::{
    Bound, Calls, Change, Comparison, Design, Ended, Estimate, Experiment, Host, Outcome, SCHEMA, Standing, VariantReport,
};
use crate::trial::{Better, Metric, Trial};

/// Seed of the bootstrap: the same trials give the same report.
const SEED: u64 = 0x5eed;
/// Places with a smaller share of the requests are left out.
const STANDING_SHARE_MIN: f64 = 0.005;

/// What the caller knows besides the trials.
#[derive(Debug, Clone, Default)]
pub struct Aside {
    /// Where it ran.
    pub host: Host,
    /// The scenario or URL.
    pub stack: String,
    /// Time used, seconds.
    pub used_s: f64,
    /// Cores that were busy before the first trial.
    pub busy_before_cores: Option<f64>,
    /// What was verified of each variant.
    pub verified: Vec<Vec<String>>,
    /// Calls counted in each variant.
    pub calls: Vec<Vec<Calls>>,
    /// Bounds from a profile of each variant.
    pub bounds: Vec<Vec<Bound>>,
    /// Further remarks.
    pub warnings: Vec<String>,
}

/// The result.
pub fn experiment(plan: &Plan, trials: &[Trial], planned: Option<&Looks>, ended: Ended, aside: Aside, words: &Catalogue) -> Experiment {
    let done = blocks(plan, trials);
    let own;
    let planned = match planned {
        Some(planned) => planned,
        None => {
            own = looks(plan, done.max(1));
            &own
        }
    };
    let alpha = level_after(planned, done, ended != Ended::Precise);
    let comparisons: Vec<Comparison> =
        plan.comparisons.iter().map(|pair| comparison(plan, trials, alpha, *pair, aside.used_s, words)).collect();
    let variants: Vec<_> = (0..plan.variants.len()).map(|number| variant(plan, trials, number, &aside)).collect();
    let mut warnings = warnings(plan, trials, &variants, &aside, words);
    warnings.extend(aside.warnings);
    Experiment {
        schema: SCHEMA.to_owned(),
        name: plan.name.clone(),
        title: plan.title.clone(),
        host: aside.host,
        design: Design {
            stack: aside.stack,
            factors: plan.factors.clone(),
            decide: plan.decide.name().to_owned(),
            trial_s: plan.trial.as_secs_f64(),
            warm_up_s: plan.warm_up.as_secs_f64(),
            budget_s: plan.budget.as_secs_f64(),
            used_s: aside.used_s,
            precision_percent: plan.precision,
            blocks: done,
            blocks_planned: planned.at().last().copied().unwrap_or(done),
            looks: planned.at().iter().copied().filter(|at| *at <= done).collect(),
            same: plan.same,
            busy_before_cores: aside.busy_before_cores,
            disturbed: trials.iter().filter(|trial| !trial.disturbed.is_empty()).count(),
            repeated: trials.iter().filter(|trial| trial.replaced).count(),
        },
        variants,
        comparisons,
        ended,
        warnings,
        trials: trials.to_vec(),
        plan: plan.text.clone(),
    }
}

/// The trials of a variant that count, one a block.
fn own(trials: &[Trial], variant: usize) -> Vec<&Trial> {
    let last = trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    (0..last).filter_map(|block| counting(trials, block, variant)).collect()
}

fn variant(plan: &Plan, trials: &[Trial], number: usize, aside: &Aside) -> VariantReport {
    let (variant, own) = (&plan.variants[number], own(trials, number));
    let of = |metric: &Metric| {
        let values: Vec<f64> = own.iter().filter_map(|trial| trial.figures.get(metric).copied()).collect();
        Some((*metric, estimate(&values)?))
    };
    let (ledger, unaccounted_share) = standing(&own);
    VariantReport {
        name: variant.name.clone(),
        levels: variant.levels.clone(),
        load: variant.load.clone(),
        verified: aside.verified.get(number).cloned().unwrap_or_default(),
        trials: own.len(),
        figures: Metric::ALL.iter().filter_map(of).collect(),
        percentiles_ms: percentiles(&own),
        ledger,
        unaccounted_share,
        calls: aside.calls.get(number).cloned().unwrap_or_default(),
        bounds: aside.bounds.get(number).cloned().unwrap_or_default(),
        generator_limited: own.iter().filter(|trial| trial.generator_limited).count(),
    }
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    let middle = median(values)?;
    let ends = values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
    let (low, high) = if values.len() < 3 { ends } else { bootstrap::median_interval(values, 1.0 - ALPHA, SEED).unwrap_or(ends) };
    Some(Estimate { median: middle, low, high })
}

/// Median of each percentile over the trials.
fn percentiles(own: &[&Trial]) -> Vec<(f64, f64)> {
    let Some(first) = own.first() else { return Vec::new() };
    let at = |place: usize| {
        let values: Vec<f64> = own.iter().filter_map(|trial| trial.percentiles_ms.get(place).map(|(_, ms)| *ms)).collect();
        median(&values)
    };
    first.percentiles_ms.iter().enumerate().filter_map(|(place, (percentile, _))| Some((*percentile, at(place)?))).collect()
}

/// Where requests stood: means over the trials that have a ledger, the largest first.
fn standing(own: &[&Trial]) -> (Vec<Standing>, Option<f64>) {
    let ledgers: Vec<_> = own.iter().filter_map(|trial| trial.ledger.as_ref()).collect();
    let count = ledgers.len() as f64;
    let under_way: f64 = ledgers.iter().map(|ledger| ledger.under_way).sum();
    if ledgers.is_empty() || under_way <= 0.0 {
        return (Vec::new(), None);
    }
    let mut places: Vec<(String, LedgerPlaceKind, f64)> = Vec::new();
    for place in ledgers.iter().flat_map(|ledger| &ledger.places) {
        match places.iter_mut().find(|(tier, kind, _)| *tier == place.tier && *kind == place.place) {
            Some((.., mean)) => *mean += place.mean,
            None => places.push((place.tier.clone(), place.place, place.mean)),
        }
    }
    places.sort_by(|a, b| b.2.total_cmp(&a.2));
    let standing = places
        .into_iter()
        .map(|(tier, place, sum)| Standing { tier, place, mean: sum / count, share: sum / under_way })
        .filter(|standing| standing.share >= STANDING_SHARE_MIN)
        .collect();
    let unaccounted: f64 = ledgers.iter().map(|ledger| ledger.unaccounted.mean).sum();
    (standing, Some(unaccounted / under_way))
}

fn comparison(plan: &Plan, trials: &[Trial], alpha: f64, pair: (usize, usize), used_s: f64, words: &Catalogue) -> Comparison {
    let (baseline, variant) = pair;
    let change = |metric: &Metric| {
        let seen = seen(trials, baseline, variant, *metric, alpha)?;
        let (low, high) = seen.interval.unzip();
        Some((*metric, Change { value: seen.value, low, high, is_percent: metric.is_ratio() }))
    };
    let differences: BTreeMap<Metric, Change> = Metric::ALL.iter().filter_map(change).collect();
    let deciding = differences.get(&plan.decide).copied();
    let outcome = outcome(deciding, plan.decide.better());
    let paired = paired(trials, baseline, variant, plan.decide);
    let spread = precision::spread(&paired);
    let ratio = plan.decide.is_ratio();
    let percent = |value: f64| if ratio { value.exp_m1() * 100.0 } else { value };
    let smallest_percent = spread
        .map(|spread| precision::smallest_difference(spread, paired.len(), alpha, POWER))
        .filter(|least| least.is_finite())
        .map(percent);
    let wanted = if ratio { (plan.precision / 100.0).ln_1p() } else { plan.precision };
    // An interval of plus or minus x shows a difference of x in one of two experiments.
    let more_time_s =
        spread.map(|spread| precision::pairs_for(spread, wanted, alpha, 0.5)).filter(|pairs| *pairs < usize::MAX).and_then(|pairs| {
            let each_s = used_s / paired.len().max(1) as f64;
            (pairs > paired.len()).then(|| (pairs - paired.len()) as f64 * each_s)
        });
    let counts = (paired.len(), signed_rank::pairs_needed(alpha));
    let sentence = sentence(plan, pair, outcome, deciding, counts, words);
    Comparison {
        baseline,
        variant,
        outcome,
        sentence,
        differences,
        pairs: paired.len(),
        smallest_percent,
        functions: Vec::new(),
        more_time_s,
    }
}

fn outcome(change: Option<Change>, better: Better) -> Outcome {
    let Some((low, high)) = change.and_then(|change| change.low.zip(change.high)) else { return Outcome::TooFew };
    match (low > 0.0, high < 0.0, better) {
        (true, _, Better::More) | (_, true, Better::Less) => Outcome::Better,
        (true, _, Better::Less) | (_, true, Better::More) => Outcome::Worse,
        (true, _, Better::Neither) | (_, true, Better::Neither) => Outcome::Different,
        (false, false, _) => Outcome::NoDifference,
    }
}

fn sentence(
    plan: &Plan,
    pair: (usize, usize),
    outcome: Outcome,
    change: Option<Change>,
    (pairs, needed): (usize, usize),
    words: &Catalogue,
) -> String {
    let name = |number: usize| plan.variants[number].name.clone();
    let signed = |value: f64| format!("{value:+.1}");
    let metric = words.plain(plan.decide.message()).unwrap_or_default();
    let message = match (outcome, change) {
        (Outcome::TooFew, _) | (_, None) => Message::new("experiment-too-few").with("pairs", pairs as u64).with("needed", needed as u64),
        (Outcome::NoDifference, Some(change)) => {
            let largest = change.low.unwrap_or(0.0).abs().max(change.high.unwrap_or(0.0).abs());
            Message::new("experiment-no-difference").with("largest", format!("{largest:.1}")).with("unit", unit(change))
        }
        (outcome, Some(change)) => Message::new(match outcome {
            Outcome::Better => "experiment-better",
            Outcome::Worse => "experiment-worse",
            _ => "experiment-different",
        })
        .with("change", signed(change.value))
        .with("low", signed(change.low.unwrap_or(0.0)))
        .with("high", signed(change.high.unwrap_or(0.0)))
        .with("unit", unit(change)),
    };
    words.text(&message.with("variant", name(pair.1)).with("baseline", name(pair.0)).with("metric", metric))
}

/// The unit of a difference, as a word of the catalogue.
fn unit(change: Change) -> &'static str {
    if change.is_percent { "percent" } else { "points" }
}

fn warnings(plan: &Plan, trials: &[Trial], variants: &[VariantReport], aside: &Aside, words: &Catalogue) -> Vec<String> {
    let mut warnings = Vec::new();
    let quiet = plan.precision.max(5.0) / 100.0 * f64::from(aside.host.cores.max(1));
    if let Some(busy) = aside.busy_before_cores.filter(|busy| *busy > quiet) {
        warnings.push(words.text(&Message::new("experiment-not-quiet").with("cores", format!("{busy:.2}"))));
    }
    let disturbed = trials.iter().filter(|trial| !trial.disturbed.is_empty() && !trial.replaced).count();
    if disturbed > 0 {
        let all = trials.iter().filter(|trial| !trial.replaced).count();
        warnings.push(words.text(&Message::new("experiment-disturbed").with("disturbed", disturbed as u64).with("all", all as u64)));
    }
    for variant in variants.iter().filter(|variant| variant.generator_limited * 2 > variant.trials) {
        warnings.push(words.text(&Message::new("experiment-generator-limited").with("variant", variant.name.as_str())));
    }
    warnings
}
