//! Decides whether one measurement is worse than another beyond chance: by goodput, failures and p99, each with its interval. There is no threshold here. The
//! intervals come from the loads themselves (`crate::facts::spread`) and from repeated measurements of the same state.

use super::service::{Objective, failed_share, fails_less, faster, p99, reaching, rose};
use crate::facts::spread::Range;
use crate::output::report::Diagnosis;

/// A figure with its 95 % interval. For a state that was measured twice: the mean, and an interval that covers both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) range: Range,
}

/// The figures that a state is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    /// Goodput as far as it reaches ([`LoadReport::reaching_rps`]).
    pub(super) reaching_rps: Figure,
    /// Share of the requests that ended, 0 to 1.
    pub(super) failed_share: Figure,
    pub(super) latency_us_p99: Figure,
}

/// Names one of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Goodput,
    Failed,
    Latency,
}

impl Figure {
    fn new(value: f64, range: Range) -> Self {
        Self { value, range: range.around(value) }
    }

    fn joined(self, other: Self) -> Self {
        let range = Range { low: self.range.low.min(other.range.low), high: self.range.high.max(other.range.high) };
        Self { value: (self.value + other.value) / 2.0, range }
    }

    /// True if this interval lies completely below the other.
    fn is_below(&self, other: &Self) -> bool {
        self.range.high < other.range.low
    }
}

impl Figures {
    /// The figures of a measurement; `None` if it does not give the interval of each.
    pub(super) fn of(diagnosis: &Diagnosis) -> Option<Self> {
        let load = diagnosis.load.as_ref()?;
        let spread = load.spread?;
        Some(Self {
            reaching_rps: Figure::new(load.reaching_rps(), spread.goodput_rps.times(1.0 - load.lost_share.unwrap_or(0.0))),
            failed_share: Figure::new(load.failed_share()?, spread.failed_share),
            latency_us_p99: Figure::new(load.p99_us()? as f64, spread.latency_us_p99?),
        })
    }

    /// Joins two measurements of the same state. Their difference is chance, however narrow each interval is.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            reaching_rps: self.reaching_rps.joined(other.reaching_rps),
            failed_share: self.failed_share.joined(other.failed_share),
            latency_us_p99: self.latency_us_p99.joined(other.latency_us_p99),
        }
    }
}

/// In what `without` is worse than `with` beyond chance. More goodput makes up for failures and a longer p99, but not for a p99 beyond the objective.
pub(super) fn worse(with: &Figures, without: &Figures, objective: Objective) -> Option<Metric> {
    if without.reaching_rps.is_below(&with.reaching_rps) {
        return Some(Metric::Goodput);
    }
    let is_slower = with.latency_us_p99.is_below(&without.latency_us_p99);
    let is_over = |most: u64| without.latency_us_p99.value > most as f64;
    if with.reaching_rps.is_below(&without.reaching_rps) {
        return (is_slower && objective.latency_us_p99.is_some_and(is_over)).then_some(Metric::Latency);
    }
    if with.failed_share.is_below(&without.failed_share) {
        return Some(Metric::Failed);
    }
    is_slower.then_some(Metric::Latency)
}

/// What a change gave when it was made: the figures that changed beyond chance, or what the chain kept it for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Gain {
    /// Goodput before as a share of that after.
    goodput: Option<f64>,
    /// By how much the share of failed requests fell.
    failed: Option<f64>,
    /// p99 before as a multiple of that after.
    latency: Option<f64>,
}

impl Gain {
    pub(super) fn of(before: &Diagnosis, after: &Diagnosis) -> Self {
        let both = Figures::of(before).zip(Figures::of(after));
        let is_clear = |better: fn(&Figures, &Figures) -> bool| both.as_ref().is_some_and(|(before, after)| better(before, after));
        let goodput_rose =
            rose(reaching(before), reaching(after)) || is_clear(|before, after| before.reaching_rps.is_below(&after.reaching_rps));
        let failed_fell = fails_less(before, after) || is_clear(|before, after| after.failed_share.is_below(&before.failed_share));
        let latency_fell = faster(before, after) || is_clear(|before, after| after.latency_us_p99.is_below(&before.latency_us_p99));
        Self {
            goodput: goodput_rose.then(|| reaching(before) / reaching(after)),
            failed: failed_fell.then(|| failed_share(before) - failed_share(after)),
            latency: (latency_fell && p99(after) > 0.0).then(|| p99(before) / p99(after)),
        }
    }

    /// The figure in which, by the intervals, as much as the change gave may be lost without it. Then nobody can say that the change does nothing.
    pub(super) fn may_be_lost(&self, with: &Figures, without: &Figures) -> Option<Metric> {
        let goodput = self.goodput.is_some_and(|share| without.reaching_rps.range.low <= with.reaching_rps.value * share);
        let failed = self.failed.is_some_and(|fall| without.failed_share.range.high >= with.failed_share.value + fall);
        let latency = self.latency.is_some_and(|times| without.latency_us_p99.range.high >= with.latency_us_p99.value * times);
        let metrics = [(goodput, Metric::Goodput), (failed, Metric::Failed), (latency, Metric::Latency)];
        metrics.into_iter().find(|(is_lost, _)| *is_lost).map(|(_, metric)| metric)
    }
}

/// True if events are more frequent beyond chance in the second of two measurements. Each is given as a rate per second and its duration in seconds, or as a
/// share and the number that it is a share of. The variance of the difference of two counts is the sum of both counts (Poisson). Bursts vary more, so a change may stay that could have gone.
pub(super) fn is_more_often((before_per_s, before_s): (f64, f64), (after_per_s, after_s): (f64, f64)) -> bool {
    /// The normal distribution's two-sided 95 %.
    const Z_95: f64 = 1.959_964;
    let variance = |per_s: f64, seconds: f64| if seconds > 0.0 { per_s / seconds } else { 0.0 };
    after_per_s > before_per_s
        && after_per_s - before_per_s > Z_95 * (variance(before_per_s, before_s) + variance(after_per_s, after_s)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(low: f64, value: f64, high: f64) -> Figure {
        Figure { value, range: Range { low, high } }
    }

    fn figures(goodput: [f64; 3], failed: [f64; 3], p99: [f64; 3]) -> Figures {
        let of = |[low, value, high]: [f64; 3]| figure(low, value, high);
        Figures { reaching_rps: of(goodput), failed_share: of(failed), latency_us_p99: of(p99) }
    }

    const NONE: Objective = Objective { latency_us_p99: None, timeout_us: None };

    #[test]
    fn each_figure_decides_by_its_own_interval() {
        let with = figures([980.0, 1000.0, 1020.0], [0.0, 0.0, 0.001], [95.0, 100.0, 105.0]);
        let [goodput, failed, p99] = [[970.0, 990.0, 1010.0], [0.0, 0.0005, 0.002], [90.0, 103.0, 110.0]];
        assert_eq!(worse(&with, &figures(goodput, failed, p99), NONE), None);
        assert_eq!(worse(&with, &figures([930.0, 950.0, 970.0], failed, p99), NONE), Some(Metric::Goodput));
        assert_eq!(worse(&with, &figures(goodput, [0.002, 0.003, 0.004], p99), NONE), Some(Metric::Failed));
        assert_eq!(worse(&with, &figures(goodput, failed, [110.0, 115.0, 120.0]), NONE), Some(Metric::Latency));
        let more = [1100.0, 1200.0, 1300.0];
        let slower = figures(more, [0.002, 0.003, 0.004], [110.0, 115.0, 120.0]);
        assert_eq!(worse(&with, &slower, NONE), None, "more goodput makes up for it");
        assert_eq!(worse(&with, &slower, Objective { latency_us_p99: Some(110), timeout_us: None }), Some(Metric::Latency));
    }

    #[test]
    fn a_state_that_was_measured_twice_is_known_as_badly_as_the_two_differ() {
        let twice = figures([980.0, 1000.0, 1020.0], [0.0; 3], [1.0; 3]).joined(figures([880.0, 900.0, 920.0], [0.0; 3], [1.0; 3]));
        assert_eq!(twice.reaching_rps, figure(880.0, 950.0, 1020.0));
    }

    #[test]
    fn a_gain_that_may_be_lost_is_not_called_idle() {
        let gain = Gain { goodput: Some(0.9), failed: None, latency: None };
        let with = figures([950.0, 1000.0, 1050.0], [0.0; 3], [1.0; 3]);
        let without = |low: f64| figures([low, low + 50.0, low + 100.0], [0.0; 3], [1.0; 3]);
        assert_eq!(gain.may_be_lost(&with, &without(950.0)), None);
        assert_eq!(gain.may_be_lost(&with, &without(890.0)), Some(Metric::Goodput));
        assert_eq!(Gain::default().may_be_lost(&with, &without(0.0)), None, "what was kept for another reason has nothing to lose here");
    }

    #[test]
    fn counts_differ_by_chance_as_much_as_their_root() {
        assert!(is_more_often((0.0, 10.0), (1.0, 10.0)), "ten where there were none");
        assert!(!is_more_often((0.0, 10.0), (0.3, 10.0)), "three may be chance");
        assert!(!is_more_often((100.0, 10.0), (105.0, 10.0)) && is_more_often((100.0, 10.0), (120.0, 10.0)));
    }
}
