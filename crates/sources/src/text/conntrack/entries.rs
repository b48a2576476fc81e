//! The lines of `/proc/net/nf_conntrack`, up to a million, read one after the other within bounds.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use crate::clock::thread_cpu;

/// The file; it lists the entries of the namespace of the thread that reads it.
pub(crate) const FILE: &str = "proc/thread-self/net/nf_conntrack";
/// Only root may read the file (mode 0440).
pub(crate) const NEEDS: &str = "CAP_DAC_READ_SEARCH";
/// Most entries of one read, and its limit of CPU time. On busy cores the reader mostly waits, and a limit of elapsed time would end the read after a few
/// entries.
pub(crate) const LINES_MAX: u64 = 300_000;
pub(crate) const TIME_MAX: Duration = Duration::from_millis(200);
/// How many times the limit of CPU time the elapsed time may be.
const WAIT_FACTOR: u32 = 10;
/// An entry has about 200 bytes. Only the beginning of a longer line counts.
const LINE_BYTES_MAX: usize = 4096;
/// Item that says how many entries were read, if a bound ended the read.
pub(crate) const ITEM_PARTIAL: &str = "partial";

/// How far a read went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Entries that were read.
    pub(crate) entries: u64,
    /// True if there are more.
    pub(crate) is_partial: bool,
}

impl Progress {
    /// Why not all entries were read.
    pub(crate) fn why_partial(self) -> String {
        format!("only {} entries were counted, because the limit of {TIME_MAX:?} or {LINES_MAX} entries was reached", self.entries)
    }
}

/// Passes each complete line of the file, with its newline, to `each`.
pub(crate) fn each_line(mut file: impl Read, lines_max: u64, time_max: Duration, mut each: impl FnMut(&[u8])) -> std::io::Result<Progress> {
    let (started, cpu_started) = (Instant::now(), thread_cpu());
    let mut entries = 0;
    let mut line = Vec::new();
    // The kernel returns about a page for each read, whatever the buffer.
    let mut buffer = vec![0; 64 << 10];
    let is_partial = 'reading: loop {
        let length = match file.read(&mut buffer) {
            Ok(0) => break false,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for piece in buffer[..length].split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(&piece[..piece.len().min(LINE_BYTES_MAX.saturating_sub(line.len()))]);
            if !piece.ends_with(b"\n") {
                continue;
            }
            if entries == lines_max {
                break 'reading true;
            }
            entries += 1;
            each(&line);
            line.clear();
        }
        if thread_cpu().saturating_sub(cpu_started) > time_max || started.elapsed() > WAIT_FACTOR * time_max {
            break true;
        }
    };
    Ok(Progress { entries, is_partial })
}
