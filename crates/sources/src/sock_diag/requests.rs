//! The source "requests": about five times a second, the sockets that can hold a request, each with its struct tcp_info. If they are many, each sample reads
//! another random share, so that no connection is left out for ever.

pub(crate) mod awaiting;
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use chokepoint_model::load::LoadExchange;
use chokepoint_model::observation::series::Series;
use chokepoint_model::observation::{DumpMoment, Flight, NetnsId, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_recording::{Entry, Outcome};

use super::listeners::UnixAbsence;
use super::message::{DiagSocket, parse_socket};
use super::namesakes::Namesakes;
use super::protocol::{AF_UNIX, DiagError, DumpRequest, DumpRequests};
use super::{inet, unix};
use crate::clock::{Tick, thread_cpu};
use crate::netlink::wire::{ATTRIBUTE_HEADER_BYTES, HEADER_BYTES, Message, messages};
use crate::netlink::{DumpError, Sockets};
use crate::observer::bucket::{EARLY_PART, EARLY_US, FLOW_US, LOADED_PART, LOADED_US};
use crate::observer::under_way::UnderWay;
use crate::root::reading_of;
use crate::scope::netns_view;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::tcp_info::tcp_info_field;
use awaiting::Awaiting;
use windows::Windows;

/// Up to this many sockets all are read, about 1 us each. If ports lie in a narrow range, a share of few sockets tells little.
const WHOLE_MAX: usize = 2_500;
/// Sockets of a sample if only a share is read.
const SOCKETS_AIM: usize = 400;
/// Two to the 64th, divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Most sockets to keep of one dump; a sample has one or two dumps.
const SOCKETS_MAX: usize = 8_000;
/// Plausible values of a recorded sample: a share is at least one in ten million sockets, and a number of requests at least the smallest that is written.
const SHARE_MIN: f64 = 1e-7;
const UNDER_WAY: std::ops::RangeInclusive<f64> = 1e-6..=1e7;
const LOOKS: std::ops::RangeInclusive<f64> = 0.0..=1e9;
/// Most unix sockets of one sample.
const UNIX_MAX: usize = 2_000;
/// The shortest and the longest time between two samples, ms. The moment is random between them.
const PAUSE_MS: (u64, u64) = (125, 225);
/// The longest time between two samples whatever they cost: the account of a load of some seconds rests on them, and the next one may cost less. It is less than the
/// longest time between two turns (`observer/schedule.rs`), whose moments are random.
const PAUSE_MAX: Duration = Duration::from_millis(1_700);
/// A local port with this many sockets counts as a listener's.
const SHARED_PORT_MIN: usize = 3;
/// Bytes of struct tcp_info to keep: up to `bytes_sent`.
const INFO_BYTES: usize = 208;
/// Item that describes how the sample was taken: lines of "name number".
const SAMPLING: &str = "sampling";
/// The same items of an awaited sample, see [`Awaiting`].
const AWAITED: &str = "awaited";
const AWAITED_SAMPLING: &str = "awaited-sampling";
/// Begins a line that says when the sockets were read, and the largest number in it.
const MOMENT: &str = "moment";
const MOMENT_MAX: u64 = 1 << 40;
/// Begins a line with the local ports of a load's connections on which it is somebody's turn.
const EXCHANGES: [(&str, LoadExchange); 3] =
    [("not-asked", LoadExchange::NotAsked), ("waiting", LoadExchange::Waiting), ("answered", LoadExchange::Answered)];
/// Ends the name of an item of the client's namespace, which was read together with the server's. The namespace's number follows.
const OF_NETNS: char = '@';

/// True for items with sockets, which have addresses. All other items are text.
pub(crate) fn are_sockets(item: &str) -> bool {
    let kind = item.split_once(OF_NETNS).map_or(item, |(kind, _)| kind);
    kind.is_empty() || kind == AWAITED
}

/// True for items that tell how the sample of the same time was taken: they extend it.
pub(crate) fn extend_a_sample(item: &str) -> bool {
    let kind = item.split_once(OF_NETNS).map_or(item, |(kind, _)| kind);
    kind == SAMPLING || kind == AWAITED_SAMPLING
}

/// The sockets that can hold a request. Sockets in TIME_WAIT never do, and a busy host has tens of thousands of them.
pub(crate) const REQUESTS: Source = Source {
    name: "requests",
    scope: ScopeKind::Netns,
    cadence: Cadence::Sampled,
    needs: None,
    read,
    put: |observation, entry| {
        let Some(view) = netns_view(observation, entry) else { return };
        let (item, other) = entry.item.split_once(OF_NETNS).unwrap_or((&entry.item, ""));
        let view = match other.parse() {
            Ok(id) => observation.netns.entry(NetnsId(id)).or_default(),
            Err(_) => view,
        };
        match item {
            SAMPLING => put_sampling(&mut view.request_samples, entry),
            AWAITED_SAMPLING => put_sampling(&mut view.awaited_samples, entry),
            AWAITED => view.awaited_samples.push(entry.at_us, reading_of(&entry.outcome, parse)),
            _ => view.request_samples.push(entry.at_us, reading_of(&entry.outcome, parse)),
        }
    },
    redact: Redact::InetDiag,
};

/// The state of sampling in one namespace.
#[derive(Debug, Default)]
pub(crate) struct RequestSampling {
    due: Option<Instant>,
    /// End of the first seconds, since the first sample, and the part of a core that samples may take meanwhile: they have more than the budget pays for (`observer/schedule.rs`).
    early: Option<(Instant, u64)>,
    connections: Population,
    /// Counted separately: a flood of handshakes must not reduce the share of connections.
    handshakes: Population,
    /// Local ports of many sockets.
    ports: Vec<u16>,
    /// This kernel accepts no filter.
    is_refused: bool,
    drawn: u64,
    /// CPU time of the last sample.
    cost: Option<Duration>,
    keys: RandomState,
    awaiting: Awaiting,
}

/// The number of sockets of one kind, and which share of them to read.
#[derive(Debug, Default)]
struct Population {
    /// Estimate from the last samples.
    size: usize,
    /// Where the last share began.
    place: u64,
    /// The next sample reads the same share again: what a connection carried between two samples tells the rate of requests.
    is_first: bool,
}

impl Population {
    fn is_large(&self) -> bool {
        self.size > WHOLE_MAX
    }

    /// The share to read this time; nothing if all sockets are read. `in_pairs`: each share is read twice in a row.
    fn windows(&mut self, in_pairs: bool, draw: impl FnOnce() -> u64) -> Option<Windows> {
        if !self.is_large() {
            return None;
        }
        // Steps of the golden ratio from a random place: in any range of ports, all ports are read almost equally often after a few samples. Independent
        // random places would need very many samples for that (additive recurrence; Weyl 1916).
        self.place = match (self.place, self.is_first) {
            (0, _) => draw(),
            (place, true) => place,
            (place, false) => place.wrapping_add(GOLDEN_STEP),
        };
        self.is_first = in_pairs && !self.is_first;
        Some(Windows::of(SOCKETS_AIM as f64 / self.size as f64, self.place >> (64 - windows::STEP.trailing_zeros())))
    }

    /// Updates the estimate from the sockets that were found in this share.
    fn learn(&mut self, found: usize, share: f64) {
        let population = (found as f64 / share) as usize;
        // The count in one share depends on its place. The size of the next share must not depend on it, or places with many ports would count less. And a
        // share without any ports does not prove that the sockets are gone.
        self.size = if share >= 1.0 || population > 2 * self.size { population } else { (3 * self.size + population) / 4 };
    }
}

/// The result of one sample.
#[derive(Debug)]
struct SampledSockets {
    bytes: Vec<u8>,
    /// The shares of the connections and of the handshakes that were read.
    shares: (f64, f64),
    /// When the connections were read, if the kernel's tick is known.
    moment: Option<DumpMoment>,
    /// What the load says of its connections, by its local port, at the moment of each.
    exchanges: BTreeMap<u16, LoadExchange>,
}

/// The sockets of one dump.
struct Dump {
    bytes: Vec<u8>,
    /// The share of them that was kept.
    kept: f64,
    moment: Option<DumpMoment>,
}

impl RequestSampling {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Whether the load has a request under way; nothing if no sample waits for one.
    pub(crate) fn look(&mut self, under_way: Option<&UnderWay>) -> Option<bool> {
        self.awaiting.look(under_way?, Instant::now())
    }

    /// An unpredictable number.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.keys.hash_one(self.drawn)
    }

    /// Reads the TCP sockets, or a share of many.
    fn take(&mut self, sockets: &Sockets, load: Option<&UnderWay>) -> Result<SampledSockets, DumpError> {
        if !self.is_refused && (self.connections.is_large() || self.handshakes.is_large()) {
            match self.take_shares(sockets, load) {
                Err(_) => self.is_refused = true,
                taken => return taken,
            }
        }
        let mut exchanges = BTreeMap::new();
        let Dump { bytes, kept, moment } = dump(sockets, &inet::sockets_with_requests(), load, &mut exchanges)?;
        Ok(SampledSockets { bytes, shares: (kept, kept), moment, exchanges })
    }

    fn take_shares(&mut self, sockets: &Sockets, load: Option<&UnderWay>) -> Result<SampledSockets, DumpError> {
        // A load tells its rate itself.
        let (drawn, in_pairs) = (self.draw(), load.is_none());
        let mut exchanges = BTreeMap::new();
        let mut one = |crowd: &mut Population, are_shaking| -> Result<_, DumpError> {
            let windows = crowd.windows(in_pairs, || drawn);
            let program = windows.as_ref().map(|windows| windows.program(&self.ports));
            let dump = dump(sockets, &inet::sockets_with_requests_within(are_shaking, program.as_deref()), load, &mut exchanges)?;
            Ok(Dump { kept: dump.kept * windows.map_or(1.0, |windows| windows.share()), ..dump })
        };
        let connections = one(&mut self.connections, false)?;
        let handshakes = one(&mut self.handshakes, true)?;
        let bytes = [connections.bytes, handshakes.bytes].concat();
        Ok(SampledSockets { bytes, shares: (connections.kept, handshakes.kept), moment: connections.moment, exchanges })
    }

    /// Updates the state after a sample.
    fn learn(&mut self, taken: &SampledSockets, cost: Duration, now: Instant) {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        let (mut connections, mut handshakes) = (0, 0);
        for message in messages(&taken.bytes).map_while(Result::ok).filter(|message| message.body.first() != Some(&AF_UNIX)) {
            let Some([_, state, _, _, high, low]) = message.body.first_chunk() else { continue };
            *counts.entry(u16::from_be_bytes([*high, *low])).or_default() += 1;
            *if is_shaking(*state) { &mut handshakes } else { &mut connections } += 1;
        }
        self.connections.learn(connections, taken.shares.0);
        self.handshakes.learn(handshakes, taken.shares.1);
        let mut shared: Vec<(usize, u16)> =
            counts.into_iter().filter(|(_, count)| *count >= SHARED_PORT_MIN).map(|(port, count)| (count, port)).collect();
        shared.sort_unstable_by(|a, b| b.cmp(a));
        self.ports = shared.into_iter().take(windows::PORTS_MAX).map(|(_, port)| port).collect();
        let (least, most) = PAUSE_MS;
        let pause = Duration::from_millis(least + self.draw() % (most - least));
        // The next sample waits until the whole inflow has paid for this one: orders given before did not know its cost. Of one slow sample the machine is the
        // reason, not the sockets: it counts if the one before was as slow.
        let usual = self.cost.replace(cost).map_or(cost, |before| before.min(cost));
        let times = self.early.filter(|(until, _)| now < *until).map_or(FLOW_US, |(_, part)| part);
        self.due = now.checked_add(pause.max((usual * times as u32).min(PAUSE_MAX)));
    }
}

fn is_shaking(state: u8) -> bool {
    [TcpState::SynRecv as u8, TcpState::NewSynRecv as u8].contains(&state)
}

fn read(context: &ReadContext<'_>) -> Items {
    let (Some(sockets), Some(netns)) = (context.netlink, context.netns) else {
        return only_item(Outcome::Failed("no netlink socket in this namespace".to_owned(), None));
    };
    // Before the first sample the kernel's ticks are watched, which is no cost of a sample.
    Tick::of_kernel();
    let (now, from) = (Instant::now(), thread_cpu());
    let mut requests = sockets.memory::<RequestSampling>().borrow_mut();
    let looks = requests.awaiting.take_found();
    let is_elsewhere = context.under_way.is_some_and(|load| load.is_read_from_elsewhere(netns.id));
    if is_elsewhere || (context.phase == Phase::Running && looks.is_none() && !requests.is_due(now)) {
        return Vec::new();
    }
    if context.phase == Phase::Running && requests.early.is_none() {
        let (early_us, part) = if context.under_way.is_some() { (LOADED_US, LOADED_PART) } else { (EARLY_US, EARLY_PART) };
        requests.early = now.checked_add(Duration::from_micros(early_us)).map(|until| (until, part));
    }
    let under_way = || context.under_way.map(UnderWay::now);
    let before = under_way();
    let mut taken = match requests.take(sockets, context.under_way) {
        Ok(taken) => taken,
        Err(error) => return only_item(error.outcome("this kernel cannot list TCP sockets", None)),
    };
    // The client's end is read right after it, so that a request that moves shows at one of the ends, and the load's own count holds for both.
    let others = context.under_way.and_then(|load| load.other_end(netns.id)).and_then(|(id, sockets)| {
        let sockets = sockets.as_ref()?;
        let mut requests = sockets.memory::<RequestSampling>().borrow_mut();
        let taken = requests.take(sockets, context.under_way).ok()?;
        requests.learn(&taken, Duration::ZERO, now);
        Some((id, taken))
    });
    let after = under_way();
    // The sample of TCP counts without unix sockets; "listeners" reports why they could not be listed.
    taken.bytes.extend(unix_sockets(sockets).unwrap_or_default());
    let cost = thread_cpu().saturating_sub(from);
    let mut sampling = format!("late_us {}\n", context.late_us);
    let mut has_met_none = false;
    if let Some((before, after)) = before.zip(after) {
        // RequestSampling come and go while the sockets are read one after the other.
        let (all, begun) = (after.mean_since(&before), before.begun as f64 / 2.0 + after.begun as f64 / 2.0);
        sampling.push_str(&format!("under_way {all:.6}\nbegun {begun}\n"));
        has_met_none = before.is_loading && all == 0.0;
    }
    let kinds = if let Some(looks) = looks {
        sampling.push_str(&format!("looks {looks}\n"));
        [AWAITED, AWAITED_SAMPLING]
    } else {
        requests.learn(&taken, cost, now);
        if has_met_none {
            requests.awaiting.begin(now);
        }
        ["", SAMPLING]
    };
    let all = std::iter::once((None, taken)).chain(others.map(|(id, taken)| (Some(id), taken)));
    all.flat_map(|(id, taken)| items(kinds, id, taken, &sampling)).collect()
}

/// The two items of one sample: the sockets, and how the sample was taken.
fn items(kinds: [&str; 2], netns: Option<NetnsId>, taken: SampledSockets, sampling: &str) -> [(String, Outcome); 2] {
    let (connections, handshakes) = taken.shares;
    let mut sampling = format!("share {connections}\nhandshakes {handshakes}\n{sampling}");
    if let Some(DumpMoment { since_tick_us, took_us, count, tick_us }) = taken.moment {
        sampling.push_str(&format!("{MOMENT} {since_tick_us} {took_us} {count} {tick_us}\n"));
    }
    for (name, exchange) in EXCHANGES {
        let ports = taken.exchanges.iter().filter(|(_, told)| **told == exchange).map(|(port, _)| format!(" {port}"));
        let ports: String = ports.collect();
        if !ports.is_empty() {
            sampling.push_str(&format!("{name}{ports}\n"));
        }
    }
    let name = |kind: &str| netns.map_or(kind.to_owned(), |id| format!("{kind}{OF_NETNS}{}", id.0));
    [(name(kinds[0]), Outcome::Ok(taken.bytes)), (name(kinds[1]), Outcome::Ok(sampling.into_bytes()))]
}

/// Dumps the TCP sockets, each reduced to what is parsed. A load is asked about each connection when its socket is read.
fn dump(
    sockets: &Sockets,
    parts: &DumpRequests,
    load: Option<&UnderWay>,
    exchanges: &mut BTreeMap<u16, LoadExchange>,
) -> Result<Dump, DumpError> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    let tick = Tick::of_kernel().map(|tick| (tick, tick.since_us(), Instant::now()));
    let mut one = |part: &DumpRequest| {
        let result = sockets.diag().dump_into(part.kind, &part.body, &mut |message| {
            count += 1;
            if count <= SOCKETS_MAX {
                append_short(message, &mut bytes);
                for port in ports_of_established(message).into_iter().flatten() {
                    exchanges.extend(load.and_then(|load| Some((port, load.exchange(port)?))));
                }
            }
            Ok(())
        });
        result.map(|_| ())
    };
    match one(&parts.first) {
        Err(_) if !parts.fallback.is_empty() => parts.fallback.iter().try_for_each(&mut one)?,
        first => first?,
    }
    // The kernel lists sockets by hash, so the first ones are a random choice. (With one request for each family, IPv4 comes first.)
    let moment = tick.map(|(tick, since_tick_us, began)| DumpMoment {
        since_tick_us,
        took_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
        count: count as u64,
        tick_us: tick.length_us(),
    });
    Ok(Dump { bytes, kept: SOCKETS_MAX as f64 / count.max(SOCKETS_MAX) as f64, moment })
}

/// The ports of an established connection; the load's own is one of them.
fn ports_of_established(message: &[u8]) -> Option<[u16; 2]> {
    let [_, state, _, _, ports @ ..] = message.get(HEADER_BYTES..)?.first_chunk::<8>()?;
    let [a, b, c, d] = *ports;
    (*state == TcpState::Established as u8).then(|| [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// Appends a message reduced to its fixed part and the beginning of its struct tcp_info.
fn append_short(whole: &[u8], bytes: &mut Vec<u8>) {
    let Some(Ok(message)) = messages(whole).next() else { return };
    let Ok((fixed, _)) = message.split("inet_diag_msg", inet::MESSAGE_BYTES) else { return };
    let info = inet::measured(&message).map(|measured| measured.info).unwrap_or_default();
    let info = &info[..info.len().min(INFO_BYTES)];
    let attribute = if info.is_empty() { 0 } else { ATTRIBUTE_HEADER_BYTES + info.len() };
    let length = HEADER_BYTES + fixed.len() + attribute;
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(0).to_ne_bytes());
    bytes.extend_from_slice(&whole[4..HEADER_BYTES]);
    bytes.extend_from_slice(fixed);
    if attribute > 0 {
        bytes.extend_from_slice(&u16::try_from(attribute).unwrap_or(0).to_ne_bytes());
        bytes.extend_from_slice(&inet::INET_DIAG_INFO.to_ne_bytes());
        bytes.extend_from_slice(info);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The accepted ends of unix stream sockets. Connections that wait to be accepted are counted at their listener.
fn unix_sockets(sockets: &Sockets) -> Result<Vec<u8>, DumpError> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    if sockets.memory::<UnixAbsence>().borrow().holds() {
        return Ok(bytes);
    }
    let part = unix::sockets().first;
    sockets.diag().dump_into(part.kind, &part.body, &mut |whole| {
        let matters = |message: Message<'_>| {
            let socket = unix::parse(&message).ok()?;
            Some(socket.is_stream && !socket.listens && socket.path.is_some())
        };
        if count < UNIX_MAX && messages(whole).next().and_then(Result::ok).and_then(matters) == Some(true) {
            count += 1;
            bytes.extend_from_slice(whole);
        }
        Ok(())
    })?;
    Ok(sockets.memory::<Namesakes>().borrow().marked(&bytes))
}

fn parse(bytes: &[u8]) -> Result<RequestSample, DiagError> {
    let mut sample = RequestSample { share: 1.0, handshake_share: 1.0, ..RequestSample::default() };
    for message in messages(bytes) {
        let message = message?;
        match parse_socket(&message)? {
            DiagSocket::Inet(socket) if socket.state != TcpState::Listen => sample.sockets.push(RequestSocket {
                address: SocketAddress::Tcp { local: socket.local, remote: socket.remote },
                cookie: inet::cookie(&message),
                state: socket.state,
                inode: socket.inode,
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                times: times(inet::measured(&message)?.info),
            }),
            DiagSocket::Unix(socket) if !socket.listens && socket.is_stream => sample.sockets.push(RequestSocket {
                address: SocketAddress::Unix { path: socket.path, peer: socket.peer },
                cookie: socket.inode,
                state: if socket.is_done { TcpState::CloseWait } else { TcpState::Established },
                inode: socket.inode,
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                times: None,
            }),
            _ => {}
        }
    }
    Ok(sample)
}

/// Nothing for a socket without struct tcp_info, such as a handshake.
fn times(info: &[u8]) -> Option<RequestTimes> {
    Some(RequestTimes {
        last_data_sent_ms: tcp_info_field!(info, "last_data_sent")?,
        last_data_recv_ms: tcp_info_field!(info, "last_data_recv")?,
        last_ack_recv_ms: tcp_info_field!(info, "last_ack_recv"),
        data_segs_in: tcp_info_field!(info, "data_segs_in"),
        data_segs_out: tcp_info_field!(info, "data_segs_out"),
        bytes_acked: tcp_info_field!(info, "bytes_acked"),
        bytes_received: tcp_info_field!(info, "bytes_received"),
        bytes_sent: tcp_info_field!(info, "bytes_sent"),
        unsent: tcp_info_field!(info, "notsent_bytes"),
        rwnd_limited_us: tcp_info_field!(info, "rwnd_limited"),
        min_rtt_us: tcp_info_field!(info, "min_rtt"),
        rtt_us: tcp_info_field!(info, "rtt"),
        unacked: tcp_info_field!(info, "unacked"),
        lost: tcp_info_field!(info, "lost").zip(tcp_info_field!(info, "retrans")).map(|(lost, again)| lost + again),
        flight: flight(info),
    })
}

fn flight(info: &[u8]) -> Option<Flight> {
    let small = |field: Option<u64>| u32::try_from(field?).ok();
    Some(Flight {
        mss: small(tcp_info_field!(info, "snd_mss"))?,
        cwnd: small(tcp_info_field!(info, "snd_cwnd"))?,
        retransmitted: small(tcp_info_field!(info, "total_retrans"))?,
        is_recovering: tcp_info_field!(info, "ca_state")? != 0,
    })
}

/// Adds how it was taken to the sample of the same time.
fn put_sampling(samples: &mut Series<RequestSample>, entry: &Entry) {
    let Outcome::Ok(bytes) = &entry.outcome else { return };
    let text = String::from_utf8_lossy(bytes);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    let share = |name: &str| value(name).filter(|share| (SHARE_MIN..=1.0).contains(share));
    samples.amend(entry.at_us, |sample| {
        sample.share = share("share").unwrap_or(1.0);
        // Older versions read handshakes with the other sockets.
        sample.handshake_share = share("handshakes").unwrap_or(sample.share);
        sample.late_us = value("late_us").unwrap_or(0.0) as u64;
        let requests = |name: &str| value(name).filter(|number| *number == 0.0 || UNDER_WAY.contains(number));
        sample.under_way = requests("under_way");
        sample.begun = requests("begun");
        sample.exchanges = text.lines().flat_map(exchanges).collect();
        sample.moment = text.lines().find_map(|line| moment(line.strip_prefix(MOMENT)?));
        sample.looks = value("looks").filter(|looks| LOOKS.contains(looks)).unwrap_or(0.0) as u32;
    });
}

/// The numbers of a line that says when the sockets were read.
fn moment(text: &str) -> Option<DumpMoment> {
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok().filter(|number| *number <= MOMENT_MAX));
    let [since_tick_us, took_us, count, tick_us] = [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
    (tick_us > 0).then_some(DumpMoment { since_tick_us, took_us, count, tick_us })
}

/// The ports of a line with a load's connections.
fn exchanges(line: &str) -> impl Iterator<Item = (u16, LoadExchange)> {
    let found = EXCHANGES.iter().find_map(|(name, exchange)| Some((line.strip_prefix(name)?.strip_prefix(' ')?, *exchange)));
    found.into_iter().flat_map(|(ports, exchange)| ports.split(' ').filter_map(move |port| Some((port.parse().ok()?, exchange))))
}

#[cfg(test)]
mod tests;
