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

impl From<Untrusted> for io::Error {
    fn from(why: Untrusted) -> Self {
        match why {
            Untrusted::Io { source, .. } => source,
            writable @ Untrusted::Writable { .. } => Self::new(io::ErrorKind::PermissionDenied, writable),
        }
    }
}

/// Opens an absolute path, step by step from the root, where nobody but root and `uid` can change what it leads to. The file is opened for no more
/// than to be named by its descriptor (open(2), O_PATH): what was looked at is what is used.
///
/// # Errors
/// [`Untrusted`]: the first file or directory on the way that somebody else may change, or that cannot be looked at.
pub fn trusted(path: &Path, uid: u32) -> Result<File, Untrusted> {
    walk(root()?, path, &mut |at, meta| check(at, meta, uid))
}

/// Goes an absolute path step by step below a root directory, shows each file, directory and link on the way, the root first, and gives what
/// it leads to. No link leads out of the root.
pub(crate) fn walk(root: OwnedFd, path: &Path, look: &mut Look<'_>) -> Result<File, Untrusted> {
    let mut way = Way { at: PathBuf::from("/"), links: 0, open: Vec::new() };
    way.push(File::from(root), PathBuf::from("/"), look)?;
    let mut rest = parts(path);
    rest.reverse();
    while let Some(part) = rest.pop() {
        if part == ".." {
            // The parent was looked at on the way here.
            if way.open.len() > 1 {
                way.open.pop();
                way.at.pop();
            }
        } else if let Some(target) = way.enter(&part, look)? {
            if target.is_absolute() {
                way.open.truncate(1);
                way.at = PathBuf::from("/");
            }
            rest.extend(parts(&target).into_iter().rev());
        }
    }
    way.open.pop().ok_or_else(|| Untrusted::Io { path: path.to_owned(), source: io::ErrorKind::NotFound.into() })
}

type Look<'a> = dyn FnMut(&Path, &Metadata) -> Result<(), Untrusted> + 'a;

struct Way {
    at: PathBuf,
    links: usize,
    /// What was opened on the way, the root first.
    open: Vec<File>,
}

impl Way {
    fn push(&mut self, file: File, at: PathBuf, look: &mut Look<'_>) -> Result<(), Untrusted> {
        let meta = file.metadata().map_err(|source| Untrusted::Io { path: at.clone(), source })?;
        self.open.push(file);
        self.at = at;
        look(&self.at, &meta)
    }

    /// Goes one step; gives the target where it is a link.
    fn enter(&mut self, part: &OsString, look: &mut Look<'_>) -> Result<Option<PathBuf>, Untrusted> {
        let path = self.at.join(part);
        let failed = |source: io::Error| Untrusted::Io { path: path.clone(), source };
        let Some(from) = self.open.last() else { return Err(failed(io::ErrorKind::NotFound.into())) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(from, part.as_os_str(), flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let file = File::from(opened);
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_symlink() {
            return self.push(file, path, look).map(|()| None);
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(failed(io::Error::from_raw_os_error(libc::ELOOP)));
        }
        look(&path, &meta)?;
        let target = readlinkat(&file, "", Vec::new()).map_err(|error| failed(error.into()))?;
        Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()))))
    }
}

/// Nobody but root and this user may change it.
pub(crate) fn check(at: &Path, meta: &Metadata, uid: u32) -> Result<(), Untrusted> {
    let by = |by: String| Err(Untrusted::Writable { path: at.to_owned(), by });
    let names_are_safe = meta.is_dir() && meta.mode() & STICKY != 0;
    if !is_owner(meta, uid) {
        by(format!("user {}", meta.uid()))
    } else if meta.is_symlink() {
        // Whoever may change the directory may change the link; its own mode says nothing. In a sticky directory it is its owner who may.
        Ok(())
    } else if meta.mode() & WRITE_OTHERS != 0 && !names_are_safe {
        by("everybody".to_owned())
    } else if meta.mode() & WRITE_GROUP != 0 && meta.gid() != 0 && !names_are_safe {
        by(format!("group {}", meta.gid()))
    } else {
        Ok(())
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
