//! HTTP messages: whole, cut and malformed.

use super::*;
use proptest::prelude::*;

/// Both directions of one stream.
#[derive(Default)]
struct Stream {
    client: Parser,
    server: Parser,
    exchanges: Exchanges,
}

impl Stream {
    fn ask(&mut self, text: &str, at_ns: i64) {
        self.client.piece(Piece::Bytes(text.as_bytes()), true, &mut self.exchanges, at_ns);
    }

    fn answer(&mut self, text: &str, at_ns: i64) {
        self.server.piece(Piece::Bytes(text.as_bytes()), false, &mut self.exchanges, at_ns);
    }

    fn counts(&self) -> (u64, u64, usize) {
        (self.exchanges.requests, self.exchanges.answers, self.exchanges.unanswered())
    }
}

#[test]
fn times_run_from_the_end_of_the_request_to_the_first_byte_of_the_answer() {
    let mut stream = Stream::default();
    stream.ask("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na", 10);
    stream.ask("bc", 20);
    stream.answer("HTTP/1.1 200 OK\r\nContent-Le", 50);
    stream.answer("ngth: 4\r\n\r\nab", 60);
    stream.answer("cd", 90);
    let mut samples = Vec::new();
    stream.exchanges.collect(|sample| samples.push(sample));
    assert_eq!(samples, [super::super::Sample { first_byte_ns: 30, whole_ns: 80 }]);
    assert_eq!(stream.counts(), (1, 1, 0));
}

#[test]
fn messages_without_a_body_end_with_their_head() {
    let mut stream = Stream::default();
    stream.ask("HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0);
    stream.answer("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n", 1);
    assert_eq!(stream.counts(), (3, 2, 1));
    stream.answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 2);
    assert_eq!(stream.counts(), (3, 3, 0));
    assert_eq!(stream.exchanges.spoken.statuses, [0, 2, 1, 0, 0]);
}

#[test]
fn connection_headers_are_counted() {
    let mut stream = Stream::default();
    stream.ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 0);
    stream.ask("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 0);
    stream.answer("HTTP/1.1 200 OK\r\nConnection: upgrade, Close\r\nContent-Length: 0\r\n\r\n", 0);
    stream.answer("HTTP/1.1 200 OK\r\nKeep-Alive: max=5, timeout=15\r\nContent-Length: 0\r\n\r\n", 0);
    stream.answer("HTTP/1.0 200 OK\r\n\r\nabc", 0);
    let spoken = stream.exchanges.spoken;
    assert_eq!((spoken.requests_close, spoken.requests_http10), (1, 1));
    assert_eq!((spoken.answers_close, spoken.answers_until_close, spoken.timeout_s), (2, 1, Some(15)));
    assert_eq!(stream.counts(), (3, 2, 1));
    stream.server.ended(&mut stream.exchanges, 5);
    assert_eq!(stream.counts(), (3, 3, 0));
}

#[test]
fn a_hole_in_a_body_is_harmless_and_a_hole_in_a_head_ends_at_the_next_message() {
    let mut stream = Stream::default();
    stream.ask("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0);
    stream.answer("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 1);
    stream.server.piece(Piece::Hole(1000), false, &mut stream.exchanges, 2);
    assert_eq!(stream.counts(), (3, 1, 2));
    stream.answer("HTTP/1.1 200 OK\r\nCont", 3);
    stream.server.piece(Piece::Hole(30), false, &mut stream.exchanges, 4);
    stream.answer("rest of a body", 5);
    stream.answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 6);
    assert_eq!(stream.counts(), (3, 3, 0));
}

#[test]
fn data_in_a_tunnel_is_not_parsed() {
    let mut stream = Stream::default();
    stream.ask("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", 0);
    stream.answer("HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 0);
    assert_eq!(stream.counts(), (1, 1, 0));
}

proptest! {
    #[test]
    fn chunked_bodies_end_where_they_end_however_they_are_cut(sizes in proptest::collection::vec(1_usize..40, 0..6), cut in 1_usize..30) {
        let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for size in &sizes {
            text.push_str(&format!("{size:x};ext=1\r\n{}\r\n", "y".repeat(*size)));
        }
        text.push_str("0\r\nTrailer: a\r\n\r\n");
        let twice = text.clone() + &text;
        let mut stream = Stream::default();
        stream.ask("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0);
        for piece in twice.as_bytes().chunks(cut) {
            stream.server.piece(Piece::Bytes(piece), false, &mut stream.exchanges, 1);
        }
        prop_assert_eq!(stream.counts(), (2, 2, 0));
    }

    #[test]
    fn any_bytes_end(pieces in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..200), any::<bool>()), 0..8)) {
        let mut stream = Stream::default();
        stream.ask("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 0);
        stream.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 0);
        for (bytes, client) in &pieces {
            if *client {
                stream.client.piece(Piece::Bytes(bytes), true, &mut stream.exchanges, 1);
            } else {
                stream.server.piece(Piece::Bytes(bytes), false, &mut stream.exchanges, 1);
                stream.server.piece(Piece::Hole(bytes.len() as u64), false, &mut stream.exchanges, 1);
            }
        }
    }
}
