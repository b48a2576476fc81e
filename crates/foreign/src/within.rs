//! Reads that another process can hold up for as long as it likes: they are waited for only so long.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Reads that may hang at one time, each with a thread that waits for it.
const HANGING_MAX: usize = 16;

static HANGING: AtomicUsize = AtomicUsize::new(0);

/// Gives what `read` gives, within a time.
///
/// What the kernel takes out of a process's memory (`/proc/PID/mem`) or under the lock of its mappings (`maps`) may wait where that memory is backed by
/// a file whose owner does not deliver it (FUSE, a network file system). `cmdline` and `environ` did before Linux 4.17; since then the kernel reads them
/// of anonymous memory alone (FOLL_ANON) and gives nothing, at once, where a file is behind it. Such a read cannot be cancelled: its thread is left
/// behind, and ends with the read or with this program. It costs a thread, some 30 microseconds.
///
/// # Errors
/// TimedOut; no thread can be started; 16 reads hang already.
pub fn within<T: Send + 'static>(time: Duration, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if HANGING.load(Ordering::Relaxed) >= HANGING_MAX {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{HANGING_MAX} reads hang already")));
    }
    let (done, is_done) = sync_channel(1);
    let work = move || {
        HANGING.fetch_add(1, Ordering::Relaxed);
        let result = read();
        HANGING.fetch_sub(1, Ordering::Relaxed);
        // Nobody may wait for it any more.
        let _ = done.send(result);
    };
    thread::Builder::new().name("within".to_owned()).stack_size(256 << 10).spawn(work)?;
    match is_done.recv_timeout(time) {
        Ok(result) => Ok(result),
        Err(RecvTimeoutError::Timeout) => Err(io::Error::new(io::ErrorKind::TimedOut, "the process holds up who reads it")),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the read panicked")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_read_that_hangs_is_left_behind() {
        assert_eq!(within(Duration::from_secs(60), || 5).unwrap(), 5);
        let (mut never, writer) = io::pipe().unwrap();
        let hangs = within(Duration::from_millis(20), move || never.read(&mut [0]));
        assert_eq!(hangs.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(writer);
        assert_eq!(within(Duration::from_secs(60), || 6).unwrap(), 6);
    }
}
