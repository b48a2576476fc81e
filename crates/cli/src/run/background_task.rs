//! Work during a measurement, in a thread of its own. It is told to end with the measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use chokepoint_recording::Outcome;

/// Work in progress.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    what: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome>>,
}

impl Drop for BackgroundTask {
    /// Tells the thread to end, where a failed load means that nobody waits for its result.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl BackgroundTask {
    /// Starts the work. The flag that it gets tells it to end. `what`: its name.
    pub(crate) fn start(what: &'static str, work: impl FnOnce(&AtomicBool) -> Outcome + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let builder = std::thread::Builder::new().name(what.to_owned());
        Self { what, stop, thread: builder.spawn(move || work(&stopped)).ok() }
    }

    /// Tells the work to end, waits for it, and gives its result.
    pub(crate) fn finish(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().and_then(|thread| thread.join().ok());
        outcome.unwrap_or_else(|| Outcome::Failed(format!("the {} broke off", self.what), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_told_to_end_and_a_panic_is_reported() {
        let waits = BackgroundTask::start("watch", |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Outcome::Ok(vec![1])
        });
        assert!(matches!(waits.finish(), Outcome::Ok(json) if json == [1]));
        let panics = BackgroundTask::start("watch", |_| panic!("on purpose"));
        assert!(matches!(panics.finish(), Outcome::Failed(why, None) if why == "the watch broke off"));
    }
}
