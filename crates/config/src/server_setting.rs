//! The settings that a remedy changes: their value in a server's configuration, and the edited files.

use chokepoint_model::change::{ServerKind, ServerSetting};
use chokepoint_model::observation::{ConfigurationFiles, FileEdit, SettingValue};

use crate::diff::{Step, changed_lines, script};
use crate::nginx::{self, FastcgiReuse, ListenSocket, LogLevels, Nginx, Position, SessionCache};
use crate::php_fpm::{self, Fpm, PoolSocket};
use crate::{Edited, HIDDEN, dump, haproxy, piece, text};

/// The version of nginx whose defaults apply. Those of the settings edited here are the same since 1.9.
const NGINX: nginx::Version = nginx::Version(1, 22, 1);

/// The configuration of a server that can be edited.
#[derive(Debug, Clone)]
pub enum Tree {
    /// nginx.
    Nginx(nginx::Tree),
    /// php-fpm.
    PhpFpm(php_fpm::Tree),
    /// HAProxy.
    Haproxy(haproxy::Tree),
}

impl Tree {
    /// The value of a setting once the server has read its files; `None` if the configuration has no place for it.
    pub fn value(&self, setting: &ServerSetting) -> Option<String> {
        if let ServerSetting::Text { find, with, .. } = setting {
            return piece::value(&self.texts(), find, with);
        }
        match self {
            Self::Nginx(tree) => nginx_value(&Nginx::of(tree, NGINX), setting),
            Self::PhpFpm(tree) => php_fpm_value(tree, setting),
            Self::Haproxy(tree) => haproxy::limit(tree, haproxy_limit(setting)?).map(|value| value.to_string()),
        }
    }

    /// The files that change if a setting gets a value; none if it has that value already.
    ///
    /// # Errors
    /// Why the edit cannot be made, as a sentence without a full stop.
    pub fn edited(&self, setting: &ServerSetting, to: &str) -> Result<Vec<Edited>, String> {
        if let ServerSetting::Text { find, with, .. } = setting {
            return piece::edited(&self.texts(), find, with, to);
        }
        match self {
            Self::Nginx(tree) => nginx_edited(tree, setting, to),
            Self::PhpFpm(tree) => {
                let mut editor = php_fpm::Editor::new(tree);
                set_php_fpm(&mut editor, tree, setting, to)?;
                editor.finish().map_err(|error| error.to_string())
            }
            Self::Haproxy(tree) => {
                let place = haproxy_limit(setting).ok_or("it is not a setting of HAProxy")?;
                haproxy::set_limit(tree, place, to).map_err(|error| error.to_string())
            }
        }
    }

    /// Path and text of each file.
    fn texts(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Nginx(tree) => tree.files().iter().map(|file| (&*file.path, file.text())).collect(),
            Self::PhpFpm(tree) => tree.files().iter().map(|file| (&*file.path, file.text())).collect(),
            Self::Haproxy(tree) => tree.files().iter().map(|file| (&*file.path, file.text())).collect(),
        }
    }
}

/// The files of a server's configuration in one text ([`dump::add`]), as they were read or as a recording keeps them.
#[derive(Debug, Clone)]
pub struct DumpedFiles {
    /// The server.
    pub server: ServerKind,
    /// The text.
    pub dump: String,
    /// The base of relative paths in php-fpm's configuration; `None` for its default.
    pub prefix: Option<String>,
    /// The files that a path leads to by links, by that path.
    pub real_paths: Vec<(String, String)>,
}

impl DumpedFiles {
    fn tree(&self, dump: &str) -> Result<Tree, String> {
        match self.server {
            ServerKind::Nginx => nginx::Tree::from_dump(dump).map(Tree::Nginx).map_err(|error| error.to_string()),
            ServerKind::PhpFpm => {
                php_fpm::Tree::from_dump(dump, self.prefix.as_deref()).map(Tree::PhpFpm).map_err(|error| error.to_string())
            }
            ServerKind::Haproxy => haproxy::Tree::from_dump(dump).map(Tree::Haproxy).map_err(|error| error.to_string()),
        }
    }

    fn files(&self) -> Vec<NamedText> {
        dump::sections(&self.dump).into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    /// The files after these settings got their values, one after the other.
    fn with(&self, mut files: Vec<NamedText>, settings: &[SettingValue<'_>]) -> Result<Vec<NamedText>, String> {
        for (setting, to) in settings {
            let mut dump = String::new();
            files.iter().for_each(|(path, text)| dump::add(&mut dump, path, text));
            for edited in self.tree(&dump)?.edited(setting, to)? {
                let file = files.iter_mut().find(|(path, _)| *path == edited.path);
                file.ok_or_else(|| format!("{} was not read", edited.path))?.1 = edited.after;
            }
        }
        Ok(files)
    }

    /// True if the edit adds and removes the same lines in the files as a recording keeps them.
    fn shows_same_lines(
        &self,
        recorded: &str,
        before: &[SettingValue<'_>],
        settings: &[SettingValue<'_>],
        (old, new): (&[NamedText], &[NamedText]),
    ) -> Result<bool, String> {
        let kept = Self { dump: recorded.to_owned(), ..self.clone() };
        let kept_old = kept.with(kept.files(), before)?;
        let kept_new = kept.with(kept_old.clone(), settings)?;
        let lines = |old: &[NamedText], new: &[NamedText]| -> Vec<String> {
            old.iter()
                .zip(new)
                .flat_map(|((_, old), (_, new))| replaced(new, old).map(|(_, line)| line.to_owned()).collect::<Vec<_>>())
                .collect()
        };
        let (added, removed) = (lines(old, new), lines(new, old));
        let is_same = added == lines(&kept_old, &kept_new) && removed == lines(&kept_new, &kept_old);
        Ok(is_same && added.iter().chain(&removed).all(|line| self.is_recorded(line, Some(line))))
    }

    /// The files as a recording keeps them.
    fn recorded(&self) -> Result<String, String> {
        let hidden = match self.server {
            ServerKind::Nginx => nginx::hide(&self.dump).map_err(|error| error.to_string()),
            ServerKind::PhpFpm => php_fpm::hide(&self.dump, self.prefix.as_deref()).map_err(|error| error.to_string()),
            ServerKind::Haproxy => haproxy::hide(&self.dump).map_err(|error| error.to_string()),
        };
        hidden.map(|hidden| hidden.text)
    }

    /// True if a recording keeps this line as it stands. In a recording itself a hidden word or the mark of a comment without words shows that it was another.
    fn is_recorded(&self, line: &str, kept: Option<&str>) -> bool {
        let mark = match self.server {
            ServerKind::Nginx | ServerKind::Haproxy => '#',
            ServerKind::PhpFpm => ';',
        };
        let is_marked = line.trim_end().ends_with(mark);
        kept == Some(line) && !line.contains(HIDDEN) && !is_marked
    }
}

/// The lines that an edit removes or replaces, each with its index.
fn replaced<'t>(old: &'t str, new: &str) -> impl Iterator<Item = (usize, &'t str)> {
    let lines = |text: &'t str| text.split_inclusive('\n').collect::<Vec<_>>();
    let before = lines(old);
    let steps = script(&before, &new.split_inclusive('\n').collect::<Vec<_>>());
    steps.into_iter().filter_map(move |step| match step {
        Step::Remove(number) => Some((number, before[number])),
        Step::Keep(..) | Step::Add(_) => None,
    })
}

impl ConfigurationFiles for DumpedFiles {
    fn server(&self) -> ServerKind {
        self.server
    }

    fn text(&self) -> &str {
        &self.dump
    }

    fn value(&self, setting: &ServerSetting) -> Option<String> {
        self.tree(&self.dump).ok()?.value(setting)
    }

    /// An edit of a line that a recording does not keep as it stands is refused, and so is one that repeats such a line, also where the files themselves were
    /// read: the report shows no more of them than its recording does, and a replay prints the same.
    fn edited(&self, before: &[SettingValue<'_>], settings: &[SettingValue<'_>]) -> Result<Vec<FileEdit>, String> {
        let recorded = self.recorded()?;
        let kept = dump::sections(&recorded);
        let old = self.with(self.files(), before)?;
        let new = self.with(old.clone(), settings)?;
        let is_repeating = |(setting, _): &SettingValue<'_>| matches!(setting, ServerSetting::PhpFpmSecondPool { .. });
        if before.iter().chain(settings).any(is_repeating) && !self.shows_same_lines(&recorded, before, settings, (&old, &new))? {
            return Err("a line to repeat is hidden".to_owned());
        }
        let changed = old.iter().zip(&new).filter(|((_, old), (_, new))| old != new);
        let edit = |((path, old), (_, new)): (&NamedText, &NamedText)| {
            let kept = kept.iter().find(|(known, _)| known == path).map_or("", |(_, text)| text);
            let is_shown = |(number, line): (usize, &str)| self.is_recorded(line, kept.split_inclusive('\n').nth(number));
            if before.is_empty() && !replaced(old, new).all(is_shown) {
                return Err(format!("a line to change in {path} is hidden"));
            }
            let diff = changed_lines(path, old, new);
            let real = self.real_paths.iter().find(|(known, _)| known == path).map_or(path, |(_, real)| real);
            Ok(FileEdit { path: real.clone(), diff: text::encode(&diff) })
        };
        changed.map(edit).collect()
    }

    fn changed(&self, settings: &[SettingValue<'_>]) -> Result<usize, String> {
        let old = self.files();
        let new = self.with(old.clone(), settings)?;
        Ok(old.iter().zip(&new).filter(|((_, old), (_, new))| old != new).count())
    }
}

/// Path and text of a file.
type NamedText = (String, String);

fn socket<'n>(nginx: &'n Nginx, address: &str) -> Option<&'n ListenSocket> {
    let http = nginx.http.iter().flat_map(|http| &http.sockets);
    let stream = nginx.stream.iter().flat_map(|stream| &stream.sockets);
    let mut sockets = http.chain(stream).filter(|socket| !socket.udp && socket.bound);
    sockets.find(|socket| socket.address.to_string() == address)
}

fn nginx_value(nginx: &Nginx, setting: &ServerSetting) -> Option<String> {
    let number = match setting {
        ServerSetting::NginxListenBacklog { address } => return socket(nginx, address).map(|socket| socket.backlog.value.to_string()),
        ServerSetting::NginxWorkerConnections => nginx.main.worker_connections()?.value,
        ServerSetting::NginxWorkerRlimitNofile => match nginx.main.worker_rlimit_nofile() {
            Some(limit) => limit.value,
            None => return Some(ServerSetting::UNSET.to_owned()),
        },
        ServerSetting::NginxFastcgiReuse { pass } => {
            let reuse = nginx::fastcgi_reuse(nginx, pass)?;
            return Some(reuse.map_or_else(|| ServerSetting::UNSET.to_owned(), |reuse| reuse.to_string()));
        }
        ServerSetting::NginxErrorLogLevels { to } => return nginx.log_levels(to).map(|levels| levels.to_string()),
        ServerSetting::NginxTlsSessionCache => {
            return nginx.session_cache().map(|cache| cache.unwrap_or_else(|| ServerSetting::UNSET.to_owned()));
        }
        ServerSetting::NginxFastcgiAddress { address, socket } => {
            return nginx::fastcgi_address(nginx, address, socket).map(str::to_owned);
        }
        ServerSetting::PhpFpmMaxChildren { .. }
        | ServerSetting::PhpFpmBacklog { .. }
        | ServerSetting::PhpFpmSecondPool { .. }
        | ServerSetting::PhpFpmListen { .. }
        | ServerSetting::Limit { .. }
        | ServerSetting::Text { .. } => return None,
    };
    Some(number.to_string())
}

fn nginx_edited(tree: &nginx::Tree, setting: &ServerSetting, to: &str) -> Result<Vec<Edited>, String> {
    let missing = || format!("the configuration has no {}", setting.told());
    let nginx = Nginx::of(tree, NGINX);
    let mut editor = nginx::Editor::new(tree);
    let done = match setting {
        ServerSetting::NginxListenBacklog { address } => {
            let node = socket(&nginx, address).and_then(ListenSocket::option_node);
            editor.set_option(node.ok_or_else(missing)?, "backlog", to)
        }
        ServerSetting::NginxWorkerConnections => {
            let events = tree.top().into_iter().find(|node| tree.directive(*node).name() == "events");
            editor.set(Some(events.ok_or_else(missing)?), "worker_connections", &[to], Position::End)
        }
        ServerSetting::NginxWorkerRlimitNofile => editor.set(None, "worker_rlimit_nofile", &[to], Position::End),
        ServerSetting::NginxFastcgiReuse { pass } => {
            let reuse = to.parse::<FastcgiReuse>().map_err(|error| format!("\"{to}\": {error}"))?;
            match nginx::keep_fastcgi(&mut editor, &nginx, pass, reuse) {
                Ok(false) => return Err(format!("nothing is passed to {pass} by fastcgi_pass")),
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            }
        }
        ServerSetting::NginxErrorLogLevels { to: log } => {
            let levels = to.parse::<LogLevels>().map_err(|error| format!("\"{to}\": {error}"))?;
            match nginx::set_log_levels(&mut editor, &nginx, log, &levels) {
                Ok(false) => {
                    return Err(format!("the number of error_log directives for {log} differs from the number of levels in \"{to}\""));
                }
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            }
        }
        ServerSetting::NginxTlsSessionCache => {
            let cache = to.parse::<SessionCache>().map_err(|error| format!("\"{to}\": {error}"))?;
            match nginx::set_session_cache(&mut editor, &nginx, &cache) {
                Ok(false) => return Err(missing()),
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            }
        }
        ServerSetting::NginxFastcgiAddress { address, socket } => {
            let from = if to == socket { address } else { socket };
            match nginx::move_fastcgi(&mut editor, &nginx, from, to) {
                Ok(false) => return Err(format!("nothing is passed to {from} by fastcgi_pass")),
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            }
        }
        ServerSetting::PhpFpmMaxChildren { .. }
        | ServerSetting::PhpFpmBacklog { .. }
        | ServerSetting::PhpFpmSecondPool { .. }
        | ServerSetting::PhpFpmListen { .. }
        | ServerSetting::Limit { .. }
        | ServerSetting::Text { .. } => {
            return Err(missing());
        }
    };
    done.and_then(|()| editor.finish()).map_err(|error| error.to_string())
}

/// The place of a limit of HAProxy.
fn haproxy_limit(setting: &ServerSetting) -> Option<haproxy::LimitPlace<'_>> {
    match setting {
        ServerSetting::Limit { server: ServerKind::Haproxy, section, line, limit } => Some(haproxy::LimitPlace { section, line, limit }),
        _ => None,
    }
}

fn php_fpm_key(setting: &ServerSetting) -> Option<(&str, &'static str)> {
    match setting {
        ServerSetting::PhpFpmMaxChildren { pool } => Some((pool, "pm.max_children")),
        ServerSetting::PhpFpmBacklog { pool } => Some((pool, "listen.backlog")),
        _ => None,
    }
}

/// The edit of a php-fpm setting. The error is a sentence without a full stop.
fn set_php_fpm(editor: &mut php_fpm::Editor<'_>, tree: &php_fpm::Tree, setting: &ServerSetting, to: &str) -> Result<(), String> {
    let fpm = || Fpm::of(tree, php_fpm::Version::FALLBACK);
    let socket = || to.parse::<PoolSocket>().map_err(|error| format!("\"{to}\": {error}"));
    let done = match setting {
        ServerSetting::PhpFpmSecondPool { pool } => editor.add_second_pool(&fpm(), pool, &socket()?),
        ServerSetting::PhpFpmListen { pool } if to.starts_with("unix:") => editor.move_to_socket(&fpm(), pool, &socket()?),
        ServerSetting::PhpFpmListen { pool } => editor.set(pool, "listen", to),
        _ => {
            let (pool, key) = php_fpm_key(setting).ok_or_else(|| "it is not a setting of php-fpm".to_owned())?;
            editor.set(pool, key, to)
        }
    };
    done.map_err(|error| error.to_string())
}

fn php_fpm_value(tree: &php_fpm::Tree, setting: &ServerSetting) -> Option<String> {
    let fpm = Fpm::of(tree, php_fpm::Version::FALLBACK);
    match setting {
        ServerSetting::PhpFpmSecondPool { pool } => {
            let socket = php_fpm::second_pool(&fpm, pool)?;
            return Some(socket.map_or_else(|| ServerSetting::UNSET.to_owned(), |socket| socket.to_string()));
        }
        ServerSetting::PhpFpmListen { pool } => return php_fpm::pool_listen(&fpm, pool),
        _ => {}
    }
    let (pool, _) = php_fpm_key(setting)?;
    let pool = fpm.pool(pool)?;
    match setting {
        ServerSetting::PhpFpmBacklog { .. } => Some(pool.backlog().value.to_string()),
        _ => Some(pool.max_children()?.value.to_string()),
    }
}
