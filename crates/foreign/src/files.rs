//! Files as a process sees them, in a container too: resolved below its root directory, never waited for, regular ones alone, within bounds.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Names of one directory that are looked at.
const NAMES_MAX: usize = 10_000;

/// A directory below which paths are resolved: as a rule the root directory of a process.
#[derive(Debug)]
pub struct Files {
    root: OwnedFd,
}

impl Files {
    /// The files that a process sees: `proc` is where procfs is mounted ("/proc"), or a tree of files in a test.
    ///
    /// # Errors
    /// The process is gone, or its root directory may not be looked at (proc_pid_root(5): CAP_SYS_PTRACE for another user's).
    pub fn of_process(proc: &Path, pid: u32) -> io::Result<Self> {
        Self::of_directory(&proc.join(pid.to_string()).join("root"))
    }

    /// The files below a directory.
    ///
    /// # Errors
    /// It is no directory, or may not be looked at.
    pub fn of_directory(path: &Path) -> io::Result<Self> {
        Ok(Self { root: openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())? })
    }

    /// Opens a regular file for reading, without waiting. Links are followed, but none leads out of the root, as it would where `/proc/PID/root` is
    /// a mere prefix of the path (openat2(2), RESOLVE_IN_ROOT).
    ///
    /// # Errors
    /// As of openat2(2); "it is no regular file" for a FIFO, a device, a socket or a directory; the kernel is older than Linux 5.6.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        // First without opening: to open a device may already do something (a watchdog, a tape).
        let located = self.locate(path.as_ref())?;
        if !located.metadata()?.is_file() {
            return Err(not_regular());
        }
        let file = File::from(self.open_with(path.as_ref(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    /// [`Files::open`] for a file whose owner must be root or this user. What a process finds at a path that everybody may write (`/tmp`) is
    /// its own word only then.
    ///
    /// # Errors
    /// As of [`Files::open`]; "it belongs to another user".
    pub fn open_owned(&self, path: impl AsRef<Path>, uid: u32) -> io::Result<File> {
        let file = self.open(path)?;
        let owner = file.metadata()?.uid();
        if owner == 0 || owner == uid { Ok(file) } else { Err(io::Error::other("it belongs to another user")) }
    }

    /// Bytes and metadata of a file.
    ///
    /// # Errors
    /// As of [`Files::open`] and read(2); "longer than N bytes".
    pub fn read(&self, path: impl AsRef<Path>, bytes_max: usize) -> io::Result<(Vec<u8>, Metadata)> {
        let file = self.open(path)?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > bytes_max {
            return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
        }
        Ok((bytes, metadata))
    }

    /// The file itself, of whatever kind, opened for no more than to be named by its descriptor (open(2), O_PATH).
    ///
    /// # Errors
    /// As of openat2(2).
    pub fn locate(&self, path: impl AsRef<Path>) -> io::Result<File> {
        Ok(File::from(self.open_with(path.as_ref(), OFlags::PATH)?))
    }

    /// True where there is something at this path.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.locate(path).is_ok()
    }

    /// Names in a directory, at most 10,000; none where there is no such directory.
    ///
    /// # Errors
    /// As of openat2(2) and getdents(2).
    pub fn names(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let opened = match self.open_with(path.as_ref(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK) {
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

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), below) {
            // A link to /proc/self/fd/2, as images have for logs.
            Err(Errno::LOOP) => Err(not_regular()),
            Err(Errno::NOSYS) => Err(io::Error::other("the kernel has no openat2 (Linux 5.6)")),
            opened => Ok(opened?),
        }
    }
}

fn not_regular() -> io::Error {
    io::Error::other("it is no regular file")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn links_stay_below_the_root() {
        let tree = tempfile::tempdir().unwrap();
        let inside = tree.path().join("42/root");
        for directory in ["etc/a", "etc/b", "outside"] {
            std::fs::create_dir_all(inside.join(directory)).unwrap();
        }
        std::fs::write(inside.join("etc/b/x.conf"), "22").unwrap();
        std::fs::write(tree.path().join("secret"), "secret").unwrap();
        // Absolute and climbing links mean files of the process's own root, not of the reader's.
        symlink("/etc/b/x.conf", inside.join("etc/a/y.conf")).unwrap();
        symlink("../../../../../../../secret", inside.join("etc/a/z.conf")).unwrap();
        symlink("loop", inside.join("etc/a/loop")).unwrap();
        let files = Files::of_process(tree.path(), 42).unwrap();
        assert_eq!(files.read("/etc/a/y.conf", 10).unwrap().0, b"22");
        assert!(files.read("/etc/a/z.conf", 10).is_err());
        assert!(files.read("/../../secret", 10).is_err());
        assert!(files.read("/etc/b/x.conf", 1).unwrap_err().to_string().contains("longer than 1"));
        assert!(files.open("/etc/a").is_err() && files.open("/etc/a/loop").is_err(), "neither a directory nor a loop is a file");
        assert!(files.exists("/etc/a/y.conf") && !files.exists("/etc/a/z.conf"));
        assert_eq!(files.names("/etc/b").unwrap(), ["x.conf"]);
        assert_eq!(files.names("/none").unwrap(), [""; 0]);
    }

    #[test]
    fn a_pipe_does_not_hang_and_a_device_is_not_opened() {
        let tree = tempfile::tempdir().unwrap();
        mknodat(CWD, tree.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("pipe", tree.path().join("link")).unwrap();
        let files = Files::of_directory(tree.path()).unwrap();
        for name in ["pipe", "link"] {
            assert_eq!(files.open(name).unwrap_err().to_string(), "it is no regular file", "{name}");
        }
        assert!(Files::of_directory(Path::new("/")).unwrap().open("/dev/null").is_err());
        assert!(Files::of_directory(&tree.path().join("pipe")).is_err(), "a root is a directory");
    }

    #[test]
    fn a_file_of_another_user_is_not_believed() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("perf-1.map");
        std::fs::write(&path, "1").unwrap();
        let own = rustix::process::geteuid().as_raw();
        let files = Files::of_directory(tree.path()).unwrap();
        assert!(files.open_owned("perf-1.map", own).is_ok());
        if own != 0 {
            println!("skipped: only root gives files away");
            return;
        }
        chown(&path, Some(12_345), None).unwrap();
        assert!(files.open_owned("perf-1.map", 12_345).is_ok());
        assert!(files.open_owned("perf-1.map", 12_346).is_err());
    }
}
