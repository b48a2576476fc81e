//! Settings in configuration files: their value as the server reads it, and the edited file.

use chokepoint_config::Edited;
use chokepoint_config::haproxy::{self, Haproxy};
use chokepoint_config::nginx::{self, Nginx};
use chokepoint_config::php_fpm::{self, Fpm};
use chokepoint_config::server_setting::Tree;
use chokepoint_foreign::Files;
use chokepoint_model::change::{ServerKind, ServerSetting};

use super::listener::ListenAddress;
use super::view::{Reading, UnwrittenTexts, View, resolve};

/// Directives whose last argument is a file that nginx executes; so are those that end with `_by_lua_file`.
const PROGRAM_DIRECTIVES: [&str; 5] = ["load_module", "perl_modules", "perl_require", "js_import", "js_include"];

/// Lines of HAProxy's `global` whose next word is a script, which it runs as it reads them.
const SCRIPT_LINES: [&str; 2] = ["lua-load", "lua-load-per-thread"];

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

/// Reads a server's files: the main one, and those that it was given as well.
fn load(
    files: &Files,
    (main, also): (&str, &[String]),
    kind: ServerKind,
    unwritten: UnwrittenTexts<'_>,
    reading: &mut Reading,
) -> Result<Tree, String> {
    let mut resolve = |pattern: &str| resolve(files, pattern, unwritten, reading);
    match kind {
        ServerKind::Nginx => nginx::Tree::load(main, None, &mut resolve).map(Tree::Nginx).map_err(|error| error.to_string()),
        ServerKind::PhpFpm => php_fpm::Tree::load(main, None, &mut resolve).map(Tree::PhpFpm).map_err(|error| error.to_string()),
        ServerKind::Haproxy => {
            let mains: Vec<&str> = [main].into_iter().chain(also.iter().map(String::as_str)).collect();
            haproxy::Tree::load(&mains, &mut |path: &str| resolve(path)).map(Tree::Haproxy).map_err(|error| error.to_string())
        }
    }
}

/// The parts of a configuration. The error is a sentence without a full stop.
pub(super) fn parts(view: &View, main: &str, kind: ServerKind) -> Result<Parts, String> {
    view.run(|files| {
        let mut parts = Parts::default();
        match load(files, (main, view.also()), kind, &[], &mut parts.reading)? {
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
            // All of its files are named on its command line; one that cannot be read is an error above.
            Tree::Haproxy(tree) => {
                let lines = tree.files().iter().flat_map(|file| file.entries());
                let scripts = lines.filter(|line| SCRIPT_LINES.contains(&line.word(0)));
                parts.programs = scripts.map(|line| line.word(1).to_owned()).filter(|path| !path.is_empty()).collect();
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
    view.run(|files| {
        load(files, (main, view.also()), setting.server(), unwritten, &mut Reading::default())?.value(setting).ok_or_else(missing)
    })?
}

/// The edited file. The error is a sentence without a full stop.
pub(super) fn edited(view: &View, main: &str, setting: &ServerSetting, to: &str, unwritten: UnwrittenTexts<'_>) -> Result<Edited, String> {
    let all = view.run(|files| load(files, (main, view.also()), setting.server(), unwritten, &mut Reading::default())?.edited(setting, to));
    let mut files = all??;
    match (files.pop(), files.len()) {
        (Some(file), 0) => Ok(file),
        (None, _) => Err(format!("{} is {to} already", setting.told())),
        (Some(last), _) => {
            let others: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
            Err(format!("it needs edits in several files at once ({}, {}): make them by hand", others.join(", "), last.path))
        }
    }
}

/// The addresses on which a configuration listens with sockets of its own; nothing where it cannot be read, or one cannot be compared with a socket's.
pub(super) fn listens(view: &View, main: &str, kind: ServerKind) -> Option<Vec<ListenAddress>> {
    let found = view.run(|files| match load(files, (main, view.also()), kind, &[], &mut Reading::default()).ok()? {
        Tree::Nginx(tree) => {
            let Nginx { http, stream, .. } = Nginx::of(&tree, nginx::Version::FALLBACK);
            let sockets = http.into_iter().flat_map(|http| http.sockets).chain(stream.into_iter().flat_map(|stream| stream.sockets));
            sockets.filter(|socket| socket.bound && !socket.udp).map(|socket| ListenAddress::of_nginx(&socket.address)).collect()
        }
        Tree::PhpFpm(tree) => {
            let pools = Fpm::of(&tree, php_fpm::Version::FALLBACK).pools;
            pools.iter().map(|pool| ListenAddress::of_pool(&pool.listen()?.value)).collect()
        }
        Tree::Haproxy(tree) => {
            let proxies = Haproxy::of(&tree).ok()?.proxies;
            let addresses = proxies.iter().flat_map(|proxy| &proxy.binds).flat_map(|bind| &bind.addresses);
            addresses.map(ListenAddress::of_haproxy).collect()
        }
    });
    found.ok().flatten()
}

/// A pool's process manager and listening address.
pub(super) fn php_fpm_pool(view: &View, main: &str, pool: &str) -> Option<(Option<php_fpm::Manager>, Option<php_fpm::Listen>)> {
    let found = view.run(|files| {
        let Ok(Tree::PhpFpm(tree)) = load(files, (main, view.also()), ServerKind::PhpFpm, &[], &mut Reading::default()) else {
            return None;
        };
        let fpm = Fpm::of(&tree, php_fpm::Version::FALLBACK);
        let pool = fpm.pool(pool)?;
        Some((pool.manager().map(|manager| manager.value), pool.listen().map(|listen| listen.value)))
    });
    found.ok().flatten()
}
