//! How long things last, from the ages of those that are there at random moments.
//!
//! Long ones are met more often, and each is met at a random point of its life: of something that lasts `s`, an age below `s` is equally likely. So the density of ages is
//! P(duration > age) / mean duration, which only falls (renewal theory; Cox 1962). The distribution that makes the seen ages most likely without further assumptions is a
//! mixture over a grid of durations (Laird 1978), found by expectation and maximization (Dempster, Laird and Rubin 1977); for exact ages it is Grenander's estimator (1956).

/// Neighbouring durations of the grid differ by this factor: the finest difference that the result can show.
const STEP: f64 = 1.04;
/// Rounds of the algorithm. The likelihood flattens out long before.
const ROUNDS: usize = 300;
/// Weights below this share of all are left out.
const NEGLIGIBLE: f64 = 1e-9;

/// Ages that lie in an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ages {
    /// The lower end of the interval, at least 0.
    pub from: f64,
    /// The upper end, above the lower one.
    pub to: f64,
    /// How many were seen.
    pub count: f64,
}

/// A distribution of durations.
#[derive(Debug, Clone, PartialEq)]
pub struct Lasting {
    /// Durations in rising order, each with the density that it adds to the ages below it: its share of all, divided by the mean duration.
    densities: Vec<(f64, f64)>,
}

impl Lasting {
    /// The most likely distribution. `None` without ages, or if an interval is none.
    pub fn of(ages: &[Ages]) -> Option<Self> {
        let are_intervals = ages.iter().all(|ages| ages.from >= 0.0 && ages.to > ages.from && ages.to.is_finite() && ages.count >= 0.0);
        let total: f64 = ages.iter().map(|ages| ages.count).sum();
        if !are_intervals || total <= 0.0 {
            return None;
        }
        let longest = ages.iter().map(|ages| ages.to).fold(0.0, f64::max);
        let shortest = ages.iter().map(|ages| ages.to - ages.from).fold(f64::INFINITY, f64::min).max(longest * 1e-5);
        let points = ((longest / shortest).ln() / STEP.ln()).ceil() as usize + 1;
        let grid: Vec<f64> = (0..points).map(|n| longest / STEP.powi((points - 1 - n) as i32)).collect();
        // The chance that something of this duration is met in this interval of ages.
        let chance = |duration: f64, ages: &Ages| (ages.to.min(duration) - ages.from.min(duration)) / duration;
        let chances: Vec<Vec<f64>> = ages.iter().map(|ages| grid.iter().map(|duration| chance(*duration, ages)).collect()).collect();
        // Of those that are met: longer ones are met more often.
        let mut met = vec![1.0 / grid.len() as f64; grid.len()];
        for _ in 0..ROUNDS {
            let mut next = vec![0.0; grid.len()];
            for (ages, chances) in ages.iter().zip(&chances) {
                let likely: f64 = met.iter().zip(chances).map(|(met, chance)| met * chance).sum();
                if likely > 0.0 {
                    let part = ages.count / total / likely;
                    next.iter_mut().zip(&met).zip(chances).for_each(|((next, met), chance)| *next += part * met * chance);
                }
            }
            met = next;
        }
        let densities: Vec<(f64, f64)> =
            grid.into_iter().zip(met).filter(|(_, met)| *met > NEGLIGIBLE).map(|(duration, met)| (duration, met / duration)).collect();
        (!densities.is_empty()).then_some(Self { densities })
    }

    /// The duration that this share (0 to 1) does not exceed, if the mean duration is known from elsewhere (Little's law): those that last longer than `a` are the
    /// density of ages at `a`, times the mean. Ages near zero, which tell the mean, are the least certain part of what ages tell.
    pub fn percentile(&self, share: f64, mean: f64) -> f64 {
        let wanted = (1.0 - share) / mean.max(f64::MIN_POSITIVE);
        let mut above = 0.0;
        let reached = self.densities.iter().rev().find(|(_, density)| {
            above += density;
            above >= wanted
        });
        reached.or(self.densities.first()).map_or(0.0, |(duration, _)| *duration)
    }

    /// The mean duration, from the ages alone.
    pub fn mean(&self) -> f64 {
        1.0 / self.densities.iter().map(|(_, density)| density).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    type Draw = fn(&mut Random) -> f64;

    /// Ages of so many things that are met at random moments, rounded down to a tick.
    fn ages(number: usize, tick: f64, random: &mut Random, duration: Draw) -> Vec<Ages> {
        let longest = (0..20_000).map(|_| duration(random)).fold(0.0, f64::max);
        let mut counts = std::collections::BTreeMap::<u64, f64>::new();
        let mut met = 0;
        while met < number {
            let lasts = duration(random);
            // Met in proportion to its duration.
            if random.uniform() * longest < lasts {
                *counts.entry((random.uniform() * lasts / tick) as u64).or_default() += 1.0;
                met += 1;
            }
        }
        counts.into_iter().map(|(n, count)| Ages { from: n as f64 * tick, to: (n + 1) as f64 * tick, count }).collect()
    }

    #[test]
    fn percentiles_of_several_distributions_are_found() {
        let exponential = |random: &mut Random| -50.0 * random.uniform().ln();
        let constant = |_: &mut Random| 50.0;
        let uniform = |random: &mut Random| 20.0 + 60.0 * random.uniform();
        let lognormal = |random: &mut Random| 40.0 * (0.5 * random.normal()).exp();
        let two = |random: &mut Random| if random.uniform() < 0.7 { 20.0 } else { 200.0 };
        let all: [(&str, Draw, f64, f64); 5] = [
            ("exponential", exponential, 34.66, 50.0),
            ("constant", constant, 50.0, 50.0),
            ("uniform", uniform, 50.0, 50.0),
            ("lognormal", lognormal, 40.0, 45.33),
            ("two", two, 20.0, 74.0),
        ];
        for (name, duration, p50, mean) in all {
            let mut errors: Vec<(f64, f64)> = (1..=20)
                .map(|seed| {
                    let found = Lasting::of(&ages(15_000, 4.0, &mut Random::new(seed), duration)).unwrap();
                    ((found.percentile(0.5, mean) / p50 - 1.0).abs(), (found.mean() / mean - 1.0).abs())
                })
                .collect();
            errors.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(errors[17].0 < 0.1, "{name}: p50 {errors:?}");
            errors.sort_by(|a, b| a.1.total_cmp(&b.1));
            assert!(errors[17].1 < 0.1, "{name}: mean {errors:?}");
        }
    }

    #[test]
    fn what_is_no_interval_of_ages_is_refused() {
        let of = |from, to, count| Lasting::of(&[Ages { from, to, count }]);
        for (from, to, count) in
            [(1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 1.0, 1.0), (0.0, f64::INFINITY, 1.0), (f64::NAN, 1.0, 1.0)]
        {
            assert_eq!(of(from, to, count), None, "{from} {to} {count}");
        }
        assert_eq!(Lasting::of(&[]), None);
        let one = of(0.0, 4.0, 7.0).unwrap();
        assert!(one.percentile(0.5, 3.0) <= 4.0 && one.percentile(1.0, 3.0) <= 4.0);
    }
}
