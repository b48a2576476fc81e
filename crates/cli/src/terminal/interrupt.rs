//! Signals that ask to stop: the first lets everything end in order, the second ends the program at once. While unproven changes are in force, the second
//! only prints what is being done, and the third ends the program.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Signals that stop the program: Ctrl-C, a supervisor, a closed terminal, Ctrl-\.
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Signals that stay ignored if they are ignored at the start: under nohup(1), and in background jobs of a shell.
const LEFT_IGNORED: [i32; 2] = [SIGHUP, SIGQUIT];
/// Shells add this to the number of a signal in the exit status.
const STATUS_BASE: i32 = 128;

/// A longer `/proc/self/status` is not read.
const STATUS_BYTES_MAX: usize = 1 << 16;
/// The same signal so soon after is the same request, milliseconds: timeout(1) signals its command and then the whole group, in which the command is. Nobody
/// presses Ctrl-C twice as fast.
const ECHO_MS: u64 = 200;
/// Time between two looks where nothing wakes those who wait.
const POLL: Duration = Duration::from_millis(50);

/// Whether the user asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    is_set: AtomicBool,
    /// The first signal; 0 for none.
    signal: AtomicI32,
    times: AtomicU32,
    /// The last signal that counted, and when it came, milliseconds; 0 for none.
    last: AtomicU64,
    /// Unproven changes that are in force.
    unproven: AtomicUsize,
    /// SIGHUP means to read the configuration again, as for a service.
    hangup_reloads: AtomicBool,
    is_reload_wanted: AtomicBool,
    /// Becomes readable with the first request to stop, and stays so: whoever waits for it wakes at once.
    bell: OnceLock<OwnedFd>,
}

/// The effect of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    /// The program ends in order.
    Stop,
    /// It continues to take back this many changes, and says so.
    Report(usize),
    /// The program ends at once.
    End,
    Nothing,
}

impl SignalState {
    /// Asks everything to end. Runs in a signal handler: an atomic and write(2).
    fn stop(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(bell) = self.bell.get() {
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }

    /// Counts a signal. Runs in a signal handler (signal-safety(7)): atomics and write(2) only.
    fn receive(&self, signal: i32, at_ms: u64) -> Effect {
        let last = self.last.load(Ordering::SeqCst);
        if last & 0xff == signal as u64 && at_ms.saturating_sub(last >> 8) < ECHO_MS {
            return Effect::Nothing;
        }
        if signal == SIGHUP && self.hangup_reloads.load(Ordering::SeqCst) {
            self.is_reload_wanted.store(true, Ordering::SeqCst);
            return Effect::Nothing;
        }
        // A closed terminal may send it twice, from the kernel and from the shell: the second is not a request of the user.
        if signal == SIGHUP && self.is_set.load(Ordering::SeqCst) {
            return Effect::Nothing;
        }
        self.last.store(at_ms << 8 | signal as u64, Ordering::SeqCst);
        let nth = self.times.fetch_add(1, Ordering::SeqCst) + 1;
        match (nth, self.unproven.load(Ordering::SeqCst)) {
            (1, _) => {
                self.signal.store(signal, Ordering::SeqCst);
                self.stop();
                Effect::Stop
            }
            (2, changes @ 1..) => Effect::Report(changes),
            _ => Effect::End,
        }
    }
}

impl Interrupt {
    /// Installs the handlers. Fails if the kernel refuses one (sigaction(2)).
    pub fn install() -> Result<Self> {
        let interrupt = Self::default();
        // Without it whoever waits looks now and then.
        let _ = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(|bell| interrupt.0.bell.set(bell));
        let ignored = ignored_signals();
        for signal in SIGNALS {
            if LEFT_IGNORED.contains(&signal) && ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            let state = Arc::clone(&interrupt.0);
            let handle = move || match state.receive(signal, now_ms()) {
                Effect::Report(changes) => report(changes),
                Effect::End => signal_hook::low_level::exit(STATUS_BASE + signal),
                Effect::Stop | Effect::Nothing => {}
            };
            register(signal, handle)?;
        }
        Ok(interrupt)
    }

    /// The flag, for code that polls it.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0.is_set
    }

    /// True once the user asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Asks to stop as a signal does, but by a key: that is no failure.
    pub(crate) fn stop(&self) {
        self.0.stop();
    }

    /// Waits until a time, or without end; true as soon as the user asked to stop.
    pub(crate) fn wait(&self, until: Option<Instant>) -> bool {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.is_set() || left.is_some_and(|left| left.is_zero()) {
                return self.is_set();
            }
            let Some(bell) = self.0.bell.get() else {
                std::thread::sleep(left.unwrap_or(POLL).min(POLL));
                continue;
            };
            let patience = left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() });
            // It ends early when a signal comes, and is looked at again.
            let _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], patience.as_ref());
        }
    }

    /// The exit status after a signal that asked to stop: 128 + its number, as in shells. Nothing without one.
    pub fn status(&self) -> Option<u8> {
        let signal = self.is_set().then(|| self.0.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)?;
        u8::try_from(STATUS_BASE + signal).ok()
    }

    /// From now on SIGHUP asks to read the configuration again, and not to stop.
    pub(crate) fn reload_on_hangup(&self) {
        self.0.hangup_reloads.store(true, Ordering::SeqCst);
    }

    /// True once after each such request.
    pub(crate) fn take_reload(&self) -> bool {
        self.0.is_reload_wanted.swap(false, Ordering::SeqCst)
    }

    /// Sets the number of unproven changes in force: while there are any, the second signal does not end the program.
    pub(crate) fn set_unproven(&self, changes: usize) {
        self.0.unproven.store(changes, Ordering::SeqCst);
    }
}

/// Milliseconds since boot. clock_gettime(2) is async-signal-safe.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// Installs one handler.
#[allow(unsafe_code)]
fn register(signal: i32, handle: impl Fn() + Send + Sync + 'static) -> Result<()> {
    // SAFETY: the handler uses atomics, a buffer on its stack, write(2) and _exit(2), all async-signal-safe; it cannot panic.
    unsafe { signal_hook::low_level::register(signal, handle) }?;
    Ok(())
}

/// Prints on stderr what is being done. Runs in a signal handler: no allocation and no lock.
fn report(changes: usize) {
    let mut line = Line { text: [0; 128], length: 0 };
    let (plural, them) = if changes == 1 { ("", "it") } else { ("s", "them") };
    let _ = writeln!(line, "\ntaking back {changes} change{plural}; a third Ctrl-C leaves {them} in the journal: `chokepoint undo`");
    // A closed terminal is ignored.
    let _ = rustix::io::write(std::io::stderr(), line.text.get(..line.length).unwrap_or_default());
}

/// A line on the stack.
struct Line {
    text: [u8; 128],
    length: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let room = self.text.get_mut(self.length..self.length + more.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}

/// Signals that were ignored when the program was started, one bit each (`SigIgn`, proc_pid_status(5)).
fn ignored_signals() -> u64 {
    let status = chokepoint_foreign::read_kernel("/proc/self/status", STATUS_BYTES_MAX).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_signal_ends_the_program_unless_changes_are_unproven() {
        let state = SignalState::default();
        let effects = [(SIGTERM, 1_000), (SIGHUP, 1_001), (SIGINT, 1_002)].map(|(signal, at_ms)| state.receive(signal, at_ms));
        assert_eq!(effects, [Effect::Stop, Effect::Nothing, Effect::End]);
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.status(), None);
        interrupt.set_unproven(2);
        let effects = [(SIGHUP, 1_000), (SIGHUP, 2_000), (SIGINT, 3_000), (SIGINT, 4_000)];
        let effects = effects.map(|(signal, at_ms)| interrupt.0.receive(signal, at_ms));
        assert_eq!(effects, [Effect::Stop, Effect::Nothing, Effect::Report(2), Effect::End]);
        assert_eq!(interrupt.status(), Some(129));
        // Once the changes are taken back, the second signal ends the program.
        let interrupt = Interrupt::default();
        interrupt.set_unproven(1);
        assert_eq!(interrupt.0.receive(SIGINT, 1_000), Effect::Stop);
        interrupt.set_unproven(0);
        assert_eq!((interrupt.0.receive(SIGQUIT, 1_001), interrupt.status()), (Effect::End, Some(130)));
    }

    #[test]
    fn a_service_reads_its_configuration_again_on_sighup() {
        let interrupt = Interrupt::default();
        interrupt.reload_on_hangup();
        assert_eq!((interrupt.0.receive(SIGHUP, 1_000), interrupt.take_reload(), interrupt.take_reload()), (Effect::Nothing, true, false));
        assert_eq!((interrupt.is_set(), interrupt.0.receive(SIGTERM, 2_000)), (false, Effect::Stop));
    }

    #[test]
    fn a_key_stops_like_a_signal_and_is_no_failure_and_whoever_waits_wakes() {
        let interrupt = Interrupt::default();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        assert!(interrupt.0.bell.set(bell).is_ok());
        assert!(!interrupt.wait(Some(Instant::now() + Duration::from_millis(1))), "nobody asked");
        let waits = interrupt.clone();
        let waits = std::thread::spawn(move || waits.wait(None));
        interrupt.stop();
        assert_eq!((waits.join().unwrap(), interrupt.is_set(), interrupt.status()), (true, true, None));
        assert_eq!((interrupt.0.receive(SIGTERM, 1_000), interrupt.status()), (Effect::Stop, Some(143)), "a signal after it counts");
    }

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one_request() {
        let state = SignalState::default();
        let effects = [0, 1, ECHO_MS - 1, ECHO_MS].map(|after_ms| state.receive(SIGTERM, 1_000 + after_ms));
        assert_eq!(effects, [Effect::Stop, Effect::Nothing, Effect::Nothing, Effect::End]);
    }

    #[test]
    fn the_longest_line_fits_the_buffer() {
        let mut line = Line { text: [0; 128], length: 0 };
        assert!(
            writeln!(line, "\ntaking back {} changes; a third Ctrl-C leaves them in the journal: `chokepoint undo`", usize::MAX).is_ok()
        );
    }
}
