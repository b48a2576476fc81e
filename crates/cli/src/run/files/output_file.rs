//! Where a file that the user named lies: its directory, held open, and its name there. Links on the way are followed only where nobody else
//! could have laid them.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, stat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Links that are followed at most, as the kernel does (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Why a place cannot be written to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// What is there is no regular file.
    #[error("it is a {0}, and reports are written to regular files: what is printed can be sent there with > (see also --json)")]
    Kind(&'static str),
    /// It names no file.
    #[error("it names no file")]
    NoName,
    /// Somebody else laid a link on the way.
    #[error("{0:?} is a link of user {1}, who could lead it elsewhere")]
    Link(OsString, u32),
    /// A link leads into a directory of somebody else.
    #[error("a link leads into a directory of user {0}")]
    Directory(u32),
    /// A file of somebody else that may not be replaced.
    #[error("it is a file of user {0}, in a directory where only its owner may replace it")]
    Foreign(u32),
    /// The kernel says no.
    #[error("{0}")]
    System(std::io::Error),
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// A file's place.
#[derive(Debug)]
pub(super) struct OutputFile {
    /// Its directory.
    pub(super) directory: OwnedFd,
    /// Its name there.
    pub(super) name: OsString,
    /// The permissions of the file that is there.
    pub(super) mode: Option<u32>,
}

impl OutputFile {
    /// Follows the path. The file need not exist; what exists must be a regular file.
    pub(super) fn of(file: &Path) -> Result<Self, Refused> {
        let text = file.as_os_str().as_bytes();
        // What a link of /proc leads to has no path that could be followed.
        if let Ok(found) = stat(file)
            && FileType::from_raw_mode(found.st_mode) != FileType::RegularFile
        {
            return Err(Refused::Kind(kind(FileType::from_raw_mode(found.st_mode))));
        }
        if text.ends_with(b"/") {
            return Err(Refused::Kind("directory"));
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
                other => return Err(Refused::Kind(kind(other))),
            }
        }
        // The path ended with "." or "..", or was empty.
        Err(if text.is_empty() { Refused::NoName } else { Refused::Kind("directory") })
    }

    fn at(directory: OwnedFd, name: OsString, found: Option<&Stat>, by_link: bool) -> Result<Self, Refused> {
        const STICKY: u32 = 0o1000;
        let around = fstat(&directory)?;
        if by_link && !is_trusted(around.st_uid) {
            return Err(Refused::Directory(around.st_uid));
        }
        let us = geteuid().as_raw();
        if let Some(found) = found
            && around.st_mode & STICKY != 0
            && us != 0
            && ![found.st_uid, around.st_uid].contains(&us)
        {
            return Err(Refused::Foreign(found.st_uid));
        }
        Ok(Self { directory, name, mode: found.map(|found| found.st_mode & 0o7777) })
    }
}

/// True for who may lay links for us: ourselves and root.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// The directory from which a link's target goes on; its parts come before those that are left.
fn follow(directory: OwnedFd, part: &OsStr, found: &Stat, links: usize, left: &mut VecDeque<OsString>) -> Result<OwnedFd, Refused> {
    if !is_trusted(found.st_uid) {
        return Err(Refused::Link(part.to_owned(), found.st_uid));
    }
    if links > LINKS_MAX {
        return Err(Errno::LOOP.into());
    }
    let target = readlinkat(&directory, part, Vec::new())?.into_bytes();
    for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
        left.push_front(part);
    }
    if left.is_empty() {
        return Err(Refused::Kind("directory"));
    }
    if target.starts_with(b"/") { open(OsStr::new("/"), CWD) } else { Ok(directory) }
}

/// Opens a directory, through no link.
fn open(name: &OsStr, directory: impl rustix::fd::AsFd) -> Result<OwnedFd, Refused> {
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
        _ => "thing of another kind",
    }
}
