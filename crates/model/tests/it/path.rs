//! Discovery of the path: from the URL through listeners, processes and their outgoing peers, over TCP and unix sockets, across namespaces.
//!
//! Deterministic: observations made up by the tests.

mod translation;

use chokepoint_model::observation::{
    Identity, ListenerAddress, NetnsId, NetnsView, NginxConfig, NginxPass, Observation, OpenFiles, ProcessView, ServerConfig, Socket,
    SocketAddress, TcpState, UnixPeer,
};
use chokepoint_model::path::{Path, discover};
use chokepoint_model::reading::Reading;

use crate::stage::*;

fn process(obs: &mut Observation, pid: u32, comm: &str, sockets: &[u64]) {
    let mut view = ProcessView::default();
    let identity = Identity { pid, comm: comm.into(), start_ticks: u64::from(pid), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.files.push(0, Reading::Ok(OpenFiles { count: 20, sockets: sockets.to_vec() }));
    obs.processes.insert(pid, view);
}

fn tcp(inode: u64, local: (&str, u16), remote: (&str, u16)) -> Socket {
    let address = SocketAddress::Tcp { local: (ip(local.0), local.1), remote: (ip(remote.0), remote.1) };
    Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
}

fn unix(inode: u64, path: Option<&str>, peer: u64) -> Socket {
    let address = SocketAddress::Unix { path: path.map(str::to_owned), peer: UnixPeer::Inode(peer) };
    Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
}

fn listen(obs: &mut Observation, netns: NetnsId, address: ListenerAddress, inode: u64) {
    let view = obs.netns.entry(netns).or_default();
    let mut listeners = view.listeners.last().cloned().unwrap_or_default();
    listeners.push(listener(address, inode, 0, 0));
    view.listeners.push(20_000_000, Reading::Ok(listeners));
}

fn names(path: &Path) -> Vec<&str> {
    path.tiers.iter().map(|tier| tier.name.as_str()).collect()
}

#[test]
fn a_proxy_its_pool_over_tcp_and_the_pools_database_over_a_unix_socket_are_found() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 9000), 200);
    listen(&mut obs, SERVER, ListenerAddress::Unix("/run/db.sock".into()), 300);
    process(&mut obs, 42, "nginx", &[100, 500]);
    process(&mut obs, 43, "nginx", &[100, 501, 502]);
    process(&mut obs, 50, "php-fpm8.2", &[200]);
    process(&mut obs, 51, "php-fpm8.2", &[200, 510, 600]);
    process(&mut obs, 60, "mysqld", &[300, 601]);
    process(&mut obs, 70, "redis", &[700]);
    let sockets = vec![
        tcp(500, ("10.0.0.2", 80), ("10.0.0.1", 40_000)),
        tcp(502, ("127.0.0.1", 50_000), ("127.0.0.1", 9000)),
        tcp(510, ("127.0.0.1", 9000), ("127.0.0.1", 50_000)),
        unix(600, None, 601),
        unix(601, Some("/run/db.sock"), 600),
    ];
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
    let path = discover(&obs);
    assert_eq!(names(&path), ["nginx", "php-fpm", "mysqld"]);
    assert_eq!(path.tiers[0].pids, [42, 43]);
    assert_eq!((&path.tiers[0].upstreams, &path.tiers[1].upstreams), (&vec![1], &vec![2]));
}

#[test]
fn the_hosts_own_services_are_no_upstreams() {
    let of = |comm: &str, path: &str| {
        let mut obs = healthy();
        listen(&mut obs, SERVER, ListenerAddress::Unix(path.into()), 300);
        process(&mut obs, 42, "nginx", &[100, 600]);
        process(&mut obs, 60, comm, &[300, 601]);
        let kept = vec![unix(600, None, 601), unix(601, Some(path), 600)];
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(kept));
        discover(&obs).tiers.len()
    };
    // Standard error at journald, a status told to the service manager, a bus, logs by socket: whoever holds the other end.
    for (comm, path) in [
        ("systemd-journal", "/run/systemd/journal/stdout"),
        ("systemd", "/run/systemd/private"),
        ("dbus-daemon", "/run/dbus/system_bus_socket"),
        ("dbus-daemon", "/var/run/dbus/system_bus_socket"),
        ("dbus-broker", "/run/user/1000/bus"),
        ("systemd", "/run/user/1000/systemd/private"),
        ("rsyslogd", "/dev/log"),
        ("syslog-ng", "/srv/chroot/dev/log"),
    ] {
        assert_eq!(of(comm, path), 1, "{comm} {path}");
    }
    for (comm, path) in [("php-fpm8.2", "/run/php/php.sock"), ("systemd", "/run/app.socket"), ("app", "/run/user/1000/app/bus")] {
        assert_eq!(of(comm, path), 2, "{comm} {path}");
    }
}

#[test]
fn a_log_server_over_tcp_is_no_upstream() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 601), 200);
    process(&mut obs, 42, "nginx", &[100, 502]);
    process(&mut obs, 50, "rsyslogd", &[200]);
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(vec![tcp(502, ("127.0.0.1", 50_000), ("127.0.0.1", 601))]));
    assert_eq!(names(&discover(&obs)), ["nginx"]);
}

#[test]
fn a_unix_upstream_that_accepts_nothing_is_found_by_its_waiting_connections() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Unix("/run/pool.sock".into()), 300);
    process(&mut obs, 42, "nginx", &[100, 600]);
    process(&mut obs, 60, "gunicorn", &[300]);
    let waiting = Socket { inode: 0, ..unix(0, Some("/run/pool.sock"), 600) };
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(vec![unix(600, None, 0), waiting]));
    assert_eq!(names(&discover(&obs)), ["nginx", "gunicorn"]);
}

#[test]
fn an_upstream_in_another_namespace_is_found_by_its_address() {
    let mut obs = healthy();
    let other = NetnsId(9);
    let mut view = NetnsView { name: Some("backend".into()), ..NetnsView::default() };
    view.addresses.push(0, Reading::Ok(vec![chokepoint_model::observation::Address { ip: ip("10.1.0.3"), prefix_bits: 24, link: 2 }]));
    obs.netns.insert(other, view);
    listen(&mut obs, other, ListenerAddress::Tcp(ip("::"), 8080), 200);
    process(&mut obs, 42, "nginx", &[100, 502]);
    process(&mut obs, 50, "node", &[200]);
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(vec![tcp(502, ("10.1.0.2", 50_000), ("10.1.0.3", 8080))]));
    let path = discover(&obs);
    assert_eq!(names(&path), ["nginx", "node"]);
    assert_eq!(path.tiers[1].netns, other);
}

/// A server whose children serve what it accepts: a database with a process for each connection, workers to which a parent hands connections.
#[test]
fn children_with_the_connections_of_their_parent_are_of_its_tier_and_lead_to_what_they_call() {
    let with_parent = |obs: &mut Observation, pid: u32, comm: &str, parent: u32, sockets: &[u64]| {
        process(obs, pid, comm, sockets);
        let identity = Identity { pid, comm: comm.into(), parent, cpus_allowed: vec![1], ..Identity::default() };
        obs.processes.get_mut(&pid).unwrap().identity.push(1, Reading::Ok(identity));
    };
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 8080), 200);
    listen(&mut obs, SERVER, ListenerAddress::Unix("/run/db.sock".into()), 300);
    process(&mut obs, 42, "node", &[100]);
    with_parent(&mut obs, 43, "node", 42, &[500, 502]);
    with_parent(&mut obs, 44, "node", 42, &[501]);
    with_parent(&mut obs, 45, "logger", 42, &[]);
    // What its parent has as well, a child that was started for something else may have inherited.
    process(&mut obs, 50, "java", &[200, 510, 600]);
    with_parent(&mut obs, 51, "convert", 50, &[510]);
    process(&mut obs, 60, "postgres", &[300]);
    with_parent(&mut obs, 61, "postgres", 60, &[601]);
    with_parent(&mut obs, 62, "checkpointer", 60, &[]);
    // Another one's child, and a child of nobody on the path.
    with_parent(&mut obs, 70, "sh", 45, &[501]);
    with_parent(&mut obs, 71, "sh", 1, &[500]);
    let sockets = vec![
        tcp(500, ("10.0.0.2", 80), ("10.0.0.1", 40_000)),
        tcp(501, ("10.0.0.2", 80), ("10.0.0.1", 40_001)),
        tcp(502, ("127.0.0.1", 50_000), ("127.0.0.1", 8080)),
        tcp(510, ("127.0.0.1", 8080), ("127.0.0.1", 50_000)),
        unix(600, None, 601),
        unix(601, Some("/run/db.sock"), 600),
    ];
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
    let path = discover(&obs);
    assert_eq!(names(&path), ["node", "java", "postgres"]);
    let of = |tier: usize| (path.tiers[tier].pids.as_slice(), path.tiers[tier].children.as_slice());
    assert_eq!(of(0), ([42, 43, 44].as_slice(), [43, 44].as_slice()));
    assert_eq!(of(1), ([50].as_slice(), [].as_slice()));
    assert_eq!(of(2), ([60, 61].as_slice(), [61].as_slice()));
}

#[test]
fn workers_with_a_listener_each_are_one_tier_and_a_ring_of_servers_ends() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("0.0.0.0"), 80), 101);
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 8080), 200);
    process(&mut obs, 42, "nginx", &[100]);
    process(&mut obs, 43, "nginx", &[101, 502]);
    process(&mut obs, 50, "java", &[200, 503]);
    let sockets = vec![
        tcp(502, ("127.0.0.1", 50_000), ("127.0.0.1", 8080)),
        // The upstream calls the proxy back.
        tcp(503, ("10.0.0.2", 50_001), ("10.0.0.2", 80)),
    ];
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
    let path = discover(&obs);
    assert_eq!(names(&path), ["nginx", "java"]);
    assert_eq!((path.tiers[0].pids.as_slice(), path.tiers[0].listeners.len()), ([42, 43].as_slice(), 2));
    assert_eq!((&path.tiers[0].upstreams, &path.tiers[1].upstreams), (&vec![1], &vec![0]));
}

#[test]
fn a_listener_bound_to_the_exact_address_wins_and_loopback_belongs_to_the_client() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip(SERVER_IP), 80), 300);
    process(&mut obs, 60, "haproxy", &[300]);
    assert_eq!(names(&discover(&obs)), ["haproxy"]);
    obs.request.addresses = vec![ip("127.0.0.1")];
    assert!(discover(&obs).tiers.is_empty(), "the server's loopback is not the client's");
    obs.request.client_netns = SERVER;
    assert_eq!(names(&discover(&obs)), ["nginx"]);
}

#[test]
fn a_v6_only_listener_takes_no_v4_and_a_dual_one_does() {
    let mut obs = healthy();
    obs.netns.get_mut(&SERVER).unwrap().listeners = Default::default();
    listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("::"), 80), 400);
    process(&mut obs, 61, "caddy", &[400]);
    assert_eq!(names(&discover(&obs)), ["caddy"]);
    let mut only = listener(ListenerAddress::Tcp(ip("::"), 80), 400, 0, 0);
    only.v6_only = true;
    obs.netns.get_mut(&SERVER).unwrap().listeners = Default::default();
    obs.netns.get_mut(&SERVER).unwrap().listeners.push(0, Reading::Ok(vec![only]));
    assert!(discover(&obs).tiers.is_empty());
}

#[test]
fn a_server_whose_processes_cannot_be_read_is_still_a_tier() {
    let mut obs = healthy();
    obs.processes.clear();
    let path = discover(&obs);
    assert_eq!((names(&path), path.tiers[0].pids.len()), (vec!["0.0.0.0:80"], 0));
}

#[test]
fn many_connections_too_short_to_observe_are_attributed_by_their_user_unless_it_is_root() {
    let found_beside = |uid: u32, count: u64, other: &[u64]| {
        let mut obs = healthy();
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 9000), 200);
        process(&mut obs, 42, "nginx", &[100]);
        process(&mut obs, 50, "php-fpm8.2", &[200]);
        process(&mut obs, 60, "worker", other);
        let identity = obs.processes[&42].identity.first().cloned().unwrap();
        obs.processes.get_mut(&42).unwrap().identity = Default::default();
        obs.processes.get_mut(&42).unwrap().identity.push(0, Reading::Ok(Identity { uid: 33, ..identity }));
        let dialled = |n: u64| Socket { uid: Some(uid), ..tcp(900 + n, ("127.0.0.1", 40_000 + n as u16), ("127.0.0.1", 9000)) };
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok((0..count).map(dialled).collect()));
        discover(&obs).tiers.len()
    };
    let found = |uid, count| found_beside(uid, count, &[]);
    assert_eq!((found(33, 20), found(33, 2), found(34, 20), found(0, 20)), (2, 1, 1, 1));
    assert_eq!(found_beside(33, 20, &[905]), 1, "another program of this user calls there");
}

/// nginx and Apache run as one user: 20 connections of that user lead to php-fpm, and 20 to what Apache calls. Apache has clients of its own.
fn of_one_user(config: Option<NginxConfig>, is_apache_at_work: bool) -> Observation {
    let mut obs = healthy();
    for (port, inode) in [(9000, 200), (9100, 210), (8082, 220)] {
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), port), inode);
    }
    process(&mut obs, 42, "nginx", &[100]);
    process(&mut obs, 50, "php-fpm8.2", &[200]);
    process(&mut obs, 51, "node", &[210]);
    let identity = obs.processes[&42].identity.first().cloned().unwrap();
    obs.processes.get_mut(&42).unwrap().identity = Default::default();
    obs.processes.get_mut(&42).unwrap().identity.push(0, Reading::Ok(Identity { uid: 33, ..identity }));
    let of_user = |socket: Socket| Socket { uid: Some(33), ..socket };
    let mut sockets: Vec<Socket> = Vec::new();
    for n in 0..20 {
        sockets.push(of_user(tcp(900 + n, ("127.0.0.1", 40_000 + n as u16), ("127.0.0.1", 9000))));
        sockets.push(of_user(tcp(940 + n, ("127.0.0.1", 41_000 + n as u16), ("127.0.0.1", 9100))));
    }
    if is_apache_at_work {
        sockets.push(of_user(tcp(990, ("127.0.0.1", 8082), ("127.0.0.1", 50_000))));
    }
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
    if let Some(config) = config {
        obs.servers.entry(42).or_default().config.push(1, Reading::Ok(ServerConfig::Nginx(config)));
    }
    obs
}

fn passing(servers: &[&[u16]]) -> NginxConfig {
    let at = |port: &u16| ListenerAddress::Tcp(ip("127.0.0.1"), *port);
    let pass = |ports: &&[u16]| NginxPass { servers: ports.iter().map(at).collect(), ..NginxPass::default() };
    NginxConfig { passes: servers.iter().map(pass).collect(), ..NginxConfig::default() }
}

#[test]
fn a_server_that_was_not_seen_is_on_the_path_if_it_stands_for_one_that_was() {
    let of = |servers: &[&[u16]], uid| {
        let mut obs = of_one_user(Some(passing(servers)), false);
        // Connections to php-fpm were seen, and none to node.
        let nginx = obs.processes.get_mut(&42).unwrap();
        nginx.files.push(1, Reading::Ok(OpenFiles { count: 9, sockets: vec![100, 900] }));
        let identity = nginx.identity.last().cloned().unwrap();
        nginx.identity = Default::default();
        nginx.identity.push(0, Reading::Ok(Identity { uid, ..identity }));
        let path = discover(&obs);
        (names(&path).join(" "), path.tiers[0].configured.len())
    };
    assert_eq!(of(&[&[9000, 9100]], 0), ("nginx php-fpm node".to_owned(), 1));
    assert_eq!(of(&[&[9000], &[9100]], 0), ("nginx php-fpm".to_owned(), 0), "for other requests");
    assert_eq!(of(&[&[9000, 9101]], 0), ("nginx php-fpm".to_owned(), 0), "nobody listens there");
    assert_eq!(of(&[&[9000, 9100]], 33), ("nginx php-fpm".to_owned(), 0), "a user's configuration does not lead to root's server");
}

#[test]
fn of_servers_with_one_user_each_calls_what_its_configuration_names() {
    let of = |config, works| {
        let path = discover(&of_one_user(config, works));
        (names(&path).join(" "), path.tiers[0].supposed.len())
    };
    for works in [true, false] {
        assert_eq!(of(Some(passing(&[&[9000]])), works), ("nginx php-fpm".to_owned(), 0));
        assert_eq!(of(Some(passing(&[])), works), ("nginx".to_owned(), 0), "files alone");
    }
    // A target that is only known at run time may be any of them, and nobody else is seen to work.
    assert_eq!(of(Some(passing(&[&[9000], &[]])), false), ("nginx php-fpm node".to_owned(), 2));
    assert_eq!(of(None, false), ("nginx php-fpm node".to_owned(), 2));
    // Whose they are is not known where another server of that user is at work.
    assert_eq!(of(None, true), ("nginx".to_owned(), 0));
}

#[test]
fn a_users_configuration_does_not_lead_to_another_users_server_that_it_was_not_seen_to_reach() {
    let of = |proxy: u32, pool: u32, is_seen: bool| {
        let mut obs = healthy();
        listen(&mut obs, SERVER, ListenerAddress::Unix("/run/php.sock".into()), 300);
        process(&mut obs, 42, "nginx", &[100, 600]);
        process(&mut obs, 60, "php-fpm8.2", &[300, 601]);
        for (pid, uid) in [(42, proxy), (60, pool)] {
            let identity = &mut obs.processes.get_mut(&pid).unwrap().identity;
            let known = std::mem::take(identity);
            identity.push(0, Reading::Ok(Identity { uid, ..known.first().unwrap().clone() }));
        }
        let pass = NginxPass { servers: vec![ListenerAddress::Unix("/run/php.sock".into())], ..NginxPass::default() };
        let config = NginxConfig { passes: vec![pass], ..NginxConfig::default() };
        obs.servers.entry(42).or_default().config.push(1, Reading::Ok(ServerConfig::Nginx(config)));
        let sockets = vec![unix(600, None, 601), unix(601, Some("/run/php.sock"), 600)];
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(if is_seen { sockets } else { Vec::new() }));
        names(&discover(&obs)).join(" ")
    };
    for (proxy, pool) in [(0, 0), (0, 33), (1_000, 1_000)] {
        assert_eq!(of(proxy, pool, false), "nginx php-fpm", "{proxy} {pool}");
    }
    // The socket may be closed to him, and root would ask there, load it and change it in his place.
    assert_eq!((of(65_534, 0, false), of(65_534, 33, false)), ("nginx".to_owned(), "nginx".to_owned()));
    assert_eq!(of(65_534, 0, true), "nginx php-fpm");
}

#[test]
fn a_connection_that_nobody_answers_does_not_lead_a_user_to_another_users_server() {
    let of = |caller: u32, listener: u32, state: TcpState| {
        let mut obs = healthy();
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 9000), 300);
        process(&mut obs, 42, "node", &[100, 600]);
        process(&mut obs, 60, "postgres", &[300]);
        for (pid, uid) in [(42, caller), (60, listener)] {
            let identity = &mut obs.processes.get_mut(&pid).unwrap().identity;
            let known = std::mem::take(identity);
            identity.push(0, Reading::Ok(Identity { uid, ..known.first().unwrap().clone() }));
        }
        let socket = Socket { state, uid: Some(caller), ..tcp(600, ("127.0.0.1", 40_000), ("127.0.0.1", 9000)) };
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(vec![socket; 6]));
        names(&discover(&obs)).join(" ")
    };
    // A packet filter may close the port to him (iptables-extensions(8), owner), and root would load and change the server in his place.
    assert_eq!(of(65_534, 0, TcpState::SynSent), "node");
    assert_eq!(of(65_534, 0, TcpState::Established), "node postgres");
    for (caller, listener) in [(0, 26), (1_000, 1_000)] {
        assert_eq!(of(caller, listener, TcpState::SynSent), "node postgres", "{caller} {listener}");
    }
}

#[test]
fn connections_that_the_server_was_seen_not_to_hold_are_those_of_another_program() {
    // Clients of the same user keep connections to another server of it.
    let of = |until_us: u64| {
        let mut obs = of_one_user(None, false);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let kept = view.sockets.last().cloned().unwrap();
        view.sockets.push(until_us, Reading::Ok(kept));
        let files = OpenFiles { count: 20, sockets: vec![100] };
        obs.processes.get_mut(&42).unwrap().files.push(3_000_000, Reading::Ok(files));
        names(&discover(&obs)).len()
    };
    assert_eq!((of(2_000_000), of(4_000_000)), (3, 1));
}

#[test]
fn what_only_the_user_tells_is_told_as_perhaps() {
    let told_of = |config| told(&of_one_user(config, false)).warnings.iter().filter(|one| one.contains("may be behind nginx")).count();
    assert_eq!((told_of(None), told_of(Some(passing(&[&[9000]])))), (2, 0));
}

#[test]
fn two_servers_at_the_two_addresses_of_a_name_are_not_one() {
    let twins = |other: &[u64]| {
        let mut obs = healthy();
        obs.netns.get_mut(&SERVER).unwrap().listeners = Default::default();
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 80), 100);
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("::1"), 80), 300);
        process(&mut obs, 42, "nginx", &[100, other[0]]);
        process(&mut obs, 60, "node", &[other[1]]);
        obs.request.client_netns = SERVER;
        obs.request.addresses = vec![ip("127.0.0.1"), ip("::1")];
        let path = discover(&obs);
        (names(&path).join(" "), path.tiers.iter().map(|tier| tier.listeners.len()).sum::<usize>())
    };
    // Connections go to the first address.
    assert_eq!(twins(&[9, 300]), ("nginx".to_owned(), 1));
    assert_eq!(twins(&[300, 9]), ("nginx".to_owned(), 2), "one server at both");
}

#[test]
fn servers_behind_that_only_other_requests_reach_are_not_on_the_path() {
    let of = |leads_to: Option<Vec<ListenerAddress>>, passed: &str| {
        let mut obs = healthy();
        let php = ListenerAddress::Unix("/run/php.sock".into());
        listen(&mut obs, SERVER, php.clone(), 300);
        listen(&mut obs, SERVER, ListenerAddress::Tcp(ip("127.0.0.1"), 8080), 200);
        process(&mut obs, 42, "nginx", &[100, 500, 600]);
        process(&mut obs, 50, "java", &[200, 501]);
        process(&mut obs, 60, "php-fpm8.2", &[300, 601]);
        let sockets =
            vec![tcp(500, ("127.0.0.1", 50_000), ("127.0.0.1", 8080)), unix(600, None, 601), unix(601, Some("/run/php.sock"), 600)];
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
        let passes = [passed.to_owned(), "/run/php.sock".to_owned()].map(|path| NginxPass {
            servers: vec![if path.starts_with('/') { ListenerAddress::Unix(path) } else { ListenerAddress::Tcp(ip("127.0.0.1"), 8080) }],
            ..NginxPass::default()
        });
        let config = NginxConfig { passes: passes.into(), leads_to, ..NginxConfig::default() };
        let server = obs.servers.entry(42).or_default();
        server.config.push(1, Reading::Ok(ServerConfig::Nginx(config)));
        let path = discover(&obs);
        let elsewhere: Vec<String> = path.elsewhere.iter().map(|placed| placed.listener.address.to_string()).collect();
        (names(&path).join(" "), elsewhere.join(" "))
    };
    let (java, php) = (|| ListenerAddress::Tcp(ip("127.0.0.1"), 8080), || ListenerAddress::Unix("/run/php.sock".into()));
    let found = |path: &str, elsewhere: &str| (path.to_owned(), elsewhere.to_owned());
    assert_eq!(of(None, "java"), found("nginx java php-fpm", ""), "not known: each may be meant");
    assert_eq!(of(Some(vec![java(), php()]), "java"), found("nginx java php-fpm", ""));
    assert_eq!(of(Some(vec![java()]), "java"), found("nginx java", "unix:/run/php.sock"));
    assert_eq!(of(Some(vec![]), "java"), found("nginx", "127.0.0.1:8080 unix:/run/php.sock"), "a file");
    // What the files do not name was there before they were edited, or comes from elsewhere.
    assert_eq!(of(Some(vec![]), "/run/other.sock"), found("nginx java", "unix:/run/php.sock"));
}

/// The target is a unix socket with these names.
fn ask(obs: &mut Observation, names: &[&str]) {
    obs.request.addresses.clear();
    obs.request.unix = names.iter().map(|name| (*name).to_owned()).collect();
}

#[test]
fn a_unix_socket_as_the_target_leads_only_to_its_server() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Unix("/run/php.sock".into()), 300);
    process(&mut obs, 60, "php-fpm8.2", &[300]);
    for names_asked in [&["/run/php.sock"][..], &["/srv/link.sock", "/var/run/php.sock"]] {
        ask(&mut obs, names_asked);
        assert_eq!(names(&discover(&obs)), ["php-fpm"], "{names_asked:?}");
    }
    ask(&mut obs, &["/run/php"]);
    assert_eq!(discover(&obs), Path::default());
    // Two containers use the same path. The client's own socket is meant. If the client has none, the target is ambiguous.
    listen(&mut obs, HOST, ListenerAddress::Unix("/run/php.sock".into()), 400);
    process(&mut obs, 70, "other", &[400]);
    ask(&mut obs, &["/run/php.sock"]);
    assert_eq!(discover(&obs).ambiguous, [SERVER, HOST]);
    obs.request.client_netns = HOST;
    assert_eq!(names(&discover(&obs)), ["other"]);
    obs.request.server_netns = Some(SERVER);
    assert_eq!(names(&discover(&obs)), ["php-fpm"]);
}

#[test]
fn an_abstract_name_belongs_to_its_namespace() {
    let mut obs = healthy();
    listen(&mut obs, SERVER, ListenerAddress::Unix("@app".into()), 300);
    process(&mut obs, 60, "app", &[300]);
    ask(&mut obs, &["@app"]);
    assert!(discover(&obs).tiers.is_empty(), "the client is in another namespace");
    obs.request.client_netns = SERVER;
    assert_eq!(names(&discover(&obs)), ["app"]);
}
