//! Several things to ask one server for, in turn or drawn at random.

use crate::plan::{Plan, PlanError};

/// Most targets.
const TARGETS_MAX: usize = 1_000_000;
/// Bytes of all prepared requests together.
const PREPARED_BYTES_MAX: usize = 256 << 20;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// The requests; at least one.
    pub targets: Vec<Target>,
    /// How they follow one another.
    pub order: Order,
}

/// One of the requests; all else of it is as the plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Method.
    pub method: String,
    /// Request target in origin form.
    pub path_and_query: String,
}

/// How targets follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One behind the other, and again from the first. Exact over all threads in an open loop; in a closed loop each thread of n takes every
    /// n-th of its own row.
    InTurn,
    /// Each drawn from all with equal chances. The number of a request and the seed decide, so that the same seed draws the same.
    Drawn {
        /// The seed.
        seed: u64,
    },
}

impl Targets {
    /// The plan of each target.
    pub(crate) fn plans<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Plan> + 'a {
        let rest = Plan { options: crate::Options { targets: None, ..plan.options.clone() }, ..plan.clone() };
        self.targets.iter().map(move |target| Plan {
            method: target.method.clone(),
            path_and_query: target.path_and_query.clone(),
            ..rest.clone()
        })
    }

    /// Checks each of them.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), PlanError> {
        if self.targets.is_empty() {
            return Err(PlanError::Zero("the number of targets"));
        }
        if self.targets.len() > TARGETS_MAX {
            return Err(PlanError::TooLarge { what: "the number of targets", max: TARGETS_MAX.to_string() });
        }
        let headers: usize = plan.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let copies = 1 + usize::from(plan.options.requests_per_connection.is_some());
        let mut bytes = 0usize;
        for (place, plan) in self.plans(plan).enumerate() {
            plan.check_target().map_err(|error| PlanError::Target(place + 1, Box::new(error)))?;
            // A head has a few lines of ours besides; FastCGI tells the path three times.
            bytes = bytes.saturating_add(copies * (plan.body.len() + headers + 3 * plan.path_and_query.len() + 256));
            if bytes > PREPARED_BYTES_MAX {
                return Err(PlanError::TooLarge { what: "the requests of all targets together", max: "256 MiB".to_owned() });
            }
        }
        Ok(())
    }

    /// Place of the target of the request with this number among those of all threads.
    pub(crate) fn pick(&self, number: u64) -> u32 {
        let count = self.targets.len() as u64;
        (match self.order {
            Order::InTurn => number % count,
            // The high bits of a product with the count: even but for 2^-44 with a million targets.
            Order::Drawn { seed } => ((u128::from(mix(seed, number)) * u128::from(count)) >> 64) as u64,
        }) as u32
    }
}

/// The number-th output of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
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
    fn the_generator_is_the_published_one() {
        // The first outputs for the seed 1234567 of the reference implementation.
        let outputs: Vec<u64> = (0..3).map(|number| mix(1_234_567, number)).collect();
        assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn in_turn_each_has_its_turn() {
        let targets = targets(3, Order::InTurn);
        assert_eq!((0..7).map(|number| targets.pick(number)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn draws_are_even_and_follow_from_the_seed() {
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
