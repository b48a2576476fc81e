//! The ring buffers that the kernel writes samples to.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::sampling::record::{self, Record};

/// Maximum bytes of all rings together.
const TOTAL_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of one ring: at 99 Hz with 16 KiB of stack in each sample, more than a second.
const RING_BYTES_MAX: usize = 2 << 20;
/// Minimum bytes of one ring: about what `perf_event_mlock_kb` lets an unprivileged user map for each core.
const RING_BYTES_MIN: usize = 256 << 10;

/// The size of each of this many rings: a power of two, as the kernel requires.
pub(crate) fn bytes_of_each(rings: usize) -> usize {
    let share = (TOTAL_BYTES_MAX / rings.max(1)).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    1 << share.ilog2()
}

#[derive(Debug)]
pub(crate) struct Ring {
    base: *mut libc::c_void,
    page: usize,
    size: usize,
}

// SAFETY: this value alone owns the mapping, and only `&mut self` reads it. The thread it is used on does not matter.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event: a control page and `size` bytes. Tries smaller rings if the user may not lock that much memory.
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

    /// Appends the new bytes to `out` and returns their room to the kernel. False if the ring's own counters made no sense; its contents are then dropped.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let control = self.base.cast::<perf_event_mmap_page>();
        // SAFETY: the control page stays mapped as long as `self` lives. The kernel and we share data_head and data_tail, which are aligned u64.
        // perf_event_open(2) requires an acquire load of the head and a release store of the tail.
        let (head, tail) =
            unsafe { (AtomicU64::from_ptr(&raw mut (*control).data_head), AtomicU64::from_ptr(&raw mut (*control).data_tail)) };
        let (end, begin) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let pieces = pieces(begin, end, self.size);
        for (offset, length) in pieces.into_iter().flatten() {
            let old = out.len();
            out.reserve(length);
            // SAFETY: `pieces` gives ranges within the data area, which starts `page` bytes after the base. The kernel does not write between tail and head.
            // The room was reserved and counts only once it is filled.
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
        // SAFETY: the mapping is ours and nothing refers to it any more. If the call fails it stays mapped, which does no harm.
        unsafe { libc::munmap(self.base, self.page + self.size) };
    }
}

/// Copies the contents of all rings into `buffers` and passes their records on in time order. Returns how many times a ring lost records.
pub(crate) fn drain(rings: &mut [Ring], buffers: &mut [Vec<u8>], mut take: impl FnMut(u64, Record<'_>)) -> u64 {
    let (mut records, mut lost) = (Vec::new(), 0);
    for (ring, buffer) in rings.iter_mut().zip(&mut *buffers) {
        buffer.clear();
        lost += u64::from(!ring.take(buffer));
    }
    for buffer in buffers.iter() {
        lost += u64::from(record::parse(buffer, &mut records).is_err());
    }
    records.sort_by_key(|(time, _)| *time);
    for (time, record) in records {
        take(time, record);
    }
    lost
}

/// The two ranges (offset, length) of the data area between two ever-growing positions. None if they are further apart than the area is long.
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
    fn data_that_wraps_around_comes_in_two_pieces() {
        assert_eq!(pieces(0, 0, 64), Some([(0, 0), (0, 0)]));
        assert_eq!(pieces(8, 24, 64), Some([(8, 16), (0, 0)]));
        assert_eq!(pieces(56, 72, 64), Some([(56, 8), (0, 8)]));
        assert_eq!(pieces(64, 128, 64), Some([(0, 64), (0, 0)]));
        assert_eq!(pieces(u64::MAX - 63, 0, 64), Some([(0, 64), (0, 0)]));
        assert_eq!(pieces(0, 65, 64), None);
        assert_eq!(pieces(8, 0, 64), None);
    }

    #[test]
    fn ring_sizes_are_powers_of_two_within_bounds() {
        for rings in [0, 1, 2, 3, 63, 64, 200, 5000] {
            let bytes = bytes_of_each(rings);
            assert!(bytes.is_power_of_two() && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&bytes), "{rings}: {bytes}");
        }
        assert!(bytes_of_each(64) * 64 <= TOTAL_BYTES_MAX);
    }
}
