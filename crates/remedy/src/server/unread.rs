//! Configuration that a server has not read since it was changed: a reload for one edit would put that in force as well.
//! It is looked at with the rights of the server's own user, as the server reads it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chokepoint_foreign::visit;
use chokepoint_model::change::ServerKind;

use super::edit::{self, Parts};
use super::file;
use super::master::{Master, changed_s, is_newer_than, since_1970_s};
use super::view::View;
use crate::memory;
use crate::record::{Backup, Print};

/// Files and directories of one configuration whose contents are remembered.
const PRINTS_MAX: usize = 4096;
/// Workers whose starts are no further apart than this were started together, seconds: a fork takes milliseconds.
const TOGETHER_S: f64 = 1.0;
/// Names of one directory that are looked at.
const NAMES_MAX: usize = 100_000;

/// Files and directories of a configuration that its server has not read since they were changed, or of which that cannot be shown. `journal` holds
/// what we edited: a file with such content is no stranger's edit. The error is a clause.
pub(super) fn of(master: &Master, view: &View, main: &str, journal: &[&Backup]) -> Result<Vec<String>, String> {
    let parts = edit::parts(view, main, master.kind)?;
    let read_s = read_at_s(master, &parts);
    let ours = |path: &str| {
        let Some(print) = print(path) else { return false };
        let edited = |backup: &Backup| backup.path == path && !backup.in_force.is_empty() && backup.after.contains(&print);
        let was_read = |prints: &[(String, Print)]| prints.iter().any(|(known, then)| known == path && *then == print);
        memory::knows((master.pid(), master.identity.start_ticks), main, path, print)
            || journal.iter().any(|backup| edited(backup) || was_read(&backup.in_force))
    };
    let is_unread = |path: &&String| {
        let real = super::real_path(path);
        changed(path).is_none_or(|changed_s| is_newer_than(changed_s, read_s)) && !ours(real.as_ref().unwrap_or(path))
    };
    let all = || parts.reading.files.iter().chain(&parts.reading.directories);
    let mut unread: Vec<String> = view.run(|_| all().filter(is_unread).cloned().collect())?;
    unread.extend(parts.gaps);
    Ok(unread)
}

/// When a file was changed last, or a link on the way to it, or the name of a directory on the way: what an older name stood for was another file.
/// Nothing where it cannot be looked at.
fn changed(path: &str) -> Option<f64> {
    let mut last_s: f64 = 0.0;
    let file = visit(Path::new(path), &mut |meta| {
        // A directory's change is a new name in it, unless its contents are older than that: then it was renamed itself.
        if meta.is_symlink() || (meta.is_dir() && (meta.mtime(), meta.mtime_nsec()) < (meta.ctime(), meta.ctime_nsec())) {
            last_s = last_s.max(changed_s(meta));
        }
    });
    Some(changed_s(&file.ok()?.metadata().ok()?).max(last_s))
}

/// What everything that a configuration consists of is known by now; empty where it is too much to be kept.
pub(super) fn prints(view: &View, main: &str, kind: ServerKind) -> Vec<(String, Print)> {
    let Ok(parts) = edit::parts(view, main, kind) else { return Vec::new() };
    let paths = || parts.reading.files.iter().chain(&parts.reading.directories).filter_map(|path| super::real_path(path));
    let prints = || paths().filter_map(|path| print(&path).map(|print| (path, print))).take(PRINTS_MAX + 1).collect::<Vec<_>>();
    let prints = view.run(|_| prints()).unwrap_or_default();
    if prints.len() > PRINTS_MAX { Vec::new() } else { prints }
}

/// Remembers that the configuration as it is now is in force.
pub(super) fn remember(master: &Master, view: &View, main: &str) {
    memory::remember((master.pid(), master.identity.start_ticks), main, prints(view, main, master.kind));
}

/// What a file's bytes, or a directory's names, are known by.
fn print(path: &str) -> Option<Print> {
    let path = Path::new(path);
    if !path.is_dir() {
        return file::read(path).ok().map(|bytes| Print::of(&bytes));
    }
    // Names with a dot match no pattern of an include (glob(7)).
    let names = fs::read_dir(path).ok()?.take(NAMES_MAX).flatten().map(|entry| entry.file_name().into_encoded_bytes());
    let mut names: Vec<Vec<u8>> = names.filter(|name| !name.starts_with(b".")).collect();
    names.sort_unstable();
    Some(Print::of(&names.join(&0)))
}

/// When the server read its configuration, seconds since 1970: the earliest time that can be shown.
///
/// nginx starts all of its workers as it has read it, and one anew where one ended: only several that began together tell of a reading. A php-fpm that
/// reloads executes itself anew and writes its pid file; its workers tell only where they stay as long as it does. Without either a server is known to
/// have read what it found when it was started.
fn read_at_s(master: &Master, parts: &Parts) -> f64 {
    let started_s = since_1970_s(master.identity.start_ticks);
    let workers = master.workers();
    let together = |is_told: &dyn Fn(&str) -> bool| {
        let starts = || workers.iter().filter(|worker| is_told(&worker.title)).map(|worker| since_1970_s(worker.start_ticks));
        let oldest_s = starts().reduce(f64::min)?;
        (starts().filter(|start_s| start_s - oldest_s <= TOGETHER_S).count() > 1).then_some(oldest_s)
    };
    let told_s = match master.kind {
        ServerKind::Nginx => together(&|_| true),
        ServerKind::PhpFpm => {
            let lasts = |title: &str| parts.lasting_pools.iter().any(|pool| title.strip_prefix("php-fpm: pool ") == Some(pool));
            pid_file_s(master, parts).or_else(|| together(&lasts))
        }
    };
    told_s.map_or(started_s, |told_s| told_s.max(started_s))
}

/// When php-fpm wrote its pid file, where that is its own: `touch` by somebody else proves nothing.
fn pid_file_s(master: &Master, parts: &Parts) -> Option<f64> {
    let path = parts.pid_file.as_ref().filter(|path| path.starts_with('/'))?;
    let bytes = file::read(Path::new(path)).ok()?;
    chokepoint_foreign::trusted(Path::new(path), master.identity.uid()).ok()?;
    let meta = fs::metadata(path).ok()?;
    let says = String::from_utf8_lossy(&bytes).trim().parse() == Ok(master.pid());
    let modified = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    says.then_some(modified.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_known_by_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let empty = print(path).unwrap();
        fs::write(dir.path().join(".hidden"), "").unwrap();
        assert_eq!(print(path), Some(empty));
        fs::write(dir.path().join("x.conf"), "1").unwrap();
        let one = print(path).unwrap();
        assert_ne!(one, empty);
        fs::rename(dir.path().join("x.conf"), dir.path().join("y.conf")).unwrap();
        assert_ne!(print(path), Some(one));
        assert_eq!(print("/no/such/file"), None);
    }
}
