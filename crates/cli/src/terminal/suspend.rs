//! Ctrl-Z and Ctrl-\ while a view is shown: the terminal is restored before the program stops or ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::{flag, low_level};

/// Signals that are delayed until the view is hidden. After the drop they have their default effect at once.
pub(crate) struct Suspend {
    /// The pending signal; 0 for none.
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

    /// True if a signal is pending.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) != 0
    }

    /// Performs the default action of the pending signal: ends the program, or stops it until SIGCONT.
    pub(crate) fn obey(&mut self) {
        let signal = self.asked.swap(0, Ordering::SeqCst);
        let begin = Instant::now();
        if signal != 0 && low_level::emulate_default_handler(signal as i32).is_ok() {
            self.stopped += begin.elapsed();
        }
    }

    /// The total time for which the program was stopped.
    pub(crate) fn stopped(&self) -> Duration {
        self.stopped
    }
}

impl Drop for Suspend {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // A signal may have arrived just now.
        self.obey();
    }
}
