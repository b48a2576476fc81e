//! Settings in configuration files: their values as the server reads them, and the one file with another value.

use std::ffi::{CStr, CString};
use std::path::Path;

use chokepoint_config::nginx::{self, FastcgiReuse, ListenSocket, Nginx, Position};
use chokepoint_config::php_fpm::{self, Fpm};
use chokepoint_config::{Edited, Resolved, text};
use chokepoint_model::change::{ServerKind, ServerSetting};

use super::file;

/// nginx whose defaults are taken where a file does not say; those of the settings edited here are the same in all versions since 1.9.
const NGINX: nginx::Version = nginx::Version(1, 22, 1);
/// Paths that one pattern may match.
const MATCHES_MAX: usize = 16_384;

/// Texts that stand for files which are not written yet, by path with its links resolved.
type Over<'a> = &'a [(String, String)];

/// The value in force once the server has read its files; the error is a sentence without its end.
pub(super) fn value(main: &str, setting: &ServerSetting, over: Over<'_>) -> Result<String, String> {
    let mut resolve = |pattern: &str| resolve(pattern, over);
    match setting.server() {
        ServerKind::Nginx => {
            let tree = nginx::Tree::load(main, None, &mut resolve).map_err(|error| error.to_string())?;
            let nginx = Nginx::of(&tree, NGINX);
            nginx_value(&nginx, setting).ok_or_else(|| format!("{main} has no {}", setting.told()))
        }
        ServerKind::PhpFpm => {
            let tree = php_fpm::Tree::load(main, None, &mut resolve).map_err(|error| error.to_string())?;
            php_fpm_value(&tree, setting).ok_or_else(|| format!("{main} has no {}", setting.told()))
        }
    }
}

/// The file that changes; the error is a sentence without its end.
pub(super) fn edited(main: &str, setting: &ServerSetting, to: &str, over: Over<'_>) -> Result<Edited, String> {
    let mut resolve = |pattern: &str| resolve(pattern, over);
    let mut files = match setting.server() {
        ServerKind::Nginx => {
            let tree = nginx::Tree::load(main, None, &mut resolve).map_err(|error| error.to_string())?;
            nginx_edited(&tree, setting, to)?
        }
        ServerKind::PhpFpm => {
            let tree = php_fpm::Tree::load(main, None, &mut resolve).map_err(|error| error.to_string())?;
            let (pool, key) = php_fpm_key(setting).ok_or_else(|| "it is no setting of php-fpm".to_owned())?;
            let mut editor = php_fpm::Editor::new(&tree);
            editor.set(pool, key, to).and_then(|()| editor.finish()).map_err(|error| error.to_string())?
        }
    };
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

/// The pool's way of managing its workers and its listening address.
pub(super) fn php_fpm_pool(main: &str, pool: &str) -> Option<(Option<php_fpm::Manager>, Option<php_fpm::Listen>)> {
    let tree = php_fpm::Tree::load(main, None, &mut |pattern: &str| resolve(pattern, &[])).ok()?;
    let fpm = Fpm::of(&tree, php_fpm::Version::FALLBACK);
    let pool = fpm.pool(pool)?;
    Some((pool.manager().map(|manager| manager.value), pool.listen().map(|listen| listen.value)))
}

/// The files of a path or pattern.
fn resolve(pattern: &str, over: Over<'_>) -> Vec<Resolved> {
    let paths = if pattern.contains(['*', '?', '[']) { glob(pattern) } else { vec![pattern.to_owned()] };
    let read = |path: String| {
        let real = super::real_path(&path);
        if let Some((_, text)) = over.iter().find(|(over, _)| Some(over) == real.as_ref()) {
            return Some((path, Ok(text.clone())));
        }
        match file::read(Path::new(&path)) {
            Ok(bytes) => Some((path, Ok(text::decode(&bytes)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => Some((path, Err(error.to_string()))),
        }
    };
    paths.into_iter().filter_map(read).collect()
}

/// Paths that match, in the order of glob(3), which both servers use.
#[allow(unsafe_code)]
fn glob(pattern: &str) -> Vec<String> {
    let Ok(pattern) = CString::new(pattern) else { return Vec::new() };
    // SAFETY: all-zero is a valid glob_t: no paths and null pointers.
    let mut found: libc::glob_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pattern ends with a zero, `found` lives through the call, and there is no error function.
    let result = unsafe { libc::glob(pattern.as_ptr(), 0, None, &raw mut found) };
    let mut paths = Vec::new();
    if result == 0 {
        for index in 0..found.gl_pathc.min(MATCHES_MAX) {
            // SAFETY: glob(3) gave `gl_pathc` pointers to strings that end with a zero; they live until globfree(3).
            let path = unsafe { CStr::from_ptr(*found.gl_pathv.add(index)) };
            paths.extend(path.to_str().map(str::to_owned));
        }
    }
    // SAFETY: `found` was filled by glob(3) or is all zero.
    unsafe { libc::globfree(&raw mut found) };
    paths
}
