//! One writer for root per host, and one for each other user: an advisory lock (flock(2)) on a file that names its holder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::RemedyError;

/// The lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock without waiting.
    pub(crate) fn take(path: &Path) -> Result<Self, RemedyError> {
        let failed = |doing, error| RemedyError::io(doing, path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let opened = options.open(path).or_else(|error| match error.kind() {
            // Undo must work on a full or read-only disk: an existing lock file can be locked too.
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::StorageFull => File::open(path).map_err(|_| error),
            _ => Err(error),
        });
        let mut file = opened.map_err(|error| failed("open", error))?;
        // Anyone who can open it could hold it for ever.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(RemedyError::LockHeld { lock: path.to_owned(), pid: holder(&mut file) }),
            Err(error) => return Err(failed("lock", error.into())),
        }
        // The PID is for people. On a full disk the lock works without it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A stale PID would name a process that no longer holds the lock. Closing alone does not unlock while a just forked child has the file open.
        let _ = self.file.set_len(0);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn holder(file: &mut File) -> Option<u32> {
    const PID_BYTES_MAX: u64 = 16;
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
