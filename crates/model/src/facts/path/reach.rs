//! The listeners of a host, and which of them a connection or a configured address reaches.

use std::collections::BTreeMap;

use super::translation::{Endpoint, Translations};
use super::{answers, names_listener, services};
use crate::observation::{Listener, ListenerAddress, NetnsId, Observation, SocketAddress};

/// A listener and its namespace.
pub type ListenerRef<'a> = (NetnsId, &'a Listener);

/// Listeners and the translations of addresses on the way to them.
#[derive(Debug)]
pub struct Reach<'a> {
    obs: &'a Observation,
    listeners: Vec<ListenerRef<'a>>,
    by_port: BTreeMap<u16, Vec<ListenerRef<'a>>>,
    /// The translations that were seen.
    pub translations: Translations,
}

impl<'a> Reach<'a> {
    /// Of the listeners in the newest reading of each namespace.
    pub fn of_newest(obs: &'a Observation) -> Self {
        let newest =
            obs.netns.iter().flat_map(|(netns, view)| view.listeners.last().into_iter().flatten().map(|listener| (*netns, listener)));
        Self::of(obs, newest.collect())
    }

    /// Of these listeners, without those of the host's own services.
    pub(super) fn of(obs: &'a Observation, mut listeners: Vec<ListenerRef<'a>>) -> Self {
        let held = services::held(obs);
        listeners.retain(|(_, listener)| !services::is_one(listener, &held));
        let mut by_port: BTreeMap<u16, Vec<ListenerRef<'a>>> = BTreeMap::new();
        for (netns, listener) in &listeners {
            if let ListenerAddress::Tcp(_, port) = listener.address {
                by_port.entry(port).or_default().push((*netns, listener));
            }
        }
        Self { obs, listeners, by_port, translations: Translations::of(obs) }
    }

    /// All listeners, by namespace.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerRef<'a>> {
        self.listeners.iter().copied()
    }

    /// True if any namespace has a TCP listener at this port.
    pub fn has_port(&self, port: u16) -> bool {
        self.by_port.contains_key(&port)
    }

    /// True if a listener of the namespace accepted this TCP socket: the peer called.
    pub fn is_accepted(&self, netns: NetnsId, address: &SocketAddress) -> bool {
        let SocketAddress::Tcp { local, .. } = address else { return false };
        self.at_port(local.1).any(|(other, listener)| other == netns && listener.accepts(address))
    }

    /// The listeners of a namespace that may have accepted this TCP socket.
    pub(super) fn accepting(&self, netns: NetnsId, address: &SocketAddress) -> impl Iterator<Item = ListenerRef<'a>> {
        let port = if let SocketAddress::Tcp { local, .. } = address { Some(local.1) } else { None };
        let accepts = move |(other, listener): &ListenerRef<'a>| *other == netns && listener.accepts(address);
        port.into_iter().flat_map(|port| self.at_port(port)).filter(accepts)
    }

    /// The listeners that a TCP connection from `netns` reaches without translation. For a loopback address, namespace `named` counts as `netns` too.
    pub fn answering(&self, netns: NetnsId, (ip, port): Endpoint, named: Option<NetnsId>) -> impl Iterator<Item = ListenerRef<'a>> {
        let reaches = move |(other, listener): &ListenerRef<'a>| {
            answers(&self.obs.netns[other], *other == netns || named == Some(*other), listener, ip, port)
        };
        self.at_port(port).filter(reaches)
    }

    /// The unix listeners with this path.
    pub fn at_path(&self, path: &str) -> impl Iterator<Item = ListenerRef<'a>> {
        self.listeners().filter(move |(_, listener)| matches!(&listener.address, ListenerAddress::Unix(bound) if bound == path))
    }

    /// The listeners that the configurations of these masters in `netns` pass requests to.
    pub fn configured(&self, masters: &[u32], netns: NetnsId) -> Vec<ListenerRef<'a>> {
        let servers = masters.iter().filter_map(|pid| self.obs.servers.get(pid)?.config.last());
        let targets: Vec<&ListenerAddress> = servers.flat_map(|config| config.passes_to()).collect();
        let is_named = |(other, listener): &ListenerRef<'a>| {
            targets.iter().any(|target| names_listener(&self.obs.netns[other], *other == netns, listener, target))
        };
        self.listeners().filter(is_named).collect()
    }

    fn at_port(&self, port: u16) -> impl Iterator<Item = ListenerRef<'a>> {
        self.by_port.get(&port).into_iter().flatten().copied()
    }
}
