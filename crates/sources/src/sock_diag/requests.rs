//! The source "requests": about five times a second, the sockets that can hold a request, each with its struct tcp_info. Of a crowd a random share is read,
//! another one each time, so that no connection is left out for ever.

mod windows;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use chokepoint_model::observation::{RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_recording::{Entry, Outcome};

use super::{AF_UNIX, Any, DiagError, NO_UNIX, Part, Parts, inet, parse_one, unix};
use crate::assemble::netns_view;
use crate::netlink::wire::{ATTRIBUTE_HEADER_BYTES, HEADER_BYTES, Message, messages};
use crate::netlink::{DumpError, Sockets};
use crate::observer::{FLOW_US, thread_cpu_us};
use crate::root::reading_of;
use crate::table::{Cadence, Phase, ReadContext, Redact, ScopeKind, Source};
use crate::tcp_info::TcpInfoPlace;
use windows::Windows;

/// Sockets up to which all are read, about 1 us each: of ports that crowd in a narrow range a share tells little, however few there are.
const WHOLE_MAX: usize = 2_500;
/// Sockets that a sample is to have where there are more: a share of them is read.
const SOCKETS_AIM: usize = 400;
/// Two to the 64th, divided by the golden ratio.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Sockets that one sample has at the most, whatever came since the last one.
const SOCKETS_MAX: usize = 8_000;
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

/// The sockets that can hold a request. Those in TIME_WAIT never do, and a busy host has tens of thousands of them.
pub(crate) const REQUESTS: Source = Source {
    name: "requests",
    scope: ScopeKind::Netns,
    cadence: Cadence::Sampled,
    needs: None,
    read,
    put: |observation, entry| {
        let Some(view) = netns_view(observation, entry) else { return };
        if entry.item == SAMPLING {
            put_sampling(view, entry);
        } else {
            view.request_samples.push(entry.at_us, reading_of(&entry.outcome, parse));
        }
    },
    redact: Redact::InetDiag,
};

/// What a reader keeps of one namespace between two samples.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    due: Option<Instant>,
    /// Sockets that there were at the last sample, estimated.
    population: usize,
    /// Local ports that many sockets had in common.
    ports: Vec<u16>,
    /// This kernel takes no filter.
    is_refused: bool,
    /// Where the last share began.
    place: u64,
    drawn: u64,
    keys: RandomState,
}

impl Requests {
    fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// A number that nobody can foresee.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.keys.hash_one(self.drawn)
    }

    /// What to read this time; nothing where all is to be read.
    fn windows(&mut self) -> Option<Windows> {
        if self.is_refused || self.population <= WHOLE_MAX {
            return None;
        }
        // Steps of the golden ratio from a place that is drawn: whatever range ports lie in, each of them is read nearly as often after a few samples, and not
        // only after very many, as where each place is drawn by itself (additive recurrence; Weyl 1916).
        self.place = if self.place == 0 { self.draw() } else { self.place.wrapping_add(GOLDEN_STEP) };
        Some(Windows::of(SOCKETS_AIM as f64 / self.population as f64, self.place >> (64 - windows::STEP.trailing_zeros())))
    }

    /// Learns from a sample that had this share of all sockets.
    fn learn(&mut self, bytes: &[u8], share: f64, cost: Duration, now: Instant) {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        let mut found = 0;
        for message in messages(bytes).map_while(Result::ok).filter(|message| message.body.first() != Some(&AF_UNIX)) {
            let Some([_, _, _, _, high, low]) = message.body.first_chunk() else { continue };
            *counts.entry(u16::from_be_bytes([*high, *low])).or_default() += 1;
            found += 1;
        }
        let population = (f64::from(found) / share) as usize;
        // What a share tells depends on its place. The next share must not, or places where many ports lie would count less; and one that lies beside all ports
        // does not tell that they are gone.
        self.population =
            if share >= 1.0 || population > 2 * self.population { population } else { (3 * self.population + population) / 4 };
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

fn read(context: &ReadContext<'_>) -> Vec<(String, Outcome)> {
    let Some(sockets) = context.netlink else {
        return vec![(String::new(), Outcome::Failed("no netlink socket in this namespace".to_owned(), None))];
    };
    let (now, from_us) = (Instant::now(), thread_cpu_us());
    let mut requests = sockets.requests();
    if context.phase == Phase::Running && !requests.is_due(now) {
        return Vec::new();
    }
    let windows = requests.windows();
    let mut taken = windows.as_ref().map(|windows| (dump(sockets, &filtered(windows, &requests.ports)), windows.share()));
    if let Some((Err(_), _)) = taken {
        requests.is_refused = true;
        taken = None;
    }
    let (result, share) = taken.unwrap_or_else(|| (dump(sockets, &all()), 1.0));
    let mut bytes = match result {
        Ok(bytes) => bytes,
        Err(error) => return vec![(String::new(), error.outcome("this kernel cannot list TCP sockets", None))],
    };
    // Without them the sample of TCP still counts; "listeners" tells why unix sockets could not be listed.
    bytes.extend(unix_sockets(sockets, now).unwrap_or_default());
    let cost = Duration::from_micros(thread_cpu_us().saturating_sub(from_us));
    requests.learn(&bytes, share, cost, now);
    let told = format!("share {share}\nlate_us {}\n", context.late_us);
    vec![(String::new(), Outcome::Ok(bytes)), (SAMPLING.to_owned(), Outcome::Ok(told.into_bytes()))]
}

fn all() -> Parts {
    inet::sockets_with_requests()
}

fn filtered(windows: &Windows, ports: &[u16]) -> Parts {
    inet::sockets_with_requests_within(&windows.program(ports))
}

/// The TCP sockets, each without what nobody reads of it.
fn dump(sockets: &Sockets, parts: &Parts) -> Result<Vec<u8>, DumpError> {
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
    Ok(bytes)
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
    let mut sample = RequestSample { share: 1.0, late_us: 0, sockets: Vec::new() };
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
fn put_sampling(view: &mut chokepoint_model::observation::NetnsView, entry: &Entry) {
    let Outcome::Ok(bytes) = &entry.outcome else { return };
    let text = String::from_utf8_lossy(bytes);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    view.request_samples.amend(entry.at_us, |sample| {
        sample.share = value("share").filter(|share| *share > 0.0 && *share <= 1.0).unwrap_or(1.0);
        sample.late_us = value("late_us").unwrap_or(0.0) as u64;
    });
}

#[cfg(test)]
mod tests;
