//! Which namespaces and processes matter for a request, as far as has been seen: a pure function over what was read last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use chokepoint_model::observation::{Listener, ListenerAddress, NetnsId, NetnsView, Observation, Request, SocketAddress, UnixPeer};
use chokepoint_model::path::{ArrivalAddress, Endpoint, Translations, answers, is_asked, is_local, names_listener};

use super::socket_owners::Holding;

/// Tiers followed at most.
const DEPTH_MAX: usize = 8;
/// Processes of one path at most.
pub(super) const PIDS_MAX: usize = 4_096;

/// What is known so far.
pub(super) struct Known<'a> {
    pub(super) request: &'a Request,
    /// The observer itself, never part of the path.
    pub(super) own_pid: u32,
    /// The newest listeners, addresses, sockets and open files.
    pub(super) view: &'a Observation,
    /// Processes that hold a listener.
    pub(super) holding: &'a Holding,
}

/// What should be read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) netns: BTreeSet<NetnsId>,
    pub(super) pids: BTreeSet<u32>,
    /// Where the first tier listens.
    pub(super) first: Option<NetnsId>,
    /// A listener answers for the target.
    pub(super) answered: bool,
    /// A tier behind the first one was seen.
    pub(super) upstream: bool,
    /// Somebody beside the client calls a listener: it may be the first tier.
    pub(super) calls: bool,
}

type Placed<'a> = (NetnsId, &'a Listener);

/// Follows the request from its target through the processes that were seen to listen and to call. It takes every listener that may answer,
/// where the model later picks one: reading too much is cheap, reading too late is not to be mended.
pub(super) fn scout(known: &Known<'_>) -> Wanted {
    let mut wanted = Wanted::default();
    let by_port = listeners_by_port(known.view);
    let translations = Translations::of(known.view);
    let mut visited: BTreeSet<(NetnsId, u64)> = BTreeSet::new();
    let places = places(known, &translations);
    let calls = Calls::of(known.view, &by_port);
    let mut tier = targets(known, &places, &by_port);
    wanted.answered = !tier.is_empty();
    wanted.first = tier.first().map(|(netns, _)| *netns);
    wanted.netns.extend(on_the_way(known, &places, wanted.answered));
    wanted.calls = calls.any(&by_port, &translations, &places);
    let mut linked = false;
    for _ in 0..DEPTH_MAX {
        tier.retain(|(netns, listener)| visited.insert((*netns, listener.inode)));
        if tier.is_empty() {
            break;
        }
        wanted.upstream |= linked;
        let mut held: Vec<u64> = Vec::new();
        let mut named: Vec<Placed<'_>> = Vec::new();
        for (netns, listener) in &tier {
            wanted.netns.insert(*netns);
            for pid in socket_owners(known, listener.inode) {
                if wanted.pids.len() < PIDS_MAX {
                    wanted.pids.insert(pid);
                }
                let files = known.view.processes.get(&pid).and_then(|process| process.files.last());
                held.extend(files.into_iter().flat_map(|files| &files.sockets));
                named.extend(configured(known.view, pid, *netns));
            }
        }
        tier = called(known.view, &translations, &by_port, &calls, &held);
        // Only a connection that was seen ends the eager search for one.
        linked = tier.iter().any(|(netns, listener)| !visited.contains(&(*netns, listener.inode)));
        tier.extend(named);
    }
    wanted
}

/// Inodes of every listener that was seen: those whose holders are to be found.
pub(super) fn listener_inodes(view: &Observation) -> BTreeSet<u64> {
    newest(view).map(|(_, listener)| listener.inode).filter(|inode| *inode != 0).collect()
}

fn newest(view: &Observation) -> impl Iterator<Item = Placed<'_>> {
    view.netns.iter().flat_map(|(netns, view)| view.listeners.last().into_iter().flatten().map(|listener| (*netns, listener)))
}

fn listeners_by_port(view: &Observation) -> BTreeMap<u16, Vec<Placed<'_>>> {
    let mut by_port: BTreeMap<u16, Vec<Placed<'_>>> = BTreeMap::new();
    for (netns, listener) in newest(view) {
        if let ListenerAddress::Tcp(_, port) = listener.address {
            by_port.entry(port).or_default().push((netns, listener));
        }
    }
    by_port
}

/// Where connections to the target may arrive.
fn places(known: &Known<'_>, translations: &Translations) -> Vec<ArrivalAddress> {
    let request = known.request;
    let of = |target: &IpAddr| translations.places(request.client_netns, (*target, request.port));
    request.addresses.iter().flat_map(of).collect()
}

fn targets<'a>(known: &Known<'a>, places: &[ArrivalAddress], by_port: &BTreeMap<u16, Vec<Placed<'a>>>) -> Vec<Placed<'a>> {
    let request = known.request;
    let at = |place: &ArrivalAddress| {
        let here = answering(known.view, by_port, place.from(request.client_netns), place.endpoint, request.server_netns);
        here.into_iter().filter(|(netns, _)| request.server_netns.is_none_or(|server| server == *netns)).collect::<Vec<_>>()
    };
    let asked = newest(known.view).filter(|(netns, listener)| is_asked(request, *netns, listener));
    places.iter().flat_map(at).chain(asked).collect()
}

/// The namespaces between client and servers: those that translate the target's address, and as long as nobody is known to listen for it, those
/// that have the address, for there it can be told where it leads.
fn on_the_way(known: &Known<'_>, places: &[ArrivalAddress], answered: bool) -> BTreeSet<NetnsId> {
    let mut namespaces: BTreeSet<NetnsId> = places.iter().flat_map(|place| &place.hops).map(|hop| hop.netns).collect();
    if !answered {
        let has = |view: &NetnsView| places.iter().any(|place| is_local(view, false, place.endpoint.0));
        namespaces.extend(known.view.netns.iter().filter(|(_, view)| has(view)).map(|(netns, _)| *netns));
    }
    namespaces
}

/// The listeners at which a connection ends that is made in namespace `from`; one that the user named stands for it at a loopback address.
fn answering<'a>(
    view: &Observation,
    by_port: &BTreeMap<u16, Vec<Placed<'a>>>,
    from: NetnsId,
    (ip, port): Endpoint,
    named: Option<NetnsId>,
) -> Vec<Placed<'a>> {
    let candidates = by_port.get(&port).into_iter().flatten();
    let here = |(netns, listener): &&Placed<'a>| answers(&view.netns[netns], *netns == from || named == Some(*netns), listener, ip, port);
    candidates.filter(here).copied().collect()
}

/// Processes that hold a listener: without the observer, and without process 1 where it merely passed the listener on (socket activation).
fn socket_owners(known: &Known<'_>, inode: u64) -> Vec<u32> {
    let all = known.holding.get(&inode).into_iter().flatten().copied().filter(|pid| *pid != known.own_pid);
    let mut pids: Vec<u32> = all.collect();
    if pids.len() > 1 {
        pids.retain(|pid| *pid != 1);
    }
    pids
}

/// Listeners to which the configuration of a server's master passes requests.
fn configured(view: &Observation, pid: u32, netns: NetnsId) -> Vec<Placed<'_>> {
    let Some(nginx) = view.servers.get(&pid).and_then(|server| server.nginx()) else { return Vec::new() };
    let targets: Vec<&ListenerAddress> = nginx.passes.iter().flat_map(|pass| &pass.servers).collect();
    let named =
        |(other, listener): &Placed<'_>| targets.iter().any(|target| names_listener(&view.netns[other], *other == netns, listener, target));
    newest(view).filter(named).collect()
}

/// Where the connections lead that were dialled, by the inode of the dialling end. Made once for all tiers: a server may hold thousands.
struct Calls<'a> {
    tcp: HashMap<u64, (NetnsId, Endpoint)>,
    unix: HashMap<u64, &'a str>,
}

impl<'a> Calls<'a> {
    fn of(view: &'a Observation, by_port: &BTreeMap<u16, Vec<Placed<'_>>>) -> Self {
        let mut calls = Self { tcp: HashMap::new(), unix: HashMap::new() };
        for (netns, netns_view) in &view.netns {
            for socket in netns_view.sockets.last().into_iter().flatten() {
                match &socket.address {
                    SocketAddress::Tcp { local, remote } if socket.inode != 0 && !is_accepted(*netns, local, by_port) => {
                        calls.tcp.insert(socket.inode, (*netns, *remote));
                    }
                    // The accepted end has the listener's path; while it waits to be accepted it has no inode of its own.
                    SocketAddress::Unix { path: Some(path), peer: UnixPeer::Inode(peer) } => {
                        calls.unix.insert(*peer, path);
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    /// Whether anybody calls a listener but the one that was asked for, which the client calls.
    fn any(&self, by_port: &BTreeMap<u16, Vec<Placed<'_>>>, translations: &Translations, places: &[ArrivalAddress]) -> bool {
        let is_target = |(ip, port): Endpoint| places.iter().any(|place| place.endpoint == (ip.to_canonical(), port));
        let leads = |netns: NetnsId, remote: Endpoint| {
            by_port.contains_key(&remote.1)
                || translations.places(netns, remote).iter().any(|place| by_port.contains_key(&place.endpoint.1))
        };
        !self.unix.is_empty() || self.tcp.values().any(|(netns, remote)| !is_target(*remote) && leads(*netns, *remote))
    }
}

/// Listeners at the other end of the sockets held.
fn called<'a>(
    view: &'a Observation,
    translations: &Translations,
    by_port: &BTreeMap<u16, Vec<Placed<'a>>>,
    calls: &Calls<'_>,
    held: &[u64],
) -> Vec<Placed<'a>> {
    let remotes: BTreeSet<(NetnsId, Endpoint)> = held.iter().filter_map(|inode| calls.tcp.get(inode)).copied().collect();
    let paths: BTreeSet<&str> = held.iter().filter_map(|inode| calls.unix.get(inode)).copied().collect();
    let mut called = Vec::new();
    for (netns, remote) in remotes {
        for place in translations.places(netns, remote) {
            called.extend(answering(view, by_port, place.from(netns), place.endpoint, None));
        }
    }
    let bound = |(_, listener): &Placed<'_>| matches!(&listener.address, ListenerAddress::Unix(path) if paths.contains(path.as_str()));
    called.extend(newest(view).filter(bound));
    called
}

/// Whether a socket's local end is a listener's: then its peer called us.
fn is_accepted(netns: NetnsId, local: &(std::net::IpAddr, u16), by_port: &BTreeMap<u16, Vec<Placed<'_>>>) -> bool {
    by_port.get(&local.1).into_iter().flatten().any(|(other, listener)| {
        *other == netns && matches!(listener.address, ListenerAddress::Tcp(ip, _) if ip.is_unspecified() || ip.to_canonical() == local.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::observation::{Address, OpenFiles, Socket, TcpState, Translation};
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

    fn run(view: &Observation, request: &Request, holding: &[(u64, &[u32])]) -> Wanted {
        let holding = holding.iter().map(|(inode, pids)| (*inode, pids.iter().copied().collect())).collect();
        scout(&Known { request, own_pid: 999, view, holding: &holding })
    }

    #[test]
    fn nginx_then_php_over_tcp_then_a_database_in_another_namespace() {
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
        let holding: [(u64, &[u32]); 5] = [(100, &[10, 999]), (101, &[20, 21]), (102, &[30]), (103, &[40]), (900, &[50])];
        let wanted = run(&view, &request("10.0.0.2", 80), &holding);
        assert_eq!(wanted.pids, BTreeSet::from([10, 20, 21, 30]), "not the observer, not a stranger on the same port");
        assert_eq!(wanted.netns, BTreeSet::from([SERVER, OTHER]));
        assert!(wanted.answered && wanted.upstream && wanted.calls);
    }

    #[test]
    fn only_who_calls_another_listener_than_the_target_may_call_an_upstream() {
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
    fn a_translated_target_leads_to_the_servers_and_to_who_translates() {
        let mut view = Observation::default();
        let router = NetnsId(9);
        add(&mut view, CLIENT, "10.0.0.1", vec![], vec![]);
        add(&mut view, router, "10.0.0.254", vec![], vec![]);
        let sockets = vec![connected(201, ("172.20.0.2", 40_000), ("172.20.0.3", 9000))];
        add(&mut view, SERVER, "172.20.0.2", vec![tcp("::", 80, 100)], sockets);
        add(&mut view, OTHER, "172.20.0.3", vec![tcp("0.0.0.0", 9000, 102)], vec![]);
        holds(&mut view, 10, &[100, 201]);
        let holding: [(u64, &[u32]); 2] = [(100, &[10]), (102, &[30])];
        let unknown = run(&view, &request("10.0.0.254", 8080), &holding);
        assert!(!unknown.answered);
        assert_eq!(unknown.netns, BTreeSet::from([router]), "who has the address is looked at, for it may translate it");
        let seen = Translation { original: (ip("10.0.0.254"), 8080), translated: (ip("172.20.0.2"), 80), count: 1 };
        view.netns.get_mut(&router).unwrap().conntrack_translations.push(0, Reading::Ok(vec![seen]));
        let wanted = run(&view, &request("10.0.0.254", 8080), &holding);
        assert!(wanted.answered && wanted.upstream);
        assert_eq!((wanted.netns, wanted.pids), (BTreeSet::from([router, SERVER, OTHER]), BTreeSet::from([10, 30])));
        assert!(!run(&view, &request("10.0.0.254", 8081), &holding).answered, "another port");
    }

    #[test]
    fn loopback_is_only_the_clients_own() {
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
    fn unix_sockets_accepted_and_waiting_even_from_another_namespace() {
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
    fn a_unix_socket_as_the_target_by_path_anywhere_and_by_abstract_name_at_the_clients() {
        let mut view = Observation::default();
        let unix = |name: &str| ListenerAddress::Unix(name.into());
        add(&mut view, CLIENT, "10.0.0.1", vec![listener(unix("@app"), 101)], vec![]);
        add(&mut view, SERVER, "10.0.0.2", vec![listener(unix("/run/php.sock"), 102), listener(unix("@app"), 103)], vec![]);
        let holding: [(u64, &[u32]); 3] = [(101, &[10]), (102, &[20]), (103, &[30])];
        let ask = |names: &[&str], server_netns| {
            let unix = names.iter().map(|name| (*name).to_owned()).collect();
            run(&view, &Request { unix, client_netns: CLIENT, server_netns, ..Request::default() }, &holding)
        };
        let by_path = ask(&["/srv/link.sock", "/var/run/php.sock"], None);
        assert_eq!((by_path.pids, by_path.answered), (BTreeSet::from([20]), true));
        assert_eq!(ask(&["@app"], None).pids, BTreeSet::from([10]));
        assert!(!ask(&["@app"], Some(SERVER)).answered, "the client's own is another one");
        assert!(!ask(&["/run/php.sock"], Some(OTHER)).answered);
        assert!(!ask(&["/run/php.soc"], None).answered);
    }

    #[test]
    fn process_one_counts_only_where_it_is_alone() {
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
