//! Work in a separate thread during a measurement. It is asked to end when the measurement ends.

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
    /// Asks the thread to end: after a failed load nobody waits for its result.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl BackgroundTask {
    /// Starts the work. It must end when its flag is set. `what`: its name.
    pub(crate) fn start(what: &'static str, work: impl FnOnce(&AtomicBool) -> Outcome + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let builder = std::thread::Builder::new().name(what.to_owned());
        Self { what, stop, thread: builder.spawn(move || work(&stopped)).ok() }
    }

    /// Asks the work to end, waits for it, and returns its result.
    pub(crate) fn finish(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().and_then(|thread| thread.join().ok());
        outcome.unwrap_or_else(|| Outcome::Failed(format!("the {} stopped unexpectedly", self.what), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_asked_to_end_and_a_panic_is_reported() {
        let waits = BackgroundTask::start("watch", |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Outcome::Ok(vec![1])
        });
        assert!(matches!(waits.finish(), Outcome::Ok(json) if json == [1]));
        let panics = BackgroundTask::start("watch", |_| panic!("on purpose"));
        assert!(matches!(panics.finish(), Outcome::Failed(why, None) if why == "the watch stopped unexpectedly"));
    }
}
