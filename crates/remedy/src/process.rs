//! Identifying a process: PID and start time together are unique.

use std::fs;

/// Start time of a process, clock ticks since boot (proc_pid_stat(5), field 22). Nothing where it does not exist or is hidden (hidepid, proc(5)).
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may contain brackets and blanks.
    let text = String::from_utf8_lossy(&bytes);
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
