//! Writes samples to the history in a thread of its own: a disk may be slow, full or held by another program, and nobody who measures waits for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use chokepoint_runs::{History, KeptSample, RunsError};

use super::keeping::{WriteFailure, anew, history};

/// Samples that wait for a history that cannot be written. Older ones are lost then.
const WAITING_MAX: usize = 600;

/// What waits to be written.
#[derive(Default)]
struct Queue {
    waiting: Vec<KeptSample>,
    /// There is something that was not tried yet.
    is_new: bool,
    is_writing: bool,
    /// Nothing more comes.
    is_over: bool,
}

/// The thread that writes.
pub(super) struct Writer(Arc<(Mutex<Queue>, Condvar)>);

impl Writer {
    /// Begins to write to a history.
    pub(super) fn begin(history: History) -> anyhow::Result<Self> {
        let shared = Arc::<(Mutex<Queue>, Condvar)>::default();
        let own = Arc::clone(&shared);
        let write = move || write(history, &own);
        std::thread::Builder::new().name("writing".to_owned()).spawn(write).context("no thread could be started to write the history")?;
        Ok(Self(shared))
    }

    /// Takes samples to write.
    pub(super) fn add(&self, samples: Vec<KeptSample>) {
        let mut queue = lock(&self.0);
        queue.waiting.extend(samples);
        let excess = queue.waiting.len().saturating_sub(WAITING_MAX);
        queue.waiting.drain(..excess);
        queue.is_new = true;
        self.0.1.notify_all();
    }

    /// Waits until what was taken is written, or could not be.
    pub(super) fn finish(&self) {
        let mut queue = lock(&self.0);
        queue.is_over = true;
        self.0.1.notify_all();
        while queue.is_new || queue.is_writing {
            queue = self.0.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock(shared: &(Mutex<Queue>, Condvar)) -> MutexGuard<'_, Queue> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The history that is written. One that turns out to be damaged is moved aside.
struct Written {
    dir: PathBuf,
    /// None while none can be opened.
    history: Option<History>,
}

impl Written {
    fn add(&mut self, samples: &[KeptSample]) -> Result<(), RunsError> {
        let history = match &mut self.history {
            Some(history) => history,
            none => none.insert(history(&self.dir).or_else(|error| anew(&self.dir, error))?),
        };
        match history.add(samples) {
            Err(damaged @ RunsError::Damaged { .. }) => {
                // Closing it removes its log, by name: before another one has that name.
                self.history = None;
                self.history.insert(anew(&self.dir, damaged)?).add(samples)
            }
            written => written,
        }
    }
}

/// Writes what waits, until nothing more comes. What cannot be written is tried again with the next sample.
fn write(history: History, shared: &(Mutex<Queue>, Condvar)) {
    let dir = history.path().parent().map(Path::to_owned).unwrap_or_default();
    let mut written = Written { dir, history: Some(history) };
    let mut failure = WriteFailure::default();
    loop {
        let mut queue = lock(shared);
        while !queue.is_new {
            if queue.is_over {
                return;
            }
            queue = shared.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        (queue.is_new, queue.is_writing) = (false, true);
        let samples = std::mem::take(&mut queue.waiting);
        drop(queue);
        let is_written = failure.told(written.add(&samples));
        let mut queue = lock(shared);
        queue.is_writing = false;
        if !is_written {
            let newer = std::mem::replace(&mut queue.waiting, samples);
            queue.waiting.extend(newer);
        }
        drop(queue);
        shared.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: u64) -> KeptSample {
        KeptSample { span_s: 1, at_s, json: format!("{{\"at_s\":{at_s}}}") }
    }

    #[test]
    fn what_is_taken_is_written_by_the_end_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let writer = Writer::begin(History::open(directory.path(), &[]).unwrap()).unwrap();
        (0..50).for_each(|at_s| writer.add(vec![sample(at_s)]));
        writer.finish();
        let kept = History::open_existing(directory.path()).unwrap().unwrap().samples(1, 0, u64::MAX, u32::MAX).unwrap();
        assert_eq!(kept, (0..50).map(|at_s| sample(at_s).json).collect::<Vec<_>>());
    }

    #[test]
    fn what_waits_is_bounded() {
        let writer = Writer(Arc::default());
        (0..2 * WAITING_MAX as u64).for_each(|at_s| writer.add(vec![sample(at_s)]));
        let queue = lock(&writer.0);
        assert_eq!((queue.waiting.len(), queue.waiting[0].at_s), (WAITING_MAX, WAITING_MAX as u64), "the oldest go");
    }

    /// The file is damaged below a running program: by a disk, or by somebody with a text editor.
    #[test]
    fn a_history_that_is_damaged_while_it_is_written_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let first = History::open(directory.path(), &[]).unwrap();
        let path = first.path().to_owned();
        drop(first);
        let mut written = Written { dir: directory.path().to_owned(), history: None };
        written.add(&[sample(1)]).unwrap();
        // Nothing of it is in memory any more.
        written.history = None;
        std::fs::write(&path, "x".repeat(9_000)).unwrap();
        written.add(&[sample(2)]).unwrap();
        let kept = History::open_existing(directory.path()).unwrap().unwrap().samples(1, 0, u64::MAX, u32::MAX).unwrap();
        assert_eq!((kept.len(), std::fs::read(path.with_extension("sqlite.damaged-1")).unwrap().len()), (1, 9_000));
    }
}
