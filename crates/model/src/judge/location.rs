//! Where a reading or a finding is, by ids. Two are at the same place if these are equal.

use crate::facts::TierId;
use crate::facts::path::{PlacedListener, Tier};
use crate::observation::{ListenerAddress, NetnsId};

/// A place on the path. What does not apply is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// The network namespace.
    pub netns: Option<NetnsId>,
    /// The process.
    pub pid: Option<u32>,
    /// The listener, or the dialled address.
    pub listener: Option<ListenerAddress>,
    /// The inode of the listener's socket, where several of a tier listen at the same address (SO_REUSEPORT).
    pub socket: Option<u64>,
    /// The edge.
    pub edge: Option<EdgeId>,
    /// The cores.
    pub cores: Option<Vec<u32>>,
    /// The cgroup's directory.
    pub cgroup: Option<String>,
}

/// An edge of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeId {
    /// From a tier to one that it calls.
    Tiers(TierId, TierId),
    /// From a tier to a server on another host.
    Elsewhere(TierId, ListenerAddress),
    /// From the client to a tier.
    Client(TierId),
    /// Through a network interface, by its name.
    Interface(String),
}

impl Location {
    /// Anywhere in a namespace.
    pub fn in_netns(netns: NetnsId) -> Self {
        Self { netns: Some(netns), ..Self::default() }
    }

    /// At a listener of a namespace, or at an address dialled from there.
    pub fn at_listener(netns: NetnsId, listener: ListenerAddress) -> Self {
        Self { listener: Some(listener), ..Self::in_netns(netns) }
    }

    /// Whose side of a connection this is, as messages have it: of a server that "asks" another one, or that "answers".
    pub(crate) fn side(&self) -> &'static str {
        if self.edge.is_some() { "asks" } else { "answers" }
    }

    /// The listener of a tier at this place.
    pub(crate) fn listener_of<'t>(&self, tier: &'t Tier) -> Option<&'t PlacedListener> {
        let is_it = |own: &&PlacedListener| {
            let is_there = Some(own.netns) == self.netns && Some(&own.listener.address) == self.listener.as_ref();
            is_there && self.socket.is_none_or(|inode| inode == own.listener.inode)
        };
        tier.listeners.iter().find(is_it)
    }

    /// The listener as text, or an empty string.
    pub(crate) fn listener_name(&self) -> String {
        self.listener.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}
