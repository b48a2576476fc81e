//! Samples of requests: real connections, what a sample keeps of them, and shares of many sockets.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};

use chokepoint_model::load::InFlight;
use chokepoint_recording::Scope;
use proptest::prelude::*;

use super::*;
use crate::netlink::wire::request;
use crate::sock_diag::protocol::{AF_INET, SOCK_DIAG_BY_FAMILY};

fn message(local: u16, remote: u16) -> Vec<u8> {
    message_in(TcpState::Established, local, remote)
}

fn message_in(state: TcpState, local: u16, remote: u16) -> Vec<u8> {
    let mut body = vec![AF_INET, state as u8, 0, 0];
    body.extend_from_slice(&local.to_be_bytes());
    body.extend_from_slice(&remote.to_be_bytes());
    body.resize(inet::MESSAGE_BYTES, 0);
    request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
}

fn entry(at_us: u64, item: &str, bytes: Vec<u8>) -> Entry {
    Entry { at_us, source: REQUESTS.name.to_owned(), scope: Scope::Netns(7), item: item.to_owned(), outcome: Outcome::Ok(bytes) }
}

fn sampled(bytes: Vec<u8>, shares: (f64, f64)) -> SampledSockets {
    SampledSockets { bytes, shares, moment: None, exchanges: BTreeMap::new() }
}

#[test]
fn a_request_shows_as_unread_then_in_service_then_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let sockets = Sockets::open().unwrap();
    let seen = || {
        let bytes = dump(&sockets, &inet::sockets_with_requests(), None, &mut BTreeMap::new()).unwrap().bytes;
        let own = |socket: &RequestSocket| matches!(socket.address, SocketAddress::Tcp { local, .. } if local.1 == address.port());
        parse(&bytes).unwrap().sockets.into_iter().find(own).unwrap()
    };
    client.write_all(b"GET").unwrap();
    let waiting = seen();
    assert_eq!((waiting.inode, waiting.receive_queue), (0, 3), "not accepted, with its request");
    let (mut server, _) = listener.accept().unwrap();
    let unread = seen();
    assert!(unread.inode != 0 && unread.receive_queue == 3 && unread.cookie == waiting.cookie);
    server.read_exact(&mut [0; 3]).unwrap();
    let served = seen();
    let times = served.times.unwrap();
    assert_eq!((served.receive_queue, times.data_segs_in, times.data_segs_out), (0, Some(1), Some(0)));
    server.write_all(b"answer").unwrap();
    client.read_exact(&mut [0; 6]).unwrap();
    let times = seen().times.unwrap();
    assert_eq!((times.data_segs_in, times.data_segs_out, times.bytes_received), (Some(1), Some(1), Some(3)));
}

#[test]
fn a_unix_socket_has_no_request_once_its_response_is_complete_or_its_caller_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let sockets = Sockets::open().unwrap();
    let own_path = path.to_str().map(str::to_owned);
    let states = || {
        let found = parse(&unix_sockets(&sockets).unwrap()).unwrap().sockets;
        let own = |socket: &RequestSocket| matches!(&socket.address, SocketAddress::Unix { path, .. } if *path == own_path);
        let mut states: Vec<TcpState> = found.into_iter().filter(own).map(|socket| socket.state).collect();
        states.sort_by_key(|state| *state as u8);
        states
    };
    let callers: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let accepted: Vec<UnixStream> = (0..4).map(|_| listener.accept().unwrap().0).collect();
    assert_eq!(states(), [TcpState::Established; 4]);
    callers[0].shutdown(Shutdown::Write).unwrap();
    assert_eq!(states(), [TcpState::Established; 4], "a caller that sends no more still waits for the response");
    accepted[1].shutdown(Shutdown::Write).unwrap();
    let one = [TcpState::Established, TcpState::Established, TcpState::Established, TcpState::CloseWait];
    assert_eq!(states(), one, "the response is complete");
    drop(callers);
    assert_eq!(states(), [TcpState::CloseWait; 4], "all callers are gone");
}

#[test]
fn the_kernel_reads_only_ports_within_the_windows() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let clients: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let sockets = Sockets::open().unwrap();
    let within = |windows: &Windows| {
        let program = windows.program(&[address.port()]);
        dump(&sockets, &inet::sockets_with_requests_within(false, Some(&program)), None, &mut BTreeMap::new()).unwrap().bytes
    };
    let mut ports: Vec<u16> = clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
    ports.sort_unstable();
    // A window begins at the middle port. The port before it is in no window.
    let windows = Windows::of(0.3, u64::from(ports[50]));
    let bytes = within(&windows);
    let mut ends: BTreeMap<u16, u32> = BTreeMap::new();
    for socket in parse(&bytes).unwrap().sockets {
        let SocketAddress::Tcp { local, remote } = socket.address else { continue };
        if local.1 == address.port() {
            *ends.entry(remote.1).or_default() += 1;
        } else if remote.1 == address.port() {
            *ends.entry(local.1).or_default() += 1;
        }
    }
    assert!(ends.values().all(|count| *count == 2), "both ends of a connection or none: {ends:?}");
    assert!(ends.contains_key(&ports[50]) && !ends.contains_key(&ports[49]), "{ports:?} {ends:?}");
    let is_inside = |port: &u16| windows.ranges().iter().any(|(first, last)| (first..=last).contains(&port));
    assert_eq!(ends.into_keys().collect::<Vec<_>>(), ports.into_iter().filter(is_inside).collect::<Vec<_>>());
    let everything = Windows::of(1.0, 5_000);
    let bytes = within(&everything);
    let own = |socket: &RequestSocket| matches!(socket.address, SocketAddress::Tcp { local, .. } if local.1 == address.port());
    assert_eq!(parse(&bytes).unwrap().sockets.iter().filter(|socket| own(socket)).count(), clients.len());
}

#[test]
fn of_many_sockets_a_share_is_read_and_an_expensive_sample_delays_the_next() {
    let now = Instant::now();
    let mut requests = RequestSampling::default();
    assert!(requests.is_due(now) && !requests.connections.is_large());
    let crowd: Vec<u8> = (0..2_000).flat_map(|n| message(80, 10_000 + n)).collect();
    requests.learn(&sampled(crowd, (0.5, 1.0)), Duration::from_millis(10), now);
    assert_eq!((requests.connections.size, requests.ports.as_slice()), (4_000, &[80][..]));
    let mut next = |in_pairs| requests.connections.windows(in_pairs, || 7).unwrap();
    let [first, second, third, fourth] = [next(false), next(true), next(true), next(true)];
    assert!((first.share() - 0.1).abs() < 0.001 && first != second, "another place each time: {first:?} {second:?}");
    assert!(second == third && third != fourth, "or each twice: {second:?} {third:?} {fourth:?}");
    assert!(!requests.is_due(now + Duration::from_millis(1_329)) && requests.is_due(now + Duration::from_millis(1_330)));
    requests.learn(&sampled(message(80, 1), (1.0, 1.0)), Duration::ZERO, now);
    assert!(!requests.connections.is_large() && requests.ports.is_empty());
    assert!(!requests.is_due(now + Duration::from_millis(124)) && requests.is_due(now + Duration::from_millis(225)));
}

#[test]
fn one_slow_sample_delays_no_other_and_no_pause_is_long() {
    let now = Instant::now();
    let mut requests = RequestSampling::default();
    let mut pause = |cost_ms| {
        requests.learn(&sampled(message(80, 1), (1.0, 1.0)), Duration::from_millis(cost_ms), now);
        requests.due.unwrap() - now
    };
    assert!(pause(1) <= Duration::from_millis(225));
    assert!(pause(210) <= Duration::from_millis(225), "another program had the core");
    assert_eq!(pause(210), PAUSE_MAX, "it is expensive");
    assert_eq!(pause(60_000), PAUSE_MAX);
}

#[test]
fn the_first_seconds_without_a_load_do_not_wait_for_the_budget() {
    let now = Instant::now();
    let mut requests = RequestSampling {
        early: now.checked_add(Duration::from_micros(EARLY_US)).map(|until| (until, EARLY_PART)),
        ..RequestSampling::default()
    };
    let mut pause = |after: Duration, cost_ms| {
        let then = now + after;
        requests.learn(&sampled(message(80, 1), (1.0, 1.0)), Duration::from_millis(cost_ms), then);
        requests.due.unwrap() - then
    };
    assert!(pause(Duration::ZERO, 10) <= Duration::from_millis(225), "a twentieth of a core");
    assert!(pause(Duration::from_secs(1), 40) <= Duration::from_millis(225), "of one slow sample the machine is the reason");
    assert_eq!(pause(Duration::from_secs(2), 40), Duration::from_millis(800));
    assert_eq!(pause(Duration::from_secs(5), 10), Duration::from_millis(1_330), "then the budget pays");
}

#[test]
fn a_flood_of_handshakes_does_not_reduce_the_share_of_connections() {
    let mut requests = RequestSampling::default();
    let flood = (0..3_000).flat_map(|n| message_in(TcpState::SynRecv, 80, 10_000 + n));
    let bytes: Vec<u8> = flood.chain((0..10).flat_map(|n| message(80, 50_000 + n))).collect();
    requests.learn(&sampled(bytes, (1.0, 1.0)), Duration::ZERO, Instant::now());
    assert_eq!((requests.connections.size, requests.handshakes.size), (10, 3_000));
    assert!(requests.connections.windows(true, || 7).is_none() && requests.handshakes.windows(true, || 7).is_some());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _client = TcpStream::connect(address).unwrap();
    let taken = requests.take(&Sockets::open().unwrap(), None).unwrap();
    assert!(taken.shares.0 == 1.0 && taken.shares.1 < 0.5, "{:?}", taken.shares);
    let sockets = parse(&taken.bytes).unwrap().sockets;
    let ends = sockets.iter().filter(|socket| match socket.address {
        SocketAddress::Tcp { local, remote } => local.1 == address.port() || remote.1 == address.port(),
        SocketAddress::Unix { .. } => false,
    });
    assert_eq!(ends.count(), 2, "each once");
}

#[test]
fn share_and_lateness_are_added_to_the_sample_of_their_time() {
    let entries = [
        entry(1, "", message(80, 5)),
        entry(1, SAMPLING, b"share 0.25\nhandshakes 0.125\nlate_us 70\nunder_way 2.5\nbegun 1\n".to_vec()),
        entry(2, "", message(80, 5)),
        entry(3, SAMPLING, b"share 0.5\nlate_us 1\n".to_vec()),
    ];
    let observation = crate::assemble(&entries);
    let samples = &observation.netns.values().next().unwrap().request_samples;
    let values = |sample: &RequestSample| (sample.share, sample.handshake_share, sample.late_us, sample.under_way, sample.begun);
    assert_eq!(samples.values().map(values).collect::<Vec<_>>(), [(0.25, 0.125, 70, Some(2.5), Some(1.0)), (1.0, 1.0, 0, None, None)]);
    let old = crate::assemble(&[entry(1, "", message(80, 5)), entry(1, SAMPLING, b"share 0.5\n".to_vec())]);
    assert_eq!(
        values(old.netns.values().next().unwrap().request_samples.last().unwrap()),
        (0.5, 0.5, 0, None, None),
        "of an older version"
    );
    for bad in [
        &b""[..],
        b"share 0",
        b"share x\nlate_us -",
        b"share 7",
        b"\xff",
        b"under_way -1\n",
        b"under_way inf\n",
        b"under_way 1e-308\nshare 1e-310\nhandshakes 1e-308\n",
        b"under_way 1e308\n",
        b"under_way -1\nbegun -1\n",
        b"begun 1e308\n",
    ] {
        let observation = crate::assemble(&[entry(1, "", message(80, 5)), entry(1, SAMPLING, bad.to_vec())]);
        let sample = observation.netns.values().next().unwrap().request_samples.last().unwrap();
        assert_eq!((sample.share, sample.handshake_share, sample.under_way, sample.begun), (1.0, 1.0, None, None));
    }
}

#[test]
fn the_moment_of_a_sample_is_kept_and_damage_is_no_moment() {
    let of = |text: &str| {
        let observation = crate::assemble(&[entry(1, "", message(80, 5)), entry(1, SAMPLING, text.as_bytes().to_vec())]);
        observation.netns.values().next().unwrap().request_samples.last().unwrap().moment
    };
    let moment = DumpMoment { since_tick_us: 3_100, took_us: 250, count: 9, tick_us: 4_000 };
    assert_eq!(of("share 1\nmoment 3100 250 9 4000\nlate_us 3\n"), Some(moment));
    for bad in [
        "",
        "moment\n",
        "moment 1 2 3\n",
        "moment 1 2 3 0\n",
        "moment 1 2 3 -4\n",
        "moment 1 2 3 99999999999999999999\n",
        "moments 1 2 3 4\n",
    ] {
        assert_eq!(of(bad), None, "{bad}");
    }
    let items = items(["", SAMPLING], None, SampledSockets { moment: Some(moment), ..sampled(message(80, 5), (1.0, 1.0)) }, "");
    let Outcome::Ok(text) = &items[1].1 else { panic!("{items:?}") };
    assert_eq!(of(&String::from_utf8_lossy(text)), Some(moment));
}

#[test]
fn addresses_are_redacted_and_the_rest_stays() {
    let mut bytes = message(80, 5);
    bytes[HEADER_BYTES + 8..HEADER_BYTES + 12].copy_from_slice(&[8, 8, 8, 8]);
    let hidden = crate::redact(&entry(1, "", bytes), &mut |_| "198.18.0.1".parse().unwrap());
    let Outcome::Ok(bytes) = &hidden.outcome else { panic!("it parses") };
    assert!(!bytes.windows(4).any(|window| window == [8; 4]));
    let SocketAddress::Tcp { local, remote } = &parse(bytes).unwrap().sockets[0].address else { panic!("it is one of TCP") };
    assert_eq!((local.0.to_string().as_str(), local.1, remote.1), ("198.18.0.1", 80, 5));
    let sampling = entry(1, SAMPLING, b"share 0.5\n".to_vec());
    assert_eq!(crate::redact(&sampling, &mut |ip| ip), sampling);
}

#[test]
fn awaited_samples_and_those_of_the_client_have_their_own_items_and_are_redacted() {
    let mut bytes = message(80, 5);
    bytes[HEADER_BYTES + 8..HEADER_BYTES + 12].copy_from_slice(&[8, 8, 8, 8]);
    let bytes_of = |text: &str| text.as_bytes().to_vec();
    let entries = [
        entry(1, AWAITED, bytes.clone()),
        entry(1, AWAITED_SAMPLING, bytes_of("share 1\nunder_way 1.25\nlooks 9\n")),
        entry(1, "awaited@8", bytes.clone()),
        entry(1, "awaited-sampling@8", bytes_of("share 1\nunder_way 1.25\nlooks 9\n")),
        entry(2, "@8", bytes),
        entry(2, "sampling@8", bytes_of("share 0.5\nunder_way 0.000001\n")),
    ];
    let observation = crate::assemble(&entries);
    let of = |id| {
        let values = |sample: &RequestSample| (sample.share, sample.under_way, sample.looks, sample.sockets.len());
        let view = &observation.netns[&NetnsId(id)];
        (view.request_samples.values().map(values).collect::<Vec<_>>(), view.awaited_samples.values().map(values).collect::<Vec<_>>())
    };
    assert_eq!(of(7), (vec![], vec![(1.0, Some(1.25), 9, 1)]));
    assert_eq!(of(8), (vec![(0.5, Some(0.000_001), 0, 1)], vec![(1.0, Some(1.25), 9, 1)]));
    for one in &entries {
        let hidden = crate::redact(one, &mut |_| "198.18.0.1".parse().unwrap());
        let Outcome::Ok(bytes) = &hidden.outcome else { panic!("it parses") };
        assert!(!bytes.windows(4).any(|window| window == [8; 4]), "{}", one.item);
    }
    for bad in ["looks -1\n", "looks inf\n", "looks 1e300\n", "looks x\n"] {
        let observation = crate::assemble(&[entry(1, AWAITED, message(80, 5)), entry(1, AWAITED_SAMPLING, bytes_of(bad))]);
        assert_eq!(observation.netns[&NetnsId(7)].awaited_samples.last().unwrap().looks, 0, "{bad}");
    }
    assert!(crate::assemble(&[entry(1, "@x", message(80, 5))]).netns.contains_key(&NetnsId(7)), "an invalid number is ignored");
}

#[test]
fn the_reader_of_the_server_reads_both_ends_of_a_load() {
    let (client, server) = (NetnsId(1), NetnsId(2));
    let under_way = UnderWay::new(|| InFlight { is_loading: true, ..InFlight::default() });
    under_way.calls_from(client);
    under_way.enter(server);
    assert!(!under_way.is_read_from_elsewhere(client), "the namespace of the first tier is unknown");
    under_way.is_answered_in(server);
    assert!(!under_way.is_read_from_elsewhere(client) && under_way.other_end(client).is_none(), "its sockets were not opened");
    under_way.enter(client);
    assert!(under_way.is_read_from_elsewhere(client) && !under_way.is_read_from_elsewhere(server));
    let (sockets, root, notes) = (Sockets::open().unwrap(), crate::Root::default(), crate::table::Notes::default());
    let names = |id| {
        let netns = crate::netns::NetnsRef { id, name: None, is_host: false, path: std::path::PathBuf::new() };
        let context = ReadContext {
            under_way: Some(&under_way),
            netns: Some(&netns),
            netlink: Some(&sockets),
            ..ReadContext::new(&root, Scope::Netns(id.0), Phase::First, &notes)
        };
        read(&context).into_iter().map(|(item, _)| item).collect::<Vec<_>>()
    };
    assert_eq!(names(server), ["", SAMPLING, "@1", "sampling@1"]);
    assert_eq!(names(client), [""; 0]);
    assert_eq!(names(NetnsId(3)), ["", SAMPLING], "another tier's");
    // That sample met no request, so one is awaited.
    assert_eq!(sockets.memory::<RequestSampling>().borrow_mut().look(Some(&under_way)), Some(false));
    under_way.is_answered_in(client);
    assert_eq!(names(client), ["", SAMPLING], "both ends are in one namespace");
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
        let whole = request(SOCK_DIAG_BY_FAMILY, 0, 0, &bytes);
        let _ = parse(&whole);
        let mut short = Vec::new();
        append_short(&whole, &mut short);
        prop_assert!(messages(&short).all(|message| message.is_ok()));
        RequestSampling::default().learn(&sampled(bytes, (1.0, 1.0)), Duration::ZERO, Instant::now());
    }
}

#[test]
fn after_a_few_samples_all_ports_were_read_about_equally_often() {
    for population in [2_600, 6_000, 40_000] {
        let mut sockets = Population { size: population, ..Population::default() };
        let mut times = vec![0_u32; 65_536];
        let (samples, mut share) = (40, 0.0);
        for _ in 0..samples {
            let windows = sockets.windows(false, || 7).unwrap();
            share = windows.share();
            windows.ranges().iter().for_each(|(first, last)| (*first..=*last).for_each(|port| times[usize::from(port)] += 1));
        }
        let expected = f64::from(samples) * share;
        let (least, most) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
        assert!(f64::from(most) - expected < 3.0 && expected - f64::from(least) < 3.0, "{population}: {least} to {most} of {expected}");
    }
}

#[test]
fn a_load_over_tls_says_whose_turn_it_is_and_the_sample_keeps_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let clients = [0; 2].map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let [waiting, answered] = clients.each_ref().map(|client| client.local_addr().unwrap().port());
    let load = UnderWay::new(InFlight::default).with_exchanges(move |port| match port {
        port if port == waiting => Some(LoadExchange::Waiting),
        port => (port == answered).then_some(LoadExchange::Answered),
    });
    let (sockets, root, notes) = (Sockets::open().unwrap(), crate::Root::default(), crate::table::Notes::default());
    let netns = crate::netns::NetnsRef { id: NetnsId(7), name: None, is_host: false, path: std::path::PathBuf::new() };
    let context = ReadContext {
        under_way: Some(&load),
        netns: Some(&netns),
        netlink: Some(&sockets),
        ..ReadContext::new(&root, Scope::Netns(7), Phase::First, &notes)
    };
    let entries = read(&context).into_iter().map(|(item, outcome)| Entry { outcome, ..entry(1, &item, Vec::new()) });
    let observation = crate::assemble(&entries.collect::<Vec<_>>());
    let sample = observation.netns[&NetnsId(7)].request_samples.last().unwrap();
    assert_eq!(sample.exchanges, BTreeMap::from([(waiting, LoadExchange::Waiting), (answered, LoadExchange::Answered)]));
}

#[test]
fn damaged_lines_of_a_loads_connections_are_ignored() {
    let text = "share 1\nwaiting 1 x 70000 -1 2\nansweredx 3\nanswered\nnot-asked 65535\nelse 4\n";
    let observation = crate::assemble(&[entry(1, "", message(80, 5)), entry(1, SAMPLING, text.as_bytes().to_vec())]);
    let sample = observation.netns[&NetnsId(7)].request_samples.last().unwrap();
    let expected = [(1, LoadExchange::Waiting), (2, LoadExchange::Waiting), (65_535, LoadExchange::NotAsked)];
    assert_eq!(sample.exchanges, BTreeMap::from(expected));
}
