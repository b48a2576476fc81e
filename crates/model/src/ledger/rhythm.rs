//! The ratio of what is sent to what is received at one listener. If a request and an answer fall into the same clock tick, the counts of both show which was last.
//!
//! Where requests and answers have one length each, their bytes tell it exactly. Otherwise the segments do, as long as each answer has as many: an answer that now and then
//! leaves in one segment more or less shifts the count of its connection for good.

use std::collections::BTreeMap;

use crate::observation::{RequestSocket, RequestTimes};

/// Fewest pairs of samples.
const PAIRS_MIN: u64 = 3;
/// Share of the pairs that must have the same ratio.
const SAME_SHARE_MIN: f64 = 0.8;

/// The rhythm of one listener's connections.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rhythm {
    /// Segments sent and received in one exchange, in lowest terms.
    out_in: (u64, u64),
    /// Bytes sent and received in one exchange, in lowest terms, and the bytes of a request.
    bytes: Option<((u64, u64), u64)>,
    /// For each remainder of the counters: how often it was seen with a request under way and without one, where the times showed it.
    votes: BTreeMap<i128, (u64, u64)>,
}

impl Rhythm {
    /// From sockets in the order of their samples, each with itself in the previous sample. `None` if exchanges have different numbers of segments. `by_wholes`: of many
    /// connections few are met twice, and of idle ones nothing grows; then what they carried since they began tells it, as long as most have no request under way.
    pub(crate) fn of<'a>(
        pairs: impl Iterator<Item = (&'a RequestSocket, Option<&'a RequestSocket>)> + Clone,
        by_wholes: bool,
    ) -> Option<Self> {
        // Connections with as many exchanges each would agree on any ratio.
        let by_wholes =
            by_wholes && most(wholes(pairs.clone(), [segments_received, segments_received]).map(|[segments, _]| segments)).is_none();
        let whole = |counts: [Count; 2]| wholes(pairs.clone(), counts).filter(|_| by_wholes);
        let ratio = |(sent, received): (Count, Count)| {
            let counts = [sent, received];
            ratio_of(growths(pairs.clone(), counts)).or_else(|| most(whole(counts).map(lowest)))
        };
        // A request of one segment, always of the same length.
        let length = || {
            let each = |[bytes, segments]: [u64; 2]| (bytes / segments, bytes % segments);
            let counts = [bytes_received, segments_received];
            most(growths(pairs.clone(), counts).map(each)).or_else(|| most(whole(counts).map(each)))
        };
        let bytes = ratio((|times| times.bytes_sent, bytes_received)).zip(length().filter(|(_, rest)| *rest == 0));
        let bytes = bytes.map(|(out_in, (length, _))| (out_in, length));
        let segments = ratio((|times| times.data_segs_out, segments_received));
        if bytes.is_none() && segments.is_none() {
            return None;
        }
        let mut rhythm = Self { out_in: segments.unwrap_or_default(), bytes, votes: BTreeMap::new() };
        for (now, _) in pairs {
            let Some(times) = now.times.as_ref().filter(|_| now.receive_queue == 0 && now.send_queue == 0) else { continue };
            // A connection on which nothing was ever asked shows no request, whatever its times.
            if times.never_received() {
                continue;
            }
            if let (Some(remainder), Some(is_pending)) = (rhythm.remainder(times), times.received_last()) {
                let vote = rhythm.votes.entry(remainder).or_default();
                if is_pending { vote.0 += 1 } else { vote.1 += 1 }
            }
        }
        Some(rhythm)
    }

    /// Answer segments still owed for the requests received.
    fn remainder(&self, times: &RequestTimes) -> Option<i128> {
        let (n_out, n_in) = self.out_in;
        Some(i128::from(times.data_segs_in?) * i128::from(n_out) - i128::from(times.data_segs_out?) * i128::from(n_in))
    }

    /// True if a request came after the last answer.
    pub(crate) fn is_pending(&self, times: &RequestTimes, tls: bool) -> Option<bool> {
        if let Some(is_pending) = self.is_pending_by_bytes(times) {
            return Some(is_pending);
        }
        if self.out_in == (0, 0) {
            return None;
        }
        let remainder = self.remainder(times)?;
        if let Some((with, without)) = self.votes.get(&remainder) {
            let total = with + without;
            if total >= PAIRS_MIN && (*with.max(without)) as f64 >= SAME_SHARE_MIN * total as f64 {
                return Some(with > without);
            }
        }
        // TLS begins with messages of another kind.
        match remainder {
            _ if tls => None,
            0 => Some(false),
            1.. => Some(true),
            _ => None,
        }
    }

    /// The same by bytes: whole requests are owed, or none. `None` if the bytes fit neither: some message had another length.
    fn is_pending_by_bytes(&self, times: &RequestTimes) -> Option<bool> {
        let ((n_out, n_in), length) = self.bytes?;
        let owed = i128::from(times.bytes_received?) * i128::from(n_out) - i128::from(times.bytes_sent?) * i128::from(n_in);
        match owed {
            0 => Some(false),
            1.. if owed % (i128::from(length) * i128::from(n_out)).max(1) == 0 => Some(true),
            _ => None,
        }
    }
}

type Count = fn(&RequestTimes) -> Option<u64>;

fn bytes_received(times: &RequestTimes) -> Option<u64> {
    times.bytes_received
}

fn segments_received(times: &RequestTimes) -> Option<u64> {
    times.data_segs_in
}

/// Growth of two counts between two samples of a socket, where both grew.
fn growths<'a>(
    pairs: impl Iterator<Item = (&'a RequestSocket, Option<&'a RequestSocket>)>,
    counts: [Count; 2],
) -> impl Iterator<Item = [u64; 2]> {
    pairs.filter_map(move |(now, before)| {
        let (now, before) = (now.times.as_ref()?, before?.times.as_ref()?);
        // The rest of an answer of which a part was sent is owed without another request.
        if [now, before].iter().any(|times| times.unsent.is_some_and(|bytes| bytes > 0)) {
            return None;
        }
        let grew = |of: Count| of(now)?.checked_sub(of(before)?).filter(|growth| *growth > 0);
        Some([grew(counts[0])?, grew(counts[1])?])
    })
}

/// The ratio of two counts in an exchange, in lowest terms: most of their growths have it, and nearly all others differ from it by the same amount, which is a request that is
/// under way at one of the two samples. `None` if the growths have no ratio.
fn ratio_of(growths: impl Iterator<Item = [u64; 2]>) -> Option<(u64, u64)> {
    let growths: Vec<[u64; 2]> = growths.collect();
    let mut ratios: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    growths.iter().for_each(|growth| *ratios.entry(lowest(*growth)).or_default() += 1);
    let ((n_out, n_in), same) = ratios.into_iter().max_by_key(|(_, count)| *count)?;
    let mut owed: BTreeMap<u128, usize> = BTreeMap::new();
    for [grew_out, grew_in] in &growths {
        let (due, paid) = (u128::from(*grew_in) * u128::from(n_out), u128::from(*grew_out) * u128::from(n_in));
        *owed.entry(due.abs_diff(paid)).or_default() += 1;
    }
    let another = owed.iter().filter(|(amount, _)| **amount > 0).map(|(_, count)| *count).max().unwrap_or(0);
    let is_usual = same as u64 >= PAIRS_MIN && 2 * same >= growths.len();
    (is_usual && (same + another) as f64 >= SAME_SHARE_MIN * growths.len() as f64).then_some((n_out, n_in))
}

fn lowest([n_out, n_in]: [u64; 2]) -> (u64, u64) {
    let divisor = gcd(n_out, n_in);
    (n_out / divisor, n_in / divisor)
}

/// Two counts of each socket since it began, where neither is zero. A connection with one request tells nothing that it does not show by itself.
fn wholes<'a>(
    pairs: impl Iterator<Item = (&'a RequestSocket, Option<&'a RequestSocket>)>,
    counts: [Count; 2],
) -> impl Iterator<Item = [u64; 2]> {
    pairs.filter_map(move |(now, _)| {
        let times = now.times.as_ref().filter(|times| times.data_segs_in.is_some_and(|segments| segments > 1))?;
        let whole = |of: Count| of(times).filter(|count| *count > 0);
        Some([whole(counts[0])?, whole(counts[1])?])
    })
}

/// The value that most have, if they are enough and most of all.
fn most<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let total: u64 = counts.values().sum();
    let (value, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= PAIRS_MIN && count as f64 >= SAME_SHARE_MIN * total as f64).then_some(value)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The kernel's clock tick, milliseconds: the greatest common divisor of the times, at most the longest tick. 1 if there are no times.
pub(crate) fn tick_ms(sockets: impl Iterator<Item = RequestTimes>) -> u64 {
    /// Larger times are rounded (jiffies_to_msecs).
    const EXACT_MS: u64 = 10_000;
    /// The longest tick (CONFIG_HZ=100).
    const TICK_MS_MAX: u64 = 10;
    let all = sockets.flat_map(|times| [times.last_data_recv_ms, times.last_data_sent_ms]);
    let found = all.filter(|ms| (1..EXACT_MS).contains(ms)).take(20_000).fold(0, gcd);
    found.clamp(1, TICK_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{SocketAddress, TcpState, UnixPeer};

    fn socket(recv_ms: u64, sent_ms: u64, n_in: u64, n_out: u64) -> RequestSocket {
        let times = RequestTimes {
            last_data_recv_ms: recv_ms,
            last_data_sent_ms: sent_ms,
            data_segs_in: Some(n_in),
            data_segs_out: Some(n_out),
            ..RequestTimes::default()
        };
        RequestSocket {
            address: SocketAddress::Unix { path: None, peer: UnixPeer::Unknown },
            cookie: 1,
            state: TcpState::Established,
            inode: 1,
            receive_queue: 0,
            send_queue: 0,
            times: Some(times),
        }
    }

    fn rhythm(all: &[RequestSocket]) -> Option<Rhythm> {
        Rhythm::of(all.iter().enumerate().map(|(at, now)| (now, at.checked_sub(1).map(|at| &all[at]))), false)
    }

    #[test]
    fn answers_of_three_segments_show_a_request_in_the_same_tick() {
        let all: Vec<RequestSocket> = (1..6).map(|n| socket(8, 8, 10 * n, 30 * n - 3)).collect();
        let found = rhythm(&all).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), false);
        assert_eq!((at(51, 150), at(51, 153), at(51, 154)), (Some(true), Some(false), None));
        assert_eq!(found.is_pending(&socket(8, 8, 51, 150).times.unwrap(), true), None, "TLS has a beginning of its own");
    }

    #[test]
    fn bytes_tell_it_where_an_answer_had_another_number_of_segments() {
        // Requests of 41 bytes, answers of 130; now and then an answer leaves in one segment in place of two.
        let with = |n_in: u64, n_out: u64, answered: u64| {
            let mut socket = socket(8, 8, n_in, n_out);
            socket.times =
                socket.times.map(|times| RequestTimes { bytes_received: Some(41 * n_in), bytes_sent: Some(130 * answered), ..times });
            socket
        };
        let all: Vec<RequestSocket> = (1..8).map(|n| with(10 * n + 1, 20 * n - n, 10 * n)).collect();
        let found = rhythm(&all).unwrap();
        let at = |n_in, n_out, answered| found.is_pending(&with(n_in, n_out, answered).times.unwrap(), false);
        assert_eq!((at(101, 150, 100), at(101, 190, 101), at(103, 190, 101)), (Some(true), Some(false), Some(true)));
        let mut other = with(101, 190, 100).times.unwrap();
        other.bytes_sent = Some(130 * 100 + 7);
        assert_eq!(found.is_pending_by_bytes(&other), None, "an answer of another length");
    }

    #[test]
    fn an_answer_of_which_a_part_is_sent_tells_nothing_of_the_whole() {
        // Requests of 50 bytes, answers of 150 and 30. In every fourth sample the second part is held back.
        let one = |n: u64, is_held: bool| {
            let mut socket = socket(8, 8, n, 2 * n - u64::from(is_held));
            let sent = 180 * n - if is_held { 30 } else { 0 };
            let unsent = Some(if is_held { 30 } else { 0 });
            socket.times = socket.times.map(|times| RequestTimes { bytes_received: Some(50 * n), bytes_sent: Some(sent), unsent, ..times });
            socket
        };
        let all: Vec<RequestSocket> = (1..16).map(|n| one(10 * n, n % 4 == 0)).collect();
        let found = rhythm(&all).unwrap();
        let owed = RequestTimes { bytes_received: Some(50 * 91), ..one(90, false).times.unwrap() };
        assert_eq!((found.is_pending(&owed, false), found.is_pending(&one(91, false).times.unwrap(), false)), (Some(true), Some(false)));
    }

    #[test]
    fn idle_connections_that_are_met_once_tell_what_an_exchange_is() {
        // Answers of several lengths in one segment each.
        let one = |n: u64| {
            let mut socket = socket(8, 8, n, n);
            socket.times =
                socket.times.map(|times| RequestTimes { bytes_received: Some(50 * n), bytes_sent: Some(200 * n + 13 * n % 7), ..times });
            socket
        };
        let all: Vec<RequestSocket> = (1..10).map(one).collect();
        let found = Rhythm::of(all.iter().map(|now| (now, None)), true).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), false);
        assert_eq!((at(7, 7), at(8, 7)), (Some(false), Some(true)));
    }

    #[test]
    fn over_tls_sockets_with_clear_times_calibrate_the_others() {
        let all: Vec<RequestSocket> = (1..6).map(|n| socket(8, 40, 10 * n + 2, 10 * n + 3)).collect();
        let found = rhythm(&all).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), true);
        assert_eq!((at(72, 73), at(72, 74)), (Some(true), None));
    }

    #[test]
    fn a_request_under_way_at_one_of_two_samples_hides_no_rhythm() {
        // Two segments for each answer. At every other sample a request is under way.
        let one = |n: u64, is_asked: bool| if is_asked { socket(4, 8, n + 1, 2 * n) } else { socket(8, 4, n, 2 * n) };
        let all: Vec<RequestSocket> = (1..40).map(|n| one(3 * n, n % 4 < 2)).collect();
        let found = rhythm(&all).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), false);
        assert_eq!((at(50, 100), at(51, 100)), (Some(false), Some(true)));
    }

    #[test]
    fn a_connection_that_was_never_asked_tells_nothing_of_others() {
        // A client that opened one connection too many, which stays unused in every sample.
        let used = |n: u64| socket(8, 8, 10 * n, 10 * n);
        let all: Vec<RequestSocket> = (1..6).flat_map(|n| [socket(400 * n, 400 * n, 0, 0), used(n)]).collect();
        let pairs = all.iter().enumerate().map(|(at, now)| (now, at.checked_sub(2).map(|at| &all[at])));
        let found = Rhythm::of(pairs, false).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), false);
        assert_eq!((at(51, 51), at(51, 50)), (Some(false), Some(true)));
    }

    #[test]
    fn answers_of_all_lengths_have_no_rhythm() {
        let all: Vec<RequestSocket> = (1..9).map(|n| socket(8, 8, 10 * n, 10 * n * n + 3 * n)).collect();
        assert_eq!(rhythm(&all), None);
        assert_eq!(rhythm(&[]), None);
    }

    #[test]
    fn the_tick_is_the_common_divisor_of_all_times() {
        let of = |all: &[u64]| {
            tick_ms(all.iter().map(|ms| RequestTimes { last_data_recv_ms: *ms, last_data_sent_ms: 0, ..RequestTimes::default() }))
        };
        assert_eq!((of(&[8, 12, 400]), of(&[1, 4]), of(&[]), of(&[400])), (4, 1, 1, 10));
    }
}
