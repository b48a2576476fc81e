//! Why runs cannot be kept or read.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why runs cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The directory or the file cannot be made, opened or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// "create", "open", "write".
        doing: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// The error. The sentence has it, so it is no source: the chain would tell it twice.
        error: io::Error,
    },
    /// Somebody else may change the directory or the file.
    #[error("{} is not used: it {why}", path.display())]
    Unsafe {
        /// The directory or file.
        path: PathBuf,
        /// "belongs to another user", ...
        why: String,
    },
    /// The disk is full.
    #[error("{} cannot grow: the disk is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written: a read-only file system, or no right to.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
    },
    /// It is no store of runs, or a part of it cannot be read.
    #[error("{} is damaged ({why}): move it away; a new one is made", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer version of chokepoint wrote it.
    #[error("{} was written by a newer chokepoint (format {found}; this one knows up to {known})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program reads.
        known: i64,
    },
    /// Another process has it locked.
    #[error("{} is in use by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A document is longer than the limit.
    #[error("a document of {bytes} bytes is not kept: the limit is {limit} bytes")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no such run.
    #[error("there is no run {id}")]
    NoRun {
        /// The number that was asked for.
        id: i64,
    },
    /// There is no such incident, or no more.
    #[error("there is no incident {id}")]
    NoIncident {
        /// The number that was asked for.
        id: i64,
    },
    /// Any other error of SQLite.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
}

impl RunsError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned() },
            _ => Self::Io { doing, path: path.to_owned(), error: source },
        }
    }

    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }

    /// What an error of SQLite means for the user (sqlite.org/rescode.html).
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Unwritable { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { path, why: source.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            _ if is_foreign_shape(&source) => Self::Damaged { path, why: source.to_string() },
            _ => Self::Sqlite { path, source },
        }
    }
}

/// True if a column has another type than this program writes.
fn is_foreign_shape(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..))
}
