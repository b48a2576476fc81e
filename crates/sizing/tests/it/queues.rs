//! Synthetic servers: the goodput and the p99 of closed and open loops.
//!
//! Deterministic: pure functions.

use chokepoint_model::load::Percentiles;
use chokepoint_model::report::Verdict;
use chokepoint_sizing::interval::Interval;
use chokepoint_sizing::objective::erlang_c;
use chokepoint_sizing::step::{Limit, Offered, Step, TierStep};

/// What a synthetic server is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    /// This many workers, each of which takes this long, seconds.
    Pool(u32, f64),
    /// The scalability law: goodput of one, contention, coherency.
    Law(f64, f64, f64),
    /// A pool that answers nothing beyond this many connections.
    Collapses(u32, f64, u32),
    /// It answers nothing.
    Dead,
}

/// A measurement with noise of this share, drawn from a sequence of numbers.
pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) noise: f64,
    /// The load generator passes at most this many.
    pub(crate) generator_rps: f64,
    pub(crate) seed: u64,
}

impl Bench {
    pub(crate) fn new(server: Server) -> Self {
        Self { server, noise: 0.0, generator_rps: f64::INFINITY, seed: 7 }
    }

    pub(crate) fn noisy(server: Server, noise: f64, seed: u64) -> Self {
        Self { noise, seed, ..Self::new(server) }
    }

    /// A number between -1 and 1 (a linear congruence: Knuth, MMIX).
    fn chance(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn measure(&mut self, offered: Offered) -> Step {
        let (goodput, p99_s, failed) = match offered {
            Offered::Closed(connections) => closed(self.server, f64::from(connections)),
            Offered::Open(rate) => open(self.server, rate),
        };
        let is_limited = goodput > self.generator_rps;
        let mean = goodput.min(self.generator_rps);
        let value = mean * (1.0 + self.noise * self.chance());
        let half = 2.0 * self.noise * mean;
        step(offered, Interval { value, low: (value - half).max(0.0), high: value + half }, p99_s, failed, is_limited)
    }
}

fn step(offered: Offered, goodput_rps: Interval, p99_s: f64, failed_share: f64, is_limited: bool) -> Step {
    let us = (p99_s * 1e6) as u64;
    Step {
        offered,
        duration_s: 3.0,
        goodput_rps,
        failed_share,
        latency_us: Percentiles { p50: us, p99: us, ..Percentiles::default() },
        alone_us: None,
        verdict: if is_limited { Verdict::ClientLimited } else { Verdict::Healthy },
        limit: Limit { text: "a limit".to_owned(), ..Limit::default() },
        tiers: vec![TierStep { name: "app".to_owned(), ..TierStep::default() }],
        available_bytes: None,
        warnings: vec!["other programs used the cores".to_owned()],
        interrupted: false,
    }
}

/// Goodput, p99 in seconds, and the share that fails.
fn closed(server: Server, n: f64) -> (f64, f64, f64) {
    match server {
        Server::Pool(workers, each_s) => {
            let goodput = n.min(f64::from(workers)) / each_s;
            (goodput, n / goodput, 0.0)
        }
        Server::Law(single, contention, coherency) => {
            let goodput = single * n / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0));
            (goodput, n / goodput, 0.0)
        }
        Server::Collapses(workers, each_s, beyond) if n <= f64::from(beyond) => closed(Server::Pool(workers, each_s), n),
        Server::Collapses(workers, each_s, _) => (0.3 * f64::from(workers) / each_s, 2.0, 0.7),
        Server::Dead => (0.0, 2.0, 1.0),
    }
}

/// An open loop: Poisson arrivals before the workers.
fn open(server: Server, rate: f64) -> (f64, f64, f64) {
    let (workers, each_s) = match server {
        Server::Pool(workers, each_s) | Server::Collapses(workers, each_s, _) => (workers, each_s),
        Server::Law(single, ..) => (1, 1.0 / single),
        Server::Dead => return (0.0, 2.0, 1.0),
    };
    let most = f64::from(workers) / each_s;
    if rate >= most {
        return (most, 10.0, 0.0);
    }
    let waits = erlang_c(workers, rate * each_s);
    (rate, each_s + (waits / 0.01).max(1.0).ln() / (most - rate), 0.0)
}
