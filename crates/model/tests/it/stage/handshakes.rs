//! The SYN queue of the stage's web server, and a load that cannot connect.

use chokepoint_model::observation::{Counters, ListenerAddress, Observation, Socket, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;

use super::{SERVER, SERVER_IP, WINDOW, cpu, ip, listener};

/// Growth of a namespace's counters in the window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Grown {
    pub(crate) full: i64,
    pub(crate) cookies: i64,
    pub(crate) drops: i64,
    pub(crate) overflows: i64,
}

/// The readings of the server's listener on port 80.
pub(crate) struct Shown<'a> {
    pub(crate) address: &'a str,
    /// Its limit in force, the length of its accept queue, and the packets it dropped itself.
    pub(crate) limit: u32,
    pub(crate) standing: u32,
    pub(crate) own: Option<u64>,
    /// `tcp_syncookies`, `tcp_max_syn_backlog`.
    pub(crate) sysctls: (&'a str, &'a str),
    /// Open handshakes in each sample, and the number of their addresses.
    pub(crate) open: (u16, u16),
    pub(crate) grown: Grown,
}

/// A full queue: limited to 128 by the listener's own backlog, cookies off, 3,000 SYNs dropped.
pub(crate) const FULL: Shown<'_> = Shown {
    address: "0.0.0.0",
    limit: 128,
    standing: 0,
    own: Some(3_000),
    sysctls: ("0", "4096"),
    open: (128, 2),
    grown: Grown { full: 3_000, cookies: 0, drops: 3_000, overflows: 0 },
};
/// The same if tcp_max_syn_backlog is the bound: three quarters of 128, plus one. The kernel counts such a SYN as dropped without a reason.
pub(crate) const FULL_BY_SYSCTL: Shown<'_> =
    Shown { limit: 4_096, sysctls: ("0", "128"), open: (97, 97), grown: Grown { full: 0, cookies: 0, drops: 3_000, overflows: 0 }, ..FULL };

pub(crate) fn show(obs: &mut Observation, shown: &Shown<'_>) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (key, value) in [("net.ipv4.tcp_syncookies", shown.sysctls.0), ("net.ipv4.tcp_max_syn_backlog", shown.sysctls.1)] {
        view.sysctls.entry(key.to_owned()).or_default().push(0, Reading::Ok(value.to_owned()));
    }
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        let done = |all: u64| all * at.clamp(WINDOW.0, WINDOW.1).saturating_sub(WINDOW.0) / (WINDOW.1 - WINDOW.0);
        let inside = (WINDOW.0..=WINDOW.1).contains(&at);
        let address = ListenerAddress::Tcp(ip(shown.address), 80);
        let mut listener = listener(address, 100, if inside { shown.standing } else { 0 }, 0);
        listener.drops = shown.own.map(done);
        listener.accept_queue_limit = shown.limit;
        view.listeners.push(at, Reading::Ok(vec![listener]));
    }
    let (open, addresses) = shown.open;
    let handshake = |n: u16| Socket {
        address: SocketAddress::Tcp {
            local: (ip(SERVER_IP), 80),
            remote: (ip(&format!("10.1.{}.{}", n % addresses / 250, n % addresses % 250)), 10_000 + n),
        },
        state: if n.is_multiple_of(2) { TcpState::SynRecv } else { TcpState::NewSynRecv },
        inode: 0,
        uid: None,
        receive_queue: 0,
        send_queue: 0,
        wait: None,
    };
    let Grown { full, cookies, drops, overflows } = shown.grown;
    let names = ["TCPReqQFullDrop", "TCPReqQFullDoCookies", "ListenDrops", "ListenOverflows"].map(|name| format!("TcpExt.{name}"));
    for second in 0..=11_u64 {
        view.sockets.push(second * 1_000_000, Reading::Ok((0..open).map(handshake).collect()));
        let grown = |all: i64| 5 + all * second as i64 / 11;
        let counters: Counters = names.iter().cloned().zip([full, cookies, drops, overflows].map(grown)).collect();
        view.netstat.push(second * 1_000_000, Reading::Ok(counters));
    }
}

/// A load with a third of the connects timed out.
pub(crate) fn suffer(obs: &mut Observation) {
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.status) = (900, 600, [(200, 600)].into());
    load.errors.connect_timeout = 300;
    (load.connect_us.p999, load.connect_us.max) = (2_000_000, 2_000_000);
    cpu(obs, 0.05);
}
