//! Checks that only root and one user can change a file, every directory on the way to it, and every link that leads there.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, getxattr, openat, readlinkat};
use rustix::io::Errno;

/// Most links on one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// Write permission of group and others.
const WRITE_GROUP: u32 = 0o020;
const WRITE_OTHERS: u32 = 0o002;
/// Only the owner of a file in such a directory may remove or rename it.
const STICKY: u32 = 0o1000;
/// The attribute with a file's access control list (acl(5)): a version of four bytes, then entries with a tag and permissions of two bytes each and an id of
/// four bytes (linux/posix_acl_xattr.h), little-endian.
const ACL: &str = "system.posix_acl_access";
const ACL_HEADER_BYTES: usize = 4;
const ACL_ENTRY_BYTES: usize = 8;
/// The longest value of an extended attribute (XATTR_SIZE_MAX).
const ACL_BYTES_MAX: usize = 65_536;
const ACL_USER: u16 = 0x02;
const ACL_GROUP: u16 = 0x08;
const ACL_WRITE: u16 = 2;

/// Why a file is not trusted.
#[derive(Debug)]
pub enum Untrusted {
    /// Somebody else may change this file or directory, and with it the requested file.
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Who: "user 1000", "group 33", "everybody".
        by: String,
    },
    /// It is not accessible.
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
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

/// Opens an absolute path step by step from the root, and checks that only root and `uid` can change what it leads to. The file is opened only as a name
/// (open(2), O_PATH): what was checked is what is used.
///
/// # Errors
/// [`Untrusted`]: the first file or directory on the way that somebody else may change, or that is not accessible.
pub fn trusted(path: &Path, uid: u32) -> Result<File, Untrusted> {
    walk(root()?, path, &mut |at, file, meta| check(at, file, meta, uid))
}

/// Follows an absolute path step by step and passes each directory, link and file on the way to `see`, the root first. Each is opened only as a name.
///
/// # Errors
/// [`Untrusted::Io`]: the path does not exist, or something on the way is not accessible.
pub fn visit(path: &Path, see: &mut dyn FnMut(&Metadata)) -> Result<File, Untrusted> {
    walk(root()?, path, &mut |_, _, meta| {
        see(meta);
        Ok(())
    })
}

/// Follows an absolute path step by step below a root directory, passes each directory, link and file on the way to `look`, the root first, and returns the
/// target. No link leads out of the root.
pub(crate) fn walk(root: OwnedFd, path: &Path, look: &mut Look<'_>) -> Result<File, Untrusted> {
    let mut way = Way { at: PathBuf::from("/"), links: 0, open: Vec::new() };
    way.push(File::from(root), PathBuf::from("/"), look)?;
    let mut rest = parts(path);
    rest.reverse();
    while let Some(part) = rest.pop() {
        if part == ".." {
            // The parent was checked on the way here.
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

type Look<'a> = dyn FnMut(&Path, &File, &Metadata) -> Result<(), Untrusted> + 'a;

struct Way {
    at: PathBuf,
    links: usize,
    /// The opened files on the way, the root first.
    open: Vec<File>,
}

impl Way {
    fn push(&mut self, file: File, at: PathBuf, look: &mut Look<'_>) -> Result<(), Untrusted> {
        let meta = file.metadata().map_err(|source| Untrusted::Io { path: at.clone(), source })?;
        look(&at, &file, &meta)?;
        self.open.push(file);
        self.at = at;
        Ok(())
    }

    /// Follows one component. Returns the target of a link.
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
        look(&path, &file, &meta)?;
        let target = readlinkat(&file, "", Vec::new()).map_err(|error| failed(error.into()))?;
        Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()))))
    }
}

/// Checks that only root and this user may change it.
pub(crate) fn check(at: &Path, file: &File, meta: &Metadata, uid: u32) -> Result<(), Untrusted> {
    match other_writer(file, meta, uid) {
        Ok(None) => Ok(()),
        Ok(Some(by)) => Err(Untrusted::Writable { path: at.to_owned(), by }),
        Err(source) => Err(Untrusted::Io { path: at.to_owned(), source }),
    }
}

/// Somebody who may change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    User(u32),
    Group(u32),
    Everybody,
}

impl std::fmt::Display for Writer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(uid) => write!(out, "user {uid}"),
            Self::Group(gid) => write!(out, "group {gid}"),
            Self::Everybody => out.write_str("everybody"),
        }
    }
}

/// Who besides root and this user may change a file, or the content of a directory, by its owner, mode and access control list: "user 1000", "group 33",
/// "everybody".
///
/// # Errors
/// Its access control list cannot be read.
pub fn other_writer(file: &File, meta: &Metadata, uid: u32) -> io::Result<Option<String>> {
    let may = |writer: Writer| matches!(writer, Writer::User(0) | Writer::Group(0)) || writer == Writer::User(uid);
    Ok(writer_but(file, meta, &may)?.map(|writer| writer.to_string()))
}

/// The first who may change a file, or the content of a directory, and of whom `may` is false.
pub(crate) fn writer_but(file: &File, meta: &Metadata, may: &dyn Fn(Writer) -> bool) -> io::Result<Option<Writer>> {
    let (owner, group) = (Writer::User(meta.uid()), Writer::Group(meta.gid()));
    if !may(owner) {
        return Ok(Some(owner));
    }
    // A link's mode has no meaning: the rights of its directory decide. In a sticky directory only the owner of a file may change it.
    if meta.is_symlink() || (meta.is_dir() && meta.mode() & STICKY != 0) {
        return Ok(None);
    }
    if meta.mode() & WRITE_OTHERS != 0 {
        return Ok(Some(Writer::Everybody));
    }
    if meta.mode() & WRITE_GROUP == 0 {
        return Ok(None);
    }
    // With an access control list these bits are its mask, the maximum for its entries, and not the rights of the group.
    if may(group) { listed_writer(file, may) } else { Ok(Some(group)) }
}

/// Who else may write according to the access control list.
fn listed_writer(file: &File, allowed: &dyn Fn(Writer) -> bool) -> io::Result<Option<Writer>> {
    let mut list = vec![0; ACL_BYTES_MAX];
    // A descriptor opened as a name gives no access to attributes (open(2), O_PATH), but its link does.
    let length = match getxattr(format!("/proc/self/fd/{}", file.as_raw_fd()), ACL, &mut list) {
        Ok(length) => length,
        // No list, or a file system without lists.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let entries = list.get(ACL_HEADER_BYTES..length).unwrap_or_default();
    let writer = |entry: &[u8; ACL_ENTRY_BYTES]| {
        let [tag_low, tag_high, may_low, may_high, id @ ..] = *entry;
        let (tag, may, id) = (u16::from_le_bytes([tag_low, tag_high]), u16::from_le_bytes([may_low, may_high]), u32::from_le_bytes(id));
        match tag {
            ACL_USER => Some(Writer::User(id)),
            ACL_GROUP => Some(Writer::Group(id)),
            _ => None,
        }
        .filter(|writer| may & ACL_WRITE != 0 && !allowed(*writer))
    };
    Ok(entries.as_chunks().0.iter().find_map(writer))
}

fn root() -> Result<OwnedFd, Untrusted> {
    let opened = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    opened.map_err(|error| Untrusted::Io { path: PathBuf::from("/"), source: error.into() })
}

/// The components of a path, without the root and without ".".
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
    fn everything_on_the_path_is_checked() {
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
        // With an access control list, whose mask shows as the group's permissions.
        chown(&dir, Some(0), Some(0)).unwrap();
        let listed = |user: u32, may: u16| {
            let entry = |tag: u16, may: u16, id: u32| [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat();
            let none = u32::MAX;
            let own = [entry(1, 7, none), entry(ACL_USER, may, user), entry(4, 5, none), entry(0x10, 7, none), entry(0x20, 5, none)];
            [&2_u32.to_le_bytes()[..], &own.concat()].concat()
        };
        match rustix::fs::setxattr(&dir, ACL, &listed(4003, 7), rustix::fs::XattrFlags::empty()) {
            Ok(()) => {
                assert_eq!(who(&file, 0), format!("{} can be changed by user 4003", dir.display()));
                assert_eq!(who(&file, 4003), "nobody else");
                rustix::fs::setxattr(&dir, ACL, &listed(4003, 5), rustix::fs::XattrFlags::empty()).unwrap();
                assert_eq!(who(&file, 0), "nobody else", "it may read");
                rustix::fs::removexattr(&dir, ACL).unwrap();
            }
            Err(error) => println!("skipped: no access control lists here ({error})"),
        }
        std::os::unix::fs::lchown(tree.path().join("link"), Some(4001), None).unwrap();
        mode(&dir, 0o755);
        assert!(who(&tree.path().join("link"), 0).ends_with("link can be changed by user 4001"));
    }
}
