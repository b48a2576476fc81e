//! `chokepoint tcp --live`: the connections that the host has, summed up by edge while they are read; of single sockets only the worst are kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::tcp::{Limiter, Sender};
use chokepoint_packets::Histogram;
use chokepoint_sources::{NetnsRef, Root, TcpInfoPlace, TcpSocket, TcpSocketsRead, read_tcp_sockets};
use serde_json::{Value, json};

use super::cycles::{self, Cycles, WATCH_MAX};
use super::edge_filter::EdgeFilter;
use crate::Usage;
use crate::args::Tcp;
use crate::run::interrupt::Interrupt;
use crate::run::settings;
use crate::terminal::output;

/// Life cycles of an edge are watched for so long where nothing else is asked for.
const WATCH_DEFAULT: Duration = Duration::from_secs(5);

/// Edges that are told apart; further ones count as one. Bounds the memory: an edge takes at most about 35 KB.
const EDGES_MAX: usize = 1024;
/// Single sockets that are kept.
pub(super) const WORST_MAX: usize = 10;

/// Which end of a connection is on this host, as one sees it from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LocalEnd {
    /// It was dialled here.
    Client,
    /// It was accepted here.
    Server,
}

impl LocalEnd {
    pub(super) fn name(self) -> &'static str {
        if self == LocalEnd::Client { "client" } else { "server" }
    }
}

/// All connections from one client address to one listening address, seen from one end in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeKey {
    /// Place of the namespace in [`Live::namespaces`].
    pub(crate) netns: usize,
    /// The end that was read.
    pub(crate) end: LocalEnd,
    /// Nothing where it stands for all that had no room.
    pub(crate) ends: Option<(IpAddr, SocketAddr)>,
}

/// What was read of an edge.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    pub(crate) sockets: u64,
    /// us.
    pub(crate) rtt: Histogram,
    /// Segments.
    pub(crate) cwnd: Histogram,
    /// Segments sent again, of each socket.
    pub(crate) retransmits: Histogram,
    /// ms since data came or went.
    pub(crate) idle: Histogram,
    pub(crate) segments_out: u64,
    /// Sockets with segments sent again.
    pub(crate) resending: u64,
    /// What holds each socket back now.
    pub(crate) limited: BTreeMap<Limiter, u64>,
    /// us with data under way, and of that held back by the peer's window and by the send buffer.
    pub(crate) busy_us: u64,
    pub(crate) rwnd_us: u64,
    pub(crate) sndbuf_us: u64,
    pub(crate) lost_us: u64,
}

impl Edge {
    fn merge(&mut self, other: Edge) {
        self.sockets += other.sockets;
        self.rtt.merge(&other.rtt);
        self.cwnd.merge(&other.cwnd);
        self.retransmits.merge(&other.retransmits);
        self.idle.merge(&other.idle);
        self.segments_out += other.segments_out;
        self.resending += other.resending;
        for (limiter, count) in other.limited {
            *self.limited.entry(limiter).or_default() += count;
        }
        self.busy_us += other.busy_us;
        self.rwnd_us += other.rwnd_us;
        self.sndbuf_us += other.sndbuf_us;
        self.lost_us = self.lost_us.saturating_add(other.lost_us);
    }
}

/// One socket that is told by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Worst {
    pub(crate) lost_us: u64,
    pub(crate) place: EdgeKey,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) inode: u64,
    pub(crate) limiter: Limiter,
    pub(crate) sender: Sender,
    pub(crate) idle_ms: u64,
    pub(crate) busy_us: u64,
    pub(crate) send_queue: u32,
    pub(crate) receive_queue: u32,
}

/// What was read of the host.
#[derive(Debug, Default)]
pub(crate) struct Live {
    filter: EdgeFilter,
    /// Names of the namespaces, and their numbers.
    pub(crate) namespaces: Vec<(u64, String)>,
    pub(crate) sockets: u64,
    /// Sockets without a struct tcp_info: they are closing.
    pub(crate) without_info: u64,
    pub(crate) edges: HashMap<EdgeKey, Edge>,
    pub(crate) worst: Vec<Worst>,
}

macro_rules! fields {
    ($($constant:ident = $name:literal),* $(,)?) => { $(const $constant: TcpInfoPlace = TcpInfoPlace::of($name);)* };
}

fields! {
    RETRANSMITS = "retransmits", SND_MSS = "snd_mss", UNACKED = "unacked", SACKED = "sacked", LOST = "lost", RETRANS = "retrans",
    LAST_DATA_SENT = "last_data_sent", LAST_DATA_RECV = "last_data_recv", LAST_ACK_RECV = "last_ack_recv", RTT = "rtt", SND_CWND = "snd_cwnd",
    TOTAL_RETRANS = "total_retrans", BYTES_ACKED = "bytes_acked", SEGS_OUT = "segs_out", NOTSENT_BYTES = "notsent_bytes",
    BUSY_TIME = "busy_time", RWND_LIMITED = "rwnd_limited", SNDBUF_LIMITED = "sndbuf_limited", BYTES_SENT = "bytes_sent",
    BYTES_RETRANS = "bytes_retrans", SND_WND = "snd_wnd", TOTAL_RTO_TIME = "total_rto_time",
}

/// The sending side out of struct tcp_info.
pub(super) fn sender(info: &[u8], buffer: Option<(u32, u32)>) -> Sender {
    let of = |place: TcpInfoPlace| place.read(info).unwrap_or(0);
    let bytes = BYTES_SENT.read(info).zip(BYTES_RETRANS.read(info)).zip(BYTES_ACKED.read(info));
    Sender {
        unacked: of(UNACKED),
        left: of(SACKED) + of(LOST),
        retrans: of(RETRANS),
        retransmits: of(RETRANSMITS),
        cwnd: of(SND_CWND),
        mss: of(SND_MSS),
        rtt_us: of(RTT),
        last_ack_ms: of(LAST_ACK_RECV),
        notsent: NOTSENT_BYTES.read(info),
        window: SND_WND.read(info),
        bytes: bytes.map(|((sent, again), acknowledged)| (sent, again, acknowledged)),
        buffer: buffer.map(|(limit, held)| (u64::from(limit), u64::from(held))),
        total_retrans: of(TOTAL_RETRANS),
        rwnd_limited_us: RWND_LIMITED.read(info),
        sndbuf_limited_us: SNDBUF_LIMITED.read(info),
        rto_time_ms: TOTAL_RTO_TIME.read(info),
    }
}

impl Live {
    fn new(filter: EdgeFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    fn add(&mut self, netns: &NetnsRef, socket: &TcpSocket<'_>) {
        let (local, remote) = (SocketAddr::from(socket.local), SocketAddr::from(socket.remote));
        let (end, client, server) = if socket.accepted { (LocalEnd::Server, remote, local) } else { (LocalEnd::Client, local, remote) };
        if !self.filter.takes(client, server) {
            return;
        }
        let netns_place = self.namespace(netns.id.0, netns.name.as_deref());
        self.sockets += 1;
        if socket.info.is_empty() {
            self.without_info += 1;
            return;
        }
        let sender = sender(socket.info, socket.send_buffer);
        let mut place = EdgeKey { netns: netns_place, end, ends: Some((client.ip(), server)) };
        place = self.room(place);
        let idle_ms = LAST_DATA_SENT.read(socket.info).unwrap_or(0).min(LAST_DATA_RECV.read(socket.info).unwrap_or(0));
        let busy_us = BUSY_TIME.read(socket.info).unwrap_or(0);
        let (limiter, lost_us) = (sender.limiter(), sender.lost_us());
        let edge = self.edges.entry(place).or_default();
        edge.sockets += 1;
        edge.rtt.add(sender.rtt_us);
        edge.cwnd.add(sender.cwnd);
        edge.retransmits.add(sender.total_retrans);
        edge.idle.add(idle_ms);
        edge.segments_out += SEGS_OUT.read(socket.info).unwrap_or(0);
        edge.resending += u64::from(sender.total_retrans > 0);
        *edge.limited.entry(limiter).or_default() += 1;
        edge.busy_us += busy_us;
        edge.rwnd_us += sender.rwnd_limited_us.unwrap_or(0);
        edge.sndbuf_us += sender.sndbuf_limited_us.unwrap_or(0);
        edge.lost_us = edge.lost_us.saturating_add(lost_us);
        if lost_us > 0 && (self.worst.len() < WORST_MAX || self.worst.last().is_some_and(|last| lost_us > last.lost_us)) {
            let (inode, send_queue, receive_queue) = (socket.inode, socket.send_queue, socket.receive_queue);
            self.keep(Worst { lost_us, place, local, remote, inode, limiter, sender, idle_ms, busy_us, send_queue, receive_queue });
        }
    }

    /// The place of a namespace; the one that is read now is the last.
    fn namespace(&mut self, id: u64, name: Option<&str>) -> usize {
        let known = self.namespaces.iter().rposition(|(known, _)| *known == id);
        known.unwrap_or_else(|| {
            self.namespaces.push((id, name.map_or_else(|| format!("net:[{id}]"), str::to_owned)));
            self.namespaces.len() - 1
        })
    }

    /// The edge itself, or where there is no room the one that stands for all such.
    fn room(&self, place: EdgeKey) -> EdgeKey {
        let fits = self.edges.len() < EDGES_MAX || self.edges.contains_key(&place);
        EdgeKey { ends: place.ends.filter(|_| fits), ..place }
    }

    fn keep(&mut self, worst: Worst) {
        let key = |worst: &Worst| (worst.lost_us, Reverse((worst.local, worst.remote)));
        let at = self.worst.partition_point(|other| key(other) > key(&worst));
        self.worst.insert(at, worst);
        self.worst.truncate(WORST_MAX);
    }

    /// Adds what another thread read.
    fn merge(&mut self, other: Live) {
        let places: Vec<usize> = other.namespaces.iter().map(|(id, name)| self.namespace(*id, Some(name))).collect();
        let moved = |place: EdgeKey| EdgeKey { netns: places.get(place.netns).copied().unwrap_or(0), ..place };
        self.sockets += other.sockets;
        self.without_info += other.without_info;
        let mut edges: Vec<(EdgeKey, Edge)> = other.edges.into_iter().collect();
        // Which of them find room must not hang on the order of a table.
        edges.sort_by_key(|(place, _)| *place);
        for (place, edge) in edges {
            let place = self.room(moved(place));
            self.edges.entry(place).or_default().merge(edge);
        }
        for worst in other.worst {
            self.keep(Worst { place: moved(worst.place), ..worst });
        }
    }

    /// The edges, the one that lost most time first, then the one with most sockets.
    pub(crate) fn sorted(&self) -> Vec<(&EdgeKey, &Edge)> {
        let mut edges: Vec<_> = self.edges.iter().collect();
        edges.sort_by_key(|(place, edge)| (Reverse(edge.lost_us), Reverse(edge.sockets), **place));
        edges
    }

    /// The name of an edge's namespace.
    pub(crate) fn netns(&self, place: &EdgeKey) -> &str {
        self.namespaces.get(place.netns).map_or("?", |(_, name)| name)
    }

    fn json(&self, read: &TcpSocketsRead, keepalive: Option<Value>) -> Value {
        let edges = self.sorted().into_iter().map(|(place, edge)| edge_json(place, edge, self.netns(place)));
        let worst = self.worst.iter().map(|worst| worst_json(worst, self.netns(&worst.place)));
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

fn edge_json(place: &EdgeKey, edge: &Edge, netns: &str) -> Value {
    json!({
        "netns": netns,
        "seen_from": place.end.name(),
        "client": place.ends.map(|(client, _)| client),
        "server": place.ends.map(|(_, server)| server),
        "sockets": edge.sockets,
        "rtt_us": edge.rtt.quantiles(1.0),
        "cwnd_segments": edge.cwnd.quantiles(1.0),
        "retransmits": edge.retransmits.quantiles(1.0),
        "retransmitting_sockets": edge.resending,
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

fn worst_json(worst: &Worst, netns: &str) -> Value {
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

/// Watches life cycles first, where an edge or a time is given.
fn watched(args: &Tcp, filter: Option<EdgeFilter>, interrupt: &Interrupt) -> Result<Option<Cycles>> {
    let duration = match (&args.duration, &args.edge) {
        (Some(duration), _) => settings::duration(duration).map_err(|error| Usage(error.to_string()))?,
        (None, Some(_)) => WATCH_DEFAULT,
        (None, None) => return Ok(None),
    };
    if duration > WATCH_MAX {
        return Err(Usage(format!("-z {duration:?} is too long: who closed first is known for a minute, so at most {WATCH_MAX:?}")).into());
    }
    if duration.is_zero() {
        return Ok(None);
    }
    output::note(&format!("watching sockets for {duration:?}"));
    let over = |elapsed: Duration| interrupt.is_set() || elapsed >= duration;
    cycles::watch(filter.unwrap_or_default(), &over).map(Some)
}

/// Reads the host's sockets and prints what they say; false where none could be read.
pub(super) fn run(args: &Tcp, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let filter = args.edge.as_deref().map(str::parse::<EdgeFilter>).transpose().map_err(|error| Usage(error.to_string()))?;
    let cycles = watched(args, filter, interrupt)?;
    let states = [(); 2].map(|()| Arc::new(Mutex::new(Live::new(filter.unwrap_or_default()))));
    let read = read_tcp_sockets(&Root::default(), &states, Live::add).context("the host's sockets cannot be read")?;
    let [mut live, more] = states.map(|state| std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner)));
    live.merge(more);
    if args.json {
        output::print_json(&format!("{:#}\n", live.json(&read, cycles.as_ref().map(|cycles| cycles.json(words)))))?;
    } else {
        output::print_painted(&crate::report::text::tcp_live_text(&live, &read, cycles.as_ref(), &output::style(), words))?;
    }
    Ok(read.namespaces > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::observation::TcpState;
    use chokepoint_sources::TCP_INFO_FIELDS;

    /// The bytes of a struct tcp_info with these fields and zeros.
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
    fn sockets_are_summed_up_by_edge_and_end_and_the_worst_stand_first() {
        let mut live = Live::default();
        for port in 1000..1100 {
            let info =
                info(&[("rtt", 200), ("snd_cwnd", 10), ("total_retrans", u64::from(port - 1000)), ("segs_out", 200), ("busy_time", 50)]);
            live.add(&netns(), &socket(port, true, &info));
        }
        live.add(&netns(), &socket(1, false, &info(&[("snd_cwnd", 1), ("unacked", 1), ("notsent_bytes", 9), ("snd_wnd", 9)])));
        live.add(&netns(), &socket(2, false, &[]));
        assert_eq!((live.sockets, live.without_info, live.edges.len()), (102, 1, 2));
        let edges = live.sorted();
        let (place, edge) = edges[0];
        assert_eq!((place.end, edge.sockets, edge.resending, edge.retransmits.sum()), (LocalEnd::Server, 100, 99, 4950));
        assert_eq!((edge.lost_us, edge.busy_us, edge.limited[&Limiter::Application]), (4950 * 200, 5000, 100));
        assert_eq!(edges[1].1.limited, BTreeMap::from([(Limiter::Cwnd, 1)]));
        let worst: Vec<u16> = live.worst.iter().map(|worst| worst.remote.port()).collect();
        assert_eq!(worst, (1090..1100).rev().collect::<Vec<u16>>());
        assert_eq!(live.netns(place), "blue");
    }

    #[test]
    fn two_halves_are_as_one() {
        let infos: Vec<Vec<u8>> =
            (0..100).map(|n| info(&[("rtt", 100 + n), ("snd_cwnd", n), ("total_retrans", n), ("busy_time", n)])).collect();
        let (mut whole, mut halves) = (Live::default(), [Live::default(), Live::default()]);
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
    fn what_has_no_room_is_one_edge() {
        let mut live = Live::default();
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
