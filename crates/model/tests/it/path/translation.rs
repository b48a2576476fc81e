//! Servers behind a destination NAT: the path follows the entries of the conntrack tables, but only to an address with a listener.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{
    Address, Identity, ListenerAddress, NetnsId, NetnsView, Observation, OpenFiles, ProcessView, Socket, SocketAddress, TcpState,
    Translation,
};
use chokepoint_model::path::{Hop, discover};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Verdict;

use crate::stage::*;

const ROUTER: NetnsId = NetnsId(20);
const PHP: NetnsId = NetnsId(21);
const TARGET: (&str, u16) = ("192.168.7.1", 8080);

fn endpoint((address, port): (&str, u16)) -> (std::net::IpAddr, u16) {
    (ip(address), port)
}

fn netns(obs: &mut Observation, id: NetnsId, name: &str, address: &str) {
    let mut view = NetnsView { name: Some(name.into()), ..NetnsView::default() };
    view.addresses.push(0, Reading::Ok(vec![Address { ip: ip(address), prefix_bits: 24, link: 2 }]));
    obs.netns.insert(id, view);
}

/// An address and a port.
type Place<'p> = (&'p str, u16);

fn translates(obs: &mut Observation, id: NetnsId, all: &[(Place<'_>, Place<'_>)]) {
    let seen = |(from, to): &(Place<'_>, Place<'_>)| Translation { original: endpoint(*from), translated: endpoint(*to), count: 3 };
    obs.netns.get_mut(&id).unwrap().conntrack_translations.push(1, Reading::Ok(all.iter().map(seen).collect()));
}

fn listens(obs: &mut Observation, id: NetnsId, pid: u32, comm: &str, at: (&str, u16), inode: u64) {
    let view = obs.netns.get_mut(&id).unwrap();
    let mut listeners = view.listeners.last().cloned().unwrap_or_default();
    listeners.push(listener(ListenerAddress::Tcp(ip(at.0), at.1), inode, 0, 0));
    view.listeners.push(20_000_000, Reading::Ok(listeners));
    let mut process = ProcessView::default();
    let identity = Identity { pid, comm: comm.into(), netns: id, cpus_allowed: vec![1], ..Identity::default() };
    process.identity.push(0, Reading::Ok(identity));
    process.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: vec![inode, inode + 1] }));
    obs.processes.insert(pid, process);
}

fn connected(obs: &mut Observation, id: NetnsId, inode: u64, local: (&str, u16), remote: (&str, u16)) {
    let address = SocketAddress::Tcp { local: endpoint(local), remote: endpoint(remote) };
    let socket = Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None };
    obs.netns.get_mut(&id).unwrap().sockets.push(2_000_000, Reading::Ok(vec![socket]));
}

/// The healthy server, requested at an address of the router that has no listener.
fn routed() -> Observation {
    let mut obs = healthy();
    obs.request.addresses = vec![ip(TARGET.0)];
    obs.request.port = TARGET.1;
    netns(&mut obs, ROUTER, "router", TARGET.0);
    obs
}

fn names(obs: &Observation) -> Vec<String> {
    discover(obs).tiers.into_iter().map(|tier| tier.name).collect()
}

#[test]
fn a_translated_target_is_followed_and_reported() {
    let mut obs = routed();
    assert_eq!(names(&obs), [""; 0], "nothing tells where it leads");
    translates(&mut obs, ROUTER, &[(TARGET, (SERVER_IP, 80)), (("192.168.7.1", 9090), (SERVER_IP, 81))]);
    assert_eq!(names(&obs), ["nginx"]);
    let hop = Hop { netns: ROUTER, original: endpoint(TARGET), translated: endpoint((SERVER_IP, 80)) };
    assert_eq!(discover(&obs).translated, [hop], "another port's translation is not on this path");
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.verdict, Verdict::Healthy);
    let warning = "Connections to 192.168.7.1:8080 are translated to 10.0.0.2:80 in the network namespace router (conntrack).";
    assert!(diagnosis.warnings.iter().any(|told| told == warning), "{:?}", diagnosis.warnings);
}

#[test]
fn a_translation_to_an_address_without_a_listener_leads_nowhere() {
    for to in [("10.0.0.77", 80), (SERVER_IP, 81), ("fd00::9", 80)] {
        let mut obs = routed();
        translates(&mut obs, ROUTER, &[(TARGET, to)]);
        let path = discover(&obs);
        assert!(path.tiers.is_empty() && path.translated.is_empty(), "{to:?}");
        assert!(told(&obs).findings.is_empty());
    }
}

#[test]
fn up_to_eight_hops_are_followed_and_a_circle_ends() {
    let places: Vec<String> = (0..10).map(|n| format!("192.168.7.{}", n + 1)).collect();
    for (hops, found) in [(2, true), (8, true), (9, false)] {
        let mut obs = routed();
        let at = |n: usize| if n == hops { (SERVER_IP, 80) } else { (places[n].as_str(), 8080) };
        let chain: Vec<_> = (0..hops).map(|n| (at(n), at(n + 1))).collect();
        translates(&mut obs, ROUTER, &chain);
        assert_eq!((names(&obs).len(), discover(&obs).translated.len()), if found { (1, hops) } else { (0, 0) }, "{hops} hops");
    }
    let mut obs = routed();
    translates(&mut obs, ROUTER, &[(TARGET, (places[1].as_str(), 1)), ((places[1].as_str(), 1), TARGET)]);
    assert_eq!(names(&obs), [""; 0]);
}

#[test]
fn a_full_table_is_found_where_the_address_is_translated_and_not_in_an_idle_neighbour() {
    let spoil = |on_the_way: bool| {
        let mut obs = routed();
        netns(&mut obs, PHP, "neighbour", "192.168.8.1");
        translates(&mut obs, ROUTER, &[(TARGET, (SERVER_IP, 80))]);
        let id = if on_the_way { ROUTER } else { PHP };
        conntrack_limit(&mut obs, id, 200);
        entries(&mut obs, id, 200);
        counters(&mut obs, id, &[("drop", 5_000)]);
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (700, 100, [(200, 100)].into());
        (load.errors.connect_timeout, load.latency_us.max) = (600, 2_000_000);
        told(&obs)
    };
    let diagnosis = spoil(true);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["conntrack-table-full"]));
    assert_eq!((diagnosis.findings[0].tier.as_str(), diagnosis.findings[0].at.netns.as_deref()), ("router", Some("router")));
    assert_eq!(causes(&spoil(false)), [""; 0]);
}

#[test]
fn only_a_proxy_that_terminates_connections_is_on_the_path() {
    let proxied = |takes: bool| {
        let mut obs = routed();
        translates(&mut obs, ROUTER, &[(TARGET, (SERVER_IP, 80))]);
        listens(&mut obs, ROUTER, 70, "docker-proxy", ("0.0.0.0", TARGET.1), 300);
        if takes {
            connected(&mut obs, ROUTER, 301, TARGET, ("192.168.7.9", 40_000));
        }
        names(&obs)
    };
    assert_eq!(proxied(false), ["nginx"], "what is translated never reaches the proxy");
    let mut both = proxied(true);
    both.sort();
    assert_eq!(both, ["docker-proxy", "nginx"]);
    let mut obs = routed();
    listens(&mut obs, ROUTER, 70, "docker-proxy", ("0.0.0.0", TARGET.1), 300);
    assert_eq!(names(&obs), ["docker-proxy"]);
}

#[test]
fn of_two_namespaces_with_one_private_address_the_accepting_one_is_meant() {
    let mut obs = routed();
    translates(&mut obs, ROUTER, &[(TARGET, (SERVER_IP, 80))]);
    netns(&mut obs, PHP, "other", SERVER_IP);
    listens(&mut obs, PHP, 80, "caddy", ("0.0.0.0", 80), 400);
    let path = discover(&obs);
    assert_eq!((path.tiers.len(), path.ambiguous), (0, vec![SERVER, PHP]), "nothing tells which");
    assert_eq!(told(&obs).verdict, Verdict::Unknown);
    connected(&mut obs, PHP, 0, (SERVER_IP, 80), ("10.0.0.1", 40_000));
    assert_eq!(names(&obs), ["caddy"]);
    obs.request.server_netns = Some(SERVER);
    assert_eq!(names(&obs), ["nginx"], "the user knows better");
    obs.request.server_netns = None;
    connected(&mut obs, SERVER, 0, (SERVER_IP, 80), ("10.0.0.1", 40_001));
    assert_eq!(discover(&obs).ambiguous, [SERVER, PHP]);
}

#[test]
fn a_loopback_address_is_translated_only_for_the_clients_namespace() {
    let mut obs = routed();
    obs.request.addresses = vec![ip("127.0.0.1")];
    translates(&mut obs, ROUTER, &[(("127.0.0.1", TARGET.1), (SERVER_IP, 80))]);
    assert_eq!(names(&obs), [""; 0]);
    translates(&mut obs, CLIENT, &[(("127.0.0.1", TARGET.1), (SERVER_IP, 80))]);
    assert_eq!(names(&obs), ["nginx"]);
}

#[test]
fn every_backend_of_a_target_is_on_the_path_over_ipv6_too() {
    let mut obs = routed();
    netns(&mut obs, PHP, "second", "fd00::2");
    obs.request.addresses = vec![ip("fd00::1")];
    listens(&mut obs, PHP, 80, "caddy", ("::", 80), 400);
    netns(&mut obs, NetnsId(22), "third", "fd00::3");
    listens(&mut obs, NetnsId(22), 90, "caddy", ("::", 80), 500);
    translates(&mut obs, ROUTER, &[(("fd00::1", TARGET.1), ("fd00::2", 80)), (("fd00::1", TARGET.1), ("fd00::3", 80))]);
    assert_eq!(names(&obs), ["caddy", "caddy-2"]);
}

#[test]
fn an_upstream_behind_a_translated_address_is_found() {
    let mut obs = routed();
    let service = ("10.96.0.10", 9000);
    netns(&mut obs, PHP, "php", "10.0.0.3");
    listens(&mut obs, PHP, 50, "php-fpm8.2", ("10.0.0.3", 9000), 200);
    translates(&mut obs, ROUTER, &[(TARGET, (SERVER_IP, 80)), (service, ("10.0.0.3", 9000)), (("10.96.0.11", 1), ("10.0.0.3", 9000))]);
    obs.processes.get_mut(&42).unwrap().files.push(1, Reading::Ok(OpenFiles { count: 9, sockets: vec![100, 500] }));
    connected(&mut obs, SERVER, 500, (SERVER_IP, 50_000), service);
    assert_eq!(names(&obs), ["nginx", "php-fpm"]);
    assert_eq!(discover(&obs).translated.len(), 2, "not the service that nobody called");
}
