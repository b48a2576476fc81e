//! Dumps of a real kernel (6.18, network namespace with nginx and php-fpm) through the live parsers; also cut, damaged and redacted.
//!
//! Deterministic: recorded bytes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use chokepoint_model::observation::{ListenerAddress, NetnsId, NetnsView, SocketAddress, TcpState, UnixPeer};
use chokepoint_model::series::SeriesState;
use chokepoint_recording::{Entry, Outcome, Scope};
use chokepoint_sources::{Redact, SOURCES, assemble, redact, source};
use proptest::prelude::*;

const BINARY: [&str; 7] = ["listeners", "sockets", "tcp_info", "requests", "links", "qdiscs", "addresses"];

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/netlink/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn entry(name: &str, bytes: Vec<u8>) -> Entry {
    Entry { at_us: 1, source: name.to_owned(), scope: Scope::Netns(7), item: String::new(), outcome: Outcome::Ok(bytes) }
}

fn view(entries: &[Entry]) -> NetnsView {
    let mut observation = assemble(entries);
    assert!(observation.unplaced.is_empty(), "{:?}", observation.unplaced);
    observation.netns.remove(&NetnsId(7)).unwrap()
}

fn fails(name: &str, bytes: Vec<u8>) -> bool {
    let view = view(&[entry(name, bytes)]);
    let failed = |state: SeriesState<'_>| matches!(state, SeriesState::Failed(..));
    match name {
        "listeners" => failed(view.listeners.state()),
        "sockets" => failed(view.sockets.state()),
        "tcp_info" => failed(view.tcp_samples.state()),
        "requests" => failed(view.request_samples.state()),
        "links" => failed(view.links.state()),
        "qdiscs" => failed(view.qdiscs.state()),
        _ => failed(view.addresses.state()),
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn every_binary_source_has_a_fixture() {
    let binary = |redact| matches!(redact, Redact::InetDiag | Redact::UnixDiag | Redact::RouteNetlink);
    let names: Vec<&str> = SOURCES.iter().filter(|source| binary(source.redact)).map(|source| source.name).collect();
    assert_eq!(names, BINARY, "a new binary source needs a fixture and a test here");
    assert!(names.iter().all(|name| !fixture(name).is_empty()));
}

#[test]
fn listeners_of_a_real_kernel_are_parsed() {
    let view = view(&[entry("listeners", fixture("listeners"))]);
    let listeners: BTreeMap<String, _> =
        view.listeners.last().unwrap().iter().map(|listener| (listener.address.to_string(), listener)).collect();
    let queue = |name: &str| (listeners[name].accept_queue, listeners[name].accept_queue_limit);
    assert_eq!(queue("127.0.0.1:8081"), (2, 1), "full: one more than its limit");
    assert!(listeners["127.0.0.1:8081"].drops.is_some_and(|drops| drops >= 4));
    assert_eq!((queue("0.0.0.0:80"), listeners["0.0.0.0:80"].drops), ((0, 128), Some(0)));
    assert_eq!((queue("[::]:8082"), listeners["[::]:8082"].v6_only), ((0, 5), false));
    assert_eq!((queue("[::]:8083"), listeners["[::]:8083"].v6_only), ((0, 7), true));
    assert_eq!(queue("unix:@t-srca"), (2, 3));
    assert_eq!(queue("unix:/tmp/srca/fpm.sock"), (0, 4096));
    assert_eq!(listeners.len(), 8);
    assert!(matches!(listeners["unix:@t-srca"].address, ListenerAddress::Unix(_)));
}

#[test]
fn sockets_of_a_real_kernel_are_parsed() {
    let view = view(&[entry("sockets", fixture("sockets"))]);
    let sockets = view.sockets.last().unwrap();
    let count = |state| sockets.iter().filter(|socket| socket.state == state).count();
    assert_eq!((count(TcpState::TimeWait), count(TcpState::SynSent)), (4, 4));
    let waits = |socket: &&chokepoint_model::observation::Socket| {
        socket.inode == 0 && socket.wait.is_some_and(|wait| (1..=60_000).contains(&wait.left_ms))
    };
    assert_eq!(sockets.iter().filter(|socket| socket.state == TcpState::TimeWait).filter(waits).count(), 4);
    // Mapped addresses of a dual-stack socket become IPv4, so that both ends match.
    let unread: Vec<_> = sockets.iter().filter(|socket| socket.receive_queue == 5).collect();
    assert!(matches!(unread[..], [socket] if matches!(socket.address,
        SocketAddress::Tcp { remote, .. } if remote == (ip("127.0.0.1"), 8082))));
    let mapped =
        sockets.iter().any(|socket| matches!(socket.address, SocketAddress::Tcp { local, .. } if local == (ip("127.0.0.1"), 8082)));
    assert!(mapped);
    let named = |socket: &&chokepoint_model::observation::Socket| matches!(&socket.address, SocketAddress::Unix { path: Some(path), peer: UnixPeer::Inode(_) } if path == "@t-srca");
    let ends: Vec<bool> = sockets.iter().filter(named).map(|socket| socket.inode == 0).collect();
    assert_eq!(ends.iter().filter(|waiting| **waiting).count(), 2, "two wait to be accepted");
    assert_eq!(ends.len(), 3, "and one is");
}

#[test]
fn a_sender_and_its_peer_that_does_not_read_are_parsed() {
    let view = view(&[entry("tcp_info", fixture("tcp_info"))]);
    let [sender, reader] = &view.tcp_samples.last().unwrap()[..] else { panic!("{:?}", view.tcp_samples) };
    assert_eq!((sender.local, sender.remote), ((ip("127.0.0.1"), 8080), (ip("127.0.0.1"), 33222)));
    assert_eq!((reader.local, reader.remote, reader.send_queue), (sender.remote, sender.local, 0));
    let unsent = sender.unsent.unwrap();
    assert!(
        unsent > sender.mss && u64::from(sender.send_queue) >= unsent && sender.send_buffer.is_some_and(|bytes| bytes > sender.send_queue)
    );
    let (busy, window) = (sender.busy_us.unwrap(), sender.rwnd_limited_us.unwrap());
    assert!(window > busy / 2 && window <= busy && sender.sndbuf_limited_us == Some(0), "{sender:?}");
    assert_eq!((reader.busy_us, reader.unsent, reader.unacked), (Some(0), Some(0), 0));
    assert!(sender.cookie != reader.cookie && sender.rtt_us > 0 && sender.min_rtt_us.is_some_and(|us| us < 10_000));
}

/// One answered connection, one with a request in service, one with an unread request, one that is not accepted, and a unix socket.
#[test]
fn requests_at_each_place_are_parsed() {
    let view = view(&[entry("requests", fixture("requests"))]);
    let sockets = &view.request_samples.last().unwrap().sockets;
    let accepted = |port: u16| {
        sockets
            .iter()
            .filter(move |socket| matches!(socket.address, SocketAddress::Tcp { local, .. } if local.1 == port))
            .collect::<Vec<_>>()
    };
    let mut at: Vec<_> =
        accepted(8090).into_iter().map(|socket| (socket.inode != 0, socket.receive_queue, socket.times.unwrap())).collect();
    at.sort_by_key(|(is_accepted, unread, _)| (*is_accepted, *unread));
    let [(false, 3, waiting), (true, 0, answered), (true, 5, unread)] = &at[..] else { panic!("{at:?}") };
    assert_eq!(
        [waiting, answered, unread].map(|times| (times.data_segs_in, times.data_segs_out)),
        [(Some(1), Some(0)), (Some(1), Some(1)), (Some(1), Some(0))]
    );
    assert!(answered.last_data_sent_ms >= 76 && answered.bytes_received == Some(10) && answered.bytes_sent == Some(6));
    let [in_service] = accepted(8091)[..] else { panic!("{sockets:?}") };
    assert!(matches!(in_service.address, SocketAddress::Tcp { local, .. } if local.0 == ip("fd77::1")) && in_service.receive_queue == 0);
    assert_eq!(in_service.times.map(|times| (times.data_segs_in, times.data_segs_out)), Some((Some(1), Some(0))));
    let unix: Vec<_> = sockets.iter().filter(|socket| matches!(socket.address, SocketAddress::Unix { .. })).collect();
    assert!(matches!(unix[..], [socket] if socket.receive_queue == 6 && socket.times.is_none()));
    assert_eq!(sockets.len(), 9, "both ends of four connections, and one of the unix socket");
}

#[test]
fn links_qdiscs_and_addresses_of_a_real_kernel_are_parsed() {
    let view = view(&BINARY.map(|name| entry(name, fixture(name))));
    let links = view.links.last().unwrap();
    let veth = links.iter().find(|link| link.name == "tsv").unwrap();
    assert_eq!((veth.kind.as_deref(), veth.up, veth.mtu, veth.speed_bits_per_s), (Some("veth"), true, 1500, Some(10_000_000_000)));
    assert!(veth.rx_bytes > 0 && veth.tx_packets > 0 && veth.rx_dropped == 0);
    let lo = links.iter().find(|link| link.name == "lo").unwrap();
    assert_eq!((lo.kind.as_deref(), lo.speed_bits_per_s, lo.rx_bytes), (None, None, lo.tx_bytes));
    let qdiscs = view.qdiscs.last().unwrap();
    let rate = |kind: &str| qdiscs.iter().find(|qdisc| qdisc.kind == kind).map(|qdisc| (qdisc.link, qdisc.rate_bits_per_s));
    assert_eq!(rate("htb"), Some((veth.index, Some(100_000_000))));
    assert_eq!(rate("tbf"), Some((lo.index, Some(5_000_000_000))), "beyond 32 bits of bytes a second it would be in another attribute");
    assert!(qdiscs.iter().all(|qdisc| qdisc.bytes > 0 && qdisc.packets > 0));
    let addresses = view.addresses.last().unwrap();
    let has = |text, bits, link| addresses.iter().any(|found| (found.ip, found.prefix_bits, found.link) == (ip(text), bits, link));
    assert!(has("127.0.0.1", 8, lo.index) && has("::1", 128, lo.index));
    assert!(has("10.77.0.1", 24, veth.index) && has("fd77::1", 64, veth.index));
}

#[test]
fn a_cut_within_a_message_is_a_failure() {
    for name in BINARY {
        let whole = fixture(name);
        let mut boundaries = vec![0];
        while boundaries.last().is_some_and(|at| *at < whole.len()) {
            let at = *boundaries.last().unwrap();
            let length = u32::from_ne_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
            boundaries.push(at + length.next_multiple_of(4));
        }
        for cut in 0..whole.len() {
            assert_eq!(fails(name, whole[..cut].to_vec()), !boundaries.contains(&cut), "{name} cut at {cut}");
        }
    }
}

#[test]
fn redaction_keeps_everything_except_addresses() {
    let mut seen: BTreeMap<IpAddr, IpAddr> = BTreeMap::new();
    let mut stand_in = |ip: IpAddr| {
        let number = seen.len() as u16 + 1;
        *seen.entry(ip).or_insert(match ip {
            IpAddr::V4(_) => IpAddr::from([198, 18, (number >> 8) as u8, number as u8]),
            IpAddr::V6(_) => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]),
        })
    };
    for name in BINARY {
        let before = entry(name, fixture(name));
        let after = redact(&before, &mut stand_in);
        let Outcome::Ok(bytes) = &after.outcome else { panic!("{name} parses") };
        assert_eq!(bytes.len(), fixture(name).len());
        for secret in [&[10, 77, 0][..], &[0xfd, 0x77, 0, 0, 0, 0, 0, 0][..]] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{name} still has {secret:?}");
        }
        assert!(!fails(name, bytes.clone()), "{name}");
    }
    // Connections at crowded ports have an item of their own with the same addresses.
    let crowd = Entry { item: "crowd".into(), ..entry("sockets", fixture("sockets")) };
    let Outcome::Ok(hidden) = redact(&crowd, &mut stand_in).outcome else { panic!("it parses") };
    assert!(!hidden.windows(3).any(|window| window == [10, 77, 0]));
    let (before, after) = (fixture("links"), redact(&entry("links", fixture("links")), &mut stand_in));
    assert_eq!(view(&[entry("links", before)]).links, view(&[after]).links, "links have no addresses that we read");
}

#[test]
fn redaction_does_not_change_text_and_lacks() {
    let mut never = |_: IpAddr| -> IpAddr { panic!("no address is in it") };
    let text = Entry { source: "netstat".into(), ..entry("netstat", b"TcpExt: 10.77.0.1".to_vec()) };
    assert_eq!(redact(&text, &mut never), text);
    let lack = Entry { outcome: Outcome::Absent("10.77.0.1".into(), None), ..entry("sockets", Vec::new()) };
    assert_eq!(redact(&lack, &mut never), lack);
    assert!(source("no-such").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn one_wrong_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), which in 0..BINARY.len()) {
        let mut bytes = fixture(BINARY[which]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = assemble(&[entry(BINARY[which], bytes.clone())]);
        let _ = redact(&entry(BINARY[which], bytes), &mut |ip| ip);
    }
}
