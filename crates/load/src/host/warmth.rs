//! Measures before a load what a reference task costs after idle periods (`chokepoint_model::observation::Warmth`). It takes a third of a second, mostly sleep.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use std::{fs, io};

use chokepoint_model::observation::{AfterRest, Warmth};
use chokepoint_statistics::median_high;

use crate::host;

/// Idle periods, milliseconds: the times between two requests at 1,000 to 60 requests a second.
const RESTS_MS: &[u64] = &[1, 4, 16];
/// Repetitions of each period; the median counts.
const TRIES: usize = 16;
/// Messages between the two sockets, and reads of a small file, in one task.
const STEPS: usize = 4;
/// Memory that each task touches, bytes: what a small program keeps in the second-level cache.
const MEMORY: usize = 64 << 10;
/// Bytes of a cache line on the machines at hand.
const LINE: usize = 64;

/// Measures in a separate thread, restricted to these cores if any are given. It is an error if the task fails.
pub fn measure(cpus: &[u32]) -> io::Result<Warmth> {
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            if !cpus.is_empty() {
                host::pin(cpus)?;
            }
            measure_periods()
        });
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_periods() -> io::Result<Warmth> {
    let mut work = ReferenceTask::new()?;
    let (mut busy, mut rested) = (Vec::new(), Vec::new());
    for &rest_ms in RESTS_MS {
        let mut after = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            thread::sleep(Duration::from_millis(rest_ms));
            after.push(work.cost_ns()?);
            // Directly afterwards, so that both run at the same core speed: other programs on the machine change it from one moment to the next.
            busy.push(work.cost_ns()?);
        }
        rested.push(AfterRest { rest_us: rest_ms * 1_000, cost_ns: median_high(after).unwrap_or_default() });
    }
    Ok(Warmth { busy_ns: median_high(busy).unwrap_or_default(), rested })
}

/// Many short steps through different parts of the kernel, as for an answer. Each has cold caches after a rest.
struct ReferenceTask {
    ends: (UnixStream, UnixStream),
    memory: Vec<u8>,
}

impl ReferenceTask {
    fn new() -> io::Result<Self> {
        Ok(Self { ends: UnixStream::pair()?, memory: vec![1; MEMORY] })
    }

    fn cost_ns(&mut self) -> io::Result<u64> {
        let begin = host::cpu_ns();
        for line in self.memory.iter_mut().step_by(LINE) {
            *line = line.wrapping_add(1);
        }
        black_box(&self.memory);
        let mut buffer = [0; 256];
        for _ in 0..STEPS {
            self.ends.0.write_all(&buffer)?;
            self.ends.1.read_exact(&mut buffer)?;
            black_box(chokepoint_foreign::read_kernel("/proc/self/stat", 1 << 12)?);
            black_box(fs::metadata("/")?);
        }
        Ok(host::cpu_ns() - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_after_each_rest_is_measured() {
        let warmth = measure(&[]).unwrap();
        assert!(warmth.busy_ns > 0);
        assert_eq!(warmth.rested.iter().map(|after| after.rest_us).collect::<Vec<_>>(), [1_000, 4_000, 16_000]);
        assert!(warmth.rested.iter().all(|after| after.cost_ns > 0), "{warmth:?}");
    }

    #[test]
    fn a_missing_core_is_an_error() {
        assert!(measure(&[1023]).is_err());
    }
}
