//! Entering network namespaces, each time in a new thread, so that no other thread is ever in the wrong one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where `ip netns` keeps named namespaces (ip-netns(8)).
const NAMES: &str = "/run/netns";

/// The machine's own namespace: that of process 1, or this process's where a security module hides the former even from root. Machine settings are
/// read-only in other namespaces, so a wrong guess fails and does no harm.
pub(crate) fn machine_path() -> &'static Path {
    let process_1 = Path::new("/proc/1/ns/net");
    if File::open(process_1).is_ok() { process_1 } else { Path::new("/proc/self/ns/net") }
}

/// Path of a named namespace.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Inode of a namespace, unique while it lives (namespaces(7)).
pub(crate) fn inode(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.ino())
}

/// Runs `work` in a new thread inside the network namespace at `path` ("/run/netns/NAME", "/proc/PID/ns/net").
///
/// # Errors
/// Where the path cannot be opened or is not a network namespace, or without CAP_SYS_ADMIN (setns(2)).
pub fn inside<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(path)?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lab-netns".to_owned()).spawn_scoped(scope, || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_a_namespace_is_refused() {
        assert!(inside(Path::new("/nonexistent"), || ()).is_err());
        assert!(inside(Path::new("/proc/self/stat"), || ()).is_err());
    }
}
