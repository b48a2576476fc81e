//! Plans: what is compared, under which load, for how long.

mod document;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chokepoint_model::quantity::{split_unit, unit_ns};

pub use document::{Change, Document, Factor, Load, Measure, NamedChange, Replace, Stack, Value, Verify};

use crate::trial::Metric;

/// The longest text of a plan that is read, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// The most variants of an experiment. A matrix of 8 by 8 takes minutes for each round.
pub const VARIANTS_MAX: usize = 64;
/// Length of a trial without `trial`.
pub const TRIAL_DEFAULT: Duration = Duration::from_secs(2);
/// Load before a trial without `warm_up`.
pub const WARM_UP_DEFAULT: Duration = Duration::from_millis(500);
/// Time for all trials without `budget`.
pub const BUDGET_DEFAULT: Duration = Duration::from_secs(180);
/// Half width of the interval at which an experiment stops early, without `precision`, percent.
pub const PRECISION_DEFAULT: f64 = 1.0;
/// Half widths that can be asked for, percent.
pub const PRECISION: std::ops::RangeInclusive<f64> = 0.01..=50.0;
/// The shortest trial: slices of a load are a tenth of a second, and a figure needs several.
const TRIAL_MIN: Duration = Duration::from_millis(500);
const TRIAL_MAX: Duration = Duration::from_secs(600);
const BUDGET_MAX: Duration = Duration::from_secs(86_400);

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It is not TOML, or a field is unknown, missing or of the wrong kind.
    #[error("{origin} is not a valid plan: {why}")]
    Malformed {
        /// The file as the user knows it.
        origin: String,
        /// What the parser says, with line and column.
        why: String,
    },
    /// A value makes no sense.
    #[error("{origin}: {what}")]
    Invalid {
        /// The file as the user knows it.
        origin: String,
        /// What is wrong, and what to write.
        what: String,
    },
}

/// One variant: a change, or a combination of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its name: that of the change, or the levels joined by " / ".
    pub name: String,
    /// Its level of each factor; empty without factors.
    pub levels: Vec<String>,
    /// What it changes.
    pub change: Change,
    /// The load of its trials.
    pub load: Load,
}

/// A plan that can be carried out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The question.
    pub title: String,
    /// True for an A/A experiment.
    pub same: bool,
    /// What is measured.
    pub stack: Stack,
    /// The factors' names and levels; empty without factors.
    pub factors: Vec<(String, Vec<String>)>,
    /// The variants.
    pub variants: Vec<Variant>,
    /// Which variants are compared: the numbers of the baseline and of the other.
    pub comparisons: Vec<(usize, usize)>,
    /// The figure that decides.
    pub decide: Metric,
    /// Functions whose calls are counted.
    pub calls: Vec<String>,
    /// Whether profiles are taken.
    pub profile: bool,
    /// Half width of the interval at which it stops early, percent.
    pub precision: f64,
    /// Length of a trial.
    pub trial: Duration,
    /// Load before each trial.
    pub warm_up: Duration,
    /// The longest time for all trials.
    pub budget: Duration,
    /// The text of the plan.
    pub text: String,
}

impl Plan {
    /// Reads a plan. `origin`: the file's name as the user knows it.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let malformed = |why: String| PlanError::Malformed { origin: origin.to_owned(), why };
        if text.len() > TEXT_BYTES_MAX {
            return Err(malformed(format!("it is larger than {TEXT_BYTES_MAX} bytes")));
        }
        let document: Document = toml::from_str(text).map_err(|error| malformed(error.to_string().trim_end().to_owned()))?;
        Self::of(document, text).map_err(|what| PlanError::Invalid { origin: origin.to_owned(), what })
    }

    fn of(document: Document, text: &str) -> Result<Self, String> {
        check_head(&document)?;
        let variants = variants(&document)?;
        let comparisons = comparisons(&document, &variants)?;
        let measure = &document.measure;
        let precision = measure.precision.unwrap_or(PRECISION_DEFAULT);
        if !PRECISION.contains(&precision) {
            return Err(format!(
                "precision = {precision} is out of range: write a percentage from {} to {}",
                PRECISION.start(),
                PRECISION.end()
            ));
        }
        let decide = match &measure.decide {
            None => Metric::Goodput,
            Some(name) => {
                Metric::parse(name).ok_or_else(|| format!("decide = \"{name}\" is no figure: write one of {}", Metric::names()))?
            }
        };
        let span = |text: &Option<String>, default, least, most, name: &str| match text {
            None => Ok(default),
            Some(text) => duration(text, least, most).ok_or_else(|| {
                format!("{name} = \"{text}\" is not valid: write a time from {} to {}, as \"2s\"", seconds(least), seconds(most))
            }),
        };
        let load = &document.load;
        Ok(Self {
            trial: span(&load.trial, TRIAL_DEFAULT, TRIAL_MIN, TRIAL_MAX, "trial")?,
            warm_up: span(&load.warm_up, WARM_UP_DEFAULT, Duration::ZERO, TRIAL_MAX, "warm_up")?,
            budget: span(&document.budget, BUDGET_DEFAULT, Duration::from_secs(1), BUDGET_MAX, "budget")?,
            decide,
            precision,
            calls: measure.calls.clone(),
            profile: measure.profile,
            factors: document.factors.iter().map(|factor| (factor.name.clone(), names(&factor.levels))).collect(),
            name: document.name,
            title: document.title,
            same: document.same,
            stack: document.stack,
            variants,
            comparisons,
            text: text.to_owned(),
        })
    }
}

fn names(levels: &[NamedChange]) -> Vec<String> {
    levels.iter().map(|level| level.name.clone()).collect()
}

fn seconds(span: Duration) -> String {
    format!("{}s", span.as_secs_f64())
}

/// A time with a unit within bounds.
fn duration(text: &str, least: Duration, most: Duration) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let span = Duration::try_from_secs_f64(number * unit_ns(unit)? / 1e9).ok()?;
    (least..=most).contains(&span).then_some(span)
}

fn check_head(document: &Document) -> Result<(), String> {
    if document.schema != 1 {
        return Err(format!("schema = {} is not known: this version reads schema 1", document.schema));
    }
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_name(&document.name) || document.name.len() > 40 {
        return Err("name: write at most 40 lower-case letters, digits and `-`".to_owned());
    }
    let stack = &document.stack;
    match (&stack.scenario, &stack.url) {
        (Some(_), None) | (None, Some(_)) => {}
        _ => return Err("[stack] has one of `scenario` (a lab) and `url` (a running server)".to_owned()),
    }
    if document.variants.is_empty() == document.factors.is_empty() {
        return Err("write [[variant]] for each variant, or [[factor]] with its levels; one of the two".to_owned());
    }
    if !document.only.is_empty() && document.factors.is_empty() {
        return Err("`only` names combinations of factors, and there is no [[factor]]".to_owned());
    }
    Ok(())
}

/// Refuses a list with an empty name or the same name twice.
fn check_names<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.trim().is_empty() || name.chars().any(char::is_control) || name.len() > 60 {
            return Err(format!("{what}: a name has 1 to 60 printable characters"));
        }
        if !seen.insert(name) {
            return Err(format!("{what}: the name \"{name}\" is there twice"));
        }
    }
    Ok(())
}

fn variants(document: &Document) -> Result<Vec<Variant>, String> {
    let mut variants = if document.factors.is_empty() { single(document)? } else { combined(document)? };
    if !(2..=VARIANTS_MAX).contains(&variants.len()) {
        return Err(format!("{} variants: an experiment has 2 to {VARIANTS_MAX}", variants.len()));
    }
    for variant in &mut variants {
        variant.load = document.load.with(&variant.change.load);
        if variant.change.load.trial.is_some() || variant.change.load.warm_up.is_some() {
            return Err(format!("{}: the length of trials is the same for all variants: write it in [load]", variant.name));
        }
    }
    not_mapped_elsewhere(&mut variants);
    let mut distinct: Vec<(&Change, &Load, &str)> = Vec::new();
    for variant in &variants {
        let same = distinct.iter().find(|(change, load, _)| **change == variant.change && **load == variant.load);
        if let (Some((.., other)), false) = (same, document.same) {
            return Err(format!(
                "the variants \"{other}\" and \"{}\" are the same: change one, or write same = true for an A/A experiment",
                variant.name
            ));
        }
        distinct.push((&variant.change, &variant.load, &variant.name));
    }
    Ok(variants)
}

fn single(document: &Document) -> Result<Vec<Variant>, String> {
    check_names("variant", document.variants.iter().map(|variant| variant.name.as_str()))?;
    let loads: Vec<Load> = document.variants.iter().map(|variant| document.load.with(&variant.change.load)).collect();
    if let Some(other) = (1..loads.len()).find(|other| loads[*other] != loads[0]) {
        return Err(format!(
            "the variants \"{}\" and \"{}\" have different loads, so their figures cannot be compared: give all variants the same load, or make the load a [[factor]]",
            document.variants[0].name, document.variants[other].name
        ));
    }
    let variant =
        |named: &NamedChange| Variant { name: named.name.clone(), levels: Vec::new(), change: named.change.clone(), load: Load::default() };
    Ok(document.variants.iter().map(variant).collect())
}

/// Every combination of levels, the last factor changing first; or those of `only`.
fn combined(document: &Document) -> Result<Vec<Variant>, String> {
    check_names("factor", document.factors.iter().map(|factor| factor.name.as_str()))?;
    for factor in &document.factors {
        check_names(&format!("factor {}", factor.name), factor.levels.iter().map(|level| level.name.as_str()))?;
        if factor.levels.is_empty() {
            return Err(format!("factor {} has no [[factor.level]]", factor.name));
        }
    }
    let count = document.factors.iter().map(|factor| factor.levels.len()).try_fold(1usize, |all, levels| all.checked_mul(levels));
    if document.only.is_empty() && count.is_none_or(|count| count > VARIANTS_MAX) {
        return Err(format!("the factors have more than {VARIANTS_MAX} combinations: list those to measure in `only`"));
    }
    let mut all: Vec<Variant> = vec![Variant { name: String::new(), levels: Vec::new(), change: Change::default(), load: Load::default() }];
    for factor in &document.factors {
        let with = |variant: &Variant, level: &NamedChange| Variant {
            name: if variant.name.is_empty() { level.name.clone() } else { format!("{} / {}", variant.name, level.name) },
            levels: variant.levels.iter().chain([&level.name]).cloned().collect(),
            change: variant.change.and(&level.change),
            load: Load::default(),
        };
        let wanted = |variant: &Variant| {
            document.only.is_empty() || document.only.iter().any(|levels| levels.get(..variant.levels.len()) == Some(&variant.levels[..]))
        };
        all = all.iter().flat_map(|variant| factor.levels.iter().map(|level| with(variant, level))).filter(wanted).collect();
    }
    for levels in &document.only {
        if !all.iter().any(|variant| variant.levels == *levels) {
            return Err(format!("only: there is no combination [{}]: name a level of each factor, in order", levels.join(", ")));
        }
    }
    Ok(all)
}

/// Where variants differ in the library that they preload, one without it must not have it mapped: otherwise nothing was changed.
fn not_mapped_elsewhere(variants: &mut [Variant]) {
    let mut libraries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for variant in variants.iter_mut() {
        let preloads: Vec<(String, String)> =
            variant.change.env.iter().filter_map(|(server, env)| Some((server.clone(), preload(env)?))).collect();
        for (server, library) in preloads {
            libraries.entry(server.clone()).or_default().insert(library.clone());
            variant.change.verify.mapped.entry(server).or_insert(library);
        }
    }
    for variant in variants {
        for (server, all) in &libraries {
            let own = variant.change.verify.mapped.get(server);
            if let (None, Some(library)) = (own, all.iter().next()) {
                variant.change.verify.not_mapped.entry(server.clone()).or_insert_with(|| library.clone());
            }
        }
    }
}

/// The file name of the library that LD_PRELOAD names.
fn preload(env: &BTreeMap<String, String>) -> Option<String> {
    let first = env.get("LD_PRELOAD")?.split([':', ' ']).find(|path| !path.is_empty())?;
    Some(first.rsplit('/').next().unwrap_or(first).to_owned())
}

/// What is compared: every variant with the first; with factors, each level of the first factor with its first level, all other factors being equal.
fn comparisons(document: &Document, variants: &[Variant]) -> Result<Vec<(usize, usize)>, String> {
    if document.factors.is_empty() {
        return Ok((1..variants.len()).map(|other| (0, other)).collect());
    }
    let order = |level: &String| document.factors[0].levels.iter().position(|known| known.name == *level);
    let mut pairs = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        let beside = variants.iter().enumerate().filter(|(_, other)| other.levels[1..] == variant.levels[1..]);
        let baseline = beside.min_by_key(|(_, other)| order(&other.levels[0])).map_or(number, |(baseline, _)| baseline);
        if baseline != number && variants[baseline].load == variant.load {
            pairs.push((baseline, number));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
