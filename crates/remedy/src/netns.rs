//! Enters a network namespace by its inode number, in a new thread, and identifies namespaces uniquely.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use chokepoint_model::observation::NetnsId;
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// `f_type` of procfs (statfs(2)).
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

/// A handle of a namespace. While it is held, the namespace lives and keeps its inode.
#[derive(Debug, Clone)]
pub(crate) enum NetnsHandle {
    /// The caller's own, or a tree of files in place of a host.
    Own,
    /// Another one, by its open file.
    Other(Arc<OwnedFd>),
}

/// Why a namespace cannot be found.
#[derive(Debug)]
pub(crate) enum NoNetns {
    /// No such namespace can be found.
    Gone,
    /// It may exist: the namespaces of some processes are hidden.
    Hidden,
}

impl NetnsHandle {
    /// Finds the namespace: the caller's own, a name under `{root}/run/netns`, a process's, or a mounted one (container engines). A tree of files has
    /// only one.
    pub(crate) fn find(netns: NetnsId, root: &Path) -> Result<Self, NoNetns> {
        if !is_host(root) || own_inode().is_some_and(|own| own == netns.0) {
            return Ok(NetnsHandle::Own);
        }
        let mut hidden = false;
        let first_process = root.join("proc/1/ns/net");
        let candidates = named(root).into_iter().chain(processes(root)).chain(mounted(root));
        for path in candidates {
            match open_matching(&path, netns) {
                Ok(Some(file)) => return Ok(NetnsHandle::Other(Arc::new(file.into()))),
                Ok(None) => {}
                // Many sandboxes hide the first process even from root. For the same reason no change is ever made in a namespace that only it is in.
                Err(error) => hidden |= error.kind() == io::ErrorKind::PermissionDenied && path != first_process,
            }
        }
        Err(if hidden { NoNetns::Hidden } else { NoNetns::Gone })
    }

    /// Runs `work` in the namespace. The thread that enters another one ends afterwards, so that no thread is ever left in a wrong namespace.
    ///
    /// The outer error means that the namespace could not be entered (needs CAP_SYS_ADMIN, setns(2)).
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Errno> {
        let NetnsHandle::Other(file) = self else { return Ok(work()) };
        thread::scope(|scope| {
            let entered = thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(work())
            });
            let Ok(handle) = entered else { return Err(Errno::AGAIN) };
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// True where the root's `proc` is a real procfs and not a tree of files.
pub(crate) fn is_host(root: &Path) -> bool {
    rustix::fs::statfs(root.join("proc")).is_ok_and(|stat| stat.f_type as u64 == PROC_SUPER_MAGIC)
}

/// Inode number of the calling thread's network namespace.
pub(crate) fn own_inode() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|meta| meta.ino())
}

fn open_matching(path: &Path, netns: NetnsId) -> io::Result<Option<File>> {
    // Checked before opening: most belong to other namespaces, and some are no namespaces.
    if fs::metadata(path)?.ino() != netns.0 {
        return Ok(None);
    }
    let file = File::open(path)?;
    // Meanwhile the process may have ended and its PID may be reused.
    Ok((file.metadata()?.ino() == netns.0 && is_namespace(&file)).then_some(file))
}

/// True for a file of nsfs. A file of another file system may have the same inode.
fn is_namespace(file: &File) -> bool {
    /// `f_type` of nsfs (statfs(2)).
    const NSFS_MAGIC: u64 = 0x6e73_6673;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type as u64 == NSFS_MAGIC)
}

fn named(root: &Path) -> Vec<PathBuf> {
    entries(&root.join("run/netns"))
}

fn processes(root: &Path) -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    entries(&root.join("proc")).into_iter().filter(is_process).map(|path| path.join("ns/net")).collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    // The kernel's bound on PIDs (pid_max, proc_sys_kernel(5)) is 4,194,304.
    const ENTRIES_MAX: usize = 1 << 22;
    fs::read_dir(dir).map(|dir| dir.take(ENTRIES_MAX).flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Mount points of network namespaces (`nsfs` in proc_pid_mountinfo(5)).
fn mounted(root: &Path) -> Vec<PathBuf> {
    const MOUNTINFO_BYTES_MAX: u64 = 4 << 20;
    let mut text = Vec::new();
    let read = File::open(root.join("proc/thread-self/mountinfo")).and_then(|file| file.take(MOUNTINFO_BYTES_MAX).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    // 36 35 0:4 net:[4026532000] /run/docker/netns/x rw shared:1 - nsfs nsfs rw
    let points = text.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (kind, point) = (fields.nth(3)?, fields.next()?);
        kind.starts_with("net:[").then(|| PathBuf::from(point.replace("\\040", " ")))
    });
    points.collect()
}

/// The cookie of the calling thread's network namespace, unique within one boot (`SO_NETNS_COOKIE`, Linux 5.14). Inodes are reused as soon as a
/// namespace ends.
#[allow(unsafe_code)]
pub(crate) fn own_cookie() -> Option<u64> {
    // SAFETY: socket(2) takes no pointers; the result is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: `fd` was just opened, is valid and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: both pointers are to live variables of this frame, and `length` is the size of the first.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut length) };
    (result == 0 && length as usize == size_of::<u64>()).then_some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_not_entered() {
        let own = own_inode().expect("Linux has namespaces");
        assert!(matches!(NetnsHandle::find(NetnsId(own), Path::new("/")), Ok(NetnsHandle::Own)));
        let place = NetnsHandle::find(NetnsId(own), Path::new("/")).unwrap();
        assert_eq!(place.run(own_inode).unwrap(), Some(own));
    }

    #[test]
    fn a_missing_namespace_is_not_found() {
        // Inode 1 is never a namespace's: those begin at 0xEFFFFFFF or 0xF0000000.
        assert!(matches!(NetnsHandle::find(NetnsId(1), Path::new("/")), Err(NoNetns::Gone | NoNetns::Hidden)));
        let tree = tempfile::tempdir().unwrap();
        assert!(matches!(NetnsHandle::find(NetnsId(1), tree.path()), Ok(NetnsHandle::Own)));
    }
}
