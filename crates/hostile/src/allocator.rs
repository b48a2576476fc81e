//! An allocator that counts what each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count of bytes by thread. `#[global_allocator] static ALLOCATOR: Allocator = Allocator;`
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Takes note that the thread holds so many bytes more. A thread that is about to end has no counts any more.
fn add(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: everything is handed on to the system's allocator as it came; the counts allocate nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(size(layout.size()));
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(size(layout.size()));
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-size(layout.size()));
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(size(new_size) - size(layout.size()));
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// Begins to count anew: what the thread holds beyond what it holds now.
pub(crate) fn begin() {
    PEAK.with(|peak| peak.set(HELD.with(Cell::get)));
}

/// What this thread held at most since it began to count at `begin`, when it held `held`.
pub(crate) fn peak(held: i64) -> u64 {
    u64::try_from(PEAK.with(Cell::get) - held).unwrap_or(0)
}

/// What this thread holds now; 0 for ever where the [`Allocator`] is not the global one.
pub(crate) fn held() -> i64 {
    HELD.with(Cell::get)
}
