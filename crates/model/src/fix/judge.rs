//! Compares two measurements: whether the second is better or worse than the first beyond noise, and in what.
//!
//! Goodput as far as it reaches ([`LoadReport::reaching_rps`](crate::output::report::LoadReport::reaching_rps)) counts first, then failures, then p99. Every step of the loop uses this one order.

use super::noise::{self, Figures, Gain, Metric, is_more_often};
use super::service::{
    Objective, failed_share, fails_anew, fails_less, failures, faster, fell, goodput, lost_share, meets, p99, reaching, rose, slower,
};
use crate::facts::harm::FAILED_SHARE_NOISE;
use crate::facts::spread::Range;
use crate::output::message::Message;
use crate::output::report::{At, Diagnosis, Finding, Remedy, Role, Signal, StationState, Verdict};

/// Times that p99 may grow without a gain in goodput where no objective says what it may be. Two runs alike differ by less: the tail of a
/// short load is noisier than its goodput.
const LATENCY_TIMES_MAX: f64 = 3.0;
/// Share of its former refusals that a station may still show for the remedy to count as having worked.
const REFUSALS_LEFT_MAX: f64 = 0.01;

/// In what a measurement is worse than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worse {
    /// Goodput fell.
    Goodput,
    /// Goodput reaches fewer of the clients.
    Reach,
    /// p99 met the objective before and does not meet it now.
    Objective,
    /// A larger share of the requests failed, and goodput did not rise in return.
    Failed,
    /// No objective was given, p99 is a multiple of what it was, and goodput did not rise in return.
    Latency,
}

/// Why a change is needed besides the others.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Need {
    /// Things are worse without it.
    Worse(Worse),
    /// Its station refuses this many per second without it.
    Refusals(String, f64),
    /// Its finding is a cause again without it.
    Finding,
}

/// The result of a round.
pub(super) struct Judgement {
    /// True if the change may stay for now.
    pub(super) works: bool,
    /// True if it may stay only because the next cause explains what it cost.
    pub(super) explained: bool,
    /// Why.
    pub(super) why: Message,
}

/// Identifies a finding across measurements: the same finding at the same place is the same one. The process is left out, because a restart of the server
/// changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FindingIdentity {
    pub(super) finding: String,
    station: String,
    tier: String,
    netns: Option<String>,
    listener: Option<String>,
    edge: Option<String>,
}

impl FindingIdentity {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            finding: finding.id.clone(),
            station: finding.station.clone(),
            tier: finding.tier.clone(),
            netns: finding.at.netns.clone(),
            listener: finding.at.listener.clone(),
            edge: finding.at.edge.clone(),
        }
    }

    /// Refusals per second at a station, of the instances that suffered from them. If it is the finding's own station, only the instance at the finding's
    /// place counts; otherwise all instances count.
    pub(super) fn refusals(&self, diagnosis: &Diagnosis, station: &str) -> f64 {
        let is_here = |at: &At| at.netns == self.netns && at.listener == self.listener && at.edge == self.edge;
        let refusing = diagnosis.path.iter().filter(|read| read.station == station && read.state == StationState::Refusing);
        refusing.filter(|read| self.station != station || is_here(&read.at)).filter_map(|read| read.refused_per_s).sum()
    }

    /// True if it is a cause in this measurement.
    pub(super) fn is_cause(&self, diagnosis: &Diagnosis) -> bool {
        diagnosis.findings.iter().any(|finding| finding.role == Role::Cause && FindingIdentity::of(finding) == *self)
    }
}

/// Names a fall of goodput as far as it reaches: by goodput or by reach, whichever fell more.
fn less(before: &Diagnosis, after: &Diagnosis) -> Worse {
    let reached = |diagnosis| 1.0 - lost_share(diagnosis);
    let is_reach = reached(after) * goodput(before) < reached(before) * goodput(after);
    if is_reach { Worse::Reach } else { Worse::Goodput }
}

/// In what `after` is worse than `before` beyond noise; `None` if it is not.
pub(super) fn worse(before: &Diagnosis, after: &Diagnosis, objective: Objective) -> Option<Worse> {
    if fell(reaching(before), reaching(after)) {
        return Some(less(before, after));
    }
    let left = |most: u64| p99(after) > most as f64 && slower(before, after);
    if meets(before, objective) && objective.latency_us_p99.is_some_and(left) {
        return Some(Worse::Objective);
    }
    if rose(reaching(before), reaching(after)) {
        return None;
    }
    if failed_share(after) > failed_share(before) + FAILED_SHARE_NOISE {
        return Some(Worse::Failed);
    }
    let longer = meets(before, objective) && p99(after) > p99(before) * LATENCY_TIMES_MAX;
    (objective.latency_us_p99.is_none() && longer).then_some(Worse::Latency)
}

/// True if `after` is better than `before` beyond noise.
pub(super) fn is_gain(before: &Diagnosis, after: &Diagnosis, objective: Objective) -> bool {
    worse(before, after, objective).is_none() && worse(after, before, objective).is_some()
}

/// True if the signal that the remedy named improved. Refusals that were not there before cannot fall.
fn improved(before: &Diagnosis, after: &Diagnosis, place: &FindingIdentity, remedy: &Remedy) -> bool {
    match &remedy.signal {
        Signal::Refusals { station } => {
            let was = place.refusals(before, station);
            was > 0.0 && place.refusals(after, station) <= REFUSALS_LEFT_MAX * was
        }
        Signal::Goodput => rose(reaching(before), reaching(after)),
        Signal::LatencyP99 => faster(before, after),
    }
}

/// What the measurement after a change shows besides figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The finding that the change was made for is no longer a cause.
    pub(super) is_gone: bool,
    /// Another cause that can be acted on appeared, or refuses more than before.
    pub(super) has_next: bool,
}

/// Judges whether a change did what its remedy promised.
pub(super) fn judge(
    (before, after): (&Diagnosis, &Diagnosis),
    place: &FindingIdentity,
    remedy: &Remedy,
    objective: Objective,
    seen: Seen,
) -> Judgement {
    let judgement = |works: bool, id: &'static str| Judgement { works, explained: false, why: figures(id, before, after) };
    let loss = worse(before, after, objective);
    if after.verdict == Verdict::ClientLimited && matches!(loss, Some(Worse::Goodput | Worse::Reach)) {
        return judgement(false, "kept-no-client");
    }
    // If nothing counts what the station refuses, the signal is that the finding is gone.
    let is_uncounted = matches!(&remedy.signal, Signal::Refusals { station } if place.refusals(before, station) <= 0.0);
    let by_signal = improved(before, after, place, remedy);
    let is_improved = by_signal || (is_uncounted && seen.is_gone);
    let sign = if by_signal { Sign::Signal } else { Sign::Gone };
    match (is_improved, loss) {
        (true, None) => Judgement { works: true, explained: false, why: kept(sign, before, after) },
        (true, Some(loss)) if seen.has_next => Judgement { works: true, explained: true, why: kept_although(sign, loss, before, after) },
        (true, Some(Worse::Goodput)) => judgement(false, "kept-no-fell"),
        (true, Some(Worse::Reach)) => judgement(false, "kept-no-reach"),
        (true, Some(Worse::Failed)) => judgement(false, "kept-no-failed"),
        (true, Some(Worse::Latency)) => judgement(false, "kept-no-latency"),
        // The objective is goodput. A change that raises it is not thrown away because some refusals remain.
        (false, None) if rose(reaching(before), reaching(after)) => {
            judgement(true, if rose(goodput(before), goodput(after)) { "kept-yes-goodput" } else { "kept-yes-reach-alone" })
        }
        (false, None) if fails_less(before, after) => judgement(true, "kept-yes-gain"),
        // If goodput is the signal, the next cause can hide the gain completely. Then the only evidence left is that the finding is gone.
        (false, loss) if seen.is_gone && seen.has_next => {
            let hidden = || figures("kept-yes-gone", before, after).with("gain", gain(before, after));
            let why = loss.map_or_else(hidden, |loss| kept_although(Sign::Gone, loss, before, after));
            Judgement { works: true, explained: true, why }
        }
        (_, Some(Worse::Objective)) => judgement(false, "kept-no-objective"),
        (false, _) => judgement(false, "kept-no-signal"),
    }
}

/// What shows that a change did what it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// The signal that its remedy named improved.
    Signal,
    /// The finding that it was made for is no longer a cause.
    Gone,
}

impl Sign {
    /// Its name in messages.
    fn name(self) -> &'static str {
        match self {
            Sign::Signal => "signal",
            Sign::Gone => "gone",
        }
    }
}

/// What improved beyond noise and is the reason to keep a change, as messages name it; "none" if no figure did. A fall of goodput is never a reason, and
/// neither is a rise within noise.
fn gain(before: &Diagnosis, after: &Diagnosis) -> &'static str {
    match () {
        () if rose(goodput(before), goodput(after)) => "goodput",
        () if rose(reaching(before), reaching(after)) => "reach",
        () if fails_less(before, after) => "failed",
        () if faster(before, after) => "latency",
        // Fewer answers, but so much less of the clients' time is lost that they reach as far.
        () if fell(goodput(before), goodput(after)) && lost_share(after) < lost_share(before) => "reach",
        () => "none",
    }
}

/// Why a change is kept that did what it promised and cost nothing.
fn kept(sign: Sign, before: &Diagnosis, after: &Diagnosis) -> Message {
    figures("kept-yes", before, after).with("sign", sign.name()).with("gain", gain(before, after))
}

/// Why a change is kept that did what it promised although something got worse, which the next cause explains.
fn kept_although(sign: Sign, loss: Worse, before: &Diagnosis, after: &Diagnosis) -> Message {
    let loss = match loss {
        Worse::Goodput => "goodput",
        Worse::Reach => "reach",
        Worse::Failed => "failed",
        Worse::Objective | Worse::Latency => "latency",
    };
    figures("kept-yes-explained", before, after).with("sign", sign.name()).with("gain", gain(before, after)).with("loss", loss)
}

/// Judges whether an improvement is one: more goodput, no failures that were not there before, and a tail that the objective allows. Nothing forces an
/// improvement, so where no objective says how long a request may take, none may wait longer than before.
pub(super) fn judge_improvement(before: &Diagnosis, after: &Diagnosis, remedy: &Remedy, objective: Objective) -> Judgement {
    let judgement = |works: bool, id: &'static str| Judgement { works, explained: false, why: figures(id, before, after) };
    if !rose(reaching(before), reaching(after)) {
        let is_fall = after.verdict == Verdict::ClientLimited && fell(reaching(before), reaching(after));
        return judgement(false, if is_fall { "kept-no-client" } else { "kept-no-signal" });
    }
    if fails_anew(before, after) {
        return Judgement { works: false, explained: false, why: gave_up(before, after, remedy) };
    }
    if failed_share(after) > failed_share(before) + FAILED_SHARE_NOISE {
        return judgement(false, "kept-no-failed");
    }
    if objective.latency_us_p99.is_some_and(|most| p99(after) > most as f64) {
        return judgement(false, "kept-no-objective");
    }
    if objective.latency_us_p99.is_none() && slower(before, after) {
        return judgement(false, "kept-no-tail");
    }
    Judgement { works: true, explained: false, why: kept(Sign::Signal, before, after) }
}

/// Requests failed that did not fail before, in numbers, and why if the remedy says what it costs others.
pub(super) fn gave_up(before: &Diagnosis, after: &Diagnosis, remedy: &Remedy) -> Message {
    let ((was, of_before), (is, of_after)) = (failures(before), failures(after));
    let why = remedy.starved.as_ref().map(|starved| starved.why.as_str());
    figures(if why.is_some() { "kept-no-gave-up-why" } else { "kept-no-gave-up" }, before, after)
        .with("failed_before", was)
        .with("requests_before", of_before)
        .with("failed_after", is)
        .with("requests_after", of_after)
        .with("why", why.unwrap_or_default())
}

/// Why a change is needed whatever the figures are: in `without`, but not in all of `with`, its station refuses again or its finding is a cause again.
pub(super) fn is_back((with, without): (&Diagnosis, &Diagnosis), place: &FindingIdentity, remedy: &Remedy) -> Option<Need> {
    if let Signal::Refusals { station } = &remedy.signal {
        let rate =
            |diagnosis: &Diagnosis| (place.refusals(diagnosis, station), diagnosis.load.as_ref().map_or(0.0, |load| load.duration_s));
        if is_more_often(rate(with), rate(without)) {
            return Some(Need::Refusals(station.clone(), rate(without).0));
        }
    }
    (place.is_cause(without) && !place.is_cause(with)).then_some(Need::Finding)
}

/// What a measurement without a change says about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Missed {
    /// It is needed.
    Yes(Need),
    /// Only the figures say that it is needed. They are measured again, because two loads differ by more than the parts of one load.
    Perhaps(Need),
    /// Undecided: as much as it gave may be lost without it.
    Unsure,
    /// Undecided: it is not known by how much two measurements differ by chance.
    Unknown,
    /// It does nothing besides the others.
    No,
}

/// Judges whether a change is missed. `start` is the first measurement, `with` has all changes, `without` has all but this one, the newest last.
pub(super) fn missed(
    (start, with, without): (&Diagnosis, &Diagnosis, &[&Diagnosis]),
    (place, remedy, gain): (&FindingIdentity, &Remedy, Gain),
    objective: Objective,
) -> Missed {
    let Some((last, before)) = without.split_last() else { return Missed::Unknown };
    // A measurement without a load shows nothing. The safe choice then is the state that was measured.
    if last.load.is_none() {
        return Missed::Yes(Need::Finding);
    }
    let without_figures = without.iter().map(|one| Figures::of(one)).reduce(|all, one| Some(all?.joined(one?))).flatten();
    let both = Figures::of(with).zip(without_figures);
    let loss = both.as_ref().and_then(|(with, without)| noise::worse(with, without, objective)).map(|metric| match metric {
        Metric::Goodput => less(with, last),
        Metric::Failed => Worse::Failed,
        Metric::Latency if objective.latency_us_p99.is_some_and(|most| p99(last) > most as f64) => Worse::Objective,
        Metric::Latency => Worse::Latency,
    });
    let back = is_back((with, last), place, remedy).or_else(|| worse(start, last, objective).map(Need::Worse));
    match (back, loss.map(Need::Worse), both) {
        (Some(back), loss, _) => Missed::Yes(loss.unwrap_or(back)),
        (None, Some(loss), _) if before.is_empty() => Missed::Perhaps(loss),
        (None, Some(loss), _) => Missed::Yes(loss),
        (None, None, None) => Missed::Unknown,
        (None, None, Some((with, without))) if gain.may_be_lost(&with, &without).is_some() => Missed::Unsure,
        (None, None, Some(_)) => Missed::No,
    }
}

impl Need {
    /// The sentence for it.
    pub(super) fn message(&self, with: &Diagnosis, without: &Diagnosis) -> Message {
        match self {
            Need::Worse(Worse::Goodput) => figures("round-needed-goodput", with, without),
            Need::Worse(Worse::Reach) => figures("round-needed-reach", with, without),
            Need::Worse(Worse::Failed) => figures("round-needed-failed", with, without),
            Need::Worse(Worse::Objective) => figures("round-needed-objective", with, without),
            Need::Worse(Worse::Latency) => figures("round-needed-latency", with, without),
            Need::Finding => figures("round-needed-finding", with, without),
            Need::Refusals(station, refused) => {
                figures("round-needed-refusals", with, without).with("station", station.as_str()).with("refused", *refused)
            }
        }
    }
}

/// A message with the figures of two measurements, and the intervals of the first if they are known.
pub(super) fn figures(id: &'static str, before: &Diagnosis, after: &Diagnosis) -> Message {
    let known = Figures::of(before);
    let range = |figure: fn(&Figures) -> Range, value: f64| known.as_ref().map_or(Range { low: value, high: value }, figure);
    let spread = before.load.as_ref().and_then(|load| load.spread).filter(|_| known.is_some());
    let good = spread.map_or(Range { low: goodput(before), high: goodput(before) }, |spread| spread.goodput_rps.around(goodput(before)));
    let failed = range(|known| known.failed_share.range, failed_share(before));
    let latency = range(|known| known.latency_us_p99.range, p99(before));
    Message::new(id)
        .with("before", goodput(before))
        .with("low", good.low)
        .with("high", good.high)
        .with("after", goodput(after))
        .with("lost_before", lost_share(before) * 100.0)
        .with("lost_after", lost_share(after) * 100.0)
        .with("share_before", failed_share(before) * 100.0)
        .with("share_low", failed.low * 100.0)
        .with("share_high", failed.high * 100.0)
        .with("share_after", failed_share(after) * 100.0)
        .with("p99_before_ms", p99(before) / 1e3)
        .with("p99_low_ms", latency.low / 1e3)
        .with("p99_high_ms", latency.high / 1e3)
        .with("p99_after_ms", p99(after) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Observation;
    use crate::observation::load::{Errors, Percentiles};
    use crate::output::catalogue::Catalogue;
    use crate::output::diagnose::diagnose;
    use crate::output::report::LoadReport;

    fn measured(goodput_rps: f64, failed_share: f64, p99_ms: u64) -> Diagnosis {
        let latency_us = Percentiles { p99: 1_000 * p99_ms, ..Percentiles::default() };
        let load = LoadReport {
            requests: 1_000,
            duration_s: 1.0,
            throughput_rps: goodput_rps / (1.0 - failed_share),
            goodput_rps,
            status: [].into(),
            errors: Errors::default(),
            latency_us: Some(latency_us),
            lost_share: None,
            tls: None,
            spread: None,
        };
        Diagnosis { load: Some(load), ..diagnose(&Observation::default(), &Catalogue::english()) }
    }

    #[test]
    fn goodput_counts_as_far_as_it_reaches() {
        let lost = |lost_share: f64, mut diagnosis: Diagnosis| {
            diagnosis.load.as_mut().unwrap().lost_share = Some(lost_share);
            diagnosis
        };
        let (turned_away, served) = (lost(0.55, measured(9_174.0, 0.03, 2_010)), lost(0.0, measured(7_564.0, 0.0, 149)));
        let none = Objective::default();
        assert_eq!(worse(&turned_away, &served, none), None);
        assert_eq!(worse(&served, &turned_away, none), Some(Worse::Reach));
        assert_eq!(worse(&turned_away, &lost(0.0, measured(3_000.0, 0.0, 149)), none), Some(Worse::Goodput), "too dear");
    }

    /// What is told of a change whose figures went from the first to the second: requests/s, share that failed, p99 in ms, share of the time lost.
    fn told(sign: Sign, loss: Option<Worse>, before: (f64, f64, u64, f64), after: (f64, f64, u64, f64)) -> String {
        let measured = |(goodput_rps, failed, p99_ms, lost): (f64, f64, u64, f64)| {
            let mut diagnosis = measured(goodput_rps, failed, p99_ms);
            diagnosis.load.as_mut().unwrap().lost_share = Some(lost);
            diagnosis
        };
        let (before, after) = (measured(before), measured(after));
        assert_eq!(worse(&before, &after, Objective::default()), loss, "{sign:?}");
        let why = loss.map_or_else(|| kept(sign, &before, &after), |loss| kept_although(sign, loss, &before, &after));
        Catalogue::english().text(&why)
    }

    /// What improved is the reason. A fall of goodput stands in brackets, and so does a rise within noise.
    #[test]
    fn the_reason_of_a_kept_change_is_what_improved() {
        let usual = (1_000.0, 0.0, 500, 0.0);
        let failing = (1_000.0, 0.2, 500, 0.0);
        let rows = [
            (usual, (1_500.0, 0.0, 500, 0.0), "Its signal improved and goodput went from 1,000 to 1,500 requests/s."),
            (usual, (1_500.0, 0.0, 90, 0.0), "Its signal improved and goodput went from 1,000 to 1,500 requests/s."),
            (
                usual,
                (950.0, 0.0, 90, 0.0),
                "Its signal improved and p99 went from 500 to 90 ms (goodput 1,000 before, 950 requests/s after).",
            ),
            (
                usual,
                (1_020.0, 0.0, 90, 0.0),
                "Its signal improved and p99 went from 500 to 90 ms (goodput 1,000 before, 1,020 requests/s after).",
            ),
            (
                failing,
                (950.0, 0.0, 500, 0.0),
                "Its signal improved and the share of failed requests went from 20 % to 0 % (goodput 1,000 before, 950 requests/s after).",
            ),
            (
                failing,
                (950.0, 0.0, 90, 0.0),
                "Its signal improved and the share of failed requests went from 20 % to 0 % (goodput 1,000 before, 950 requests/s after).",
            ),
            (
                usual,
                (950.0, 0.0, 500, 0.0),
                "Its signal improved and nothing got worse beyond noise (goodput 1,000 before, 950 requests/s after).",
            ),
            (
                (1_000.0, 0.0, 500, 0.5),
                (800.0, 0.0, 90, 0.0),
                "Its signal improved and more clients are served: requests that failed or took too long cost 50 % of the clients' time before and 0 % \
                 after (goodput 1,000 before, 800 requests/s after).",
            ),
            // It reaches as far: p99 says more than the little that was lost.
            (
                (1_000.0, 0.0, 500, 0.02),
                (890.0, 0.0, 90, 0.0),
                "Its signal improved and p99 went from 500 to 90 ms (goodput 1,000 before, 890 requests/s after).",
            ),
            (
                (1_000.0, 0.0, 500, 0.02),
                (890.0, 0.0, 500, 0.0),
                "Its signal improved and more clients are served: requests that failed or took too long cost 2 % of the clients' time before and 0 % \
                 after (goodput 1,000 before, 890 requests/s after).",
            ),
        ];
        for (before, after, sentence) in rows {
            assert_eq!(told(Sign::Signal, None, before, after), sentence);
            let gone = sentence.replace("Its signal improved", "Its cause is gone");
            assert_eq!(told(Sign::Gone, None, before, after), gone);
        }
    }

    /// What the next cause costs is a sentence of its own after what improved.
    #[test]
    fn what_the_next_cause_costs_is_no_reason_to_keep_a_change() {
        let usual = (1_000.0, 0.0, 500, 0.0);
        let goodput = "The next cause now holds goodput back: 1,000 before, 800 requests/s after.";
        let failed = "The next cause now makes more requests fail: 0 % before, 30 % after.";
        let latency = "The next cause now makes requests wait: p99 500 ms before, 2,000 ms after.";
        let reach = "The next cause now costs more of the clients' time: 0 % of it was lost before, 60 % after.";
        let rows = [
            (Worse::Goodput, usual, (800.0, 0.0, 500, 0.0), format!("Its signal improved. {goodput}")),
            (Worse::Goodput, usual, (800.0, 0.0, 90, 0.0), format!("Its signal improved and p99 went from 500 to 90 ms. {goodput}")),
            (
                Worse::Goodput,
                (1_000.0, 0.2, 500, 0.0),
                (800.0, 0.0, 90, 0.0),
                format!("Its signal improved and the share of failed requests went from 20 % to 0 %. {goodput}"),
            ),
            (Worse::Failed, usual, (1_000.0, 0.3, 500, 0.0), format!("Its signal improved. {failed}")),
            (Worse::Failed, usual, (1_000.0, 0.3, 90, 0.0), format!("Its signal improved and p99 went from 500 to 90 ms. {failed}")),
            (Worse::Latency, usual, (1_000.0, 0.0, 2_000, 0.0), format!("Its signal improved. {latency}")),
            (
                Worse::Reach,
                usual,
                (1_500.0, 0.0, 500, 0.6),
                format!("Its signal improved and goodput went from 1,000 to 1,500 requests/s. {reach}"),
            ),
            (Worse::Reach, usual, (1_000.0, 0.0, 500, 0.6), format!("Its signal improved. {reach}")),
        ];
        for (loss, before, after, sentence) in rows {
            assert_eq!(told(Sign::Signal, Some(loss), before, after), sentence);
            let gone = sentence.replace("Its signal improved", "Its cause is gone");
            assert_eq!(told(Sign::Gone, Some(loss), before, after), gone);
        }
    }

    #[test]
    fn every_sentence_of_the_rounds_is_whole() {
        let words = Catalogue::english();
        let ids = include_str!("../../locales/en/rounds.ftl").lines().filter_map(|line| line.split_once(" = ")).map(|(id, _)| id);
        let mut seen = 0;
        for id in ids.filter(|id| !id.starts_with('#')) {
            let figures =
                ["before", "after", "lost_before", "lost_after", "share_before", "share_after", "p99_before_ms", "p99_after_ms", "refused"];
            let counts = ["failed_before", "requests_before", "failed_after", "requests_after"];
            let ranges = ["low", "high", "share_low", "share_high", "p99_low_ms", "p99_high_ms"];
            let message = figures.into_iter().chain(counts).chain(ranges).fold(Message::new(id), |message, name| message.with(name, 12.5));
            let names = ["remedy", "station", "why", "sign", "gain", "loss"];
            let text = words.text(&names.into_iter().fold(message, |message, name| message.with(name, "name")));
            assert!(!text.starts_with('[') && !text.contains('{'), "{id}: {text}");
            seen += 1;
        }
        assert!(seen >= 40, "{seen}");
    }
}
