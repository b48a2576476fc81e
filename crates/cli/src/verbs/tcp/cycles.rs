//! `chokepoint tcp --live -z`: the life cycles of sockets over some seconds, and whether connections are kept alive, without a capture.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::{ClientKeeps, Keepalive, ServerKeeps, SocketFacts, keepalive_of_sockets};
use chokepoint_model::observation::{NetnsId, TcpState};
use chokepoint_packets::Histogram;
use chokepoint_sources::{
    ConfiguredKeeps, NetnsRef, Root, TcpEnds, TcpEndsRead, TcpInfoPlace, TcpSocket, TcpTimeWait, read_configured_keeps, read_tcp_sockets,
    read_tcp_time_waits,
};
use serde_json::{Value, json};

use super::edge_filter::EdgeFilter;
use super::local_end::LocalEnd;
use super::sender::idle_ms;
use crate::report::edge::keepalive_json;

/// Edges that are kept apart; others are left out and counted. Each takes about 20 KB at most.
const EDGES_MAX: usize = 256;
/// Open connections that are remembered, 60 bytes each. The earlier requests of any others are unknown.
const OPEN_MAX: usize = 65_536;
/// Different numbers of turns that are kept apart; any other counts as the nearest.
const TURNS_MAX: usize = 512;
/// Duration of TIME_WAIT (include/net/tcp.h, TCP_TIMEWAIT_LEN): after it, who closed first is unknown.
const TIME_WAIT: Duration = Duration::from_secs(60);
/// The longest watch, so that all connections that ended in it are still in TIME_WAIT.
pub(crate) const WATCH_MAX: Duration = Duration::from_secs(50);
/// Time between two readings of open sockets: at least this, and at least this many times the cost of a reading.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_COSTS: u32 = 10;
/// Fewer sightings than this do not give the lifetime of a connection.
const SIGHTINGS_MIN: u64 = 50;

const SENT: TcpInfoPlace = TcpInfoPlace::of("data_segs_out");
const RECEIVED: TcpInfoPlace = TcpInfoPlace::of("data_segs_in");
const MIN_RTT: TcpInfoPlace = TcpInfoPlace::of("min_rtt");
/// `tcpi_min_rtt` without a measurement.
const NO_RTT: u64 = u32::MAX as u64;

type Pair = (IpAddr, SocketAddr);
type Ends = (NetnsId, (IpAddr, u16), (IpAddr, u16));

/// One end of the connections of an edge.
#[derive(Debug, Default)]
struct Side {
    netns: Option<NetnsId>,
    /// Ended and open connections by turns.
    ended: BTreeMap<u64, u64>,
    open: BTreeMap<u64, u64>,
    before: u64,
    opened: u64,
    waiting: u64,
    /// Open connections, summed up over all readings.
    sightings: u64,
    idle_ms: Histogram,
    setup_us: Histogram,
}

/// The purpose of a reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Look {
    #[default]
    First,
    Between,
    Last,
}

#[derive(Debug, Default)]
struct Gathering {
    filter: EdgeFilter,
    look: Look,
    watched_ms: u64,
    sides: HashMap<(Pair, LocalEnd), Side>,
    /// Turns of the connections that were open at the beginning.
    at_first: HashMap<Ends, u64>,
    left_out: u64,
}

/// An edge with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EdgeCycles {
    pub(crate) client: IpAddr,
    pub(crate) server: SocketAddr,
    pub(crate) seen_from: LocalEnd,
    pub(crate) facts: SocketFacts,
    pub(crate) verdict: Keepalive,
}

/// The result of a watch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cycles {
    pub(crate) seconds: f64,
    /// Busiest first.
    pub(crate) edges: Vec<EdgeCycles>,
    /// Sockets of edges without room.
    pub(crate) left_out: u64,
    pub(crate) ends: TcpEndsRead,
}

/// The smaller number of data segments of the two directions. It is the number of requests if requests or answers fit into one segment.
fn turns(socket: &TcpSocket<'_>) -> u64 {
    SENT.read(socket.info).unwrap_or(0).min(RECEIVED.read(socket.info).unwrap_or(0))
}

/// True if a connection had no answered request at the first reading, or did not exist. On a long path, its handshake or the wait for its first answer
/// may have begun before.
fn is_first_use(before: Option<u64>) -> bool {
    before.unwrap_or(0) == 0
}

fn count(of: &mut BTreeMap<u64, u64>, turns: u64) {
    let full = of.len() >= TURNS_MAX && !of.contains_key(&turns);
    let place = if full { of.range(turns..).next().or(of.iter().next_back()).map_or(turns, |(near, _)| *near) } else { turns };
    *of.entry(place).or_default() += 1;
}

impl Gathering {
    /// The counts of the local end of a socket, if the edge is selected and has room.
    fn side(&mut self, netns: &NetnsRef, local: (IpAddr, u16), remote: (IpAddr, u16), accepted: bool) -> Option<(&mut Side, LocalEnd)> {
        let (local, remote) = (SocketAddr::from(local), SocketAddr::from(remote));
        let (end, client, server) = LocalEnd::of(local, remote, accepted);
        if !self.filter.takes(client, server) {
            return None;
        }
        let key = ((client.ip(), server), end);
        if self.sides.len() >= 2 * EDGES_MAX && !self.sides.contains_key(&key) {
            self.left_out += 1;
            return None;
        }
        let side = self.sides.entry(key).or_default();
        side.netns = Some(netns.id);
        Some((side, end))
    }

    fn ended(&mut self, netns: &NetnsRef, socket: &TcpSocket<'_>) {
        // A socket that was reset locally has lost the port of its peer; a listener never had one.
        if socket.remote.1 == 0 {
            return;
        }
        let before = self.at_first.remove(&(netns.id, socket.local, socket.remote));
        let Some((side, _)) = self.side(netns, socket.local, socket.remote, socket.accepted) else { return };
        let turns = turns(socket);
        if turns == 0 {
            return;
        }
        count(&mut side.ended, turns);
        side.opened += u64::from(is_first_use(before));
        side.before += before.unwrap_or(0);
        side.idle_ms.add(idle_ms(socket.info));
        if let Some(us) = MIN_RTT.read(socket.info).filter(|us| *us < NO_RTT) {
            side.setup_us.add(us);
        }
    }

    fn open(&mut self, netns: &NetnsRef, socket: &TcpSocket<'_>) {
        if !matches!(socket.state, TcpState::SynSent | TcpState::Established | TcpState::CloseWait) {
            return;
        }
        let (key, turns, look) = ((netns.id, socket.local, socket.remote), turns(socket), self.look);
        let before = self.at_first.get(&key).copied();
        let room = self.at_first.len() < OPEN_MAX;
        let Some((side, _)) = self.side(netns, socket.local, socket.remote, socket.accepted) else { return };
        match look {
            Look::First => {
                if room {
                    self.at_first.insert(key, turns);
                }
            }
            Look::Between => side.sightings += 1,
            Look::Last => {
                let meanwhile = turns.saturating_sub(before.unwrap_or(0));
                count(&mut side.open, meanwhile);
                side.opened += u64::from(is_first_use(before) && meanwhile > 0);
            }
        }
    }

    fn waits(&mut self, netns: &NetnsRef, wait: &TcpTimeWait) {
        let since_ms = u64::try_from(TIME_WAIT.as_millis()).unwrap_or(0).saturating_sub(u64::from(wait.left_ms));
        if since_ms <= self.watched_ms
            && let Some((side, _)) = self.side(netns, wait.local, wait.remote, wait.accepted)
        {
            side.waiting += 1;
        }
    }
}

fn lock(state: &Mutex<Gathering>) -> MutexGuard<'_, Gathering> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches the selected edges until `over` is true.
pub(crate) fn watch(filter: EdgeFilter, over: &dyn Fn(Duration) -> bool) -> Result<Cycles> {
    let root = Root::default();
    let state = Arc::new(Mutex::new(Gathering { filter, ..Gathering::default() }));
    let look = |look: Look| {
        lock(&state).look = look;
        let both = [Arc::clone(&state), Arc::clone(&state)];
        read_tcp_sockets(&root, &both, Gathering::open).context("the host's sockets cannot be read")
    };
    let ends = TcpEnds::watch(&root, &state, Gathering::ended).context("cannot watch for connections that close")?;
    let begin = Instant::now();
    look(Look::First)?;
    let (mut looks, mut due) = (0_u64, Instant::now() + LOOK);
    while begin.elapsed() < WATCH_MAX && !over(begin.elapsed()) {
        let now = Instant::now();
        if now >= due {
            look(Look::Between)?;
            (looks, due) = (looks + 1, now + LOOK.max(now.elapsed() * LOOK_COSTS));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    look(Look::Last)?;
    let seconds = begin.elapsed().as_secs_f64();
    let ends = ends.finish();
    lock(&state).watched_ms = (begin.elapsed().as_secs_f64() * 1e3) as u64;
    read_tcp_time_waits(&root, &state, Gathering::waits).context("the host's sockets cannot be read")?;
    let gathering = std::mem::take(&mut *lock(&state));
    let edges = edges(&gathering, seconds, looks, &read_configured_keeps(&root));
    Ok(Cycles { seconds, edges, left_out: gathering.left_out, ends })
}

fn edges(gathering: &Gathering, seconds: f64, looks: u64, configured: &[ConfiguredKeeps]) -> Vec<EdgeCycles> {
    let mut pairs: Vec<Pair> = gathering.sides.keys().map(|(pair, _)| *pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let made = |pair: Pair| {
        let side = |end: LocalEnd| gathering.sides.get(&(pair, end));
        let used = |side: &&Side| !side.ended.is_empty() || side.open.keys().any(|turns| *turns > 0);
        let (end, seen) = [LocalEnd::Client, LocalEnd::Server].into_iter().find_map(|end| Some((end, side(end).filter(used)?)))?;
        let mut facts = facts(seen, side(LocalEnd::Client), side(LocalEnd::Server), seconds, looks);
        let netns = |end: LocalEnd| side(end).and_then(|side| side.netns);
        let client = client_of(configured, netns(LocalEnd::Client), pair.1);
        // A TLS handshake takes at least one more round trip (RFC 8446).
        if client.is_some_and(|client| client.tls) {
            facts.setup_ms = facts.setup_ms.map(|ms| 2.0 * ms);
        }
        let verdict = keepalive_of_sockets(&facts, client, server_of(configured, netns(LocalEnd::Server), pair.1));
        Some(EdgeCycles { client: pair.0, server: pair.1, seen_from: end, facts, verdict })
    };
    let mut edges: Vec<EdgeCycles> = pairs.into_iter().filter_map(made).collect();
    let carried = |edge: &EdgeCycles| {
        let sum = |of: &[(u64, u64)]| of.iter().map(|(turns, count)| turns * count).sum::<u64>();
        sum(&edge.facts.ended) + sum(&edge.facts.open)
    };
    edges.sort_by_key(|edge| std::cmp::Reverse(carried(edge)));
    edges
}

fn facts(seen: &Side, client: Option<&Side>, server: Option<&Side>, seconds: f64, looks: u64) -> SocketFacts {
    let list = |of: &BTreeMap<u64, u64>| of.iter().map(|(turns, count)| (*turns, *count)).collect::<Vec<_>>();
    let ended: u64 = seen.ended.values().sum();
    // Little's law: connections open at a time over connections that end in a time.
    let lifetime_ms = (seen.sightings >= SIGHTINGS_MIN && ended >= SIGHTINGS_MIN && looks > 0)
        .then(|| seen.sightings as f64 / looks as f64 / (ended as f64 / seconds) * 1e3);
    SocketFacts {
        seconds,
        opened: seen.opened,
        ended: list(&seen.ended),
        before: seen.before,
        open: list(&seen.open),
        client_first: client.map_or(0, |side| side.waiting),
        server_first: server.map(|side| side.waiting),
        idle_ms: seen.idle_ms.quantile(0.5).map(|ms| ms as f64),
        setup_ms: seen.setup_us.mean().map(|us| us / 1e3),
        lifetime_ms,
    }
}

/// What the configuration of the client says about its connections to a server. Nothing if the passes to the server differ.
fn client_of(configured: &[ConfiguredKeeps], netns: Option<NetnsId>, server: SocketAddr) -> Option<&ClientKeeps> {
    let here = configured.iter().filter(|one| Some(one.netns) == netns).flat_map(|one| &one.clients);
    let mut all = here.filter(|(servers, _)| servers.contains(&server)).map(|(_, keeps)| keeps);
    let first = all.next()?;
    // It is unknown which pass opened a socket.
    let same = |a: &ClientKeeps, b: &ClientKeeps| ClientKeeps { origin: a.origin.clone(), ..b.clone() } == *a;
    all.all(|other| same(first, other)).then_some(first)
}

/// What the configuration of the server says about connections to this address.
fn server_of(configured: &[ConfiguredKeeps], netns: Option<NetnsId>, server: SocketAddr) -> Option<&ServerKeeps> {
    let here = || configured.iter().filter(|one| Some(one.netns) == netns).flat_map(|one| &one.servers);
    let exact = here().find(|(address, _)| *address == server);
    let any = || here().find(|(address, _)| address.ip().is_unspecified() && address.port() == server.port());
    exact.or_else(any).map(|(_, keeps)| keeps)
}

impl Cycles {
    pub(super) fn json(&self, words: &Catalogue) -> Value {
        let edge = |edge: &EdgeCycles| {
            let mut json = keepalive_json(&edge.verdict, words);
            json["open"] = json!(edge.verdict.open);
            json["client"] = json!(edge.client);
            json["server"] = json!(edge.server);
            json["seen_from"] = json!(edge.seen_from.name());
            json["opened"] = json!(edge.facts.opened);
            json["ended_by_turns"] = json!(edge.facts.ended);
            json["open_by_turns"] = json!(edge.facts.open);
            json["client_first"] = json!(edge.facts.client_first);
            json["server_first"] = json!(edge.facts.server_first);
            json["idle_ms"] = json!(edge.facts.idle_ms);
            json["setup_ms"] = json!(edge.facts.setup_ms);
            json["lifetime_ms"] = json!(edge.facts.lifetime_ms);
            json
        };
        json!({
            "seconds": self.seconds,
            "edges": self.edges.iter().map(edge).collect::<Vec<_>>(),
            "sockets_left_out": self.left_out,
            "ends_lost": self.ends.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_sources::TCP_INFO_FIELDS;

    fn info(turns: u64, idle_ms: u64) -> Vec<u8> {
        let value = |name: &str| match name {
            "data_segs_out" | "data_segs_in" => turns,
            "last_data_sent" | "last_data_recv" => idle_ms,
            "min_rtt" => 20_000,
            _ => 0,
        };
        TCP_INFO_FIELDS.iter().flat_map(|field| value(field.name).to_ne_bytes()[..field.bytes].to_vec()).collect()
    }

    fn socket(port: u16, info: &[u8]) -> TcpSocket<'_> {
        let (local, remote) = ((IpAddr::from([10, 0, 0, 1]), port), (IpAddr::from([10, 0, 0, 2]), 80));
        let (receive_queue, send_queue, send_buffer) = (0, 0, None);
        TcpSocket { state: TcpState::Established, local, remote, accepted: false, inode: 7, receive_queue, send_queue, send_buffer, info }
    }

    fn netns() -> NetnsRef {
        NetnsRef { id: NetnsId(5), name: None, is_host: false, path: "/run/netns/blue".into() }
    }

    fn configured(pool: bool) -> Vec<ConfiguredKeeps> {
        let keeps = ClientKeeps { pool, ..ClientKeeps::default() };
        vec![ConfiguredKeeps { netns: NetnsId(5), clients: vec![(vec!["10.0.0.2:80".parse().unwrap()], keeps)], servers: Vec::new() }]
    }

    #[test]
    fn connections_are_followed_from_the_first_reading_to_the_last() {
        let mut gathering = Gathering { watched_ms: 5_000, ..Gathering::default() };
        for port in 1..=3 {
            gathering.open(&netns(), &socket(port, &info(100, 0)));
        }
        gathering.look = Look::Between;
        gathering.open(&netns(), &socket(1, &info(120, 0)));
        // A connection of the first reading ends, and a new one ends.
        gathering.ended(&netns(), &socket(3, &info(130, 0)));
        gathering.ended(&netns(), &socket(4, &info(7, 0)));
        gathering.look = Look::Last;
        gathering.open(&netns(), &socket(1, &info(150, 0)));
        gathering.open(&netns(), &socket(2, &info(100, 0)));
        gathering.open(&netns(), &socket(5, &info(9, 0)));
        let wait = |left_ms| TcpTimeWait { local: socket(4, &[]).local, remote: socket(4, &[]).remote, accepted: false, left_ms };
        gathering.waits(&netns(), &wait(59_000));
        gathering.waits(&netns(), &wait(50_000));
        let edges = edges(&gathering, 5.0, 1, &[]);
        let facts = &edges[0].facts;
        assert_eq!((edges.len(), edges[0].seen_from, edges[0].server), (1, LocalEnd::Client, "10.0.0.2:80".parse().unwrap()));
        assert_eq!((&facts.ended[..], facts.before, &facts.open[..]), (&[(7, 1), (130, 1)][..], 100, &[(0, 1), (9, 1), (50, 1)][..]));
        assert_eq!((facts.opened, facts.client_first, facts.server_first), (2, 1, None));
    }

    #[test]
    fn a_connection_that_waits_for_its_first_answer_at_the_first_reading_counts_as_opened() {
        let mut gathering = Gathering { watched_ms: 5_000, ..Gathering::default() };
        for port in 1..=20 {
            gathering.open(&netns(), &socket(port, &info(0, 0)));
        }
        for port in 1..=100 {
            gathering.ended(&netns(), &socket(port, &info(1, 0)));
        }
        gathering.look = Look::Last;
        let edge = edges(&gathering, 5.0, 1, &configured(false)).remove(0);
        assert_eq!((edge.facts.opened, edge.verdict.kept), (100, chokepoint_model::edge::ConnectionReuse::Not));
    }

    #[test]
    fn the_configuration_of_the_namespace_settles_open_verdicts() {
        let mut gathering = Gathering { watched_ms: 5_000, ..Gathering::default() };
        for port in 1..=100 {
            gathering.ended(&netns(), &socket(port, &info(1, 0)));
        }
        let reasons = |configured: &[ConfiguredKeeps]| {
            let verdict = edges(&gathering, 5.0, 1, configured).remove(0).verdict;
            (verdict.reasons.len(), verdict.open)
        };
        assert_eq!(reasons(&[]), (3, true));
        assert_eq!(reasons(&configured(true)), (1, false));
        assert_eq!(reasons(&configured(false)), (2, false));
        // If passes differ, it is unknown which one opened a connection.
        assert_eq!(reasons(&[configured(true), configured(false)].concat()), (3, true));
        let elsewhere = ConfiguredKeeps { netns: NetnsId(6), ..configured(true).remove(0) };
        assert_eq!(reasons(&[elsewhere]), (3, true));
    }

    #[test]
    fn the_lifetime_of_connections_follows_from_how_many_are_open() {
        let mut gathering = Gathering { look: Look::Between, ..Gathering::default() };
        for port in 1..=100 {
            gathering.open(&netns(), &socket(port, &info(0, 0)));
            gathering.ended(&netns(), &socket(port, &info(1, 0)));
        }
        // 10 were open at each of 10 readings, and 20 a second ended.
        let facts = edges(&gathering, 5.0, 10, &[]).remove(0).facts;
        assert_eq!((facts.lifetime_ms, facts.setup_ms), (Some(500.0), Some(20.0)));
    }

    #[test]
    fn the_numbers_of_turns_are_bounded() {
        let mut of = BTreeMap::new();
        (0..5000).for_each(|turns| count(&mut of, turns));
        assert_eq!((of.len(), of.values().sum::<u64>()), (TURNS_MAX, 5000));
    }
}
