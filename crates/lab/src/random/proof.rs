//! Whether what was injected did harm: runs with it against runs without, by turns. Nothing is judged here but the lab's own fault.

use chokepoint_statistics::median;
use serde::Serialize;

/// Share of the goodput whose loss hurts.
const GOODPUT_LOST: f64 = 0.10;
/// Share of the requests whose failure hurts.
const FAILED: f64 = 0.01;
/// Times the p99 that hurts; a doubled p99 of a few milliseconds is nobody's harm.
const LATENCY_TIMES: f64 = 1.5;
/// Microseconds by which the p99 must be longer to hurt.
const LATENCY_US: f64 = 20_000.0;
/// What part of a harm is still one that may be told.
const LITTLE: f64 = 0.25;
/// What part of a harm must stay where the best run with the fault is held against the worst without.
const WORST_CASE: f64 = 0.5;

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Good answers a second, as far as they reach: times the share of the clients' time that was not lost.
    pub goodput_rps: f64,
    /// Requests without a good answer, as a share of all.
    pub failed_share: f64,
    /// 99 % were answered within, microseconds.
    pub latency_us_p99: f64,
    /// 99.9 % were answered within, microseconds.
    pub latency_us_p999: f64,
}

/// What a fault did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// Nothing that can be told from noise.
    None,
    /// Little, or what noise hides: a diagnosis may tell of it or not.
    Little,
    /// Harm that must be found.
    Hurt,
}

/// A comparison of runs with and without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// What it came to.
    pub harm: Harm,
    /// True where the runs differ by enough to hurt, but no more than they differ among themselves: more runs may tell.
    pub unclear: bool,
    /// The runs with what was injected.
    pub with: Vec<Figures>,
    /// The runs without.
    pub without: Vec<Figures>,
}

/// One measure's harm: 1 is as much as hurts, 0 none.
#[derive(Clone, Copy)]
struct Size {
    /// Between the medians.
    middle: f64,
    /// Between the best run with and the worst without.
    least: f64,
    /// True where the runs with and without do not overlap and lie further apart than those without do among themselves.
    is_clear: bool,
}

/// Judges runs of both kinds; of none nothing can be said.
pub fn judge(with: Vec<Figures>, without: Vec<Figures>) -> Proof {
    let sizes = [
        size(&with, &without, |run| -run.goodput_rps, |with, without| share_lost(-with, -without) / GOODPUT_LOST),
        size(&with, &without, |run| run.failed_share, |with, without| (with - without) / FAILED),
        size(&with, &without, |run| run.latency_us_p99, longer),
        // A tail that only one in a thousand meets is told and does not hurt.
        size(&with, &without, |run| run.latency_us_p999, |with, without| longer(with, without).min(1.0 - f64::EPSILON)),
    ];
    let hurts = |size: &Size| size.middle >= 1.0 && size.is_clear && size.least >= WORST_CASE;
    let sizes: Vec<Size> = sizes.into_iter().flatten().collect();
    let unclear = !sizes.iter().any(hurts) && sizes.iter().any(|size| size.middle >= 1.0);
    let little = |size: &Size| size.middle >= LITTLE && size.is_clear && size.least > 0.0;
    let harm = match () {
        () if sizes.iter().any(hurts) => Harm::Hurt,
        () if unclear || sizes.iter().any(little) => Harm::Little,
        () => Harm::None,
    };
    Proof { harm, unclear, with, without }
}

/// `value` is worse where it is larger.
fn size(with: &[Figures], without: &[Figures], value: fn(&Figures) -> f64, harm: fn(f64, f64) -> f64) -> Option<Size> {
    let values = |runs: &[Figures]| runs.iter().map(value).collect::<Vec<f64>>();
    let (with, without) = (values(with), values(without));
    let low = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
    let high = |values: &[f64]| values.iter().copied().max_by(f64::total_cmp);
    let (best_with, worst_without) = (low(&with)?, high(&without)?);
    let noise = worst_without - low(&without)?;
    Some(Size {
        middle: harm(median(&with)?, median(&without)?),
        least: harm(best_with, worst_without),
        is_clear: best_with - worst_without > noise,
    })
}

/// Share of the goodput that is lost; none where there was none to lose.
fn share_lost(with: f64, without: f64) -> f64 {
    if without > 0.0 { 1.0 - with / without } else { 0.0 }
}

/// How far a time is both so many times and so much longer as hurts.
fn longer(with: f64, without: f64) -> f64 {
    let times = if without > 0.0 { (with / without - 1.0) / (LATENCY_TIMES - 1.0) } else { 0.0 };
    times.min((with - without) / LATENCY_US)
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
    fn lost_goodput_hurts_beyond_noise_only() {
        let without = goodput(&[1000.0, 990.0]);
        assert_eq!(harm(&goodput(&[500.0, 520.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[0.0, 0.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[880.0, 885.0]), &without), (Harm::Hurt, false));
        assert_eq!(harm(&goodput(&[950.0, 955.0]), &without), (Harm::Little, false));
        assert_eq!(harm(&goodput(&[985.0, 1003.0]), &without), (Harm::None, false));
        assert_eq!(harm(&goodput(&[1500.0, 1600.0]), &without), (Harm::None, false), "more is no harm");
        // The runs without differ by more than those with lie below them.
        assert_eq!(harm(&goodput(&[700.0, 720.0]), &goodput(&[1000.0, 750.0])), (Harm::Little, true));
        assert_eq!(harm(&goodput(&[500.0, 1000.0]), &without), (Harm::Little, true));
        assert_eq!(harm(&[], &without), (Harm::None, false));
        assert_eq!(harm(&goodput(&[0.0]), &goodput(&[0.0])), (Harm::None, false));
    }

    #[test]
    fn failures_hurt_from_one_in_a_hundred() {
        let failed = |failed_share: f64| [Figures { failed_share, ..WELL }; 2];
        assert_eq!(harm(&failed(0.02), &failed(0.0)).0, Harm::Hurt);
        assert_eq!(harm(&failed(0.005), &failed(0.0)).0, Harm::Little);
        assert_eq!(harm(&failed(0.001), &failed(0.0)).0, Harm::None);
        assert_eq!(harm(&failed(0.02), &failed(0.02)).0, Harm::None, "what fails anyway is not the fault's");
    }

    #[test]
    fn a_tail_hurts_where_it_is_longer_by_much_and_not_for_one_in_a_thousand() {
        let p99 = |latency_us_p99: f64| [Figures { latency_us_p99, ..WELL }; 2];
        assert_eq!(harm(&p99(1_000_000.0), &p99(10_000.0)).0, Harm::Hurt);
        assert_eq!(harm(&p99(40_000.0), &p99(10_000.0)).0, Harm::Hurt);
        assert_eq!(harm(&p99(22_000.0), &p99(10_000.0)).0, Harm::Little);
        assert_eq!(harm(&p99(12_000.0), &p99(10_000.0)).0, Harm::None);
        assert_eq!(harm(&p99(560_000.0), &p99(500_000.0)).0, Harm::None, "a tenth more");
        let p999 = |latency_us_p999: f64| [Figures { latency_us_p999, ..WELL }; 2];
        assert_eq!(harm(&p999(1_000_000.0), &p999(20_000.0)), (Harm::Little, false));
    }
}
