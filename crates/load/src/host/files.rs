//! A table of open files of a thread's own.
#![allow(
    unsafe_code,
    reason = "no safe library leaves the process's table of open files, since what others opened cannot be used from then on"
)]

/// The first descriptor behind the standard streams.
const FIRST: libc::c_uint = 3;

/// Gives this thread a table of open files of its own with the standard streams in it (close_range(2), CLOSE_RANGE_UNSHARE; Linux 5.9). While threads
/// share a table, each system call on a socket counts a reference to it up and down, which costs a keep-alive request about 1.5 % of its time.
///
/// False where the kernel refuses: the table stays shared, and all works as before.
pub(crate) fn take_own() -> bool {
    // SAFETY: the set is filled before it is read, and both live on the stack. The thread runs an engine and ends: it uses the sockets and the epoll
    // that it opens itself from now on, gives none of them away, and takes none from others. A signal's handler may use descriptors of the others
    // and therefore must not run here.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) == 0
    }
}

/// True where threads can have tables of their own: one that is made for it tries.
pub(crate) fn can_be_own() -> bool {
    std::thread::spawn(take_own).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_others_have_open_is_not_in_an_own_table() {
        let file = std::fs::File::open("/dev/null").expect("every Linux has it");
        let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        assert!(std::fs::symlink_metadata(&path).is_ok());
        let elsewhere = path.clone();
        let taken = std::thread::spawn(move || (take_own(), std::fs::symlink_metadata(&elsewhere).is_ok())).join();
        match taken.expect("it does not panic") {
            (true, is_open) => assert!(!is_open, "the thread's table has the file"),
            (false, is_open) => {
                println!("skipped: this kernel gives a thread no table of its own");
                assert!(is_open);
            }
        }
        assert!(std::fs::symlink_metadata(&path).is_ok(), "the process's table is as it was");
    }
}
