//! The request's path, discovered from readings: URL -> listener -> processes -> their outgoing connections -> the next listener, and so on.

mod asked;
mod by_user;
mod children;
pub(crate) mod egress;
mod names;
mod reach;
mod runtime;
mod services;
pub(crate) mod shaper;
mod target;
mod translation;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub use reach::{ListenerRef, Reach};
pub use runtime::has_one_lock;
pub(crate) use runtime::{Runtime, words_for};
pub use translation::{ArrivalAddress, Endpoint, Hop, Translations};

use crate::facts::TierId;
use crate::observation::Request;
use crate::observation::{
    Listener, ListenerAddress, NetnsId, NetnsView, Observation, ServerConfig, Socket, SocketAddress, TcpState, UnixPeer,
};

/// Most tiers followed in a row, so that a ring of servers ends.
const DEPTH_MAX: usize = 8;

/// A listener in its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedListener {
    /// Its namespace.
    pub netns: NetnsId,
    /// The listener as last seen.
    pub listener: Listener,
}

impl PlacedListener {
    pub(crate) fn of((netns, listener): ListenerRef<'_>) -> Self {
        Self { netns, listener: listener.clone() }
    }

    /// True if an address reaches it, as a configuration in the namespace `from` names it.
    fn is_named(&self, obs: &Observation, from: NetnsId, address: &ListenerAddress) -> bool {
        obs.netns.get(&self.netns).is_some_and(|view| names_listener(view, self.netns == from, &self.listener, address))
    }
}

/// A server on the path: a group of processes that share listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// Its index on the path.
    pub id: TierId,
    /// Name, unique on the path: the program's name, with a number if several tiers run the same program.
    pub name: String,
    /// The namespace of its first listener.
    pub netns: NetnsId,
    /// The listeners that receive the requests.
    pub listeners: Vec<PlacedListener>,
    /// Its processes; empty if they could not be read.
    pub pids: Vec<u32>,
    /// The members of `pids` that hold no listener of it: their parent, which does, left connections that it accepted to them (a database's, one for each connection).
    pub children: Vec<u32>,
    /// Indices of the tiers it calls.
    pub upstreams: Vec<usize>,
    /// The members of `upstreams` known only from its configuration: no connection to them was seen.
    pub configured: Vec<usize>,
    /// The members of `upstreams` known only from the user of connections to them, whose holder was not seen: another program of that user may have made them.
    pub supposed: Vec<usize>,
    /// Addresses at which another server listens, although a listener of this tier is bound to all addresses: the kernel gives that server their connections.
    pub apart: Vec<(NetnsId, Endpoint)>,
}

/// The request's path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// Tiers, outermost first. Empty if no listener on this host answers for the target.
    pub tiers: Vec<Tier>,
    /// Namespaces that each have a listener for the target, if there is more than one and none is nearer. The path is not followed then.
    pub ambiguous: Vec<NetnsId>,
    /// Translations of addresses on the way to the first tier and between tiers.
    pub translated: Vec<Hop>,
    /// Listeners to which the first tier passes requests, but none of those that were asked for.
    pub elsewhere: Vec<PlacedListener>,
}

impl Tier {
    /// True if a socket of the tier's namespace is a connection that one of its listeners accepted or will accept.
    pub(crate) fn accepts(&self, address: &SocketAddress) -> bool {
        self.listeners.iter().any(|placed| placed.listener.accepts(address))
            && !matches!(address, SocketAddress::Tcp { local, .. } if self.is_apart(self.netns, *local))
    }

    /// True if connections to this address of a namespace are another server's.
    pub(crate) fn is_apart(&self, netns: NetnsId, (ip, port): Endpoint) -> bool {
        self.apart.iter().any(|(other, apart)| *other == netns && *apart == (ip.to_canonical(), port))
    }

    /// True if an address reaches one of its listeners, as a configuration in the namespace `from` names it.
    pub(crate) fn is_named(&self, obs: &Observation, from: NetnsId, address: &ListenerAddress) -> bool {
        self.listeners.iter().any(|placed| placed.is_named(obs, from, address))
    }

    /// True if it is known which processes it has. If not, nothing is known of their threads, of the CPU time that they use, and of the servers that they call.
    pub(crate) fn is_known(&self) -> bool {
        !self.pids.is_empty()
    }
}

impl Path {
    /// True for a tier to which only suppositions lead ([`Tier::supposed`]): it may be no part of the path.
    pub(crate) fn is_supposed(&self, tier: TierId) -> bool {
        if self.tiers.iter().all(|tier| tier.supposed.is_empty()) {
            return false;
        }
        let is_called = |index: usize| self.tiers.iter().any(|caller| caller.id.0 != index && caller.upstreams.contains(&index));
        let mut open: Vec<usize> = (0..self.tiers.len()).filter(|index| *index == 0 || !is_called(*index)).collect();
        let mut sure: BTreeSet<usize> = BTreeSet::new();
        while let Some(index) = open.pop() {
            if sure.insert(index) {
                let of = &self.tiers[index];
                open.extend(of.upstreams.iter().filter(|upstream| !of.supposed.contains(upstream)));
            }
        }
        !sure.contains(&tier.0)
    }

    /// True if a server of the path calls the first one: requests that are not the clients' may be its own.
    pub(crate) fn calls_itself(&self) -> bool {
        self.callers(TierId(0)).next().is_some()
    }

    /// The tiers that call this one, itself among them if it does.
    pub(crate) fn callers(&self, called: TierId) -> impl Iterator<Item = &Tier> {
        self.tiers.iter().filter(move |tier| tier.upstreams.contains(&called.0))
    }

    /// True for the tier that the clients connect to.
    pub fn is_first(&self, tier: &Tier) -> bool {
        self.tiers.first().is_some_and(|first| first.id == tier.id)
    }
}

/// Follows the request from the target of `obs` through every tier that was read.
pub fn discover(obs: &Observation) -> Path {
    let listeners: Vec<ListenerRef<'_>> = seen_listeners(obs).collect();
    let reach = Reach::of(obs, listeners.clone());
    let found = target::find(obs, &reach.translations);
    if !found.ambiguous.is_empty() {
        return Path { ambiguous: found.ambiguous.into_iter().collect(), ..Path::default() };
    }
    let mut path = Path { translated: found.hops, ..Path::default() };
    if !found.listeners.is_empty() {
        Walk { obs, reach, path: &mut path }.follow(found.listeners, None, 0);
    }
    set_apart(&listeners, &mut path);
    names::give(obs, &mut path);
    path
}

/// True if a connection to `target` reaches `listener`. `view` is the listener's namespace; `same_netns` says whether the connection is made in it.
pub fn answers(view: &NetnsView, same_netns: bool, listener: &Listener, target: IpAddr, port: u16) -> bool {
    listener.covers((target, port)) && is_local(view, same_netns, target.to_canonical())
}

/// True if `ip` is an address of the namespace itself. A loopback address is local only to a client in the same namespace.
pub fn is_local(view: &NetnsView, same_netns: bool, ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() {
        return same_netns;
    }
    // Who may not configure the host can give a namespace of their own any address, also another server's; no packet from elsewhere comes there.
    let is_reached = same_netns || view.made_by.is_none();
    is_reached && view.addresses.last().is_some_and(|addresses| addresses.iter().any(|address| address.ip.to_canonical() == ip))
}

/// The listeners of a namespace as last seen. A listener that disappeared still counts, because its queue was on the path.
fn newest_listeners(view: &NetnsView) -> impl Iterator<Item = &Listener> {
    let mut newest: BTreeMap<u64, &Listener> = BTreeMap::new();
    for listener in view.listeners.values().flatten() {
        newest.insert(listener.inode, listener);
    }
    newest.into_values()
}

/// [`newest_listeners`] of all namespaces.
fn seen_listeners(obs: &Observation) -> impl Iterator<Item = ListenerRef<'_>> {
    obs.netns.iter().flat_map(|(netns, view)| newest_listeners(view).map(|listener| (*netns, listener)))
}

/// The processes that were seen to hold a socket.
fn holders_of(obs: &Observation, inode: u64) -> Vec<u32> {
    let holds = |files: &crate::observation::OpenFiles| files.sockets.contains(&inode);
    obs.processes.iter().filter(|(_, process)| process.files.values().any(holds)).map(|(&pid, _)| pid).collect()
}

/// Those of these processes that are the parent of another one.
pub(crate) fn starters(obs: &Observation, pids: &[u32]) -> BTreeSet<u32> {
    let parents: BTreeSet<u32> = pids.iter().filter_map(|pid| Some(obs.processes.get(pid)?.identity.last()?.parent)).collect();
    pids.iter().copied().filter(|pid| parents.contains(pid)).collect()
}

/// The users of these processes, by number.
fn users(obs: &Observation, pids: &[u32]) -> BTreeSet<u32> {
    pids.iter().filter_map(|pid| Some(obs.processes.get(pid)?.identity.first()?.uid)).collect()
}

/// The users whose configuration a tier's servers have: those of their masters.
pub(crate) fn configured_by(obs: &Observation, tier: &Tier) -> BTreeSet<u32> {
    let masters: Vec<u32> = tier.pids.iter().copied().filter(|pid| obs.servers.contains_key(pid)).collect();
    users(obs, &masters)
}

/// How the call of one tier to another is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// From a connection.
    Seen,
    /// From the configuration.
    Configured,
    /// From the user of connections whose holder was not seen.
    Supposed,
}

/// True if a configured address reaches a listener. The namespaces' addresses decide for TCP. /var/run is /run (Filesystem Hierarchy Standard 3.0).
pub fn names_listener(view: &NetnsView, same_netns: bool, listener: &Listener, target: &ListenerAddress) -> bool {
    match (target, &listener.address) {
        (ListenerAddress::Tcp(ip, port), _) => answers(view, same_netns, listener, *ip, *port),
        (ListenerAddress::Unix(path), ListenerAddress::Unix(bound)) => plain(path) == plain(bound),
        _ => false,
    }
}

/// True if the request's own unix socket may be this listener's. A path is the same in every network namespace (unix(7)); an abstract name belongs to one
/// namespace.
pub fn is_asked(request: &Request, netns: NetnsId, listener: &Listener) -> bool {
    let ListenerAddress::Unix(bound) = &listener.address else { return false };
    let named = request.unix.iter().any(|name| plain(name) == plain(bound));
    let reaches = !bound.starts_with('@') || netns == request.client_netns;
    named && reaches && request.server_netns.is_none_or(|server| server == netns)
}

/// A path without the link /var/run, which leads to /run.
pub(crate) fn plain(path: &str) -> &str {
    path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(path)
}

/// True if a server with this configured address has the listener: the same address, or all addresses in both.
pub fn is_configured_at(configured: &ListenerAddress, bound: &ListenerAddress) -> bool {
    let all = |address: &ListenerAddress| match address {
        ListenerAddress::Tcp(ip, port) if ip.is_unspecified() => Some(*port),
        _ => None,
    };
    is_bound_to(configured, bound) || all(configured).is_some_and(|port| all(bound) == Some(port))
}

/// True if a configured address is the one that a listener is bound to.
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
    reach: Reach<'a>,
    path: &'a mut Path,
}

impl<'a> Walk<'a> {
    /// Adds the tiers behind `listeners` and what they call. `from` is the calling tier.
    fn follow(&mut self, listeners: Vec<PlacedListener>, from: Option<(usize, Edge)>, depth: usize) {
        for (pids, listeners) in self.by_owner(listeners) {
            let (index, fresh) = self.tier_index(pids, listeners);
            if let Some((from, edge)) = from
                && from != index
                && !self.path.tiers[from].upstreams.contains(&index)
            {
                self.path.tiers[from].upstreams.push(index);
                match edge {
                    Edge::Seen => {}
                    Edge::Configured => self.path.tiers[from].configured.push(index),
                    Edge::Supposed => self.path.tiers[from].supposed.push(index),
                }
            }
            if fresh && depth < DEPTH_MAX {
                // Connections that live for a millisecond are easily missed. Connections that were seen show which of the configured targets this request has.
                let (mut called, mut edge) = (self.called_by(index), Edge::Seen);
                self.leave_out_others(index, &mut called.listeners);
                if called.listeners.is_empty() {
                    (called, edge) = self.called_by_user(index);
                    self.leave_out_others(index, &mut called.listeners);
                }
                if called.listeners.is_empty() {
                    (called.listeners, edge) = (self.configured_for(index), Edge::Configured);
                    let seen = self.path.elsewhere.len();
                    self.leave_out_others(index, &mut called.listeners);
                    // Where nothing was seen to go, nothing is told of it.
                    self.path.elsewhere.truncate(seen);
                }
                let mut others = if edge == Edge::Seen { self.alternatives_to(index, &called.listeners) } else { Vec::new() };
                self.leave_out_others(index, &mut others);
                called.hops.retain(|hop| !self.path.translated.contains(hop));
                self.path.translated.extend(called.hops);
                if !called.listeners.is_empty() {
                    self.follow(called.listeners, Some((index, edge)), depth + 1);
                }
                if !others.is_empty() {
                    self.follow(others, Some((index, Edge::Configured)), depth + 1);
                }
            }
        }
    }

    /// Leaves out the listeners behind the first tier that the requests asked for cannot reach.
    fn leave_out_others(&mut self, index: usize, listeners: &mut Vec<PlacedListener>) {
        if index != 0 {
            return;
        }
        let (obs, tier) = (self.obs, self.path.tiers[index].clone());
        let others = listeners.extract_if(.., |placed| asked::is_for_others(obs, &tier, (placed.netns, &placed.listener)));
        for other in others {
            let is_known = |known: &PlacedListener| known.netns == other.netns && known.listener.inode == other.listener.inode;
            if !self.path.elsewhere.iter().any(is_known) {
                self.path.elsewhere.push(other);
            }
        }
    }

    /// Groups listeners by the processes that own them.
    fn by_owner(&self, listeners: Vec<PlacedListener>) -> Vec<(Vec<u32>, Vec<PlacedListener>)> {
        let mut groups: Vec<(Vec<u32>, Vec<PlacedListener>)> = Vec::new();
        for placed in listeners {
            let pids = holders_of(self.obs, placed.listener.inode);
            let shares = |group: &&mut (Vec<u32>, Vec<PlacedListener>)| {
                // Workers with a listener each (SO_REUSEPORT) are one tier: they listen on the same address.
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

    /// The tier of these processes, and whether it is new. Those that share nothing but the process which started them are servers of their own (the daemons of mod_wsgi beside the workers
    /// of Apache): it opened the listeners of both and serves at none.
    fn tier_index(&mut self, mut pids: Vec<u32>, listeners: Vec<PlacedListener>) -> (usize, bool) {
        for tier in &self.path.tiers {
            let starters = [starters(self.obs, &tier.pids), starters(self.obs, &pids)];
            let is_between = |pid: &u32| starters.iter().all(|starters| starters.contains(pid));
            let shared: Vec<&u32> = pids.iter().filter(|pid| tier.pids.contains(pid)).collect();
            if !shared.is_empty() && shared.into_iter().all(is_between) {
                pids.retain(|pid| !is_between(pid));
            }
        }
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
                let children = children::with_connections(self.obs, &pids, &listeners);
                pids.extend(&children);
                self.path.tiers.push(Tier {
                    id,
                    name: String::new(),
                    netns,
                    listeners,
                    pids,
                    children,
                    upstreams: Vec::new(),
                    configured: Vec::new(),
                    supposed: Vec::new(),
                    apart: Vec::new(),
                });
                (id.0, true)
            }
        }
    }

    /// The inodes of all sockets that some of the processes were seen to own.
    fn held_by(&self, is_one: impl Fn(&u32) -> bool) -> BTreeSet<u64> {
        let processes = self.obs.processes.iter().filter(|(pid, _)| is_one(pid)).map(|(_, process)| process);
        processes.flat_map(|process| process.files.values()).flat_map(|files| files.sockets.iter().copied()).collect()
    }

    /// The listeners that the processes of a tier have outgoing connections to.
    fn called_by(&self, index: usize) -> CalledListeners {
        let tier = &self.path.tiers[index];
        let held = self.held_by(|pid| tier.pids.contains(pid));
        let word = self.word_of(tier);
        let mut called = CalledListeners::default();
        for (&netns, view) in &self.obs.netns {
            for sockets in view.sockets.values() {
                let unix_paths = unix_paths(sockets);
                let ours = sockets.iter().filter(|socket| socket.inode != 0 && held.contains(&socket.inode));
                let of = |socket: &Socket| {
                    self.peers(netns, &socket.address, &unix_paths)
                        .into_iter()
                        .filter(|reached| self.shows(socket, &word, reached))
                        .collect::<Vec<_>>()
                };
                let mut reached: Vec<ReachedListener<'a>> = ours.flat_map(of).collect();
                reached.extend(sockets.iter().flat_map(|socket| self.waited_for(&socket.address, &held)));
                for reached in reached.into_iter().filter(|reached| !is_own(tier, reached.listener)) {
                    called.add(&reached);
                }
            }
        }
        called
    }

    /// The listeners that the configuration of a tier's master passes requests to, as far as its word counts: anybody may write a configuration that names another
    /// user's server, whose socket may refuse him. Root's configuration counts, and that of the user who has the listener; otherwise a connection must be seen.
    fn configured_for(&self, index: usize) -> Vec<PlacedListener> {
        let tier = &self.path.tiers[index];
        let named_by = configured_by(self.obs, tier);
        let named = self.reach.configured(&tier.pids, tier.netns).into_iter();
        named.filter(|listener| !is_own(tier, *listener) && self.counts(&named_by, listener.1)).map(PlacedListener::of).collect()
    }

    /// The listeners that the configuration of a tier's master passes the same requests to as one of those `seen`.
    fn alternatives_to(&self, index: usize, seen: &[PlacedListener]) -> Vec<PlacedListener> {
        let tier = &self.path.tiers[index];
        let names = |placed: &PlacedListener, address: &&ListenerAddress| placed.is_named(self.obs, tier.netns, address);
        let configs = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)?.config.last());
        let mut sets: Vec<Vec<&ListenerAddress>> = configs.flat_map(ServerConfig::alternatives).collect();
        sets.retain(|set| set.iter().any(|address| seen.iter().any(|placed| names(placed, address))));
        let mut others = self.configured_for(index);
        others.retain(|placed| !seen.contains(placed) && sets.iter().flatten().any(|address| names(placed, address)));
        others
    }

    /// True if these users' word is enough to say that they reach a listener: root's, or that of the user who has it.
    fn counts(&self, word: &BTreeSet<u32>, listener: &Listener) -> bool {
        word.contains(&0) || !word.is_disjoint(&users(self.obs, &holders_of(self.obs, listener.inode)))
    }

    /// The users on whose word a tier calls others: those of its configuration, else those of its processes.
    fn word_of(&self, tier: &Tier) -> BTreeSet<u32> {
        let configured_by = configured_by(self.obs, tier);
        if configured_by.is_empty() { users(self.obs, &tier.pids) } else { configured_by }
    }

    /// True if a socket shows that its holder reaches the listener. One that nobody answers says only what its holder wants: anybody may connect to a port that a
    /// packet filter closes to that user.
    fn shows(&self, socket: &Socket, word: &BTreeSet<u32>, reached: &ReachedListener<'_>) -> bool {
        socket.state != TcpState::SynSent || word.is_empty() || self.counts(word, reached.listener.1)
    }

    /// The unix listeners that one of the owned sockets still waits to be accepted by. The kernel shows the waiting end under the listener's path, with the
    /// connecting end as its peer.
    fn waited_for(&self, address: &SocketAddress, held: &BTreeSet<u64>) -> Vec<ReachedListener<'a>> {
        match address {
            SocketAddress::Unix { path: Some(path), peer: UnixPeer::Inode(peer) } if held.contains(peer) => {
                self.reach.at_path(path).map(ReachedListener::directly).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The listeners at the other end of a socket in `netns`.
    fn peers(&self, netns: NetnsId, address: &SocketAddress, unix_paths: &BTreeMap<u64, &String>) -> Vec<ReachedListener<'a>> {
        match address {
            // An accepted socket: its peer called this tier.
            SocketAddress::Tcp { .. } if self.reach.is_accepted(netns, address) => Vec::new(),
            SocketAddress::Tcp { remote, .. } => {
                let direct: Vec<ReachedListener<'a>> = self.reach.answering(netns, *remote, None).map(ReachedListener::directly).collect();
                if direct.is_empty() { self.sent_on(netns, *remote) } else { direct }
            }
            SocketAddress::Unix { peer: UnixPeer::Inode(peer), path: None } => {
                unix_paths.get(peer).into_iter().flat_map(|path| self.reach.at_path(path)).map(ReachedListener::directly).collect()
            }
            SocketAddress::Unix { .. } => Vec::new(),
        }
    }

    /// The listeners that a connection from `netns` reaches through translations of its address.
    fn sent_on(&self, netns: NetnsId, remote: Endpoint) -> Vec<ReachedListener<'a>> {
        let places = self.reach.translations.places(netns, remote).into_iter();
        let mut reached = Vec::new();
        for place in places.filter(|place| !place.hops.is_empty() && !place.is_passed) {
            let here = self.reach.answering(place.from(netns), place.endpoint, None);
            reached.extend(here.map(|listener| ReachedListener { listener, hops: place.hops.clone() }));
        }
        reached
    }
}

/// A listener at the other end of a connection.
struct ReachedListener<'a> {
    listener: ListenerRef<'a>,
    /// The translations on the way to it.
    hops: Vec<Hop>,
}

impl<'a> ReachedListener<'a> {
    fn directly(listener: ListenerRef<'a>) -> Self {
        Self { listener, hops: Vec::new() }
    }
}

/// What a tier calls.
#[derive(Default)]
struct CalledListeners {
    listeners: Vec<PlacedListener>,
    hops: Vec<Hop>,
}

impl CalledListeners {
    fn add(&mut self, reached: &ReachedListener<'_>) {
        let (netns, listener) = reached.listener;
        if !self.listeners.iter().any(|placed| placed.netns == netns && placed.listener == *listener) {
            self.listeners.push(PlacedListener::of(reached.listener));
        }
        for hop in &reached.hops {
            if !self.hops.contains(hop) {
                self.hops.push(*hop);
            }
        }
    }
}

/// Fills in where other servers listen within the addresses of a tier.
fn set_apart(listeners: &[ListenerRef<'_>], path: &mut Path) {
    for tier in &mut path.tiers {
        let own: Vec<(NetnsId, u64)> = tier.listeners.iter().map(|placed| (placed.netns, placed.listener.inode)).collect();
        let wide: Vec<&PlacedListener> = tier.listeners.iter().filter(|placed| !placed.listener.is_bound_to_one()).collect();
        let nearer = listeners.iter().filter_map(|(netns, listener)| {
            let ListenerAddress::Tcp(ip, port) = listener.address else { return None };
            let is_within = |placed: &&PlacedListener| placed.netns == *netns && placed.listener.covers((ip, port));
            let is_apart = listener.is_bound_to_one() && !own.contains(&(*netns, listener.inode)) && wide.iter().any(is_within);
            is_apart.then_some((*netns, (ip.to_canonical(), port)))
        });
        tier.apart = nearer.collect::<BTreeSet<_>>().into_iter().collect();
    }
}

/// True if a listener belongs to the tier.
fn is_own(tier: &Tier, (netns, listener): ListenerRef<'_>) -> bool {
    tier.listeners.iter().any(|own| own.netns == netns && own.listener.inode == listener.inode)
}

/// Paths of bound unix sockets by inode.
fn unix_paths<'a>(sockets: &'a [Socket]) -> BTreeMap<u64, &'a String> {
    let path = |socket: &'a Socket| match &socket.address {
        SocketAddress::Unix { path: Some(path), .. } => Some((socket.inode, path)),
        _ => None,
    };
    sockets.iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_address_identifies_its_listener() {
        let at = |text: &str| match text.strip_prefix("unix:") {
            Some(path) => ListenerAddress::Unix(path.to_owned()),
            None => text.parse::<std::net::SocketAddr>().map(|to| ListenerAddress::Tcp(to.ip(), to.port())).unwrap(),
        };
        for (bound, asked, is) in [
            ("127.0.0.1:9000", "127.0.0.1:9000", true),
            ("0.0.0.0:9000", "[::]:9000", true),
            ("[::ffff:10.0.0.1]:9000", "10.0.0.1:9000", true),
            ("127.0.0.2:9000", "127.0.0.1:9000", false),
            ("unix:/run/php/a.sock", "unix:/var/run/php/a.sock", true),
            ("unix:/run/php/a.sock", "unix:/var/lib/a.sock", false),
            ("unix:/run/php/a.sock", "127.0.0.1:9000", false),
        ] {
            assert_eq!(is_configured_at(&at(asked), &at(bound)), is, "{bound} {asked}");
        }
    }
}
