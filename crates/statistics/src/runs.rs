//! The runs test (A. Wald and J. Wolfowitz, 1940): whether two kinds of events alternate as they do by chance, or come in few long runs.

/// The chance of at most so many runs in a row of so many hits and misses in any order. One if there is only one kind.
pub fn few_runs(hits: u64, misses: u64, runs: u64) -> f64 {
    if hits == 0 || misses == 0 {
        return 1.0;
    }
    let all = ln_choose(hits + misses, hits);
    let chance = |runs: u64| {
        let of = |hit_runs: u64, miss_runs: u64| {
            if hit_runs == 0 || miss_runs == 0 || hit_runs > hits || miss_runs > misses {
                return 0.0;
            }
            (ln_choose(hits - 1, hit_runs - 1) + ln_choose(misses - 1, miss_runs - 1) - all).exp()
        };
        match runs % 2 {
            0 => 2.0 * of(runs / 2, runs / 2),
            _ => of(runs / 2, runs / 2 + 1) + of(runs / 2 + 1, runs / 2),
        }
    };
    (2..=runs.min(2 * hits.min(misses) + 1)).map(chance).sum::<f64>().min(1.0)
}

/// The logarithm of the number of ways to choose some of these.
fn ln_choose(of: u64, some: u64) -> f64 {
    (0..some.min(of - some)).map(|n| ((of - n) as f64 / (n + 1) as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_that_of_all_orders() {
        // Of the ten orders of two hits and three misses two have two runs, three have three, four have four and one has five.
        for (runs, chance) in [(1, 0.0), (2, 0.2), (3, 0.5), (4, 0.9), (5, 1.0), (9, 1.0)] {
            assert!((few_runs(2, 3, runs) - chance).abs() < 1e-9, "{runs}: {}", few_runs(2, 3, runs));
        }
        // Swed and Eisenhart 1943: ten of each have six runs or fewer in 1.9 % of all orders, seven or fewer in 5.1 %.
        assert!((few_runs(10, 10, 6) - 0.0185).abs() < 2e-4 && (few_runs(10, 10, 7) - 0.0513).abs() < 2e-4);
    }

    #[test]
    fn one_kind_is_no_order_and_many_are_counted() {
        assert_eq!((few_runs(0, 9, 1), few_runs(9, 0, 1)), (1.0, 1.0));
        assert!(few_runs(100_000, 100_000, 2) < 1e-9 && few_runs(1, 99_999, 3) > 0.99);
    }
}
