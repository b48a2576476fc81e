//! Splits the requests that a tier holds: those at its threads, on a CPU or ready, and those that wait for something else.

use crate::facts::Context;
use crate::facts::cores::{Passing, staying_children_cores};
use crate::facts::path::Tier;
use crate::observation::{CgroupId, CpuUse};

/// Most requests at one thread that are iterated one by one.
const REQUESTS_MAX: f64 = 20_000.0;
/// Bisections of the think time: beyond the precision of a double.
const HALVINGS: u32 = 60;

/// The requests that a tier holds, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StateSplit {
    /// On a CPU.
    pub(crate) cpu: f64,
    /// Ready without a core, or queued at a running thread.
    pub(crate) ready: f64,
    /// Throttled by a quota.
    pub(crate) throttled: f64,
    /// Waiting for something else.
    pub(crate) waiting: f64,
}

/// How a tier's threads spent the window.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ThreadShares {
    /// For each thread the share of time that it ran, and that it was ready without a core.
    pub(crate) shares: Vec<(f64, f64)>,
    /// Share of the time that a quota throttled them.
    pub(crate) stopped: f64,
}

impl ThreadShares {
    /// The threads of all processes of a tier.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Self {
        let mut shares = Vec::new();
        for pid in &tier.pids {
            let window = ctx.obs.processes.get(pid).and_then(|process| ctx.inside(&process.cpu));
            if let Some((first, last, elapsed_us)) = window {
                shares.extend(of_process(first, last, elapsed_us as f64 * 1e3));
            }
        }
        // Each process that serves for it (a database's, one for each connection) runs on one core at a time. How long they were ready is not known.
        let children = staying_children_cores(ctx, &tier.pids);
        let processes = children.ceil();
        shares.extend(std::iter::repeat_n((children / processes.max(1.0), 0.0), processes as usize));
        shares.extend(Passing::of(ctx, tier).shares());
        Self { shares, stopped: stopped(ctx, tier) }
    }

    /// Share of the time that the busiest thread ran or was ready.
    pub(crate) fn busiest(&self) -> f64 {
        self.shares.iter().map(|(run, delay)| (run + delay).min(1.0)).fold(0.0, f64::max)
    }

    /// Divides the requests that the tier holds among its threads by their busy time, and splits those at each thread by state.
    ///
    /// A thread and its requests are a closed network with one queue, the thread, and one delay, everything else. Its utilization and the number of requests
    /// are known. Mean value analysis gives the number at the thread: between the utilization itself (each request has its own thread) and all of them (the
    /// thread is never idle).
    pub(crate) fn split(&self, held: f64) -> StateSplit {
        let busy = |(run, delay): &(f64, f64)| (run + delay).max(run + self.stopped * f64::from(u8::from(*run > 0.0))).min(1.0);
        let total: f64 = self.shares.iter().map(busy).sum();
        let mut split = StateSplit::default();
        for share in self.shares.iter().filter(|_| total > 0.0) {
            let of_thread = held * busy(share) / total;
            let stands = requests_at_thread(of_thread, busy(share));
            let cpu = share.0.min(stands);
            let throttled = (self.stopped * stands).min(stands - cpu);
            split.cpu += cpu;
            split.throttled += throttled;
            split.ready += stands - cpu - throttled;
        }
        split.waiting = (held - split.cpu - split.ready - split.throttled).max(0.0);
        split
    }
}

fn of_process(first: &CpuUse, last: &CpuUse, elapsed_ns: f64) -> Vec<(f64, f64)> {
    let share = |from: u64, to: u64| (to.saturating_sub(from) as f64 / elapsed_ns).min(1.0);
    if !last.thread_times.is_empty() {
        let of = |now: &crate::observation::ThreadTimes| {
            let before = first.thread_times.iter().find(|before| before.id == now.id).copied().unwrap_or_default();
            (share(before.run_ns, now.run_ns), share(before.delay_ns, now.delay_ns))
        };
        return last.thread_times.iter().map(of).collect();
    }
    // Thread shares that cannot be told apart count as equal.
    let threads = f64::from(last.threads.max(1));
    let sum = |of: fn(&CpuUse) -> Option<u64>| of(last).zip(of(first)).map(|(to, from)| to.saturating_sub(from) as f64 / elapsed_ns);
    let Some(run) = sum(|cpu| cpu.run_ns) else { return Vec::new() };
    let delay = sum(|cpu| cpu.run_delay_ns).unwrap_or(0.0);
    vec![((run / threads).min(1.0), (delay / threads).min(1.0)); last.threads.max(1) as usize]
}

/// Share of the window that a quota throttled the tier's processes: the kernel's count, at most the length of the throttled periods.
fn stopped(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let cgroup = |pid: &u32| CgroupId::of_cpu(ctx.obs.processes.get(pid)?.cgroups.last()?);
    let levels = tier.pids.iter().find_map(cgroup).map(|id| id.levels()).unwrap_or_default();
    let of_level = |id: &CgroupId| {
        let (first, last, elapsed_us) = ctx.inside(ctx.obs.cgroups.get(id)?)?;
        let ns = last.throttled_ns?.saturating_sub(first.throttled_ns?) as f64;
        let periods = last.throttled_periods?.saturating_sub(first.throttled_periods?) as f64;
        let elapsed_us = elapsed_us as f64;
        Some((ns / 1e3 / elapsed_us).min(periods * last.period_us as f64 / elapsed_us).min(1.0))
    };
    levels.iter().filter_map(of_level).fold(0.0, f64::max)
}

/// How many of these requests are at a thread of this utilization.
fn requests_at_thread(requests: f64, utilization: f64) -> f64 {
    if requests <= 1.0 {
        return requests.min(utilization);
    }
    let requests = requests.min(REQUESTS_MAX);
    let (below, above) = (requests.floor(), requests.floor() + 1.0);
    let weight = requests - below;
    let stands = (1.0 - weight) * queue(below, utilization) + weight * queue(above, utilization);
    stands.clamp(utilization.min(requests), requests)
}

/// The mean queue at a single server of this utilization in a closed network of this many requests with a delay (exact mean value analysis, Reiser and
/// Lavenberg 1980). Bisection finds the delay.
fn queue(requests: f64, utilization: f64) -> f64 {
    let (mut least, mut most) = (0.0, 1.0);
    while network(requests, most).0 > utilization && most < 1e12 {
        most *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(least, most);
        if network(requests, middle).0 > utilization { least = middle } else { most = middle }
    }
    network(requests, f64::midpoint(least, most)).1
}

/// Utilization and mean queue of the server, in units of its service time.
fn network(requests: f64, delay: f64) -> (f64, f64) {
    let (mut waiting, mut rate) = (0.0, 0.0);
    for n in 1..=requests as u32 {
        let stay = 1.0 + waiting;
        rate = f64::from(n) / (delay + stay);
        waiting = rate * stay;
    }
    (rate, waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(shares: &[(f64, f64)], stopped: f64) -> ThreadShares {
        ThreadShares { shares: shares.to_vec(), stopped }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.02
    }

    #[test]
    fn workers_with_one_request_each_spend_their_time_as_their_cpu_clocks_show() {
        let split = threads(&[(0.5, 0.25); 4], 0.0).split(4.0);
        assert!(near(split.cpu, 2.0) && near(split.ready, 1.0) && near(split.waiting, 1.0), "{split:?}");
        let split = threads(&[(0.01, 0.0); 8], 0.0).split(8.0);
        assert!(near(split.cpu, 0.08) && near(split.waiting, 7.92), "they sleep: {split:?}");
    }

    #[test]
    fn a_loop_that_is_never_idle_has_all_at_its_thread() {
        let split = threads(&[(0.8, 0.2)], 0.0).split(50.0);
        assert!(near(split.cpu, 0.8) && split.ready > 49.0 && split.waiting < 0.2, "{split:?}");
    }

    #[test]
    fn a_loop_that_is_half_idle_has_about_one_at_its_thread() {
        let split = threads(&[(0.5, 0.0)], 0.0).split(100.0);
        let stands = split.cpu + split.ready;
        assert!((0.9..1.05).contains(&stands) && split.waiting > 98.0, "an open queue would have 1: {split:?}");
    }

    #[test]
    fn a_quota_that_throttles_holds_the_requests_at_the_thread() {
        let split = threads(&[(0.2, 0.0)], 0.8).split(20.0);
        assert!(split.throttled > 10.0 && split.waiting < 1.0, "{split:?}");
    }

    #[test]
    fn no_request_is_lost_or_invented() {
        for held in [0.0, 0.3, 1.0, 1.7, 12.4, 300.0] {
            for shares in [&[][..], &[(0.0, 0.0)], &[(0.3, 0.1), (0.9, 0.1)], &[(1.0, 0.0)]] {
                let split = threads(shares, 0.1).split(held);
                assert!((split.cpu + split.ready + split.throttled + split.waiting - held).abs() < 1e-6, "{held} {shares:?} {split:?}");
                assert!([split.cpu, split.ready, split.throttled, split.waiting].iter().all(|part| *part >= -1e-9), "{split:?}");
            }
        }
    }
}
