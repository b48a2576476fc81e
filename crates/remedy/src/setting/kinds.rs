//! The kinds of settings: the only place that maps a change to the code of its setting.

use std::path::Path;

use chokepoint_model::change::Change;

use super::Setting;
use super::affinity::Affinity;
use super::cgroup::Cgroup;
use super::sysctl::{self, Sysctl};
use crate::claim::Place;
use crate::error::ApplyError;
use crate::server::configuration::Server;

/// The setting of a change. Fails where its namespace, cgroup or file does not exist.
pub(crate) fn open(change: &Change, root: &Path) -> Result<Box<dyn Setting>, ApplyError> {
    match change {
        Change::Sysctl { key, netns, .. } => Ok(Box::new(Sysctl::open(key, *netns, root)?)),
        Change::Cgroup { dir, file, .. } => Ok(Box::new(Cgroup::open(dir, file, root)?)),
        Change::Affinity { pid, start_ticks, process, .. } => Ok(Box::new(Affinity::open(*pid, *start_ticks, process))),
        Change::Server { .. } => Ok(Box::new(Server::open(change)?)),
    }
}

/// True where a setting of this kind survives a reboot.
pub(crate) fn survives_boot(change: &Change) -> bool {
    match change {
        Change::Sysctl { .. } | Change::Cgroup { .. } | Change::Affinity { .. } => false,
        Change::Server { .. } => true,
    }
}

/// True where the later changes of a set rely on this one, so that it must not be taken back before them: requests are passed to where somebody listens.
pub(crate) fn is_relied_on(change: &Change) -> bool {
    use chokepoint_model::change::ServerSetting::{NginxFastcgiAddress, PhpFpmSecondPool};
    matches!(change, Change::Server { setting: NginxFastcgiAddress { .. } | PhpFpmSecondPool { .. }, .. })
}

/// The place in which a change is made. What somebody measures there is no measurement any more once somebody else changes it. `id` tells a namespace or
/// cgroup from a later one with its name.
pub(crate) fn place(change: &Change, id: Option<u64>) -> Place {
    match change {
        Change::Sysctl { netns, .. } => Place::Netns { id: *netns, cookie: id },
        Change::Cgroup { dir, .. } => Place::Cgroup { dir: dir.clone(), inode: id },
        Change::Affinity { pid, start_ticks, .. } => Place::Process { pid: *pid, start_ticks: *start_ticks },
        Change::Server { server, file, .. } => Place::Configuration { server: *server, main: file.clone() },
    }
}

/// True where both changes concern the same setting in the same place.
pub(crate) fn same_setting(one: &Change, other: &Change) -> bool {
    match (one, other) {
        // A parameter can be spelled in two ways (sysctl(8)).
        (Change::Sysctl { key, netns, .. }, Change::Sysctl { key: other_key, netns: other_netns, .. }) => {
            netns == other_netns && sysctl::same_key(key, other_key)
        }
        _ => one.is_same_setting(other),
    }
}
