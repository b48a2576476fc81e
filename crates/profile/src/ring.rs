//! The ring that the kernel writes samples to: mapped, copied out without tearing a record, and given back.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

/// Bytes of all rings together at most.
const TOTAL_BYTES_MAX: usize = 64 << 20;
/// Bytes of one ring at most: at 99 Hz with 16 KiB of stack a sample, more than a second.
const RING_BYTES_MAX: usize = 2 << 20;
/// Bytes of one ring at least: about what `perf_event_mlock_kb` lets a user without privileges map for each core.
const RING_BYTES_MIN: usize = 256 << 10;

/// The size of each ring where there are so many: a power of two, as the kernel asks for.
pub(crate) fn bytes_of_each(rings: usize) -> usize {
    let share = (TOTAL_BYTES_MAX / rings.max(1)).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    1 << share.ilog2()
}

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct Ring {
    base: *mut libc::c_void,
    page: usize,
    size: usize,
}

// SAFETY: the mapping belongs to this value alone, and only `&mut self` reads it; which thread that is does not matter.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event: a control page and `size` bytes. Falls back to smaller rings where locking so much is not allowed.
    pub(crate) fn map(fd: &OwnedFd, size: usize) -> io::Result<Self> {
        let page = page_bytes();
        let mut size = size;
        loop {
            // SAFETY: a fresh mapping at an address of the kernel's choice.
            let base = unsafe {
                libc::mmap(std::ptr::null_mut(), page + size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd.as_raw_fd(), 0)
            };
            if base != libc::MAP_FAILED {
                return Ok(Self { base, page, size });
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EPERM) || size <= RING_BYTES_MIN {
                return Err(error);
            }
            size /= 2;
        }
    }

    /// Copies what came since the last time behind `out` and gives its room back to the kernel. False where the ring's own counters made no
    /// sense and all that was in it had to be left.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let control = self.base.cast::<perf_event_mmap_page>();
        // SAFETY: the control page is mapped for as long as `self` lives; data_head and data_tail are aligned u64 that the kernel and we share,
        // and perf_event_open(2) asks for an acquire load of the head and a release store of the tail.
        let (head, tail) =
            unsafe { (AtomicU64::from_ptr(&raw mut (*control).data_head), AtomicU64::from_ptr(&raw mut (*control).data_tail)) };
        let (end, begin) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let pieces = pieces(begin, end, self.size);
        for (offset, length) in pieces.into_iter().flatten() {
            let old = out.len();
            out.reserve(length);
            // SAFETY: `pieces` gives ranges within the data area, which lies `page` bytes behind the base; the kernel does not write between
            // tail and head. The room was reserved, and counts only once it is filled.
            unsafe {
                let from = self.base.cast::<u8>().add(self.page + offset);
                std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().add(old), length);
                out.set_len(old + length);
            }
        }
        tail.store(end, Ordering::Release);
        pieces.is_some()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more. A failure leaves it mapped, which harms nobody.
        unsafe { libc::munmap(self.base, self.page + self.size) };
    }
}

/// The two ranges (offset, length) of the data area between two positions that only ever grow; none where they lie further apart than the
/// area is long.
fn pieces(begin: u64, end: u64, size: usize) -> Option<[(usize, usize); 2]> {
    let length = usize::try_from(end.wrapping_sub(begin)).ok().filter(|length| *length <= size)?;
    let offset = usize::try_from(begin % u64::try_from(size).ok()?).ok()?;
    let first = length.min(size - offset);
    Some([(offset, first), (0, length - first)])
}

fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wraps_comes_in_two_pieces() {
        assert_eq!(pieces(0, 0, 64), Some([(0, 0), (0, 0)]));
        assert_eq!(pieces(8, 24, 64), Some([(8, 16), (0, 0)]));
        assert_eq!(pieces(56, 72, 64), Some([(56, 8), (0, 8)]));
        assert_eq!(pieces(64, 128, 64), Some([(0, 64), (0, 0)]));
        assert_eq!(pieces(u64::MAX - 63, 0, 64), Some([(0, 64), (0, 0)]));
        assert_eq!(pieces(0, 65, 64), None);
        assert_eq!(pieces(8, 0, 64), None);
    }

    #[test]
    fn rings_are_powers_of_two_within_bounds() {
        for rings in [0, 1, 2, 3, 63, 64, 200, 5000] {
            let bytes = bytes_of_each(rings);
            assert!(bytes.is_power_of_two() && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&bytes), "{rings}: {bytes}");
        }
        assert!(bytes_of_each(64) * 64 <= TOTAL_BYTES_MAX);
    }
}
