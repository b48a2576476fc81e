//! Who made a network namespace. Anybody may make one in a user namespace of their own (unshare -Urn) and give it any address.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::root::{metadata_of_path, open_path};

/// `NS_GET_USERNS`, `_IO(0xb7, 0x1)`: a descriptor of the user namespace that owns this namespace (ioctl_nsfs(2)).
const NS_GET_USERNS: u32 = 0xb701;
/// `NS_GET_OWNER_UID`, `_IO(0xb7, 0x4)`: the user who made this user namespace (ioctl_nsfs(2)).
const NS_GET_OWNER_UID: u32 = 0xb704;

/// The user who made the network namespace at this path in a user namespace of their own, if that is neither root nor the user of this program; container engines that run as
/// root make theirs as root. `None` also where the kernel does not tell: namespaces that are not below the own user namespace cannot be entered.
pub(crate) fn made_by(path: &Path) -> Option<u32> {
    let netns = open_path(path).ok()?;
    // SAFETY: this request of nsfs takes no argument and gives a new descriptor or an error; other files do not know it.
    let owner = unsafe { libc::ioctl(netns.as_raw_fd(), NS_GET_USERNS as _) };
    if owner < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and nobody else's.
    let owner = unsafe { File::from_raw_fd(owner) };
    let own = metadata_of_path(Path::new("/proc/self/ns/user")).ok()?;
    if owner.metadata().ok()?.ino() == own.ino() {
        return None;
    }
    let mut uid: libc::uid_t = 0;
    // SAFETY: the request writes one uid_t to this address, which outlives the call.
    let told = unsafe { libc::ioctl(owner.as_raw_fd(), NS_GET_OWNER_UID as _, &raw mut uid) };
    let is_trusted = uid == 0 || uid == rustix::process::geteuid().as_raw();
    (told == 0 && !is_trusted).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_namespace_of_another_user_is_told_apart() {
        assert_eq!(made_by(Path::new("/proc/self/ns/net")), None);
        assert_eq!(made_by(Path::new("/proc/self/status")), None, "it is no namespace");
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start a process of another user");
            return;
        }
        let of = |uid: u32| {
            let mut command = Command::new("unshare");
            command.args(["-Urn", "sh", "-c", "echo ready; sleep 30"]).uid(uid).gid(uid).stdout(Stdio::piped());
            let mut child = command.spawn().ok()?;
            let mut ready = [0; 6];
            let is_ready = std::io::Read::read_exact(child.stdout.as_mut()?, &mut ready).is_ok();
            let made = is_ready.then(|| made_by(Path::new(&format!("/proc/{}/ns/net", child.id()))));
            let _ = (child.kill(), child.wait());
            made
        };
        match (of(65_534), of(0)) {
            (Some(by_another), Some(by_root)) => assert_eq!((by_another, by_root), (Some(65_534), None)),
            _ => eprintln!("skipped: users may make no namespaces here"),
        }
    }
}
