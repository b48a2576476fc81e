//! Whether injected faults do harm: compares runs with them and without. It judges the faults, not the diagnosis.

use chokepoint_statistics::median;
use serde::Serialize;

/// Share of the goodput whose loss does harm.
const GOODPUT_LOST: f64 = 0.10;
/// Share of the requests whose failure does harm.
const FAILED: f64 = 0.01;
/// Factor by which the p99 must grow to do harm.
const LATENCY_TIMES: f64 = 1.5;
/// Microseconds by which the p99 must grow to do harm: a doubled p99 of a few milliseconds does none.
const LATENCY_US: f64 = 20_000.0;
/// Part of a harm from which a diagnosis may name it.
const LITTLE: f64 = 0.25;
/// Part of a harm that must remain between the best run with the fault and the worst run without.
const WORST_CASE: f64 = 0.5;

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Good answers a second, times the share of the clients' time that was not lost.
    pub(crate) goodput_rps: f64,
    /// Requests without a good answer, as a share of all.
    pub(crate) failed_share: f64,
    /// 99 % of the answers came within, microseconds.
    pub(crate) latency_us_p99: f64,
    /// 99.9 % of the answers came within, microseconds.
    pub(crate) latency_us_p999: f64,
}

/// The harm of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Harm {
    /// None beyond noise.
    None,
    /// Little, or hidden by noise: a diagnosis may name it or not.
    Little,
    /// So much that a diagnosis must find it.
    Hurt,
}

/// A comparison of runs with and without faults.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Proof {
    /// The result.
    pub(crate) harm: Harm,
    /// True where the difference would do harm but does not exceed the noise: more runs may decide.
    pub(crate) unclear: bool,
    /// The runs with faults.
    pub(crate) with: Vec<Figures>,
    /// The runs without faults.
    pub(crate) without: Vec<Figures>,
}

/// The difference in one measure: 1 is enough to do harm, 0 is none.
#[derive(Clone, Copy)]
struct Difference {
    /// Between the medians.
    middle: f64,
    /// Between the best run with faults and the worst without.
    least: f64,
    /// True where both kinds of runs do not overlap and are further apart than the runs without faults are among themselves.
    is_clear: bool,
}

/// Compares runs with and without faults. Without runs the result is no harm.
pub(crate) fn judge(with: Vec<Figures>, without: Vec<Figures>) -> Proof {
    let differences = [
        difference(&with, &without, |run| -run.goodput_rps, |with, without| share_lost(-with, -without) / GOODPUT_LOST),
        difference(&with, &without, |run| run.failed_share, |with, without| (with - without) / FAILED),
        difference(&with, &without, |run| run.latency_us_p99, longer),
        // A p99.9 alone may be named but never does harm.
        difference(&with, &without, |run| run.latency_us_p999, |with, without| longer(with, without).min(1.0 - f64::EPSILON)),
    ];
    let hurts = |one: &Difference| one.middle >= 1.0 && one.is_clear && one.least >= WORST_CASE;
    let differences: Vec<Difference> = differences.into_iter().flatten().collect();
    let unclear = !differences.iter().any(hurts) && differences.iter().any(|one| one.middle >= 1.0);
    let little = |one: &Difference| one.middle >= LITTLE && one.is_clear && one.least > 0.0;
    let harm = match () {
        () if differences.iter().any(hurts) => Harm::Hurt,
        () if unclear || differences.iter().any(little) => Harm::Little,
        () => Harm::None,
    };
    Proof { harm, unclear, with, without }
}

/// The difference of a value that is worse the larger it is.
fn difference(with: &[Figures], without: &[Figures], value: fn(&Figures) -> f64, harm: fn(f64, f64) -> f64) -> Option<Difference> {
    let values = |runs: &[Figures]| runs.iter().map(value).collect::<Vec<f64>>();
    let (with, without) = (values(with), values(without));
    let low = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
    let high = |values: &[f64]| values.iter().copied().max_by(f64::total_cmp);
    let (best_with, worst_without) = (low(&with)?, high(&without)?);
    let noise = worst_without - low(&without)?;
    Some(Difference {
        middle: harm(median(&with)?, median(&without)?),
        least: harm(best_with, worst_without),
        is_clear: best_with - worst_without > noise,
    })
}

/// Share of the goodput that is lost; zero where there was none.
fn share_lost(with: f64, without: f64) -> f64 {
    if without > 0.0 { 1.0 - with / without } else { 0.0 }
}

/// How close a longer time is to doing harm, by factor and by difference, whichever is less.
fn longer(with: f64, without: f64) -> f64 {
    let times = if without > 0.0 { (with / without - 1.0) / (LATENCY_TIMES - 1.0) } else { 0.0 };
    times.min((with - without) / LATENCY_US)
}

/// What was measured of a draw's faults.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Proven {
    /// All faults against none; nothing where no fault was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) together: Option<Proof>,
    /// Each of two faults against none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) alone: Vec<Proof>,
    /// Both faults against the other one alone, for each of two.
    #[serde(rename = "beside", skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside_other: Vec<Proof>,
    /// Figures of the run that was diagnosed: of its own load, or of the background load it watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suffered: Option<Figures>,
    /// The harm in that run, against the runs without faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diagnosed: Option<Harm>,
}

impl Proven {
    pub(crate) fn is_unclear(&self) -> bool {
        self.together.iter().chain(&self.alone).chain(&self.beside_other).any(|proof| proof.unclear)
    }

    /// The harm of each fault: alone or beside the other, whichever is greater. Where the diagnosed run suffered, each fault does at least a little harm.
    pub(crate) fn harms(&self) -> Vec<Harm> {
        let two = self.alone.iter().zip(&self.beside_other).map(|(alone, beside)| alone.harm.max(beside.harm));
        let harms: Vec<Harm> = if self.alone.is_empty() { self.together.iter().map(|proof| proof.harm).collect() } else { two.collect() };
        let least = if self.diagnosed == Some(Harm::Hurt) { Harm::Little } else { Harm::None };
        harms.into_iter().map(|harm| harm.max(least)).collect()
    }

    /// The harm of all faults. A fault that did no harm in the diagnosed run need not be named.
    pub(crate) fn together(&self) -> Harm {
        let proven = self.together.as_ref().map_or(Harm::None, |proof| proof.harm);
        proven.min(self.diagnosed.unwrap_or(Harm::Hurt).max(Harm::Little))
    }
}

/// Compares the runs with no fault, with all, and with each of two alone, in this order.
pub(crate) fn compare(runs: &[Vec<Figures>]) -> Proven {
    let against = |with: usize, without: usize| judge(runs[with].clone(), runs[without].clone());
    let alone = (2..runs.len()).map(|at| against(at, 0)).collect();
    // The first of two faults is the difference between both and the second alone.
    let beside_other = if runs.len() == 4 { vec![against(1, 3), against(1, 2)] } else { Vec::new() };
    Proven { together: Some(against(1, 0)), alone, beside_other, suffered: None, diagnosed: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Figures = Figures { goodput_rps: 1000.0, failed_share: 0.0, latency_us_p99: 10_000.0, latency_us_p999: 20_000.0 };

    fn harm(with: &[Figures], without: &[Figures]) -> (Harm, bool) {
        let proof = judge(with.to_vec(), without.to_vec());
        (proof.harm, proof.unclear)
    }

    fn goodput(rates: &[f64]) -> Vec<Figures> {
        rates.iter().map(|&goodput_rps| Figures { goodput_rps, ..WELL }).collect()
    }

    #[test]
    fn lost_goodput_does_harm_only_beyond_noise() {
        let without = goodput(&[1000.0, 990.0]);
        assert_eq!(harm(&goodput(&[500.0, 520.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[0.0, 0.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[880.0, 885.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[950.0, 955.0]), &without), (Harm::Little, false));
        assert_eq!(harm(&goodput(&[985.0, 1003.0]), &without), (Harm::None, false));
        assert_eq!(harm(&goodput(&[1500.0, 1600.0]), &without), (Harm::None, false), "more is no harm");
        // The runs without faults differ by more than the distance to those with faults.
        assert_eq!(harm(&goodput(&[700.0, 720.0]), &goodput(&[1000.0, 750.0])), (Harm::Little, true));
        assert_eq!(harm(&goodput(&[500.0, 1000.0]), &without), (Harm::Little, true));
        assert_eq!(harm(&[], &without), (Harm::None, false));
        assert_eq!(harm(&goodput(&[0.0]), &goodput(&[0.0])), (Harm::None, false));
    }

    #[test]
    fn one_failure_in_a_hundred_does_harm() {
        let failed = |failed_share: f64| [Figures { failed_share, ..WELL }; 2];
        assert_eq!(harm(&failed(0.02), &failed(0.0)).0, Harm::Hurt);
        assert_eq!(harm(&failed(0.005), &failed(0.0)).0, Harm::Little);
        assert_eq!(harm(&failed(0.001), &failed(0.0)).0, Harm::None);
        assert_eq!(harm(&failed(0.02), &failed(0.02)).0, Harm::None, "what fails anyway is not the fault's");
    }

    #[test]
    fn a_much_longer_p99_does_harm_and_a_longer_p999_does_not() {
        let p99 = |latency_us_p99: f64| [Figures { latency_us_p99, ..WELL }; 2];
        assert_eq!(harm(&p99(1_000_000.0), &p99(10_000.0)).0, Harm::Hurt);
        assert_eq!(harm(&p99(40_000.0), &p99(10_000.0)).0, Harm::Hurt);
        assert_eq!(harm(&p99(22_000.0), &p99(10_000.0)).0, Harm::Little);
        assert_eq!(harm(&p99(12_000.0), &p99(10_000.0)).0, Harm::None);
        assert_eq!(harm(&p99(560_000.0), &p99(500_000.0)).0, Harm::None, "a tenth more");
        let p999 = |latency_us_p999: f64| [Figures { latency_us_p999, ..WELL }; 2];
        assert_eq!(harm(&p999(1_000_000.0), &p999(20_000.0)), (Harm::Little, false));
    }

    fn runs(goodput: &[f64]) -> Vec<Vec<Figures>> {
        let run = |goodput_rps: &f64| Figures { goodput_rps: *goodput_rps, failed_share: 0.0, latency_us_p99: 1e4, latency_us_p999: 1e4 };
        goodput.iter().map(|rate| vec![run(rate), run(rate)]).collect()
    }

    #[test]
    fn each_fault_is_judged_alone_and_beside_the_other() {
        // None, all, the first alone, the second alone: the first hides the second.
        let proven = compare(&runs(&[1000.0, 100.0, 100.0, 500.0]));
        assert_eq!((proven.together(), proven.harms()), (Harm::Hurt, vec![Harm::Hurt, Harm::Hurt]));
        // Only both together do harm.
        let proven = compare(&runs(&[1000.0, 500.0, 1000.0, 1000.0]));
        assert_eq!(proven.harms(), [Harm::Hurt, Harm::Hurt]);
        // The second is harmless.
        let proven = compare(&runs(&[1000.0, 500.0, 500.0, 1000.0]));
        assert_eq!(proven.harms(), [Harm::Hurt, Harm::None]);
        let proven = compare(&runs(&[1000.0, 500.0]));
        assert_eq!((proven.harms(), proven.alone.len(), proven.beside_other.len()), (vec![Harm::Hurt], 0, 0));
    }

    #[test]
    fn the_harm_in_the_diagnosed_run_counts_too() {
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
