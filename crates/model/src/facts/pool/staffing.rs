//! How many workers a rate of requests takes: those in service at once (Little's law), and a reserve. `size` and the remedies advise by this one function.

/// Part of the time of a request that it may wait and still counts as CPU-bound: less than the difference between two equal runs.
const WAIT_SHARE_MIN: f64 = crate::facts::harm::NOISE_SHARE;

/// A rate of requests, and what each takes at a tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Staffing {
    /// Requests a second: those that come, or those that the cores have time for, whichever is less.
    pub rate_rps: f64,
    /// Time that a request holds a worker while no other request is under way, seconds.
    pub held_s: f64,
    /// The part of it on a core, seconds.
    pub cpu_s: f64,
}

impl Staffing {
    /// The rest of the time: waiting for a disk, another server, a lock or a timer, seconds.
    pub fn wait_s(&self) -> f64 {
        (self.held_s - self.cpu_s).max(0.0)
    }

    /// True if a request hardly waits.
    pub fn is_cpu_bound(&self) -> bool {
        self.wait_s() < WAIT_SHARE_MIN * self.held_s
    }

    /// Requests in service at once (Little's law).
    pub fn at_once(&self) -> f64 {
        self.rate_rps * self.held_s
    }

    /// Workers beyond that number, which scatters: the requests that wait at once arrive independently, so their number has a standard deviation of its square
    /// root (square-root staffing; Halfin and Whitt 1981). Requests that compute are as many as there are cores.
    pub fn reserve(&self) -> f64 {
        if self.is_cpu_bound() { 0.0 } else { (self.rate_rps * self.wait_s()).max(0.0).sqrt() }
    }

    /// The number of workers, at least one.
    pub fn workers(&self) -> f64 {
        (self.at_once() + self.reserve()).round().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demand_is_the_rate_times_the_service_time_and_a_reserve() {
        let of = |rate_rps: f64, held_ms: f64, cpu_ms: f64| Staffing { rate_rps, held_s: held_ms / 1e3, cpu_s: cpu_ms / 1e3 };
        // 20/s x 250 ms = 5, and the square root of 5 in reserve.
        assert_eq!(of(20.0, 250.0, 1.0).workers(), 7.0);
        // Two cores that compute 620 ms for each request are as busy as they can be with two workers.
        assert_eq!(of(2.0 / 0.62, 620.0, 620.0).workers(), 2.0);
        assert_eq!(of(2.0 / 0.62, 620.0, 590.0).reserve(), 0.0);
        assert_eq!(of(0.001, 1.0, 0.1).workers(), 1.0);
    }
}
