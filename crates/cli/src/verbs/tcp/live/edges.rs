//! The sockets of the host, summed up by edge while they are read. Only the worst sockets are kept separately.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use chokepoint_model::tcp::{Limiter, Sender};
use chokepoint_packets::Histogram;
use chokepoint_sources::{NetnsRef, TcpInfoPlace, TcpSocket, TcpSocketsRead};
use serde_json::{Value, json};

use crate::verbs::tcp::edge_filter::EdgeFilter;
use crate::verbs::tcp::local_end::LocalEnd;
use crate::verbs::tcp::sender::{busy_us, idle_ms, sender};

/// Edges that are kept apart; all others count as one. An edge takes at most about 35 KB.
const EDGES_MAX: usize = 1024;
/// Sockets that are kept separately.
const WORST_MAX: usize = 10;

const SEGS_OUT: TcpInfoPlace = TcpInfoPlace::of("segs_out");

/// All connections from one client address to one listening address, seen from one end in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeKey {
    /// Index in [`LiveSockets::namespaces`].
    pub(crate) netns: usize,
    /// The end whose sockets were read.
    pub(crate) end: LocalEnd,
    /// Client and server; nothing for the edge of all sockets that had no room.
    pub(crate) ends: Option<(IpAddr, SocketAddr)>,
}

/// The sockets of an edge, summed up.
#[derive(Debug, Default)]
pub(crate) struct LiveEdge {
    pub(crate) sockets: u64,
    /// Round-trip time, us.
    pub(crate) rtt: Histogram,
    /// Congestion window, segments.
    pub(crate) cwnd: Histogram,
    /// Retransmitted segments of each socket.
    pub(crate) retransmits: Histogram,
    /// Time since each socket last sent or received data, ms.
    pub(crate) idle: Histogram,
    /// Segments sent, as far as the kernel tells.
    pub(crate) segments_out: Option<u64>,
    /// Sockets that retransmitted.
    pub(crate) retransmitting: u64,
    /// Sockets by what limits them now.
    pub(crate) limited: BTreeMap<Limiter, u64>,
    /// Time with data in flight, and the parts of it limited by the peer's window and by the send buffer, us, as far as the kernel tells (since Linux 4.10).
    pub(crate) busy_us: Option<u64>,
    pub(crate) rwnd_us: Option<u64>,
    pub(crate) sndbuf_us: Option<u64>,
    pub(crate) lost_us: u64,
}

/// Adds a value to a sum, which is `None` until there is one.
fn add(sum: &mut Option<u64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
}

impl LiveEdge {
    fn merge(&mut self, other: LiveEdge) {
        self.sockets += other.sockets;
        self.rtt.merge(&other.rtt);
        self.cwnd.merge(&other.cwnd);
        self.retransmits.merge(&other.retransmits);
        self.idle.merge(&other.idle);
        add(&mut self.segments_out, other.segments_out);
        self.retransmitting += other.retransmitting;
        for (limiter, count) in other.limited {
            *self.limited.entry(limiter).or_default() += count;
        }
        add(&mut self.busy_us, other.busy_us);
        add(&mut self.rwnd_us, other.rwnd_us);
        add(&mut self.sndbuf_us, other.sndbuf_us);
        self.lost_us = self.lost_us.saturating_add(other.lost_us);
    }
}

/// A socket that is listed separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorstSocket {
    pub(crate) lost_us: u64,
    pub(crate) edge: EdgeKey,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) inode: u64,
    pub(crate) limiter: Limiter,
    pub(crate) sender: Sender,
    pub(crate) idle_ms: u64,
    pub(crate) busy_us: Option<u64>,
    pub(crate) send_queue: u32,
    pub(crate) receive_queue: u32,
}

/// The sockets of the host.
#[derive(Debug, Default)]
pub(crate) struct LiveSockets {
    filter: EdgeFilter,
    /// Inode number and name of each namespace.
    pub(crate) namespaces: Vec<(u64, String)>,
    pub(crate) sockets: u64,
    /// Sockets without a struct tcp_info, because they are closing.
    pub(crate) without_info: u64,
    pub(crate) edges: HashMap<EdgeKey, LiveEdge>,
    /// The sockets that lost most time, worst first; at most [`WORST_MAX`].
    pub(crate) worst: Vec<WorstSocket>,
}

impl LiveSockets {
    pub(super) fn new(filter: EdgeFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    pub(super) fn add(&mut self, netns: &NetnsRef, socket: &TcpSocket<'_>) {
        let (local, remote) = (SocketAddr::from(socket.local), SocketAddr::from(socket.remote));
        let (end, client, server) = LocalEnd::of(local, remote, socket.accepted);
        if !self.filter.takes(client, server) {
            return;
        }
        let netns_index = self.namespace(netns.id.0, netns.name.as_deref());
        self.sockets += 1;
        if socket.info.is_empty() {
            self.without_info += 1;
            return;
        }
        let sender = sender(socket.info, socket.send_buffer);
        let key = self.key_with_room(EdgeKey { netns: netns_index, end, ends: Some((client.ip(), server)) });
        let (idle_ms, busy_us) = (idle_ms(socket.info), busy_us(socket.info));
        let (limiter, lost_us) = (sender.limiter(), sender.lost_us());
        let edge = self.edges.entry(key).or_default();
        edge.sockets += 1;
        edge.rtt.add(sender.rtt_us);
        edge.cwnd.add(sender.cwnd);
        edge.retransmits.add(sender.total_retrans);
        edge.idle.add(idle_ms);
        add(&mut edge.segments_out, SEGS_OUT.read(socket.info));
        edge.retransmitting += u64::from(sender.total_retrans > 0);
        *edge.limited.entry(limiter).or_default() += 1;
        add(&mut edge.busy_us, busy_us);
        add(&mut edge.rwnd_us, sender.rwnd_limited_us);
        add(&mut edge.sndbuf_us, sender.sndbuf_limited_us);
        edge.lost_us = edge.lost_us.saturating_add(lost_us);
        if lost_us > 0 && (self.worst.len() < WORST_MAX || self.worst.last().is_some_and(|last| lost_us > last.lost_us)) {
            let (inode, send_queue, receive_queue) = (socket.inode, socket.send_queue, socket.receive_queue);
            self.keep(WorstSocket {
                lost_us,
                edge: key,
                local,
                remote,
                inode,
                limiter,
                sender,
                idle_ms,
                busy_us,
                send_queue,
                receive_queue,
            });
        }
    }

    /// The index of a namespace. Readers finish one namespace before the next, so the search begins with the last.
    fn namespace(&mut self, id: u64, name: Option<&str>) -> usize {
        let known = self.namespaces.iter().rposition(|(known, _)| *known == id);
        known.unwrap_or_else(|| {
            self.namespaces.push((id, name.map_or_else(|| format!("net:[{id}]"), str::to_owned)));
            self.namespaces.len() - 1
        })
    }

    /// The key; if there is no room for another edge, the key of all edges without room.
    fn key_with_room(&self, key: EdgeKey) -> EdgeKey {
        let fits = self.edges.len() < EDGES_MAX || self.edges.contains_key(&key);
        EdgeKey { ends: key.ends.filter(|_| fits), ..key }
    }

    fn keep(&mut self, worst: WorstSocket) {
        let key = |worst: &WorstSocket| (worst.lost_us, Reverse((worst.local, worst.remote)));
        let at = self.worst.partition_point(|other| key(other) > key(&worst));
        self.worst.insert(at, worst);
        self.worst.truncate(WORST_MAX);
    }

    /// Adds the sockets that another thread read.
    pub(super) fn merge(&mut self, other: LiveSockets) {
        let indices: Vec<usize> = other.namespaces.iter().map(|(id, name)| self.namespace(*id, Some(name))).collect();
        let moved = |key: EdgeKey| EdgeKey { netns: indices.get(key.netns).copied().unwrap_or(0), ..key };
        self.sockets += other.sockets;
        self.without_info += other.without_info;
        let mut edges: Vec<(EdgeKey, LiveEdge)> = other.edges.into_iter().collect();
        // Which edges get room must not depend on the order of a hash table.
        edges.sort_by_key(|(key, _)| *key);
        for (key, edge) in edges {
            let key = self.key_with_room(moved(key));
            self.edges.entry(key).or_default().merge(edge);
        }
        for worst in other.worst {
            self.keep(WorstSocket { edge: moved(worst.edge), ..worst });
        }
    }

    /// The edges by lost time, then by sockets, both descending.
    pub(crate) fn sorted(&self) -> Vec<(&EdgeKey, &LiveEdge)> {
        let mut edges: Vec<_> = self.edges.iter().collect();
        edges.sort_by_key(|(key, edge)| (Reverse(edge.lost_us), Reverse(edge.sockets), **key));
        edges
    }

    /// The name of an edge's namespace.
    pub(crate) fn netns(&self, key: &EdgeKey) -> &str {
        self.namespaces.get(key.netns).map_or("?", |(_, name)| name)
    }

    pub(super) fn json(&self, read: &TcpSocketsRead, keepalive: Option<Value>) -> Value {
        let edges = self.sorted().into_iter().map(|(key, edge)| edge_json(key, edge, self.netns(key)));
        let worst = self.worst.iter().map(|worst| worst_json(worst, self.netns(&worst.edge)));
        json!({
            "schema": "chokepoint/tcp-live/1",
            "namespaces": read.namespaces,
            "sockets": self.sockets,
            "without_info": self.without_info,
            "edges": edges.collect::<Vec<_>>(),
            "worst": worst.collect::<Vec<_>>(),
            "keepalive": keepalive,
            "failed": read.failed.iter().map(|(why, needs)| json!({ "why": why, "needs": needs })).collect::<Vec<_>>(),
        })
    }
}

fn edge_json(key: &EdgeKey, edge: &LiveEdge, netns: &str) -> Value {
    json!({
        "netns": netns,
        "seen_from": key.end.name(),
        "client": key.ends.map(|(client, _)| client),
        "server": key.ends.map(|(_, server)| server),
        "sockets": edge.sockets,
        "rtt_us": edge.rtt.quantiles(1.0),
        "cwnd_segments": edge.cwnd.quantiles(1.0),
        "retransmits": edge.retransmits.quantiles(1.0),
        "retransmitting_sockets": edge.retransmitting,
        "retransmits_total": edge.retransmits.sum() as u64,
        "segments_out": edge.segments_out,
        "idle_ms": edge.idle.quantiles(1.0),
        "limited": Limiter::ALL.map(|limiter| (limiter.name(), edge.limited.get(&limiter).copied().unwrap_or(0))).into_iter().collect::<BTreeMap<_, _>>(),
        "busy_us": edge.busy_us,
        "rwnd_limited_us": edge.rwnd_us,
        "sndbuf_limited_us": edge.sndbuf_us,
        "lost_us": edge.lost_us,
    })
}

fn worst_json(worst: &WorstSocket, netns: &str) -> Value {
    json!({
        "netns": netns,
        "local": worst.local,
        "remote": worst.remote,
        "inode": worst.inode,
        "lost_us": worst.lost_us,
        "limited_by": worst.limiter,
        "rtt_us": worst.sender.rtt_us,
        "cwnd_segments": worst.sender.cwnd,
        "bytes_in_flight": worst.sender.bytes_in_flight(),
        "retransmits": worst.sender.total_retrans,
        "timeouts_in_a_row": worst.sender.retransmits,
        "idle_ms": worst.idle_ms,
        "busy_us": worst.busy_us,
        "rwnd_limited_us": worst.sender.rwnd_limited_us,
        "sndbuf_limited_us": worst.sender.sndbuf_limited_us,
        "send_queue": worst.send_queue,
        "receive_queue": worst.receive_queue,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::observation::TcpState;
    use chokepoint_sources::TCP_INFO_FIELDS;

    /// A struct tcp_info with these fields; the others are zero.
    fn info(fields: &[(&str, u64)]) -> Vec<u8> {
        let value = |name: &str| fields.iter().find(|(field, _)| *field == name).map_or(0, |(_, value)| *value);
        TCP_INFO_FIELDS.iter().flat_map(|field| value(field.name).to_ne_bytes()[..field.bytes].to_vec()).collect()
    }

    fn socket(remote: u16, accepted: bool, info: &[u8]) -> TcpSocket<'_> {
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let (local, remote) = if accepted { ((here, 80), (there, remote)) } else { ((here, remote), (there, 80)) };
        let (inode, receive_queue, send_queue, send_buffer) = (7, 0, 0, None);
        TcpSocket { state: TcpState::Established, local, remote, accepted, inode, receive_queue, send_queue, send_buffer, info }
    }

    fn netns() -> NetnsRef {
        let id = chokepoint_model::observation::NetnsId(5);
        NetnsRef { id, name: Some("blue".to_owned()), is_host: false, path: "/run/netns/blue".into() }
    }

    #[test]
    fn sockets_are_summed_up_by_edge_and_end_and_the_worst_come_first() {
        let mut live = LiveSockets::default();
        for port in 1000..1100 {
            let info =
                info(&[("rtt", 200), ("snd_cwnd", 10), ("total_retrans", u64::from(port - 1000)), ("segs_out", 200), ("busy_time", 50)]);
            live.add(&netns(), &socket(port, true, &info));
        }
        live.add(&netns(), &socket(1, false, &info(&[("snd_cwnd", 1), ("unacked", 1), ("notsent_bytes", 9), ("snd_wnd", 9)])));
        live.add(&netns(), &socket(2, false, &[]));
        assert_eq!((live.sockets, live.without_info, live.edges.len()), (102, 1, 2));
        let edges = live.sorted();
        let (key, edge) = edges[0];
        assert_eq!((key.end, edge.sockets, edge.retransmitting, edge.retransmits.sum()), (LocalEnd::Server, 100, 99, 4950));
        assert_eq!((edge.lost_us, edge.busy_us, edge.limited[&Limiter::Application]), (4950 * 200, Some(5000), 100));
        assert_eq!(edges[1].1.limited, BTreeMap::from([(Limiter::Cwnd, 1)]));
        let worst: Vec<u16> = live.worst.iter().map(|worst| worst.remote.port()).collect();
        assert_eq!(worst, (1090..1100).rev().collect::<Vec<u16>>());
        assert_eq!(live.netns(key), "blue");
    }

    /// The struct tcp_info of Linux 4.9 ends before busy_time.
    #[test]
    fn what_an_older_kernel_does_not_tell_is_null_and_not_zero() {
        let mut live = LiveSockets::default();
        let old = &info(&[("rtt", 200), ("snd_cwnd", 10), ("total_retrans", 3)])[..160];
        live.add(&netns(), &socket(1, true, old));
        let json = live.json(&TcpSocketsRead::default(), None);
        for (list, names) in
            [("edges", &["busy_us", "rwnd_limited_us", "sndbuf_limited_us"][..]), ("worst", &["busy_us", "rwnd_limited_us"])]
        {
            assert!(names.iter().all(|name| json[list][0][*name].is_null()), "{json:#}");
        }
        live.add(&netns(), &socket(2, true, &info(&[("rtt", 200), ("busy_time", 7)])));
        assert_eq!(live.json(&TcpSocketsRead::default(), None)["edges"][0]["busy_us"], 7);
    }

    #[test]
    fn sockets_read_by_two_threads_give_the_same_result_as_by_one() {
        let infos: Vec<Vec<u8>> =
            (0..100).map(|n| info(&[("rtt", 100 + n), ("snd_cwnd", n), ("total_retrans", n), ("busy_time", n)])).collect();
        let (mut whole, mut halves) = (LiveSockets::default(), [LiveSockets::default(), LiveSockets::default()]);
        for (n, info) in infos.iter().enumerate() {
            let socket = socket(n as u16, n % 3 == 0, info);
            whole.add(&netns(), &socket);
            halves[n % 2].add(&netns(), &socket);
        }
        let [mut one, other] = halves;
        one.merge(other);
        let read = TcpSocketsRead::default();
        assert_eq!(one.json(&read, None), whole.json(&read, None));
    }

    #[test]
    fn edges_beyond_the_bound_are_summed_up_as_one() {
        let mut live = LiveSockets::default();
        let info = info(&[("rtt", 1)]);
        for port in 0..5000 {
            let mut socket = socket(1, false, &info);
            socket.remote.1 = port;
            live.add(&netns(), &socket);
        }
        assert_eq!(live.edges.len(), EDGES_MAX + 1);
        assert_eq!(live.edges.values().map(|edge| edge.sockets).sum::<u64>(), 5000);
    }
}
