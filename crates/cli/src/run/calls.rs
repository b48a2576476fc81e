//! Work beside a load: it runs until the last answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use chokepoint_load::{Control, Plan};
use chokepoint_profile::{Counting, Counts};

/// Offers a load and runs `work` meanwhile, which ends once the flag is set: the last answer came. Returns what the work gave and the number of good answers.
pub(crate) fn beside<T>(plan: &Plan, work: impl FnOnce(&Control, &AtomicBool) -> T) -> Result<(T, u64)> {
    let (control, over) = (Control::new(), AtomicBool::new(false));
    let (done, load) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let result = chokepoint_load::run(plan, &control);
            over.store(true, Ordering::Relaxed);
            result
        });
        let done = work(&control, &over);
        (done, load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    load?;
    Ok((done, control.progress().good))
}

/// Counts calls while a load runs. The probes are set before the first request and stay until the last answer, so that the calls belong to the answers.
pub(crate) fn counted(counting: Counting, plan: &Plan) -> Result<(Counts, u64)> {
    let (counts, good) = beside(plan, |control, over| {
        let per_s = |elapsed: Duration| Some(control.progress().good as f64 / elapsed.as_secs_f64().max(1e-9));
        counting.run(|_| !over.load(Ordering::Relaxed), per_s)
    })?;
    Ok((counts?, good))
}
