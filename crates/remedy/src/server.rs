//! One setting in the configuration of a running server, as the journal applies it and takes it back.

mod activate;
pub(crate) mod configuration;
mod confined;
mod edit;
mod file;
pub(crate) mod known_master;
mod listener;
mod master;
mod merge;
pub(crate) mod plan;
mod socket;
mod trial;
mod unread;
mod view;

use std::path::Path;

use chokepoint_config::nginx::{FastcgiReuse, LogLevels, SessionCache};
use chokepoint_config::php_fpm::PoolSocket;
use chokepoint_config::text;
use chokepoint_model::change::{Change, ServerSetting};

use self::configuration::Server;
pub(crate) use self::file::read as read_file;
use self::known_master::KnownMaster;
use self::master::Master;
use self::view::View;
use crate::consent::Consent;
use crate::error::ApplyError;
use crate::record::{Backup, Checksum, Intent};
use crate::setting::{ChangeContext, Found, Setting, State, Toward};

/// Longest number, bytes.
const NUMBER_BYTES_MAX: usize = 20;

impl Server {
    /// Applies a change with its backup.
    fn put_new(&self, intent: &Intent, backup: &Backup) -> Result<(), ApplyError> {
        let master = self.running()?;
        let changed = || ApplyError::FileChanged { key: self.key.clone(), path: backup.path.clone() };
        let now = self.file_now(&backup.path)?;
        if now != text::encode(&backup.before) {
            return Err(changed());
        }
        let after = text::encode(&self.edit(&backup.path, &backup.before, intent.change.to())?);
        if !backup.after.contains(&Checksum::of(&after)) {
            return Err(changed());
        }
        // Only now is it known: the earlier changes of the set are in force.
        match (&self.setting, intent.change.to().strip_prefix("unix:")) {
            (ServerSetting::NginxFastcgiAddress { .. }, Some(path)) => socket::check_reachable(&master, path),
            (ServerSetting::PhpFpmListen { pool }, Some(_)) if !intent.was.starts_with("unix:") => {
                socket::wait_until_unused(&master, pool, &intent.was)
            }
            _ => Ok(()),
        }
        .map_err(|why| self.not_here(why))?;
        self.put_file(backup, &now, &after, Some(intent.after()))
    }

    /// What must hold before the first change of a set is made, so that none of them is made in vain. The error is a clause.
    fn check_beforehand(&self, master: &Master, to: &str) -> Result<(), String> {
        let socket = to.parse::<PoolSocket>();
        match (&self.setting, socket) {
            (ServerSetting::PhpFpmSecondPool { .. }, Ok(socket)) => {
                socket::check_place(master, &socket)?;
                socket::check_unconfined(master)
            }
            (ServerSetting::PhpFpmListen { .. }, Ok(_)) => {
                let now = edit::value(&View::of(Some(master), &self.main)?, &self.main, &self.setting, &[])?;
                socket::check_own(master, &now)
            }
            (ServerSetting::NginxFastcgiAddress { .. }, _) => socket::check_unconfined(master),
            _ => Ok(()),
        }
    }

    /// Restores the old file if the file is as the change left it. Otherwise removes only the change from it.
    fn put_old(&self, intent: &Intent, backup: &Backup) -> Result<(), ApplyError> {
        let now = self.file_now(&backup.path)?;
        let before = text::encode(&backup.before);
        if now == before {
            // An interrupted undo has restored it, and only the reload is missing.
            return match self.master(backup.master.as_deref())? {
                Some(master) => self.activate(&master, Some(intent.before()), !activate::is_live(&self.setting)),
                None => Ok(()),
            };
        }
        if backup.after.contains(&Checksum::of(&now)) {
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
        // Which files are read besides the main one is known from the process: that it is not the server comes before that they lack the setting.
        let missing = |why| self.running().err().unwrap_or_else(|| self.bad(why));
        let value = edit::value(&self.view(None)?, &self.main, &self.setting, &[]).map_err(missing)?;
        Ok(Found { value, place: None })
    }

    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError> {
        let Some(backup) = &intent.backup else { return Err(self.bad("the journal has no copy of its file".to_owned())) };
        match toward {
            Toward::New => self.put_new(intent, backup),
            Toward::Old => {
                self.put_old(intent, backup)?;
                if let (ServerSetting::PhpFpmSecondPool { .. }, Ok(socket)) = (&self.setting, intent.change.to().parse::<PoolSocket>()) {
                    socket::remove_left(&socket.path);
                }
                Ok(())
            }
        }
    }

    fn check(&self, value: &str) -> Result<(), ApplyError> {
        if value == ServerSetting::UNSET {
            return Ok(());
        }
        if let ServerSetting::Text { find, with, .. } = &self.setting {
            let is_one = value == find || value == with;
            return if is_one { Ok(()) } else { Err(self.bad(format!("\"{value}\" is neither of its two texts"))) };
        }
        let parsed = match self.setting {
            ServerSetting::NginxFastcgiReuse { .. } => Some(value.parse::<FastcgiReuse>().map(drop).map_err(|error| error.to_string())),
            ServerSetting::NginxErrorLogLevels { .. } => Some(value.parse::<LogLevels>().map(drop).map_err(|error| error.to_string())),
            ServerSetting::NginxFastcgiAddress { ref address, ref socket } => {
                let is_one = value == address || value == socket;
                Some(if is_one { Ok(()) } else { Err("it is neither of its two addresses".to_owned()) })
            }
            ServerSetting::PhpFpmListen { .. } if !value.starts_with("unix:") => {
                Some(if value.contains(char::is_whitespace) { Err("it is not an address".to_owned()) } else { Ok(()) })
            }
            ServerSetting::PhpFpmSecondPool { .. } | ServerSetting::PhpFpmListen { .. } => {
                Some(value.parse::<PoolSocket>().map(drop).map_err(|error| error.to_string()))
            }
            ServerSetting::NginxTlsSessionCache => Some(value.parse::<SessionCache>().map(drop).map_err(|error| error.to_string())),
            _ => None,
        };
        if let Some(parsed) = parsed {
            return parsed.map_err(|error| self.bad(format!("\"{value}\": {error}")));
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = is_number(value) || value.strip_prefix('-').is_some_and(is_number);
        if fits && value.len() <= NUMBER_BYTES_MAX { Ok(()) } else { Err(self.bad(format!("\"{value}\" is not a number"))) }
    }

    fn same(&self, one: &str, other: &str) -> bool {
        one == other
    }

    fn backup(&self, to: &str, earlier: &[Intent], context: &ChangeContext<'_>) -> Result<Option<Backup>, ApplyError> {
        let master = self.running()?;
        let refused = |said| ApplyError::ServerRefuses { key: self.key.clone(), when: " as it is, before any change", said };
        if to == ServerSetting::UNSET {
            return Err(self.bad("the change must set a value, not remove it".to_owned()));
        }
        // The files after the earlier changes of the set.
        let mut over: Vec<(String, String)> = Vec::new();
        for (intent, backup) in earlier.iter().filter_map(|intent| Some((intent, intent.backup.as_ref()?))) {
            over.retain(|(path, _)| *path != backup.path);
            over.push((backup.path.clone(), Self::open(&intent.change)?.edit(&backup.path, &backup.before, intent.change.to())?));
        }
        let view = View::of(Some(&master), &self.main).map_err(|why| self.bad(why))?;
        let edited = edit::edited(&view, &self.main, &self.setting, to, &over).map_err(|why| self.bad(why))?;
        // Checked before anything is executed.
        let path = self.editable(&edited.path)?;
        listener::check_is_of(&master, &view, &self.main).map_err(|why| self.not_here(why))?;
        if !earlier.iter().any(|intent| matches!(&intent.change, Change::Server { file, .. } if *file == self.main)) {
            trial::run(&master, &self.main, None).map_err(refused)?;
        }
        self.check_beforehand(&master, to).map_err(|why| self.not_here(why))?;
        let unread = self.unread(&master, &context.backups)?;
        let is_agreed = |file: &String| match context.consent {
            Consent::Nothing => false,
            Consent::Unread(agreed) => agreed.contains(file),
            Consent::AnyUnread => true,
        };
        if !unread.iter().all(is_agreed) {
            return Err(ApplyError::Unread { key: self.key.clone(), server: self.kind.name(), files: unread });
        }
        let after = Checksum::of(&text::encode(&edited.after));
        let in_force = self.in_force(&master, &view, &context.backups);
        let known = KnownMaster::of(&master.identity);
        let queue = activate::queue(&master, &view, &self.main, &self.setting);
        Ok(Some(Backup { path, before: edited.before, after: vec![after], master: Some(Box::new(known)), in_force, queue }))
    }

    fn state(&self, intent: &Intent) -> Result<State, ApplyError> {
        let Some(backup) = &intent.backup else { return Err(self.bad("the journal has no copy of its file".to_owned())) };
        let now = match file::read(Path::new(&backup.path)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(State::Gone("its configuration file no longer exists"));
            }
            read => read.map_err(|error| self.io(error))?,
        };
        if now == text::encode(&backup.before) {
            // An undo was interrupted between restoring the file and the reload.
            let older = |master: Master| intent.restoring || master.is_older_than(Path::new(&backup.path));
            let pending = self.master(backup.master.as_deref())?.is_some_and(older);
            return Ok(if pending { State::Ours } else { State::Old });
        }
        if backup.after.contains(&Checksum::of(&now)) {
            return Ok(State::Ours);
        }
        Ok(merge::state(self, intent, backup, &now))
    }
}
