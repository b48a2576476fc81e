//! Work beside a measurement, in a thread of its own: asked to end when the measurement does, and given up where nobody asks for what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use chokepoint_recording::Outcome;

/// Work that is under way.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    what: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome>>,
}

impl Drop for BackgroundTask {
    /// Where a load failed nobody asks for what went on beside it.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl BackgroundTask {
    /// Begins what the word names; the work is told to end by what it gets.
    pub(crate) fn start(what: &'static str, work: impl FnOnce(&AtomicBool) -> Outcome + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let builder = std::thread::Builder::new().name(what.to_owned());
        Self { what, stop, thread: builder.spawn(move || work(&told)).ok() }
    }

    /// Ends it where it has not ended by itself, and gives what came of it.
    pub(crate) fn finish(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let taken = self.thread.take().and_then(|thread| thread.join().ok());
        taken.unwrap_or_else(|| Outcome::Failed(format!("the {} broke off", self.what), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_to_end_and_what_breaks_off_is_told() {
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
