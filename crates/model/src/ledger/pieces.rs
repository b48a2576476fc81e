//! Connections on which a server sends without being asked again: events, which are no request under way, and responses that leave in pieces, which are until the last of them.

use std::collections::{HashMap, HashSet};

use crate::facts::Context;
use crate::observation::{RequestSample, RequestSocket, RequestTimes};

use super::connection_state::{PIECE_BYTES_MIN, received_more, sent_without_request};
use super::connections::Pair;
use super::count::Counts;

/// A connection streams if it sent without a request in this many intervals between samples.
const STREAMS_MIN: u32 = 3;

/// Requests that must have been answered in the same number of segments each before that number is known.
const SAME_MIN: u32 = 3;

/// Counts a response that is leaving if its sender has nothing left to do for it until more of it comes: its last segment is on its way, or a piece is held for more.
pub(super) fn sent_on(counts: &mut Counts, times: Option<&RequestTimes>, weight: f64) {
    match times.map(|times| (times.unacked, times.unsent)) {
        Some((Some(1), Some(0))) => counts.last_segment += weight,
        Some((Some(0), Some(unsent))) if unsent > 0 => counts.corked += weight,
        _ => {}
    }
}

/// What a connection did in the intervals between samples.
#[derive(Debug, Clone, Copy, Default)]
struct Intervals {
    /// It sent and received nothing.
    alone: u32,
    /// The same, and the segments were as long as those of a message that has more of them.
    in_pieces: u32,
    /// It received data.
    asked: u32,
    replies: Replies,
}

/// Segments that a connection sent for each that it received, from the most that were sent before the next request came.
#[derive(Debug, Clone, Copy, Default)]
struct Replies {
    /// At the last sample, and when the request before that was answered.
    now: Option<Sent>,
    before: Option<Sent>,
    /// `None` before the first, zero if they differ.
    each: Option<u64>,
    steps: u32,
    /// Bytes and segments of these.
    bytes: u64,
    segments: u64,
}

/// Counters of a connection: segments received and sent, and bytes sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    came: u64,
    segments: u64,
    bytes: u64,
}

impl Replies {
    fn add(&mut self, socket: &RequestSocket) {
        let counted =
            |times: &RequestTimes| Some(Sent { came: times.data_segs_in?, segments: times.data_segs_out?, bytes: times.bytes_sent? });
        let Some(now) = socket.times.as_ref().and_then(counted) else { return };
        if let Some(last) = self.now.filter(|last| last.came < now.came) {
            if let Some(first) = self.before {
                let (requests, segments) = (last.came.saturating_sub(first.came), last.segments.saturating_sub(first.segments));
                let each = segments.checked_rem(requests).filter(|rest| *rest == 0).map_or(0, |_| segments / requests);
                self.each = Some(if self.each.is_none_or(|known| known == each) { each } else { 0 });
                self.steps += 1;
                self.segments += segments;
                self.bytes += last.bytes.saturating_sub(first.bytes);
            }
            self.before = Some(last);
        }
        self.now = Some(now);
    }

    /// The segments of each response, if each has the same number of two or more.
    fn each(self) -> Option<u64> {
        self.each.filter(|each| *each >= 2 && self.steps >= SAME_MIN)
    }

    /// True if they are shorter than those of a message that needs several.
    fn are_short(self) -> bool {
        self.bytes < PIECE_BYTES_MIN * self.segments
    }
}

impl Intervals {
    /// Adds an interval. True if it sent alone.
    fn add(&mut self, socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
        self.replies.add(socket);
        let is_alone = sent_without_request(socket, before);
        if is_alone {
            self.alone += 1;
            self.in_pieces += u32::from(is_long(socket, before));
        } else if received_more(socket, before) {
            self.asked += 1;
        }
        is_alone
    }

    /// True if its server sent long pieces, again and again and in a good part of all intervals with anything, and was asked for more than one response. A sample may as well meet a server
    /// that lost its core in the middle of a response.
    fn answers_in_pieces(self) -> bool {
        self.asked > 0 && self.in_pieces >= STREAMS_MIN && 2 * self.in_pieces > self.alone && 4 * self.in_pieces >= self.asked
    }

    /// True if it sent alone in more intervals than one for each that brought it data: the rest of an answer may come after a pause.
    fn streams(self) -> bool {
        self.alone >= STREAMS_MIN && self.alone > self.asked + 1 && !self.answers_in_pieces()
    }
}

/// How the connections of one namespace send.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    intervals: HashMap<u64, Intervals>,
    /// Connections with the time of a sample after which the rest of a response was sent.
    unfinished: HashSet<(u64, u64)>,
    asked: Asked,
}

/// Who asks, and how.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// A load knows of its own requests which are under way.
    by_load: bool,
    over_tls: bool,
}

impl Pieces {
    pub(super) fn of(ctx: &Context<'_>, samples: &[&(u64, RequestSample)], by_sample: &[Vec<Pair<'_>>]) -> Self {
        let asked = Asked { by_load: ctx.obs.load.is_some(), over_tls: ctx.obs.request.scheme == "https" };
        Self { asked, ..Self::among(samples, by_sample) }
    }

    fn among(samples: &[&(u64, RequestSample)], by_sample: &[Vec<Pair<'_>>]) -> Self {
        let mut found = Self::default();
        let mut last_us = 0;
        for ((at_us, _), pairs) in samples.iter().zip(by_sample) {
            for (socket, before) in pairs.iter().filter(|(socket, _)| socket.cookie != 0) {
                if found.intervals.entry(socket.cookie).or_default().add(socket, *before) {
                    found.unfinished.insert((socket.cookie, last_us));
                }
            }
            last_us = *at_us;
        }
        found
    }

    /// True if the connection sends repeatedly without a request.
    pub(super) fn streams(&self, cookie: u64) -> bool {
        self.intervals.get(&cookie).is_some_and(|of_one| of_one.streams())
    }

    /// True if the responses on this connection leave in long pieces.
    pub(super) fn are_usual(&self, cookie: u64) -> bool {
        self.intervals.get(&cookie).is_some_and(|of_one| of_one.answers_in_pieces())
    }

    /// How far a response has come on a connection of a tier that looks idle in the sample of this time.
    pub(super) fn at(&self, socket: &RequestSocket, at_us: u64, tier: usize) -> Option<Piece> {
        self.seen(socket, at_us)?.told(self.asked, tier == 0)
    }

    fn seen(&self, socket: &RequestSocket, at_us: u64) -> Option<Piece> {
        let of_one = self.intervals.get(&socket.cookie)?;
        let sent = || socket.times.and_then(|times| times.data_segs_out);
        if of_one.answers_in_pieces() && self.unfinished.contains(&(socket.cookie, at_us)) {
            Some(Piece::MoreFollows)
        } else if of_one.replies.each().zip(sent()).is_some_and(|(each, sent)| sent % each != 0) {
            Some(Piece::Lacks { is_short: of_one.replies.are_short() })
        } else {
            of_one.answers_in_pieces().then_some(Piece::MayFollow)
        }
    }
}

/// How far a response has come that leaves in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// More of it was sent later, without another request.
    MoreFollows,
    /// Each response took the same number of segments, and all that were sent on this connection are no multiple of it. The rest is still to come, unless something else was sent before: an
    /// answer of another length, or what a database or TLS says at the beginning.
    Lacks {
        /// The segments are short: they were written one by one, and are no parts of a long message.
        is_short: bool,
    },
    /// Not known: the rest may have been sent just before the next request.
    MayFollow,
}

impl Piece {
    /// The same with what is known of the connection. Under a load the requests behind its own are there. Whether a long response lacks something shows only where nothing but responses is sent.
    fn told(self, asked: Asked, is_first: bool) -> Option<Self> {
        match self {
            Self::MoreFollows => Some(self),
            _ if is_first && asked.by_load => None,
            Self::Lacks { .. } if is_first => Some(Self::MayFollow).filter(|_| !asked.over_tls),
            Self::Lacks { is_short: false } => None,
            Self::Lacks { is_short: true } if asked.by_load => Some(Self::MoreFollows),
            Self::Lacks { is_short: true } | Self::MayFollow => Some(Self::MayFollow),
        }
    }
}

/// True if what was sent between the two samples went in segments as long as those of a message that needs several. Events are short.
fn is_long(socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
    let sent = |socket: &RequestSocket| socket.times.and_then(|times| times.bytes_sent.zip(times.data_segs_out));
    let grew = sent(socket).zip(before.and_then(sent));
    grew.is_some_and(|((bytes, segments), (bytes_before, segments_before))| {
        bytes.saturating_sub(bytes_before) >= PIECE_BYTES_MIN * segments.saturating_sub(segments_before).max(1)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::connection_state::tests::socket;
    use super::super::connections::pairs;
    use super::*;

    /// What a server does on one connection: it answers each request in pieces of so many bytes, with a pause after each but the last, and the client asks again after another.
    #[derive(Debug, Clone, Copy)]
    struct Server {
        pieces: u64,
        piece_bytes: u64,
        pause_ms: u64,
        think_ms: u64,
    }

    impl Server {
        /// The socket at a time, and whether a response is under way.
        fn at(self, ms: u64) -> (RequestSocket, bool) {
            let answer_ms = (self.pieces - 1) * self.pause_ms;
            let turn_ms = answer_ms + self.think_ms;
            let (turn, since_ms) = (ms / turn_ms, ms % turn_ms);
            let sent = (since_ms / self.pause_ms + 1).min(self.pieces);
            let all = turn * self.pieces + sent;
            let segments = self.piece_bytes.div_ceil(60_000);
            let times = RequestTimes {
                last_data_recv_ms: since_ms,
                last_data_sent_ms: since_ms - (sent - 1) * self.pause_ms,
                data_segs_in: Some(turn + 1),
                data_segs_out: Some(all * segments),
                bytes_received: Some(100 * (turn + 1)),
                bytes_sent: Some(all * self.piece_bytes),
                ..RequestTimes::default()
            };
            (socket(Some(times)), sent < self.pieces)
        }

        /// The samples of a while, with their times in milliseconds and whether a response was under way at each.
        fn sampled(self, gaps_ms: &[u64]) -> (Vec<(u64, RequestSample)>, Vec<bool>) {
            let mut ms = 0;
            let one = |gap_ms: &u64| {
                ms += gap_ms;
                let (socket, is_under_way) = self.at(ms);
                ((ms, RequestSample { sockets: vec![socket], ..RequestSample::default() }), is_under_way)
            };
            gaps_ms.iter().map(one).unzip()
        }
    }

    fn found(samples: &[(u64, RequestSample)]) -> Pieces {
        let samples: Vec<&(u64, RequestSample)> = samples.iter().collect();
        Pieces::among(&samples, &pairs(&samples))
    }

    #[test]
    fn events_are_a_stream_and_responses_in_pieces_are_none() {
        let events = Server { pieces: 1_000, piece_bytes: 60, pause_ms: 100, think_ms: 1 };
        let (samples, _) = events.sampled(&[200; 40]);
        assert!(found(&samples).streams(1) && found(&samples).seen(&samples[3].1.sockets[0], samples[3].0).is_none());
        let paced = Server { pieces: 3, piece_bytes: 50_000, pause_ms: 700, think_ms: 1 };
        let (samples, under_way) = paced.sampled(&[190; 60]);
        let of_all = found(&samples);
        assert!(!of_all.streams(1) && of_all.are_usual(1));
        let proven = samples.iter().filter(|(ms, sample)| of_all.seen(&sample.sockets[0], *ms) == Some(Piece::MoreFollows)).count();
        assert!(proven >= 7 && under_way.iter().all(|is_under_way| *is_under_way), "{proven}");
        // A response that leaves at once, whatever its length.
        let whole = Server { pieces: 1, piece_bytes: 500_000, pause_ms: 1, think_ms: 300 };
        let (samples, _) = whole.sampled(&[190; 60]);
        let of_all = found(&samples);
        assert!(samples.iter().all(|(ms, sample)| of_all.seen(&sample.sockets[0], *ms).is_none()));
    }

    #[test]
    fn a_head_that_is_sent_at_once_leaves_its_response_unfinished() {
        let server = Server { pieces: 2, piece_bytes: 150, pause_ms: 230, think_ms: 1 };
        let (samples, _) = server.sampled(&[200; 40]);
        let of_all = found(&samples);
        let lacking = samples.iter().filter(|(ms, sample)| of_all.seen(&sample.sockets[0], *ms) == Some(SHORT)).count();
        assert!(lacking > 30, "{lacking}");
    }

    const SHORT: Piece = Piece::Lacks { is_short: true };

    #[test]
    fn what_lacks_something_is_under_way_only_where_nothing_else_explains_it() {
        let long = Piece::Lacks { is_short: false };
        let watched = Asked::default();
        let (loaded, over_tls) = (Asked { by_load: true, ..watched }, Asked { over_tls: true, ..watched });
        let rows = [
            (SHORT, loaded, false, Some(Piece::MoreFollows)),
            (SHORT, watched, false, Some(Piece::MayFollow)),
            (SHORT, loaded, true, None),
            (SHORT, over_tls, true, None),
            (long, watched, true, Some(Piece::MayFollow)),
            (long, loaded, false, None),
            (long, watched, false, None),
            (Piece::MoreFollows, loaded, true, Some(Piece::MoreFollows)),
        ];
        for (piece, asked, is_first, told) in rows {
            assert_eq!(piece.told(asked, is_first), told, "{piece:?} {asked:?} {is_first}");
        }
    }

    proptest! {
        /// What is said to follow does: whatever the pieces, the pauses and the samples are, no idle connection has a response under way.
        #[test]
        fn nothing_follows_on_an_idle_connection(
            (pieces, piece_bytes) in (1..6_u64, 40..200_000_u64),
            (pause_ms, think_ms) in (1..2_000_u64, 1..2_000_u64),
            gaps_ms in proptest::collection::vec(20..600_u64, 2..80),
        ) {
            let (samples, under_way) = Server { pieces, piece_bytes, pause_ms, think_ms }.sampled(&gaps_ms);
            let of_all = found(&samples);
            for ((ms, sample), is_under_way) in samples.iter().zip(under_way) {
                let piece = of_all.seen(&sample.sockets[0], *ms);
                prop_assert!(is_under_way || !matches!(piece, Some(Piece::MoreFollows | Piece::Lacks { .. })), "{piece:?} at {ms}");
            }
        }
    }
}
