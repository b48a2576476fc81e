//! One setting in the configuration of a running server: the file is edited whole, tested by the server itself, and put in force.

mod activate;
mod edit;
mod file;
mod listener;
mod master;
mod trial;

use std::fs;
use std::path::Path;

use chokepoint_config::nginx::FastcgiReuse;
use chokepoint_config::text;
use chokepoint_model::change::{Change, ServerKind, ServerSetting};

use crate::error::ApplyError;
use crate::record::{Backup, Intent, Print};
use crate::setting::{Found, Setting, State, Toward};
use master::Master;

/// Longest number that is set, bytes.
const NUMBER_BYTES_MAX: usize = 20;

/// A setting in a server's configuration.
#[derive(Debug)]
pub(crate) struct Server {
    kind: ServerKind,
    pid: u32,
    start_ticks: u64,
    /// The main file.
    main: String,
    setting: ServerSetting,
    key: String,
}

/// The change that a [`Change::Server`] would make to its file, as a unified diff; nothing for other kinds of change. Reads the files and changes
/// nothing.
///
/// # Errors
/// The configuration cannot be read, or does not have what is to be set.
pub fn diff(change: &Change) -> Result<Option<String>, ApplyError> {
    if !matches!(change, Change::Server { .. }) {
        return Ok(None);
    }
    let server = Server::open(change)?;
    Ok(Some(edit::edited(&server.main, &server.setting, change.to(), &[]).map_err(|why| server.bad(why))?.diff()))
}

impl Server {
    /// Looks at nothing yet.
    pub(crate) fn open(change: &Change) -> Result<Self, ApplyError> {
        let Change::Server { server, pid, start_ticks, file, setting, .. } = change else {
            return Err(ApplyError::BadChange { key: change.key(), why: "it is no server's setting".to_owned() });
        };
        let opened =
            Self { kind: *server, pid: *pid, start_ticks: *start_ticks, main: file.clone(), setting: setting.clone(), key: change.key() };
        if setting.server() != *server || !file.starts_with('/') {
            return Err(opened.bad(format!("{} has no such setting in {file}", server.name())));
        }
        Ok(opened)
    }

    fn bad(&self, why: String) -> ApplyError {
        ApplyError::BadChange { key: self.key.clone(), why }
    }

    fn io(&self, source: std::io::Error) -> ApplyError {
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => ApplyError::NoPermission {
                key: self.key.clone(),
                why: "its file may not be written".to_owned(),
                needs: "root, and a file that is not immutable (lsattr(1))",
            },
            _ => ApplyError::Io { key: self.key.clone(), source },
        }
    }

    /// The master as it is now; nothing where the server does not run.
    fn master(&self) -> Result<Option<Master>, ApplyError> {
        let found = Master::find(self.kind, self.pid, self.start_ticks, &self.main);
        found.map_err(|why| ApplyError::NotHere { key: self.key.clone(), why })
    }

    fn running(&self) -> Result<Master, ApplyError> {
        let gone = || ApplyError::NotHere {
            key: self.key.clone(),
            why: format!("{} (process {}, {}) does not run any more", self.kind.name(), self.pid, self.main),
        };
        self.master()?.ok_or_else(gone)
    }

    /// A file's bytes now.
    pub(crate) fn file_now(&self, path: &str) -> Result<Vec<u8>, ApplyError> {
        file::read(Path::new(path)).map_err(|error| self.io(error))
    }

    /// A file's text with this setting at a value, where the file's text is this one and all other files are as they are.
    pub(crate) fn edit(&self, path: &str, text: &str, value: &str) -> Result<String, ApplyError> {
        let over = [(path.to_owned(), text.to_owned())];
        let unset = value == ServerSetting::UNSET;
        if unset || edit::value(&self.main, &self.setting, &over).is_ok_and(|now| now == value) {
            return Ok(text.to_owned());
        }
        let edited = edit::edited(&self.main, &self.setting, value, &over).map_err(|why| self.bad(why))?;
        if real_path(&edited.path).as_deref() != Some(path) {
            return Err(self.bad(format!("it is set in {} now, and no longer in {path}", edited.path)));
        }
        Ok(edited.after)
    }

    /// Replaces a file that is as expected, tested before and after by the server, and puts the setting in force where its value is given (else
    /// the configuration as a whole).
    pub(crate) fn put_file(&self, path: &str, expected: &[u8], bytes: &[u8], value: Option<&String>) -> Result<(), ApplyError> {
        let target = Path::new(path);
        let master = self.master()?;
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: "", said };
        let fresh = file::beside(target, bytes).map_err(|error| self.io(error))?;
        if let Some(master) = &master {
            trial::run(master, &self.main, Some((fresh.path(), target))).map_err(refused)?;
        }
        if self.file_now(path)? != expected {
            return Err(ApplyError::FileChanged { key: self.key.clone(), path: path.to_owned() });
        }
        fresh.rename_over(target).map_err(|error| self.io(error))?;
        let Some(master) = master else { return Ok(()) };
        trial::run(&master, &self.main, None).map_err(refused)?;
        self.activate(&master, value.map(String::as_str))
    }

    fn activate(&self, master: &Master, value: Option<&str>) -> Result<(), ApplyError> {
        let done = activate::run(master, &self.main, &self.setting, value);
        done.map_err(|why| ApplyError::NotActivated { key: self.key.clone(), why })
    }

    /// Makes a change for which there is a backup.
    fn put_new(&self, intent: &Intent, backup: &Backup) -> Result<(), ApplyError> {
        self.running()?;
        let changed = || ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() };
        let now = self.file_now(&backup.path)?;
        if now != text::encode(&backup.before) {
            return Err(changed());
        }
        let after = text::encode(&self.edit(&backup.path, &backup.before, intent.change.to())?);
        if !backup.after.contains(&Print::of(&after)) {
            return Err(changed());
        }
        self.put_file(&backup.path, &now, &after, Some(&intent.change.to().to_owned()))
    }

    /// Puts the old file back, where the file is as the change left it.
    fn put_old(&self, intent: &Intent, backup: &Backup) -> Result<(), ApplyError> {
        let now = self.file_now(&backup.path)?;
        let before = text::encode(&backup.before);
        if now == before {
            // It was put back by an undo that did not come to its end, or a reload is all that is missing.
            return match self.master()? {
                Some(master) => self.activate(&master, Some(&intent.was)),
                None => Ok(()),
            };
        }
        if !backup.after.contains(&Print::of(&now)) {
            return Err(ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() });
        }
        self.put_file(&backup.path, &now, &before, Some(&intent.was))
    }
}

impl Setting for Server {
    fn read(&self) -> Result<Found, ApplyError> {
        let value = edit::value(&self.main, &self.setting, &[]).map_err(|why| self.bad(why))?;
        Ok(Found { value, place: None })
    }

    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError> {
        let Some(backup) = &intent.backup else { return Err(self.bad("the journal has no copy of its file".to_owned())) };
        match toward {
            Toward::New => self.put_new(intent, backup),
            Toward::Old => self.put_old(intent, backup),
        }
    }

    fn check(&self, value: &str) -> Result<(), ApplyError> {
        if value == ServerSetting::UNSET {
            return Ok(());
        }
        if let ServerSetting::NginxFastcgiReuse { .. } = self.setting {
            return value.parse::<FastcgiReuse>().map(drop).map_err(|error| self.bad(format!("\"{value}\": {error}")));
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number(value) || value.strip_prefix('-').is_some_and(is_number);
        if fits && value.len() <= NUMBER_BYTES_MAX { Ok(()) } else { Err(self.bad(format!("\"{value}\" is no number"))) }
    }

    fn same(&self, one: &str, other: &str) -> bool {
        one == other
    }

    fn backup(&self, to: &str, earlier: &[Intent]) -> Result<Option<Backup>, ApplyError> {
        let master = self.running()?;
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: " as it is, before any change", said };
        if earlier.is_empty() {
            trial::run(&master, &self.main, None).map_err(refused)?;
        }
        if to == ServerSetting::UNSET {
            return Err(self.bad("a value is to be set, not taken away".to_owned()));
        }
        // The files as the earlier changes of the set will leave them.
        let mut over: Vec<(String, String)> = Vec::new();
        for (intent, backup) in earlier.iter().filter_map(|intent| Some((intent, intent.backup.as_ref()?))) {
            over.retain(|(path, _)| *path != backup.path);
            over.push((backup.path.clone(), Self::open(&intent.change)?.edit(&backup.path, &backup.before, intent.change.to())?));
        }
        let edited = edit::edited(&self.main, &self.setting, to, &over).map_err(|why| self.bad(why))?;
        let path = real_path(&edited.path).ok_or_else(|| self.bad(format!("the path of {} is no text", edited.path)))?;
        if !master.sees_our(Path::new(&path)) {
            return Err(ApplyError::NotHere { key: self.key.clone(), why: elsewhere(&self.setting, &path, to) });
        }
        // A php-fpm whose backlog was changed in place has a file newer than its workers.
        if self.kind == ServerKind::Nginx && master.is_older_than(Path::new(&path)) {
            let why = format!(
                "{path} was edited after {} read it: a reload now would put that in force too; reload it yourself first, then diagnose again",
                self.kind.name()
            );
            return Err(ApplyError::NotHere { key: self.key.clone(), why });
        }
        let after = Print::of(&text::encode(&edited.after));
        Ok(Some(Backup { path, before: edited.before, after: vec![after] }))
    }

    fn state(&self, intent: &Intent) -> Result<State, ApplyError> {
        let Some(backup) = &intent.backup else { return Err(self.bad("the journal has no copy of its file".to_owned())) };
        let now = match file::read(Path::new(&backup.path)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::Gone("its configuration file is no more")),
            read => read.map_err(|error| self.io(error))?,
        };
        if now == text::encode(&backup.before) {
            // A file that was put back and not put in force: the process was ended between the two.
            let pending = self.master()?.is_some_and(|master| master.is_older_than(Path::new(&backup.path)));
            return Ok(if pending { State::Ours } else { State::Old });
        }
        if backup.after.contains(&Print::of(&now)) {
            return Ok(State::Ours);
        }
        let value = self.read().map_or_else(|_| "not readable".to_owned(), |found| found.value);
        Ok(State::Other(format!("{value} in a file that someone edited since ({})", backup.path)))
    }
}

fn real_path(path: &str) -> Option<String> {
    fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
}

/// What to do where the file is in an image.
fn elsewhere(setting: &ServerSetting, path: &str, to: &str) -> String {
    format!(
        "the server has another file system than this program (a container): an edit there vanishes with it. Set {} to {to} in {path} of its image, \
         or mount such a file over it in the compose file or the Kubernetes manifest (a ConfigMap), and roll it out",
        setting.told()
    )
}
