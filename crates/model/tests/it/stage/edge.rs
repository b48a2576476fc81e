//! An upstream behind the web server of the stage, and the ports to it.

use chokepoint_model::observation::{
    Address, Identity, ListenerAddress, Observation, OpenFiles, ProcessView, Socket, SocketAddress, TcpState,
};
use chokepoint_model::reading::Reading;

use super::*;

pub(crate) const BACKEND: &str = "10.0.0.9";

/// The web server dials `backend`:8080 with `live` connections. Its port range is `range`.
pub(crate) fn edge(backend: &str, range: &str, live: u16) -> Observation {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let mut addresses = view.addresses.last().cloned().unwrap();
    addresses.push(Address { ip: ip(backend), prefix_bits: 24, link: 3 });
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

pub(crate) fn process(obs: &mut Observation, pid: u32, comm: &str, sockets: &[u64]) {
    let mut view = ProcessView::default();
    let identity = Identity { pid, comm: comm.into(), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: sockets.to_vec() }));
    obs.processes.insert(pid, view);
}

pub(crate) fn set(obs: &mut Observation, key: &str, value: &str) {
    obs.netns.get_mut(&SERVER).unwrap().sysctls.entry(key.into()).or_default().push(1, Reading::Ok(value.into()));
}

pub(crate) fn gateway_errors(obs: &mut Observation, bad: u64) {
    let load = obs.load.as_mut().unwrap();
    load.good = load.requests - bad;
    load.status = [(200, load.requests - bad), (502, bad)].into();
}
