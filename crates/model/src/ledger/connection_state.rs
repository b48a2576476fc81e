//! The state of one connection, from its accepted end: a pure function of the socket, the same socket in the previous sample, and the rhythm of its listener's
//! connections.

use crate::observation::load::LoadExchange;
use crate::observation::{RequestSocket, RequestTimes, TcpState};

use super::pieces::Piece;
use super::rhythm::Rhythm;

/// Segment size from which received data counts as part of a long message: the least segment that every host must accept (RFC 9293, 3.7.1).
pub(super) const PIECE_BYTES_MIN: u64 = 536;

/// Bytes that are never a whole request: the header of a FastCGI record. The last record of a request is a header alone (FCGI_HEADER_LEN, FastCGI 1.0, 3.3).
const HEADER_BYTES: u32 = 8;

/// Segments of a client up to its first request over TLS: its hello, the end of its handshake, and the request, of which TLS 1.3 may join the last two (RFC
/// 8446, 2; RFC 5246, 7.3).
const FIRST_OVER_TLS: u64 = 3;

/// The state of a connection and its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionState {
    /// The connection is being established.
    Handshake,
    /// The connection is not accepted. The accept queue counts it.
    Unaccepted,
    /// TLS is being set up, and it is the server's turn.
    TlsHandshake,
    /// The request arrived and was not read.
    Unread,
    /// More of the request keeps arriving.
    Receiving,
    /// The request was read and not answered.
    Service,
    /// The answer is being sent.
    Sending,
    /// A request and an answer fall into one clock tick, and their order is unknown.
    Undecided,
    /// The server sends without a request: a stream of events, or an answer in pieces.
    Streaming,
    /// The connection waits for the client: its only request is still to come, or the answer has arrived and the client has not closed.
    AtClient,
    /// The client closed its side.
    Closed,
    /// No request is under way.
    Idle,
}

impl ConnectionState {
    /// True if a whole request has arrived and its answer has not.
    pub(crate) fn is_after_the_request(self) -> bool {
        matches!(self, Self::Unaccepted | Self::Unread | Self::Service | Self::Sending)
    }
}

/// What one of the two ends says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Request,
    Answer,
}

/// What is known of a connection besides the socket itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionContext<'a> {
    /// The same socket in the previous sample.
    pub(crate) before: Option<&'a RequestSocket>,
    /// Its listener speaks TLS.
    pub(crate) tls: bool,
    /// What the load says of it. Over TLS the times alone do not tell: servers send session tickets after the request that came with the end of the handshake.
    pub(crate) exchange: Option<LoadExchange>,
    /// All that was sent has arrived. Only the acknowledgement is missing, which may be delayed until the next request.
    pub(crate) has_arrived: bool,
    /// The client sends one request per connection: all that was sent belongs to its answer.
    pub(crate) asks_once: bool,
    /// It sends repeatedly without a request.
    pub(crate) streams: bool,
    /// How far its response has come, if it leaves in pieces.
    pub(crate) piece: Option<Piece>,
    /// A unix socket that outlives a request: it may be idle.
    pub(crate) is_kept: bool,
    /// What was acknowledged alone, so that it was the last that was said.
    pub(crate) acknowledged: Option<Said>,
    /// The rhythm of requests and answers at its listener.
    pub(crate) rhythm: Option<&'a Rhythm>,
    /// Length of the kernel's clock tick, milliseconds.
    pub(crate) tick_ms: u64,
}

/// True if all that one end of a connection was given to send has reached the other end, according to the same sample of both. What Nagle's algorithm holds back until
/// an acknowledgement comes is not sent.
pub(crate) fn has_arrived(socket: &RequestSocket, other: &RequestSocket) -> bool {
    let sent = socket.times.filter(|times| times.unsent == Some(0)).and_then(|times| times.bytes_sent);
    sent.is_some() && sent == other.times.and_then(|times| times.bytes_received)
}

/// What was acknowledged alone on an accepted connection whose times do not tell what was last: by its own end the answer, by the caller's end in the same sample
/// the request.
pub(crate) fn acknowledged<'s>(socket: &RequestSocket, other: impl FnOnce() -> Option<&'s RequestSocket>) -> Option<Said> {
    let times = socket.times.as_ref().filter(|times| times.received_last().is_none())?;
    if times.is_acknowledged_alone() {
        return Some(Said::Answer);
    }
    other()?.times.as_ref()?.is_acknowledged_alone().then_some(Said::Request)
}

/// True if nothing is left to send, nothing was lost, and the last data was sent longer ago than a round trip takes: the shortest ever on this connection, and
/// the shortest now of all connections, because queues on the path are common to all.
pub(crate) fn must_have_arrived(socket: &RequestSocket, way_us: Option<u64>, tick_ms: u64) -> bool {
    let Some((times, way_us)) = socket.times.as_ref().zip(way_us) else { return false };
    let shortest_us = times.min_rtt_us.unwrap_or(u64::MAX).max(way_us);
    let is_late = times.last_data_sent_ms.saturating_sub(tick_ms).saturating_mul(1_000) > shortest_us;
    times.unsent == Some(0) && times.lost == Some(0) && is_late
}

/// The state of this connection.
pub(crate) fn connection_state(socket: &RequestSocket, known: &ConnectionContext<'_>) -> ConnectionState {
    match socket.state {
        TcpState::SynRecv | TcpState::NewSynRecv => return ConnectionState::Handshake,
        // The FIN counts as one byte of the queue.
        TcpState::FinWait1 if socket.send_queue > 1 => return ConnectionState::Sending,
        TcpState::FinWait1 | TcpState::FinWait2 if known.asks_once => return ConnectionState::AtClient,
        TcpState::CloseWait => return ConnectionState::Closed,
        TcpState::Established if socket.inode == 0 => return ConnectionState::Unaccepted,
        TcpState::Established => {}
        _ => return ConnectionState::Idle,
    }
    match (&socket.times, known) {
        _ if socket.receive_queue > 0 && !is_partly_read(socket, known.before) => ConnectionState::Unread,
        (_, ConnectionContext { streams: true, .. }) => ConnectionState::Streaming,
        (_, ConnectionContext { piece: Some(Piece::MoreFollows), .. }) if socket.receive_queue == 0 => ConnectionState::Service,
        _ if socket.receive_queue > 0 => ConnectionState::Service,
        // What the server sends then is no answer.
        (Some(times), ConnectionContext { exchange: Some(LoadExchange::NotAsked), .. }) => as_told(times, LoadExchange::NotAsked, known),
        _ if socket.send_queue > 0 && !known.has_arrived => ConnectionState::Sending,
        (Some(times), ConnectionContext { exchange: Some(exchange), .. }) => as_told(times, *exchange, known),
        (Some(times), ConnectionContext { asks_once: true, .. }) if times.never_received() => ConnectionState::AtClient,
        (Some(times), ConnectionContext { asks_once: true, .. }) if times.received_last().is_none() => ConnectionState::Idle,
        (None, ConnectionContext { is_kept: true, .. }) => ConnectionState::Undecided,
        (None, _) => ConnectionState::Service,
        (Some(times), _) => of_times(times, known),
    }
}

/// The state of a connection whose queues are empty, by what the load says of it.
fn as_told(times: &RequestTimes, exchange: LoadExchange, known: &ConnectionContext<'_>) -> ConnectionState {
    let is_received_last = times.received_last() == Some(true) && !times.never_received();
    match exchange {
        LoadExchange::NotAsked if is_received_last => ConnectionState::TlsHandshake,
        LoadExchange::NotAsked => ConnectionState::AtClient,
        LoadExchange::Waiting if is_uploading(times, known) => ConnectionState::Receiving,
        LoadExchange::Waiting => ConnectionState::Service,
        LoadExchange::Answered => ConnectionState::Idle,
    }
}

fn of_times(times: &RequestTimes, known: &ConnectionContext<'_>) -> ConnectionState {
    match times.received_last() {
        _ if times.never_received() => ConnectionState::Idle,
        Some(true) if known.tls && times.never_sent() => ConnectionState::TlsHandshake,
        Some(true) if is_uploading(times, known) => ConnectionState::Receiving,
        Some(true) => ConnectionState::Service,
        _ if known.piece.is_some() => ConnectionState::Undecided,
        Some(false) => ConnectionState::Idle,
        None => within_a_tick(times, known),
    }
}

/// True if the server has read part of an unanswered request: a first request, or one that came since the previous sample. FastCGI's last record, for example,
/// is read when the answer is made. Unix sockets have no count of received bytes.
fn is_partly_read(socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
    let is_rest = socket.receive_queue <= HEADER_BYTES;
    let Some(times) = &socket.times else { return is_rest };
    // On a kept connection no sample may show the moment before it came, but what usually comes there is longer.
    if is_rest && times.bytes_a_segment().is_some_and(|usual| usual > 2 * u64::from(HEADER_BYTES)) {
        return true;
    }
    let all = if times.never_sent() {
        times.bytes_received
    } else {
        // If a request was under way or unread before, the data since may be only part of it.
        let idle = before.filter(|before| before.receive_queue == 0).and_then(|before| before.times.as_ref());
        let idle = idle.filter(|before| before.received_last() == Some(false));
        idle.filter(|before| before.data_segs_out == times.data_segs_out)
            .and_then(|before| times.bytes_received?.checked_sub(before.bytes_received?))
    };
    all.is_some_and(|all| all > u64::from(socket.receive_queue))
}

/// Growth between the two samples: segments received, segments sent, and bytes received.
fn moved(times: &RequestTimes, before: Option<&RequestSocket>) -> Option<(u64, u64, u64)> {
    let before = before?.times.as_ref()?;
    let grew = |of: fn(&RequestTimes) -> Option<u64>| of(times)?.checked_sub(of(before)?);
    Some((grew(|times| times.data_segs_in)?, grew(|times| times.data_segs_out)?, grew(|times| times.bytes_received)?))
}

/// True if long segments arrived between two samples without an answer: an upload.
fn is_uploading(times: &RequestTimes, known: &ConnectionContext<'_>) -> bool {
    let Some((segments, 0, bytes)) = moved(times, known.before) else { return false };
    let was_pending = known.before.and_then(|before| before.times.as_ref()).and_then(RequestTimes::received_last) == Some(true);
    was_pending && segments > 0 && bytes / segments >= PIECE_BYTES_MIN
}

/// True if short messages arrived one after another without an answer: several requests on one connection, or messages without an answer.
pub(crate) fn is_multiplexed(socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
    let Some(times) = &socket.times else { return false };
    let Some((segments @ 1.., 0, bytes)) = moved(times, before) else { return false };
    // The last segment of an upload is short too.
    before.is_some_and(|before| before.receive_queue == 0 && before.times.as_ref().and_then(RequestTimes::received_last) == Some(true))
        && bytes / segments < PIECE_BYTES_MIN
        && times.bytes_received.zip(times.data_segs_in).is_some_and(|(bytes, segments)| bytes / segments.max(1) < PIECE_BYTES_MIN)
}

/// True if a connection sent between the two samples and received nothing, and that was not the rest of an answer that was leaving.
pub(super) fn sent_without_request(socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
    if before.is_some_and(|before| before.send_queue > 0) {
        return false;
    }
    let times = socket.times.as_ref().zip(before.and_then(|before| before.times.as_ref()));
    times.is_some_and(|(now, before)| {
        now.data_segs_in == before.data_segs_in && now.data_segs_out.zip(before.data_segs_out).is_some_and(|(now, before)| now > before)
    })
}

/// True if a connection received data between the two samples.
pub(super) fn received_more(socket: &RequestSocket, before: Option<&RequestSocket>) -> bool {
    let segments = |socket: &RequestSocket| socket.times.and_then(|times| times.data_segs_in);
    segments(socket).zip(before.and_then(segments)).is_some_and(|(now, before)| now > before)
}

/// For a request and an answer in one tick. The counters of two samples decide; then a round trip longer than a tick (the next request cannot have come so
/// soon); then what was acknowledged alone; then the rhythm.
fn within_a_tick(times: &RequestTimes, known: &ConnectionContext<'_>) -> ConnectionState {
    match moved(times, known.before) {
        Some((1.., 0, _)) => return ConnectionState::Service,
        Some((0, 1.., _)) => return ConnectionState::Idle,
        _ => {}
    }
    // What was sent can only be the answer to the only request.
    if !known.tls && times.data_segs_in == Some(1) && times.data_segs_out.is_some_and(|segments| segments > 0) {
        return ConnectionState::Idle;
    }
    // A first request over TLS comes with the end of the handshake, which the server answers by itself.
    let is_first = known.tls && times.data_segs_in.is_some_and(|segments| segments <= FIRST_OVER_TLS);
    if !is_first && times.min_rtt_us.is_some_and(|rtt_us| rtt_us > 1_000 * known.tick_ms.max(1)) {
        return ConnectionState::Idle;
    }
    match known.acknowledged {
        Some(Said::Request) => return ConnectionState::Service,
        // Over TLS the first answers are session tickets.
        Some(Said::Answer) if !is_first => return ConnectionState::Idle,
        _ => {}
    }
    match known.rhythm.and_then(|rhythm| rhythm.is_pending(times, known.tls)) {
        Some(true) => ConnectionState::Service,
        Some(false) => ConnectionState::Idle,
        None => ConnectionState::Undecided,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::observation::{SocketAddress, UnixPeer};

    fn times(recv_ms: u64, sent_ms: u64, segments_in: u64, segments_out: u64) -> RequestTimes {
        RequestTimes {
            last_data_recv_ms: recv_ms,
            last_data_sent_ms: sent_ms,
            data_segs_in: Some(segments_in),
            data_segs_out: Some(segments_out),
            bytes_received: Some(100 * segments_in),
            bytes_sent: Some(500 * segments_out),
            min_rtt_us: Some(20),
            ..RequestTimes::default()
        }
    }

    /// An accepted connection whose queues are empty.
    pub(in crate::ledger) fn socket(times: Option<RequestTimes>) -> RequestSocket {
        let end = ("10.0.0.1".parse().unwrap(), 80);
        RequestSocket {
            address: SocketAddress::Tcp { local: end, remote: end },
            cookie: 1,
            state: TcpState::Established,
            inode: 9,
            receive_queue: 0,
            send_queue: 0,
            times,
        }
    }

    fn unix() -> RequestSocket {
        RequestSocket { address: SocketAddress::Unix { path: Some("/run/a".into()), peer: UnixPeer::Unknown }, ..socket(None) }
    }

    #[test]
    fn a_rest_of_few_bytes_is_no_request_where_requests_are_longer() {
        let plain = ConnectionContext { tick_ms: 4, ..ConnectionContext::default() };
        let short = RequestTimes { bytes_received: Some(35), ..times(8, 40, 5, 4) };
        let of = |receive_queue, times| connection_state(&RequestSocket { receive_queue, ..socket(Some(times)) }, &plain);
        assert_eq!(of(8, times(8, 40, 5, 4)), ConnectionState::Service);
        assert_eq!(of(7, short), ConnectionState::Unread);
    }

    #[test]
    fn each_kind_of_connection_has_its_state() {
        let plain = ConnectionContext { tick_ms: 4, ..ConnectionContext::default() };
        let of = |recv, sent, n_in, n_out| socket(Some(times(recv, sent, n_in, n_out)));
        let upload = RequestTimes { bytes_received: Some(100_000), ..times(0, 900, 101, 1) };
        let upload_before = RequestTimes { bytes_received: Some(50_000), ..times(200, 700, 51, 1) };
        let (upload, upload_before) = (socket(Some(upload)), socket(Some(upload_before)));
        let far = RequestTimes { min_rtt_us: Some(30_000), ..times(8, 8, 5, 5) };
        let old_kernel =
            RequestTimes { data_segs_in: None, data_segs_out: None, bytes_sent: None, bytes_received: None, ..times(8, 4, 0, 0) };
        let (before_in, before_out) = (of(204, 204, 4, 4), of(204, 204, 5, 4));
        let rows: Vec<(&str, RequestSocket, ConnectionContext<'_>, ConnectionState)> = vec![
            ("a request in service", of(8, 40, 5, 4), plain, ConnectionState::Service),
            ("an answer that left", of(40, 8, 5, 5), plain, ConnectionState::Idle),
            ("the first request of a connection", of(8, 8, 1, 0), plain, ConnectionState::Service),
            ("a connection that was never asked", of(8, 8, 0, 0), plain, ConnectionState::Idle),
            ("a server that speaks first", of(12, 8, 0, 1), plain, ConnectionState::Idle),
            ("an idle pool to a database", of(90_000, 90_000 - 4, 50, 50), plain, ConnectionState::Idle),
            ("one tick, nothing known", of(8, 8, 5, 5), plain, ConnectionState::Undecided),
            (
                "one tick, only a request came since",
                of(8, 8, 5, 4),
                ConnectionContext { before: Some(&before_in), ..plain },
                ConnectionState::Service,
            ),
            (
                "one tick, only an answer left since",
                of(8, 8, 5, 5),
                ConnectionContext { before: Some(&before_out), ..plain },
                ConnectionState::Idle,
            ),
            ("one tick, a way longer than it", socket(Some(far)), plain, ConnectionState::Idle),
            ("an old kernel without counters", socket(Some(old_kernel)), plain, ConnectionState::Idle),
            ("unread, counted once", RequestSocket { receive_queue: 40, ..of(8, 40, 5, 4) }, plain, ConnectionState::Unread),
            ("its first part was read", RequestSocket { receive_queue: 8, ..of(8, 8, 1, 0) }, plain, ConnectionState::Service),
            ("nothing of it was read", RequestSocket { receive_queue: 100, ..of(8, 8, 1, 0) }, plain, ConnectionState::Unread),
            (
                "not accepted, with its request",
                RequestSocket { inode: 0, receive_queue: 7, ..of(8, 8, 1, 0) },
                plain,
                ConnectionState::Unaccepted,
            ),
            ("an answer that is leaving", RequestSocket { send_queue: 99, ..of(40, 8, 5, 5) }, plain, ConnectionState::Sending),
            ("an answer that leaves", RequestSocket { send_queue: 9, ..of(40, 8, 5, 5) }, plain, ConnectionState::Sending),
            (
                "one that has arrived",
                RequestSocket { send_queue: 9, ..of(40, 8, 5, 5) },
                ConnectionContext { has_arrived: true, ..plain },
                ConnectionState::Idle,
            ),
            ("the only answer, or a part of it", of(40, 8, 1, 5), ConnectionContext { asks_once: true, ..plain }, ConnectionState::Idle),
            ("the same in one tick", of(8, 8, 1, 5), ConnectionContext { asks_once: true, ..plain }, ConnectionState::Idle),
            ("the only request", of(8, 8, 1, 0), ConnectionContext { asks_once: true, ..plain }, ConnectionState::Service),
            (
                "the only request is still to come",
                of(8, 8, 0, 0),
                ConnectionContext { asks_once: true, ..plain },
                ConnectionState::AtClient,
            ),
            (
                "the only answer has come",
                RequestSocket { state: TcpState::FinWait1, send_queue: 1, ..of(4, 4, 1, 1) },
                ConnectionContext { asks_once: true, ..plain },
                ConnectionState::AtClient,
            ),
            (
                "its end as well",
                RequestSocket { state: TcpState::FinWait2, ..socket(None) },
                ConnectionContext { asks_once: true, ..plain },
                ConnectionState::AtClient,
            ),
            ("an upload", upload, ConnectionContext { before: Some(&upload_before), ..plain }, ConnectionState::Receiving),
            ("a stream of events", of(40, 8, 1, 500), ConnectionContext { streams: true, ..plain }, ConnectionState::Streaming),
            ("the hello of TLS", of(8, 8, 1, 0), ConnectionContext { tls: true, ..plain }, ConnectionState::TlsHandshake),
            ("a request over TLS", of(8, 40, 3, 3), ConnectionContext { tls: true, ..plain }, ConnectionState::Service),
            ("the client went away", RequestSocket { state: TcpState::CloseWait, ..of(8, 40, 5, 4) }, plain, ConnectionState::Closed),
            (
                "the last answer and its FIN leave",
                RequestSocket { state: TcpState::FinWait1, send_queue: 9, ..of(4, 4, 1, 1) },
                plain,
                ConnectionState::Sending,
            ),
            (
                "only a FIN leaves",
                RequestSocket { state: TcpState::FinWait1, send_queue: 1, ..of(4, 4, 1, 1) },
                plain,
                ConnectionState::Idle,
            ),
            ("a handshake", RequestSocket { state: TcpState::SynRecv, inode: 0, ..socket(None) }, plain, ConnectionState::Handshake),
            ("a unix socket of one request", unix(), plain, ConnectionState::Service),
            ("a unix socket that is kept", unix(), ConnectionContext { is_kept: true, ..plain }, ConnectionState::Undecided),
            ("a unix socket with bytes", RequestSocket { receive_queue: 9, ..unix() }, plain, ConnectionState::Unread),
            ("one with FastCGI's last record", RequestSocket { receive_queue: 8, ..unix() }, plain, ConnectionState::Service),
        ];
        for (name, socket, known, expected) in rows {
            assert_eq!(connection_state(&socket, &known), expected, "{name}");
        }
    }

    #[test]
    fn data_sent_longer_ago_than_a_round_trip_has_arrived() {
        let known = RequestTimes { unsent: Some(0), lost: Some(0), ..times(60, 20, 5, 5) };
        let told = |times, way_us| must_have_arrived(&socket(Some(times)), way_us, 4);
        assert!(told(known, Some(15_000)));
        assert!(!told(known, Some(16_000)), "the last tick may be wrong");
        assert!(!told(known, None), "no way is known");
        assert!(!told(RequestTimes { min_rtt_us: Some(90_000), ..known }, Some(15_000)), "this client is far");
        assert!(!told(RequestTimes { min_rtt_us: None, ..known }, Some(15_000)), "nobody knows how far it is");
        assert!(!told(RequestTimes { unsent: Some(1), ..known }, Some(15_000)), "more is to be sent");
        assert!(!told(RequestTimes { lost: Some(1), ..known }, Some(15_000)), "it is sent again");
    }

    #[test]
    fn what_was_acknowledged_alone_was_said_last() {
        let plain = ConnectionContext { tick_ms: 4, ..ConnectionContext::default() };
        let tie = |segments| socket(Some(times(8, 8, segments, 5)));
        let told = |said, known, segments| connection_state(&tie(segments), &ConnectionContext { acknowledged: Some(said), ..known });
        assert_eq!(told(Said::Request, plain, 5), ConnectionState::Service);
        assert_eq!(told(Said::Answer, plain, 5), ConnectionState::Idle);
        let tls = ConnectionContext { tls: true, ..plain };
        assert_eq!(told(Said::Answer, tls, 3), ConnectionState::Undecided, "session tickets are no answer");
        assert_eq!(told(Said::Answer, tls, 5), ConnectionState::Idle);
    }

    #[test]
    fn what_nagle_holds_back_has_not_arrived() {
        let of = |unsent| RequestSocket {
            send_queue: 700,
            ..socket(Some(RequestTimes { unsent, bytes_sent: Some(200), ..times(40, 36, 5, 6) }))
        };
        let other = socket(Some(RequestTimes { bytes_received: Some(200), ..times(36, 40, 6, 5) }));
        assert!(has_arrived(&of(Some(0)), &other));
        assert!(!has_arrived(&of(Some(500)), &other), "the body waits for the acknowledgement of the head");
        assert!(!has_arrived(&of(None), &other), "it is not known");
    }

    #[test]
    fn an_acknowledgement_tells_only_if_it_came_alone_and_later() {
        let of = |ack| RequestTimes { last_ack_recv_ms: ack, ..times(72, 72, 5, 5) }.is_acknowledged_alone();
        assert!(of(Some(32)));
        assert!(!of(Some(72)), "with the data, or without a delay");
        assert!(!of(None), "it was not read");
    }

    #[test]
    fn short_messages_without_an_answer_are_several_requests_and_an_upload_is_not() {
        let of = |segments: u64, bytes: u64| socket(Some(RequestTimes { bytes_received: Some(bytes), ..times(0, 900, segments, 1) }));
        assert!(is_multiplexed(&of(9, 900), Some(&of(5, 500))), "frames of 100 bytes");
        assert!(!is_multiplexed(&of(100, 140_000), Some(&of(50, 70_000))), "pieces of 1,400");
        assert!(!is_multiplexed(&of(5, 500), Some(&of(5, 500))), "nothing came");
        assert!(!is_multiplexed(&of(5, 500), None));
        let answered = socket(Some(times(0, 900, 9, 2)));
        assert!(!is_multiplexed(&answered, Some(&of(5, 500))), "one was answered meanwhile");
    }

    #[test]
    fn a_way_longer_than_a_tick_does_not_show_that_the_first_request_over_tls_was_answered() {
        let known = ConnectionContext { tick_ms: 4, tls: true, ..ConnectionContext::default() };
        let far = |segments| socket(Some(RequestTimes { min_rtt_us: Some(30_000), ..times(8, 8, segments, 2) }));
        assert_eq!(connection_state(&far(3), &known), ConnectionState::Undecided);
        assert_eq!(connection_state(&far(4), &known), ConnectionState::Idle);
        assert_eq!(connection_state(&far(3), &ConnectionContext { tls: false, ..known }), ConnectionState::Idle);
    }
}
