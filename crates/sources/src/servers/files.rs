//! Files as a process sees them, in a container too: every path is resolved below its root directory, links included.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use chokepoint_config::glob;
use chokepoint_recording::Outcome;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, openat2};

use crate::root::{Root, outcome_of};

/// To look through another user's `/proc/PID/root` (proc_pid_root(5)), and to read files that only root may.
pub(super) const NEEDS: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
/// Names of one directory that are looked at for a pattern.
const NAMES_MAX: usize = 10_000;

/// The root directory of a process.
#[derive(Debug)]
pub(super) struct Files {
    root: File,
}

impl Files {
    pub(super) fn of(root: &Root, pid: u32) -> Result<Self, Outcome> {
        let root = root.open(&format!("proc/{pid}/root")).map_err(|error| outcome_of(&error, Some(NEEDS)))?;
        Ok(Self { root })
    }

    /// Opens a regular file without waiting. No link leads out of the root, as it would where `/proc/PID/root` is a mere prefix of the path
    /// (openat2(2), RESOLVE_IN_ROOT; Linux 5.6).
    pub(super) fn open(&self, path: &str) -> io::Result<File> {
        let file = File::from(self.open_with(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        Ok(file)
    }

    fn open_with(&self, path: &str, flags: OFlags) -> io::Result<rustix::fd::OwnedFd> {
        let below = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), below) {
            // A link to /proc/self/fd/2, as images have for logs.
            Err(rustix::io::Errno::LOOP) => Err(io::Error::other("it is no regular file")),
            Err(rustix::io::Errno::NOSYS) => Err(io::Error::other("the kernel has no openat2 (Linux 5.6)")),
            opened => Ok(opened?),
        }
    }

    /// The file itself, of whatever kind, opened for no more than to be named by its descriptor (open(2), O_PATH).
    pub(super) fn locate(&self, path: &str) -> io::Result<File> {
        Ok(File::from(self.open_with(path, OFlags::PATH)?))
    }

    /// Bytes of a file and the time of its last change, seconds since 1970. One of more than `bytes_max` bytes is an error.
    pub(super) fn read(&self, path: &str, bytes_max: usize) -> io::Result<(Vec<u8>, i64)> {
        let file = self.open(path)?;
        let changed = file.metadata()?.mtime();
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > bytes_max {
            return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
        }
        Ok((bytes, changed))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.open_with(path, OFlags::PATH).is_ok()
    }

    /// The paths that match a glob(7) pattern, sorted, at most `paths_max`; without a wildcard the path itself, whether it exists or not.
    pub(super) fn matching(&self, pattern: &str, paths_max: usize) -> io::Result<Vec<String>> {
        if !glob::is_pattern(pattern) {
            return Ok(vec![pattern.to_owned()]);
        }
        let mut paths = vec![String::new()];
        for component in pattern.split('/').filter(|component| !component.is_empty()) {
            if !glob::is_pattern(component) {
                paths.iter_mut().for_each(|path| *path = format!("{path}/{component}"));
                continue;
            }
            let mut matched = Vec::new();
            for path in paths {
                for name in self.names(if path.is_empty() { "/" } else { &path })? {
                    if glob::matches(component, &name) && matched.len() < paths_max {
                        matched.push(format!("{path}/{name}"));
                    }
                }
            }
            paths = matched;
        }
        paths.retain(|path| self.exists(path));
        paths.sort_unstable();
        Ok(paths)
    }

    /// Names in a directory; none where there is no such directory.
    pub(super) fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let opened = match self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&opened)?.take(NAMES_MAX) {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_below_the_root_and_patterns_match_in_every_part() {
        let tree = tempfile::tempdir().unwrap();
        let inside = tree.path().join("proc/42/root");
        for directory in ["etc/a", "etc/b", "outside"] {
            std::fs::create_dir_all(inside.join(directory)).unwrap();
        }
        std::fs::write(inside.join("etc/a/x.conf"), "1").unwrap();
        std::fs::write(inside.join("etc/b/x.conf"), "22").unwrap();
        std::fs::write(tree.path().join("secret"), "secret").unwrap();
        // Absolute and climbing links mean files of the process's own root, not of the reader's.
        symlink("/etc/b/x.conf", inside.join("etc/a/y.conf")).unwrap();
        symlink("../../../../../../../secret", inside.join("etc/a/z.conf")).unwrap();
        symlink("loop", inside.join("etc/a/loop")).unwrap();
        let files = Files::of(&Root::new(tree.path()), 42).unwrap();
        assert_eq!(files.read("/etc/a/y.conf", 10).unwrap().0, b"22");
        assert!(files.read("/etc/a/z.conf", 10).is_err());
        assert!(files.read("/../../secret", 10).is_err());
        assert!(files.read("/etc/b/x.conf", 1).unwrap_err().to_string().contains("longer than 1"));
        assert!(files.open("/etc/a").is_err() && files.open("/etc/a/loop").is_err(), "neither a directory nor a loop is a file");
        let found = files.matching("/etc/*/?.conf", 10).unwrap();
        assert_eq!(found, ["/etc/a/x.conf", "/etc/a/y.conf", "/etc/b/x.conf"], "a link that leads nowhere matches nothing");
        assert_eq!(files.matching("/etc/*/?.conf", 2).unwrap().len(), 2);
        assert_eq!(files.matching("/none/*.conf", 9).unwrap(), [""; 0]);
        assert_eq!(files.matching("/none/x.conf", 9).unwrap(), ["/none/x.conf"]);
    }

    #[test]
    fn a_pipe_does_not_hang() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/42/root")).unwrap();
        let path = tree.path().join("proc/42/root/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let files = Files::of(&Root::new(tree.path()), 42).unwrap();
        assert!(files.open("/pipe").unwrap_err().to_string().contains("no regular file"));
    }
}
