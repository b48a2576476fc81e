//! The readers on the running kernel, in separate network namespaces. Skipped without root.
//!
//! Live: servers and connections in namespaces.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chokepoint_model::observation::{
    Listener, ListenerAddress, NetnsId, NginxStatus, Observation, Request, ServerStatus, TcpState, UnixPeer,
};
use chokepoint_model::series::SeriesState;
use chokepoint_recording::{Entry, Outcome, Scope};
use chokepoint_sources::{ObserveOptions, Observer, Recent, Root, assemble, netns};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A named network namespace of this test, deleted at its end.
struct Netns {
    name: String,
    id: NetnsId,
}

impl Netns {
    /// Nothing, with the reason on stderr, if this host or user cannot create one.
    fn new(purpose: &str) -> Option<Self> {
        let name = format!("t-srca-{purpose}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).stderr(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: a network namespace cannot be made (root and ip(8) are needed)");
            return None;
        }
        let id = netns::resolve(&Root::default(), &name).unwrap().id;
        let netns = Self { name, id };
        netns.ip(&["link", "set", "lo", "up"]);
        Some(netns)
    }

    fn ip(&self, args: &[&str]) {
        let status = Command::new("ip").args(["-n", &self.name]).args(args).status().unwrap();
        assert!(status.success(), "ip {args:?}");
    }

    /// Runs `work` in a thread inside the namespace. Its sockets stay there.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    fn request(&self, address: &str, port: u16) -> Request {
        Request { addresses: vec![address.parse().unwrap()], port, client_netns: self.id, ..Request::default() }
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// A process that only holds a socket as its standard input. It ends with this value.
struct Holder(Child);

impl Holder {
    fn of(socket: impl Into<OwnedFd>) -> Self {
        let socket: OwnedFd = socket.into();
        Self(Command::new("sleep").arg("60").stdin(Stdio::from(socket)).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listen(address: &str, backlog: i32) -> (OwnedFd, u16) {
    let address: SocketAddr = address.parse().unwrap();
    let family = if address.is_ipv4() { rustix::net::AddressFamily::INET } else { rustix::net::AddressFamily::INET6 };
    // Close-on-exec: children of other tests must not inherit it.
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, rustix::net::SocketType::STREAM, flags, None).unwrap();
    rustix::net::bind(&socket, &address).unwrap();
    rustix::net::listen(&socket, backlog).unwrap();
    let listener = TcpListener::from(socket);
    let port = listener.local_addr().unwrap().port();
    (listener.into(), port)
}

fn observe(request: Request, watch: Duration) -> Observation {
    let observer = Observer::start(ObserveOptions::new(request)).unwrap();
    std::thread::sleep(watch);
    assemble(&observer.finish())
}

fn listener_at(observation: &Observation, netns: NetnsId, port: u16) -> &Listener {
    let listeners = observation.netns[&netns].listeners.last().unwrap();
    let at = |listener: &&Listener| matches!(listener.address, ListenerAddress::Tcp(_, found) if found == port);
    listeners.iter().find(at).unwrap()
}

#[test]
fn an_overflowing_listener_shows_queue_and_drops() {
    let Some(netns) = Netns::new("full") else { return };
    for (address, target) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
        let (listener, port) = netns.inside(|| listen(address, 1));
        let dialled: Vec<Option<TcpStream>> = netns.inside(|| {
            let to = SocketAddr::new(target.parse().unwrap(), port);
            (0..4).map(|_| TcpStream::connect_timeout(&to, Duration::from_millis(150)).ok()).collect()
        });
        assert_eq!(dialled.iter().flatten().count(), 2, "{address}: backlog plus one");
        let observation = observe(netns.request(target, port), Duration::from_millis(200));
        let found = listener_at(&observation, netns.id, port);
        assert_eq!((found.accept_queue, found.accept_queue_limit), (2, 1), "{address}");
        assert!(found.drops.is_some_and(|drops| drops > 0), "{address}: {found:?}");
        assert!(observation.processes.is_empty(), "the observer itself is no part of the path");
        let unaccepted = observation.netns[&netns.id].sockets.last().unwrap();
        assert!(unaccepted.iter().any(|socket| socket.inode == 0 && socket.state == TcpState::Established));
        drop(listener);
    }
}

#[test]
fn time_wait_is_found_at_the_side_that_closed_first() {
    let Some(netns) = Netns::new("tw") else { return };
    let (listener, port) = netns.inside(|| listen("127.0.0.1:0", 16));
    let listener = TcpListener::from(listener);
    netns.inside(|| {
        for _ in 0..5 {
            let dialled = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut accepted, _) = listener.accept().unwrap();
            drop(dialled); // The dialling side closes first and keeps TIME_WAIT.
            assert_eq!(accepted.read(&mut [0; 8]).unwrap(), 0);
        }
    });
    let observation = observe(netns.request("127.0.0.1", port), Duration::from_millis(100));
    let waits = observation.netns[&netns.id].time_waits.last().unwrap();
    let [towards] = waits.dialled.as_slice() else { panic!("{waits:?}") };
    assert_eq!((waits.total, towards.remote.1, towards.count, waits.accepted.len()), (5, port, 5, 0));
}

/// Lets this process open this many files; false if it may not.
fn may_open(files: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: Some(files), maximum: limit.maximum };
    limit.current.is_none_or(|current| current >= files) || setrlimit(Resource::Nofile, raised).is_ok()
}

#[test]
fn every_reading_has_all_connections_at_a_crowded_port() {
    let Some(netns) = Netns::new("crowd") else { return };
    const CONNECTIONS: usize = 1_200;
    if !may_open(4 * CONNECTIONS as u64) {
        eprintln!("skipped: this user may not open {} files", 4 * CONNECTIONS);
        return;
    }
    let (listener, port) = netns.inside(|| listen("[::]:0", 16));
    let listener = TcpListener::from(listener);
    let held: Vec<(TcpStream, TcpStream)> = netns.inside(|| {
        let dial = |n: usize| TcpStream::connect((if n.is_multiple_of(2) { "127.0.0.1" } else { "::1" }, port)).unwrap();
        (0..CONNECTIONS).map(|n| (dial(n), listener.accept().unwrap().0)).collect()
    });
    let entries = {
        let observer = Observer::start(ObserveOptions::new(netns.request("127.0.0.1", port))).unwrap();
        std::thread::sleep(Duration::from_millis(2_500));
        observer.finish()
    };
    drop(held);
    let observation = assemble(&entries);
    let view = &observation.netns[&netns.id];
    assert!(view.sockets.values().count() >= 3);
    for sockets in view.sockets.values() {
        let inodes: std::collections::BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
        assert_eq!((sockets.len(), inodes.len()), (2 * CONNECTIONS, 2 * CONNECTIONS));
    }
    // On a kernel that can exclude ports, these connections were not read each time.
    let repeated = entries.iter().filter(|entry| entry.source == "sockets" && entry.item == "crowd").count();
    assert_eq!(repeated > 0, observation.bounded.iter().any(|text| text.contains("crowded")), "{:?}", observation.bounded);
    if repeated == 0 {
        eprintln!("skipped: this kernel cannot leave out ports");
    }
}

#[test]
fn a_unix_listener_and_its_process_are_found() {
    let Some(netns) = Netns::new("unix") else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("upstream.sock");
    let unix = netns.inside(|| UnixListener::bind(&path).unwrap());
    let dialled: Vec<UnixStream> = netns.inside(|| (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect());
    let (tcp, port) = netns.inside(|| listen("0.0.0.0:0", 16));
    // One process listens on TCP and dials the unix socket, where another one listens: two tiers.
    let dialled_first = dialled[0].try_clone().unwrap();
    let front = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::from(tcp))
        .stdout(Stdio::from(OwnedFd::from(dialled_first)))
        .spawn()
        .map(Holder)
        .unwrap();
    let back = Holder::of(unix);
    let observation = observe(netns.request("127.0.0.1", port), Duration::from_millis(1500));
    let address = ListenerAddress::Unix(path.to_string_lossy().into_owned());
    let listeners = observation.netns[&netns.id].listeners.last().unwrap();
    let listener = listeners.iter().find(|listener| listener.address == address).unwrap();
    assert_eq!(listener.accept_queue, 3);
    assert!(listener.accept_queue_limit > 0);
    assert_eq!(observation.processes.keys().copied().collect::<Vec<_>>(), {
        let mut pids = vec![front.pid(), back.pid()];
        pids.sort_unstable();
        pids
    });
    let sockets = observation.netns[&netns.id].sockets.last().unwrap();
    let waiting = |socket: &&chokepoint_model::observation::Socket| {
        matches!(&socket.address, chokepoint_model::observation::SocketAddress::Unix { path: Some(bound), peer: UnixPeer::Inode(_) }
            if ListenerAddress::Unix(bound.clone()) == address)
    };
    assert_eq!(sockets.iter().filter(waiting).count(), 3);
}

#[test]
fn a_server_in_another_namespace_is_found_by_its_address() {
    let (Some(client), Some(server)) = (Netns::new("c"), Netns::new("s")) else { return };
    client.ip(&["link", "add", "c0", "type", "veth", "peer", "name", "s0", "netns", &server.name]);
    client.ip(&["addr", "add", "10.78.0.1/24", "dev", "c0"]);
    server.ip(&["addr", "add", "10.78.0.2/24", "dev", "s0"]);
    client.ip(&["link", "set", "c0", "up"]);
    server.ip(&["link", "set", "s0", "up"]);
    let (listener, port) = server.inside(|| listen("0.0.0.0:0", 16));
    let decoy = client.inside(|| TcpListener::bind(("0.0.0.0", port)).unwrap());
    let holder = Holder::of(listener);
    let observer = Observer::start(ObserveOptions::new(client.request("10.78.0.2", port))).unwrap();
    assert!(observer.path_found());
    let observation = assemble(&observer.finish());
    assert_eq!(observation.processes.keys().copied().collect::<Vec<_>>(), [holder.pid()]);
    let view = &observation.netns[&server.id];
    assert_eq!((view.name.as_deref(), view.is_host), (Some(server.name.as_str()), false));
    let expected: IpAddr = "10.78.0.2".parse().unwrap();
    assert!(view.addresses.last().unwrap().iter().any(|address| address.ip == expected));
    let link = view.links.last().unwrap().iter().find(|link| link.name == "s0").unwrap().clone();
    assert_eq!((link.kind.as_deref(), link.up), (Some("veth"), true));
    assert!(observation.netns.contains_key(&client.id), "the client's tables can be the limit, too");
    let nobody = Observer::start(ObserveOptions::new(client.request("10.78.0.9", port))).unwrap();
    assert!(!nobody.path_found());
    drop((nobody, decoy));
}

/// nginx with a status page, inside a namespace. It ends with this value.
struct Nginx {
    child: Child,
    _files: tempfile::TempDir,
}

impl Nginx {
    fn start(netns: &Netns) -> Option<Self> {
        if !Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: nginx is not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display().to_string();
        let config = format!(
            "pid {at}/pid;\nerror_log {at}/e.log;\nevents {{}}\nhttp {{ access_log off; server {{\nlisten 127.0.0.1:8080;\nlisten [::1]:8080;\n\
            location /status {{ stub_status; }}\n}} }}\n"
        );
        std::fs::write(directory.path().join("n.conf"), config).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &netns.name, "nginx", "-p", &at, "-c", "n.conf", "-g", "daemon off;"]);
        let nginx = Self { child: command.stderr(Stdio::null()).spawn().unwrap(), _files: directory };
        let until = Instant::now() + Duration::from_secs(20);
        while netns.inside(|| TcpStream::connect("127.0.0.1:8080")).is_err() {
            assert!(Instant::now() < until, "nginx does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

#[test]
fn a_status_page_in_another_namespace_is_polled_at_both_ends_and_at_most_once_a_second() {
    let Some(netns) = Netns::new("status") else { return };
    let Some(nginx) = Nginx::start(&netns) else { return };
    for address in ["127.0.0.1", "::1"] {
        let request = Request { server_netns: Some(netns.id), ..netns.request(address, 8080) };
        let observer = Observer::start(ObserveOptions::new(request)).unwrap();
        netns.inside(|| drop(TcpStream::connect("127.0.0.1:8080").unwrap()));
        while observer.elapsed_us() < 1_500_000 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let entries = observer.finish();
        let observation = assemble(&entries);
        let page = observation.servers[&nginx.child.id()].nginx_status().unwrap_or_else(|| panic!("{:?}", observation.servers));
        let counts: Vec<&NginxStatus> =
            page.values().filter_map(|status| if let ServerStatus::Nginx(counts) = status { Some(counts) } else { None }).collect();
        assert!(counts.len() >= 2, "{page:?}");
        let asked = counts.windows(2).all(|pair| pair[1].accepts > pair[0].accepts && pair[1].handled == pair[1].accepts);
        assert!(asked, "{counts:?}");
        let gaps: Vec<u64> = page.points().windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        let (_, between) = gaps.split_last().unwrap();
        assert!(between.iter().all(|gap| *gap >= 1_000_000), "never more than once a second but at the end: {gaps:?}");
    }
}

#[test]
fn a_process_that_ends_is_reported_once_and_a_new_one_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let leaving = Holder::of(listener.try_clone().unwrap());
    let request = Request { addresses: vec!["127.0.0.1".parse().unwrap()], port, ..Request::default() };
    let observer = Observer::start(ObserveOptions::new(request)).unwrap();
    let left = leaving.pid();
    drop(leaving);
    let coming = Holder::of(listener.try_clone().unwrap());
    // The search for it, and the look at what it found, wait for CPU time to be saved: on a slow machine for a minute each, as long as anything waits.
    let known = observer.path_so_far();
    let is_found = || known.processes().contains(&coming.pid());
    assert!(holds_within(Duration::from_secs(150), is_found), "a worker that is forked later is found");
    let begun = Instant::now();
    let entries = observer.finish();
    assert!(begun.elapsed() < Duration::from_secs(30), "it ends");
    let observation = assemble(&entries);
    assert!(observation.processes[&left].identity.last().is_some());
    let ended = |entry: &&Entry| {
        entry.scope == Scope::Process(left) && matches!(&entry.outcome, Outcome::Absent(why, _) if why == "the process ended")
    };
    assert_eq!(entries.iter().filter(ended).count(), 1, "reported once");
    assert!(observation.processes[&coming.pid()].files.last().is_some(), "and read, too");
}

/// Waits until this holds, for at most half a minute; false if it never does.
fn holds_soon(holds: impl Fn() -> bool) -> bool {
    holds_within(Duration::from_secs(30), holds)
}

/// The same, for at most so long.
fn holds_within(longest: Duration, holds: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > longest {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A client, a router that translates its own port 8080 to the server's, and the server; nothing, with the reason, if they cannot be created.
fn behind_a_nat(port: u16) -> Option<[Netns; 3]> {
    let all = [Netns::new("nat-c")?, Netns::new("nat-r")?, Netns::new("nat-s")?];
    let [client, router, server] = &all;
    for (a, b, net) in [(client, router, "1"), (server, router, "2")] {
        let device = format!("r{net}");
        a.ip(&["link", "add", "name", "uplink", "type", "veth", "peer", "name", &device, "netns", &router.name]);
        for (netns, device, host) in [(a, "uplink", "1"), (b, device.as_str(), "254")] {
            netns.ip(&["address", "add", &format!("10.9.{net}.{host}/24"), "dev", device]);
            netns.ip(&["address", "add", &format!("fd09:{net}::{host}/64"), "dev", device, "nodad"]);
            netns.ip(&["link", "set", device, "up"]);
        }
        a.ip(&["route", "add", "default", "via", &format!("10.9.{net}.254")]);
        a.ip(&["-6", "route", "add", "default", "via", &format!("fd09:{net}::254")]);
    }
    // The router needs its link-local addresses for neighbour discovery. They appear a moment after the links are up.
    let ready = |line: &str| line.starts_with("fe80") && line.split_ascii_whitespace().nth(4).is_some_and(|flags| flags == "80");
    let linked = || std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap().lines().filter(|line| ready(line)).count() == 2;
    router.inside(|| assert!(holds_soon(linked), "the router's links have addresses of their own"));
    let rules = format!(
        "table inet nat {{ chain pre {{ type nat hook prerouting priority dstnat; \
         meta nfproto ipv4 tcp dport 8080 dnat ip to 10.9.2.1:{port}; meta nfproto ipv6 tcp dport 8080 dnat ip6 to [fd09:2::1]:{port}; }}; }}"
    );
    let settings = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];
    let loaded = router.inside(|| {
        settings.iter().for_each(|setting| std::fs::write(format!("/proc/sys/{setting}"), "1").unwrap());
        Command::new("nft").arg(&rules).output()
    });
    let why = match loaded {
        Ok(output) if output.status.success() => return Some(all),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    // A rule that nft(8) does not understand is an error of this test, not of the machine.
    assert!(!why.contains("syntax error"), "{why}");
    eprintln!("skipped: addresses cannot be translated (nft(8) and the kernel's NAT are needed): {why}");
    None
}

#[test]
fn a_server_behind_a_nat_is_found_before_a_load_and_in_existing_traffic() {
    let port = 8099;
    let Some([client, router, server]) = behind_a_nat(port) else { return };
    let listener = server.inside(|| TcpListener::bind(("::", port)).unwrap());
    for target in ["10.9.1.254", "fd09:1::254"] {
        let nobody = Observer::start(ObserveOptions::new(client.request(target, 8080))).unwrap();
        assert!(!nobody.path_found(), "without load nothing is sent, and nothing is there yet");
        nobody.finish();
        let asked = Request { loaded: true, ..client.request(target, 8080) };
        let observer = Observer::start(ObserveOptions::new(asked.clone())).unwrap();
        assert!(observer.path_found(), "{target}");
        observer.note("request", serde_json::to_vec(&asked).unwrap());
        let path = chokepoint_model::path::discover(&assemble(&observer.finish()));
        assert_eq!((path.tiers[0].netns, path.translated[0].netns), (server.id, router.id));
        assert!(path.tiers[0].pids.is_empty(), "this test holds the listener, and it observes");
        let (dialled, _) = (client.inside(|| TcpStream::connect((target, 8080)).unwrap()), listener.accept().unwrap());
        let watched = Observer::start(ObserveOptions::new(client.request(target, 8080))).unwrap();
        assert!(watched.path_found(), "{target}");
        watched.finish();
        drop(dialled);
        let other = Observer::start(ObserveOptions::new(Request { loaded: true, ..client.request(target, 8081) })).unwrap();
        assert!(!other.path_found(), "a port that is not translated");
        other.finish();
    }
}

#[test]
fn notes_and_readings_are_in_order_and_replay_identically() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = Request { addresses: vec!["127.0.0.1".parse().unwrap()], port, ..Request::default() };
    let observer = Observer::start(ObserveOptions::new(request.clone())).unwrap();
    observer.note("request", serde_json::to_vec(&request).unwrap());
    std::thread::sleep(Duration::from_millis(600));
    observer.note("window", format!("[0,{}]", observer.elapsed_us()).into_bytes());
    let entries = observer.finish();
    assert!(entries.is_sorted_by_key(|entry| entry.at_us));
    let observation = assemble(&entries);
    assert_eq!(observation.request, request);
    assert!(observation.window_us.is_some_and(|(_, end)| end >= 600_000));
    assert!(observation.unplaced.is_empty(), "{:?}", observation.unplaced);
    assert_eq!(assemble(&entries), observation);
    let own = netns::own().unwrap();
    assert!(observation.netns[&own].listeners.points().len() >= 5, "20 a second, however loaded this host is");
    assert!(observation.cpu.ends().is_some() && observation.kernel.last().is_some());
}

#[test]
fn a_small_bound_is_respected_and_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = Request { addresses: vec!["127.0.0.1".parse().unwrap()], port, ..Request::default() };
    let bound_bytes = 60_000;
    let observer = Observer::start(ObserveOptions { bound_bytes, ..ObserveOptions::new(request) }).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let entries = observer.finish();
    let read = |entry: &Entry| if let Outcome::Ok(bytes) = &entry.outcome { bytes.len() } else { 0 };
    assert!(entries.iter().map(read).sum::<usize>() <= bound_bytes);
    assert!(!assemble(&entries).bounded.is_empty());
}

#[test]
fn drains_continue_without_gaps_or_repeats() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client_netns = netns::own().unwrap();
    let request = Request { client_netns, addresses: vec!["127.0.0.1".parse().unwrap()], port, ..Request::default() };
    let observer = Observer::start(ObserveOptions::endless(request.clone(), Vec::new())).unwrap();
    let mut recent = Recent::new(Duration::from_secs(2));
    let (mut seen, mut sampled, begin) = (Vec::new(), 0, Instant::now());
    // The readers report once a second.
    while sampled < 3 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no more samples came: {seen:?}");
        std::thread::sleep(Duration::from_millis(500));
        let drained = observer.drain();
        let read = drained.iter().filter(|entry| entry.source == "requests");
        let samples = read.map(|entry| (entry.scope, entry.at_us, entry.item.clone()));
        let before = seen.len();
        seen.extend(samples);
        sampled += usize::from(seen.len() > before);
        recent.add(drained);
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "none is handed over twice");
    let observation = recent.observation(&request, (0, observer.elapsed_us()), &[]);
    assert_eq!(chokepoint_model::path::discover(&observation).tiers.len(), 1);
    assert!(observation.unplaced.is_empty(), "{:?}", observation.unplaced);
}

#[test]
fn a_missing_namespace_is_an_error() {
    let request = Request { server_netns: Some(NetnsId(1)), ..Request::default() };
    let error = Observer::start(ObserveOptions::new(request)).unwrap_err();
    assert!(error.to_string().contains("the server's network namespace net:[1]"), "{error}");
}

/// Runs itself again as nobody: inaccessible readings are absent and name the privilege, and all others are there.
#[test]
fn without_root() {
    const CHILD: &str = "CHOKEPOINT_TEST_PORT";
    if let Ok(port) = std::env::var(CHILD) {
        return as_nobody(port.parse().unwrap());
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: it is run as root to become nobody");
        return;
    }
    let Some(netns) = Netns::new("nobody") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // A copy that nobody may run, wherever the original is.
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = directory.path().join("live");
    // Another process copies it: if the file were open for writing here, a child forked by another test could keep it busy.
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap().success());
    let output = Command::new(copy)
        .args(["--exact", "live::without_root", "--nocapture"])
        .env(CHILD, format!("{}", listener.local_addr().unwrap().port()))
        .env("CHOKEPOINT_TEST_NETNS", netns.id.0.to_string())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let _ = std::io::stderr().write_all(&output.stderr);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("as nobody: done"));
}

fn as_nobody(port: u16) {
    let other = NetnsId(std::env::var("CHOKEPOINT_TEST_NETNS").unwrap().parse().unwrap());
    let request = Request { addresses: vec!["127.0.0.1".parse().unwrap()], port, ..Request::default() };
    let observer = Observer::start(ObserveOptions::new(request.clone())).unwrap();
    assert!(observer.path_found(), "listeners may be listed by everyone");
    let observation = assemble(&observer.finish());
    let own = netns::own().unwrap();
    assert!(listener_at(&observation, own, port).accept_queue_limit > 0);
    let SeriesState::Absent(lack) = observation.processes_seen.state() else { panic!("{:?}", observation.processes_seen) };
    assert_eq!(lack.needs.as_deref(), Some("CAP_SYS_PTRACE"));
    assert!(observation.processes.is_empty(), "the one that listens belongs to root");

    let request = Request { server_netns: Some(other), ..request };
    let observation = assemble(&Observer::start(ObserveOptions::new(request)).unwrap().finish());
    let view = &observation.netns[&other];
    assert!(view.name.is_some());
    let SeriesState::Absent(lack) = view.listeners.state() else { panic!("{:?}", view.listeners) };
    assert_eq!(lack.needs.as_deref(), Some("CAP_SYS_ADMIN"));
    println!("as nobody: done");
}
