//! Files as a process sees them, also in a container: resolved below its root directory, opened without waiting, only regular files, within bounds.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_config::glob;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, fcntl_getfl, fcntl_setfl, openat, openat2};
use rustix::io::Errno;

use crate::rights::{Rights, as_caller};
use crate::trust::{Untrusted, check, walk};

/// Most names of one directory.
const NAMES_MAX: usize = 10_000;
/// Most names of all directories for one pattern.
const NAMES_ALL_MAX: usize = 100_000;
/// How a file is opened that somebody else may own: without waiting for a writer, a carrier, or a holder of a lease.
const WITHOUT_WAITING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Why a regular file is not opened without waiting (open(2), EWOULDBLOCK).
const LEASED: &str = "another process holds a lease on it (fcntl(2), F_SETLEASE)";
/// The kernel's links to the own descriptors (proc_pid_fd(5)).
const OWN: &str = "/proc/self/fd";

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

    /// Opens a regular file for reading, without waiting. Links are followed, but they do not lead out of the root (openat2(2), RESOLVE_IN_ROOT), as they
    /// would with
    /// `/proc/PID/root` as a mere prefix of the path.
    ///
    /// # Errors
    /// As of openat2(2); "it is not a regular file" for a FIFO, a device, a socket or a directory.
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
        walk(root, path, &mut |at, file, meta| check(at, file, meta, uid))
    }

    /// The users except root who own a directory, link or file on the way to an absolute path: they can influence what is found there.
    ///
    /// # Errors
    /// The path does not exist, or is not accessible.
    pub fn owners(&self, path: impl AsRef<Path>) -> io::Result<Vec<Rights>> {
        let mut owners: Vec<Rights> = Vec::new();
        let mut look = |_: &Path, _: &File, meta: &Metadata| {
            if meta.uid() != 0 && owners.iter().all(|owner| owner.uid() != meta.uid()) {
                owners.push(Rights::of_owner(meta));
            }
            Ok::<(), Untrusted>(())
        };
        walk(self.root.try_clone()?, path.as_ref(), &mut look).map_err(io::Error::from)?;
        Ok(owners)
    }

    /// The file behind an absolute path, opened only as a name, and the users except root who own a directory or link on the way to it: they can lead the path
    /// to another one.
    ///
    /// # Errors
    /// As of [`Files::owners`].
    pub fn led(&self, path: impl AsRef<Path>) -> io::Result<(File, Vec<Rights>)> {
        let mut leaders: Vec<Rights> = Vec::new();
        let mut look = |_: &Path, _: &File, meta: &Metadata| {
            if (meta.is_dir() || meta.is_symlink()) && meta.uid() != 0 && leaders.iter().all(|leader| leader.uid() != meta.uid()) {
                leaders.push(Rights::of_owner(meta));
            }
            Ok::<(), Untrusted>(())
        };
        let file = walk(self.root.try_clone()?, path.as_ref(), &mut look).map_err(io::Error::from)?;
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
    /// As of openat2(2).
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

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), below) {
            // A link to /proc/self/fd/2, which images use for logs.
            Err(Errno::LOOP) => Err(not_regular()),
            // Linux before 5.6; a service of systemd with RestrictSUIDSGID=, which DynamicUser= implies (systemd.exec(5)); old containers, which say EPERM.
            // AGAIN: something on this host was renamed or mounted while a ".." was followed, so that the kernel could not tell whether it stays below the root. The steps can.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.step_by_step(path, flags),
            opened => Ok(opened?),
        }
    }

    /// What openat2(2) does, a component at a time: each link is read here, and leads nowhere but below the root.
    #[cold]
    #[inline(never)]
    fn step_by_step(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        if path.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let follow = |path: &Path| walk(self.root.try_clone()?, path, &mut |_, _, _| Ok(())).map_err(io::Error::from);
        let own = |flags| flags | OFlags::CLOEXEC;
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if flags.contains(OFlags::NOFOLLOW) => Ok(openat(follow(parent)?, name, own(flags), Mode::empty())?),
            _ if flags.contains(OFlags::PATH) => Ok(follow(path)?.into()),
            _ => Ok(openat(follow(path)?, ".", own(flags), Mode::empty())?),
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
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn a_file_of_the_kernel_is_read_within_its_bound() {
        assert!(read_kernel("/proc/self/status", 1 << 14).unwrap().starts_with("Name:"));
        assert!(read_kernel("/proc/self/stat", 9).unwrap_err().to_string().contains("longer than 9"));
        assert!(read_kernel("/proc/self/none", 9).is_err());
    }

    #[test]
    fn links_stay_below_the_root() {
        let tree = tempfile::tempdir().unwrap();
        let inside = tree.path().join("42/root");
        for directory in ["etc/a", "etc/b", "outside"] {
            std::fs::create_dir_all(inside.join(directory)).unwrap();
        }
        std::fs::write(inside.join("etc/b/x.conf"), "22").unwrap();
        std::fs::write(tree.path().join("secret"), "secret").unwrap();
        // Absolute and climbing links lead to files below the process's root, not the reader's.
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
    fn without_openat2_the_same_files_are_found() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("root/etc/a/b")).unwrap();
        std::fs::write(tree.path().join("root/etc/file"), "").unwrap();
        std::fs::write(tree.path().join("secret"), "").unwrap();
        for (target, link) in
            [("/etc/file", "absolute"), ("../../secret", "out"), ("a/../file", "up"), ("loop", "loop"), ("a", "dir"), ("/none", "none")]
        {
            symlink(target, tree.path().join("root/etc").join(link)).unwrap();
        }
        let files = Files::of_directory(&tree.path().join("root")).unwrap();
        let inode = |opened: io::Result<OwnedFd>| opened.and_then(|opened| File::from(opened).metadata()).map(|meta| meta.ino()).ok();
        let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let mut found = 0;
        for path in "/ etc etc/file /etc/absolute /etc/out /etc/up /etc/loop /etc/dir /etc/dir/b /etc/dir/../file /etc/none /etc/file/x /../secret /..".split(' ').chain([""]) {
            for flags in [OFlags::PATH, OFlags::PATH | OFlags::NOFOLLOW, directory] {
                let (whole, stepped) = (files.open_with(path.as_ref(), flags), files.step_by_step(path.as_ref(), flags));
                let (whole, stepped) = (inode(whole), inode(stepped));
                assert_eq!(whole, stepped, "{path} {flags:?}");
                found += usize::from(stepped.is_some());
            }
        }
        assert!(found >= 20, "{found}");
    }

    #[test]
    fn files_are_found_while_others_are_renamed() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("a")).unwrap();
        std::fs::write(tree.path().join("file"), "").unwrap();
        let files = Files::of_directory(tree.path()).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let is_running = || !is_over.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (tree.path().join("a/1"), tree.path().join("a/2"));
                std::fs::create_dir(&one).unwrap();
                while is_running() {
                    std::fs::rename(&one, &other).unwrap();
                    std::fs::rename(&other, &one).unwrap();
                }
            });
            // Without the steps some fail.
            let failed: Vec<io::Error> = (0..20_000).filter_map(|_| files.open("/a/../file").err()).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(failed.is_empty(), "{failed:?}");
        });
    }

    #[test]
    fn patterns_match_in_every_component() {
        let tree = tempfile::tempdir().unwrap();
        for directory in ["etc/a", "etc/b", "out"] {
            std::fs::create_dir_all(tree.path().join("root").join(directory)).unwrap();
        }
        for file in ["etc/a/1.conf", "etc/b/2.conf", "etc/b/3.txt"] {
            std::fs::write(tree.path().join("root").join(file), "").unwrap();
        }
        symlink("/none", tree.path().join("root/etc/a/0.conf")).unwrap();
        symlink("../../../..", tree.path().join("root/etc/up")).unwrap();
        let files = Files::of_directory(&tree.path().join("root")).unwrap();
        assert_eq!(files.matching("/etc/*/*.conf", 9).unwrap(), ["/etc/a/1.conf", "/etc/b/2.conf"]);
        assert_eq!(files.matching("/etc/*/*.conf", 1).unwrap().len(), 1);
        assert_eq!(files.matching("/etc/none", 9).unwrap(), ["/etc/none"]);
        assert_eq!(files.matching("/etc/up/et*/b/[23].conf", 9).unwrap(), ["/etc/up/etc/b/2.conf"], "no link leads out");
        assert_eq!(files.matching("/none/*", 9).unwrap(), [""; 0]);
    }

    #[test]
    fn owners_of_anything_on_the_way_are_listed() {
        let tree = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        std::fs::create_dir(tree.path().join("dir")).unwrap();
        std::fs::write(tree.path().join("dir/file"), "").unwrap();
        symlink("dir/file", tree.path().join("link")).unwrap();
        symlink("loop", tree.path().join("loop")).unwrap();
        let files = Files::of_directory(tree.path()).unwrap();
        assert!(files.open_trusted("/link", own).is_ok());
        assert!(files.open_trusted("/loop", own).is_err() && files.open_trusted("/dir", own).is_err());
        assert!(files.owners("/loop").is_err() && files.owners("/none").is_err());
        if own != 0 {
            println!("skipped: only root gives files away");
            return;
        }
        assert_eq!(files.owners("/link").unwrap(), []);
        chown(tree.path().join("dir"), Some(4001), Some(4002)).unwrap();
        std::os::unix::fs::lchown(tree.path().join("link"), Some(4003), None).unwrap();
        let owners: Vec<u32> = files.owners("/link").unwrap().iter().map(Rights::uid).collect();
        assert_eq!(owners, [4003, 4001]);
        let why = files.open_trusted("/dir/file", 0).unwrap_err();
        assert_eq!((why.kind(), why.to_string()), (io::ErrorKind::PermissionDenied, "/dir can be changed by user 4001".to_owned()));
        assert!(files.open_trusted("/dir/file", 4001).is_ok() && files.open_trusted("/link", 4001).is_err());
        assert!(files.open_owned("/link", 4001).is_err() && files.open_owned("/link", 4003).is_ok(), "the link is another user's");
    }

    #[test]
    fn a_link_of_the_kernel_opens_the_file_itself_and_no_pipe() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let held = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let link = |file: &dyn AsRawFd| Path::new(OWN).join(file.as_raw_fd().to_string());
        assert_eq!(io::read_to_string(open_link(&link(&held)).unwrap()).unwrap(), "x");
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(open_link(&link(&reader)).unwrap_err().to_string(), "it is not a regular file");
    }

    #[test]
    fn a_pipe_does_not_hang_and_a_device_is_not_opened() {
        let tree = tempfile::tempdir().unwrap();
        mknodat(CWD, tree.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("pipe", tree.path().join("link")).unwrap();
        let files = Files::of_directory(tree.path()).unwrap();
        for name in ["pipe", "link"] {
            assert_eq!(files.open(name).unwrap_err().to_string(), "it is not a regular file", "{name}");
        }
        assert!(Files::of_directory(Path::new("/")).unwrap().open("/dev/null").is_err());
        assert!(Files::of_directory(&tree.path().join("pipe")).is_err(), "a root is a directory");
    }

    #[test]
    fn a_lease_keeps_nobody_waiting() {
        let tree = tempfile::tempdir().unwrap();
        let path = tree.path().join("leased");
        std::fs::write(&path, "text").unwrap();
        // The signal of the break would end it.
        let hold = "import fcntl, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nfile = open(sys.argv[1], 'r+')\n\
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('held', flush=True)\nsys.stdin.read()";
        let mut python = std::process::Command::new("/usr/bin/python3");
        python.args(["-c", hold]).arg(&path).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let Ok(mut holder) = python.spawn() else { return println!("skipped: no python3") };
        let mut said = [0; 5];
        holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
        let files = Files::of_directory(tree.path()).unwrap();
        let began = std::time::Instant::now();
        for opened in [open_named(&path), files.open("leased"), files.open_owned("leased", rustix::process::geteuid().as_raw())] {
            let why = opened.unwrap_err();
            assert_eq!((why.kind(), why.to_string()), (io::ErrorKind::WouldBlock, LEASED.to_owned()));
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "fs.lease-break-time is 45 s");
        drop(holder.stdin.take());
        holder.wait().unwrap();
        assert_eq!(io::read_to_string(open_named(&path).unwrap()).unwrap(), "text");
    }

    #[test]
    fn a_pipe_that_the_user_names_is_read_as_it_is_written() {
        let (reader, mut writer) = io::pipe().unwrap();
        let named = open_named(&Path::new(OWN).join(reader.as_raw_fd().to_string())).unwrap();
        let read = std::thread::spawn(move || io::read_to_string(named).unwrap());
        io::Write::write_all(&mut writer, b"late").unwrap();
        drop(writer);
        assert_eq!(read.join().unwrap(), "late");
        assert!(open_named(Path::new("/none")).is_err());
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
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
