//! Servers with fewer threads than cores. A thread runs on one core at a time, so a single event loop can be at its limit while other cores are idle.

use std::collections::BTreeSet;

use super::Turns;
use crate::facts::Context;
use crate::facts::path::Tier;

/// A thread that runs or is ready for this share of its time waits for nothing but a core.
pub(crate) const READY_SHARE: f64 = 0.95;
/// A thread that runs for this share of its time serves requests. Other threads are helpers.
pub(super) const SERVING_SHARE: f64 = 0.1;

/// Largest share of a tier's CPU time that helper threads may use.
const HELPING_SHARE: f64 = 0.1;

/// Threads that do a tier's work.
pub(crate) struct Threads {
    /// Number of serving threads.
    pub(crate) serving: usize,
    /// Mean number of running ones.
    pub(crate) running: f64,
    /// The process with the most threads that take turns. They count as one.
    pub(crate) turns: Option<Turns>,
}

impl Threads {
    /// The serving threads of a tier if all of them were ready to run all the time, so that only more threads or faster cores would help; or, where the
    /// threads of a process take turns, if one always ran. `None` if one of them waits for something else, or if their times cannot
    /// be told apart.
    pub(crate) fn exhausted(ctx: &Context<'_>, tier: &Tier, cores: usize) -> Option<Self> {
        let mut all = Self { serving: 0, running: 0.0, turns: None };
        let pids: BTreeSet<u32> = tier.pids.iter().copied().collect();
        for pid in pids {
            if let Some(turns) = Turns::of(ctx, pid) {
                (all.serving, all.running) = (all.serving + 1, all.running + turns.ran.min(1.0));
                all.turns = all.turns.into_iter().chain([turns]).max_by_key(|turns| turns.threads);
                continue;
            }
            let Some((first, last, elapsed_us)) = ctx.obs.processes.get(&pid).and_then(|process| ctx.inside(&process.cpu)) else {
                continue;
            };
            let elapsed_ns = elapsed_us as f64 * 1e3;
            for thread in &last.thread_times {
                let Some(before) = first.thread_times.iter().find(|before| before.id == thread.id) else { continue };
                let ran = thread.run_ns.saturating_sub(before.run_ns) as f64 / elapsed_ns;
                let delayed = thread.delay_ns.saturating_sub(before.delay_ns) as f64 / elapsed_ns;
                let is_ready = ran + delayed >= READY_SHARE;
                // Where others take the cores, a thread that serves all the time hardly runs.
                if ran < SERVING_SHARE && !is_ready {
                    continue;
                }
                if !is_ready {
                    return None;
                }
                all.serving += 1;
                all.running += ran;
            }
        }
        (all.serving > 0 && all.serving < cores).then_some(all)
    }

    /// Number of threads that do a tier's work. `None` if their times cannot be told apart, or if other threads did more than a tenth of the work, as when
    /// many processes share it.
    pub(crate) fn serving(ctx: &Context<'_>, tier: &Tier) -> Option<usize> {
        let (mut serving, mut served, mut all) = (0, 0.0, 0.0);
        for pid in &tier.pids {
            let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
            for thread in &last.thread_times {
                let before = first.thread_times.iter().find(|before| before.id == thread.id);
                let ran = thread.run_ns.saturating_sub(before.map_or(0, |before| before.run_ns)) as f64 / (elapsed_us as f64 * 1e3);
                all += ran;
                if ran >= SERVING_SHARE {
                    (serving, served) = (serving + 1, served + ran);
                }
            }
        }
        (all > 0.0 && served >= (1.0 - HELPING_SHARE) * all).then_some(serving)
    }
}
