//! Whether requests come more evenly than by chance. Clients that wait for their answers ask again at once, so the ages of their requests show the times of
//! the answers. If something lets requests pass one by one, the ages are evenly spread. If each request waits for a time or an event of its own, the ages are
//! random or clustered.

/// Fewest ages in a sample.
const AGES_MIN: usize = 8;
/// Chance that independent requests pass for even: one side of a 95 % interval.
const CHANCE: f64 = 0.025;

/// True if half of the samples have ages that are more evenly spread than by chance.
pub(crate) fn are_even(samples: &[Vec<u64>], tick_ms: u64) -> bool {
    let mut found: Vec<f64> = samples.iter().filter_map(|ages| watson(ages, tick_ms)).collect();
    found.sort_by(f64::total_cmp);
    found.get(found.len() / 2).is_some_and(|median| *median < lowest())
}

/// Watson's U² of the youngest three quarters of one sample's ages (G. S. Watson, "Goodness-of-fit tests on a circle", 1961), with Stephens' correction for
/// small numbers (1970). Random arrivals have a uniform density up to the age at which the first are answered, independent of the next age.
fn watson(ages_ms: &[u64], tick_ms: u64) -> Option<f64> {
    let mut ages = ages_ms.to_vec();
    ages.sort_unstable();
    let end = *ages.get(ages.len() * 3 / 4)?;
    let young: Vec<u64> = ages.into_iter().take_while(|age| *age < end).collect();
    let number = young.len() as f64;
    if young.len() < AGES_MIN {
        return None;
    }
    // Requests of the same tick arrived at different moments of it: they count as evenly spread.
    let place = |(rank, age): (usize, &u64)| {
        let (first, after) = (young.partition_point(|other| other < age), young.partition_point(|other| other <= age));
        let within = ((rank - first) as f64 + 0.5) / (after - first) as f64;
        (*age as f64 + within * tick_ms as f64).min(end as f64) / end as f64
    };
    let places: Vec<f64> = young.iter().enumerate().map(place).collect();
    let squares: f64 = places.iter().enumerate().map(|(rank, place)| (place - (rank as f64 + 0.5) / number).powi(2)).sum();
    let mean = places.iter().sum::<f64>() / number;
    let statistic = squares + 1.0 / (12.0 * number) - number * (mean - 0.5).powi(2);
    Some((statistic - 0.1 / number + 0.1 / number.powi(2)) * (1.0 + 0.8 / number))
}

/// The value of U² that chance undercuts with probability [`CHANCE`]. Pi times its root has Kolmogorov's distribution; one term of its lower tail is enough:
/// sqrt(2 pi) / k * exp(-pi² / (8 k²)).
fn lowest() -> f64 {
    use std::f64::consts::PI;
    let (mut least, mut most) = (0.1_f64, 1.0_f64);
    for _ in 0..60 {
        let k = f64::midpoint(least, most);
        let below = (2.0 * PI).sqrt() / k * (-PI * PI / (8.0 * k * k)).exp();
        if below < CHANCE { least = k } else { most = k }
    }
    (least / PI).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from 0 up to 1 with a fixed seed (Knuth's MMIX).
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn answers_that_pass_one_by_one_are_even() {
        // A hundred clients, four at a time, each for 40 ms: in step with each other, and out of step.
        let in_step: Vec<u64> = (0..100).map(|n| n / 4 * 40).collect();
        let out_of_step: Vec<u64> = (0..100).map(|n| n * 10 / 4 * 4).collect();
        assert!(are_even(&[in_step], 4) && are_even(&[out_of_step], 4));
    }

    #[test]
    fn requests_that_wait_for_themselves_are_not_even() {
        let mut state = 7;
        let mut passed = 0;
        for _ in 0..1_000 {
            let ages: Vec<u64> = (0..60).map(|_| (random(&mut state) * 500.0) as u64 * 4).collect();
            passed += u32::from(are_even(&[ages], 4));
        }
        assert!((5..50).contains(&passed), "25 of 1,000 at random, and twice as many by chance: {passed}");
        let together: Vec<u64> = (0..100).map(|n| 400 + n / 50 * 4).collect();
        assert!(!are_even(&[together], 4), "all began at once");
        let nearly: Vec<u64> = (0..40).map(|n| if n < 12 { 1_396 } else { 1_400 }).collect();
        assert!(!are_even(&[nearly], 4), "all began in the same two ticks");
        let growing: Vec<u64> = (0..100).map(|n| n * n / 10).collect();
        assert!(!are_even(&[growing], 4), "they come ever faster");
    }

    #[test]
    fn few_ages_prove_nothing() {
        assert!(!are_even(&[], 4) && !are_even(&[vec![0, 10, 20, 30]], 4) && !are_even(&[vec![8; 50]], 4));
    }
}
