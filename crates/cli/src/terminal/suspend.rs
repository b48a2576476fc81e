//! Ctrl-Z and Ctrl-\ while the view is shown: the terminal is as it was before the program stops or ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::{flag, low_level};

/// The signals that wait until the view is away. Once this is dropped they do at once what they do by default.
pub(crate) struct Suspend {
    /// The signal that came; 0 where none did.
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    stopped: Duration,
}

impl Suspend {
    /// Installs the handlers.
    pub(crate) fn install() -> io::Result<Self> {
        let suspend = Suspend { asked: Arc::default(), is_over: Arc::default(), stopped: Duration::ZERO };
        for signal in [SIGTSTP, SIGQUIT] {
            flag::register_conditional_default(signal, Arc::clone(&suspend.is_over))?;
            flag::register_usize(signal, Arc::clone(&suspend.asked), signal as usize)?;
        }
        Ok(suspend)
    }

    /// True where a signal waits.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) != 0
    }

    /// Does what the signal asks for: ends the program, or stops it here and goes on when it is told to (SIGCONT).
    pub(crate) fn obey(&mut self) {
        let signal = self.asked.swap(0, Ordering::SeqCst);
        let begin = Instant::now();
        if signal != 0 && low_level::emulate_default_handler(signal as i32).is_ok() {
            self.stopped += begin.elapsed();
        }
    }

    /// For how long the program was stopped in all.
    pub(crate) fn stopped(&self) -> Duration {
        self.stopped
    }
}

impl Drop for Suspend {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // One that came just now has not been obeyed.
        self.obey();
    }
}
