//! One setting in the configuration of a running server: the file is edited whole, tested by the server itself, and put in force.

mod activate;
mod confined;
mod edit;
mod file;
mod known;
mod listener;
mod master;
mod merge;
mod plan;
mod trial;
mod unread;
mod view;

use std::fs;
use std::path::Path;

use chokepoint_config::nginx::{FastcgiReuse, LogLevels, SessionCache};
use chokepoint_config::text;
use chokepoint_model::change::{Change, ServerKind, ServerSetting};

use crate::apply::Consent;
use crate::error::ApplyError;
use crate::record::{Backup, Intent, Print, Wanted};
use crate::setting::{Around, Found, Setting, State, Toward};
pub(crate) use known::Known;
use master::Master;
pub use plan::{Activating, Plan, Unread, plan};
use trial::Instead;
use view::View;

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
    let view = server.view(None)?;
    Ok(Some(edit::edited(&view, &server.main, &server.setting, change.to(), &[]).map_err(|why| server.bad(why))?.diff()))
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
            // What is no error of the system is a reason in words.
            std::io::ErrorKind::Other if source.raw_os_error().is_none() => self.not_here(source.to_string()),
            _ => ApplyError::Io { key: self.key.clone(), source },
        }
    }

    fn not_here(&self, why: String) -> ApplyError {
        ApplyError::NotHere { key: self.key.clone(), why }
    }

    /// The master as it is now, by what the journal knows of it; nothing where the server does not run.
    fn master(&self, known: Option<&Known>) -> Result<Option<Master>, ApplyError> {
        let found = Master::find(self.kind, self.pid, self.start_ticks, &self.main, known).map_err(|why| self.not_here(why))?;
        match found.as_ref().and_then(Master::is_elsewhere) {
            Some(why) => Err(self.not_here(elsewhere(why, &self.setting, &self.main))),
            None => Ok(found),
        }
    }

    fn running(&self) -> Result<Master, ApplyError> {
        let gone = || self.not_here(format!("{} (process {}, {}) does not run any more", self.kind.name(), self.pid, self.main));
        self.master(None)?.ok_or_else(gone)
    }

    /// The configuration as the server may read it. To read it no master is needed: where none is known, it is what its owner may read.
    fn view(&self, known: Option<&Known>) -> Result<View, ApplyError> {
        let master = match Master::find(self.kind, self.pid, self.start_ticks, &self.main, known) {
            Ok(_) => self.master(known)?,
            Err(_) => None,
        };
        View::of(master.as_ref(), &self.main).map_err(|why| self.bad(why))
    }

    /// A file's bytes now.
    pub(crate) fn file_now(&self, path: &str) -> Result<Vec<u8>, ApplyError> {
        file::read(Path::new(path)).map_err(|error| self.io(error))
    }

    /// Takes away what a process that was ended left beside a file.
    pub(crate) fn clear_leftovers(path: &str) {
        // A file that may not be edited has none.
        if let Ok(target) = file::Target::open(Path::new(path)) {
            target.tidy();
        }
    }

    /// A file's text with this setting at a value, where the file's text is this one and all other files are as they are.
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

    /// Replaces a file that is as expected, tested before and after by the server, and puts the setting in force where that is given (else the
    /// configuration as a whole).
    pub(crate) fn put_file(&self, backup: &Backup, expected: &[u8], bytes: &[u8], wanted: Option<Wanted<'_>>) -> Result<(), ApplyError> {
        let path = Path::new(&backup.path);
        let changed = || ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() };
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: "", said };
        let target = file::Target::open(path).map_err(|error| self.io(error))?;
        if target.bytes() != expected {
            return Err(changed());
        }
        let master = self.master(backup.master.as_deref())?;
        if let Some(master) = &master {
            trial::run(master, &self.main, Some(Instead { path, meta: target.meta(), bytes })).map_err(refused)?;
        }
        // What comes into force without a reload leaves the workers with what they have read.
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
        trial::run(&master, &self.main, None).map_err(refused)?;
        self.activate(&master, wanted, is_read)
    }

    /// Puts the configuration in force. Where all of it is then what the server has read, that is remembered.
    fn activate(&self, master: &Master, wanted: Option<Wanted<'_>>, is_read: bool) -> Result<(), ApplyError> {
        let failed = |why| ApplyError::NotActivated { key: self.key.clone(), why };
        let view = View::of(Some(master), &self.main).map_err(failed)?;
        let master = activate::run(master, &view, &self.main, &self.setting, wanted).map_err(failed)?;
        if is_read {
            unread::remember(&master, &view, &self.main);
        }
        Ok(())
    }

    /// Where a file really lies, which is refused where somebody else may change it or it cannot be replaced.
    fn editable(&self, path: &str) -> Result<String, ApplyError> {
        let path = real_path(path).ok_or_else(|| self.bad(format!("the path of {path} is no text")))?;
        file::Target::open(Path::new(&path)).map_err(|error| self.io(error))?;
        Ok(path)
    }

    /// What a reload for a change would put in force beside it, where it takes a reload.
    fn unread(&self, master: &Master, around: &[&Backup]) -> Result<Vec<String>, ApplyError> {
        if activate::is_live(&self.setting) {
            return Ok(Vec::new());
        }
        let view = View::of(Some(master), &self.main).map_err(|why| self.bad(why))?;
        unread::of(master, &view, &self.main, around).map_err(|why| self.bad(why))
    }

    /// What php-fpm has read, for a later process; empty where something is not shown to be read.
    fn in_force(&self, master: &Master, view: &View, around: &[&Backup]) -> Vec<(String, Print)> {
        let reloads = !activate::is_live(&self.setting);
        let is_read = || unread::of(master, view, &self.main, around).is_ok_and(|unread| unread.is_empty());
        if self.kind == ServerKind::PhpFpm && (reloads || is_read()) { unread::prints(view, &self.main, self.kind) } else { Vec::new() }
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
        self.put_file(backup, &now, &after, Some(intent.after()))
    }

    /// Puts the old file back where the file is as the change left it, and takes the change alone out of one that someone edited since.
    fn put_old(&self, intent: &Intent, backup: &Backup) -> Result<(), ApplyError> {
        let now = self.file_now(&backup.path)?;
        let before = text::encode(&backup.before);
        if now == before {
            // It was put back by an undo that did not come to its end, or a reload is all that is missing.
            return match self.master(backup.master.as_deref())? {
                Some(master) => self.activate(&master, Some(intent.before()), !activate::is_live(&self.setting)),
                None => Ok(()),
            };
        }
        if backup.after.contains(&Print::of(&now)) {
            return self.put_file(backup, &now, &before, Some(intent.before()));
        }
        let changed = |_| ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() };
        let text = merge::without(self, intent, backup, &now).map_err(changed)?;
        match self.master(backup.master.as_deref())? {
            Some(master) if text == now => self.activate(&master, Some(intent.before()), !activate::is_live(&self.setting)),
            None if text == now => Ok(()),
            _ => self.put_file(backup, &now, &text, Some(intent.before())),
        }
    }
}

impl Setting for Server {
    fn read(&self) -> Result<Found, ApplyError> {
        let value = edit::value(&self.view(None)?, &self.main, &self.setting, &[]).map_err(|why| self.bad(why))?;
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
        let parsed = match self.setting {
            ServerSetting::NginxFastcgiReuse { .. } => Some(value.parse::<FastcgiReuse>().map(drop).map_err(|error| error.to_string())),
            ServerSetting::NginxErrorLogLevels { .. } => Some(value.parse::<LogLevels>().map(drop).map_err(|error| error.to_string())),
            ServerSetting::NginxTlsSessionCache => Some(value.parse::<SessionCache>().map(drop).map_err(|error| error.to_string())),
            _ => None,
        };
        if let Some(parsed) = parsed {
            return parsed.map_err(|error| self.bad(format!("\"{value}\": {error}")));
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number(value) || value.strip_prefix('-').is_some_and(is_number);
        if fits && value.len() <= NUMBER_BYTES_MAX { Ok(()) } else { Err(self.bad(format!("\"{value}\" is no number"))) }
    }

    fn same(&self, one: &str, other: &str) -> bool {
        one == other
    }

    fn backup(&self, to: &str, earlier: &[Intent], around: &Around<'_>) -> Result<Option<Backup>, ApplyError> {
        let master = self.running()?;
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: " as it is, before any change", said };
        if to == ServerSetting::UNSET {
            return Err(self.bad("a value is to be set, not taken away".to_owned()));
        }
        // The files as the earlier changes of the set will leave them.
        let mut over: Vec<(String, String)> = Vec::new();
        for (intent, backup) in earlier.iter().filter_map(|intent| Some((intent, intent.backup.as_ref()?))) {
            over.retain(|(path, _)| *path != backup.path);
            over.push((backup.path.clone(), Self::open(&intent.change)?.edit(&backup.path, &backup.before, intent.change.to())?));
        }
        let view = View::of(Some(&master), &self.main).map_err(|why| self.bad(why))?;
        let edited = edit::edited(&view, &self.main, &self.setting, to, &over).map_err(|why| self.bad(why))?;
        // Before anything is executed for it.
        let path = self.editable(&edited.path)?;
        if earlier.is_empty() {
            trial::run(&master, &self.main, None).map_err(refused)?;
        }
        let unread = self.unread(&master, &around.backups)?;
        let is_agreed = |file: &String| match around.consent {
            Consent::Nothing => false,
            Consent::Unread(agreed) => agreed.contains(file),
            Consent::AnyUnread => true,
        };
        if !unread.iter().all(is_agreed) {
            return Err(ApplyError::Unread { key: self.key.clone(), server: self.kind.name(), files: unread });
        }
        let after = Print::of(&text::encode(&edited.after));
        let in_force = self.in_force(&master, &view, &around.backups);
        let known = Known::of(&master.identity);
        let queue = activate::queue(&master, &view, &self.main, &self.setting);
        Ok(Some(Backup { path, before: edited.before, after: vec![after], master: Some(Box::new(known)), in_force, queue }))
    }

    fn state(&self, intent: &Intent) -> Result<State, ApplyError> {
        let Some(backup) = &intent.backup else { return Err(self.bad("the journal has no copy of its file".to_owned())) };
        let now = match file::read(Path::new(&backup.path)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::Gone("its configuration file is no more")),
            read => read.map_err(|error| self.io(error))?,
        };
        if now == text::encode(&backup.before) {
            // A file that was put back and not put in force: the process was ended between the two.
            let older = |master: Master| intent.restoring || master.is_older_than(Path::new(&backup.path));
            let pending = self.master(backup.master.as_deref())?.is_some_and(older);
            return Ok(if pending { State::Ours } else { State::Old });
        }
        if backup.after.contains(&Print::of(&now)) {
            return Ok(State::Ours);
        }
        Ok(merge::state(self, intent, backup, &now))
    }
}

fn real_path(path: &str) -> Option<String> {
    fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
}

/// What to do where the file is in an image.
fn elsewhere(why: &str, setting: &ServerSetting, main: &str) -> String {
    format!(
        "{why} (a container, or a service with PrivateTmp=): an edit in a container vanishes with it. Set {} in the configuration of its image ({main}), or mount such a file over it in the compose file or the Kubernetes manifest (a ConfigMap), and roll it out",
        setting.told()
    )
}
