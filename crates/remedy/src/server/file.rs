//! Configuration files: read within a bound, replaced in one step with owner, mode and extended attributes kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

/// Largest file that is edited, bytes: the journal keeps a copy of it.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of the names of a file's extended attributes, and of one value (the kernel's own bounds, xattr(7)).
const XATTR_BYTES_MAX: usize = 65_536;

/// A file's bytes. Refuses what is no regular file or is too large.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("{} is no regular file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("{} has more than 1 MiB", path.display())));
    }
    Ok(bytes)
}

/// A whole new file beside the one that it is to replace; gone when dropped.
#[derive(Debug)]
pub(super) struct Fresh {
    path: PathBuf,
}

/// Writes the new file to disk, with owner, mode and attributes of the old one. `target` is no link. Its name begins with a dot, so that no
/// `include DIR/*` takes it up (glob(3)).
pub(super) fn beside(target: &Path, bytes: &[u8]) -> io::Result<Fresh> {
    let old = File::open(target)?;
    let meta = old.metadata()?;
    if meta.nlink() > 1 {
        return Err(io::Error::other(format!("{} has several names (hard links), which replacing it would part", target.display())));
    }
    let (Some(dir), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::other(format!("{} is no file in a directory", target.display())));
    };
    let path = dir.join(format!(".{name}.chokepoint-new"));
    // One that is there was left by a process that ended in the middle: the host's lock is ours.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let fresh = Fresh { path };
    file.write_all(bytes)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (meta.uid(), meta.gid()) {
        fchown(&file, Some(meta.uid()), Some(meta.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    copy_attributes(&old, &file)?;
    file.sync_all()?;
    Ok(fresh)
}

impl Fresh {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the old file's place, in one step and for good.
    pub(super) fn rename_over(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        target.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
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
            // Set by the file system itself.
            Err(Errno::OPNOTSUPP) => {}
            set => set?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_attributes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.conf");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let attributes = rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()).is_ok();
        fs::write(dir.path().join(".x.conf.chokepoint-new"), "left by a crash").unwrap();
        beside(&path, b"new").unwrap().rename_over(&path).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), meta.mode() & 0o7777), ("new", 0o640));
        let mut value = [0; 8];
        if attributes {
            assert_eq!(rustix::fs::getxattr(&path, "user.note", &mut value[..]), Ok(4));
        } else {
            println!("skipped: this file system has no user attributes");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_cannot_be_replaced_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.conf");
        fs::write(&path, "old").unwrap();
        drop(beside(&path, b"new").unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a new file that is not used goes");
        fs::hard_link(&path, dir.path().join("y.conf")).unwrap();
        assert!(beside(&path, b"new").unwrap_err().to_string().contains("hard links"));
        assert!(read(dir.path()).is_err());
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(read(&large).unwrap_err().to_string().contains("1 MiB"));
    }
}
