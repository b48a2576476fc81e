//! The ratio of answer segments to request segments at one listener. If a request and an answer fall into the same clock tick, the counts of both show which
//! was last.

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
    /// For each remainder of the counters: how often it was seen with a request under way and without one, where the times showed it.
    votes: BTreeMap<i128, (u64, u64)>,
}

impl Rhythm {
    /// From sockets in the order of their samples, each with itself in the previous sample. `None` if exchanges have different numbers of segments.
    pub(crate) fn of<'a>(pairs: impl Iterator<Item = (&'a RequestSocket, Option<&'a RequestSocket>)> + Clone) -> Option<Self> {
        let mut counts: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (now, before) in pairs.clone() {
            let Some((now, before)) = now.times.as_ref().zip(before.and_then(|before| before.times.as_ref())) else { continue };
            let grew = |of: fn(&RequestTimes) -> Option<u64>| of(now)?.checked_sub(of(before)?);
            let (Some(n_in @ 1..), Some(n_out @ 1..)) = (grew(|times| times.data_segs_in), grew(|times| times.data_segs_out)) else {
                continue;
            };
            let divisor = gcd(n_out, n_in);
            *counts.entry((n_out / divisor, n_in / divisor)).or_default() += 1;
        }
        let total: u64 = counts.values().sum();
        let (out_in, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        if count < PAIRS_MIN || (count as f64) < SAME_SHARE_MIN * total as f64 {
            return None;
        }
        let mut rhythm = Self { out_in, votes: BTreeMap::new() };
        for (now, _) in pairs {
            let Some(times) = now.times.as_ref().filter(|_| now.receive_queue == 0 && now.send_queue == 0) else { continue };
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
        Rhythm::of(all.iter().enumerate().map(|(at, now)| (now, at.checked_sub(1).map(|at| &all[at]))))
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
    fn over_tls_sockets_with_clear_times_calibrate_the_others() {
        let all: Vec<RequestSocket> = (1..6).map(|n| socket(8, 40, 10 * n + 2, 10 * n + 3)).collect();
        let found = rhythm(&all).unwrap();
        let at = |n_in, n_out| found.is_pending(&socket(8, 8, n_in, n_out).times.unwrap(), true);
        assert_eq!((at(72, 73), at(72, 74)), (Some(true), None));
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
