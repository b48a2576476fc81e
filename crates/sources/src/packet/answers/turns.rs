//! Which packets that look like the beginning of a response are one. A response begins after a request, and not within the body of another one: whoever asks for a file that quotes
//! responses, in segments of their own choosing, gets packets that begin like responses.

use std::collections::HashMap;
use std::net::SocketAddr;

/// The shortest request: "GET / HTTP/1.0", with the line after it.
const REQUEST_BYTES_MIN: u32 = 16;
/// Connections in one generation. Those that show nothing for a whole generation are forgotten.
const GENERATION_MAX: usize = 8_192;

/// A server's and a client's address.
pub(super) type Connection = (SocketAddr, SocketAddr);

/// A packet from a server. Numbers of bytes are those of TCP (RFC 9293): they begin anywhere and wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) connection: Connection,
    /// The number of its first byte.
    pub(super) sequence: u32,
    /// The number of the next byte that the server expects of the client.
    pub(super) acknowledged: u32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The connection begins (SYN and ACK).
    Accepts,
    /// It begins like a response, which has so many bytes if it says so.
    Response { status: u16, bytes: Option<u64> },
}

/// Where the connections of one socket's time stand.
#[derive(Debug, Default)]
pub(super) struct Turns {
    young: HashMap<Connection, Last>,
    old: HashMap<Connection, Last>,
}

/// The last response of a connection, or its beginning.
#[derive(Debug, Clone, Copy)]
struct Last {
    acknowledged: u32,
    /// The number of the first byte behind its body, if it is known.
    end: Option<u32>,
    /// True if the connection was seen to begin.
    is_whole: bool,
}

/// A response that began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Began {
    pub(super) status: u16,
    /// False on a connection that was there before: its client may have made it look so.
    pub(super) is_sure: bool,
}

impl Turns {
    /// The response that the packet begins. Of a connection that was there before nothing is known until its first one, which may be a part of another response, so it is not
    /// counted.
    pub(super) fn began(&mut self, packet: &Packet) -> Option<Began> {
        let now = |end, is_whole| Last { acknowledged: packet.acknowledged, end, is_whole };
        let (status, bytes) = match packet.what {
            What::Accepts => {
                self.remember(packet.connection, now(None, true));
                return None;
            }
            What::Response { status, bytes } => (status, bytes),
        };
        // A longer body than half of all numbers ends beyond what can be compared.
        let end = bytes.map(|bytes| packet.sequence.wrapping_add(bytes.min(i32::MAX as u64) as u32));
        let Some(last) = self.young.get(&packet.connection).or_else(|| self.old.get(&packet.connection)).copied() else {
            self.remember(packet.connection, now(end, false));
            return None;
        };
        let is_within = last.end.is_some_and(|end| is_before(packet.sequence, end));
        let asked = packet.acknowledged.wrapping_sub(last.acknowledged);
        if is_within || asked < REQUEST_BYTES_MIN || asked > i32::MAX as u32 {
            return None;
        }
        self.remember(packet.connection, now(end, last.is_whole));
        Some(Began { status, is_sure: last.is_whole })
    }

    fn remember(&mut self, connection: Connection, last: Last) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(connection, last);
    }
}

fn is_before(number: u32, end: u32) -> bool {
    let left = end.wrapping_sub(number);
    left > 0 && left <= i32::MAX as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(sequence: u32, acknowledged: u32, what: What) -> Packet {
        Packet { connection: ("10.0.0.1:80".parse().unwrap(), "10.0.0.9:40000".parse().unwrap()), sequence, acknowledged, what }
    }

    fn response(status: u16, bytes: Option<u64>) -> What {
        What::Response { status, bytes }
    }

    /// The status of a response on a connection that was seen to begin.
    fn sure(turns: &mut Turns, packet: &Packet) -> Option<u16> {
        turns.began(packet).map(|began| {
            assert!(began.is_sure, "{began:?}");
            began.status
        })
    }

    #[test]
    fn a_response_follows_a_request() {
        // Numbers that wrap around.
        let (first, asked) = (u32::MAX - 50, u32::MAX - 10);
        let mut turns = Turns::default();
        let mut status = |sequence: u32, acknowledged: u32, what| {
            sure(&mut turns, &packet(first.wrapping_add(sequence), asked.wrapping_add(acknowledged), what))
        };
        assert_eq!(status(0, 0, What::Accepts), None);
        assert_eq!(status(1, 80, response(200, Some(1_000))), Some(200));
        assert_eq!(status(1, 80, response(200, Some(1_000))), None, "sent again, or seen at another interface");
        assert_eq!(status(537, 80, response(500, None)), None, "a part of its body");
        assert_eq!(status(537, 400, response(500, None)), None, "the same, and the client has sent its next request");
        assert_eq!(status(1_001, 400, response(404, None)), Some(404));
        assert_eq!(status(1_537, 400, response(500, None)), None, "without a length a request is missing");
        assert_eq!(status(1_537, 410, response(500, None)), None, "too short for a request");
        assert_eq!(status(9_001, 480, response(500, None)), Some(500));
    }

    #[test]
    fn a_connection_that_was_there_before_counts_from_its_second_response() {
        let mut turns = Turns::default();
        assert_eq!(turns.began(&packet(5_000, 900, response(500, None))), None);
        assert_eq!(turns.began(&packet(5_536, 900, response(500, None))), None);
        let began = turns.began(&packet(7_000, 990, response(200, None)));
        assert_eq!(began, Some(Began { status: 200, is_sure: false }));
    }

    #[test]
    fn connections_without_end_are_forgotten() {
        let mut turns = Turns::default();
        for port in 0..60_000_u16 {
            let connection = ("10.0.0.1:80".parse().unwrap(), SocketAddr::from(([10, 0, 0, 9], port)));
            turns.began(&Packet { connection, ..packet(0, 0, What::Accepts) });
        }
        assert!(turns.young.len() + turns.old.len() <= 2 * GENERATION_MAX);
    }

    proptest! {
        /// Whatever a client does, a response with a length has one status.
        #[test]
        fn within_a_body_nothing_begins(start: u32, asked: u32, bytes in 1..1_000_000_u64, parts in proptest::collection::vec((0.0..1.0_f64, any::<u16>()), 0..50)) {
            let mut turns = Turns::default();
            turns.began(&packet(start.wrapping_sub(1), asked, What::Accepts));
            prop_assert_eq!(sure(&mut turns, &packet(start, asked.wrapping_add(90), response(200, Some(bytes)))), Some(200));
            for (at, more) in parts {
                let sequence = start.wrapping_add((at * bytes as f64) as u32);
                let inside = packet(sequence, asked.wrapping_add(90 + u32::from(more)), response(500, None));
                prop_assert_eq!(turns.began(&inside), None);
            }
        }
    }
}
