//! Random numbers from a seed by whole-number arithmetic alone, so that a draw is the same on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014): every seed, zero included, gives a good sequence.
pub(crate) struct Rng(u64);

/// The step of the sequence: 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Tries for a number within a range before its lower end is taken. A range covers at least a quarter of the octaves it touches.
const TRIES_MAX: u32 = 64;

impl Rng {
    /// The sequence of one draw. Neighbouring seeds and indices give unrelated sequences.
    pub(crate) fn new(seed: u32, index: u32) -> Self {
        let mut outer = Self((u64::from(seed) << 32) | u64::from(index));
        Self(outer.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`; zero where that is zero.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // The bias of the upper half of the product is below one in 2^32.
        let product = (self.next() >> 32) * u64::from(bound);
        u32::try_from(product >> 32).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True with this probability in percent.
    pub(crate) fn percent(&mut self, probability: u32) -> bool {
        self.below(100) < probability
    }

    /// One element, nothing of an empty slice.
    pub(crate) fn one<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        let at = self.below(u32::try_from(of.len()).unwrap_or(u32::MAX));
        of.get(at as usize)
    }

    /// A number from `low` (at least 1) to `high`, each octave equally likely: limits and loads differ by factors.
    pub(crate) fn octaves(&mut self, low: u32, high: u32) -> u32 {
        let low = low.max(1);
        let high = high.max(low);
        for _ in 0..TRIES_MAX {
            let begin = 1_u32 << self.between(low.ilog2(), high.ilog2());
            let number = begin + self.below(begin);
            if (low..=high).contains(&number) {
                return number;
            }
        }
        low
    }

    /// A number between two percentages of `base`, each octave equally likely; at least `least`.
    pub(crate) fn share_of(&mut self, base: u32, low_percent: u32, high_percent: u32, least: u32) -> u32 {
        let part = |percent: u32| u32::try_from(u64::from(base) * u64::from(percent) / 100).unwrap_or(u32::MAX);
        let (low, high) = (part(low_percent), part(high_percent));
        self.octaves(low.min(u32::MAX / 2), high.min(u32::MAX / 2)).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_equals_the_published_one() {
        // The reference implementation's first numbers from the state 1234567.
        let mut rng = Rng(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431];
        assert_eq!([rng.next(), rng.next(), rng.next(), rng.next()], expected);
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut rng = Rng::new(0, 0);
        for (low, high) in [(1, 1), (3, 4), (5, 9), (1, 1000), (700, 1100)] {
            let drawn: Vec<u32> = (0..20_000).map(|_| rng.octaves(low, high)).collect();
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&low), Some(&high)));
        }
        assert_eq!((rng.octaves(0, 0), rng.octaves(9, 2), rng.below(0), rng.one::<u8>(&[])), (1, 9, 0, None));
        assert!((0..1000).all(|_| (2..=3).contains(&rng.between(2, 3))));
        assert!((0..1000).all(|_| rng.share_of(10, 1, 200, 2) >= 2));
        assert!(rng.octaves(1, u32::MAX) >= 1 && rng.share_of(u32::MAX, 100, 400, 1) > 0);
    }

    #[test]
    fn neighbouring_seeds_give_unrelated_sequences() {
        let first: std::collections::BTreeSet<u64> = (0..100).map(|index| Rng::new(1, index).next()).collect();
        let second: std::collections::BTreeSet<u64> = (0..100).map(|index| Rng::new(2, index).next()).collect();
        assert_eq!((first.len(), first.intersection(&second).count()), (100, 0));
    }
}
