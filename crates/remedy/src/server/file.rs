//! A configuration file and its directory, both held open, so that the file that was inspected is the one replaced. The replacement is atomic and keeps
//! owner, mode and extended attributes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use chokepoint_foreign::{FileId, Files, trusted};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Largest file that is edited, bytes, since the journal keeps a copy.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of the names of extended attributes, and of one value (the kernel's bounds, xattr(7)).
const XATTR_BYTES_MAX: usize = 65_536;
/// Most names of a directory searched for leftovers of killed processes.
const NAMES_MAX: usize = 100_000;
/// Follows the file's name in the name of a temporary file.
const TEMPORARY_MARK: &str = ".chokepoint-";

/// Reads a regular file of limited size.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let below = path.strip_prefix("/").map_err(io::Error::other)?;
    Ok(Files::of_directory(Path::new("/"))?.read(below, FILE_BYTES_MAX)?.0)
}

/// A path with its links resolved; nothing where it does not exist or is not UTF-8.
pub(super) fn real_path(path: &str) -> Option<String> {
    fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
}

/// A file to be replaced and its directory, both held open: renames meanwhile do not redirect it.
#[derive(Debug)]
pub(super) struct EditableFile {
    directory: File,
    name: OsString,
    old: File,
    meta: Metadata,
    bytes: Vec<u8>,
}

impl EditableFile {
    /// Opens and reads the file at a path without links. Refuses a file that anyone but root and the own user can change: they could replace it between
    /// the check and the write.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let own = rustix::process::geteuid().as_raw();
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other(format!("{} is not a file in a directory", path.display())));
        };
        let refused = |why: chokepoint_foreign::Untrusted| match why {
            chokepoint_foreign::Untrusted::Io { source, .. } => source,
            why => io::Error::other(format!("{why}, so user {own} does not edit it: edit it by hand, or run chokepoint as its owner")),
        };
        let directory = trusted(parent, own).map_err(refused)?;
        // A directory opened with O_PATH cannot be synced.
        let directory = File::from(openat(&directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
        trusted(path, own).map_err(refused)?;
        let (old, meta) = open_regular(&directory, name)?;
        if meta.nlink() > 1 {
            return Err(io::Error::other(format!(
                "{} has several names (hard links), and replacing it would separate them",
                path.display()
            )));
        }
        let mut bytes = Vec::new();
        (&old).take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("{} has more than 1 MiB", path.display())));
        }
        Ok(Self { directory, name: name.to_owned(), old, meta, bytes })
    }

    /// Its bytes when it was opened.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its owner and mode when it was opened.
    pub(super) fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// Replaces the file atomically and synced. False, and without effect, where the file has changed since it was opened.
    pub(super) fn replace(&self, bytes: &[u8]) -> io::Result<bool> {
        self.remove_leftovers();
        let temporary = self.temporary(bytes)?;
        if !self.is_unchanged()? {
            return Ok(false);
        }
        renameat(&self.directory, &temporary.name, &self.directory, &self.name)?;
        self.directory.sync_all()?;
        Ok(true)
    }

    fn is_unchanged(&self) -> io::Result<bool> {
        let (now, meta) = match open_regular(&self.directory, &self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        if FileId::of(&meta) != FileId::of(&self.meta) || meta.len() != self.bytes.len() as u64 {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        now.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes == self.bytes)
    }

    /// Writes and syncs a temporary file beside the old one, with its owner, mode and attributes. Its name begins with a dot, so that no
    /// `include DIR/*` matches it (glob(3)), and has a random end.
    fn temporary(&self, bytes: &[u8]) -> io::Result<TemporaryFile<'_>> {
        let mut name = self.prefix();
        name.push(format!("{:016x}", RandomState::new().build_hasher().finish()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.directory, &name, flags, Mode::RUSR | Mode::WUSR)?);
        let temporary = TemporaryFile { directory: &self.directory, name };
        file.write_all(bytes)?;
        take_owner_and_mode(&file, &self.meta)?;
        copy_attributes(&self.old, &file)?;
        file.sync_all()?;
        Ok(temporary)
    }

    fn prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push(TEMPORARY_MARK);
        prefix
    }

    /// Removes temporary files of killed processes. The caller holds the host's lock, so no other process uses them.
    pub(super) fn remove_leftovers(&self) {
        let prefix = self.prefix();
        let Ok(names) = Dir::read_from(self.directory.as_fd()) else { return };
        for name in names.take(NAMES_MAX).flatten() {
            let name = OsStr::from_bytes(name.file_name().to_bytes());
            if name.as_bytes().starts_with(prefix.as_bytes()) {
                let _ = unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }
}

/// Gives a file another one's owner, group and mode.
pub(super) fn take_owner_and_mode(file: &File, from: &Metadata) -> io::Result<()> {
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (from.uid(), from.gid()) {
        fchown(file, Some(from.uid()), Some(from.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(from.mode() & 0o7777))
}

/// A temporary file beside the one that it will replace. Dropping it removes it, unless it was renamed.
struct TemporaryFile<'t> {
    directory: &'t File,
    name: OsString,
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// Opens a regular file of a directory. Refuses links.
fn open_regular(directory: &File, name: &OsStr) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(io::Error::other("it is not a regular file")),
        opened => File::from(opened?),
    };
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(io::Error::other("it is not a regular file")) }
}

fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
    let mut names = vec![0_u8; XATTR_BYTES_MAX];
    let length = match flistxattr(old, names.as_mut_slice()) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
        listed => listed?,
    };
    let mut value = vec![0_u8; XATTR_BYTES_MAX];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let length = fgetxattr(old, name, value.as_mut_slice())?;
        match fsetxattr(new, name, &value[..length], XattrFlags::empty()) {
            // The file system sets it itself.
            Err(Errno::OPNOTSUPP) => {}
            set => set?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_attributes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.conf");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let attributes = rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()).is_ok();
        for left in [".x.conf.chokepoint-new", ".x.conf.chokepoint-0123456789abcdef"] {
            fs::write(dir.path().join(left), "left by a crash").unwrap();
        }
        fs::write(dir.path().join(".y.conf.chokepoint-1"), "another file's").unwrap();
        assert!(EditableFile::open(&path).unwrap().replace(b"new").unwrap());
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), meta.mode() & 0o7777), ("new", 0o640));
        let mut value = [0; 8];
        if attributes {
            assert_eq!(rustix::fs::getxattr(&path, "user.note", &mut value[..]), Ok(4));
        } else {
            println!("skipped: this file system has no user attributes");
        }
        assert_eq!(names(dir.path()), [".y.conf.chokepoint-1", "x.conf"], "nothing is left beside it");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.conf");
        fs::write(&path, "old").unwrap();
        drop(EditableFile::open(&path).unwrap().temporary(b"new").unwrap());
        assert_eq!(names(dir.path()), ["x.conf"], "a new file that is not used goes");
        fs::hard_link(&path, dir.path().join("y.conf")).unwrap();
        assert!(EditableFile::open(&path).unwrap_err().to_string().contains("hard links"));
        assert!(read(dir.path()).is_err());
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(FILE_BYTES_MAX as u64 + 1).unwrap();
        assert!(EditableFile::open(&large).unwrap_err().to_string().contains("1 MiB"));
        assert!(read(&large).is_err());
    }

    #[test]
    fn a_swapped_directory_or_file_does_not_redirect_the_edit() {
        let dir = tempfile::tempdir().unwrap();
        let (conf, other) = (dir.path().join("conf"), dir.path().join("other"));
        for directory in [&conf, &other] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("x.conf"), "old").unwrap();
        }
        let target = EditableFile::open(&conf.join("x.conf")).unwrap();
        fs::rename(&conf, dir.path().join("moved")).unwrap();
        symlink(&other, &conf).unwrap();
        assert!(target.replace(b"new").unwrap());
        assert_eq!(fs::read_to_string(other.join("x.conf")).unwrap(), "old");
        assert_eq!(fs::read_to_string(dir.path().join("moved/x.conf")).unwrap(), "new", "the directory that was looked at");

        let path = other.join("x.conf");
        let target = EditableFile::open(&path).unwrap();
        fs::write(other.join("y.conf"), "old").unwrap();
        fs::rename(other.join("y.conf"), &path).unwrap();
        assert!(!target.replace(b"new").unwrap(), "another file with the same bytes");
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert!(target.replace(b"new").is_err());
        assert_eq!((fs::read_link(&path).unwrap(), names(&other)), ("/etc/passwd".into(), vec!["x.conf".to_owned()]));
    }

    #[test]
    fn a_file_that_others_can_change_is_not_edited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.conf");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let why = EditableFile::open(&path).unwrap_err().to_string();
        assert!(why.contains("can be changed by everybody"), "{why}");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(EditableFile::open(&path).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(EditableFile::open(&path).is_ok());
    }
}
