//! A descriptor table for each thread.
#![allow(
    unsafe_code,
    reason = "no safe library leaves the process's table of open files, since what others opened cannot be used from then on"
)]

/// The first descriptor after the standard streams.
const FIRST: libc::c_uint = 3;

/// Gives this thread its own descriptor table with only the standard streams (close_range(2), CLOSE_RANGE_UNSHARE; Linux 5.9). While threads share a table,
/// each system call on a socket takes and drops a reference to it, which costs a keep-alive request about 1.5 % of its time.
///
/// False if the kernel refuses: the table stays shared and everything works as before.
pub(crate) fn take_own() -> bool {
    // SAFETY: the set is filled before it is read, and both live on the stack. The thread runs an engine and ends: from now on it uses only sockets and an
    // epoll that it opens itself, and shares none of them. A signal handler may use descriptors of other threads, so signals are blocked here.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) == 0
    }
}

/// Whether threads can have their own tables. A thread started for this purpose tries it.
pub(crate) fn can_be_own() -> bool {
    std::thread::spawn(take_own).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn files_of_other_threads_are_not_in_the_own_table() {
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
