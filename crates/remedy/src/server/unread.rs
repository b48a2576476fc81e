//! Configuration changed since the server read it: a reload for another edit would put it in force as well. It is inspected with the rights of the
//! server's user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chokepoint_foreign::visit;
use chokepoint_model::change::ServerKind;

use super::edit::{self, Parts};
use super::file::{self, real_path};
use super::master::{Master, changed_s, is_newer_than, since_1970_s};
use super::view::View;
use crate::memory;
use crate::record::{Backup, Checksum};

/// Most files and directories of one configuration with a remembered checksum.
const CHECKSUMS_MAX: usize = 4096;
/// Workers that start within this time were started together, seconds; a fork takes milliseconds.
const TOGETHER_S: f64 = 1.0;
/// Most names read of one directory.
const NAMES_MAX: usize = 100_000;

/// Files and directories of a configuration that changed since the server read them, or may have. `journal` holds this program's own edits, which do not
/// count. The error is a clause.
pub(super) fn of(master: &Master, view: &View, main: &str, journal: &[&Backup]) -> Result<Vec<String>, String> {
    let parts = edit::parts(view, main, master.kind)?;
    let read_s = read_at_s(master, &parts);
    let ours = |path: &str| {
        let Some(checksum) = checksum(path) else { return false };
        let edited = |backup: &Backup| backup.path == path && !backup.in_force.is_empty() && backup.after.contains(&checksum);
        let was_read = |checksums: &[(String, Checksum)]| checksums.iter().any(|(known, then)| known == path && *then == checksum);
        memory::is_in_force((master.pid(), master.identity.start_ticks), main, path, checksum)
            || journal.iter().any(|backup| edited(backup) || was_read(&backup.in_force))
    };
    let is_unread = |path: &&String| {
        let real = real_path(path);
        changed(path).is_none_or(|changed_s| is_newer_than(changed_s, read_s)) && !ours(real.as_ref().unwrap_or(path))
    };
    let all = || parts.reading.files.iter().chain(&parts.reading.directories);
    let mut unread: Vec<String> = view.run(|_| all().filter(is_unread).cloned().collect())?;
    unread.extend(parts.gaps);
    Ok(unread)
}

/// The latest change of a file, of a link on the way to it, or of the name of a directory on the way, which may then have led to another file. Nothing
/// where it cannot be inspected.
fn changed(path: &str) -> Option<f64> {
    let mut last_s: f64 = 0.0;
    let file = visit(Path::new(path), &mut |meta| {
        // A status change later than the last modification means that the directory itself was renamed.
        if meta.is_symlink() || (meta.is_dir() && (meta.mtime(), meta.mtime_nsec()) < (meta.ctime(), meta.ctime_nsec())) {
            last_s = last_s.max(changed_s(meta));
        }
    });
    Some(changed_s(&file.ok()?.metadata().ok()?).max(last_s))
}

/// The present checksums of all files and directories of a configuration; empty where there are too many.
pub(super) fn checksums(view: &View, main: &str, kind: ServerKind) -> Vec<(String, Checksum)> {
    let Ok(parts) = edit::parts(view, main, kind) else { return Vec::new() };
    let paths = || parts.reading.files.iter().chain(&parts.reading.directories).filter_map(|path| real_path(path));
    let checksums =
        || paths().filter_map(|path| checksum(&path).map(|checksum| (path, checksum))).take(CHECKSUMS_MAX + 1).collect::<Vec<_>>();
    let checksums = view.run(|_| checksums()).unwrap_or_default();
    if checksums.len() > CHECKSUMS_MAX { Vec::new() } else { checksums }
}

/// Remembers that the present configuration is in force.
pub(super) fn remember(master: &Master, view: &View, main: &str) {
    memory::remember((master.pid(), master.identity.start_ticks), main, checksums(view, main, master.kind));
}

/// The checksum of a file's bytes or of a directory's names.
fn checksum(path: &str) -> Option<Checksum> {
    let path = Path::new(path);
    if !path.is_dir() {
        return file::read(path).ok().map(|bytes| Checksum::of(&bytes));
    }
    // No include pattern matches names with a leading dot (glob(7)).
    let names = fs::read_dir(path).ok()?.take(NAMES_MAX).flatten().map(|entry| entry.file_name().into_encoded_bytes());
    let mut names: Vec<Vec<u8>> = names.filter(|name| !name.starts_with(b".")).collect();
    names.sort_unstable();
    Some(Checksum::of(&names.join(&0)))
}

/// When the server read its configuration, seconds since 1970: the earliest proven time.
///
/// nginx starts all workers together after reading its configuration, and single ones after a crash: only several that started together prove a
/// reading. php-fpm re-executes itself on a reload and writes its pid file; its workers prove something only if they live as long as it does. Without
/// such proof the server has read its configuration at its start.
fn read_at_s(master: &Master, parts: &Parts) -> f64 {
    let started_s = since_1970_s(master.identity.start_ticks);
    let workers = master.workers();
    let started_together = |is_proof: &dyn Fn(&str) -> bool| {
        let starts = || workers.iter().filter(|worker| is_proof(&worker.title)).map(|worker| since_1970_s(worker.start_ticks));
        let oldest_s = starts().reduce(f64::min)?;
        (starts().filter(|start_s| start_s - oldest_s <= TOGETHER_S).count() > 1).then_some(oldest_s)
    };
    let proven_s = match master.kind {
        ServerKind::Nginx => started_together(&|_| true),
        ServerKind::PhpFpm => {
            let lasts = |title: &str| parts.lasting_pools.iter().any(|pool| title.strip_prefix("php-fpm: pool ") == Some(pool));
            pid_file_s(master, parts).or_else(|| started_together(&lasts))
        }
        // Its master starts one worker for each reading, and no other (`mworker_reexec` in src/haproxy.c).
        ServerKind::Haproxy => workers.iter().map(|worker| since_1970_s(worker.start_ticks)).reduce(f64::max),
    };
    proven_s.map_or(started_s, |proven_s| proven_s.max(started_s))
}

/// When php-fpm wrote its pid file. A file that others can touch proves nothing.
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
    fn a_directorys_checksum_covers_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let empty = checksum(path).unwrap();
        fs::write(dir.path().join(".hidden"), "").unwrap();
        assert_eq!(checksum(path), Some(empty));
        fs::write(dir.path().join("x.conf"), "1").unwrap();
        let one = checksum(path).unwrap();
        assert_ne!(one, empty);
        fs::rename(dir.path().join("x.conf"), dir.path().join("y.conf")).unwrap();
        assert_ne!(checksum(path), Some(one));
        assert_eq!(checksum("/no/such/file"), None);
    }
}
