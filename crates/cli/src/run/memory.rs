//! Memory of a program that runs for months.

/// Gives memory that is not used any more back to the kernel: threads that read a busy host leave holes behind. Does nothing where the C library cannot.
#[allow(unsafe_code)]
pub(crate) fn give_back() {
    // SAFETY: it takes the allocator's own locks and touches free memory only (malloc_trim(3)).
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
