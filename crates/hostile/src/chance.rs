//! Reproducible random numbers.

/// A sequence of pseudo-random numbers (SplitMix64, Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of one case of a kind of input.
    pub fn new(seed: u64, kind: &str, case: u64) -> Self {
        let named = kind.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut chance = Self(named ^ case.wrapping_mul(0xa076_1d64_78bd_642f));
        chance.number();
        chance
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() >> 1).unwrap_or(0).checked_rem(bound).unwrap_or(0)
    }

    /// True once in this many times on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several; `None` if there are none.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// A random byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[7]
    }
}
