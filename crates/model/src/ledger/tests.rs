//! The account of whole observations of two tiers, "web" calling "app": what fills each place, and a similar situation that must not.

mod balance;
mod others;
mod strangers;
mod tls;

use super::sample_weights::time_shares;
use super::*;
use crate::facts::TierId;
use crate::facts::path::{Path, PlacedListener, Tier};
use crate::observation::load::{Errors, LoadResult, Loop, Percentiles, Slice};
use crate::observation::reading::Reading;
use crate::observation::{
    Address, CpuUse, Listener, ListenerAddress, NetnsId, Observation, ProcessView, RequestSample, RequestSocket, RequestTimes,
    SocketAddress, TcpState, ThreadTimes,
};
use crate::output::catalogue::Catalogue;
use crate::output::report::{LedgerLossKind, LedgerPlaceKind as Place};

const CLIENT: NetnsId = NetnsId(1);
const SERVER: NetnsId = NetnsId(2);
const WEB: u16 = 80;
const APP: u16 = 9000;
/// Length of the window, and interval between samples, microseconds.
const WINDOW_US: u64 = 10_000_000;
const STEP_US: u64 = 200_000;

/// A socket with its own port that has been in service for 100 ms.
fn served(port: u16, number: u16) -> RequestSocket {
    let end = |port| ("10.0.0.1".parse().unwrap(), port);
    let times = RequestTimes {
        last_data_recv_ms: 100,
        last_data_sent_ms: 140,
        data_segs_in: Some(5),
        data_segs_out: Some(4),
        bytes_received: Some(500),
        bytes_sent: Some(400),
        min_rtt_us: Some(20),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: end(port), remote: end(20_000 + number) },
        cookie: u64::from(port) << 16 | u64::from(number),
        state: TcpState::Established,
        inode: 7,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

fn many(count: u16, of: impl Fn(u16) -> RequestSocket) -> Vec<RequestSocket> {
    (0..count).map(of).collect()
}

fn idle(port: u16, number: u16) -> RequestSocket {
    let mut socket = served(port, number);
    socket.times = socket.times.map(|times| RequestTimes { last_data_sent_ms: 50, data_segs_out: Some(5), ..times });
    socket
}

/// The calling end: the ports exchanged.
fn calling(port: u16, number: u16) -> RequestSocket {
    let mut socket = served(port, number);
    let SocketAddress::Tcp { local, remote } = socket.address else { unreachable!("made above") };
    socket.address = SocketAddress::Tcp { local: remote, remote: local };
    socket.cookie += 1 << 40;
    socket
}

fn syn_sent(port: u16, number: u16) -> RequestSocket {
    RequestSocket { state: TcpState::SynSent, times: None, inode: 0, ..calling(port, number) }
}

/// A client's connection on which the peer acknowledged this many bytes. The client sent more.
fn unheard(port: u16, number: u16, bytes_acked: u64) -> RequestSocket {
    let mut socket = calling(port, number);
    socket.times =
        socket.times.map(|times| RequestTimes { data_segs_in: Some(0), bytes_received: Some(0), bytes_acked: Some(bytes_acked), ..times });
    RequestSocket { send_queue: 80, ..socket }
}

/// An observation: sockets of both namespaces, the accept queues, the threads of each tier, and the requests in progress.
#[derive(Default)]
struct Stage {
    client: Vec<RequestSocket>,
    server: Vec<RequestSocket>,
    queues: (u32, u32),
    /// Share of time that the thread of a tier ran.
    runs: (f64, f64),
    in_flight: Option<u32>,
    /// Requests in progress at the samples of the client's namespace and of the server's.
    at_samples: [Option<f64>; 2],
    /// Requests for which the load generator has part of the answer.
    begun: Option<f64>,
    /// Whether the load opens a connection for each request.
    asks_once: bool,
    /// Whether the first tier listens on a unix socket.
    is_unix: bool,
    share: Option<f64>,
    scheme: &'static str,
    errors: Errors,
}

impl Stage {
    fn listener(&self, port: u16, queue: u32) -> Listener {
        Listener {
            address: match self.is_unix && port == WEB {
                true => ListenerAddress::Unix("/run/web".to_owned()),
                false => ListenerAddress::Tcp("0.0.0.0".parse().unwrap(), port),
            },
            v6_only: false,
            inode: u64::from(port),
            accept_queue: queue,
            accept_queue_limit: 511,
            drops: None,
        }
    }

    fn path(&self) -> Path {
        let tier = |id, name: &str, port, pid, upstreams| Tier {
            id: TierId(id),
            name: name.to_owned(),
            netns: SERVER,
            listeners: vec![PlacedListener { netns: SERVER, listener: self.listener(port, 0) }],
            pids: vec![pid],
            children: Vec::new(),
            upstreams,
            configured: Vec::new(),
            supposed: Vec::new(),
            apart: Vec::new(),
        };
        Path { tiers: vec![tier(0, "web", WEB, 10, vec![1]), tier(1, "app", APP, 20, Vec::new())], ..Path::default() }
    }

    fn observe(&self) -> Observation {
        let mut obs = Observation { window_us: Some((0, WINDOW_US)), ..Observation::default() };
        obs.request.client_netns = CLIENT;
        obs.request.addresses = vec!["10.0.0.1".parse().unwrap()];
        (obs.request.port, obs.request.scheme) = (WEB, self.scheme.to_owned());
        for at_us in (0..WINDOW_US).step_by(STEP_US as usize) {
            for (id, sockets, under_way) in [(CLIENT, &self.client, self.at_samples[0]), (SERVER, &self.server, self.at_samples[1])] {
                let sample = RequestSample {
                    share: self.share.unwrap_or(1.0),
                    handshake_share: self.share.unwrap_or(1.0),
                    under_way,
                    begun: self.begun,
                    sockets: sockets.clone(),
                    ..RequestSample::default()
                };
                obs.netns.entry(id).or_default().request_samples.push(at_us, Reading::Ok(sample));
            }
            let listeners = vec![self.listener(WEB, self.queues.0), self.listener(APP, self.queues.1)];
            obs.netns.entry(SERVER).or_default().listeners.push(at_us, Reading::Ok(listeners));
        }
        for (id, ip) in [(SERVER, "10.0.0.1"), (CLIENT, "10.0.0.2")] {
            let local = ["127.0.0.1", ip].map(|ip| Address { ip: ip.parse().unwrap(), prefix_bits: 24, link: 1 }).to_vec();
            obs.netns.entry(id).or_default().addresses.push(0, Reading::Ok(local));
        }
        for (pid, run) in [(10, self.runs.0), (20, self.runs.1)] {
            let mut process = ProcessView::default();
            for at_us in [0, WINDOW_US] {
                let run_ns = (run * at_us as f64 * 1e3) as u64;
                let times = vec![ThreadTimes { id: pid, run_ns, delay_ns: 0 }];
                process.cpu.push(at_us, Reading::Ok(CpuUse { thread_times: times, threads: 1, ..CpuUse::default() }));
            }
            obs.processes.insert(pid, process);
        }
        obs.load = self.in_flight.map(|in_flight| LoadResult { keep_alive: !self.asks_once, ..load(in_flight, self.errors) });
        obs
    }

    fn ledger(&self) -> LedgerReport {
        let (obs, path, words) = (self.observe(), self.path(), Catalogue::english());
        of(&Context::new(&obs, &path, &words)).expect("there are samples").0
    }

    /// Mean number at a place of a tier; zero if it is not reported.
    fn mean(&self, tier: &str, place: Place) -> f64 {
        let ledger = self.ledger();
        ledger.places.iter().find(|one| one.tier == tier && one.place == place).map_or(0.0, |one| one.mean)
    }
}

fn load(in_flight: u32, errors: Errors) -> LoadResult {
    LoadResult {
        shape: Loop::Closed { connections: in_flight },
        keep_alive: true,
        timeout_us: 2_000_000,
        duration_us: WINDOW_US,
        requests: 1_000 + errors.total(),
        status: [(200, 1_000)].into(),
        good: 1_000,
        drained: 0,
        drained_good: 0,
        early: 0,
        early_good: 0,
        under_way_us: None,
        without_connection_us: None,
        errors,
        latency_us: Percentiles::default(),
        latency_us_p99_range: None,
        good_latency_us: Percentiles::default(),
        lost: None,
        connect_us: Percentiles::default(),
        latency_histogram: String::new(),
        connections: u64::from(in_flight),
        tls: None,
        received_bytes: 0,
        sent_bytes: 0,
        late: 0,
        resent: 0,
        slices: vec![Slice { in_flight, ..Slice::default() }; 100],
        threads: Vec::new(),
        stopped_by: None,
        interrupted: false,
        error_samples: Vec::new(),
    }
}

#[test]
fn clients_are_listed_by_address_the_busiest_first_without_idle_ones() {
    let from = |last: u8, mut socket: RequestSocket| {
        let SocketAddress::Tcp { local, remote } = socket.address else { unreachable!("made above") };
        socket.address = SocketAddress::Tcp { local, remote: (std::net::IpAddr::from([10, 0, 1, last]), remote.1) };
        socket
    };
    let mut server = many(3, |number| from(1, served(WEB, number)));
    server.extend(many(5, |number| from(2, served(WEB, 100 + number))));
    server.push(from(3, idle(WEB, 200)));
    // Calls of the first tier belong to no client.
    server.extend(many(2, |number| from(4, served(APP, number))));
    // Two that were not accepted call from an address of their own.
    let client = vec![syn_sent(WEB, 300), unheard(WEB, 301, 1)];
    let stage = Stage { client, server, share: Some(0.5), ..Stage::default() };
    let (obs, path, words) = (stage.observe(), stage.path(), Catalogue::english());
    let told = crate::output::whereabouts::whereabouts(&obs, &path, 1_000.0, &words);
    let clients: Vec<(String, f64)> = told.clients.iter().map(|client| (client.address.to_string(), client.mean)).collect();
    let expected = [("10.0.1.2", 10.0), ("10.0.1.1", 6.0), ("10.0.0.1", 4.0)].map(|(ip, mean)| (ip.to_owned(), mean));
    assert_eq!(clients, expected, "each stands for two");
    assert!((told.clients[0].share - 0.5).abs() < 1e-9, "{:?}", told.clients);
    assert_eq!((told.window.from_s, told.window.to_s), (1_000.0, 1_010.0));
    let ledger = told.ledger.unwrap();
    let sum: f64 = ledger.places.iter().map(|place| place.mean).sum();
    assert!((sum + ledger.unaccounted.mean - ledger.under_way).abs() < 1e-2, "{ledger:?}");
}

#[test]
fn without_a_listener_or_a_sample_the_report_says_so() {
    let (stage, words) = (Stage::default(), Catalogue::english());
    let mut obs = stage.observe();
    let told = crate::output::whereabouts::whereabouts(&obs, &Path::default(), 0.0, &words);
    assert_eq!((told.ledger, told.warnings), (None, vec!["Nothing on this host listens at 10.0.0.1:80 for this client.".to_owned()]));
    obs.netns.values_mut().for_each(|view| view.request_samples = crate::observation::series::Series::default());
    let told = crate::output::whereabouts::whereabouts(&obs, &stage.path(), 0.0, &words);
    assert_eq!((told.ledger, told.warnings), (None, vec!["The connections of web were not sampled.".to_owned()]));
}

#[test]
fn without_samples_there_is_no_account() {
    let (obs, path, words) = (Observation::default(), Stage::default().path(), Catalogue::english());
    assert!(of(&Context::new(&obs, &path, &words)).is_none());
    let obs = Stage::default().observe();
    assert!(of(&Context::new(&obs, &Path::default(), &words)).is_none(), "and none without a path");
}

#[test]
fn only_its_own_sockets_fill_a_place() {
    let with = |change: fn(RequestSocket) -> RequestSocket, port| many(6, move |n| change(served(port, n)));
    let unread = |socket| RequestSocket { receive_queue: 9, ..socket };
    let sending = |socket| RequestSocket { send_queue: 9, ..socket };
    let shaking = |socket| RequestSocket { state: TcpState::SynRecv, times: None, inode: 0, ..socket };
    let from_client = |mut socket: RequestSocket| {
        let SocketAddress::Tcp { local, remote } = socket.address else { unreachable!("made above") };
        socket.address = SocketAddress::Tcp { local, remote: ("10.0.0.2".parse().unwrap(), remote.1) };
        RequestSocket { state: TcpState::SynRecv, times: None, inode: 0, ..socket }
    };
    let gone = |socket| RequestSocket { state: TcpState::CloseWait, ..socket };
    let hello = |mut socket: RequestSocket| {
        socket.times =
            socket.times.map(|times| RequestTimes { data_segs_in: Some(1), data_segs_out: Some(0), bytes_sent: Some(0), ..times });
        socket
    };
    let server = |server| Stage { server, ..Stage::default() };
    let rows: Vec<(&str, Stage, &str, Place, f64)> = vec![
        ("in the web server", server(with(|socket| socket, WEB)), "web", Place::Waiting, 6.0),
        ("answered", server(many(6, |n| idle(WEB, n))), "web", Place::Waiting, 0.0),
        ("unread", server(with(unread, WEB)), "web", Place::Unread, 6.0),
        ("unread counts once", server(with(unread, WEB)), "web", Place::Waiting, 0.0),
        ("sending", server(with(sending, WEB)), "web", Place::Sending, 6.0),
        ("a handshake", server(with(shaking, WEB)), "web", Place::Handshake, 6.0),
        ("a handshake that the client's end tells", server(with(from_client, WEB)), "web", Place::Handshake, 0.0),
        ("the client went away", server(with(gone, WEB)), "web", Place::Waiting, 0.0),
        ("first message of TLS", Stage { scheme: "https", ..server(with(hello, WEB)) }, "web", Place::TlsHandshake, 6.0),
        ("a first request without TLS", server(with(hello, WEB)), "web", Place::TlsHandshake, 0.0),
        ("accept queue", Stage { queues: (4, 0), ..Stage::default() }, "web", Place::AcceptQueue, 4.0),
        ("another's accept queue", Stage { queues: (4, 0), ..Stage::default() }, "app", Place::AcceptQueue, 0.0),
        ("the client connects", Stage { client: many(6, |n| syn_sent(WEB, n)), ..Stage::default() }, "web", Place::Connecting, 6.0),
        ("the web server connects", server(many(6, |n| syn_sent(APP, n))), "app", Place::Connecting, 6.0),
        (
            "the server forgot the handshake",
            Stage { client: many(6, |n| unheard(WEB, n, 1)), ..Stage::default() },
            "web",
            Place::Handshake,
            6.0,
        ),
        ("the server heard of it", Stage { client: many(6, |n| unheard(WEB, n, 9)), ..Stage::default() }, "web", Place::Handshake, 0.0),
        ("elsewhere", server(many(6, |n| syn_sent(5432, n))), "app", Place::Connecting, 0.0),
        ("answers unread", Stage { client: many(6, |n| unread(calling(WEB, n))), ..Stage::default() }, "client", Place::Client, 6.0),
        ("no answers", Stage { client: many(6, |n| calling(WEB, n)), ..Stage::default() }, "client", Place::Client, 0.0),
        ("busy", Stage { runs: (1.0, 0.0), ..server(with(|socket| socket, WEB)) }, "web", Place::Ready, 5.0),
    ];
    for (name, stage, tier, place, expected) in rows {
        let mean = stage.mean(tier, place);
        assert!((mean - expected).abs() < 0.05, "{name}: {mean} instead of {expected}\n{:#?}", stage.ledger());
    }
}

#[test]
fn requests_on_an_edge_are_not_held_by_the_caller() {
    let both = |web, app| [many(web, |n| served(WEB, n)), many(app, |n| served(APP, n))].concat();
    let stage = Stage { server: both(20, 5), queues: (0, 12), ..Stage::default() };
    let of = |tier: &str, place| stage.mean(tier, place);
    assert_eq!((of("web", Place::Waiting), of("app", Place::Waiting), of("app", Place::AcceptQueue)), (3.0, 5.0, 12.0));
    assert_eq!(stage.ledger().under_way, 20.0);
    // A fan-out: more requests behind than in front.
    let fan = Stage { server: both(2, 9), ..Stage::default() };
    assert_eq!((fan.mean("web", Place::Waiting), fan.mean("app", Place::Waiting)), (0.0, 9.0));
}

#[test]
fn with_load_a_difference_is_unaccounted() {
    let of = |in_flight| Stage { server: many(20, |n| served(WEB, n)), in_flight: Some(in_flight), ..Stage::default() }.ledger();
    let (whole, part) = (of(20), of(25));
    assert_eq!((whole.unaccounted.mean, part.unaccounted.mean, part.unaccounted.share), (0.0, 5.0, 0.2));
    assert_eq!((part.rate_rps, part.response_time_ms), (Some(100.0), Some(250.0)), "25 under way, 100 a second");
    assert_eq!(part.places[0].age_ms, Some(100.0), "which is no response time");
}

#[test]
fn a_share_of_the_sockets_is_scaled_up_and_the_interval_contains_the_mean() {
    let stage = Stage { server: many(20, |n| served(WEB, n)), share: Some(0.25), ..Stage::default() };
    let ledger = stage.ledger();
    let place = &ledger.places[0];
    assert_eq!((place.mean, place.low, place.high), (80.0, 80.0, 80.0), "nothing changes from batch to batch");
    assert_eq!(half_interval(&[1.0, 3.0]).map(|half| (half * 1e3).round()), Some(12_706.0));
    assert_eq!(half_interval(&[1.0]), None);
}

#[test]
fn for_watched_traffic_counters_show_what_was_dropped_and_where() {
    let words = Catalogue::english();
    let stage = Stage::default();
    let told = |obs: &Observation| -> Vec<(LedgerLossKind, String, String, f64)> {
        let losses = of(&Context::new(obs, &stage.path(), &words)).unwrap().0.losses;
        losses.into_iter().map(|loss| (loss.kind, loss.tier.unwrap(), loss.place.unwrap(), loss.per_s)).collect()
    };
    let mut obs = stage.observe();
    assert_eq!(told(&obs), []);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = crate::observation::series::Series::default();
    for (at_us, drops) in [(0, 100), (WINDOW_US, 150)] {
        let listeners = vec![stage.listener(WEB, 0), Listener { drops: Some(drops), ..stage.listener(APP, 0) }];
        view.listeners.push(at_us, Reading::Ok(listeners));
        let row = |drop| crate::observation::ConntrackCpu { counters: [("drop".to_owned(), drop)].into() };
        view.conntrack_cpus.push(at_us, Reading::Ok(vec![row(drops), row(7)]));
        let count = |name: &str, count| (name.to_owned(), count);
        let counters = [count("TcpExt.TCPReqQFullDrop", i64::try_from(drops).unwrap()), count("TcpExt.ListenOverflows", 3)];
        view.netstat.push(at_us, Reading::Ok(counters.into()));
    }
    let dropped = |tier: &str, place: &str| (LedgerLossKind::Dropped, tier.to_owned(), place.to_owned(), 5.0);
    assert_eq!(told(&obs), [dropped("web", "conntrack-table"), dropped("app", "syn-queue")]);
}

#[test]
fn losses_are_listed_by_kind_and_by_place_if_it_is_known() {
    let errors = Errors { connect_refused: 50, response_timeout: 20, local_ports: 10, ..Errors::default() };
    let stage = Stage { server: many(2, |n| served(WEB, n)), in_flight: Some(2), errors, ..Stage::default() };
    let told: Vec<(LedgerLossKind, Option<String>, f64)> =
        stage.ledger().losses.into_iter().map(|loss| (loss.kind, loss.place, loss.per_s)).collect();
    assert_eq!(
        told,
        [
            (LedgerLossKind::Client, Some("client".to_owned()), 1.0),
            (LedgerLossKind::Refused, None, 5.0),
            (LedgerLossKind::ResponseTimeout, None, 2.0)
        ]
    );
    assert!(Stage { in_flight: Some(2), ..Stage::default() }.ledger().losses.is_empty());
}

#[test]
fn a_recording_of_streams_is_reported_as_such() {
    let mut stage = Stage { server: many(9, |n| served(WEB, n)), ..Stage::default() };
    let warn = |stage: &Stage, obs: &Observation| {
        let (path, words) = (stage.path(), Catalogue::english());
        let ctx = Context::new(obs, &path, &words);
        of(&ctx).map(|(_, warnings)| warnings).unwrap_or_default()
    };
    assert!(warn(&stage, &stage.observe()).is_empty());
    stage.server = many(9, |n| served(WEB, n));
    // In each sample: how many segments were sent and received so far.
    let counted = |counts: &dyn Fn(u64) -> (u64, u64)| {
        let mut obs = stage.observe();
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points: Vec<(u64, RequestSample)> = view.request_samples.points().to_vec();
        view.request_samples = crate::observation::series::Series::default();
        for (n, (at_us, mut sample)) in points.into_iter().enumerate() {
            for times in sample.sockets.iter_mut().filter_map(|socket| socket.times.as_mut()) {
                let (sent, received) = counts(n as u64);
                (times.data_segs_out, times.data_segs_in) = (Some(sent), Some(received));
                times.last_data_sent_ms = 4;
            }
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        warn(&stage, &obs)
    };
    let told = counted(&|n| (10 + n, 5));
    assert!(told.len() == 1 && told[0].contains("send data without being asked"), "{told:?}");
    // The second part of each answer leaves after a pause, in the next interval.
    let in_two_parts = counted(&|n| (10 + n, 5 + n / 2));
    assert!(in_two_parts.iter().all(|told| !told.contains("send data without being asked")), "{in_two_parts:?}");
}

#[test]
fn with_one_request_per_connection_the_rate_is_that_of_accepted_connections() {
    let fresh = |port, number| {
        let mut socket = served(port, number);
        socket.times = socket.times.map(|times| RequestTimes { data_segs_in: Some(1), ..times });
        socket
    };
    let told = |server: Vec<RequestSocket>, opened: i64| {
        let stage = Stage { server, ..Stage::default() };
        let mut obs = stage.observe();
        let netstat = &mut obs.netns.get_mut(&SERVER).unwrap().netstat;
        for (at_us, count) in [(0, 0), (WINDOW_US, opened)] {
            netstat.push(at_us, Reading::Ok([("Tcp.PassiveOpens".to_owned(), count)].into()));
        }
        let (path, words) = (stage.path(), Catalogue::english());
        let (ledger, warnings) = of(&Context::new(&obs, &path, &words)).unwrap();
        (ledger.rate_rps, ledger.response_time_ms, warnings.iter().any(|one| one.contains("tick of the kernel's clock")))
    };
    let before = |details: Vec<RequestSocket>| [many(20, |number| fresh(WEB, number)), details].concat();
    let kept = many(3, |number| idle(APP, 200 + number));
    assert_eq!(told(before(kept.clone()), 5_000), (Some(500.0), Some(40.0), false));
    assert_eq!(told(before(kept.clone()), 500_000), (Some(50_000.0), Some(0.4), true));
    for (details, why) in [
        (many(5, |number| fresh(APP, 100 + number)), "the application accepts there as well"),
        (Vec::new(), "it may, and nobody saw"),
        ([kept, many(9, |number| idle(WEB, 300 + number))].concat(), "some connections are kept"),
    ] {
        assert_ne!(told(before(details), 5_000).0, Some(500.0), "{why}");
    }
}

#[test]
fn removing_a_place_leaves_the_time_that_requests_spend_elsewhere() {
    let server = [many(20, |number| served(WEB, number)), many(5, |number| served(APP, number))].concat();
    let stage = Stage { server, queues: (0, 12), runs: (0.5, 1.0), ..Stage::default() };
    let (obs, path, words) = (stage.observe(), stage.path(), Catalogue::english());
    let ctx = Context::new(&obs, &path, &words);
    let account = ctx.account().unwrap();
    let left = |tier| account.remaining_without(&ctx, tier).value;
    let at = |tier: &str| stage.mean(tier, Place::Cpu);
    assert!(at("web") > 0.0 && at("app") > 0.0);
    // Behind the web server the queue may shorten, and the wait for a core too.
    assert!((left(0) - at("web") - at("app") - stage.mean("app", Place::Waiting)).abs() < 1e-3, "{}", left(0));
    // Callers of the application wait for it.
    assert!((left(1) - at("web") - at("app")).abs() < 1e-3, "{}", left(1));
}

#[test]
fn only_handshakes_that_somebody_completes_count() {
    let shaking = |number| RequestSocket { state: TcpState::SynRecv, times: None, inode: 0, ..served(WEB, 1_000 + number) };
    let far = |number| {
        let mut socket = served(WEB, number);
        socket.times = socket.times.map(|times| RequestTimes { min_rtt_us: Some(100_000), ..times });
        socket
    };
    let server = [many(20, far), many(600, shaking)].concat();
    let mean = |opened: i64, overflows: i64, lost: i64, in_flight: Option<u32>| {
        let stage = Stage { server: server.clone(), in_flight, ..Stage::default() };
        let mut obs = stage.observe();
        let netstat = &mut obs.netns.get_mut(&SERVER).unwrap().netstat;
        for (at_us, times) in [(0, 0), (WINDOW_US, 1)] {
            let counted = [
                ("Tcp.PassiveOpens", opened),
                ("TcpExt.ListenOverflows", overflows),
                ("Tcp.OutSegs", 1_000),
                ("Tcp.RetransSegs", 400 + lost),
                ("TcpExt.TCPSynRetrans", 400),
                ("TcpExt.TCPDSACKRecvSegs", 0),
            ];
            let counters = counted.map(|(name, count)| (name.to_owned(), times * count));
            netstat.push(at_us, Reading::Ok(counters.into()));
        }
        let (path, words) = (stage.path(), Catalogue::english());
        let ledger = of(&Context::new(&obs, &path, &words)).unwrap().0;
        ledger.places.iter().find(|one| one.place == Place::Handshake).map_or(0.0, |one| one.mean)
    };
    assert_eq!(mean(500, 0, 0, None), 2.5, "fifty a second in two tiers, a tenth of a second each: the others are a flood");
    assert_eq!(
        mean(500, 0, 100, None),
        7.5,
        "a tenth of all segments is lost, of handshakes two each may be, and a second passes until they come again"
    );
    assert_eq!(mean(500, 9, 0, None), 600.0, "complete ones stay open where the accept queue is full");
    assert_eq!(mean(0, 0, 0, None), 600.0, "nobody gets through");
    assert_eq!(mean(500, 9, 0, Some(20)), 0.0, "the load's own end tells of those");
}

#[test]
fn a_client_that_has_read_the_answer_need_not_read_its_end() {
    let closed = |queue, number| RequestSocket { state: TcpState::CloseWait, receive_queue: queue, inode: 1, ..calling(WEB, number) };
    let client = |queue| Stage { client: many(5, |number| closed(queue, number)), ..Stage::default() }.mean("client", Place::Client);
    assert_eq!((client(1), client(2)), (0.0, 5.0));
}

#[test]
fn a_handshake_seen_at_both_ends_counts_once() {
    let shaking = |number| RequestSocket { state: TcpState::SynRecv, times: None, inode: 0, ..served(APP, number) };
    let both = [many(6, shaking), many(6, |number| unheard(APP, number, 1))].concat();
    assert_eq!(Stage { server: both, ..Stage::default() }.mean("app", Place::Handshake), 6.0);
}

#[test]
fn each_sample_stands_for_the_time_nearest_to_it() {
    assert_eq!(time_shares(&[100, 200, 800], (0, 1_000)), [0.15, 0.35, 0.5]);
    assert_eq!(time_shares(&[400], (0, 1_000)), [1.0]);
    assert_eq!(time_shares(&[], (0, 1_000)), [1.0], "nobody takes it");
}
