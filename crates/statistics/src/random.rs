//! A small deterministic generator, SplitMix64 (G. Steele, D. Lea, C. Flood, 2014): the same seed gives the same numbers on every machine.

/// A stream of pseudo-random numbers. It is for resampling and for simulated trials, never for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// 64 bits, each equally likely.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number above 0 and below 1, uniform.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// An index below `length`, uniform but for a bias of less than `length` / 2^64; 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        ((u128::from(self.bits()) * length as u128) >> 64) as usize
    }

    /// A standard normal number (G. Box, M. Muller, 1958; one of the pair is used).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A chi-squared number with so many degrees of freedom: the sum of that many squared normal numbers.
    pub fn chi_squared(&mut self, degrees: usize) -> f64 {
        (0..degrees).map(|_| self.normal().powi(2)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference() {
        // The first values of the reference implementation (S. Vigna, splitmix64.c) for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            (random.bits(), random.bits(), random.bits()),
            (6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423)
        );
    }

    #[test]
    fn the_numbers_have_the_moments_of_their_distributions() {
        let (mut random, count) = (Random::new(1), 100_000);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let uniform: Vec<f64> = (0..count).map(|_| random.uniform()).collect();
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let squared: Vec<f64> = normal.iter().map(|value| value * value).collect();
        let chi: Vec<f64> = (0..count).map(|_| random.chi_squared(5)).collect();
        let index: Vec<f64> = (0..count).map(|_| random.index(7) as f64).collect();
        assert!(uniform.iter().all(|value| *value > 0.0 && *value < 1.0) && index.iter().all(|value| *value < 7.0));
        assert!((mean(&uniform) - 0.5).abs() < 0.005 && mean(&normal).abs() < 0.015 && (mean(&squared) - 1.0).abs() < 0.02);
        assert!((mean(&chi) - 5.0).abs() < 0.05 && (mean(&index) - 3.0).abs() < 0.03);
        assert_eq!(Random::new(1).index(0), 0);
    }
}
