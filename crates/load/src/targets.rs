//! Several requests to one server, in turn or drawn at random.

/// What to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// The requests; at least one.
    pub targets: Vec<Target>,
    /// Their order.
    pub order: Order,
}

/// One of the requests; everything else is as in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Method.
    pub method: String,
    /// Request target in origin form.
    pub path_and_query: String,
}

/// The order of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In order, starting again after the last. Exact over all threads in an open loop. In a closed loop each thread of n takes every nth target of its own
    /// sequence.
    InTurn,
    /// Drawn with equal chances. The request's number and the seed determine the draw, so the same seed draws the same.
    Drawn {
        /// The seed.
        seed: u64,
    },
}

impl Targets {
    /// Index of the target for the request with this number (counted over all threads).
    pub(crate) fn pick(&self, number: u64) -> u32 {
        let count = self.targets.len() as u64;
        (match self.order {
            Order::InTurn => number % count,
            // The high bits of a product with the count: even to 2^-44 with a million targets.
            Order::Drawn { seed } => ((u128::from(mix(seed, number)) * u128::from(count)) >> 64) as u64,
        }) as u32
    }
}

/// The nth output of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(seed: u64, number: u64) -> u64 {
    let state = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(count: usize, order: Order) -> Targets {
        let target = |number: usize| Target { method: "GET".to_owned(), path_and_query: format!("/{number}") };
        Targets { targets: (0..count).map(target).collect(), order }
    }

    #[test]
    fn the_generator_matches_the_published_one() {
        // The first outputs for the seed 1234567 of the reference implementation.
        let outputs: Vec<u64> = (0..3).map(|number| mix(1_234_567, number)).collect();
        assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn targets_in_turn_repeat_in_order() {
        let targets = targets(3, Order::InTurn);
        assert_eq!((0..7).map(|number| targets.pick(number)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn draws_are_even_and_depend_on_the_seed() {
        let draw = |seed: u64| (0..100_000).map(|number| targets(10, Order::Drawn { seed }).pick(number)).collect::<Vec<_>>();
        let (one, again, other) = (draw(7), draw(7), draw(8));
        assert!(one == again && one != other);
        for target in 0..10 {
            let times = one.iter().filter(|drawn| **drawn == target).count();
            // 10,000 expected, a standard deviation of 95.
            assert!((9_500..=10_500).contains(&times), "target {target}: {times}");
        }
    }
}
