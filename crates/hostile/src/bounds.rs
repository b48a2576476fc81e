//! What one case may take: time on the processor of its thread (other programs of the machine do not count), and memory.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::allocator;

/// Time on the processor that one case may take.
pub const TIME_MAX: Duration = Duration::from_secs(1);
/// Memory that one case may hold at once, bytes.
pub const MEMORY_MAX: u64 = 256 << 20;
/// A case that has not ended after this long ends the process, so that its input is known. Long: the machine may be busy.
const END_MAX: Duration = Duration::from_secs(120);

/// What a case took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    time: Duration,
    memory: u64,
}

impl Cost {
    /// The larger of both, each by itself.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { time: self.time.max(other.time), memory: self.memory.max(other.memory) }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms and {:.1} MB", self.time.as_secs_f64() * 1e3, self.memory as f64 / 1e6)
    }
}

/// The cases that run now: the thread, the kind, the input and when it must have ended.
static RUNNING: Mutex<Vec<Case>> = Mutex::new(Vec::new());

/// The thread that reads, the kind of input, the input, and since when.
type Case = (std::thread::ThreadId, String, Vec<u8>, Instant);
static WATCH: Once = Once::new();

/// Time that this thread had a processor (clock_gettime(2), CLOCK_THREAD_CPUTIME_ID).
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Reads an input; says what it took, or why that was too much.
pub(crate) fn within(kind: &str, input: &[u8], read: impl Fn(&[u8])) -> Result<Cost, String> {
    WATCH.call_once(|| drop(std::thread::spawn(watch)));
    let own = std::thread::current().id();
    let entry = (own, kind.to_owned(), input.to_owned(), Instant::now() + END_MAX);
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(entry);
    let held = allocator::held();
    allocator::begin();
    let begin = processor_time();
    let ended = catch_unwind(AssertUnwindSafe(|| read(input)));
    let cost = Cost { time: processor_time().saturating_sub(begin), memory: allocator::peak(held) };
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).retain(|(thread, ..)| *thread != own);
    if let Err(panic) = ended {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        return Err(format!("it panics: {}", text.unwrap_or("without words")));
    }
    if cost.time > TIME_MAX || cost.memory > MEMORY_MAX {
        return Err(format!("it takes {cost}"));
    }
    Ok(cost)
}

/// Ends the process where a case does not end.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, kind, input, _)) = running.iter().find(|(.., until)| Instant::now() > *until) {
            eprintln!("{kind}: it does not end; {} bytes, kept in {}", input.len(), keep(kind, input));
            std::process::abort();
        }
    }
}

/// Writes an input to a file below the directory for temporary files, and names it.
pub(crate) fn keep(kind: &str, input: &[u8]) -> String {
    let name: String = kind.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let path = std::env::temp_dir().join(format!("hostile-{name}-{}.bin", std::process::id()));
    match std::fs::write(&path, input) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("no file ({error})"),
    }
}
