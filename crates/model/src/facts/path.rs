//! The request's path, discovered from what was read: URL -> listener -> processes -> their outgoing peers -> the next listener, and so on.

mod target;
mod translation;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub use translation::{ArrivalAddress, Endpoint, Hop, Translations};

use crate::facts::TierId;
use crate::observation::{Listener, ListenerAddress, NetnsId, NetnsView, Observation, Socket, SocketAddress, UnixPeer};
use crate::output::report::Request;

/// Tiers followed at most, so that a ring of servers ends.
const DEPTH_MAX: usize = 8;

/// Connections of a user that must have been seen for them to be taken for a tier's of the same user.
const SEEN_MIN: usize = 5;

/// A listener in its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedListener {
    /// The namespace.
    pub netns: NetnsId,
    /// The listener as last seen.
    pub listener: Listener,
}

/// A group of processes that share listeners: one server of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// Its place on the path.
    pub id: TierId,
    /// Name, unique on the path: the program's name, with a number where two tiers run the same program.
    pub name: String,
    /// The namespace of its first listener.
    pub netns: NetnsId,
    /// The listeners through which requests reach it.
    pub listeners: Vec<PlacedListener>,
    /// Its processes; empty where they could not be read.
    pub pids: Vec<u32>,
    /// Indices of the tiers it calls.
    pub upstreams: Vec<usize>,
    /// Those of `upstreams` to which no connection was seen: its configuration names them.
    pub configured: Vec<usize>,
}

/// The request's path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// Tiers, outermost first. Empty where no listener on this host answers for the target.
    pub tiers: Vec<Tier>,
    /// Namespaces that all have a listener for the target, where more than one has and none is nearer: the path is not followed then.
    pub ambiguous: Vec<NetnsId>,
    /// The translations that connections pass on their way to the first tier and between tiers.
    pub translated: Vec<Hop>,
}

impl Path {
    /// True for the tier that the clients call.
    pub fn is_first(&self, tier: &Tier) -> bool {
        self.tiers.first().is_some_and(|first| first.id == tier.id)
    }
}

/// Follows the request from the target of `obs` through every tier that was read.
pub fn discover(obs: &Observation) -> Path {
    let translations = Translations::of(obs);
    let found = target::find(obs, &translations);
    if !found.ambiguous.is_empty() {
        return Path { ambiguous: found.ambiguous.into_iter().collect(), ..Path::default() };
    }
    let mut path = Path { translated: found.hops, ..Path::default() };
    if !found.listeners.is_empty() {
        Walk { obs, listeners: all_listeners(obs), translations, path: &mut path }.follow(found.listeners, None, 0);
    }
    name_tiers(obs, &mut path);
    path
}

/// True where a connection to `target` made in namespace `client` ends at `listener` of namespace `netns`.
pub fn answers(view: &NetnsView, same_netns: bool, listener: &Listener, target: IpAddr, port: u16) -> bool {
    let ListenerAddress::Tcp(bound, bound_port) = listener.address else { return false };
    if bound_port != port {
        return false;
    }
    let target = target.to_canonical();
    let bound = bound.to_canonical();
    let covers =
        bound == target || (bound.is_unspecified() && (bound.is_ipv4() == target.is_ipv4() || (bound.is_ipv6() && !listener.v6_only)));
    covers && is_local(view, same_netns, target)
}

/// True where `ip` is an address of the namespace itself. Loopback is local everywhere, but only to a client inside.
pub fn is_local(view: &NetnsView, same_netns: bool, ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() {
        return same_netns;
    }
    view.addresses.last().is_some_and(|addresses| addresses.iter().any(|address| address.ip.to_canonical() == ip))
}

/// The listeners of a namespace as last seen; one that was there at first and went away still counts, for its queue was on the path.
fn newest_listeners(view: &NetnsView) -> impl Iterator<Item = &Listener> {
    let mut newest: BTreeMap<u64, &Listener> = BTreeMap::new();
    for listener in view.listeners.values().flatten() {
        newest.insert(listener.inode, listener);
    }
    newest.into_values()
}

fn all_listeners(obs: &Observation) -> Vec<PlacedListener> {
    let mut all = Vec::new();
    for (&netns, view) in &obs.netns {
        all.extend(newest_listeners(view).map(|listener| PlacedListener { netns, listener: listener.clone() }));
    }
    all
}

/// How it is known that a tier calls another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// A connection was seen.
    Seen,
    /// The configuration names it.
    Configured,
}

/// True where a configured address names a listener: the namespaces' addresses decide for TCP; /var/run is /run (Filesystem Hierarchy
/// Standard 3.0).
pub fn names_listener(view: &NetnsView, same_netns: bool, listener: &Listener, target: &ListenerAddress) -> bool {
    match (target, &listener.address) {
        (ListenerAddress::Tcp(ip, port), _) => answers(view, same_netns, listener, *ip, *port),
        (ListenerAddress::Unix(path), ListenerAddress::Unix(bound)) => plain(path) == plain(bound),
        _ => false,
    }
}

/// True where the request's own unix socket may be this listener's. A path is one in every network namespace (unix(7)); an abstract name is its
/// namespace's own.
pub fn is_asked(request: &Request, netns: NetnsId, listener: &Listener) -> bool {
    let ListenerAddress::Unix(bound) = &listener.address else { return false };
    let named = request.unix.iter().any(|name| plain(name) == plain(bound));
    let reaches = !bound.starts_with('@') || netns == request.client_netns;
    named && reaches && request.server_netns.is_none_or(|server| server == netns)
}

/// A path as the kernel binds it: /var/run is a link to /run.
pub(crate) fn plain(path: &str) -> &str {
    path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(path)
}

/// True where a configured address is the one that a listener is bound to.
pub(crate) fn is_bound_to(configured: &ListenerAddress, bound: &ListenerAddress) -> bool {
    match (configured, bound) {
        (ListenerAddress::Tcp(ip, port), ListenerAddress::Tcp(bound, bound_port)) => {
            port == bound_port && ip.to_canonical() == bound.to_canonical()
        }
        (ListenerAddress::Unix(path), ListenerAddress::Unix(bound)) => plain(path) == plain(bound),
        _ => false,
    }
}

struct Walk<'a> {
    obs: &'a Observation,
    listeners: Vec<PlacedListener>,
    translations: Translations,
    path: &'a mut Path,
}

impl Walk<'_> {
    /// Adds the tiers behind `listeners` and what they call; `from` is the tier that calls them.
    fn follow(&mut self, listeners: Vec<PlacedListener>, from: Option<(usize, Edge)>, depth: usize) {
        for (pids, listeners) in self.by_owner(listeners) {
            let (index, fresh) = self.tier_index(pids, listeners);
            if let Some((from, edge)) = from
                && from != index
                && !self.path.tiers[from].upstreams.contains(&index)
            {
                self.path.tiers[from].upstreams.push(index);
                if edge == Edge::Configured {
                    self.path.tiers[from].configured.push(index);
                }
            }
            if fresh && depth < DEPTH_MAX {
                // Connections that live a millisecond are easily missed. Where some were seen they tell which of the targets this request has.
                let (mut called, mut edge) = (self.called_by(index), Edge::Seen);
                if called.listeners.is_empty() {
                    called = self.called_by_user(index);
                }
                if called.listeners.is_empty() {
                    (called.listeners, edge) = (self.configured_for(index), Edge::Configured);
                }
                called.hops.retain(|hop| !self.path.translated.contains(hop));
                self.path.translated.extend(called.hops);
                if !called.listeners.is_empty() {
                    self.follow(called.listeners, Some((index, edge)), depth + 1);
                }
            }
        }
    }

    /// Groups listeners by the processes that hold them.
    fn by_owner(&self, listeners: Vec<PlacedListener>) -> Vec<(Vec<u32>, Vec<PlacedListener>)> {
        let mut groups: Vec<(Vec<u32>, Vec<PlacedListener>)> = Vec::new();
        for placed in listeners {
            let pids = self.owners(placed.listener.inode);
            let shares = |group: &&mut (Vec<u32>, Vec<PlacedListener>)| {
                // Workers with a listener each (SO_REUSEPORT) are one tier: they listen on one address and are one family.
                let same_address =
                    group.1.iter().any(|other| other.netns == placed.netns && other.listener.address == placed.listener.address);
                same_address || pids.iter().any(|pid| group.0.contains(pid))
            };
            match groups.iter_mut().find(shares) {
                Some(group) => {
                    group.0.extend(pids);
                    group.0.sort_unstable();
                    group.0.dedup();
                    group.1.push(placed);
                }
                None => groups.push((pids, vec![placed])),
            }
        }
        groups
    }

    fn owners(&self, inode: u64) -> Vec<u32> {
        let holds = |files: &crate::observation::OpenFiles| files.sockets.contains(&inode);
        self.obs.processes.iter().filter(|(_, process)| process.files.values().any(holds)).map(|(&pid, _)| pid).collect()
    }

    /// The tier of these processes, and whether it was made just now.
    fn tier_index(&mut self, pids: Vec<u32>, listeners: Vec<PlacedListener>) -> (usize, bool) {
        let known = self.path.tiers.iter().position(|tier| {
            tier.listeners.iter().any(|placed| listeners.contains(placed)) || pids.iter().any(|pid| tier.pids.contains(pid))
        });
        match known {
            Some(index) => {
                let tier = &mut self.path.tiers[index];
                for placed in listeners {
                    if !tier.listeners.iter().any(|other| other.netns == placed.netns && other.listener.inode == placed.listener.inode) {
                        tier.listeners.push(placed);
                    }
                }
                (index, false)
            }
            None => {
                let netns = listeners.first().map(|placed| placed.netns).unwrap_or_default();
                let id = TierId(self.path.tiers.len());
                self.path.tiers.push(Tier {
                    id,
                    name: String::new(),
                    netns,
                    listeners,
                    pids,
                    upstreams: Vec::new(),
                    configured: Vec::new(),
                });
                (id.0, true)
            }
        }
    }

    /// The inodes of all sockets that some of the processes were seen to hold.
    fn held_by(&self, is_one: impl Fn(&u32) -> bool) -> BTreeSet<u64> {
        let processes = self.obs.processes.iter().filter(|(pid, _)| is_one(pid)).map(|(_, process)| process);
        processes.flat_map(|process| process.files.values()).flat_map(|files| files.sockets.iter().copied()).collect()
    }

    /// The listeners to which the processes of a tier hold outgoing connections.
    fn called_by(&self, index: usize) -> Called {
        let tier = &self.path.tiers[index];
        let held = self.held_by(|pid| tier.pids.contains(pid));
        let mut called = Called::default();
        for (&netns, view) in &self.obs.netns {
            for sockets in view.sockets.values() {
                let unix_paths = unix_paths(sockets);
                let ours = sockets.iter().filter(|socket| socket.inode != 0 && held.contains(&socket.inode));
                let mut reached: Vec<Reached<'_>> = ours.flat_map(|socket| self.peers(netns, &socket.address, &unix_paths)).collect();
                reached.extend(sockets.iter().flat_map(|socket| self.waited_for(&socket.address, &held)).map(Reached::directly));
                for reached in reached.into_iter().filter(|reached| !is_own(tier, reached.placed)) {
                    called.add(&reached);
                }
            }
        }
        called
    }

    /// Where no connection could be told to be the tier's own, because each lives for less than a reading takes: the listeners to which
    /// connections of its user go, if many were seen, and none of them is held by others: a web server and the application behind it often run as one user. Root's are
    /// everybody's and tell nothing.
    fn called_by_user(&self, index: usize) -> Called {
        let tier = &self.path.tiers[index];
        let identity = |pid: &u32| self.obs.processes.get(pid).and_then(|process| process.identity.first());
        let users: BTreeSet<u32> = tier.pids.iter().filter_map(identity).map(|identity| identity.uid).filter(|uid| *uid != 0).collect();
        let mut called = Called::default();
        let Some(view) = self.obs.netns.get(&tier.netns) else { return called };
        let others = self.held_by(|pid| !tier.pids.contains(pid));
        let mut counts: BTreeMap<(NetnsId, u64), (Option<usize>, Reached<'_>)> = BTreeMap::new();
        let none = BTreeMap::new();
        for socket in
            view.sockets.values().flatten().filter(|socket| socket.inode != 0 && socket.uid.is_some_and(|uid| users.contains(&uid)))
        {
            for reached in self.peers(tier.netns, &socket.address, &none) {
                let seen = counts.entry((reached.placed.netns, reached.placed.listener.inode)).or_insert((Some(0), reached));
                seen.0 = seen.0.filter(|_| !others.contains(&socket.inode)).map(|count| count + 1);
            }
        }
        let many =
            counts.into_values().filter(|(count, reached)| count.is_some_and(|count| count >= SEEN_MIN) && !is_own(tier, reached.placed));
        many.for_each(|(_, reached)| called.add(&reached));
        called
    }

    /// The listeners to which the configuration of a tier's master passes requests.
    fn configured_for(&self, index: usize) -> Vec<PlacedListener> {
        let tier = &self.path.tiers[index];
        let servers = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)?.nginx());
        let targets: Vec<&ListenerAddress> = servers.flat_map(|nginx| &nginx.passes).flat_map(|pass| &pass.servers).collect();
        let named = |placed: &&PlacedListener| {
            let view = &self.obs.netns[&placed.netns];
            let same = placed.netns == tier.netns;
            !is_own(tier, placed) && targets.iter().any(|target| names_listener(view, same, &placed.listener, target))
        };
        self.listeners.iter().filter(named).cloned().collect()
    }

    /// The unix listeners at which one of the held sockets still waits to be accepted: the kernel shows the waiting end under the
    /// listener's path, with the dialling end as its peer.
    fn waited_for(&self, address: &SocketAddress, held: &BTreeSet<u64>) -> Vec<&PlacedListener> {
        match address {
            SocketAddress::Unix { path: Some(path), peer: UnixPeer::Inode(peer) } if held.contains(peer) => self.bound_to(path),
            _ => Vec::new(),
        }
    }

    fn bound_to(&self, path: &str) -> Vec<&PlacedListener> {
        let bound = |placed: &&PlacedListener| matches!(&placed.listener.address, ListenerAddress::Unix(bound) if bound == path);
        self.listeners.iter().filter(bound).collect()
    }

    /// The listeners at the other end of a socket held in `netns`.
    fn peers(&self, netns: NetnsId, address: &SocketAddress, unix_paths: &BTreeMap<u64, &String>) -> Vec<Reached<'_>> {
        match address {
            SocketAddress::Tcp { remote, .. } => {
                // A socket whose local end is a listener's is an accepted one: its peer called us.
                if self.listeners.iter().any(|placed| placed.netns == netns && placed.listener.accepts(address)) {
                    return Vec::new();
                }
                let direct: Vec<Reached<'_>> = self.answering(netns, *remote).map(Reached::directly).collect();
                if direct.is_empty() { self.sent_on(netns, *remote) } else { direct }
            }
            SocketAddress::Unix { peer: UnixPeer::Inode(peer), path: None } => {
                unix_paths.get(peer).into_iter().flat_map(|path| self.bound_to(path)).map(Reached::directly).collect()
            }
            SocketAddress::Unix { .. } => Vec::new(),
        }
    }

    /// The listeners at which a connection ends that is made in `netns`.
    fn answering(&self, netns: NetnsId, (ip, port): Endpoint) -> impl Iterator<Item = &PlacedListener> {
        let reached = move |placed: &&PlacedListener| {
            let view = &self.obs.netns[&placed.netns];
            answers(view, placed.netns == netns, &placed.listener, ip, port)
        };
        self.listeners.iter().filter(reached)
    }

    /// The same for one whose address is translated on its way.
    fn sent_on(&self, netns: NetnsId, remote: Endpoint) -> Vec<Reached<'_>> {
        let mut reached = Vec::new();
        for place in self.translations.places(netns, remote).into_iter().filter(|place| !place.hops.is_empty() && !place.is_passed) {
            let here = self.answering(place.from(netns), place.endpoint);
            reached.extend(here.map(|placed| Reached { placed, hops: place.hops.clone() }));
        }
        reached
    }
}

/// A listener at the other end of a connection.
struct Reached<'a> {
    placed: &'a PlacedListener,
    /// The translations on the way there.
    hops: Vec<Hop>,
}

impl<'a> Reached<'a> {
    fn directly(placed: &'a PlacedListener) -> Self {
        Self { placed, hops: Vec::new() }
    }
}

/// What a tier calls.
#[derive(Default)]
struct Called {
    listeners: Vec<PlacedListener>,
    hops: Vec<Hop>,
}

impl Called {
    fn add(&mut self, reached: &Reached<'_>) {
        if !self.listeners.contains(reached.placed) {
            self.listeners.push(reached.placed.clone());
        }
        for hop in &reached.hops {
            if !self.hops.contains(hop) {
                self.hops.push(*hop);
            }
        }
    }
}

/// True where a listener is one of the tier's own.
fn is_own(tier: &Tier, placed: &PlacedListener) -> bool {
    tier.listeners.iter().any(|own| own.netns == placed.netns && own.listener.inode == placed.listener.inode)
}

/// Paths of bound unix sockets by inode.
fn unix_paths<'a>(sockets: &'a [Socket]) -> BTreeMap<u64, &'a String> {
    let path = |socket: &'a Socket| match &socket.address {
        SocketAddress::Unix { path: Some(path), .. } => Some((socket.inode, path)),
        _ => None,
    };
    sockets.iter().filter_map(path).collect()
}

/// Names each tier after its program: the oldest process's command, without a trailing version ("php-fpm8.2" is "php-fpm").
fn name_tiers(obs: &Observation, path: &mut Path) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for tier in &mut path.tiers {
        let identity = |pid: &u32| obs.processes.get(pid).and_then(|process| process.identity.first());
        let oldest = tier.pids.iter().filter_map(identity).min_by_key(|identity| (identity.start_ticks, identity.pid));
        let name = match oldest {
            Some(identity) => {
                let base = identity.comm.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
                if base.is_empty() { identity.comm.clone() } else { base.to_owned() }
            }
            None => tier.listeners.first().map_or_else(|| "server".to_owned(), |placed| placed.listener.address.to_string()),
        };
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        tier.name = if *count == 1 { name } else { format!("{name}-{count}") };
    }
}
