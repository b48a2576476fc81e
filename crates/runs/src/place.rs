//! The directory and the file of the store: accessible by this user only, and changeable by nobody else.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::RunsError;

/// Rights of the directory, if the store makes it. Root's also holds the journal of changes, whose summary other users read.
const DIRECTORY_MODE: u32 = 0o700;
const DIRECTORY_MODE_ROOT: u32 = 0o755;
/// Rights of the file: it describes this host.
const FILE_MODE: u32 = 0o600;
/// Most damaged files that are kept; the last is replaced.
const ASIDE_MAX: u32 = 9;

/// Makes the directory and an empty file where they are missing. Returns the path of the file, links in the directory's path resolved.
pub(crate) fn prepare(dir: &Path, name: &str) -> Result<PathBuf, RunsError> {
    if !dir.exists() {
        let mode = if is_root() { DIRECTORY_MODE_ROOT } else { DIRECTORY_MODE };
        DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(|error| RunsError::io("create", dir, error))?;
    }
    match find(dir, name)? {
        Some(file) => Ok(file),
        None => {
            let file = checked_directory(dir)?.join(name);
            let made = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&file);
            match made {
                // Another process was faster.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(RunsError::io("create", &file, error)),
                _ => Ok(find(dir, name)?.unwrap_or(file)),
            }
        }
    }
}

/// The path of the file if it exists, checked.
///
/// The file is not opened for this: closing it would drop the locks that SQLite holds on it for another connection of this process (fcntl(2)). Nobody else
/// can replace it in between, because nobody else can write in its directory.
pub(crate) fn find(dir: &Path, name: &str) -> Result<Option<PathBuf>, RunsError> {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunsError::io("open", dir, error)),
        Ok(_) => {}
    }
    let file = checked_directory(dir)?.join(name);
    let meta = match fs::symlink_metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunsError::io("open", &file, error)),
        Ok(meta) => meta,
    };
    if !meta.is_file() {
        return Err(unsafe_because(&file, "is not a regular file"));
    }
    check_owner(&file, &meta)?;
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(&file, Permissions::from_mode(FILE_MODE)).map_err(|error| RunsError::io("open", &file, error))?;
    }
    Ok(Some(file))
}

/// Moves a file of SQLite aside with its log, and returns its new path. What is moved is kept: it may be mended.
pub(crate) fn move_aside(dir: &Path, name: &str) -> Result<PathBuf, RunsError> {
    let dir = checked_directory(dir)?;
    let aside = |number: u32| dir.join(format!("{name}.damaged-{number}"));
    let free = (1..=ASIDE_MAX).map(aside).find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| aside(ASIDE_MAX));
    fs::rename(dir.join(name), &free).map_err(|error| RunsError::io("move", &dir.join(name), error))?;
    // The log and its index belong to the moved file (sqlite.org/tempfiles.html). Either may be missing.
    for ending in ["-wal", "-shm"] {
        let mut moved = free.clone().into_os_string();
        moved.push(ending);
        let _ = fs::rename(dir.join(format!("{name}{ending}")), moved);
    }
    Ok(free)
}

/// The directory with links resolved, if nobody else can write in it; for root also if nobody else can redirect its path.
fn checked_directory(dir: &Path) -> Result<PathBuf, RunsError> {
    let failed = |error| RunsError::io("open", dir, error);
    let meta = fs::metadata(dir).map_err(failed)?;
    if !meta.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    check_owner(dir, &meta)?;
    if is_root() {
        let whole = std::path::absolute(dir).map_err(failed)?;
        chokepoint_foreign::trusted(&whole, 0).map_err(|why| unsafe_because(dir, &format!("is not safe: {why}")))?;
    }
    fs::canonicalize(dir).map_err(failed)
}

fn check_owner(path: &Path, meta: &Metadata) -> Result<(), RunsError> {
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(unsafe_because(path, "belongs to another user"));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(unsafe_because(path, "can be written by other users"));
    }
    Ok(())
}

fn unsafe_because(path: &Path, why: &str) -> RunsError {
    RunsError::Unsafe { path: path.to_owned(), why: why.to_owned() }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
