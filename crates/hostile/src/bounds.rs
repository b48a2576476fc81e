//! What one case may take: time on the processor of its thread, at the nominal speed of [`speed`](crate::speed), and memory.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use crate::{allocator, speed};

/// Time on the processor that one case may take, on a machine of nominal speed. The processor time of a thread leaves out the time in which other programs
/// run, but not what they cost it: they share its caches, and a core its execution units. So a case that takes longer is compared with a fixed computation
/// on the same thread.
pub const TIME_MAX: Duration = Duration::from_secs(1);
/// Memory that one case may hold at once, bytes.
pub const MEMORY_MAX: u64 = 256 << 20;
/// A case that has not ended after this long ends the process, so that its input is known. Long: the machine may be busy.
const END_MAX: Duration = Duration::from_secs(120);

/// How often a case that takes longer than [`TIME_MAX`] is repeated between two runs of the reference.
const COMPARISONS: usize = 3;

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

/// Reads an input; says what it took, or why that was too much.
pub(crate) fn within(kind: &str, input: &[u8], read: impl Fn(&[u8])) -> Result<Cost, String> {
    let mut cost = once(kind, input, &read)?;
    let took = cost.time;
    let mut comparisons = 0..COMPARISONS;
    while cost.time > TIME_MAX && comparisons.next().is_some() {
        let before = speed::reference();
        let repeated = once(kind, input, &read)?;
        // The faster of both runs: the machine is not taken for slower than it was for a moment.
        let reference = before.min(speed::reference());
        cost = Cost { time: cost.time.min(speed::nominal(repeated.time, reference)), memory: cost.memory.max(repeated.memory) };
    }
    if cost.time > TIME_MAX {
        return Err(format!("it takes {cost} at nominal speed ({:.1} ms when it ran first)", took.as_secs_f64() * 1e3));
    }
    if cost.memory > MEMORY_MAX {
        return Err(format!("it takes {cost}"));
    }
    Ok(cost)
}

/// Reads an input a single time; says what it took, or that it panics.
fn once(kind: &str, input: &[u8], read: impl Fn(&[u8])) -> Result<Cost, String> {
    WATCH.call_once(|| drop(std::thread::spawn(watch)));
    let own = std::thread::current().id();
    let entry = (own, kind.to_owned(), input.to_owned(), Instant::now() + END_MAX);
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(entry);
    let held = allocator::held();
    allocator::begin();
    let begin = speed::processor_time();
    let ended = catch_unwind(AssertUnwindSafe(|| read(input)));
    let cost = Cost { time: speed::processor_time().saturating_sub(begin), memory: allocator::peak(held) };
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner).retain(|(thread, ..)| *thread != own);
    ended.map(|()| cost).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        format!("it panics: {}", text.unwrap_or("without words"))
    })
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
