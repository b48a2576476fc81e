//! The whole, explained by what its parts give alone.

use crate::catalogue::Catalogue;
use crate::message::Message;
use crate::report::{Bisect, Diagnosis, ExplainedBy, LimitedBy, PartKind, PartReport, Verdict};

/// Share of what a part gives alone from which the whole counts as giving as much: two measurements alike differ by so much on a shared machine.
const SAME_SHARE: f64 = 0.85;
/// Share of the whole's time or CPU time from which the parts' own account for it.
const ACCOUNTED_SHARE: f64 = 0.7;

/// The whole that is to be explained.
pub(super) struct Whole<'a> {
    pub(super) report: &'a Diagnosis,
    /// CPU time of a good answer, microseconds.
    pub(super) cost_us: Option<f64>,
    /// True where requests came at a rate.
    pub(super) at_rate: bool,
}

/// What the parts say of the whole.
pub(super) fn explain(whole: &Whole<'_>, parts: Vec<PartReport>, words: &Catalogue) -> Bisect {
    let (explained_by, tier, mut summary) = judge(whole, &parts, words);
    let left: Vec<&str> =
        parts.iter().filter(|part| part.load.is_none() && part.kind == PartKind::Direct).map(|part| part.tier.as_str()).collect();
    if explained_by == ExplainedBy::Between && !left.is_empty() {
        summary = format!("{summary} {}", words.text(&Message::new("bisect-left").with("tiers", left.join(", "))));
    }
    Bisect { explained_by, tier, summary, parts }
}

fn goodput(part: &PartReport) -> Option<f64> {
    part.load.as_ref().map(|load| load.goodput_rps).filter(|goodput| *goodput > 0.0)
}

fn judge(whole: &Whole<'_>, parts: &[PartReport], words: &Catalogue) -> (ExplainedBy, Option<String>, String) {
    let limited_by = whole.report.limited_by;
    let told = |by: ExplainedBy, message: Message| (by, None, words.text(&message));
    let rated: Vec<(&PartReport, f64)> = parts.iter().filter_map(|part| Some((part, goodput(part)?))).collect();
    let (Some((least, alone)), Some(rate)) = (
        rated.iter().min_by(|a, b| a.1.total_cmp(&b.1)).copied(),
        whole.report.load.as_ref().map(|load| load.goodput_rps).filter(|rate| *rate > 0.0),
    ) else {
        return told(ExplainedBy::Untold, Message::new("bisect-none"));
    };
    let args = |id: &'static str| Message::new(id).with("rate", rate).with("alone", alone).with("tier", least.tier.as_str());
    let is_own_limit = least.verdict != Some(Verdict::ClientLimited);
    if is_own_limit && rate >= SAME_SHARE * alone {
        return (ExplainedBy::Tier, Some(least.tier.clone()), words.text(&args("bisect-tier")));
    }
    if limited_by == Some(LimitedBy::Demand) && whole.at_rate {
        return told(ExplainedBy::Demand, args("bisect-demand"));
    }
    if limited_by == Some(LimitedBy::Cpu) {
        let costs: Option<Vec<f64>> = rated.iter().map(|(part, _)| part.cpu_us_per_good).collect();
        if let (Some(costs), Some(cost_us)) = (costs, whole.cost_us) {
            let own: f64 = costs.iter().sum();
            let each =
                rated.iter().zip(&costs).map(|((part, _), cost)| format!("{} {cost:.0} µs", part.tier)).collect::<Vec<_>>().join(", ");
            let message = args("bisect-cores").with("each", each).with("own", own).with("cost", cost_us);
            return told(ExplainedBy::SharedCores, message.with("rest", (cost_us - own).max(0.0)));
        }
        return told(ExplainedBy::SharedCores, args("bisect-cores-untold"));
    }
    // One behind the other the parts take their times together.
    let series: f64 = 1.0 / rated.iter().map(|(_, goodput)| 1.0 / goodput).sum::<f64>();
    if limited_by == Some(LimitedBy::Demand) && rate >= ACCOUNTED_SHARE * series {
        return told(ExplainedBy::Series, args("bisect-series").with("series", series));
    }
    told(ExplainedBy::Between, args("bisect-between").with("times", alone / rate))
}
