//! Station `ephemeral-ports`: exhaustion and the search in TIME_WAIT on the dialling side fire; the accepting side's TIME_WAIT and ample ranges
//! leave it silent.

mod stage;

use chokepoint_model::change::Change;
use chokepoint_model::observation::{
    Identity, ListenerAddress, Observation, OpenFiles, ProcessView, Socket, SocketAddress, TcpState, TimeWaitAccepted, TimeWaitDialled,
    TimeWaits,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{StationState, Verdict};
use stage::*;

const BACKEND: &str = "10.0.0.9";

/// The web server dials `backend`:8080 with `live` connections; its range is `range`.
fn edge(backend: &str, range: &str, live: u16) -> Observation {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let mut addresses = view.addresses.last().cloned().unwrap();
    addresses.push(chokepoint_model::observation::Address { ip: ip(backend), prefix_bits: 24, link: 3 });
    view.addresses.push(1, Reading::Ok(addresses));
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.push(listener(ListenerAddress::Tcp(ip(backend), 8080), 200, 0, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let dialled = |n: u16| {
        let address = SocketAddress::Tcp { local: (ip("10.0.0.2"), 20_000 + n), remote: (ip(backend), 8080) };
        Socket { address, state: TcpState::Established, inode: 500 + u64::from(n), uid: None, receive_queue: 0, send_queue: 0, wait: None }
    };
    for second in 1..=10_u64 {
        view.sockets.push(second * 1_000_000, Reading::Ok((0..live).map(dialled).collect()));
    }
    for (key, value) in [
        ("net.ipv4.ip_local_port_range", range),
        ("net.ipv4.tcp_tw_reuse", "2"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.ip_local_reserved_ports", ""),
    ] {
        view.sysctls.entry(key.into()).or_default().push(0, Reading::Ok(value.into()));
    }
    process(&mut obs, 42, "nginx", &[100, 500]);
    process(&mut obs, 50, "java", &[200]);
    obs
}

fn process(obs: &mut Observation, pid: u32, comm: &str, sockets: &[u64]) {
    let mut view = ProcessView::default();
    let identity = Identity { pid, comm: comm.into(), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: sockets.to_vec() }));
    obs.processes.insert(pid, view);
}

fn set(obs: &mut Observation, key: &str, value: &str) {
    obs.netns.get_mut(&SERVER).unwrap().sysctls.entry(key.into()).or_default().push(1, Reading::Ok(value.into()));
}

fn gateway_errors(obs: &mut Observation, bad: u64) {
    let load = obs.load.as_mut().unwrap();
    load.good = load.requests - bad;
    load.status = [(200, load.requests - bad), (502, bad)].into();
}

fn dialled_waits(obs: &mut Observation, remote: &str, count: u64) {
    let waits = TimeWaits {
        total: count,
        dialled: vec![TimeWaitDialled { local: ip("10.0.0.2"), remote: (ip(remote), 8080), count }],
        ..TimeWaits::default()
    };
    obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
}

#[test]
fn ports_that_are_all_taken_with_errors_at_the_gateway_are_a_cause() {
    let mut obs = edge(BACKEND, "20000\t20050", 50);
    gateway_errors(&mut obs, 60_000);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["ephemeral-ports-exhausted"]));
    let [Change::Sysctl { key, netns, from, to, .. }] = diagnosis.findings[0].remedies[0].change.as_slice() else { panic!() };
    assert_eq!((key.as_str(), *netns, from.as_str(), to.as_str()), ("net.ipv4.ip_local_port_range", SERVER, "20000 20050", "10000 65535"));
}

#[test]
fn reserved_ports_cannot_be_used() {
    let mut obs = edge(BACKEND, "20000 20099", 50);
    set(&mut obs, "net.ipv4.ip_local_reserved_ports", "8080,20050-30000");
    gateway_errors(&mut obs, 60_000);
    assert_eq!(causes(&told(&obs)), ["ephemeral-ports-exhausted"]);
}

#[test]
fn four_fifths_of_the_ports_are_near_and_no_cause() {
    let diagnosis = told(&edge(BACKEND, "20000 20049", 41));
    assert_eq!(causes(&diagnosis), [""; 0]);
    let station = diagnosis.path.iter().find(|station| station.station == "ephemeral-ports").unwrap();
    assert_eq!((station.state, station.limit), (StationState::Near, Some(50.0)));
}

#[test]
fn errors_of_the_gateway_with_ports_to_spare_are_not_the_ports_fault() {
    let mut obs = edge(BACKEND, "10000 65535", 100);
    gateway_errors(&mut obs, 60_000);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Unknown, vec![]));
}

#[test]
fn time_wait_of_the_dialling_side_near_half_the_range_is_a_search() {
    for (reuse, timestamps) in [("0", "1"), ("2", "1"), ("1", "0")] {
        let mut obs = edge(BACKEND, "10000 65535", 20);
        dialled_waits(&mut obs, BACKEND, 27_700);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", reuse);
        set(&mut obs, "net.ipv4.tcp_timestamps", timestamps);
        cpu(&mut obs, 0.99);
        assert_eq!(causes(&told(&obs)), ["time-wait-port-search"], "reuse {reuse}, timestamps {timestamps}");
    }
}

#[test]
fn no_search_where_ports_may_be_taken_over_or_cores_are_idle_or_waits_are_few() {
    let searching = |backend: &str, reuse: &str, count: u64, busy: f64| {
        let mut obs = edge(backend, "10000 65535", 20);
        dialled_waits(&mut obs, backend, count);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", reuse);
        cpu(&mut obs, busy);
        causes(&told(&obs)).len()
    };
    assert_eq!(searching(BACKEND, "1", 27_700, 0.99), 0, "reuse in force");
    assert_eq!(searching("127.0.0.1", "2", 27_700, 0.99), 0, "reuse in force on loopback");
    assert_eq!(searching(BACKEND, "0", 27_700, 0.3), 0, "idle cores");
    assert_eq!(searching(BACKEND, "0", 9_000, 0.99), 0, "few");
}

#[test]
fn time_wait_of_the_accepting_side_is_harmless_however_many() {
    let mut obs = edge(BACKEND, "10000 65535", 20);
    cpu(&mut obs, 0.99);
    set(&mut obs, "net.ipv4.tcp_tw_reuse", "0");
    let waits = TimeWaits {
        total: 60_000,
        accepted: vec![TimeWaitAccepted { local: (ip(BACKEND), 8080), remote: ip("10.0.0.2"), count: 60_000 }],
        ..TimeWaits::default()
    };
    obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
    assert_eq!(causes(&told(&obs)), [""; 0]);
}
