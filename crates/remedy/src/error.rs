//! Errors, worded for the person who must act on them.

use std::io;
use std::path::{Path, PathBuf};

use chokepoint_model::observation::NetnsId;

use crate::owner::Running;

/// The journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemedyError {
    /// Another process is applying or undoing changes.
    #[error("another chokepoint{} is changing this host (lock {}): wait for it to end", held_by(*.pid), .lock.display())]
    LockHeld {
        /// The lock file.
        lock: PathBuf,
        /// The process that holds it, if known.
        pid: Option<u32>,
    },
    /// The changes belong to a run that goes on.
    #[error("{0} made these changes and still runs: wait until it ends, or stop it")]
    Running(Running),
    /// The file system is full.
    #[error("no space left for the journal in {}: free some space, or set CHOKEPOINT_STATE_DIR to another directory", .path.display())]
    NoSpace {
        /// The file written.
        path: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("the journal's file system is read-only ({}): set CHOKEPOINT_STATE_DIR to a writable directory", .path.display())]
    ReadOnly {
        /// The file written.
        path: PathBuf,
    },
    /// The file belongs to another user.
    #[error("no permission for {}: run as root, or as the user who made the changes", .path.display())]
    NoPermission {
        /// The file opened.
        path: PathBuf,
    },
    /// Other users could write false entries into the journal.
    #[error("{} {why}, so somebody else could have chokepoint change the host: make it yours alone (chown, chmod go-w)", .path.display())]
    UnsafeDirectory {
        /// The directory or file.
        path: PathBuf,
        /// The defect.
        why: &'static str,
    },
    /// Another user could redirect root's journal.
    #[error("{0}: root's journal is not safe there: set CHOKEPOINT_STATE_DIR to another directory, or let only root write to that one")]
    Untrusted(chokepoint_foreign::Untrusted),
    /// The changes applied by root are not known.
    #[error("changes that root applied on this host are not known ({}: {source}): run `sudo chokepoint undo --list`", .path.display())]
    Untold {
        /// The summary.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line before the last one is damaged.
    #[error("the journal {} is damaged in line {line}: `chokepoint undo` takes back the readable changes and moves the journal away", .path.display())]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// The first damaged line, counted from 1.
        line: usize,
    },
    /// A newer program wrote the journal.
    #[error("the journal {} has version {found}, but this chokepoint knows versions up to {known}: use the newer chokepoint that made the changes", .path.display())]
    VersionTooNew {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The journal is too large.
    #[error("the journal {} is larger than {limit} bytes: take back its changes (`chokepoint undo`)", .path.display())]
    TooLarge {
        /// The journal.
        path: PathBuf,
        /// The bound, bytes.
        limit: u64,
    },
    /// Anything else.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The operation: "write", "open".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn held_by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

impl RemedyError {
    /// The error of a file operation, classified by what the user can do.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::NoPermission { path },
            _ => Self::Io { doing, path, source },
        }
    }
}

/// A change was not applied. Unless the error says otherwise, the host is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be written, so nothing was changed.
    #[error("nothing was changed: {0}")]
    Journal(RemedyError),
    /// The setting no longer holds the value that the change expects.
    #[error("{key} was \"{proposed_from}\" when the change was proposed but is \"{found}\" now: diagnose again")]
    Changed {
        /// The setting.
        key: String,
        /// The expected value.
        proposed_from: String,
        /// The present value.
        found: String,
    },
    /// An interrupted change of an earlier run is not settled.
    #[error("a change of {key} (number {id}) was interrupted: run `chokepoint undo` first")]
    Unfinished {
        /// The setting.
        key: String,
        /// The interrupted set of changes.
        id: u64,
    },
    /// Another running process changed something in the same place.
    #[error("{key} in {place} is not changed while {by} runs, which set {}: wait until it ends, or stop it", .by.changes.join(", "))]
    Busy {
        /// The setting.
        key: String,
        /// Its place.
        place: String,
        /// That process.
        by: Running,
    },
    /// The change is not valid.
    #[error("{key:?} cannot be set: {why}")]
    BadChange {
        /// The setting.
        key: String,
        /// The reason.
        why: String,
    },
    /// The host does not have this setting.
    #[error("{key} does not exist on this host: check whether its kernel module is loaded")]
    Missing {
        /// The setting.
        key: String,
    },
    /// The process of the setting no longer exists.
    #[error("{key} cannot be set: process {pid} has ended")]
    Ended {
        /// The setting.
        key: String,
        /// The process.
        pid: u32,
    },
    /// The network namespace no longer exists.
    #[error("the network namespace {netns} of {key} no longer exists")]
    NetnsGone {
        /// The setting.
        key: String,
        /// The namespace.
        netns: NetnsId,
    },
    /// Not allowed.
    #[error("no permission for {key}: {why}; needs {needs}")]
    NoPermission {
        /// The setting.
        key: String,
        /// The refusal.
        why: String,
        /// The missing privilege: "CAP_NET_ADMIN (run as root)".
        needs: &'static str,
    },
    /// The kernel refused the value.
    #[error("the kernel refuses \"{value}\" for {key}: {source}")]
    Refused {
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The value was written and did not come into force.
    #[error("{key} was set to \"{wanted}\" but reads \"{found}\"")]
    NotInForce {
        /// The setting.
        key: String,
        /// The file written.
        wanted: String,
        /// The value read afterwards.
        found: String,
    },
    /// The server's configuration cannot be edited from here.
    #[error("{key} is not changed: {why}")]
    NotHere {
        /// The setting.
        key: String,
        /// The reason, and what to do instead.
        why: String,
    },
    /// A reload would put more in force than this change, without the user's consent.
    #[error(
        "{key} is not changed: a reload would also activate changes that {server} does not seem to have read: {}. Check them and reload \
         {server} yourself, or allow it (diagnose --reload-unseen)",
        .files.join(", ")
    )]
    Unread {
        /// The setting.
        key: String,
        /// The server's name.
        server: &'static str,
        /// Files and directories changed since the server read its configuration.
        files: Vec<String>,
    },
    /// A file is restored, and the server's test refuses the configuration with it: the server still runs with what it has read.
    #[error(
        "{key}: {path} is restored, and the server still runs with what it has read before, because it refuses this configuration: {said}"
    )]
    RestoredUnread {
        /// The setting.
        key: String,
        /// The file.
        path: String,
        /// The server's message.
        said: String,
    },
    /// The server's test refuses the configuration.
    #[error("{key} is not changed: the server refuses the configuration{when}: {said}")]
    ServerRefuses {
        /// The setting.
        key: String,
        /// "", or " as it is, before any change".
        when: &'static str,
        /// The server's message.
        said: String,
    },
    /// A file has changed unexpectedly.
    #[error("somebody else edited {path} at the same time: {key} was left alone")]
    FileChanged {
        /// The setting.
        key: String,
        /// The file.
        path: String,
    },
    /// A later change of its set relies on this one and is still in force.
    #[error("{key} is not taken back before {later}, which is still in force and relies on it")]
    ReliedOn {
        /// The setting.
        key: String,
        /// The later change's setting.
        later: String,
    },
    /// Someone else set the setting after this program.
    #[error("{key} is {found} now, set by somebody else")]
    SetByOthers {
        /// The setting.
        key: String,
        /// The present value.
        found: String,
    },
    /// The server did not load the configuration.
    #[error("{key} did not take effect: {why}")]
    NotActivated {
        /// The setting.
        key: String,
        /// The evidence.
        why: String,
    },
    /// Anything else.
    #[error("{key}: {source}")]
    Io {
        /// The setting.
        key: String,
        /// The system's error.
        source: io::Error,
    },
    /// Not all changes before the failure could be taken back. The journal still holds them.
    #[error("{cause}; and {} could not be taken back ({why}): run `chokepoint undo`", .left.join(", "))]
    LeftBehind {
        /// Why the set failed.
        cause: Box<ApplyError>,
        /// Settings that still hold the new value.
        left: Vec<String>,
        /// Why.
        why: String,
    },
}

// Not `#[from]`: its text is in the message, and a chain of causes would tell it twice.
impl From<RemedyError> for ApplyError {
    fn from(error: RemedyError) -> Self {
        Self::Journal(error)
    }
}
