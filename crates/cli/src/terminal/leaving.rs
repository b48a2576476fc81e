//! Ends the program soon after the user asked it to stop, whatever its threads are in the middle of: a disk, a lock or a search cannot hold it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chokepoint_foreign::printable_lines;

use crate::terminal::interrupt::Interrupt;
use crate::terminal::{keys, screen};

/// How long an end in order may take. With what a busy machine adds, a user sees the program end within a second.
pub(crate) const PATIENCE: Duration = Duration::from_millis(700);
// What is promised (docs/watch/README.md) is a second.
const _: () = assert!(PATIENCE.as_millis() <= 800);

/// While it is held, the program ends at most [`PATIENCE`] after the user asked to stop. It is held only where nothing is in force that would have to be taken back.
pub(crate) struct Leaving {
    is_held: Arc<Mutex<bool>>,
}

impl Leaving {
    /// `unfinished`: what the program is in the middle of, as the end of "ended in the middle of".
    pub(crate) fn hold(interrupt: &Interrupt, unfinished: impl Fn() -> String + Send + 'static) -> Self {
        let is_held = Arc::new(Mutex::new(true));
        let (held, interrupt) = (Arc::clone(&is_held), interrupt.clone());
        let guard = move || {
            interrupt.wait(None);
            std::thread::sleep(PATIENCE);
            // Held until the end: what was released in time goes on, and what comes later is too late.
            let held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if *held {
                end(interrupt.status().unwrap_or(0), &format!("note: ended in the middle of {}", unfinished()));
            }
        };
        // Without the thread the second signal still ends the program at once.
        let _ = std::thread::Builder::new().name("leaving".to_owned()).spawn(guard);
        Self { is_held }
    }

    /// Before a measurement: names are resolved, the host is read for the first time, and there is nothing to report yet.
    pub(crate) fn hold_while_preparing(interrupt: &Interrupt) -> Self {
        Self::hold(interrupt, || "the first readings: nothing was measured yet".to_owned())
    }

    /// From now on the program ends in order, however long that takes: there is something to report or to take back.
    pub(crate) fn release(&self) {
        *self.is_held.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.release();
    }
}

/// Ends the program, with a sentence on stderr. Nothing of it waits: another thread may hold a lock, and the terminal may take nothing.
fn end(status: u8, sentence: &str) -> ! {
    keys::restore_at_once();
    if let Some(leave) = screen::leave_at_once() {
        screen::write_at_once(leave);
    }
    screen::write_at_once(format!("{}\n", printable_lines(sentence)).as_bytes());
    signal_hook::low_level::exit(status.into())
}

/// What a thread is in the middle of, for those who end the program meanwhile.
#[derive(Clone)]
pub(crate) struct Doing(Arc<Mutex<(&'static str, Instant)>>);

impl Doing {
    pub(crate) fn begin(what: &'static str) -> Self {
        Self(Arc::new(Mutex::new((what, Instant::now()))))
    }

    /// From now on.
    pub(crate) fn now(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (what, Instant::now());
    }
}

impl std::fmt::Display for Doing {
    /// "the first readings (for 12 s)".
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, since) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(out, "{what} (for {:.1} s)", since.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_told_with_its_time() {
        let doing = Doing::begin("the first readings");
        doing.clone().now("a write of the history");
        assert!(doing.to_string().starts_with("a write of the history (for 0."), "{doing}");
    }

    mod live {
        use super::*;

        #[test]
        fn what_is_released_in_time_goes_on() {
            let interrupt = Interrupt::default();
            let leaving = Leaving::hold(&interrupt, String::new);
            drop(leaving);
            // Were it still held, the process of this test would end.
            interrupt.stop();
            std::thread::sleep(PATIENCE + PATIENCE / 2);
        }
    }
}
