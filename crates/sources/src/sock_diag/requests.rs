//! The source "requests": about five times a second, the sockets that can hold a request, each with its struct tcp_info. Of a crowd a random share is read,
//! another one each time, so that no connection is left out for ever.

mod awaiting;
mod windows;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use chokepoint_model::observation::series::Series;
use chokepoint_model::observation::{NetnsId, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_recording::{Entry, Outcome};

use super::{AF_UNIX, Any, DiagError, NO_UNIX, Part, Parts, inet, parse_one, unix};
use crate::assemble::netns_view;
use crate::netlink::wire::{ATTRIBUTE_HEADER_BYTES, HEADER_BYTES, Message, messages};
use crate::netlink::{DumpError, Sockets};
use crate::observer::{FLOW_US, UnderWay, thread_cpu_us};
use crate::root::reading_of;
use crate::table::{Cadence, Phase, ReadContext, Redact, ScopeKind, Source};
use crate::tcp_info::TcpInfoPlace;
use awaiting::Awaiting;
pub(crate) use awaiting::LOOK_US;
use windows::Windows;

/// Sockets up to which all are read, about 1 us each: of ports that crowd in a narrow range a share tells little, however few there are.
const WHOLE_MAX: usize = 2_500;
/// Sockets that a sample is to have where there are more: a share of them is read.
const SOCKETS_AIM: usize = 400;
/// Two to the 64th, divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Sockets of one reading that are kept, whatever came since the last one; a sample is one or two.
const SOCKETS_MAX: usize = 8_000;
/// What is believed of a recorded sample: no share is smaller than one of ten million sockets, and no number of requests smaller than is written.
const SHARE_MIN: f64 = 1e-7;
const UNDER_WAY: std::ops::RangeInclusive<f64> = 1e-6..=1e7;
const LOOKS: std::ops::RangeInclusive<f64> = 0.0..=1e9;
/// Unix sockets that one sample has at the most.
const UNIX_MAX: usize = 2_000;
/// The shortest and the longest time between two samples, ms; the moment is drawn between them.
const PAUSE_MS: (u64, u64) = (125, 225);
/// Sockets at one local port from which on it is a listener's.
const SHARED_PORT_MIN: usize = 3;
/// Bytes of struct tcp_info that are kept: up to `bytes_sent`.
const INFO_BYTES: usize = 208;
/// Item that tells how the sample was taken: lines of "name number".
const SAMPLING: &str = "sampling";
/// The same items of a sample that was awaited, see [`Awaiting`].
const AWAITED: &str = "awaited";
const AWAITED_SAMPLING: &str = "awaited-sampling";
/// Behind an item's name: of the client's namespace, which was read with that of the server. Its number follows.
const OF_NETNS: char = '@';

/// True for the items that are sockets, with addresses; all others are text.
pub(crate) fn are_sockets(item: &str) -> bool {
    let kind = item.split_once(OF_NETNS).map_or(item, |(kind, _)| kind);
    kind.is_empty() || kind == AWAITED
}

/// The sockets that can hold a request. Those in TIME_WAIT never do, and a busy host has tens of thousands of them.
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

/// What a reader keeps of one namespace between two samples.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    due: Option<Instant>,
    connections: Crowd,
    /// They are told apart: a flood of them is no reason to read fewer of the connections.
    handshakes: Crowd,
    /// Local ports that many sockets had in common.
    ports: Vec<u16>,
    /// This kernel takes no filter.
    is_refused: bool,
    drawn: u64,
    keys: RandomState,
    awaiting: Awaiting,
}

/// Sockets of one kind, of which a share is read where they are many.
#[derive(Debug, Default)]
struct Crowd {
    /// How many there were at the last sample, estimated.
    population: usize,
    /// Where the last share began.
    place: u64,
}

impl Crowd {
    fn is_large(&self) -> bool {
        self.population > WHOLE_MAX
    }

    /// What to read this time; nothing where all is to be read.
    fn windows(&mut self, draw: impl FnOnce() -> u64) -> Option<Windows> {
        if !self.is_large() {
            return None;
        }
        // Steps of the golden ratio from a place that is drawn: whatever range ports lie in, each of them is read nearly as often after a few samples, and not
        // only after very many, as where each place is drawn by itself (additive recurrence; Weyl 1916).
        self.place = if self.place == 0 { draw() } else { self.place.wrapping_add(GOLDEN_STEP) };
        Some(Windows::of(SOCKETS_AIM as f64 / self.population as f64, self.place >> (64 - windows::STEP.trailing_zeros())))
    }

    /// Learns from so many that were found in this share.
    fn learn(&mut self, found: usize, share: f64) {
        let population = (found as f64 / share) as usize;
        // What a share tells depends on its place. The next share must not, or places where many ports lie would count less; and one that lies beside all ports
        // does not tell that they are gone.
        self.population =
            if share >= 1.0 || population > 2 * self.population { population } else { (3 * self.population + population) / 4 };
    }
}

/// What one sample read.
#[derive(Debug)]
struct Taken {
    bytes: Vec<u8>,
    /// The shares of the connections and of the handshakes that were read.
    shares: (f64, f64),
}

impl Requests {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Looks whether the load has a request under way, where a sample waits for one; nothing where none does.
    pub(crate) fn look(&mut self, under_way: Option<&UnderWay>) -> Option<bool> {
        self.awaiting.look(under_way?, Instant::now())
    }

    /// A number that nobody can foresee.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.keys.hash_one(self.drawn)
    }

    /// The TCP sockets, or of a crowd a share.
    fn take(&mut self, sockets: &Sockets) -> Result<Taken, DumpError> {
        if !self.is_refused && (self.connections.is_large() || self.handshakes.is_large()) {
            match self.take_shares(sockets) {
                Err(_) => self.is_refused = true,
                taken => return taken,
            }
        }
        let (bytes, share) = dump(sockets, &inet::sockets_with_requests())?;
        Ok(Taken { bytes, shares: (share, share) })
    }

    fn take_shares(&mut self, sockets: &Sockets) -> Result<Taken, DumpError> {
        let drawn = self.draw();
        let one = |crowd: &mut Crowd, are_shaking| -> Result<_, DumpError> {
            let windows = crowd.windows(|| drawn);
            let program = windows.as_ref().map(|windows| windows.program(&self.ports));
            let (bytes, kept) = dump(sockets, &inet::sockets_with_requests_within(are_shaking, program.as_deref()))?;
            Ok((bytes, kept * windows.map_or(1.0, |windows| windows.share())))
        };
        let (mut bytes, connections) = one(&mut self.connections, false)?;
        let (more, handshakes) = one(&mut self.handshakes, true)?;
        bytes.extend(more);
        Ok(Taken { bytes, shares: (connections, handshakes) })
    }

    /// Learns from a sample.
    fn learn(&mut self, taken: &Taken, cost: Duration, now: Instant) {
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
        // No sooner than all that may be spent has made up for it: the turns that were given out with this one knew nothing of what it cost.
        self.due = now.checked_add(pause.max(cost * FLOW_US as u32));
    }
}

fn is_shaking(state: u8) -> bool {
    [TcpState::SynRecv as u8, TcpState::NewSynRecv as u8].contains(&state)
}

fn read(context: &ReadContext<'_>) -> Vec<(String, Outcome)> {
    let (Some(sockets), Some(netns)) = (context.netlink, context.netns) else {
        return vec![(String::new(), Outcome::Failed("no netlink socket in this namespace".to_owned(), None))];
    };
    let (now, from_us) = (Instant::now(), thread_cpu_us());
    let mut requests = sockets.requests();
    let looks = requests.awaiting.take_found();
    let is_elsewhere = context.under_way.is_some_and(|load| load.is_read_from_elsewhere(netns.id));
    if is_elsewhere || (context.phase == Phase::Running && looks.is_none() && !requests.is_due(now)) {
        return Vec::new();
    }
    let under_way = || context.under_way.map(UnderWay::now);
    let before = under_way();
    let mut taken = match requests.take(sockets) {
        Ok(taken) => taken,
        Err(error) => return vec![(String::new(), error.outcome("this kernel cannot list TCP sockets", None))],
    };
    // The client's end right after it: what comes of a request meanwhile is seen at one of them, and the load's own count holds for both.
    let others = context.under_way.and_then(|load| load.other_end(netns.id)).and_then(|(id, sockets)| {
        let sockets = sockets.as_ref()?;
        let mut requests = sockets.requests();
        let taken = requests.take(sockets).ok()?;
        requests.learn(&taken, Duration::ZERO, now);
        Some((id, taken))
    });
    let after = under_way();
    // Without them the sample of TCP still counts; "listeners" tells why unix sockets could not be listed.
    taken.bytes.extend(unix_sockets(sockets, now).unwrap_or_default());
    let cost = Duration::from_micros(thread_cpu_us().saturating_sub(from_us));
    let mut told = format!("late_us {}\n", context.late_us);
    let mut has_met_none = false;
    if let Some((before, after)) = before.zip(after) {
        // Sockets are read one after the other, and requests come and go meanwhile.
        let (all, begun) = (after.mean_since(&before), before.begun as f64 / 2.0 + after.begun as f64 / 2.0);
        told.push_str(&format!("under_way {all:.6}\nbegun {begun}\n"));
        has_met_none = before.is_loading && all == 0.0;
    }
    let kinds = if let Some(looks) = looks {
        told.push_str(&format!("looks {looks}\n"));
        [AWAITED, AWAITED_SAMPLING]
    } else {
        requests.learn(&taken, cost, now);
        if has_met_none {
            requests.awaiting.begin(now);
        }
        ["", SAMPLING]
    };
    let all = std::iter::once((None, taken)).chain(others.map(|(id, taken)| (Some(id), taken)));
    all.flat_map(|(id, taken)| items(kinds, id, taken, &told)).collect()
}

/// The two items of one sample: the sockets, and how they were taken.
fn items(kinds: [&str; 2], of: Option<NetnsId>, taken: Taken, told: &str) -> [(String, Outcome); 2] {
    let (connections, handshakes) = taken.shares;
    let told = format!("share {connections}\nhandshakes {handshakes}\n{told}");
    let name = |kind: &str| of.map_or(kind.to_owned(), |id| format!("{kind}{OF_NETNS}{}", id.0));
    [(name(kinds[0]), Outcome::Ok(taken.bytes)), (name(kinds[1]), Outcome::Ok(told.into_bytes()))]
}

/// The TCP sockets, each without what nobody reads of it, and the share of them that was kept.
fn dump(sockets: &Sockets, parts: &Parts) -> Result<(Vec<u8>, f64), DumpError> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    let mut one = |part: &Part| {
        let result = sockets.diag().dump_into(part.kind, &part.body, &mut |message| {
            count += 1;
            if count <= SOCKETS_MAX {
                append_short(message, &mut bytes);
            }
            Ok(())
        });
        result.map(|_| ())
    };
    match one(&parts.first) {
        Err(_) if !parts.otherwise.is_empty() => parts.otherwise.iter().try_for_each(&mut one)?,
        first => first?,
    }
    // The kernel lists them by their hash: it is chance who is among the first. (Where each family has to be asked for by itself, IPv4 comes first.)
    Ok((bytes, SOCKETS_MAX as f64 / count.max(SOCKETS_MAX) as f64))
}

/// Appends a message with its fixed part and the beginning of its struct tcp_info alone.
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

/// Accepted ends of unix stream sockets. Those that wait to be accepted are counted with their listener.
fn unix_sockets(sockets: &Sockets, now: Instant) -> Result<Vec<u8>, DumpError> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    if sockets.no_unix_listener().get().is_some_and(|seen| now.saturating_duration_since(seen) < NO_UNIX) {
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
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<RequestSample, DiagError> {
    let mut sample = RequestSample { share: 1.0, handshake_share: 1.0, ..RequestSample::default() };
    for message in messages(bytes) {
        let message = message?;
        match parse_one(&message)? {
            Any::Inet(socket) if socket.state != TcpState::Listen => sample.sockets.push(RequestSocket {
                address: SocketAddress::Tcp { local: socket.local, remote: socket.remote },
                cookie: inet::cookie(&message),
                state: socket.state,
                inode: socket.inode,
                receive_queue: socket.receive_queue,
                send_queue: socket.send_queue,
                times: times(inet::measured(&message)?.info),
            }),
            Any::Unix(socket) if !socket.listens && socket.is_stream => sample.sockets.push(RequestSocket {
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

/// Nothing of a socket without struct tcp_info, as one in its handshake.
fn times(info: &[u8]) -> Option<RequestTimes> {
    macro_rules! field {
        ($name:literal) => {{
            const PLACE: TcpInfoPlace = TcpInfoPlace::of($name);
            PLACE.read(info)
        }};
    }
    Some(RequestTimes {
        last_data_sent_ms: field!("last_data_sent")?,
        last_data_recv_ms: field!("last_data_recv")?,
        data_segs_in: field!("data_segs_in"),
        data_segs_out: field!("data_segs_out"),
        bytes_acked: field!("bytes_acked"),
        bytes_received: field!("bytes_received"),
        bytes_sent: field!("bytes_sent"),
        unsent: field!("notsent_bytes"),
        rwnd_limited_us: field!("rwnd_limited"),
        min_rtt_us: field!("min_rtt"),
        rtt_us: field!("rtt"),
        unacked: field!("unacked"),
        lost: field!("lost").zip(field!("retrans")).map(|(lost, again)| lost + again),
    })
}

/// Completes the sample of the same time.
fn put_sampling(samples: &mut Series<RequestSample>, entry: &Entry) {
    let Outcome::Ok(bytes) = &entry.outcome else { return };
    let text = String::from_utf8_lossy(bytes);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    let share = |name: &str| value(name).filter(|share| (SHARE_MIN..=1.0).contains(share));
    samples.amend(entry.at_us, |sample| {
        sample.share = share("share").unwrap_or(1.0);
        // They were read with the others in recordings of older versions.
        sample.handshake_share = share("handshakes").unwrap_or(sample.share);
        sample.late_us = value("late_us").unwrap_or(0.0) as u64;
        let requests = |name: &str| value(name).filter(|number| *number == 0.0 || UNDER_WAY.contains(number));
        sample.under_way = requests("under_way");
        sample.begun = requests("begun");
        sample.looks = value("looks").filter(|looks| LOOKS.contains(looks)).unwrap_or(0.0) as u32;
    });
}

#[cfg(test)]
mod tests;
