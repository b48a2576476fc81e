//! A server's configuration and one setting in it: found, read, edited, tested by the server, replaced and put in force.

use std::path::Path;

use chokepoint_config::text;
use chokepoint_model::change::{Change, ServerKind, ServerSetting};

use super::file::{self, real_path};
use super::known_master::KnownMaster;
use super::master::Master;
use super::trial::{self, Instead};
use super::view::View;
use super::{activate, edit, unread};
use crate::error::ApplyError;
use crate::record::{Backup, Checksum, Wanted};

/// A running server and one setting in its configuration.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) kind: ServerKind,
    pid: u32,
    start_ticks: u64,
    /// The main configuration file.
    pub(super) main: String,
    pub(super) setting: ServerSetting,
    pub(super) key: String,
}

impl Server {
    /// Reads nothing yet.
    pub(crate) fn open(change: &Change) -> Result<Self, ApplyError> {
        let Change::Server { server, pid, start_ticks, file, setting, .. } = change else {
            return Err(ApplyError::BadChange { key: change.key(), why: "it is not the setting of a server".to_owned() });
        };
        let opened =
            Self { kind: *server, pid: *pid, start_ticks: *start_ticks, main: file.clone(), setting: setting.clone(), key: change.key() };
        if setting.server() != *server || !file.starts_with('/') {
            return Err(opened.bad(format!("{} has no such setting in {file}", server.name())));
        }
        Ok(opened)
    }

    pub(super) fn bad(&self, why: String) -> ApplyError {
        ApplyError::BadChange { key: self.key.clone(), why }
    }

    pub(super) fn io(&self, source: std::io::Error) -> ApplyError {
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => ApplyError::NoPermission {
                key: self.key.clone(),
                why: "its file cannot be written".to_owned(),
                needs: "root, and a file without the immutable attribute (lsattr(1))",
            },
            // An error without an error number is a reason in words.
            std::io::ErrorKind::Other if source.raw_os_error().is_none() => self.not_here(source.to_string()),
            _ => ApplyError::Io { key: self.key.clone(), source },
        }
    }

    pub(super) fn not_here(&self, why: String) -> ApplyError {
        ApplyError::NotHere { key: self.key.clone(), why }
    }

    /// The present master, found by the journal's knowledge of it; nothing where the server does not run, or where what was found is another user's.
    pub(super) fn master(&self, known: Option<&KnownMaster>) -> Result<Option<Master>, ApplyError> {
        Ok(self.found(known)?.filter(|master| master.of_another_user().is_none()))
    }

    fn found(&self, known: Option<&KnownMaster>) -> Result<Option<Master>, ApplyError> {
        let found = Master::find(self.kind, self.pid, self.start_ticks, &self.main, known).map_err(|why| self.not_here(why))?;
        match found.as_ref().and_then(Master::is_elsewhere) {
            Some(why) => Err(self.not_here(elsewhere(why, &self.setting, &self.main))),
            None => Ok(found),
        }
    }

    pub(super) fn running(&self) -> Result<Master, ApplyError> {
        let gone = || self.not_here(format!("{} (process {}, {}) is no longer running", self.kind.name(), self.pid, self.main));
        let master = self.found(None)?.ok_or_else(gone)?;
        master.of_another_user().map_or(Ok(master), |why| Err(self.not_here(why)))
    }

    /// The configuration as the server can read it. Without a master it is read with the rights of its owner.
    pub(super) fn view(&self, known: Option<&KnownMaster>) -> Result<View, ApplyError> {
        let master = match Master::find(self.kind, self.pid, self.start_ticks, &self.main, known) {
            Ok(_) => self.master(known)?,
            Err(_) => None,
        };
        View::of(master.as_ref(), &self.main).map_err(|why| self.bad(why))
    }

    /// The present bytes of a file.
    pub(crate) fn file_now(&self, path: &str) -> Result<Vec<u8>, ApplyError> {
        file::read(Path::new(path)).map_err(|error| self.io(error))
    }

    /// Removes temporary files that a killed process left beside a file.
    pub(crate) fn clear_leftovers(path: &str) {
        // A file that cannot be edited has none.
        if let Ok(target) = file::EditableFile::open(Path::new(path)) {
            target.remove_leftovers();
        }
    }

    /// A file's text with this setting at `value`, given the file's present text.
    pub(crate) fn edit(&self, path: &str, text: &str, value: &str) -> Result<String, ApplyError> {
        let over = [(path.to_owned(), text.to_owned())];
        let view = self.view(None)?;
        let unset = value == ServerSetting::UNSET;
        if unset || edit::value(&view, &self.main, &self.setting, &over).is_ok_and(|now| now == value) {
            return Ok(text.to_owned());
        }
        let edited = edit::edited(&view, &self.main, &self.setting, value, &over).map_err(|why| self.bad(why))?;
        if real_path(&edited.path).as_deref() != Some(path) {
            return Err(self.bad(format!("it is set in {} now, and no longer in {path}", edited.path)));
        }
        Ok(edited.after)
    }

    /// Replaces a file that has the expected bytes. The server tests the configuration before and after. Then puts the wanted value in force, or the
    /// whole configuration without one. What was there before any change is put back without asking first: no process keeps the owner from the own bytes.
    pub(crate) fn put_file(&self, backup: &Backup, expected: &[u8], bytes: &[u8], wanted: Option<Wanted<'_>>) -> Result<(), ApplyError> {
        let path = Path::new(&backup.path);
        let changed = || ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() };
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: "", said };
        let target = file::EditableFile::open(path).map_err(|error| self.io(error))?;
        if target.bytes() != expected {
            return Err(changed());
        }
        let master = self.master(backup.master.as_deref())?;
        let restores = bytes == text::encode(&backup.before);
        if let Some(master) = master.as_ref().filter(|_| !restores) {
            trial::run(master, &self.main, Some(Instead { path, meta: target.meta(), bytes })).map_err(refused)?;
        }
        // Without a reload the workers keep the configuration that they have read.
        let is_live = wanted.is_some() && activate::is_live(&self.setting);
        let was_read = |master: &Master| {
            let unread = View::of(Some(master), &self.main).and_then(|view| unread::of(master, &view, &self.main, &[backup]));
            unread.is_ok_and(|unread| unread.is_empty())
        };
        let is_read = !is_live || master.as_ref().is_some_and(was_read);
        if !target.replace(bytes).map_err(|error| self.io(error))? {
            return Err(changed());
        }
        let Some(master) = master else { return Ok(()) };
        trial::run(&master, &self.main, None).map_err(|said| match restores {
            true => ApplyError::RestoredUnread { key: self.key.clone(), path: backup.path.clone(), said },
            false => refused(said),
        })?;
        self.activate(&master, wanted, is_read)
    }

    /// Puts the configuration in force. Remembers it where the server has then read all of it.
    pub(super) fn activate(&self, master: &Master, wanted: Option<Wanted<'_>>, is_read: bool) -> Result<(), ApplyError> {
        let failed = |why| ApplyError::NotActivated { key: self.key.clone(), why };
        let view = View::of(Some(master), &self.main).map_err(failed)?;
        let master = activate::run(master, &view, &self.main, &self.setting, wanted).map_err(failed)?;
        if is_read {
            unread::remember(&master, &view, &self.main);
        }
        Ok(())
    }

    /// A file's path with links resolved. Refuses a file that others can change or that cannot be replaced.
    pub(super) fn editable(&self, path: &str) -> Result<String, ApplyError> {
        let path = real_path(path).ok_or_else(|| self.bad(format!("the path of {path} is not valid text")))?;
        file::EditableFile::open(Path::new(&path)).map_err(|error| self.io(error))?;
        Ok(path)
    }

    /// Other edits that the reload for a change would put in force; none where the change needs no reload.
    pub(super) fn unread(&self, master: &Master, around: &[&Backup]) -> Result<Vec<String>, ApplyError> {
        if activate::is_live(&self.setting) {
            return Ok(Vec::new());
        }
        let view = View::of(Some(master), &self.main).map_err(|why| self.bad(why))?;
        unread::of(master, &view, &self.main, around).map_err(|why| self.bad(why))
    }

    /// Checksums of the files that php-fpm has read, for a later process; empty where unknown.
    pub(super) fn in_force(&self, master: &Master, view: &View, around: &[&Backup]) -> Vec<(String, Checksum)> {
        let reloads = !activate::is_live(&self.setting);
        let is_read = || unread::of(master, view, &self.main, around).is_ok_and(|unread| unread.is_empty());
        if self.kind == ServerKind::PhpFpm && (reloads || is_read()) { unread::checksums(view, &self.main, self.kind) } else { Vec::new() }
    }
}

/// Advice where the file belongs to a container image.
fn elsewhere(why: &str, setting: &ServerSetting, main: &str) -> String {
    format!(
        "{why} (a container, or a service with PrivateTmp=): an edit in a container is lost with it. Set {} in the configuration of its image ({main}), or mount a changed file over it (compose file, or ConfigMap in the Kubernetes manifest), and roll it out",
        setting.told()
    )
}
