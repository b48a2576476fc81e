//! Explains the whole by what its parts pass alone.

use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::{Bisect, Diagnosis, ExplainedBy, LimitedBy, PartKind, PartReport, Verdict};

/// Share of a part's rate from which the whole counts as passing as much: equal measurements differ by that on a shared machine.
const SAME_SHARE: f64 = 0.85;
/// Share of the rate of the parts in series from which too few connections explain the whole.
const SERIES_SHARE: f64 = 0.7;

/// The whole to explain.
pub(super) struct Whole<'a> {
    pub(super) report: &'a Diagnosis,
    /// CPU time of a good answer, microseconds.
    pub(super) cost_us: Option<f64>,
    /// True if requests were sent at a rate.
    pub(super) at_rate: bool,
    /// The tiers of each full group of cores.
    pub(super) full_cores: &'a [Vec<String>],
}

/// A part that was loaded, with its goodput.
struct Rated<'a> {
    place: usize,
    part: &'a PartReport,
    goodput: f64,
}

/// What the parts say about the whole. Parts of parts are reported but do not count.
pub(super) fn explain(whole: &Whole<'_>, parts: Vec<(bool, PartReport)>, words: &Catalogue) -> Bisect {
    let goodput = |part: &PartReport| part.load.as_ref().map(|load| load.goodput_rps).filter(|goodput| *goodput > 0.0);
    let rated = parts.iter().enumerate().filter(|(_, (is_inner, _))| !is_inner);
    let rated: Vec<Rated<'_>> = rated.filter_map(|(place, (_, part))| Some(Rated { place, part, goodput: goodput(part)? })).collect();
    let (explained_by, by, why) = judge(whole, &rated);
    let mut summary = words.text(&why);
    let is_left = |(_, part): &&(bool, PartReport)| part.load.is_none() && part.kind == PartKind::Direct;
    let left: Vec<&str> = parts.iter().filter(is_left).map(|(_, part)| part.tier.as_str()).collect();
    if matches!(explained_by, ExplainedBy::Between | ExplainedBy::Tier) && !left.is_empty() {
        let id = if explained_by == ExplainedBy::Tier { "bisect-left-behind" } else { "bisect-left" };
        summary = format!("{summary} {}", words.text(&Message::new(id).with("tiers", left.join(", "))));
    }
    let tier = by.map(|place| parts[place].1.tier.clone());
    let parts = parts.into_iter().enumerate().map(|(place, (_, part))| PartReport { explains: by == Some(place), ..part }).collect();
    Bisect { explained_by, tier, summary, parts }
}

/// The explanation of the whole, the part responsible, and the sentence.
fn judge(whole: &Whole<'_>, rated: &[Rated<'_>]) -> (ExplainedBy, Option<usize>, Message) {
    let rate = whole.report.load.as_ref().map(|load| load.goodput_rps).filter(|rate| *rate > 0.0);
    let least = rated.iter().min_by(|a, b| a.goodput.total_cmp(&b.goodput));
    let (Some(rate), Some(least)) = (rate, least) else { return (ExplainedBy::Untold, None, Message::new("bisect-none")) };
    let args = |id: &'static str, of: &Rated<'_>| {
        Message::new(id).with("rate", rate).with("alone", of.goodput).with("tier", of.part.tier.as_str())
    };
    // Not every request of the whole reaches a slower part: the whole has a cache, or the part's load was a different one.
    let reached = rated.iter().filter(|rated| rate <= rated.goodput / SAME_SHARE);
    let Some(slowest) = reached.min_by(|a, b| a.goodput.total_cmp(&b.goodput)) else {
        return (ExplainedBy::Beyond, None, args("bisect-beyond", least));
    };
    // The part's own limit, neither the load generator nor too few connections.
    let is_own = slowest.part.verdict != Some(Verdict::ClientLimited) && slowest.part.limited_by != Some(LimitedBy::Demand);
    if is_own && rate >= SAME_SHARE * slowest.goodput {
        return (ExplainedBy::Tier, Some(slowest.place), args("bisect-tier", slowest));
    }
    let limited_by = whole.report.limited_by;
    if limited_by == Some(LimitedBy::Demand) && whole.at_rate {
        return (ExplainedBy::Demand, None, args("bisect-demand", slowest));
    }
    if limited_by == Some(LimitedBy::Cpu) && share_full_cores(whole, rated) {
        return (ExplainedBy::SharedCores, None, cores(whole, rated).unwrap_or_else(|| args("bisect-cores-untold", slowest)));
    }
    // In series the times of the parts add up.
    let series: f64 = 1.0 / rated.iter().map(|rated| 1.0 / rated.goodput).sum::<f64>();
    if limited_by == Some(LimitedBy::Demand) && rate >= SERIES_SHARE * series {
        return (ExplainedBy::Series, None, args("bisect-series", slowest).with("series", series));
    }
    (ExplainedBy::Between, None, args("bisect-between", slowest))
}

/// True if cores that all of these tiers share are full.
fn share_full_cores(whole: &Whole<'_>, rated: &[Rated<'_>]) -> bool {
    whole.full_cores.iter().any(|names| rated.iter().all(|rated| names.contains(&rated.part.tier)))
}

/// The cost of each part on the cores. `None` if it could not be read.
fn cores(whole: &Whole<'_>, rated: &[Rated<'_>]) -> Option<Message> {
    let costs: Vec<f64> = rated.iter().map(|rated| rated.part.cpu_us_per_good).collect::<Option<_>>()?;
    let own: f64 = costs.iter().sum();
    let each = rated.iter().zip(&costs).map(|(rated, cost)| format!("{} {cost:.0} µs", rated.part.tier)).collect::<Vec<_>>().join(", ");
    let cost_us = whole.cost_us?;
    Some(Message::new("bisect-cores").with("each", each).with("own", own).with("cost", cost_us).with("rest", (cost_us - own).max(0.0)))
}
