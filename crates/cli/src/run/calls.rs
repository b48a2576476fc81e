//! Counts calls of functions while a load runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use chokepoint_load::{Control, Plan};
use chokepoint_profile::{Counting, Counts};

/// Offers a load and counts meanwhile. Returns the counts and the number of good answers. The probes are set before the first request and stay until the last
/// answer, so that the calls belong to the answers.
pub(crate) fn counted(counting: Counting, plan: &Plan) -> Result<(Counts, u64)> {
    let (control, over) = (Control::new(), AtomicBool::new(false));
    let (counts, load) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let result = chokepoint_load::run(plan, &control);
            over.store(true, Ordering::Relaxed);
            result
        });
        let per_s = |elapsed: Duration| Some(control.progress().good as f64 / elapsed.as_secs_f64().max(1e-9));
        let counts = counting.run(|_| !over.load(Ordering::Relaxed), per_s);
        (counts, load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    load?;
    Ok((counts?, control.progress().good))
}
