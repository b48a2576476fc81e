//! The memory of each tier's workers, read after a step while they are warm.

use std::collections::BTreeMap;

use chokepoint_model::reading::{Lack, Reading};
use chokepoint_sizing::step::Step;
use chokepoint_sizing::workers::WorkerMemory;
use chokepoint_sources::{Root, read_process_memory};

/// Most processes of a tier that are read. The kernel walks all pages of each, which takes about a millisecond for each 100 MB.
const PROCESSES_MAX: usize = 32;

/// Reads the memory of all tiers of a step. The largest worker of all steps counts.
pub(super) fn read(step: &Step, known: &mut BTreeMap<String, Result<WorkerMemory, String>>) {
    let root = Root::default();
    for tier in step.tiers.iter().filter(|tier| !tier.pids.is_empty()) {
        let readings: Vec<_> = tier.pids.iter().take(PROCESSES_MAX).map(|pid| read_process_memory(&root, *pid)).collect();
        let read: Vec<u64> = readings.iter().filter_map(Reading::ok).map(|memory| memory.private).collect();
        let Some(largest) = read.iter().max().copied() else {
            let why = readings.iter().find_map(Reading::lack).map(why).unwrap_or_default();
            known.entry(tier.name.clone()).or_insert(Err(why));
            continue;
        };
        let before = known.get(&tier.name).and_then(|memory| memory.as_ref().ok()).map_or(0, |memory| memory.private_bytes);
        // Those that were not read are as large as the mean of the others.
        let all_bytes = (read.iter().sum::<u64>() as f64 / read.len() as f64 * tier.pids.len() as f64) as u64;
        let memory = WorkerMemory { private_bytes: largest.max(before), all_bytes, available_bytes: step.available_bytes };
        known.insert(tier.name.clone(), Ok(memory));
    }
}

fn why(lack: &Lack) -> String {
    match &lack.needs {
        Some(needs) => format!("{} ({needs})", lack.why),
        None => lack.why.clone(),
    }
}
