//! What a reference work costs after rests (`chokepoint_model::observation::Warmth`), measured before a load: a third of a second, nearly all of it sleep.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;
use std::{fs, io};

use chokepoint_model::observation::{AfterRest, Warmth};
use chokepoint_statistics::median_high;

use crate::host;

/// Rests that are tried, milliseconds: the times between two requests at 1,000 to 60 requests a second.
const RESTS_MS: &[u64] = &[1, 4, 16];
/// Times that each is tried; the median counts.
const TRIES: usize = 16;
/// Messages between the two sockets, and looks at a small file, that are one piece of work.
const STEPS: usize = 4;
/// Memory that each piece of work goes through, bytes: what a small program holds in the second-level cache.
const MEMORY: usize = 64 << 10;
/// Bytes of a cache line on the machines at hand.
const LINE: usize = 64;

/// Measures it by a thread of its own that may run on these cores only, or anywhere where none is given; an error where the work could not be done.
pub fn measure(cpus: &[u32]) -> io::Result<Warmth> {
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            if !cpus.is_empty() {
                host::pin(cpus)?;
            }
            tried()
        });
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn tried() -> io::Result<Warmth> {
    let mut work = Work::new()?;
    let (mut busy, mut rested) = (Vec::new(), Vec::new());
    for &rest_ms in RESTS_MS {
        let mut after = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            thread::sleep(Duration::from_millis(rest_ms));
            after.push(work.cost_ns()?);
            // Right behind it, so that both are of a core that is as fast: others on the machine make that change from one moment to the next.
            busy.push(work.cost_ns()?);
        }
        rested.push(AfterRest { rest_us: rest_ms * 1_000, cost_ns: median_high(after).unwrap_or_default() });
    }
    Ok(Warmth { busy_ns: median_high(busy).unwrap_or_default(), rested })
}

/// Many short steps through different parts of the kernel, as an answer is: each is cold for itself after a rest.
struct Work {
    ends: (UnixStream, UnixStream),
    memory: Vec<u8>,
}

impl Work {
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
            black_box(fs::read("/proc/self/stat")?);
            black_box(fs::metadata("/")?);
        }
        Ok(host::cpu_ns() - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rest_is_measured() {
        let warmth = measure(&[]).unwrap();
        assert!(warmth.busy_ns > 0);
        assert_eq!(warmth.rested.iter().map(|after| after.rest_us).collect::<Vec<_>>(), [1_000, 4_000, 16_000]);
        assert!(warmth.rested.iter().all(|after| after.cost_ns > 0), "{warmth:?}");
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(measure(&[1023]).is_err());
    }
}
