//! Settings in configuration files: their value as the server reads it, and the edited file.

use chokepoint_config::Edited;
use chokepoint_config::nginx::{self, FastcgiReuse, ListenSocket, LogLevels, Nginx, Position, SessionCache};
use chokepoint_config::php_fpm::{self, Fpm};
use chokepoint_foreign::Files;
use chokepoint_model::change::{ServerKind, ServerSetting};

use super::view::{Reading, UnwrittenTexts, View, resolve};

/// The version of nginx whose defaults apply. Those of the settings edited here are the same since 1.9.
const NGINX: nginx::Version = nginx::Version(1, 22, 1);
/// Directives whose last argument is a file that nginx executes; so are those that end with `_by_lua_file`.
const PROGRAM_DIRECTIVES: [&str; 5] = ["load_module", "perl_modules", "perl_require", "js_import", "js_include"];

/// The configuration of either server.
enum Tree {
    Nginx(nginx::Tree),
    PhpFpm(php_fpm::Tree),
}

/// The parts of a server's configuration.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Its files and searched directories, each once.
    pub(super) reading: Reading,
    /// Files that the server executes, as written in its directives: "modules/x.so".
    pub(super) programs: Vec<String>,
    /// php-fpm's pid file.
    pub(super) pid_file: Option<String>,
    /// php-fpm's pools whose workers live as long as the master.
    pub(super) lasting_pools: Vec<String>,
    /// Files that could not be read, with the reason.
    pub(super) gaps: Vec<String>,
}

fn load(files: &Files, main: &str, kind: ServerKind, unwritten: UnwrittenTexts<'_>, reading: &mut Reading) -> Result<Tree, String> {
    let mut resolve = |pattern: &str| resolve(files, pattern, unwritten, reading);
    match kind {
        ServerKind::Nginx => nginx::Tree::load(main, None, &mut resolve).map(Tree::Nginx).map_err(|error| error.to_string()),
        ServerKind::PhpFpm => php_fpm::Tree::load(main, None, &mut resolve).map(Tree::PhpFpm).map_err(|error| error.to_string()),
    }
}

/// The parts of a configuration. The error is a sentence without a full stop.
pub(super) fn parts(view: &View, main: &str, kind: ServerKind) -> Result<Parts, String> {
    view.run(|files| {
        let mut parts = Parts::default();
        match load(files, main, kind, &[], &mut parts.reading)? {
            Tree::Nginx(tree) => {
                let directives = tree.files().iter().flat_map(|file| file.directives());
                let is_program = |name: &str| PROGRAM_DIRECTIVES.contains(&name) || name.ends_with("_by_lua_file");
                let programs = directives.filter(|directive| is_program(directive.name()));
                parts.programs = programs.filter_map(|directive| directive.values().pop()).collect();
                parts.gaps = tree.gaps.iter().map(|gap| format!("{} ({})", gap.path, gap.why)).collect();
            }
            Tree::PhpFpm(tree) => {
                let fpm = Fpm::of(&tree, php_fpm::Version::FALLBACK);
                parts.pid_file = fpm.global.text("pid").map(|setting| setting.value);
                let lasts = |pool: &&php_fpm::Pool| {
                    let is_static = pool.manager().is_some_and(|manager| manager.value == php_fpm::Manager::Static);
                    is_static && pool.number("pm.max_requests").is_none_or(|requests| requests.value == 0)
                };
                parts.lasting_pools = fpm.pools.iter().filter(lasts).map(|pool| pool.name.clone()).collect();
                parts.gaps = tree.gaps.iter().map(|gap| format!("{} ({})", gap.path, gap.why)).collect();
            }
        }
        for list in [&mut parts.reading.files, &mut parts.reading.directories] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(parts)
    })?
}

/// The value in force once the server has read its files. The error is a sentence without a full stop.
pub(super) fn value(view: &View, main: &str, setting: &ServerSetting, unwritten: UnwrittenTexts<'_>) -> Result<String, String> {
    let missing = || format!("{main} has no {}", setting.told());
    view.run(|files| match load(files, main, setting.server(), unwritten, &mut Reading::default())? {
        Tree::Nginx(tree) => nginx_value(&Nginx::of(&tree, NGINX), setting).ok_or_else(missing),
        Tree::PhpFpm(tree) => php_fpm_value(&tree, setting).ok_or_else(missing),
    })?
}

/// The edited file. The error is a sentence without a full stop.
pub(super) fn edited(view: &View, main: &str, setting: &ServerSetting, to: &str, unwritten: UnwrittenTexts<'_>) -> Result<Edited, String> {
    let all = view.run(|files| match load(files, main, setting.server(), unwritten, &mut Reading::default())? {
        Tree::Nginx(tree) => nginx_edited(&tree, setting, to),
        Tree::PhpFpm(tree) => {
            let (pool, key) = php_fpm_key(setting).ok_or_else(|| "it is no setting of php-fpm".to_owned())?;
            let mut editor = php_fpm::Editor::new(&tree);
            editor.set(pool, key, to).and_then(|()| editor.finish()).map_err(|error| error.to_string())
        }
    });
    let mut files = all??;
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(file),
        (None, _) => Err(format!("{} is {to} already", setting.told())),
        (Some(last), _) => {
            let others: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
            Err(format!("it takes edits of several files at once ({}, {}): make them by hand", others.join(", "), last.path))
        }
    }
}

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
        ServerSetting::PhpFpmMaxChildren { .. } | ServerSetting::PhpFpmBacklog { .. } => return None,
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
                Ok(false) => return Err(format!("not as many error_log go to {log} as there are levels in \"{to}\"")),
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
        ServerSetting::PhpFpmMaxChildren { .. } | ServerSetting::PhpFpmBacklog { .. } => return Err(missing()),
    };
    done.and_then(|()| editor.finish()).map_err(|error| error.to_string())
}

fn php_fpm_key(setting: &ServerSetting) -> Option<(&str, &'static str)> {
    match setting {
        ServerSetting::PhpFpmMaxChildren { pool } => Some((pool, "pm.max_children")),
        ServerSetting::PhpFpmBacklog { pool } => Some((pool, "listen.backlog")),
        _ => None,
    }
}

fn php_fpm_value(tree: &php_fpm::Tree, setting: &ServerSetting) -> Option<String> {
    let fpm = Fpm::of(tree, php_fpm::Version::FALLBACK);
    let (pool, _) = php_fpm_key(setting)?;
    let pool = fpm.pool(pool)?;
    match setting {
        ServerSetting::PhpFpmBacklog { .. } => Some(pool.backlog().value.to_string()),
        _ => Some(pool.max_children()?.value.to_string()),
    }
}

/// A pool's process manager and listening address.
pub(super) fn php_fpm_pool(view: &View, main: &str, pool: &str) -> Option<(Option<php_fpm::Manager>, Option<php_fpm::Listen>)> {
    let found = view.run(|files| {
        let Ok(Tree::PhpFpm(tree)) = load(files, main, ServerKind::PhpFpm, &[], &mut Reading::default()) else { return None };
        let fpm = Fpm::of(&tree, php_fpm::Version::FALLBACK);
        let pool = fpm.pool(pool)?;
        Some((pool.manager().map(|manager| manager.value), pool.listen().map(|listen| listen.value)))
    });
    found.ok().flatten()
}
