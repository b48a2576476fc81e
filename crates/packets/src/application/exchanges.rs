//! Requests and their answers on one stream: how they are matched, how long each took, and what they say about keeping the connection.

use std::collections::VecDeque;

/// Requests in progress that are stored for one stream. Further ones are only counted.
const UNDER_WAY_MAX: usize = 64;
/// Samples that wait to be collected. They are collected after every packet, and a packet holds fewer.
const SAMPLES_MAX: usize = 256;

/// What requests and answers say about keeping the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// Requests with `Connection: close`.
    pub(crate) requests_close: u64,
    /// Requests of HTTP/1.0 without keep-alive.
    pub(crate) requests_http10: u64,
    /// FastCGI requests without FCGI_KEEP_CONN.
    pub(crate) requests_unkept: u64,
    /// Answers with `Connection: close`, or of HTTP/1.0 without keep-alive.
    pub(crate) answers_close: u64,
    /// Answers that end with the connection.
    pub(crate) answers_until_close: u64,
    /// `Keep-Alive: timeout=` of the last answer that has one, seconds.
    pub(crate) timeout_s: Option<u32>,
    /// Answers by status class, 1xx to 5xx.
    pub(crate) statuses: [u64; 5],
}

/// One request with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// From the end of the request to the first byte of the answer, nanoseconds.
    pub(crate) first_byte_ns: u64,
    /// From the first byte of the request to the last byte of the answer, nanoseconds.
    pub(crate) whole_ns: u64,
}

/// A request without an answer so far.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    begun_ns: i64,
    ended_ns: i64,
    head: bool,
    connect: bool,
}

/// The exchanges of one stream.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) requests: u64,
    pub(crate) answers: u64,
    pub(crate) tls_records: u64,
    pub(crate) spoken: Spoken,
    pub(crate) first_byte_ns_sum: u64,
    pub(crate) first_byte_ns_max: u64,
    pub(crate) first_bytes: u64,
    /// When the first request began.
    pub(crate) first_request_ns: Option<i64>,
    /// When the last request began.
    pub(crate) last_request_ns: Option<i64>,
    /// When the last byte of an answer came, whether the answer was complete or not.
    pub(crate) last_answer_ns: Option<i64>,
    under_way: VecDeque<UnderWay>,
    answering: Option<i64>,
    client_spoke: Option<bool>,
    samples: Vec<Sample>,
}

fn span(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}

impl Exchanges {
    /// Requests without a complete answer.
    pub(crate) fn unanswered(&self) -> usize {
        self.under_way.len()
    }

    /// An answer is in progress.
    pub(crate) fn answering(&self) -> bool {
        self.answering.is_some()
    }

    pub(super) fn request_begins(&mut self, at_ns: i64) {
        self.requests += 1;
        self.first_request_ns = self.first_request_ns.or(Some(at_ns));
        self.last_request_ns = Some(at_ns);
        if self.under_way.len() < UNDER_WAY_MAX {
            self.under_way.push_back(UnderWay { begun_ns: at_ns, ended_ns: at_ns, head: false, connect: false });
        }
    }

    /// More of the last request came. `head` and `connect` give its method if it is known.
    pub(super) fn request_goes_on(&mut self, at_ns: i64, head: bool, connect: bool) {
        if let Some(request) = self.under_way.back_mut() {
            request.ended_ns = at_ns;
            request.head |= head;
            request.connect |= connect;
        }
    }

    /// Whether the next answer has no body whatever its head says (RFC 9110, 9.3.2), and whether it may open a tunnel.
    pub(super) fn asked(&self) -> (bool, bool) {
        self.under_way.front().map_or((false, false), |request| (request.head, request.connect))
    }

    /// Does nothing within an answer.
    pub(super) fn answer_begins(&mut self, at_ns: i64) {
        if self.answering.is_some() {
            return;
        }
        self.answering = Some(at_ns);
        if let Some(request) = self.under_way.front() {
            let waited = span(request.ended_ns, at_ns);
            self.first_byte_ns_sum = self.first_byte_ns_sum.saturating_add(waited);
            self.first_byte_ns_max = self.first_byte_ns_max.max(waited);
            self.first_bytes += 1;
        }
    }

    pub(super) fn answer_goes_on(&mut self, at_ns: i64) {
        self.last_answer_ns = Some(at_ns);
    }

    pub(super) fn answer_ends(&mut self, at_ns: i64) {
        let Some(began_ns) = self.answering.take() else { return };
        self.answers += 1;
        self.last_answer_ns = Some(at_ns);
        if let Some(request) = self.under_way.pop_front()
            && self.samples.len() < SAMPLES_MAX
        {
            self.samples.push(Sample { first_byte_ns: span(request.ended_ns, began_ns), whole_ns: span(request.begun_ns, at_ns) });
        }
    }

    /// An interim answer (1xx) is complete.
    pub(super) fn answer_was_interim(&mut self) {
        self.answering = None;
    }

    /// A side sent data in a protocol without visible requests. Client data after server data counts as the next request.
    pub(super) fn turn(&mut self, client: bool, at_ns: i64) {
        match (client, self.client_spoke) {
            (true, Some(true)) => self.request_goes_on(at_ns, false, false),
            (true, _) => {
                if self.answering.is_some() {
                    self.answer_ends(self.last_answer_ns.unwrap_or(at_ns));
                }
                self.request_begins(at_ns);
            }
            (false, Some(true)) => self.answer_begins(at_ns),
            (false, _) => {}
        }
        if !client {
            self.answer_goes_on(at_ns);
        }
        self.client_spoke = Some(client);
    }

    /// The stream is over. In a protocol without visible ends, the last turn of the server was a complete answer.
    pub(crate) fn finish_turns(&mut self) {
        if let Some(at_ns) = self.last_answer_ns {
            self.answer_ends(at_ns);
        }
    }

    /// Returns the measurements since the last call.
    pub(crate) fn collect(&mut self, each: impl FnMut(Sample)) {
        if !self.samples.is_empty() {
            self.samples.drain(..).for_each(each);
        }
    }
}
