//! The memory of a tier's workers. `size` and the remedies advise by this one figure.

use super::worker_pids;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::ProcessView;

/// What is counted of a worker's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryMeasure {
    /// Pages that no other process has mapped: what another worker like it would need.
    Private,
    /// All pages that it has in memory, those that it shares with others included: more than another worker would need.
    Resident,
}

impl MemoryMeasure {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Resident => "resident",
        }
    }
}

/// Memory of a tier's workers, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolMemory {
    /// Of the largest worker.
    pub worker_bytes: u64,
    /// Of all of them; those that were not read are as large as the mean of the others.
    pub all_bytes: u64,
    /// What these count.
    pub measure: MemoryMeasure,
}

impl PoolMemory {
    /// What the workers have to themselves, or where that was not read of any what they have in memory. `None` if neither is known.
    pub fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let pids = worker_pids(ctx, tier);
        let private = |process: &ProcessView| Some(process.memory.last()?.private_bytes);
        let resident = |process: &ProcessView| Some(process.cpu.last()?.resident_bytes);
        let read = |of: fn(&ProcessView) -> Option<u64>, measure| {
            let all: Vec<u64> = pids.iter().filter_map(|pid| of(ctx.obs.processes.get(pid)?)).filter(|bytes| *bytes > 0).collect();
            let worker_bytes = all.iter().max().copied()?;
            let mean = all.iter().map(|bytes| *bytes as f64).sum::<f64>() / all.len() as f64;
            Some(Self { worker_bytes, all_bytes: (mean * pids.len() as f64) as u64, measure })
        };
        read(private, MemoryMeasure::Private).or_else(|| read(resident, MemoryMeasure::Resident))
    }
}
