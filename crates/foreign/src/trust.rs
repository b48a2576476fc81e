//! Whether a file can be changed by nobody but root and one user: the file, every directory on the way to it, and every link that leads there.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};

/// Links that are followed on one way, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Write permission of group and others.
const WRITE_GROUP: u32 = 0o020;
const WRITE_OTHERS: u32 = 0o002;
/// Only the owner of a name in such a directory may take it away or rename it.
const STICKY: u32 = 0o1000;

/// Why a file is not trusted.
#[derive(Debug)]
pub enum Untrusted {
    /// Somebody else may change this file or directory, and with it the file that was asked for.
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Who may: "user 1000", "group 33", "everybody".
        by: String,
    },
    /// It cannot be looked at.
    Io {
        /// The path that was being looked at.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl std::error::Error for Untrusted {}

impl std::fmt::Display for Untrusted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Writable { path, by } => write!(out, "{} can be changed by {by}", path.display()),
            Self::Io { path, source } => write!(out, "{}: {source}", path.display()),
        }
    }
}

/// Opens an absolute path, step by step from the root, where nobody but root and `uid` can change what it leads to. The file is opened for no more
/// than to be named by its descriptor (open(2), O_PATH): what was looked at is what is used.
///
/// # Errors
/// [`Untrusted`]: the first file or directory on the way that somebody else may change, or that cannot be looked at.
pub fn trusted(path: &Path, uid: u32) -> Result<File, Untrusted> {
    let mut way = Way { at: PathBuf::from("/"), links: 0, open: vec![root()?] };
    way.check(uid)?;
    let mut rest = parts(path);
    rest.reverse();
    while let Some(part) = rest.pop() {
        if part == ".." {
            // The parent was looked at on the way here.
            if way.open.len() > 1 {
                way.open.pop();
                way.at.pop();
            }
        } else if let Some(target) = way.enter(&part, uid)? {
            if target.is_absolute() {
                way.open.truncate(1);
                way.at = PathBuf::from("/");
            }
            rest.extend(parts(&target).into_iter().rev());
        }
    }
    way.open.pop().map(File::from).ok_or_else(|| Untrusted::Io { path: path.to_owned(), source: io::ErrorKind::NotFound.into() })
}

struct Way {
    at: PathBuf,
    links: usize,
    /// What was opened on the way, the root first.
    open: Vec<OwnedFd>,
}

impl Way {
    /// Goes one step; gives the target where it is a link.
    fn enter(&mut self, part: &OsString, uid: u32) -> Result<Option<PathBuf>, Untrusted> {
        let path = self.at.join(part);
        let failed = |source: io::Error| Untrusted::Io { path: path.clone(), source };
        let Some(from) = self.open.last() else { return Err(failed(io::ErrorKind::NotFound.into())) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(from, part.as_os_str(), flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let file = File::from(opened);
        let meta = file.metadata().map_err(failed)?;
        if meta.is_symlink() {
            self.links += 1;
            if self.links > LINKS_MAX {
                return Err(failed(io::Error::from_raw_os_error(libc::ELOOP)));
            }
            // Whoever may change the directory may change the link; its own mode says nothing. In a sticky directory it is its owner who may.
            if !is_owner(&meta, uid) {
                return Err(Untrusted::Writable { path, by: format!("user {}", meta.uid()) });
            }
            let target = readlinkat(&file, "", Vec::new()).map_err(|error| failed(error.into()))?;
            return Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()))));
        }
        self.open.push(file.into());
        self.at = path;
        self.check(uid).map(|()| None)
    }

    /// Who may change what was opened last.
    fn check(&self, uid: u32) -> Result<(), Untrusted> {
        let failed = |source: io::Error| Untrusted::Io { path: self.at.clone(), source };
        let Some(last) = self.open.last() else { return Err(failed(io::ErrorKind::NotFound.into())) };
        let meta = last.try_clone().map(File::from).and_then(|file| file.metadata()).map_err(failed)?;
        let by = |by: String| Err(Untrusted::Writable { path: self.at.clone(), by });
        let names_are_safe = meta.is_dir() && meta.mode() & STICKY != 0;
        if !is_owner(&meta, uid) {
            by(format!("user {}", meta.uid()))
        } else if meta.mode() & WRITE_OTHERS != 0 && !names_are_safe {
            by("everybody".to_owned())
        } else if meta.mode() & WRITE_GROUP != 0 && meta.gid() != 0 && !names_are_safe {
            by(format!("group {}", meta.gid()))
        } else {
            Ok(())
        }
    }
}

fn is_owner(meta: &Metadata, uid: u32) -> bool {
    meta.uid() == 0 || meta.uid() == uid
}

fn root() -> Result<OwnedFd, Untrusted> {
    let opened = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    opened.map_err(|error| Untrusted::Io { path: PathBuf::from("/"), source: error.into() })
}

/// The names on a way, without the root and without ".".
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn who(path: &Path, uid: u32) -> String {
        trusted(path, uid).map_or_else(|why| why.to_string(), |_| "nobody else".to_owned())
    }

    #[test]
    fn everything_on_the_way_counts() {
        let tree = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let (dir, file) = (tree.path().join("dir"), tree.path().join("dir/file"));
        fs::create_dir(&dir).unwrap();
        fs::write(&file, "").unwrap();
        mode(&dir, 0o755);
        mode(&file, 0o644);
        assert_eq!(who(&file, own), "nobody else", "the way leads through /tmp, which is sticky");
        assert_eq!(who(&dir.join("../dir/./file"), own), "nobody else");
        symlink(&file, tree.path().join("link")).unwrap();
        assert_eq!(who(&tree.path().join("link"), own), "nobody else");
        mode(&file, 0o646);
        assert_eq!(who(&tree.path().join("link"), own), format!("{} can be changed by everybody", file.display()));
        mode(&file, 0o644);
        mode(&dir, 0o757);
        assert_eq!(who(&file, own), format!("{} can be changed by everybody", dir.display()));
        mode(&dir, 0o755);
        assert!(who(&dir.join("none"), own).contains("No such file"));
        symlink("loop", dir.join("loop")).unwrap();
        assert!(matches!(trusted(&dir.join("loop"), own), Err(Untrusted::Io { .. })));
        if own != 0 {
            println!("skipped: only root gives files away");
            return;
        }
        chown(&dir, Some(4001), None).unwrap();
        assert_eq!(who(&file, 0), format!("{} can be changed by user 4001", dir.display()));
        assert_eq!(who(&file, 4001), "nobody else");
        chown(&dir, Some(0), Some(4002)).unwrap();
        mode(&dir, 0o775);
        assert_eq!(who(&file, 0), format!("{} can be changed by group 4002", dir.display()));
        std::os::unix::fs::lchown(tree.path().join("link"), Some(4001), None).unwrap();
        mode(&dir, 0o755);
        assert!(who(&tree.path().join("link"), 0).ends_with("link can be changed by user 4001"));
    }
}
