//! A time limit for reads that another process can delay for ever.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Most reads that may hang at one time, each with a waiting thread.
const HANGING_MAX: usize = 16;

static HANGING: AtomicUsize = AtomicUsize::new(0);

/// Runs `read` with a time limit.
///
/// A read of a process's memory (`/proc/PID/mem`), or under the lock of its mappings (`maps`), can hang if that memory is backed by a file that is not
/// delivered (FUSE, a network file system). So could `cmdline` and `environ` before Linux 4.17; since then the kernel reads them only from anonymous memory
/// (FOLL_ANON) and returns nothing, at once, for memory of a file. Such a read cannot be cancelled: its thread stays until the read or this program ends. The
/// thread costs some 30 microseconds.
///
/// # Errors
/// TimedOut; no thread can be started; 16 reads hang already.
pub fn within<T: Send + 'static>(time: Duration, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if HANGING.load(Ordering::Relaxed) >= HANGING_MAX {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{HANGING_MAX} other reads hang")));
    }
    let (done, is_done) = sync_channel(1);
    let work = move || {
        HANGING.fetch_add(1, Ordering::Relaxed);
        let result = read();
        HANGING.fetch_sub(1, Ordering::Relaxed);
        // The caller may have stopped waiting.
        let _ = done.send(result);
    };
    thread::Builder::new().name("within".to_owned()).stack_size(256 << 10).spawn(work)?;
    match is_done.recv_timeout(time) {
        Ok(result) => Ok(result),
        Err(RecvTimeoutError::Timeout) => Err(io::Error::new(io::ErrorKind::TimedOut, "reading this process takes too long")),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the read panicked")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_hanging_read_is_abandoned() {
        assert_eq!(within(Duration::from_secs(60), || 5).unwrap(), 5);
        let (mut never, writer) = io::pipe().unwrap();
        let hangs = within(Duration::from_millis(20), move || never.read(&mut [0]));
        assert_eq!(hangs.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(writer);
        assert_eq!(within(Duration::from_secs(60), || 6).unwrap(), 6);
    }
}
