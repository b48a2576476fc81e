//! The memory of each tier's workers, as each step saw it while they were warm.

use std::collections::BTreeMap;

use chokepoint_model::PoolMemory;
use chokepoint_sizing::step::Step;
use chokepoint_sizing::workers::WorkerMemory;

/// Why there is no figure.
const WHY: &str = "/proc/PID/smaps_rollup and stat of none of them";

/// Takes the memory of all tiers of a step. The largest worker of all steps counts.
pub(super) fn take(step: &Step, known: &mut BTreeMap<String, Result<WorkerMemory, String>>) {
    for tier in &step.tiers {
        let Some(pool) = tier.memory else {
            known.entry(tier.name.clone()).or_insert(Err(WHY.to_owned()));
            continue;
        };
        let before = known.get(&tier.name).and_then(|memory| memory.as_ref().ok()).filter(|before| before.pool.measure == pool.measure);
        let worker_bytes = pool.worker_bytes.max(before.map_or(0, |before| before.pool.worker_bytes));
        let memory = WorkerMemory { pool: PoolMemory { worker_bytes, ..pool }, available_bytes: step.available_bytes };
        known.insert(tier.name.clone(), Ok(memory));
    }
}
