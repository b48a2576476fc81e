//! Memory of a program that runs for months.

/// Largest piece of memory that comes from the heap, bytes. Larger ones are the kernel's again as soon as they are free.
#[cfg(target_env = "gnu")]
const HEAP_PIECE_MAX: libc::c_int = 256 << 10;

/// Lets all threads use one heap, before any of them begins: in heaps of their own each leaves holes that no other can use. Does nothing where the C library cannot.
#[allow(unsafe_code)]
pub(crate) fn for_months() {
    // SAFETY: it takes the allocator's own lock and changes its settings (mallopt(3)).
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        // Given once, it no longer grows with the pieces that are freed.
        libc::mallopt(libc::M_MMAP_THRESHOLD, HEAP_PIECE_MAX);
    }
}

/// Gives memory that is not used any more back to the kernel: threads that read a busy host leave holes behind. Does nothing where the C library cannot.
#[allow(unsafe_code)]
pub(crate) fn give_back() {
    // SAFETY: it takes the allocator's own locks and touches free memory only (malloc_trim(3)).
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
