//! How much memory this process has, which a reader asks to bound what it makes of a file. In a child the file that says so is open before all others are forbidden.

use std::sync::OnceLock;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::pread;

/// Seven numbers.
const STATM_BYTES_MAX: usize = 256;

/// Resident memory of this process, bytes (proc_pid_statm(5)); none without /proc.
pub fn resident_bytes() -> Option<u64> {
    static STATM: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let open = || openat(CWD, "/proc/self/statm", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
    let file = STATM.get_or_init(open).as_ref()?;
    let mut text = [0; STATM_BYTES_MAX];
    let length = pread(file, &mut text, 0).ok()?;
    let pages = std::str::from_utf8(text.get(..length)?).ok()?.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_counts() {
        let before = resident_bytes().unwrap();
        let used = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(resident_bytes().unwrap() > before + (32 << 20));
        drop(used);
    }
}
