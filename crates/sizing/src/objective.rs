//! The objective: which rates held it, and which rate holds it for traffic that arrives at random.

use chokepoint_model::harm::FAILED_SHARE_NOISE;

use crate::interval::Interval;
use crate::step::Step;

/// The p99 of the response time that is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Microseconds.
    pub p99_us: u64,
    /// True if the user gave it.
    pub given: bool,
}

impl Objective {
    /// True if a step of a rate held it: the server kept up with the rate, no more requests failed than by chance, and the p99 was below.
    pub fn is_held(&self, step: &Step) -> bool {
        let kept_up = step.rate_per_s().is_none_or(|rate| step.goodput_rps.high >= rate);
        kept_up && self.is_quick(step) && step.failed_share <= FAILED_SHARE_NOISE
    }

    /// True if the p99 of a step was below.
    pub fn is_quick(&self, step: &Step) -> bool {
        step.goodput_rps.value > 0.0 && step.latency_us.p99 < self.p99_us
    }
}

/// The highest rate that held the objective, and the lowest above it that did not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bracket {
    /// Requests per second.
    pub held: Option<f64>,
    /// Requests per second.
    pub missed: Option<f64>,
}

impl Bracket {
    /// Of all usable open-loop steps. A rate that was held although a lower one was missed does not count: the lower one is what an operator can rely on.
    pub fn of(steps: &[Step], objective: Objective) -> Self {
        let tried = || steps.iter().filter(|step| step.is_usable()).filter_map(|step| Some((step.rate_per_s()?, step)));
        let missed = tried().filter(|(_, step)| !objective.is_held(step)).map(|(rate, _)| rate).reduce(f64::min);
        let below = |rate: &f64| missed.is_none_or(|missed| *rate < missed);
        let held = tried().filter(|(_, step)| objective.is_held(step)).map(|(rate, _)| rate).filter(below).reduce(f64::max);
        Self { held, missed }
    }

    /// The rate at the objective: held and measured, at most below the lowest that was missed.
    pub fn capacity(&self, steps: &[Step]) -> Option<Interval> {
        let held = self.held?;
        let step = steps.iter().rfind(|step| step.rate_per_s() == Some(held))?;
        let high = self.missed.unwrap_or(held).max(held);
        Some(Interval { value: held, low: step.goodput_rps.low.min(held), high })
    }
}

/// Probability that a request has to wait in a queue of Poisson arrivals before this many servers (Erlang C). `offered`: arrivals per second times service
/// time, in erlangs.
pub fn erlang_c(servers: u32, offered: f64) -> f64 {
    if offered >= f64::from(servers) {
        return 1.0;
    }
    // The recursion of Erlang B is stable for any number of servers (R. Cooper, Introduction to Queueing Theory, 1981).
    let blocked = (1..=servers).fold(1.0, |blocked: f64, n| offered * blocked / (f64::from(n) + offered * blocked));
    let load = offered / f64::from(servers);
    blocked / (1.0 - load + load * blocked)
}

/// The highest rate at which Poisson arrivals keep the objective: at most one request in a hundred waits longer than the objective leaves beyond the time
/// that a request alone takes. The server passes `most_rps` with as many requests in service at once as Little's law gives for `alone_s`. The pauses between
/// the requests of a test are equal; those of independent clients are not, and their bursts queue. `None` if a single request already misses it.
pub fn random_arrivals_rps(most_rps: f64, alone_s: f64, alone_s_p99: f64, objective_s: f64) -> Option<f64> {
    /// What the p99 leaves.
    const LATE_SHARE: f64 = 0.01;
    /// Bounds the time of the computation.
    const SERVERS_MAX: f64 = 100_000.0;
    let patience_s = objective_s - alone_s_p99;
    if patience_s <= 0.0 || most_rps <= 0.0 || alone_s <= 0.0 {
        return None;
    }
    let servers = (most_rps * alone_s).round().clamp(1.0, SERVERS_MAX) as u32;
    let each_s = f64::from(servers) / most_rps;
    let late = |rate: f64| erlang_c(servers, rate * each_s) * (-(most_rps - rate) * patience_s).exp();
    let (mut low, mut high) = (0.0, most_rps);
    // Halving forty times is beyond the resolution of any measurement.
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if late(middle) <= LATE_SHARE { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlang_c_is_that_of_the_tables() {
        // One server: the probability of waiting is its utilisation. Two servers at 1 erlang: 1/3. 10 servers at 8 erlangs: 0.409.
        for (servers, offered, wanted) in [(1, 0.5, 0.5), (2, 1.0, 1.0 / 3.0), (10, 8.0, 0.4092), (100, 90.0, 0.2170)] {
            assert!((erlang_c(servers, offered) - wanted).abs() < 1e-3, "{servers} {offered}: {}", erlang_c(servers, offered));
        }
        assert!((erlang_c(3, 3.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn random_arrivals_of_one_server_keep_the_closed_form() {
        // M/M/1: P(W > t) = rho exp(-(mu - lambda) t), here with mu = 100/s and t = 100 ms.
        let rate = random_arrivals_rps(100.0, 0.01, 0.01, 0.11).unwrap();
        assert!((rate / 100.0 * (-(100.0 - rate) * 0.1_f64).exp() - 0.01).abs() < 1e-4, "{rate}");
    }

    #[test]
    fn more_patience_and_more_servers_allow_more() {
        let of = |most, alone, objective| random_arrivals_rps(most, alone, alone, objective).unwrap();
        assert!(of(100.0, 0.01, 0.1) < of(100.0, 0.01, 1.0));
        // As many a second by a hundred slow servers: fewer wait.
        assert!(of(100.0, 0.01, 0.05) < of(100.0, 1.0, 1.04));
        assert!(of(100.0, 0.01, 10.0) < 100.0);
        assert_eq!((random_arrivals_rps(100.0, 0.01, 0.2, 0.1), random_arrivals_rps(0.0, 0.01, 0.01, 1.0)), (None, None));
    }
}
