//! One TCP stream in progress: set-up, both directions, its payload, and which side closes it.

mod side;

use crate::application::{Application, Sample};
use crate::decode::tcp::{ACK, FIN, RST, SYN, Segment};
use crate::summary::{Close, ConnectionEnd, Direction, FirstFlight, Manner, Moment, Protocol, RolesBy, StreamSummary, socket};
pub(crate) use side::Sent;
use side::{Side, Way};

/// Address and port.
pub(crate) type Port = (u128, u16);

/// A pause of this length is an idle gap, nanoseconds.
const IDLE_NS: u64 = 1_000_000_000;
/// A close this soon after an answer is because of the answer, nanoseconds.
const AFTER_ANSWER_NS: u64 = 50_000_000;
/// The server's close may have crossed requests that were captured this long before it: the round-trip time if known, at least this, nanoseconds.
const CROSSED_NS_MIN: u64 = 1_000_000;

/// The first close.
#[derive(Debug, Clone, Copy)]
struct FirstClose {
    side: usize,
    manner: Manner,
    at_ns: i64,
    /// Requests in progress at that time.
    unanswered: usize,
    answering: bool,
    answers: u64,
    requests: u64,
    last_answer_ns: Option<i64>,
}

/// One stream in progress.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) index: u64,
    /// The two ends; the lower one first.
    pub(crate) ends: [Port; 2],
    /// The end that sends requests.
    client: usize,
    roles_by: RolesBy,
    pub(crate) begin_ns: i64,
    pub(crate) last_ns: i64,
    sides: [Side; 2],
    syn_ns: Option<i64>,
    answered_ns: Option<i64>,
    setup_ns: Option<u64>,
    idle_ns_max: u64,
    idle_gaps: u64,
    fin: [bool; 2],
    reset: bool,
    first_close: Option<FirstClose>,
    other_close: Option<Manner>,
    application: Option<Box<Application>>,
    /// Its edge, once there is a measurement for it.
    pub(crate) edge: Option<u32>,
    /// A packet came since the last check.
    pub(crate) touched: bool,
    pub(crate) dropped_for_room: bool,
    /// What its payload held after the last packet, bytes.
    pub(crate) held: usize,
}

/// The effect of a segment, for diagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    /// The segment came from the client.
    pub(crate) from_client: bool,
    pub(crate) sent: Sent,
    /// Position of the segment's first byte.
    pub(crate) start: i64,
    /// The last acknowledgement of this side, as a position of the other.
    pub(crate) acked: i64,
    /// Bytes that its sender has in flight.
    pub(crate) in_flight: u64,
    /// Window that it advertises, bytes.
    pub(crate) window: u32,
}

fn span(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}

impl Stream {
    pub(crate) fn new(index: u64, ends: [Port; 2], from: usize, segment: &Segment<'_>, at_ns: i64) -> Self {
        let (client, roles_by) = match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => (from, RolesBy::Handshake),
            (true, true) => (1 - from, RolesBy::Handshake),
            // The lower of two ports is the server's: ephemeral ports begin at 32,768 on Linux.
            _ => (usize::from(ends[0].1 < ends[1].1), RolesBy::Ports),
        };
        Self {
            index,
            ends,
            client,
            roles_by,
            begin_ns: at_ns,
            last_ns: at_ns,
            sides: [Side::new(), Side::new()],
            syn_ns: None,
            answered_ns: None,
            setup_ns: None,
            idle_ns_max: 0,
            idle_gaps: 0,
            fin: [false; 2],
            reset: false,
            first_close: None,
            other_close: None,
            application: None,
            edge: None,
            touched: true,
            dropped_for_room: false,
            held: 0,
        }
    }

    /// True if this segment of side `from` begins a new stream between the same ends.
    pub(crate) fn is_ended_by(&self, from: usize, segment: &Segment<'_>) -> bool {
        segment.has(SYN) && !segment.has(ACK) && self.sides[from].begins_another(segment.sequence)
    }

    /// Both sides have closed, or one has reset the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || self.fin[0] && self.fin[1]
    }

    /// The client's end and the server's end.
    pub(crate) fn roles(&self) -> (Port, Port) {
        (self.ends[self.client], self.ends[1 - self.client])
    }

    /// Processes a segment of side `from`.
    pub(crate) fn segment(&mut self, from: usize, segment: &Segment<'_>, at_ns: i64) -> Effect {
        self.touched = true;
        let pause = span(self.last_ns, at_ns);
        if pause > IDLE_NS {
            self.idle_gaps += 1;
        }
        self.idle_ns_max = self.idle_ns_max.max(pause);
        self.last_ns = self.last_ns.max(at_ns);
        let (syn, fin, reset) = (segment.has(SYN), segment.has(FIN), segment.has(RST));
        if syn {
            self.handshake(from, segment, at_ns);
        }
        let way = self.way(from);
        let scale = self.scale(from);
        let [first, second] = &mut self.sides;
        let (me, other) = if from == 0 { (first, second) } else { (second, first) };
        let control = syn || fin || reset;
        let bare = segment.payload_bytes == 0 && !control;
        let (sent, start) = if reset {
            me.counts.packets += 1;
            (Sent::Nothing, me.position(segment.sequence))
        } else {
            me.send(segment, syn, fin, other, at_ns, way)
        };
        if segment.has(ACK) && !reset {
            me.acknowledge(segment, other, at_ns, bare);
            if !syn {
                me.offer(segment.window, scale, control, at_ns);
                self.complete(from, at_ns);
            }
        }
        if segment.payload_bytes > 0 && !reset {
            self.sides[1 - from].flight.answered();
            if sent != Sent::Probe {
                self.payload(from, start, segment, at_ns);
            }
        }
        self.settle(from, at_ns);
        if fin || reset {
            self.close(from, if reset { Manner::Rst } else { Manner::Fin }, at_ns);
        }
        let (me, other) = (&self.sides[from], &self.sides[1 - from]);
        Effect { from_client: from == self.client, sent, start, acked: other.acked, in_flight: me.in_flight(), window: me.window }
    }

    fn handshake(&mut self, from: usize, segment: &Segment<'_>, at_ns: i64) {
        self.sides[from].options = segment.options;
        if segment.has(ACK) {
            self.answered_ns.get_or_insert(at_ns);
        } else {
            self.syn_ns.get_or_insert(at_ns);
        }
        if self.edge.is_none() {
            (self.client, self.roles_by) = (if segment.has(ACK) { 1 - from } else { from }, RolesBy::Handshake);
        }
    }

    /// The shift of a side's window. It applies only if both sides offered one (RFC 7323, 2.2). Without the handshake it counts as zero.
    fn scale(&self, from: usize) -> u8 {
        match (self.sides[from].options.window_scale, self.sides[1 - from].options.window_scale) {
            (Some(shift), Some(_)) => shift,
            _ => 0,
        }
    }

    /// The path seen from side `from`. The time from the SYN to its answer lies beyond the capture point, the rest of the set-up before it.
    fn way(&self, from: usize) -> Way {
        let rtt_ns = self.setup_ns.and_then(|ns| i64::try_from(ns).ok());
        let behind_ns = self.server_rtt_ns().and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0);
        let to_sender_ns = if from == self.client { rtt_ns.map_or(0, |rtt_ns| rtt_ns.saturating_sub(behind_ns)) } else { behind_ns };
        Way { rtt_ns, to_sender_ns }
    }

    /// The client's acknowledgement completes the handshake.
    fn complete(&mut self, from: usize, at_ns: i64) {
        if from == self.client
            && self.setup_ns.is_none()
            && let (Some(syn_ns), Some(_)) = (self.syn_ns, self.answered_ns)
        {
            self.setup_ns = Some(span(syn_ns, at_ns));
        }
    }

    /// From the end of the handshake to the client's first application data.
    fn tls_setup_ns(&self) -> Option<u64> {
        let application = self.application.as_deref().filter(|application| application.protocol() == Protocol::Tls)?;
        let ready_ns = self.syn_ns?.saturating_add(i64::try_from(self.setup_ns?).ok()?);
        Some(span(ready_ns, application.exchanges.first_request_ns?))
    }

    fn payload(&mut self, from: usize, start: i64, segment: &Segment<'_>, at_ns: i64) {
        let application = self.application.get_or_insert_with(|| {
            // Without the handshake, the payload shows which side is the client.
            if self.roles_by == RolesBy::Ports
                && self.edge.is_none()
                && let Some(asks) = Application::asks(segment.payload)
            {
                (self.client, self.roles_by) = (if asks { from } else { 1 - from }, RolesBy::Content);
            }
            Box::default()
        });
        application.payload(from == self.client, start, segment.payload, segment.payload_bytes, at_ns);
    }

    /// The other side's data that this side acknowledged will not come any more if the capture lacks it.
    fn settle(&mut self, from: usize, at_ns: i64) {
        let acked = self.sides[1 - from].acked;
        let of_client = from != self.client;
        if let Some(application) = &mut self.application {
            application.acknowledged(of_client, acked, at_ns);
        }
    }

    fn close(&mut self, side: usize, manner: Manner, at_ns: i64) {
        if let Some(application) = &mut self.application {
            application.ended(side == self.client, at_ns);
        }
        match self.first_close {
            None => {
                let exchanges = self.application.as_deref().map(|application| &application.exchanges);
                self.first_close = Some(FirstClose {
                    side,
                    manner,
                    at_ns,
                    unanswered: exchanges.map_or(0, |exchanges| exchanges.unanswered()),
                    answering: exchanges.is_some_and(|exchanges| exchanges.answering()),
                    answers: exchanges.map_or(0, |exchanges| exchanges.answers),
                    requests: exchanges.map_or(0, |exchanges| exchanges.requests),
                    last_answer_ns: exchanges.and_then(|exchanges| exchanges.last_answer_ns),
                });
            }
            Some(first) if first.side != side && self.other_close.is_none() => self.other_close = Some(manner),
            Some(_) => {}
        }
        self.reset |= manner == Manner::Rst;
        self.fin[side] |= manner == Manner::Fin;
    }

    /// Time from the SYN to its answer, nanoseconds.
    pub(crate) fn server_rtt_ns(&self) -> Option<u64> {
        self.syn_ns.zip(self.answered_ns).map(|(syn, answer)| span(syn, answer))
    }

    /// Memory that its payload holds for what did not come yet, bytes.
    pub(crate) fn holds(&self) -> usize {
        self.application.as_deref().map_or(0, Application::held)
    }

    /// Gives that up: what did not come yet counts as lost by the capture.
    pub(crate) fn give_up_held(&mut self) {
        if let Some(application) = &mut self.application {
            application.give_up_held(self.last_ns);
        }
    }

    /// Returns the measurements since the last call.
    pub(crate) fn collect(&mut self, each: impl FnMut(Sample)) {
        if let Some(application) = &mut self.application {
            application.exchanges.collect(each);
        }
    }

    /// Without visible requests, exchanges are counted by turns, and the last answer ends with the stream.
    pub(crate) fn finish(&mut self) {
        if let Some(application) = &mut self.application
            && matches!(application.protocol(), Protocol::Tls | Protocol::Other)
        {
            application.exchanges.finish_turns();
        }
    }

    /// What the payload says about keeping the connection.
    pub(crate) fn spoken(&self) -> crate::application::Spoken {
        self.application.as_deref().map(|application| application.exchanges.spoken).unwrap_or_default()
    }

    /// The stream's present state.
    pub(crate) fn summary(&self) -> StreamSummary {
        let (client, server) = (self.client, 1 - self.client);
        let application = self.application.as_deref();
        let exchanges = application.map(|application| &application.exchanges);
        let first_bytes = exchanges.map_or(0, |exchanges| exchanges.first_bytes);
        StreamSummary {
            index: self.index,
            client: socket(self.ends[client]),
            server: socket(self.ends[server]),
            roles_by: self.roles_by,
            begin_ns: self.begin_ns,
            end_ns: self.last_ns,
            from_begin: self.syn_ns.is_some(),
            setup_ns: self.setup_ns,
            tls_setup_ns: self.tls_setup_ns(),
            server_rtt_ns: self.server_rtt_ns(),
            protocol: application.map_or(Protocol::None, Application::protocol),
            requests: exchanges.map_or(0, |exchanges| exchanges.requests),
            answers: exchanges.map_or(0, |exchanges| exchanges.answers),
            tls_records: exchanges.map_or(0, |exchanges| exchanges.tls_records),
            first_byte_ns_mean: exchanges.and_then(|exchanges| exchanges.first_byte_ns_sum.checked_div(first_bytes)),
            first_byte_ns_max: exchanges.filter(|_| first_bytes > 0).map(|exchanges| exchanges.first_byte_ns_max),
            idle_ns_max: self.idle_ns_max,
            idle_gaps: self.idle_gaps,
            client_sent: self.direction(client),
            server_sent: self.direction(server),
            close: self.first_close.map(|first| self.close_of(&first)),
            dropped_for_room: self.dropped_for_room,
        }
    }

    fn direction(&self, side: usize) -> Direction {
        let me = &self.sides[side];
        let flight = &me.flight;
        Direction {
            bytes_delivered: me.delivered(self.fin[side]),
            mss: me.options.mss,
            window_scale: me.options.window_scale,
            sack_permitted: me.options.sack_permitted,
            timestamps: me.options.timestamps,
            first_flight: (flight.bytes > 0 && self.syn_ns.is_some()).then_some(FirstFlight {
                segments: flight.segments,
                bytes: flight.bytes,
                limited: flight.more,
            }),
            ..me.counts.clone()
        }
    }

    fn close_of(&self, first: &FirstClose) -> Close {
        let by = if first.side == self.client { ConnectionEnd::Client } else { ConnectionEnd::Server };
        let after = first.last_answer_ns.map(|answer_ns| span(answer_ns, first.at_ns));
        let moment = if first.requests == 0 {
            Moment::BeforeRequest
        } else if first.answering {
            Moment::WithinAnswer
        } else if first.unanswered > 0 && !self.crossed(first) {
            Moment::WithinRequest
        } else if after.is_some_and(|after| after <= AFTER_ANSWER_NS) {
            Moment::AfterAnswer
        } else {
            Moment::Idle
        };
        Close { by, manner: first.manner, moment, after_last_answer_ns: after, other: self.other_close, race: self.raced(first, by) }
    }

    /// The request in progress at the server's close had come too late for the server to see it.
    fn crossed(&self, first: &FirstClose) -> bool {
        let window = self.setup_ns.unwrap_or(0).max(CROSSED_NS_MIN);
        let exchanges = self.application.as_deref().map(|application| &application.exchanges);
        let request_ns = exchanges.and_then(|exchanges| exchanges.last_request_ns);
        first.side != self.client
            && first.manner == Manner::Fin
            && first.unanswered == 1
            && first.answers > 0
            && request_ns.is_some_and(|request_ns| span(request_ns, first.at_ns) <= window)
    }

    /// The server closed the idle connection, and a request sent meanwhile or afterwards got no answer.
    fn raced(&self, first: &FirstClose, by: ConnectionEnd) -> bool {
        let Some(exchanges) = self.application.as_deref().map(|application| &application.exchanges) else { return false };
        let later = exchanges.requests > first.requests && exchanges.unanswered() > 0 && !first.answering && first.unanswered == 0;
        by == ConnectionEnd::Server && first.answers > 0 && (later || self.crossed(first) && exchanges.unanswered() > 0)
    }
}
