//! What a change of a server's setting would do, to be shown beforehand; and the other edits that its undo would put in force.

use std::fmt;

use chokepoint_model::change::{Change, ServerSetting, quoted};

use super::configuration::Server;
use super::file::real_path;
use super::master::Master;
use super::view::View;
use super::{edit, listener, trial};
use crate::error::ApplyError;
use crate::store::Guard;
use crate::undo::Filter;

/// Everything that a [`Change::Server`] executes, sends and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The edit, as a unified diff.
    pub diff: String,
    /// The test before and after the edit: program and arguments.
    pub test: Vec<String>,
    /// User and group of the test: the master's.
    pub user: (u32, u32),
    /// The action that puts the edit in force.
    pub activating: Activating,
    /// Other files and directories changed since the server read them, which the reload puts in force too.
    pub unread: Vec<String>,
}

/// The action that puts an edit in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activating {
    /// A signal to the master.
    Signal {
        /// Its name without "SIG".
        name: &'static str,
        /// The master.
        pid: u32,
    },
    /// listen(2) on duplicates of the master's sockets.
    Listen {
        /// Their new backlog.
        backlog: String,
        /// The master.
        pid: u32,
        /// The pool that listens on them.
        pool: String,
    },
}

impl fmt::Display for Activating {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal { name, pid } => write!(out, "kill -{name} {pid}"),
            Self::Listen { backlog, pid, pool } => {
                write!(out, "listen(2) with backlog {backlog} on the socket of [{pool}] in process {pid}")
            }
        }
    }
}

impl Plan {
    /// The test as a shell command.
    pub fn test_command(&self) -> String {
        self.test.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The edit of a [`Change::Server`] as a unified diff; nothing for other kinds of change. Reads the files and changes nothing.
///
/// # Errors
/// The configuration cannot be read, or lacks the place of the setting.
pub fn diff(change: &Change) -> Result<Option<String>, ApplyError> {
    if !matches!(change, Change::Server { .. }) {
        return Ok(None);
    }
    let server = Server::open(change)?;
    let view = server.view(None)?;
    Ok(Some(edit::edited(&view, &server.main, &server.setting, change.to(), &[]).map_err(|why| server.bad(why))?.diff()))
}

/// What a [`Change::Server`] would do; nothing for other kinds of change. Neither executes nor changes anything.
///
/// # Errors
/// Why the change would be refused.
pub fn plan(change: &Change) -> Result<Option<Plan>, ApplyError> {
    if !matches!(change, Change::Server { .. }) {
        return Ok(None);
    }
    let server = Server::open(change)?;
    let master = server.running()?;
    let view = View::of(Some(&master), &server.main).map_err(|why| server.bad(why))?;
    let edited = edit::edited(&view, &server.main, &server.setting, change.to(), &[]).map_err(|why| server.bad(why))?;
    server.editable(&edited.path)?;
    listener::check_is_of(&master, &view, &server.main).map_err(|why| server.not_here(why))?;
    trial::checked(&master, &server.main).map_err(|why| server.not_here(why))?;
    Ok(Some(Plan {
        diff: edited.diff(),
        test: trial::command_line(&master, &server.main),
        user: (master.identity.uid(), master.identity.gids[1]),
        activating: activating(&master, &server.setting, change.to()),
        unread: server.unread(&master, &[])?,
    }))
}

fn activating(master: &Master, setting: &ServerSetting, to: &str) -> Activating {
    match setting {
        ServerSetting::PhpFpmBacklog { pool } => Activating::Listen { backlog: to.to_owned(), pid: master.pid(), pool: pool.clone() },
        _ => Activating::Signal { name: master.def.reload_signal.name(), pid: master.pid() },
    }
}

/// Other edits that an undo's reload of a server puts in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The server's name.
    pub server: &'static str,
    /// Files and directories changed since the server read them.
    pub files: Vec<String>,
}

impl Guard {
    /// Edits by others, not reloaded yet, that an undo of the selected changes would put in force. They are reported before and after the undo, which does
    /// not wait for an answer. Servers that do not run are left out.
    pub fn unread(&self, filter: &Filter) -> Vec<Unread> {
        let backups = self.backups();
        let mut found: Vec<Unread> = Vec::new();
        for (id, index) in self.selected_by(filter) {
            let Some(intent) = self.intent(id, index) else { continue };
            let (Some(backup), Ok(server)) = (&intent.backup, Server::open(&intent.change)) else { continue };
            let Ok(Some(master)) = server.master(backup.master.as_deref()) else { continue };
            let files = server.unread(&master, &backups).unwrap_or_default();
            // The restored file itself is expected.
            let own: Vec<&str> = backups.iter().map(|backup| backup.path.as_str()).collect();
            let files: Vec<String> =
                files.into_iter().filter(|file| real_path(file).is_none_or(|real| !own.contains(&real.as_str()))).collect();
            let unread = Unread { server: server.kind.name(), files };
            if !unread.files.is_empty() && !found.contains(&unread) {
                found.push(unread);
            }
        }
        found
    }
}
