//! The listeners that the request's target leads to, directly or through translations of its address.

use std::collections::BTreeSet;

use super::translation::{ArrivalAddress, Hop, Translations};
use super::{PlacedListener, answers, holders_of, is_asked, newest_listeners, seen_listeners};
use crate::observation::{ListenerAddress, NetnsId, Observation, SocketAddress};

/// The listeners of the request's target.
#[derive(Debug, Default)]
pub(super) struct TargetListeners {
    /// The listeners that its connections reach.
    pub(super) listeners: Vec<PlacedListener>,
    /// Namespaces that each have a listener for it, if it is not known which one is meant.
    pub(super) ambiguous: BTreeSet<NetnsId>,
    /// The translations on the way.
    pub(super) hops: Vec<Hop>,
}

impl TargetListeners {
    /// Adds the listeners of one address.
    fn add(&mut self, place: &ArrivalAddress, at: At) {
        match at {
            At::Sure(listeners) => self.listeners.extend(listeners),
            At::Ambiguous(namespaces) => self.ambiguous.extend(namespaces),
        }
        for hop in &place.hops {
            if !self.hops.contains(hop) {
                self.hops.push(*hop);
            }
        }
    }
}

/// The listeners of one address.
enum At {
    Sure(Vec<PlacedListener>),
    Ambiguous(BTreeSet<NetnsId>),
}

/// Finds the listeners that connections to the target reach. The address itself counts if a listener is there and connections are not translated further, or
/// if some were accepted there nevertheless (a proxy in user space that takes some of them). Otherwise the translated addresses count.
pub(super) fn find(obs: &Observation, translations: &Translations) -> TargetListeners {
    let request = &obs.request;
    if !request.unix.is_empty() {
        return at_socket(obs);
    }
    let mut found = TargetListeners::default();
    let mut places: Vec<ArrivalAddress> = Vec::new();
    for target in &request.addresses {
        places.extend(translations.places(request.client_netns, (*target, request.port)));
    }
    let heard: Vec<(&ArrivalAddress, Vec<PlacedListener>)> =
        places.iter().map(|place| (place, listeners(obs, place))).filter(|(_, listeners)| !listeners.is_empty()).collect();
    let is_end = |(place, listeners): &&(&ArrivalAddress, Vec<PlacedListener>)| !place.is_passed || accepts(obs, place, listeners);
    let mut ends: Vec<&(&ArrivalAddress, Vec<PlacedListener>)> = heard.iter().filter(is_end).collect();
    // If no listener on this host has the translated address, the last address with a listener is as far as connections can be followed.
    if ends.is_empty() {
        ends.extend(heard.last());
    }
    // All addresses of one name are one target, unless another server listens at the later ones: connections go to the first.
    let (direct, translated): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(place, _)| place.hops.is_empty());
    if let Some((place, first)) = direct.first() {
        let own = |listeners: &Vec<PlacedListener>| listeners.iter().any(|listener| are_of_one(obs, first, listener));
        let all: Vec<PlacedListener> =
            direct.iter().filter(|(_, listeners)| own(listeners)).flat_map(|(_, listeners)| listeners.clone()).collect();
        found.add(place, pick(obs, place, &all));
    }
    for (place, listeners) in translated {
        found.add(place, pick(obs, place, listeners));
    }
    let key = |placed: &PlacedListener| (placed.netns, placed.listener.address.clone(), placed.listener.inode);
    found.listeners.sort_by_key(key);
    found.listeners.dedup_by(|a, b| a.netns == b.netns && a.listener.inode == b.listener.inode);
    found
}

/// True unless a listener's processes are known and hold none of these.
fn are_of_one(obs: &Observation, listeners: &[PlacedListener], other: &PlacedListener) -> bool {
    let holders = holders_of(obs, other.listener.inode);
    let of: BTreeSet<u32> = listeners.iter().flat_map(|placed| holders_of(obs, placed.listener.inode)).collect();
    holders.is_empty() || of.is_empty() || holders.iter().any(|pid| of.contains(pid))
}

/// The listeners at the requested unix socket. Containers may each have a socket of the same path: then the client's own namespace is meant.
fn at_socket(obs: &Observation) -> TargetListeners {
    let asked = seen_listeners(obs).filter(|(netns, listener)| is_asked(&obs.request, *netns, listener));
    let mut listeners: Vec<PlacedListener> = asked.map(PlacedListener::of).collect();
    let mut namespaces: BTreeSet<NetnsId> = listeners.iter().map(|placed| placed.netns).collect();
    if namespaces.contains(&obs.request.client_netns) {
        namespaces = BTreeSet::from([obs.request.client_netns]);
        listeners.retain(|placed| namespaces.contains(&placed.netns));
    }
    match namespaces.len() {
        0 | 1 => TargetListeners { listeners, ..TargetListeners::default() },
        _ => TargetListeners { ambiguous: namespaces, ..TargetListeners::default() },
    }
}

/// Every listener that an address reaches, in any namespace.
fn listeners(obs: &Observation, place: &ArrivalAddress) -> Vec<PlacedListener> {
    let request = &obs.request;
    let (ip, port) = place.endpoint;
    let mut found = Vec::new();
    for (&netns, view) in &obs.netns {
        if request.server_netns.is_some_and(|named| named != netns) {
            continue;
        }
        // For a loopback target a namespace named by the user replaces the client's own.
        let same = netns == place.from(request.client_netns) || (place.hops.is_empty() && request.server_netns == Some(netns));
        // The kernel prefers a listener bound to this very address over one bound to all addresses.
        let mut here: Vec<_> = newest_listeners(view).filter(|listener| answers(view, same, listener, ip, port)).collect();
        let specific = |address: &ListenerAddress| matches!(address, ListenerAddress::Tcp(ip, _) if !ip.is_unspecified());
        if here.iter().any(|listener| specific(&listener.address)) {
            here.retain(|listener| specific(&listener.address));
        }
        found.extend(here.into_iter().map(|listener| PlacedListener { netns, listener: listener.clone() }));
    }
    found
}

/// Of listeners in several namespaces, those in the namespace that the connection comes from. If the address was translated, several namespaces of a host may
/// use the same private address: then the listeners that accepted connections, if they are in one namespace only.
fn pick(obs: &Observation, place: &ArrivalAddress, listeners: &[PlacedListener]) -> At {
    let namespaces: BTreeSet<NetnsId> = listeners.iter().map(|placed| placed.netns).collect();
    let of = |netns: NetnsId| -> Vec<PlacedListener> { listeners.iter().filter(|placed| placed.netns == netns).cloned().collect() };
    if namespaces.len() == 1 {
        return At::Sure(listeners.to_vec());
    }
    let from = place.from(obs.request.client_netns);
    if namespaces.contains(&from) {
        return At::Sure(of(from));
    }
    let mut accepting = namespaces.iter().copied().filter(|netns| accepts_in(obs, *netns, place));
    match (accepting.next(), accepting.next()) {
        (Some(only), None) if !place.hops.is_empty() => At::Sure(of(only)),
        _ => At::Ambiguous(namespaces),
    }
}

fn accepts(obs: &Observation, place: &ArrivalAddress, listeners: &[PlacedListener]) -> bool {
    listeners.iter().any(|placed| accepts_in(obs, placed.netns, place))
}

/// True if a namespace has a connection that was accepted at this address.
fn accepts_in(obs: &Observation, netns: NetnsId, place: &ArrivalAddress) -> bool {
    let Some(view) = obs.netns.get(&netns) else { return false };
    let (ip, port) = place.endpoint;
    let here = |local: &(std::net::IpAddr, u16)| local.1 == port && local.0.to_canonical() == ip;
    let open = view.sockets.values().flatten().any(|socket| matches!(&socket.address, SocketAddress::Tcp { local, .. } if here(local)));
    open || view.time_waits.values().flat_map(|waits| &waits.accepted).any(|waiting| here(&waiting.local))
}
