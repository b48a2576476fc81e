//! An allocator that counts the bytes held by each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a byte count per thread. `#[global_allocator] static ALLOCATOR: Allocator = Allocator;`
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Adds to the bytes that the thread holds. A thread that is about to end has no counts.
fn add(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counts allocate nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(size(layout.size()));
        // SAFETY: the caller follows the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(size(layout.size()));
        // SAFETY: the caller follows the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-size(layout.size()));
        // SAFETY: the caller follows the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(size(new_size) - size(layout.size()));
        // SAFETY: the caller follows the same contract.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// Restarts the count: from now on, the bytes held beyond the present ones.
pub(crate) fn begin() {
    PEAK.with(|peak| peak.set(HELD.with(Cell::get)));
}

/// Peak bytes held by this thread since `begin`, when it held `held`.
pub(crate) fn peak(held: i64) -> u64 {
    u64::try_from(PEAK.with(Cell::get) - held).unwrap_or(0)
}

/// Bytes held by this thread now; always 0 if the [`Allocator`] is not the global one.
pub(crate) fn held() -> i64 {
    HELD.with(Cell::get)
}
