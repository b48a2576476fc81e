//! The place of an output file: its open directory and its name there. Symbolic links on the way are followed only if no other user could have made
//! them.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, stat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The most symbolic links that are followed, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Why a file cannot be written there.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// The path leads to something other than a regular file.
    #[error("it is a {0}, and reports are written only to regular files: redirect the printed report with > instead (see also --json)")]
    Kind(&'static str),
    /// The path names no file.
    #[error("it does not name a file")]
    NoName,
    /// A link on the way belongs to another user.
    #[error("{0:?} is a link of user {1}, who could redirect it")]
    Link(OsString, u32),
    /// A link leads into a directory of another user.
    #[error("a link leads into a directory of user {0}")]
    Directory(u32),
    /// The file belongs to another user and may not be replaced.
    #[error("user {0} owns the file, and in this directory only that user may replace it")]
    Foreign(u32),
    /// A system call failed.
    #[error("{0}")]
    System(std::io::Error),
}

impl From<Errno> for PlaceError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// The place of a file.
#[derive(Debug)]
pub(super) struct FilePlace {
    /// The open directory.
    pub(super) directory: OwnedFd,
    /// The name in the directory.
    pub(super) name: OsString,
    /// The mode of an existing file.
    pub(super) mode: Option<u32>,
}

impl FilePlace {
    /// Resolves a path. The file need not exist; an existing one must be a regular file.
    pub(super) fn of(file: &Path) -> Result<Self, PlaceError> {
        let text = file.as_os_str().as_bytes();
        // A magic link of /proc leads to a file without a path to follow.
        if let Ok(found) = stat(file)
            && FileType::from_raw_mode(found.st_mode) != FileType::RegularFile
        {
            return Err(PlaceError::Kind(kind(FileType::from_raw_mode(found.st_mode))));
        }
        if text.ends_with(b"/") {
            return Err(PlaceError::Kind("directory"));
        }
        let mut directory = open(if text.starts_with(b"/") { OsStr::new("/") } else { OsStr::new(".") }, CWD)?;
        let mut left: VecDeque<OsString> = parts(text).collect();
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part == ".." {
                directory = open(&part, &directory)?;
                continue;
            }
            let found = match statat(&directory, &part, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) if left.is_empty() => return Self::at(directory, part, None, links > 0),
                found => found?,
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    directory = follow(directory, &part, &found, links, &mut left)?;
                }
                _ if !left.is_empty() => directory = open(&part, &directory)?,
                FileType::RegularFile => return Self::at(directory, part, Some(&found), links > 0),
                other => return Err(PlaceError::Kind(kind(other))),
            }
        }
        // The path ended with "." or "..", or was empty.
        Err(if text.is_empty() { PlaceError::NoName } else { PlaceError::Kind("directory") })
    }

    fn at(directory: OwnedFd, name: OsString, found: Option<&Stat>, by_link: bool) -> Result<Self, PlaceError> {
        const STICKY: u32 = 0o1000;
        let around = fstat(&directory)?;
        if by_link && !is_trusted(around.st_uid) {
            return Err(PlaceError::Directory(around.st_uid));
        }
        let us = geteuid().as_raw();
        if let Some(found) = found
            && around.st_mode & STICKY != 0
            && us != 0
            && ![found.st_uid, around.st_uid].contains(&us)
        {
            return Err(PlaceError::Foreign(found.st_uid));
        }
        Ok(Self { directory, name, mode: found.map(|found| found.st_mode & 0o7777) })
    }
}

/// True for the users whose links are followed: this user and root.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// The directory from which to resolve the target of a link. The parts of the target are put before the remaining parts.
fn follow(directory: OwnedFd, part: &OsStr, found: &Stat, links: usize, left: &mut VecDeque<OsString>) -> Result<OwnedFd, PlaceError> {
    if !is_trusted(found.st_uid) {
        return Err(PlaceError::Link(part.to_owned(), found.st_uid));
    }
    if links > LINKS_MAX {
        return Err(Errno::LOOP.into());
    }
    let target = readlinkat(&directory, part, Vec::new())?.into_bytes();
    for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
        left.push_front(part);
    }
    if left.is_empty() {
        return Err(PlaceError::Kind("directory"));
    }
    if target.starts_with(b"/") { open(OsStr::new("/"), CWD) } else { Ok(directory) }
}

/// Opens a directory without following a link.
fn open(name: &OsStr, directory: impl rustix::fd::AsFd) -> Result<OwnedFd, PlaceError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?)
}

fn parts(path: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".").map(|part| OsString::from_vec(part.to_vec()))
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "directory",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    }
}
