//! The payload of a stream: requests and answers of HTTP/1.x and FastCGI, records of TLS, and turns of any other protocol.

mod exchanges;
mod fastcgi;
mod http;
mod order;
mod tls;

pub(crate) use exchanges::{Exchanges, Sample, Spoken};

use crate::summary::Protocol;
use order::{Order, Piece};

/// The protocol state of one direction.
#[derive(Debug, Default)]
struct Half {
    order: Order,
    http: http::Parser,
    fastcgi: fastcgi::Parser,
    tls: tls::Parser,
}

/// Both directions of a stream.
#[derive(Debug, Default)]
pub(crate) struct Application {
    protocol: Option<Protocol>,
    client: Half,
    server: Half,
    pub(crate) exchanges: Exchanges,
}

impl Application {
    /// The protocol; `None` if no payload was seen.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(Protocol::None)
    }

    /// True if the first bytes of this side are a request, false if they are an answer.
    pub(crate) fn asks(bytes: &[u8]) -> Option<bool> {
        if http::is_request(bytes) || fastcgi::is_request(bytes) || tls::is_client_hello(bytes) {
            Some(true)
        } else if http::is_answer(bytes) || fastcgi::is_answer(bytes) || tls::is_server_hello(bytes) {
            Some(false)
        } else {
            None
        }
    }

    /// Takes payload of one side: it begins at `start` and has `length` bytes, of which `bytes` were captured.
    pub(crate) fn payload(&mut self, from_client: bool, start: i64, bytes: &[u8], length: u32, at_ns: i64) {
        let (order, mut rest) = self.split(from_client);
        order.put(start, bytes, length, &mut |piece| rest.piece(piece, at_ns));
    }

    /// The other side acknowledged everything up to here. What the capture lacks before this position will not come.
    pub(crate) fn acknowledged(&mut self, of_client: bool, acked: i64, at_ns: i64) {
        let (order, mut rest) = self.split(of_client);
        if order.waits() {
            order.give_up(acked, &mut |piece| rest.piece(piece, at_ns));
        }
    }

    /// Memory that is held for what did not come yet, in both directions, bytes.
    pub(crate) fn held(&self) -> usize {
        [&self.client, &self.server].iter().map(|half| half.order.held() + half.http.held()).sum()
    }

    /// Passes on what waits, with a hole for each part that did not come, and gives up heads that did not end.
    pub(crate) fn give_up_held(&mut self, at_ns: i64) {
        for from_client in [true, false] {
            let (order, mut rest) = self.split(from_client);
            order.give_up(i64::MAX, &mut |piece| rest.piece(piece, at_ns));
            rest.http.give_up(from_client, rest.exchanges, at_ns);
        }
    }

    /// One side has no more to send, which ends an answer without another end. In a protocol with turns only, an answer ends with the next
    /// event of any kind.
    pub(crate) fn ended(&mut self, client: bool, at_ns: i64) {
        if matches!(self.protocol, Some(Protocol::Tls | Protocol::Other)) {
            self.exchanges.finish_turns();
        }
        if !client && self.protocol == Some(Protocol::Http) {
            self.server.http.ended(&mut self.exchanges, at_ns);
        }
    }

    fn split(&mut self, from_client: bool) -> (&mut Order, Rest<'_>) {
        let half = if from_client { &mut self.client } else { &mut self.server };
        let Half { order, http, fastcgi, tls } = half;
        (order, Rest { from_client, protocol: &mut self.protocol, http, fastcgi, tls, exchanges: &mut self.exchanges })
    }
}

/// The application's state without the reordering of one direction.
struct Rest<'a> {
    from_client: bool,
    protocol: &'a mut Option<Protocol>,
    http: &'a mut http::Parser,
    fastcgi: &'a mut fastcgi::Parser,
    tls: &'a mut tls::Parser,
    exchanges: &'a mut Exchanges,
}

impl Rest<'_> {
    fn piece(&mut self, piece: Piece<'_>, at_ns: i64) {
        let protocol = match (*self.protocol, piece) {
            (Some(protocol), _) => protocol,
            (None, Piece::Hole(_)) => return,
            (None, Piece::Bytes(bytes)) => *self.protocol.insert(protocol_of(bytes)),
        };
        match protocol {
            Protocol::Http => self.http.piece(piece, self.from_client, self.exchanges, at_ns),
            Protocol::Fastcgi => self.fastcgi.piece(piece, self.from_client, self.exchanges, at_ns),
            Protocol::Tls => {
                let turns = self.tls.piece(piece);
                self.exchanges.tls_records += turns.records;
                if turns.spoke {
                    self.exchanges.turn(self.from_client, at_ns);
                }
            }
            Protocol::Other | Protocol::None => self.exchanges.turn(self.from_client, at_ns),
        }
    }
}

fn protocol_of(bytes: &[u8]) -> Protocol {
    if http::is_request(bytes) || http::is_answer(bytes) {
        Protocol::Http
    } else if tls::is_record(bytes) {
        Protocol::Tls
    } else if fastcgi::is_request(bytes) || fastcgi::is_answer(bytes) {
        Protocol::Fastcgi
    } else {
        Protocol::Other
    }
}
