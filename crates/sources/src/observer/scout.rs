//! Which namespaces and processes matter for a request, as far as they are visible: a pure function over the newest readings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use chokepoint_model::observation::{
    Listener, ListenerAddress, NetnsId, NetnsView, Observation, OpenFiles, Request, SocketAddress, UnixPeer,
};
use chokepoint_model::path::{ArrivalAddress, Endpoint, ListenerRef, Reach, is_asked, is_local};

use super::socket_owners::PidsBySocket;

/// Most tiers to follow.
const DEPTH_MAX: usize = 8;
/// Most processes of one path.
pub(super) const PIDS_MAX: usize = 4_096;

/// The knowledge so far.
pub(super) struct ScoutInput<'a> {
    pub(super) request: &'a Request,
    /// The observer itself, which is never part of the path.
    pub(super) own_pid: u32,
    /// The newest listeners, addresses, sockets and open files.
    pub(super) view: &'a Observation,
    /// Processes that hold a listener.
    pub(super) pids_by_socket: &'a PidsBySocket,
    /// The listeners of the view.
    pub(super) reach: &'a Reach<'a>,
    /// Who started the processes that are read.
    pub(super) parents: &'a BTreeMap<u32, u32>,
    /// The calls of the view.
    pub(super) calls: &'a Calls,
    /// The calls that lead to a listener; nothing if it is known already that there are some.
    pub(super) leading: Option<&'a BTreeSet<(NetnsId, Endpoint)>>,
}

/// What belongs to the path and must be read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct PathScope {
    pub(super) netns: BTreeSet<NetnsId>,
    pub(super) pids: BTreeSet<u32>,
    /// The namespace of the first tier.
    pub(super) first: Option<NetnsId>,
    /// A listener answers for the target.
    pub(super) answered: bool,
    /// A tier behind the first one is known.
    pub(super) upstream: bool,
    /// Somebody other than the client calls a listener. The caller may be the first tier.
    pub(super) calls: bool,
    /// Holders of a listener none of which was seen with a connection: other processes may serve these, as a rule their children (a database's, one for each connection).
    pub(super) lenders: BTreeSet<u32>,
}

impl PathScope {
    /// Adds what belongs to the path of another request.
    pub(super) fn join(&mut self, other: Self) {
        self.netns.extend(other.netns);
        self.pids.extend(other.pids);
        self.first = self.first.or(other.first);
        self.answered |= other.answered;
        self.upstream |= other.upstream;
        self.calls |= other.calls;
        self.lenders.extend(other.lenders);
    }
}

/// Follows the request from its target through the processes that listen and call. Takes every listener that may answer, of which the model later picks one: to
/// read too much is cheap, and what is read too late is lost.
pub(super) fn scout(input: &ScoutInput<'_>) -> PathScope {
    let mut scope = PathScope::default();
    let ScoutInput { reach, calls, .. } = *input;
    let mut visited: BTreeSet<(NetnsId, u64)> = BTreeSet::new();
    let places = places(input.request, reach);
    let mut tier = targets(input.request, &places, reach);
    scope.answered = !tier.is_empty();
    scope.first = tier.first().map(|(netns, _)| *netns);
    scope.netns.extend(on_the_way(input.view, &places, scope.answered));
    scope.calls = input.leading.is_none_or(|leading| calls.any(leading, &places));
    let mut linked = false;
    for _ in 0..DEPTH_MAX {
        tier.retain(|(netns, listener)| visited.insert((*netns, listener.inode)));
        if tier.is_empty() {
            break;
        }
        scope.upstream |= linked;
        let mut held: Vec<u64> = Vec::new();
        let mut configured: Vec<ListenerRef<'_>> = Vec::new();
        for (netns, listener) in &tier {
            scope.netns.insert(*netns);
            let mut serving = socket_owners(input, listener.inode);
            if !calls.are_accepted(*netns, listener, serving.iter().filter_map(|pid| files_of(input.view, *pid))) {
                scope.lenders.extend(&serving);
                let children = input.parents.iter().filter(|(_, parent)| serving.contains(parent)).map(|(pid, _)| *pid);
                serving.extend(children.collect::<Vec<_>>());
            }
            for pid in serving {
                if scope.pids.len() < PIDS_MAX {
                    scope.pids.insert(pid);
                }
                held.extend(files_of(input.view, pid).into_iter().flat_map(|files| &files.sockets));
                configured.extend(reach.configured(&[pid], *netns));
            }
        }
        tier = calls.called(reach, &held);
        // Only a visible connection ends the eager search for one.
        linked = tier.iter().any(|(netns, listener)| !visited.contains(&(*netns, listener.inode)));
        tier.extend(configured);
    }
    scope
}

/// Inodes of all listeners, to find the processes that hold them.
pub(super) fn listener_inodes(view: &Observation) -> BTreeSet<u64> {
    let listeners = view.netns.values().filter_map(|netns| netns.listeners.last()).flatten();
    listeners.map(|listener| listener.inode).filter(|inode| *inode != 0).collect()
}

/// Where connections to the target may arrive.
fn places(request: &Request, reach: &Reach<'_>) -> Vec<ArrivalAddress> {
    let of = |target: &IpAddr| reach.translations.places(request.client_netns, (*target, request.port));
    request.addresses.iter().flat_map(of).collect()
}

fn targets<'a>(request: &Request, places: &[ArrivalAddress], reach: &Reach<'a>) -> Vec<ListenerRef<'a>> {
    let is_meant = |(netns, _): &ListenerRef<'a>| request.server_netns.is_none_or(|server| server == *netns);
    let at = |place: &ArrivalAddress| {
        reach.answering(place.from(request.client_netns), place.endpoint, request.server_netns).filter(is_meant).collect::<Vec<_>>()
    };
    let asked = reach.listeners().filter(|(netns, listener)| is_asked(request, *netns, listener));
    places.iter().flat_map(at).chain(asked).collect()
}

/// The namespaces between client and servers: those that translate the target's address; and while no listener for it is known, those that have the address,
/// since their translations may be found there.
fn on_the_way(view: &Observation, places: &[ArrivalAddress], answered: bool) -> BTreeSet<NetnsId> {
    let mut namespaces: BTreeSet<NetnsId> = places.iter().flat_map(|place| &place.hops).map(|hop| hop.netns).collect();
    if !answered {
        let has = |view: &NetnsView| places.iter().any(|place| is_local(view, false, place.endpoint.0));
        namespaces.extend(view.netns.iter().filter(|(_, view)| has(view)).map(|(netns, _)| *netns));
    }
    namespaces
}

/// Processes that hold a listener, without the observer, and without process 1 if it merely passed the listener on (socket activation).
fn socket_owners(input: &ScoutInput<'_>, inode: u64) -> Vec<u32> {
    let all = input.pids_by_socket.get(&inode).into_iter().flatten().copied().filter(|pid| *pid != input.own_pid);
    let mut pids: Vec<u32> = all.collect();
    if pids.len() > 1 {
        pids.retain(|pid| *pid != 1);
    }
    pids
}

/// The open files of a process as last read.
fn files_of(view: &Observation, pid: u32) -> Option<&OpenFiles> {
    view.processes.get(&pid)?.files.last()
}

/// A TCP socket: its namespace, its own end and the other one.
type Connection = (NetnsId, Endpoint, Endpoint);

/// The remote ends of connections, by the inode of the local end. Built once for the sockets that were read, whatever listeners come and go and however many
/// requests are followed: a server may hold thousands.
#[derive(Default)]
pub(super) struct Calls {
    tcp: HashMap<u64, Connection>,
    unix: HashMap<u64, String>,
    /// The path at which a unix socket was accepted.
    accepted: HashMap<u64, String>,
}

impl Calls {
    pub(super) fn of(view: &Observation) -> Self {
        let mut calls = Self::default();
        for (netns, netns_view) in &view.netns {
            for socket in netns_view.sockets.last().into_iter().flatten() {
                match &socket.address {
                    SocketAddress::Tcp { local, remote } if socket.inode != 0 => {
                        calls.tcp.insert(socket.inode, (*netns, *local, *remote));
                    }
                    // The accepted end has the listener's path. While it waits to be accepted it has no inode.
                    SocketAddress::Unix { path: Some(path), peer: UnixPeer::Inode(peer) } => {
                        calls.unix.insert(*peer, path.clone());
                        if socket.inode != 0 {
                            calls.accepted.insert(socket.inode, path.clone());
                        }
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    /// The remote ends at which something may listen, each once.
    pub(super) fn leading(&self, reach: &Reach<'_>) -> BTreeSet<(NetnsId, Endpoint)> {
        let leads = |netns: NetnsId, remote: Endpoint| {
            let translated = || {
                !reach.translations.is_empty()
                    && reach.translations.places(netns, remote).iter().any(|place| reach.has_port(place.endpoint.1))
            };
            reach.has_port(remote.1) || translated()
        };
        let leading = self.tcp.values().filter(|call| leads(call.0, call.2) && !is_accepted(reach, call));
        leading.map(|(netns, _, remote)| (*netns, *remote)).collect()
    }

    /// True if somebody calls a listener other than the target, which the client calls.
    fn any(&self, leading: &BTreeSet<(NetnsId, Endpoint)>, places: &[ArrivalAddress]) -> bool {
        let is_target = |(ip, port): Endpoint| places.iter().any(|place| place.endpoint == (ip.to_canonical(), port));
        !self.unix.is_empty() || leading.iter().any(|(_, remote)| !is_target(*remote))
    }

    /// True if one of these files of processes that hold a listener is a connection that was accepted there.
    fn are_accepted<'f>(&self, netns: NetnsId, listener: &Listener, files: impl Iterator<Item = &'f OpenFiles>) -> bool {
        let mut held = files.flat_map(|files| &files.sockets);
        match &listener.address {
            ListenerAddress::Tcp(_, port) => {
                let is_accepted = |call: &Connection| call.0 == netns && call.1.1 == *port;
                held.any(|inode| self.tcp.get(inode).is_some_and(is_accepted))
            }
            ListenerAddress::Unix(path) => held.any(|inode| self.accepted.get(inode) == Some(path)),
        }
    }

    /// The listeners that the holders of these sockets call.
    fn called<'l>(&self, reach: &Reach<'l>, held: &[u64]) -> Vec<ListenerRef<'l>> {
        let calls = held.iter().filter_map(|inode| self.tcp.get(inode)).filter(|call| !is_accepted(reach, call));
        let remotes: BTreeSet<(NetnsId, Endpoint)> = calls.map(|(netns, _, remote)| (*netns, *remote)).collect();
        let paths: BTreeSet<&str> = held.iter().filter_map(|inode| self.unix.get(inode)).map(String::as_str).collect();
        let mut called = Vec::new();
        for (netns, remote) in remotes {
            for place in reach.translations.places(netns, remote) {
                called.extend(reach.answering(place.from(netns), place.endpoint, None));
            }
        }
        called.extend(paths.into_iter().flat_map(|path| reach.at_path(path)));
        called
    }
}

/// True if the other end called.
fn is_accepted(reach: &Reach<'_>, (netns, local, remote): &Connection) -> bool {
    reach.is_accepted(*netns, &SocketAddress::Tcp { local: *local, remote: *remote })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::observation::{Address, Socket, TcpState, Translation};
    use chokepoint_model::reading::Reading;

    const CLIENT: NetnsId = NetnsId(1);
    const SERVER: NetnsId = NetnsId(2);
    const OTHER: NetnsId = NetnsId(3);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn listener(address: ListenerAddress, inode: u64) -> Listener {
        Listener { address, v6_only: false, inode, accept_queue: 0, accept_queue_limit: 10, drops: None }
    }

    fn tcp(address: &str, port: u16, inode: u64) -> Listener {
        listener(ListenerAddress::Tcp(ip(address), port), inode)
    }

    fn connected(inode: u64, local: (&str, u16), remote: (&str, u16)) -> Socket {
        socket(inode, SocketAddress::Tcp { local: (ip(local.0), local.1), remote: (ip(remote.0), remote.1) })
    }

    fn socket(inode: u64, address: SocketAddress) -> Socket {
        Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
    }

    fn add(view: &mut Observation, netns: NetnsId, address: &str, listeners: Vec<Listener>, sockets: Vec<Socket>) {
        let view = view.netns.entry(netns).or_default();
        view.addresses.push(0, Reading::Ok(vec![Address { ip: ip(address), prefix_bits: 24, link: 2 }]));
        view.listeners.push(0, Reading::Ok(listeners));
        view.sockets.push(0, Reading::Ok(sockets));
    }

    fn holds(view: &mut Observation, pid: u32, sockets: &[u64]) {
        let files = OpenFiles { count: 9, sockets: sockets.to_vec() };
        view.processes.entry(pid).or_default().files.push(0, Reading::Ok(files));
    }

    fn request(target: &str, port: u16) -> Request {
        Request { addresses: vec![ip(target)], port, client_netns: CLIENT, ..Request::default() }
    }

    fn run(view: &Observation, request: &Request, pids_by_socket: &[(u64, &[u32])]) -> PathScope {
        run_with_parents(view, request, pids_by_socket, &[])
    }

    fn run_with_parents(view: &Observation, request: &Request, pids_by_socket: &[(u64, &[u32])], parents: &[(u32, u32)]) -> PathScope {
        let pids_by_socket = pids_by_socket.iter().map(|(inode, pids)| (*inode, pids.iter().copied().collect())).collect();
        let (reach, calls) = (Reach::of_newest(view), Calls::of(view));
        let leading = calls.leading(&reach);
        let input = ScoutInput {
            request,
            own_pid: 999,
            view,
            pids_by_socket: &pids_by_socket,
            reach: &reach,
            parents: &parents.iter().copied().collect(),
            calls: &calls,
            leading: Some(&leading),
        };
        scout(&input)
    }

    #[test]
    fn the_path_leads_from_nginx_over_php_to_a_database_in_another_namespace() {
        let mut view = Observation::default();
        add(&mut view, CLIENT, "10.0.0.1", vec![tcp("0.0.0.0", 80, 900)], vec![]);
        let sockets = vec![
            connected(200, ("10.0.0.2", 80), ("10.0.0.1", 9000)), // Accepted: its remote port only looks like php's.
            connected(201, ("127.0.0.1", 40_000), ("127.0.0.1", 9000)),
            connected(301, ("10.0.0.2", 40_001), ("10.0.0.3", 5432)),
        ];
        add(&mut view, SERVER, "10.0.0.2", vec![tcp("::", 80, 100), tcp("127.0.0.1", 9000, 101)], sockets);
        add(&mut view, OTHER, "10.0.0.3", vec![tcp("0.0.0.0", 5432, 102), tcp("0.0.0.0", 9000, 103)], vec![]);
        holds(&mut view, 10, &[100, 200, 201]);
        holds(&mut view, 20, &[101, 301]);
        let pids_by_socket: [(u64, &[u32]); 5] = [(100, &[10, 999]), (101, &[20, 21]), (102, &[30]), (103, &[40]), (900, &[50])];
        let wanted = run(&view, &request("10.0.0.2", 80), &pids_by_socket);
        assert_eq!(wanted.pids, BTreeSet::from([10, 20, 21, 30]), "not the observer, not a stranger on the same port");
        assert_eq!(wanted.netns, BTreeSet::from([SERVER, OTHER]));
        assert!(wanted.answered && wanted.upstream && wanted.calls);
    }

    #[test]
    fn the_children_of_a_holder_without_connections_may_serve_these_and_lead_on() {
        let view = |held_by_parent: &[u64]| {
            let mut view = Observation::default();
            let sockets = vec![
                connected(200, ("10.0.0.1", 80), ("10.0.0.9", 9000)),
                connected(201, ("10.0.0.1", 40_000), ("10.0.0.1", 5432)),
                socket(401, SocketAddress::Unix { path: Some("/run/db.sock".into()), peer: UnixPeer::Inode(400) }),
            ];
            let listeners =
                vec![tcp("0.0.0.0", 80, 900), tcp("0.0.0.0", 5432, 901), listener(ListenerAddress::Unix("/run/db.sock".into()), 902)];
            add(&mut view, CLIENT, "10.0.0.1", listeners, sockets);
            holds(&mut view, 10, held_by_parent);
            holds(&mut view, 11, &[200, 201]);
            view
        };
        let pids_by_socket: [(u64, &[u32]); 3] = [(900, &[10]), (901, &[20]), (902, &[30])];
        let parents = [(11, 10), (12, 10), (13, 99)];
        let apart = run_with_parents(&view(&[900]), &request("10.0.0.1", 80), &pids_by_socket, &parents);
        assert_eq!((apart.pids, apart.lenders), (BTreeSet::from([10, 11, 12, 20]), BTreeSet::from([10, 20])));
        let itself = run_with_parents(&view(&[900, 200]), &request("10.0.0.1", 80), &pids_by_socket, &parents);
        assert_eq!((itself.pids, itself.lenders), (BTreeSet::from([10]), BTreeSet::new()));
        let at_path = Request { unix: vec!["/run/db.sock".into()], ..request("10.0.0.9", 1) };
        let mut view = view(&[900]);
        holds(&mut view, 30, &[902]);
        assert_eq!(run(&view, &at_path, &pids_by_socket).lenders, BTreeSet::from([30]));
        holds(&mut view, 30, &[902, 401]);
        assert_eq!(run(&view, &at_path, &pids_by_socket).lenders, BTreeSet::new());
    }

    #[test]
    fn only_calls_to_listeners_other_than_the_target_count() {
        let calls = |sockets: Vec<Socket>| {
            let mut view = Observation::default();
            add(&mut view, CLIENT, "10.0.0.1", vec![tcp("0.0.0.0", 80, 900), tcp("::", 5432, 901)], sockets);
            run(&view, &request("10.0.0.1", 80), &[]).calls
        };
        assert!(!calls(vec![]));
        assert!(!calls(vec![connected(1, ("10.0.0.1", 40_000), ("10.0.0.1", 80))]), "the client");
        assert!(!calls(vec![connected(1, ("10.0.0.1", 80), ("10.0.0.1", 40_000))]), "and its accepted end");
        assert!(!calls(vec![connected(1, ("10.0.0.1", 40_000), ("10.0.0.9", 443))]), "nobody listens there");
        assert!(!calls(vec![connected(0, ("10.0.0.1", 40_000), ("10.0.0.1", 5432))]), "closed: no process holds it");
        assert!(calls(vec![connected(1, ("10.0.0.1", 40_000), ("10.0.0.1", 5432))]));
    }

    #[test]
    fn a_translated_target_leads_to_the_servers_and_the_translating_namespace() {
        let mut view = Observation::default();
        let router = NetnsId(9);
        add(&mut view, CLIENT, "10.0.0.1", vec![], vec![]);
        add(&mut view, router, "10.0.0.254", vec![], vec![]);
        let sockets = vec![connected(201, ("172.20.0.2", 40_000), ("172.20.0.3", 9000))];
        add(&mut view, SERVER, "172.20.0.2", vec![tcp("::", 80, 100)], sockets);
        add(&mut view, OTHER, "172.20.0.3", vec![tcp("0.0.0.0", 9000, 102)], vec![]);
        holds(&mut view, 10, &[100, 201]);
        let pids_by_socket: [(u64, &[u32]); 2] = [(100, &[10]), (102, &[30])];
        let unknown = run(&view, &request("10.0.0.254", 8080), &pids_by_socket);
        assert!(!unknown.answered);
        assert_eq!(unknown.netns, BTreeSet::from([router]), "who has the address is looked at, for it may translate it");
        let seen = Translation { original: (ip("10.0.0.254"), 8080), translated: (ip("172.20.0.2"), 80), count: 1 };
        view.netns.get_mut(&router).unwrap().conntrack_translations.push(0, Reading::Ok(vec![seen]));
        let wanted = run(&view, &request("10.0.0.254", 8080), &pids_by_socket);
        assert!(wanted.answered && wanted.upstream);
        assert_eq!((wanted.netns, wanted.pids), (BTreeSet::from([router, SERVER, OTHER]), BTreeSet::from([10, 30])));
        assert!(!run(&view, &request("10.0.0.254", 8081), &pids_by_socket).answered, "another port");
    }

    #[test]
    fn a_loopback_target_is_in_the_clients_namespace_or_the_named_one() {
        let mut view = Observation::default();
        add(&mut view, SERVER, "10.0.0.2", vec![tcp("0.0.0.0", 80, 100)], vec![]);
        assert!(!run(&view, &request("127.0.0.1", 80), &[]).answered);
        let named = Request { server_netns: Some(SERVER), ..request("127.0.0.1", 80) };
        assert!(run(&view, &named, &[]).answered);
        let elsewhere = Request { server_netns: Some(OTHER), ..request("10.0.0.2", 80) };
        assert!(!run(&view, &elsewhere, &[]).answered);
        assert!(!run(&view, &request("10.0.0.9", 80), &[]).answered, "an address that is not local");
    }

    #[test]
    fn accepted_and_waiting_unix_connections_lead_to_another_namespace() {
        let path = || ListenerAddress::Unix("/run/php.sock".into());
        for accepted in [0, 501] {
            let mut view = Observation::default();
            let sockets = vec![
                socket(200, SocketAddress::Unix { path: None, peer: UnixPeer::Unknown }),
                socket(accepted, SocketAddress::Unix { path: Some("/run/php.sock".into()), peer: UnixPeer::Inode(200) }),
            ];
            add(&mut view, SERVER, "10.0.0.2", vec![tcp("10.0.0.2", 80, 100)], sockets);
            add(&mut view, OTHER, "10.0.0.3", vec![listener(path(), 101)], vec![]);
            holds(&mut view, 10, &[100, 200]);
            let wanted = run(&view, &request("10.0.0.2", 80), &[(100, &[10]), (101, &[20])]);
            assert_eq!(wanted.pids, BTreeSet::from([10, 20]), "accepted inode {accepted}");
        }
    }

    #[test]
    fn a_unix_target_is_found_by_path_anywhere_and_by_abstract_name_at_the_client() {
        let mut view = Observation::default();
        let unix = |name: &str| ListenerAddress::Unix(name.into());
        add(&mut view, CLIENT, "10.0.0.1", vec![listener(unix("@app"), 101)], vec![]);
        add(&mut view, SERVER, "10.0.0.2", vec![listener(unix("/run/php.sock"), 102), listener(unix("@app"), 103)], vec![]);
        let pids_by_socket: [(u64, &[u32]); 3] = [(101, &[10]), (102, &[20]), (103, &[30])];
        let ask = |names: &[&str], server_netns| {
            let unix = names.iter().map(|name| (*name).to_owned()).collect();
            run(&view, &Request { unix, client_netns: CLIENT, server_netns, ..Request::default() }, &pids_by_socket)
        };
        let by_path = ask(&["/srv/link.sock", "/var/run/php.sock"], None);
        assert_eq!((by_path.pids, by_path.answered), (BTreeSet::from([20]), true));
        assert_eq!(ask(&["@app"], None).pids, BTreeSet::from([10]));
        assert!(!ask(&["@app"], Some(SERVER)).answered, "the client's own is another one");
        assert!(!ask(&["/run/php.sock"], Some(OTHER)).answered);
        assert!(!ask(&["/run/php.soc"], None).answered);
    }

    #[test]
    fn process_one_counts_only_if_it_is_the_only_holder() {
        let mut view = Observation::default();
        add(&mut view, CLIENT, "10.0.0.1", vec![tcp("0.0.0.0", 80, 100), tcp("0.0.0.0", 81, 101)], vec![]);
        assert_eq!(run(&view, &request("10.0.0.1", 80), &[(100, &[1, 7])]).pids, BTreeSet::from([7]));
        assert_eq!(run(&view, &request("10.0.0.1", 81), &[(101, &[1])]).pids, BTreeSet::from([1]));
    }

    #[test]
    fn a_ring_of_servers_ends() {
        let mut view = Observation::default();
        let sockets =
            vec![connected(200, ("127.0.0.1", 40_000), ("127.0.0.1", 81)), connected(201, ("127.0.0.1", 40_001), ("127.0.0.1", 80))];
        add(&mut view, CLIENT, "10.0.0.1", vec![tcp("0.0.0.0", 80, 100), tcp("0.0.0.0", 81, 101)], sockets);
        holds(&mut view, 10, &[100, 200]);
        holds(&mut view, 11, &[101, 201]);
        let wanted = run(&view, &request("127.0.0.1", 80), &[(100, &[10]), (101, &[11])]);
        assert_eq!(wanted.pids, BTreeSet::from([10, 11]));
    }
}
