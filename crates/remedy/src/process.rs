//! Processes told apart for good: by number and start time together.

use std::fs;

/// When a process started, clock ticks since boot (proc_pid_stat(5), field 22); nothing where there is none, or it is hidden (hidepid, proc(5)).
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may hold anything, brackets and blanks too.
    let text = String::from_utf8_lossy(&bytes);
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
