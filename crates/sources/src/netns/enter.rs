//! Threads inside a network namespace. A thread that reads for a namespace can only be made here, and only after it was seen to be inside.

use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::JoinHandle;

use chokepoint_model::observation::NetnsId;
use chokepoint_recording::Scope;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{NetnsError, NetnsRef, is_netns, own};
use crate::netlink::Sockets;
use crate::root::{Root, open_path};
use crate::table::{Notes, Phase, ReadContext};

/// Proof that the thread which has it is inside a namespace. It cannot leave its thread and there is no other way to make one than
/// [`spawn_inside`], whose thread enters once and never again.
pub(crate) struct Inside {
    netns: NetnsRef,
    sockets: Sockets,
    stays_in_its_thread: PhantomData<*const ()>,
}

impl Inside {
    /// What a reader of this namespace is given.
    pub(crate) fn context<'a>(&'a self, root: &'a Root, notes: &'a Notes, phase: Phase) -> ReadContext<'a> {
        ReadContext {
            root,
            scope: Scope::Netns(self.netns.id.0),
            phase,
            notes,
            late_us: 0,
            under_way: None,
            netns: Some(&self.netns),
            netlink: Some(&self.sockets),
        }
    }

    /// The netlink sockets of the namespace.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Only for a thread that was just made for this and ends afterwards.
    fn enter(netns: NetnsRef, root: &Root) -> Result<Self, NetnsError> {
        let id = netns.id;
        // One's own namespace needs no privilege.
        if own()? != id {
            let file = open_path(&netns.path).map_err(|error| NetnsError::Open { path: netns.path.clone(), error })?;
            let found = id_of_file(root, &netns.path, &file)?;
            if found != id {
                return Err(NetnsError::Gone { wanted: id, found });
            }
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| NetnsError::Enter { id, error: error.into() })?;
        }
        let found = own()?;
        if found != id {
            return Err(NetnsError::Gone { wanted: id, found });
        }
        let sockets = Sockets::open().map_err(|error| NetnsError::Prepare { id, error })?;
        Ok(Self { netns, sockets, stays_in_its_thread: PhantomData })
    }
}

/// Starts a thread that enters the namespace and then runs `work`, or that gives `work` the reason why it could not enter.
pub(crate) fn spawn_inside<T: Send + 'static>(
    netns: NetnsRef,
    root: Root,
    work: impl FnOnce(Result<&Inside, NetnsError>) -> T + Send + 'static,
) -> Result<JoinHandle<T>, NetnsError> {
    let id = netns.id;
    std::thread::Builder::new()
        .name(format!("netns {}", id.0))
        .spawn(move || match Inside::enter(netns, &root) {
            Ok(inside) => work(Ok(&inside)),
            Err(error) => work(Err(error)),
        })
        .map_err(|error| NetnsError::Prepare { id, error })
}

/// The namespace behind a path: a bound nsfs file or a link such as `/proc/PID/ns/net`.
pub(crate) fn id_of_path(root: &Root, path: &Path) -> Result<NetnsId, NetnsError> {
    let file = open_path(path).map_err(|error| NetnsError::Open { path: path.to_path_buf(), error })?;
    id_of_file(root, path, &file)
}

fn id_of_file(root: &Root, path: &Path, file: &std::fs::File) -> Result<NetnsId, NetnsError> {
    /// `NS_GET_NSTYPE`: `_IO(0xb7, 0x3)` (ioctl_nsfs(2)).
    const NS_GET_NSTYPE: u32 = 0xb703;
    let open_error = |error| NetnsError::Open { path: path.to_path_buf(), error };
    if !is_netns(root, path).map_err(open_error)? {
        return Err(NetnsError::NotNetns(path.to_path_buf()));
    }
    if root.is_live() {
        // SAFETY: this request takes no argument and gives the type as its result.
        let kind = unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(file), NS_GET_NSTYPE as _) };
        if kind != libc::CLONE_NEWNET {
            return Err(NetnsError::NotNetns(path.to_path_buf()));
        }
    }
    Ok(NetnsId(file.metadata().map_err(open_error)?.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn here() -> NetnsRef {
        NetnsRef { id: own().unwrap(), name: None, is_host: false, path: PathBuf::from("/proc/self/ns/net") }
    }

    #[test]
    fn ones_own_needs_no_privilege() {
        let id = here().id;
        let thread = spawn_inside(here(), Root::default(), |inside| inside.map(|inside| inside.netns.id)).unwrap();
        assert_eq!(thread.join().unwrap().unwrap(), id);
    }

    #[test]
    fn a_namespace_that_is_gone_is_not_entered() {
        let gone = NetnsRef { id: NetnsId(1), ..here() };
        let thread = spawn_inside(gone, Root::default(), |inside| inside.map(|_| ())).unwrap();
        assert!(matches!(thread.join().unwrap(), Err(NetnsError::Gone { .. })));
        let other_kind = NetnsRef { id: NetnsId(1), path: PathBuf::from("/proc/self/ns/mnt"), ..here() };
        let thread = spawn_inside(other_kind, Root::default(), |inside| inside.map(|_| ())).unwrap();
        assert!(matches!(thread.join().unwrap(), Err(NetnsError::NotNetns(_))));
    }
}
