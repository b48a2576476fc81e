//! Requests that share the cores: throughput of a closed network of one delay and one queue, by mean value analysis.

/// Most requests under way that are iterated one by one. With more, the queue at the cores decides alone.
const REQUESTS_MAX: u32 = 100_000;

/// Requests a second with at most `requests` under way. A request alone takes `alone_s` seconds, `cost_s` of them on one of `cores` cores.
///
/// Mean value analysis (Reiser & Lavenberg 1980) of a delay and one queue. Several cores count as one faster core plus a delay (Seidmann, Schweitzer &
/// Shalev-Oren 1987). `variation` is the squared coefficient of variation of the CPU time that requests take at once: 1 for exponential times, where the
/// analysis is exact, and more if they come in bursts (the residual time of a busy server, Pollaczek & Khinchine).
pub(super) fn throughput(requests: f64, alone_s: f64, cores: f64, cost_s: f64, variation: f64) -> f64 {
    let cores = cores.max(1.0);
    let turn_s = cost_s / cores;
    let delay_s = (alone_s - turn_s).max(0.0);
    let (mut queue, mut throughput) = (0.0, 0.0);
    for n in 1..=(requests.min(f64::from(REQUESTS_MAX)) as u32).max(1) {
        let utilization = (throughput * turn_s).min(1.0);
        let ahead = queue + utilization * (variation - 1.0) / 2.0;
        // At most all other requests can be ahead of one.
        let at_cores_s = turn_s * (1.0 + ahead.min(f64::from(n - 1)));
        throughput = f64::from(n) / (delay_s + at_cores_s);
        queue = throughput * at_cores_s;
    }
    throughput
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.01
    }

    #[test]
    fn far_from_the_knee_it_is_the_lower_of_the_two_limits() {
        assert!(near(throughput(20.0, 0.020, 1.0, 0.000_2, 1.0), 1000.0 * 0.999), "20 requests of 20 ms");
        assert!(near(throughput(1000.0, 0.020, 1.0, 0.000_2, 1.0), 5000.0), "a busy core");
        assert!(near(throughput(1000.0, 0.020, 4.0, 0.000_2, 1.0), 20_000.0), "four busy cores");
        assert!(near(throughput(1.0, 0.020, 4.0, 0.000_2, 1.0), 50.0), "one alone");
    }

    #[test]
    fn at_the_knee_it_is_below_both() {
        let at_knee = throughput(100.0, 0.020, 1.0, 0.000_2, 1.0);
        assert!(at_knee < 5000.0 && at_knee > 4000.0, "{at_knee}");
        let in_bursts = throughput(100.0, 0.020, 1.0, 0.000_2, 8.0);
        assert!(in_bursts < at_knee && in_bursts > 3500.0, "{in_bursts}");
    }

    proptest::proptest! {
        #[test]
        fn it_lies_between_the_bounds_of_operational_analysis(n in 1_u32..2000, delay_us in 0_u32..100_000, cost_us in 1_u32..5_000, cores in 1_u32..64, variation in 1.0..20.0) {
            let (n, delay_s, cost_s, cores) = (f64::from(n), f64::from(delay_us) / 1e6, f64::from(cost_us) / 1e6, f64::from(cores));
            let found = throughput(n, delay_s + cost_s, cores, cost_s, variation);
            proptest::prop_assert!(found <= (n / (delay_s + cost_s)).min(cores / cost_s) * (1.0 + 1e-9));
            proptest::prop_assert!(found >= n / (delay_s + cost_s + n * cost_s / cores) * (1.0 - 1e-9));
        }
    }
}
