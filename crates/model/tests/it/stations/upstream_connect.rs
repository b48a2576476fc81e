//! A connection to the upstream for each request: an improvement if it is expensive, a cause if it holds the server back, and no finding
//! everywhere else.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::{Change, ServerSetting};
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    AccessLog, Counters, CpuUse, Identity, Listener, ListenerAddress, NginxConfig, NginxPass, Observation, OpenFiles, Origin, PhpFpmConfig,
    PhpFpmPool, ProcessView, ServerConfig, Setting, Socket, SocketAddress, TcpState, UnixPeer,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, Signal, Verdict};

use crate::stage::profiled::profile;
use crate::stage::*;

const CHURN: &str = "upstream-connection-churn";

/// nginx (42) in front of php-fpm (50 and its children) on one busy core. A request takes 100 us of CPU, most of it in the kernel.
pub(super) struct Pair {
    address: ListenerAddress,
    /// The address that nginx passes to, if it is not the listener's own.
    pub(super) pass: NginxPass,
    children: u32,
    nginx_workers: u32,
    version: Option<(u16, u16, u16)>,
    /// Connections opened in ten seconds, for 100,000 requests.
    opened: Option<i64>,
    /// CPU time of each of the two tiers during the load: user and system ticks.
    ticks: (u64, u64),
    /// Whether connections between the two were seen.
    is_seen: bool,
    busy: f64,
}

pub(super) fn pass(servers: Vec<ListenerAddress>) -> NginxPass {
    let origin = Origin { file: "/etc/nginx/nginx.conf".into(), line: 17 };
    let (kind, upstream, keepalive, keepalive_requests) = ("fastcgi".into(), None, None, None);
    NginxPass { kind, upstream, servers, keepalive, keepalive_requests, reuses: false, origin, backups: Vec::new() }
}

impl Pair {
    pub(super) fn at(address: ListenerAddress) -> Self {
        Self {
            pass: pass(vec![address.clone()]),
            address,
            children: 20,
            nginx_workers: 2,
            version: Some((1, 22, 1)),
            opened: Some(100_000),
            ticks: (200, 300),
            is_seen: true,
            busy: 1.0,
        }
    }

    pub(super) fn tcp() -> Self {
        Self::at(ListenerAddress::Tcp(ip("127.0.0.1"), 9000))
    }

    pub(super) fn observed(&self) -> Observation {
        let mut obs = healthy();
        cpu(&mut obs, self.busy);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at, mut listeners) in points {
            listeners.push(listener(self.address.clone(), 200, 0, 0));
            view.listeners.push(at, Reading::Ok(listeners));
        }
        for second in 1..=10_u64 {
            view.sockets.push(second * 1_000_000, Reading::Ok(self.sockets()));
        }
        for at in [0, 11_000_000] {
            let opened = self.opened.map(|opened| ("Tcp.ActiveOpens".to_owned(), if at == 0 { 7 } else { 7 + opened }));
            let retried = ("TcpExt.TCPSynRetrans".to_owned(), 3);
            view.netstat.push(at, Reading::Ok(Counters::from_iter(opened.into_iter().chain([retried]))));
        }
        self.process(&mut obs, 42, 1, "nginx", &[100, 500]);
        self.process(&mut obs, 50, 1, "php-fpm8.2", &[200]);
        let number = |value| Setting { value, origin: Origin::default() };
        let nginx = NginxConfig {
            version: self.version,
            file: "/etc/nginx/nginx.conf".into(),
            worker_processes: number(self.nginx_workers),
            passes: vec![self.pass.clone()],
            ..NginxConfig::default()
        };
        obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(nginx)));
        let pool = PhpFpmPool {
            name: "www".into(),
            listen: self.address.clone(),
            backlog: Setting { value: 4096, origin: Origin::default() },
            pm: Setting { value: "static".into(), origin: Origin::default() },
            max_children: number(self.children),
            max_requests: Setting { value: 0, origin: Origin::default() },
            terminate_timeout_s: Setting { value: 0, origin: Origin::default() },
        };
        let php_fpm = PhpFpmConfig { pools: vec![pool], ..PhpFpmConfig::default() };
        obs.servers.entry(50).or_default().config.push(0, Reading::Ok(ServerConfig::PhpFpm(php_fpm)));
        obs
    }

    fn sockets(&self) -> Vec<Socket> {
        if !self.is_seen {
            return Vec::new();
        }
        let socket = |inode, address| Socket {
            address,
            state: TcpState::Established,
            inode,
            uid: None,
            receive_queue: 0,
            send_queue: 0,
            wait: None,
        };
        match &self.address {
            ListenerAddress::Tcp(to, port) => {
                vec![socket(500, SocketAddress::Tcp { local: (*to, 40_000), remote: (*to, *port) })]
            }
            ListenerAddress::Unix(path) => vec![
                socket(500, SocketAddress::Unix { path: None, peer: UnixPeer::Inode(600) }),
                socket(600, SocketAddress::Unix { path: Some(path.clone()), peer: UnixPeer::Inode(500) }),
            ],
        }
    }

    fn process(&self, obs: &mut Observation, pid: u32, parent: u32, comm: &str, sockets: &[u64]) {
        let mut view = ProcessView::default();
        let identity = Identity { pid, parent, comm: comm.into(), start_ticks: 9, cpus_allowed: vec![1], ..Identity::default() };
        view.identity.push(0, Reading::Ok(identity));
        view.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: sockets.to_vec() }));
        for second in 0..=11_u64 {
            let (user_ticks, system_ticks) = (self.ticks.0 * second / 10, self.ticks.1 * second / 10);
            view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { user_ticks, system_ticks, ..CpuUse::default() }));
        }
        obs.processes.insert(pid, view);
    }
}

fn improvements(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.improvements.iter().map(|finding| finding.id.as_str()).collect()
}

/// The result without an improvement: a healthy server, limited by its cores.
fn silent(obs: &Observation, told_as: &str) {
    let diagnosis = told(obs);
    assert_eq!((improvements(&diagnosis), causes(&diagnosis)), (vec![], vec![]), "{told_as}");
}

fn values(diagnosis: &Diagnosis) -> Vec<(String, String, String)> {
    let changes = diagnosis.improvements[0].remedies.iter().flat_map(|remedy| &remedy.change);
    let value = |change: &Change| match change {
        Change::Server { setting: ServerSetting::NginxFastcgiReuse { pass }, from, to, .. } => (pass.clone(), from.clone(), to.clone()),
        other => panic!("{other:?}"),
    };
    changes.map(value).collect()
}

#[test]
fn cheap_pages_with_a_connection_each_get_an_improvement_and_the_server_is_healthy() {
    let diagnosis = told(&Pair::tcp().observed());
    assert_eq!((diagnosis.verdict, diagnosis.limited_by), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
    assert_eq!(improvements(&diagnosis), [CHURN]);
    let churn = &diagnosis.improvements[0];
    assert_eq!((churn.confidence, churn.at.edge.as_deref()), (Confidence::High, Some("nginx->php-fpm")));
    assert!(churn.evidence.iter().any(|proof| proof.source == "/etc/nginx/nginx.conf:17"), "{:?}", churn.evidence);
    assert!(churn.evidence.iter().any(|proof| proof.text.contains("100 µs") && proof.text.contains("60 µs")), "{:?}", churn.evidence);
    let ids: Vec<&str> = churn.remedies.iter().map(|remedy| remedy.id.as_str()).collect();
    let kept = ["reuse-upstream-connections-short", "reuse-upstream-connections-medium", "reuse-upstream-connections-long"];
    assert_eq!((&ids[..3], &ids[3..]), (&kept[..], &["move-to-unix-socket-by-hand"][..]));
    let alike = |remedy: &chokepoint_model::report::Remedy| remedy.group == churn.remedies[0].group && remedy.signal == Signal::Goodput;
    assert!(churn.remedies[0].group.is_some() && churn.remedies[..3].iter().all(alike));
    let value = |requests: u32| ("127.0.0.1:9000".to_owned(), "unset".to_owned(), format!("keepalive=8 requests={requests}"));
    assert_eq!(values(&diagnosis), [value(5), value(20), value(100)]);
    let station = diagnosis.path.iter().find(|station| station.station == "upstream-connect").unwrap();
    assert!(station.used.is_some_and(|used| (used - 10_000.0).abs() < 1.0), "{station:?}");
}

/// This many of 400 samples of the full core fell into opening or closing a connection, in nginx and in php-fpm.
fn sampled(mut obs: Observation, nginx: u64, php_fpm: u64) -> Observation {
    let aspects: &[&str] = &["kernel-network", "connection"];
    let rest = 400 - nginx - php_fpm;
    profile(&mut obs, &[(42, 1, "connection", aspects, nginx), (50, 1, "connection", aspects, php_fpm), (50, 1, "interpreter", &[], rest)]);
    obs
}

#[test]
fn connections_that_use_much_of_the_cores_in_a_profile_are_a_cause() {
    let diagnosis = told(&sampled(Pair::tcp().observed(), 60, 40));
    assert_eq!((diagnosis.verdict, diagnosis.limited_by, causes(&diagnosis)), (Verdict::Choked, None, vec![CHURN]));
    let found = &diagnosis.findings[0];
    assert!(found.explanation.contains("part of it is wasted") && found.remedies.len() == 4, "{found:?}");
    assert!(found.evidence.iter().any(|proof| proof.text.contains("both ends together (400 samples")), "{found:?}");
    assert!(diagnosis.improvements.is_empty());
    // Much of it at the middle of the interval and not at its lower end: an improvement.
    let unsure = told(&sampled(Pair::tcp().observed(), 0, 40));
    assert_eq!((unsure.verdict, improvements(&unsure)), (Verdict::Healthy, vec![CHURN]));
    // Little of it, whatever a connection costs elsewhere.
    silent(&sampled(Pair::tcp().observed(), 12, 8), "hardly any of the time");
    // The clients' connections do not belong to the edge: nginx accepted as many as it opened.
    let mut obs = sampled(Pair::tcp().observed(), 60, 0);
    for (each, expected) in [(0, vec![CHURN]), (1, vec![])] {
        let load = obs.load.as_mut().unwrap();
        load.connections = 100 + each * load.requests;
        assert_eq!(causes(&told(&obs)), expected, "{each} by each request of a client");
    }
    // Every offered request was answered, so there is nothing to gain.
    let mut obs = sampled(Pair::tcp().observed(), 60, 40);
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Open { rate_per_s: load.goodput_rps(), connections: 100 };
    let met = told(&obs);
    assert_eq!((met.verdict, improvements(&met)), (Verdict::Healthy, vec![CHURN]));
}

#[test]
fn watched_connections_that_use_much_of_the_cores_are_a_cause_too() {
    let with = |nginx: u64, php_fpm: u64| {
        let mut obs = sampled(Pair::tcp().observed(), nginx, php_fpm);
        (obs.load, obs.request.loaded) = (None, false);
        let log = AccessLog { lines: 100_000, has_status: true, status: [(200, 100_000)].into(), ..AccessLog::default() };
        let logs = &mut obs.servers.get_mut(&42).unwrap().access_logs;
        logs.entry("/var/log/nginx/access.log".into()).or_default().push(11_000_000, Reading::Ok(log));
        told(&obs)
    };
    let wasted = with(120, 80);
    assert_eq!((wasted.verdict, causes(&wasted)), (Verdict::Choked, vec![CHURN]), "{}", wasted.summary);
    assert_eq!(causes(&with(12, 8)), [""; 0], "hardly any of the time");
}

#[test]
fn an_unknown_server_is_judged_by_the_counters_of_its_namespace() {
    let unknown = |opened: i64| {
        let mut obs = Pair { opened: Some(opened), ..Pair::tcp() }.observed();
        obs.servers.clear();
        sampled(obs, 60, 40)
    };
    let diagnosis = told(&unknown(100_000));
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![CHURN]));
    let found = &diagnosis.findings[0];
    assert_eq!(found.at.edge.as_deref(), Some("nginx->php-fpm"));
    assert!(found.remedies.len() == 2 && found.remedies.iter().all(|remedy| remedy.change.is_empty()), "in words: {:?}", found.remedies);
    silent(&unknown(12_000), "kept");
    let station = told(&unknown(12_000)).path.into_iter().find(|station| station.station == "upstream-connect").unwrap();
    assert!(station.why.contains("reuses connections"), "{}", station.why);
}

#[test]
fn kept_connections_of_all_nginx_workers_stay_below_the_pool() {
    for (children, nginx_workers, connections) in [(20, 1, 16), (20, 2, 8), (20, 16, 1), (2, 1, 1), (1_000, 8, 100)] {
        let diagnosis = told(&Pair { children, nginx_workers, ..Pair::tcp() }.observed());
        assert_eq!(values(&diagnosis)[0].2, format!("keepalive={connections} requests=5"), "{children} children, {nginx_workers} workers");
    }
    // A pool too small for the connections worth keeping grows with them, up to four times.
    let small = told(&Pair { children: 5, nginx_workers: 2, ..Pair::tcp() }.observed());
    let changes: Vec<&str> = small.improvements[0].remedies[0].change.iter().map(|change| change.to()).collect();
    assert_eq!(changes, ["20", "keepalive=8 requests=5"]);
    // If nginx may not reuse its ports, keeping connections would leave them in TIME_WAIT.
    let mut obs = Pair { children: 5, nginx_workers: 2, ..Pair::tcp() }.observed();
    for (value, keys) in [("0", 3), ("1", 2), ("2", 2)] {
        let reuse = obs.netns.get_mut(&SERVER).unwrap().sysctls.entry("net.ipv4.tcp_tw_reuse".into()).or_default();
        *reuse = Default::default();
        reuse.push(0, Reading::Ok(value.into()));
        assert_eq!(told(&obs).improvements[0].remedies[0].change.len(), keys, "tcp_tw_reuse {value}, towards loopback");
    }
    let few = [Pair { children: 4, nginx_workers: 4, ..Pair::tcp() }, Pair { children: 1, ..Pair::tcp() }];
    let old = Pair { version: Some((1, 14, 2)), ..Pair::tcp() };
    for pair in few.into_iter().chain([old]) {
        let diagnosis = told(&pair.observed());
        let remedies = &diagnosis.improvements[0].remedies;
        assert!(remedies.len() == 2 && remedies.iter().all(|remedy| remedy.change.is_empty()), "in words: {remedies:?}");
    }
    let unknown = told(&Pair { version: None, ..Pair::tcp() }.observed());
    assert_eq!(values(&unknown).len(), 3, "the server itself refuses what it does not know");
}

#[test]
fn unix_sockets_ipv6_and_upstreams_by_name() {
    let path = || ListenerAddress::Unix("/run/php.sock".into());
    let diagnosis = told(&Pair { opened: Some(0), ..Pair::at(path()) }.observed());
    assert_eq!(improvements(&diagnosis), [CHURN], "no counter tells of unix sockets");
    assert_eq!(values(&diagnosis)[0].0, "unix:/run/php.sock");
    let v6 = Pair::at(ListenerAddress::Tcp(ip("::1"), 9000));
    assert_eq!(values(&told(&v6.observed()))[0].0, "[::1]:9000");
    let mut named = Pair::tcp();
    named.pass.upstream = Some("php".into());
    assert_eq!(values(&told(&named.observed()))[0].0, "php");
    // "localhost" has two addresses and is one edge. has two addresses and is one edge.
    let mut localhost = Pair::tcp();
    localhost.pass.servers.push(ListenerAddress::Tcp(ip("::1"), 9000));
    let diagnosis = told(&localhost.observed());
    assert_eq!((improvements(&diagnosis), values(&diagnosis).len()), (vec![CHURN], 3));
}

#[test]
fn no_finding_if_a_connection_is_cheap_or_kept_or_not_opened() {
    silent(&Pair { ticks: (20_000, 300), ..Pair::tcp() }.observed(), "pages that cost much more");
    silent(&Pair { ticks: (900, 20), ..Pair::tcp() }.observed(), "hardly any of it is the kernel's work");
    silent(&Pair { opened: Some(20_000), ..Pair::tcp() }.observed(), "most requests open no connection");
    silent(&Pair { opened: None, ..Pair::tcp() }.observed(), "nothing tells how many are opened");
    silent(&Pair { busy: 0.6, ..Pair::tcp() }.observed(), "cores with time to spare");
    let mut kept = Pair::tcp();
    (kept.pass.reuses, kept.pass.keepalive) = (true, Some(8));
    silent(&kept.observed(), "configured to be kept");
    let unseen = Pair { is_seen: false, ..Pair::at(ListenerAddress::Unix("/run/php.sock".into())) };
    silent(&unseen.observed(), "only the configuration says that requests go there");
    let mut open = Pair::tcp().observed();
    open.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!(told(&open).limited_by, Some(LimitedBy::Demand));
    let mut own = Pair::tcp().observed();
    own.request.client_netns = SERVER;
    silent(&own, "the generator's own connections are not nginx's");
    let mut failing = Pair::tcp().observed();
    let load = failing.load.as_mut().unwrap();
    (load.good, load.errors.response_timeout) = (90_000, 10_000);
    assert_eq!(improvements(&told(&failing)), [""; 0], "what fails comes first");
}

#[test]
fn with_any_cause_there_is_no_improvement() {
    let mut obs = Pair::tcp().observed();
    let full = table_full(200);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    (view.conntrack_count, view.conntrack_cpus) = (full.netns[&SERVER].conntrack_count.clone(), full.netns[&SERVER].conntrack_cpus.clone());
    view.sysctls = full.netns[&SERVER].sysctls.clone();
    obs.load.as_mut().unwrap().errors.connect_timeout = 1_500;
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), improvements(&diagnosis)), (vec!["conntrack-table-full"], vec![]));
}

/// An upstream on another host. Of 100 requests in progress, this many wait for their connection.
fn far(connecting: usize, retried: i64, busy: f64) -> Observation {
    let remote = ListenerAddress::Tcp(ip("192.0.2.7"), 9000);
    let mut pair = Pair { busy, ..Pair::tcp() };
    pair.pass = pass(vec![remote]);
    let mut obs = pair.observed();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    let web = |listeners: Vec<Listener>| listeners.into_iter().filter(|listener| listener.inode == 100).collect::<Vec<_>>();
    points.into_iter().for_each(|(at, listeners)| view.listeners.push(at, Reading::Ok(web(listeners))));
    view.sockets = Default::default();
    let socket = |n: usize| Socket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 20_000 + n as u16), remote: (ip("192.0.2.7"), 9000) },
        state: if n < connecting { TcpState::SynSent } else { TcpState::Established },
        inode: 500 + n as u64,
        uid: None,
        receive_queue: 0,
        send_queue: 0,
        wait: None,
    };
    for second in 1..=10_u64 {
        view.sockets.push(second * 1_000_000, Reading::Ok((0..95).map(socket).collect()));
    }
    view.netstat = Default::default();
    for at in [0, 11_000_000_u64] {
        let grown = |count: i64| if at == 0 { 5 } else { 5 + count };
        let counters = [("Tcp.ActiveOpens", grown(100_000)), ("TcpExt.TCPSynRetrans", grown(retried))];
        view.netstat.push(at, Reading::Ok(counters.map(|(name, count)| (name.to_owned(), count)).into()));
    }
    obs
}

#[test]
fn a_remote_upstream_whose_connects_take_much_of_the_time_is_a_cause() {
    // Of the 46, one waits a second for a lost SYN: ten in ten seconds.
    let diagnosis = told(&far(46, 10, 0.2));
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![CHURN]));
    let churn = &diagnosis.findings[0];
    assert_eq!(churn.at.edge.as_deref(), Some("nginx->192.0.2.7:9000"));
    assert!(churn.evidence.iter().any(|proof| proof.text.contains("45 %")), "{:?}", churn.evidence);
    // The number of connections that a pool elsewhere can hold is unknown here.
    assert!(churn.remedies.len() == 1 && churn.remedies[0].change.is_empty(), "{:?}", churn.remedies);
}

#[test]
fn fast_or_lost_connects_or_connects_beside_busy_cores_are_no_cause() {
    for (connecting, retried, busy, told_as) in [
        (8, 0, 0.2, "nearly all of the time goes to the answer"),
        (45, 40_000, 0.2, "SYNs are lost: it is not the distance"),
        (45, 200, 0.2, "one in five hundred is lost, and waits as long as all others together"),
        (45, 0, 0.97, "the cores are the limit"),
    ] {
        assert_eq!(causes(&told(&far(connecting, retried, busy))), [""; 0], "{told_as}");
    }
    let mut open = far(45, 0, 0.2);
    open.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!(causes(&told(&open)), [""; 0], "an open loop that is served");
}
