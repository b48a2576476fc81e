//! The standard normal distribution: density, tail and quantile, to about twelve digits.

use std::f64::consts::TAU;

/// From here on the continued fraction of the tail converges faster than the series around zero.
const TAIL_FROM: f64 = 3.0;

/// Further out than this the tail is below 1e-300, and nothing is found there.
const FARTHEST: f64 = 37.0;

pub(crate) fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / TAU.sqrt()
}

/// The chance of a value above `z`.
pub(crate) fn tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - tail(-z);
    }
    if z > FARTHEST {
        return 0.0;
    }
    if z >= TAIL_FROM {
        // Laplace's continued fraction: density / (z + 1/(z + 2/(z + 3/...))).
        let below = (1..=100).rev().fold(z, |below, step| z + f64::from(step) / below);
        return density(z) / below;
    }
    // Marsaglia 2004: the series z + z^3/3 + z^5/(3*5) + ... times the density is the share between 0 and z.
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > sum * 1e-17 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 - density(z) * sum
}

/// The `z` above which a value lies with this chance; infinite for 0 and 1.
pub(crate) fn quantile_above(chance: f64) -> f64 {
    if chance <= 0.0 {
        return f64::INFINITY;
    }
    if chance > 0.5 {
        return if chance >= 1.0 { f64::NEG_INFINITY } else { -quantile_above(1.0 - chance) };
    }
    let (mut low, mut high) = (0.0, FARTHEST);
    while high - low > 1e-13 * (1.0 + high) {
        let middle = (low + high) / 2.0;
        if tail(middle) > chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_and_quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, tables 26.1 and 26.2.
        for (z, chance) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (2.999_999, 1.349_902_5e-3),
            (3.0, 1.349_898_031_630_1e-3),
            (5.0, 2.866_515_718_79e-7),
        ] {
            assert!((tail(z) / chance - 1.0).abs() < 1e-7, "{z}: {}", tail(z));
            assert!((tail(-z) - (1.0 - chance)).abs() < 1e-9);
            assert!((quantile_above(chance) - z).abs() < 1e-6, "{chance}: {}", quantile_above(chance));
        }
        assert!((quantile_above(0.025) - 1.959_963_984_540_054).abs() < 1e-11);
        assert_eq!((quantile_above(0.0), quantile_above(1.0), tail(50.0), tail(-50.0)), (f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.0));
    }

    #[test]
    fn both_ways_to_the_tail_meet() {
        assert!((tail(TAIL_FROM - 1e-12) / tail(TAIL_FROM) - 1.0).abs() < 1e-10);
    }
}
