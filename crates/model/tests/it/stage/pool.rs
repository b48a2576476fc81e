//! A pool of workers behind the stage's web server.

use chokepoint_model::observation::{
    CoreTimes, CpuTimes, CpuUse, Identity, Listener, ListenerAddress, Observation, OpenFiles, Origin, PhpFpmConfig, PhpFpmPool,
    ProcessView, RequestSample, RequestSocket, RequestTimes, ServerConfig, Setting, Socket, SocketAddress, Syscall, TcpState, UnixPeer,
};
use chokepoint_model::reading::Reading;

use super::{SERVER, SERVER_IP, WINDOW, cpu, healthy, ip, listener};

/// A pool of `workers` behind the web server. In each sample `busy` of them have a connection, and `waiting` connections wait in the queue.
pub(crate) fn pool(workers: u32, busy: u32, waiting: u32) -> Observation {
    let mut obs = healthy();
    let address = ListenerAddress::Tcp(ip("127.0.0.1"), 9000);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let front: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in front {
        let inside = (WINDOW.0..=WINDOW.1).contains(&at);
        listeners.push(listener(address.clone(), 200, if inside { waiting } else { 0 }, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    for second in 1..=10_u64 {
        let accepted = |n: u32| tcp(1_000 + u64::from(n), (ip("127.0.0.1"), 9000), (ip("127.0.0.1"), 40_000 + n as u16));
        let mut sockets: Vec<Socket> = (0..busy).map(accepted).collect();
        sockets.push(tcp(500, (ip("127.0.0.1"), 40_000), (ip("127.0.0.1"), 9000)));
        // Waiting connections have no inode yet.
        sockets.extend((0..waiting.min(50)).map(|n| tcp(0, (ip("127.0.0.1"), 9000), (ip("127.0.0.1"), 50_000 + n as u16))));
        view.sockets.push(second * 1_000_000, Reading::Ok(sockets));
    }
    process(&mut obs, 42, 1, "nginx", &[100, 500]);
    process(&mut obs, 50, 1, "php-fpm8.2", &[200]);
    for n in 0..workers {
        process(&mut obs, 51 + n, 50, "php-fpm8.2", &[200, 1_000 + u64::from(n)]);
    }
    cpu(&mut obs, 0.2);
    let load = obs.load.as_mut().unwrap();
    (load.good, load.requests, load.status) = (2_500, 2_500, [(200, 2_500)].into());
    obs
}

pub(crate) fn tcp(inode: u64, local: (std::net::IpAddr, u16), remote: (std::net::IpAddr, u16)) -> Socket {
    let address = SocketAddress::Tcp { local, remote };
    Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
}

/// One end of a unix connection: its inode, the path of the end that accepted it, and the inode of its other end.
pub(crate) fn unix(inode: u64, path: Option<&str>, peer: u64) -> Socket {
    let address = SocketAddress::Unix { path: path.map(str::to_owned), peer: UnixPeer::Inode(peer) };
    Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
}

pub(crate) fn process(obs: &mut Observation, pid: u32, parent: u32, comm: &str, sockets: &[u64]) {
    let mut view = ProcessView::default();
    let identity = Identity { pid, parent, comm: comm.into(), start_ticks: u64::from(pid), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.files.push(0, Reading::Ok(OpenFiles { count: 20, sockets: sockets.to_vec() }));
    obs.processes.insert(pid, view);
}

/// Each of these processes ran for this long in each second, and waited for no core.
pub(crate) fn ran(obs: &mut Observation, pids: impl IntoIterator<Item = u32>, ns_per_s: u64) {
    for pid in pids {
        let series = &mut obs.processes.get_mut(&pid).unwrap().cpu;
        for second in 0..=11_u64 {
            let used = CpuUse { run_ns: Some(second * ns_per_s), run_delay_ns: Some(0), ..CpuUse::default() };
            series.push(second * 1_000_000, Reading::Ok(used));
        }
    }
}

/// All processes may run on this many cores, and the cores are this busy.
pub(crate) fn cores(obs: &mut Observation, count: u32, busy: f64) {
    obs.cpu = Default::default();
    for second in 0..=11_u64 {
        let ticks = |share: f64| (second as f64 * 100.0 * share) as u64;
        let core = CoreTimes { system: ticks(busy), idle: ticks(1.0 - busy), ..CoreTimes::default() };
        obs.cpu.push(second * 1_000_000, Reading::Ok(CpuTimes { cores: (0..count).map(|number| (number, core)).collect() }));
    }
    for process in obs.processes.values_mut() {
        for identity in std::mem::take(&mut process.identity).values() {
            process.identity.push(0, Reading::Ok(Identity { cpus_allowed: (0..count).collect(), ..identity.clone() }));
        }
    }
}

/// One process with this many threads, this many connections in service and 60 waiting. `ran`: the total share of time that the threads ran.
pub(crate) fn threads(threads: u32, in_service: u32, busy: f64, ran: f64) -> Observation {
    let mut obs = pool(1, in_service, 60);
    cores(&mut obs, 8, busy);
    // The parent is the server's only process.
    obs.processes.remove(&51);
    let view = obs.processes.get_mut(&50).unwrap();
    view.files = Default::default();
    view.files.push(0, Reading::Ok(OpenFiles { count: 20, sockets: (1_000..1_000 + u64::from(in_service)).chain([200]).collect() }));
    for second in 0..=11_u64 {
        let run_ns = Some((second as f64 * 1e9 * ran) as u64);
        view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { run_ns, run_delay_ns: Some(0), threads, ..CpuUse::default() }));
    }
    obs
}

/// One sample of a server whose main thread accepts every connection for its other threads.
pub(crate) struct Served {
    /// Requests that a thread has, and those that wait unread.
    pub(crate) taken: u32,
    pub(crate) unread: u32,
    /// The first of its connections, and how many requests each has had.
    pub(crate) first: u64,
    pub(crate) requests: u64,
}

/// A server of one process, `gunicorn --threads N`, whose main thread waits in epoll_wait(2). It is watched, five samples a second, and `rate` connections come each second.
pub(crate) fn selector(threads: u32, rate: u64, sample: impl Fn(u64) -> Served) -> Observation {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    cpu(&mut obs, 0.2);
    process(&mut obs, 42, 1, "gunicorn", &[100, 7]);
    let view = obs.processes.get_mut(&42).unwrap();
    for second in 0..=11_u64 {
        let used = CpuUse { run_ns: Some(second * 1_000_000), run_delay_ns: Some(0), threads: threads + 1, ..CpuUse::default() };
        view.cpu.push(second * 1_000_000, Reading::Ok(used));
        let call = Syscall { call: Some("epoll_wait".to_owned()), ..Syscall::default() };
        view.syscall.push(second * 1_000_000, Reading::Ok(call));
    }
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for number in 0..48 {
        let Served { taken, unread, first, requests } = sample(number);
        let socket = |n: u64| {
            let waits = n >= u64::from(taken);
            let times = RequestTimes {
                last_data_recv_ms: 12,
                last_data_sent_ms: if requests > 1 { 16 } else { 200 },
                data_segs_in: Some(requests),
                data_segs_out: Some(requests - 1),
                bytes_received: Some(100 * requests),
                bytes_sent: Some(500 * (requests - 1)),
                min_rtt_us: Some(20),
                rtt_us: Some(50),
                ..RequestTimes::default()
            };
            RequestSocket {
                address: SocketAddress::Tcp {
                    local: (ip(SERVER_IP), 80),
                    remote: (ip("10.0.0.1"), 10_000 + ((first + n) % 50_000) as u16),
                },
                cookie: 1 + first + n,
                state: TcpState::Established,
                inode: 7,
                receive_queue: if waits { 100 } else { 0 },
                send_queue: 0,
                times: Some(times),
            }
        };
        let sockets = (0..u64::from(taken + unread)).map(socket).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + 100_000 + number * 200_000, Reading::Ok(sample));
    }
    for (at, opens) in [(0, 0), (11_000_000, 11 * rate)] {
        view.netstat.push(at, Reading::Ok([("Tcp.PassiveOpens".to_owned(), opens as i64)].into_iter().collect()));
    }
    obs
}

/// A php-fpm pool with `workers` processes, all busy, with `waiting` connections in its queue and `max_children` configured.
pub(crate) fn php_pool(workers: u32, pm: &str, max_children: u32, late: bool) -> Observation {
    let address = ListenerAddress::Tcp(ip("127.0.0.1"), 9000);
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        let waiting = if (WINDOW.0..=WINDOW.1).contains(&at) { 40 } else { 0 };
        listeners.push(listener(address.clone(), 200, waiting, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let php = (ip("127.0.0.1"), 9000);
    for second in 1..=10_u64 {
        let port = |n: u32| (ip("127.0.0.1"), 40_000 + n as u16);
        let mut sockets: Vec<Socket> = (0..workers).map(|n| tcp(1_000 + u64::from(n), php, port(n))).collect();
        sockets.push(tcp(500, port(0), php));
        view.sockets.push(second * 1_000_000, Reading::Ok(sockets));
    }
    process(&mut obs, 42, 1, "nginx", &[100, 500]);
    process(&mut obs, 50, 1, "php-fpm8.2", &[200]);
    for n in 0..workers {
        process(&mut obs, 51 + n, 50, "php-fpm8.2", &[200, 1_000 + u64::from(n)]);
    }
    if late {
        let newest = obs.processes.get_mut(&(50 + workers)).unwrap();
        newest.identity = Default::default();
        let identity = Identity {
            pid: 50 + workers,
            parent: 50,
            comm: "php-fpm8.2".into(),
            start_ticks: 900,
            cpus_allowed: vec![1],
            ..Identity::default()
        };
        newest.identity.push(4_000_000, Reading::Ok(identity));
    }
    cpu(&mut obs, 0.2);
    let number = |value| Setting { value, origin: Origin::default() };
    let pool = PhpFpmPool {
        name: "www".into(),
        listen: address,
        backlog: Setting { value: -1, origin: Origin::default() },
        pm: Setting { value: pm.into(), origin: Origin::default() },
        max_children: Setting { value: max_children, origin: Origin { file: "/etc/php/8.2/fpm/pool.d/www.conf".into(), line: 9 } },
        max_requests: number(0),
        terminate_timeout_s: number(0),
    };
    let config = PhpFpmConfig { file: "/etc/php/8.2/fpm/php-fpm.conf".into(), pools: vec![pool], ..PhpFpmConfig::default() };
    obs.servers.entry(50).or_default().config.push(0, Reading::Ok(ServerConfig::PhpFpm(config)));
    obs
}

/// The process has these sockets open.
pub(crate) fn files(obs: &mut Observation, pid: u32, sockets: &[u64]) {
    let view = obs.processes.get_mut(&pid).unwrap();
    view.files = Default::default();
    view.files.push(0, Reading::Ok(OpenFiles { count: 30, sockets: sockets.to_vec() }));
}

/// The stage's first process is a server of thirty threads, which together run for a twentieth of the time.
pub(crate) fn serves_by_threads(obs: &mut Observation) {
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { comm: "server".to_owned(), ..process.identity.last().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    for second in 0..=11_u64 {
        let used = CpuUse { run_ns: Some(second * 50_000_000), run_delay_ns: Some(0), threads: 30, ..CpuUse::default() };
        process.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
}
