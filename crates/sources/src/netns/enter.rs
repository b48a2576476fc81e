//! Threads inside a network namespace. Threads that read a namespace are created only here, and only after a check that they are inside.

use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use chokepoint_recording::Scope;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{NetnsError, NetnsRef, id_of_file, own};
use crate::netlink::Sockets;
use crate::root::{Root, open_path};
use crate::table::{Notes, Phase, ReadContext};

/// Proof that the owning thread is inside a namespace. It cannot leave its thread. Only [`spawn_inside`] creates one, and its thread enters a namespace once
/// and never leaves it.
pub(crate) struct EnteredNetns {
    netns: NetnsRef,
    sockets: Sockets,
    stays_in_its_thread: PhantomData<*const ()>,
}

impl EnteredNetns {
    /// The context of a reader of this namespace.
    pub(crate) fn context<'a>(&'a self, root: &'a Root, notes: &'a Notes, phase: Phase) -> ReadContext<'a> {
        let scope = Scope::Netns(self.netns.id.0);
        ReadContext { netns: Some(&self.netns), netlink: Some(&self.sockets), ..ReadContext::new(root, scope, phase, notes) }
    }

    /// The netlink sockets of the namespace.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Only for a new thread that ends afterwards.
    fn enter(netns: NetnsRef, root: &Root) -> Result<Self, NetnsError> {
        let id = netns.id;
        // The own namespace needs no privilege.
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

/// Starts a thread that enters the namespace and runs `work`; if it cannot enter, `work` gets the reason.
pub(crate) fn spawn_inside<T: Send + 'static>(
    netns: NetnsRef,
    root: Root,
    work: impl FnOnce(Result<&EnteredNetns, NetnsError>) -> T + Send + 'static,
) -> Result<JoinHandle<T>, NetnsError> {
    let id = netns.id;
    std::thread::Builder::new()
        .name(format!("netns {}", id.0))
        .spawn(move || match EnteredNetns::enter(netns, &root) {
            Ok(inside) => work(Ok(&inside)),
            Err(error) => work(Err(error)),
        })
        .map_err(|error| NetnsError::Prepare { id, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::observation::NetnsId;
    use std::path::PathBuf;

    fn here() -> NetnsRef {
        NetnsRef { id: own().unwrap(), name: None, is_host: false, path: PathBuf::from("/proc/self/ns/net") }
    }

    #[test]
    fn the_own_namespace_needs_no_privilege() {
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
