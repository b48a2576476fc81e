//! Files as a process sees them, also in a container: resolved below its root directory, opened without waiting, only regular files, within bounds.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_config::glob;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, fcntl_getfl, fcntl_setfl, openat};
use rustix::io::Errno;

use crate::made_up::{Refusal, refuse};
use crate::rights::{Rights, as_caller};
use crate::trust::{Untrusted, check, walk};
use crate::writers::Writers;

/// Most names of one directory.
const NAMES_MAX: usize = 10_000;
/// Most names of all directories for one pattern.
const NAMES_ALL_MAX: usize = 100_000;
/// How a file is opened that somebody else may own: without waiting for a writer, a carrier, or a holder of a lease.
const WITHOUT_WAITING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Why a regular file is not opened without waiting (open(2), EWOULDBLOCK).
const LEASED: &str = "another process holds a lease on it (fcntl(2), F_SETLEASE)";
/// The kernel's links to the own descriptors (proc_pid_fd(5)).
pub(crate) const OWN: &str = "/proc/self/fd";

/// A directory below which paths are resolved, usually the root directory of a process.
#[derive(Debug)]
pub struct Files {
    root: OwnedFd,
}

impl Files {
    /// The files that a process sees: `proc` is where procfs is mounted ("/proc"), or a tree of files in a test.
    ///
    /// # Errors
    /// The process has ended, or its root directory is not accessible (proc_pid_root(5): CAP_SYS_PTRACE for another user's).
    pub fn of_process(proc: &Path, pid: u32) -> io::Result<Self> {
        Self::of_directory(&proc.join(pid.to_string()).join("root"))
    }

    /// The files below a directory.
    ///
    /// # Errors
    /// It is no directory, or is not accessible.
    pub fn of_directory(path: &Path) -> io::Result<Self> {
        Ok(Self { root: openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())? })
    }

    /// Opens a regular file for reading, without waiting. Links are followed, but they do not lead out of the root, as they would with `/proc/PID/root` as a
    /// mere prefix of the path, nor to what the kernel makes up (`/proc`, `/sys`).
    ///
    /// # Errors
    /// As of openat(2); "it is not a regular file" for a FIFO, a device, a socket or a directory; "it is on /proc, ...".
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        reopen(&self.locate(path)?)
    }

    /// [`Files::open`] for a file that must belong to root or this user, and so must the link if the path ends in one. Only then a file in a directory that
    /// everybody may write (`/tmp`) is from this user.
    ///
    /// # Errors
    /// As of [`Files::open`]; "it belongs to another user".
    pub fn open_owned(&self, path: impl AsRef<Path>, uid: u32) -> io::Result<File> {
        let named = File::from(self.open_with(path.as_ref(), OFlags::PATH | OFlags::NOFOLLOW)?);
        let located = self.locate(path)?;
        for file in [&named, &located] {
            let owner = file.metadata()?.uid();
            if owner != 0 && owner != uid {
                return Err(io::Error::other("it belongs to another user"));
            }
        }
        reopen(&located)
    }

    /// [`Files::open`] for an absolute path on which only root and this user can change anything.
    ///
    /// # Errors
    /// As of [`Files::open`]; PermissionDenied with the first file, link or directory that somebody else may change.
    pub fn open_trusted(&self, path: impl AsRef<Path>, uid: u32) -> io::Result<File> {
        reopen(&self.trusted(path, uid).map_err(io::Error::from)?)
    }

    /// [`crate::trusted`] below this root.
    ///
    /// # Errors
    /// [`Untrusted`]: the first file, link or directory on the way that somebody else may change, or that is not accessible.
    pub fn trusted(&self, path: impl AsRef<Path>, uid: u32) -> Result<File, Untrusted> {
        let path = path.as_ref();
        let root = self.root.try_clone().map_err(|source| Untrusted::Io { path: path.to_owned(), source })?;
        let mut refusal = Refusal::default();
        let mut look = |at: &Path, file: &File, meta: &Metadata| {
            refusal.pass(file, meta).map_err(|source| Untrusted::Io { path: at.to_owned(), source })?;
            check(at, file, meta, uid)
        };
        walk(root, path, &mut look)
    }

    /// [`Files::trusted`] for what these writers, and nobody else, may have written or replaced.
    ///
    /// # Errors
    /// As of [`Files::trusted`].
    pub fn written_by(&self, path: impl AsRef<Path>, writers: &Writers) -> Result<File, Untrusted> {
        let root = self.root.try_clone().map_err(|source| Untrusted::Io { path: path.as_ref().to_owned(), source })?;
        let mut refusal = Refusal::default();
        let mut look = |at: &Path, file: &File, meta: &Metadata| {
            refusal.pass(file, meta).map_err(|source| Untrusted::Io { path: at.to_owned(), source })?;
            writers.check(at, file, meta)
        };
        walk(root, path.as_ref(), &mut look)
    }

    /// The users except root who own a directory, link or file on the way to an absolute path: they can influence what is found there.
    ///
    /// # Errors
    /// The path does not exist, or is not accessible.
    pub fn owners(&self, path: impl AsRef<Path>) -> io::Result<Vec<Rights>> {
        let mut owners: Vec<Rights> = Vec::new();
        let mut look = |meta: &Metadata| {
            if meta.uid() != 0 && owners.iter().all(|owner| owner.uid() != meta.uid()) {
                owners.push(Rights::of_owner(meta));
            }
        };
        self.follow(path.as_ref(), &mut look)?;
        Ok(owners)
    }

    /// The first user but root who can influence what is found at an absolute path, by owning a directory, link or file on the way to it. Nothing below what that
    /// user owns is looked for.
    pub fn first_owner(&self, path: impl AsRef<Path>) -> Option<u32> {
        let (mut owner, mut refusal) = (None, Refusal::default());
        let mut look = |at: &Path, file: &File, meta: &Metadata| {
            owner = Some(meta.uid()).filter(|uid| *uid != 0);
            // An error ends the way.
            let ended = if owner.is_some() { Err(io::ErrorKind::Other.into()) } else { refusal.pass(file, meta) };
            ended.map_err(|source| Untrusted::Io { path: at.to_owned(), source })
        };
        let _ = walk(self.root.try_clone().ok()?, path.as_ref(), &mut look);
        owner
    }

    /// Another handle of the same directory.
    ///
    /// # Errors
    /// Too many descriptors are open.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { root: self.root.try_clone()? })
    }

    /// The file behind an absolute path, opened only as a name, and the users except root who own a directory or link on the way to it: they can lead the path
    /// to another one.
    ///
    /// # Errors
    /// As of [`Files::owners`].
    pub fn led(&self, path: impl AsRef<Path>) -> io::Result<(File, Vec<Rights>)> {
        let mut leaders: Vec<Rights> = Vec::new();
        let mut look = |meta: &Metadata| {
            if (meta.is_dir() || meta.is_symlink()) && meta.uid() != 0 && leaders.iter().all(|leader| leader.uid() != meta.uid()) {
                leaders.push(Rights::of_owner(meta));
            }
        };
        let file = self.follow(path.as_ref(), &mut look)?;
        Ok((file, leaders))
    }

    /// Bytes and metadata of a file.
    ///
    /// # Errors
    /// As of [`Files::open`] and read(2); "longer than N bytes".
    pub fn read(&self, path: impl AsRef<Path>, bytes_max: usize) -> io::Result<(Vec<u8>, Metadata)> {
        let file = self.open(path)?;
        let metadata = file.metadata()?;
        Ok((read_bounded(file, bytes_max)?, metadata))
    }

    /// The file itself, of any kind, opened only as a name (open(2), O_PATH).
    ///
    /// # Errors
    /// As of openat(2); "it is on /proc, ...".
    pub fn locate(&self, path: impl AsRef<Path>) -> io::Result<File> {
        Ok(File::from(self.open_with(path.as_ref(), OFlags::PATH)?))
    }

    /// True if the path exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.locate(path).is_ok()
    }

    /// Names in a directory, at most 10,000; none if the directory does not exist.
    ///
    /// # Errors
    /// As of openat(2) and getdents(2).
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

    /// The paths that match a glob(7) pattern, sorted, at most `paths_max`. Without a wildcard it is the path itself, even if it does not exist.
    ///
    /// # Errors
    /// A directory on the way may not be read, or the pattern leads through more than 100,000 names.
    pub fn matching(&self, pattern: &str, paths_max: usize) -> io::Result<Vec<String>> {
        self.matching_within(pattern, paths_max, &mut { NAMES_ALL_MAX })
    }

    /// As [`Files::matching`] for several patterns, which together lead through at most `names_left` names.
    ///
    /// # Errors
    /// As of [`Files::matching`]; "more names than ...".
    pub fn matching_within(&self, pattern: &str, paths_max: usize, names_left: &mut usize) -> io::Result<Vec<String>> {
        if !glob::is_pattern(pattern) {
            return Ok(vec![pattern.to_owned()]);
        }
        let mut paths = vec![String::new()];
        let allowed = *names_left;
        for component in pattern.split('/').filter(|component| !component.is_empty()) {
            if !glob::is_pattern(component) {
                paths.iter_mut().for_each(|path| *path = format!("{path}/{component}"));
                continue;
            }
            let mut matched = Vec::new();
            for path in paths {
                let names = self.names(if path.is_empty() { "/" } else { &path })?;
                *names_left = names_left.checked_sub(names.len()).ok_or_else(|| io::Error::other(format!("more than {allowed} names")))?;
                let fitting = names.into_iter().filter(|name| glob::matches(component, name)).map(|name| format!("{path}/{name}"));
                matched.extend(fitting.take(paths_max.saturating_sub(matched.len())));
            }
            paths = matched;
        }
        paths.retain(|path| self.exists(path));
        paths.sort_unstable();
        Ok(paths)
    }

    /// Follows a path a component at a time: each link is read here, and leads nowhere but below the root, and no name is looked for where the kernel makes up the
    /// files. openat2(2) with RESOLVE_IN_ROOT does the former alone.
    fn follow(&self, path: &Path, look: &mut dyn FnMut(&Metadata)) -> io::Result<File> {
        if path.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut refusal = Refusal::default();
        let mut pass = |at: &Path, file: &File, meta: &Metadata| {
            refusal.pass(file, meta).map_err(|source| Untrusted::Io { path: at.to_owned(), source })?;
            look(meta);
            Ok(())
        };
        walk(self.root.try_clone()?, path, &mut pass).map_err(io::Error::from).map_err(|error| match error.raw_os_error() {
            // Links in a circle.
            Some(libc::ELOOP) => not_regular(),
            _ => error,
        })
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let follow = |path: &Path| self.follow(path, &mut |_| ());
        let flags = flags | OFlags::CLOEXEC;
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if flags.contains(OFlags::NOFOLLOW) => {
                let parent = if parent.as_os_str().is_empty() { Path::new("/") } else { parent };
                Ok(openat(follow(parent)?, name, flags, Mode::empty())?)
            }
            _ if flags.contains(OFlags::PATH) => Ok(follow(path)?.into()),
            _ => Ok(openat(follow(path)?, ".", flags, Mode::empty())?),
        }
    }
}

/// Reads a file by which this program's own user steers it, such as a configuration: a regular one, opened without waiting, of at most so many bytes, and for
/// root one that nobody else may change.
///
/// # Errors
/// As of [`Files::open`], for root as of [`Files::open_trusted`]; "longer than N bytes".
pub fn read_own(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, Metadata)> {
    let (files, path) = (Files::of_directory(Path::new("/"))?, std::path::absolute(path)?);
    let own = rustix::process::geteuid();
    let file = if own.is_root() { files.open_trusted(path, own.as_raw())? } else { as_caller(|| files.open(path))?? };
    let meta = file.metadata()?;
    Ok((read_bounded(file, bytes_max)?, meta))
}

/// [`read_own`], and whether nobody but root can change the file, so that what it names is named by root: the bytes are those of the file that was checked.
///
/// # Errors
/// As of [`read_own`].
pub fn read_own_or_roots(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let (files, whole) = (Files::of_directory(Path::new("/"))?, std::path::absolute(path)?);
    match as_caller(|| files.open_trusted(whole, 0))? {
        Ok(file) => Ok((read_bounded(file, bytes_max)?, true)),
        Err(_) => Ok((read_own(path, bytes_max)?.0, false)),
    }
}

/// The path of an open file with all links resolved, as this process sees it.
///
/// # Errors
/// As of readlink(2).
pub fn path_of(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(format!("{OWN}/{}", file.as_raw_fd()))
}

/// The bytes of a file.
///
/// # Errors
/// As of read(2); "longer than N bytes".
pub fn read_bounded(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// The text of a file of the kernel (`/proc`, `/sys`), of at most so many bytes: some of them are as long as a process makes them.
///
/// # Errors
/// As of open(2) and read(2); "longer than N bytes".
pub fn read_kernel(path: impl AsRef<Path>, bytes_max: usize) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bounded(open_kernel(path.as_ref())?, bytes_max)?).into_owned())
}

/// Opens such a file, without waiting.
pub(crate) fn open_kernel(path: &Path) -> io::Result<File> {
    Ok(File::from(openat(CWD, path, OFlags::RDONLY | WITHOUT_WAITING, Mode::empty())?))
}

/// Opens a file that the user of this program named, to read it, with that user's own rights. A regular file, and what belongs to another user, is opened without
/// waiting: a lease of its owner's (fcntl(2), F_SETLEASE) would keep the program waiting for as long as `fs.lease-break-time`, a FIFO for a writer. An own FIFO or
/// terminal is waited for, as by other programs.
///
/// # Errors
/// As of open(2); WouldBlock, if its owner holds a lease.
pub fn open_named(path: &Path) -> io::Result<File> {
    as_caller(|| {
        let located = named(path)?;
        let (meta, us) = (located.metadata()?, rustix::process::geteuid().as_raw());
        let is_own = !meta.is_file() && (meta.uid() == 0 || meta.uid() == us);
        let file = if is_own { own(&located, OFlags::NOCTTY | OFlags::CLOEXEC)? } else { own(&located, WITHOUT_WAITING)? };
        // Its readings wait, as those of other files.
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(file)
    })?
}

/// [`open_named`] for regular files only.
///
/// # Errors
/// As of [`open_named`]; "it is not a regular file".
pub fn open_named_regular(path: &Path) -> io::Result<File> {
    as_caller(|| reopen(&named(path)?))?
}

fn named(path: &Path) -> io::Result<File> {
    Ok(File::from(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?))
}

/// Opens for reading, without waiting, the regular file behind a link of the kernel (`/proc/PID/exe`, `fd/N`, `map_files/...`). Such a link leads to the file
/// itself, whatever is at its path now.
///
/// # Errors
/// As of open(2); "it is not a regular file".
pub fn open_link(link: &Path) -> io::Result<File> {
    open_link_if(link, |_| true)
}

/// [`open_link`] only for a wanted file.
///
/// # Errors
/// As of [`open_link`]; NotFound for another file.
pub fn open_link_if(link: &Path, is_wanted: impl FnOnce(&Metadata) -> bool) -> io::Result<File> {
    let located = File::from(openat(CWD, link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    if is_wanted(&located.metadata()?) { reopen(&located) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Opens a located file if it is regular: opening a device can have an effect (a watchdog, a tape). Opens it by the descriptor, so that it is the checked
/// file, with the rights of the calling thread.
fn reopen(located: &File) -> io::Result<File> {
    if !located.metadata()?.is_file() {
        return Err(not_regular());
    }
    refuse(located)?;
    own(located, WITHOUT_WAITING)
}

/// Opens a located file for reading.
fn own(located: &File, flags: OFlags) -> io::Result<File> {
    match openat(CWD, format!("{OWN}/{}", located.as_raw_fd()), OFlags::RDONLY | flags, Mode::empty()) {
        Err(Errno::AGAIN) => Err(io::Error::new(io::ErrorKind::WouldBlock, LEASED)),
        opened => Ok(File::from(opened?)),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

#[cfg(test)]
mod tests;
