//! The lines of `/proc/net/nf_conntrack`, of which there may be a million, read one after the other within bounds.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use crate::clock::thread_cpu;

/// The file; it lists the entries of the namespace of the thread that reads it.
pub(crate) const FILE: &str = "proc/thread-self/net/nf_conntrack";
/// The file is readable for root alone (mode 0440).
pub(crate) const NEEDS: &str = "CAP_DAC_READ_SEARCH";
/// Entries that are looked at in one read at most, and the CPU time in which they are: on a host whose cores are busy, where the reader waits
/// for one most of the time, the clock would end the reading after a few.
pub(crate) const LINES_MAX: u64 = 300_000;
pub(crate) const TIME_MAX: Duration = Duration::from_millis(200);
/// How many times as long the reading may take by the clock.
const WAIT_FACTOR: u32 = 10;
/// An entry has about 200 bytes; of a longer line only the beginning counts.
const LINE_BYTES_MAX: usize = 4096;
/// Item that says how many entries were looked at where a bound ended the reading.
pub(crate) const ITEM_PARTIAL: &str = "partial";

/// How far a read went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Entries that were looked at.
    pub(crate) entries: u64,
    /// True where there are more.
    pub(crate) is_partial: bool,
}

impl Progress {
    /// Why not all entries were looked at.
    pub(crate) fn why_partial(self) -> String {
        format!("only {} entries were counted, then the time of {TIME_MAX:?} or {LINES_MAX} entries was over", self.entries)
    }
}

/// Gives each whole line of the file, with its newline, to `each`.
pub(crate) fn each_line(mut file: impl Read, lines_max: u64, time_max: Duration, mut each: impl FnMut(&[u8])) -> std::io::Result<Progress> {
    let (started, cpu_started) = (Instant::now(), thread_cpu());
    let mut entries = 0;
    let mut line = Vec::new();
    // The kernel fills about a page a read whatever is asked for.
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
