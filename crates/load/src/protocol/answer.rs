//! Parses an HTTP/1.x answer byte by byte (RFC 9112): where it ends, its status, and whether its connection can be reused.
//!
//! It keeps no body. A head that arrives whole is parsed in place. One that arrives in pieces is buffered and parsed once, after its empty line, so that the
//! cost stays linear however small the pieces are.

use std::mem::MaybeUninit;

use crate::protocol::chunked::Chunked;
use crate::protocol::completion::{BadAnswer, Completion, HEAD_BYTES_MAX, HEADERS_MAX};
use crate::protocol::gathered::HeadBuffer;

/// Maximum interim answers (1xx) before the final one; more are a bad response.
pub const INTERIM_MAX: u8 = 32;
/// Longer heads are not cached.
const HEAD_CACHE_BYTES_MAX: usize = 2048;

/// How the end of the body is recognised (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Complete,
}

/// The relevant part of a head.
#[derive(Debug, Clone, Copy)]
struct Head {
    bytes: usize,
    status: u16,
    reusable: bool,
    body: State,
}

/// The last head that arrived whole and its meaning, shared by a thread's connections. Servers send the same head as long as the date stays the same.
/// Comparing costs a tenth of parsing, and is exact: a head's meaning depends only on its bytes.
#[derive(Debug, Default)]
pub(crate) struct HeadCache {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl HeadCache {
    fn find(&self, bytes: &[u8]) -> Option<Head> {
        self.head.filter(|_| bytes.starts_with(&self.bytes))
    }

    fn keep(&mut self, bytes: &[u8], head: Head) {
        if bytes.len() <= HEAD_CACHE_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = Some(head);
        }
    }
}

/// An answer while it is parsed. [`Answer::reset`] prepares it for the next.
#[derive(Debug)]
pub(crate) struct Answer {
    state: State,
    interim: u8,
    to_head_request: bool,
    reusable: bool,
    status: u16,
    head_buffer: HeadBuffer,
}

impl Answer {
    /// `to_head_request`: the request's method is HEAD, so the answer has no body whatever its head says.
    pub(crate) fn new(to_head_request: bool) -> Self {
        Answer { state: State::Head, interim: 0, to_head_request, reusable: false, status: 0, head_buffer: HeadBuffer::new() }
    }

    /// Whether the request's method is HEAD.
    pub(crate) fn is_to_head_request(&self) -> bool {
        self.to_head_request
    }

    /// Forgets the last answer.
    pub(crate) fn reset(&mut self, to_head_request: bool) {
        self.to_head_request = to_head_request;
        self.state = State::Head;
        self.interim = 0;
        self.reusable = false;
        self.head_buffer.clear();
    }

    /// Status of a complete answer.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection can carry another request after this complete answer.
    pub(crate) fn reusable(&self) -> bool {
        self.reusable
    }

    /// Parses the next bytes. `head_cache`: of answers to the same method.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8], head_cache: &mut HeadCache) -> Result<Completion, BadAnswer> {
        let mut used = 0;
        while matches!(self.state, State::Head) {
            if used == bytes.len() {
                return Ok(Completion::More);
            }
            match self.feed_head(&bytes[used..], head_cache)? {
                Some(head_bytes) => used += head_bytes,
                None => return Ok(Completion::More),
            }
        }
        Ok(match self.feed_body(&bytes[used..])? {
            Some(body_bytes) => {
                self.state = State::Complete;
                Completion::Complete(used + body_bytes)
            }
            None => Completion::More,
        })
    }

    /// The peer closed its side. True if that completes the answer.
    pub(crate) fn close(&mut self) -> Result<bool, BadAnswer> {
        match self.state {
            State::UntilClose => {
                self.state = State::Complete;
                Ok(true)
            }
            State::Head if !self.head_buffer.bytes().is_empty() => parse(self.head_buffer.bytes(), self.to_head_request).map(|_| false),
            _ => Ok(false),
        }
    }

    /// Parses bytes of a head. Returns the number used once it is complete.
    fn feed_head(&mut self, bytes: &[u8], head_cache: &mut HeadCache) -> Result<Option<usize>, BadAnswer> {
        if self.head_buffer.bytes().is_empty() {
            let mut head = head_cache.find(bytes);
            if head.is_none() {
                head = parse(bytes, self.to_head_request)?;
                if let Some(head) = head {
                    head_cache.keep(&bytes[..head.bytes], head);
                }
            }
            if let Some(head) = head {
                self.take_head(&head)?;
                return Ok(Some(head.bytes));
            }
        }
        let end = self.head_buffer.find_end(bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let before = self.head_buffer.bytes().len();
        self.head_buffer.add(part)?;
        if before < PREFIX.len() {
            check_prefix(self.head_buffer.bytes())?;
        }
        if end.is_none() {
            return Ok(None);
        }
        match parse(self.head_buffer.bytes(), self.to_head_request)? {
            Some(head) if head.bytes == self.head_buffer.bytes().len() => {
                self.take_head(&head)?;
                Ok(Some(part.len()))
            }
            _ => Err(BadAnswer("a response head without an empty line at its end")),
        }
    }

    fn take_head(&mut self, head: &Head) -> Result<(), BadAnswer> {
        self.head_buffer.clear();
        if (100..200).contains(&head.status) && head.status != 101 {
            self.interim += 1;
            return if self.interim > INTERIM_MAX { Err(BadAnswer("too many interim answers (1xx)")) } else { Ok(()) };
        }
        self.status = head.status;
        self.reusable = head.reusable;
        self.state = head.body;
        Ok(())
    }

    /// Parses bytes of the body. Returns the number used once it is complete.
    fn feed_body(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadAnswer> {
        match &mut self.state {
            State::Length(left) => {
                let take = (*left).min(bytes.len() as u64);
                *left -= take;
                Ok((*left == 0).then_some(take as usize))
            }
            State::Chunked(chunked) => chunked.feed(bytes),
            State::UntilClose => Ok(None),
            State::Complete => Ok(Some(0)),
            State::Head => unreachable!("the head is complete"),
        }
    }
}

const PREFIX: &[u8] = b"HTTP/1.";

fn check_prefix(bytes: &[u8]) -> Result<(), BadAnswer> {
    let common = bytes.len().min(PREFIX.len());
    if bytes[..common] == PREFIX[..common] { Ok(()) } else { Err(BadAnswer("no HTTP/1.x status line")) }
}

/// Parses a head; `None` if it is not complete.
fn parse(bytes: &[u8], to_head_request: bool) -> Result<Option<Head>, BadAnswer> {
    check_prefix(bytes)?;
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    let bytes = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(httparse::Status::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => bytes,
        Ok(httparse::Status::Complete(_)) => return Err(BadAnswer("a head over 64 KiB")),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(BadAnswer("more than 128 header fields")),
        Err(httparse::Error::Version) => return Err(BadAnswer("no HTTP/1.x status line")),
        Err(httparse::Error::Status) => return Err(BadAnswer("a status that is not a number of three digits")),
        Err(_) => return Err(BadAnswer("a malformed head")),
    };
    let status = response.code.unwrap_or(0);
    if status < 100 {
        return Err(BadAnswer("a status under 100"));
    }
    let http_1_0 = response.version == Some(0);
    let fields = Fields::read(response.headers)?;
    let no_body = to_head_request || matches!(status, 100..200 | 204 | 304);
    let body = if no_body { State::Length(0) } else { fields.framing(http_1_0)? };
    let persistent = if http_1_0 { fields.keep_alive && !fields.close } else { !fields.close };
    let reusable = persistent && status != 101 && !matches!(body, State::UntilClose);
    Ok(Some(Head { bytes, status, reusable, body }))
}

/// The header fields that frame the answer.
#[derive(Default)]
struct Fields<'a> {
    length: Option<&'a [u8]>,
    lengths: u32,
    coded: bool,
    chunked_last: bool,
    chunked_twice: bool,
    close: bool,
    keep_alive: bool,
}

impl<'a> Fields<'a> {
    fn read(headers: &[httparse::Header<'a>]) -> Result<Self, BadAnswer> {
        let mut fields = Fields::default();
        for header in headers {
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for token in tokens(header.value) {
                        fields.close |= token.eq_ignore_ascii_case(b"close");
                        fields.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    fields.length = Some(header.value);
                    fields.lengths += 1;
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    fields.coded = true;
                    for token in tokens(header.value) {
                        fields.chunked_twice |= fields.chunked_last;
                        fields.chunked_last = token.eq_ignore_ascii_case(b"chunked");
                    }
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// How the end of the body is recognised. Ambiguous framing is refused, since a proxy might read it the other way.
    fn framing(&self, http_1_0: bool) -> Result<State, BadAnswer> {
        if self.coded {
            return match (self.lengths, http_1_0, self.chunked_twice, self.chunked_last) {
                (1.., ..) => Err(BadAnswer("both Transfer-Encoding and Content-Length")),
                (_, true, ..) => Err(BadAnswer("Transfer-Encoding in HTTP/1.0")),
                (_, _, true, _) => Err(BadAnswer("a transfer coding after chunked")),
                (_, _, _, true) => Ok(State::Chunked(Chunked::new())),
                (_, _, _, false) => Ok(State::UntilClose),
            };
        }
        match (self.lengths, self.length) {
            (0, _) | (_, None) => Ok(State::UntilClose),
            (1, Some(value)) => length(value).map(State::Length),
            _ => Err(BadAnswer("more than one Content-Length")),
        }
    }
}

fn length(value: &[u8]) -> Result<u64, BadAnswer> {
    let bad = BadAnswer("a Content-Length that is not a number");
    // FromStr accepts a leading plus sign; the grammar (1*DIGIT) does not.
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(bad);
    }
    str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(bad)
}

/// The elements of a comma-separated field value, trimmed, without empty ones.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::gathered::HEAD_BYTES_KEPT;
    use proptest::prelude::*;

    /// How an answer ended: bytes used, status, reusable; `None` if it did not end.
    type Parsed = Option<(usize, u16, bool)>;

    /// Feeds the input in pieces, then closes.
    fn run(input: &[u8], piece: usize, to_head_request: bool) -> Result<Parsed, BadAnswer> {
        run_with(&mut HeadCache::default(), input, piece, to_head_request)
    }

    fn run_with(head_cache: &mut HeadCache, input: &[u8], piece: usize, to_head_request: bool) -> Result<Parsed, BadAnswer> {
        let mut answer = Answer::new(to_head_request);
        let mut before = 0;
        for part in input.chunks(piece.max(1)) {
            if let Completion::Complete(used) = answer.feed(part, head_cache)? {
                return Ok(Some((before + used, answer.status(), answer.reusable())));
            }
            before += part.len();
        }
        Ok(answer.close()?.then(|| (before, answer.status(), answer.reusable())))
    }

    /// Feeds in pieces of every size and checks that the result is the same.
    fn same_in_all_pieces(input: &[u8]) -> Result<Parsed, BadAnswer> {
        let whole = run(input, input.len(), false);
        for piece in 1..input.len() {
            let split = run(input, piece, false);
            assert_eq!(
                split.is_err(),
                whole.is_err(),
                "{:?} in pieces of {piece}: {split:?}, whole: {whole:?}",
                String::from_utf8_lossy(input)
            );
            if whole.is_ok() {
                assert_eq!(split, whole, "{:?} in pieces of {piece}", String::from_utf8_lossy(input));
            }
        }
        whole
    }

    #[test]
    fn answers_end_where_their_framing_says() {
        let cases: [(&str, u16, bool); 21] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, true),
            ("HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, true),
            ("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, true),
            ("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", 200, true),
            ("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nno", 500, true),
            ("HTTP/1.1 200 OK\r\nConnection: foo, CLOSE\r\nContent-Length: 1\r\n\r\nx", 200, false),
            ("HTTP/1.1 200 OK\r\nConnection: foo\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, false),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", 200, true),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, true),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", 204, true),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, true),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 101, false),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                200,
                true,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: , CHUNKED ,\r\n\r\n0\r\nA: b\r\n\r\n", 200, true),
            ("HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 1\r\n\r\nx", 200, true),
            ("HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length:  1 \t\r\n\r\nx", 200, true),
            ("HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n", 999, true),
            ("HTTP/1.1 200 J\u{fc}rgen\r\nContent-Length: 0\r\n\r\n", 200, true),
            ("HTTP/1.1 205 Reset\r\nContent-Length: 3\r\n\r\nabc", 205, true),
        ];
        for (text, status, reusable) in cases {
            let mut followed = text.as_bytes().to_vec();
            followed.extend_from_slice(b"HTTP/1.1 400 next");
            assert_eq!(same_in_all_pieces(&followed), Ok(Some((text.len(), status, reusable))), "{text:?}");
            for cut in 0..text.len() {
                assert_eq!(same_in_all_pieces(&text.as_bytes()[..cut]), Ok(None), "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn without_a_length_an_answer_ends_with_the_close() {
        for head in [
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            for body in ["", "some body"] {
                let text = format!("{head}{body}");
                assert_eq!(same_in_all_pieces(text.as_bytes()), Ok(Some((text.len(), 200, false))), "{text:?}");
            }
        }
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        for head in ["Content-Length: 5", "Transfer-Encoding: chunked", "X: y"] {
            let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            for piece in 1..text.len() {
                assert_eq!(run(text.as_bytes(), piece, true), Ok(Some((text.len(), 200, true))), "{head}");
            }
        }
    }

    #[test]
    fn malformed_and_contradictory_answers_are_refused() {
        let heads = [
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.2 200 OK\r\n\r\n",
            "http/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 abc OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 099 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nName : value\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: value\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\nx",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hex\r\n",
        ];
        for head in heads {
            assert!(same_in_all_pieces(head.as_bytes()).is_err(), "{head:?}");
        }
    }

    #[test]
    fn the_largest_length_does_not_overflow() {
        assert_eq!(same_in_all_pieces(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc"), Ok(None));
    }

    #[test]
    fn heads_are_bounded() {
        let endless = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"A: b\r\n".repeat(20_000)].concat();
        let long_line = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'b'; 100_000]].concat();
        let many =
            |headers: usize| [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"A: b\r\n".repeat(headers), b"Content-Length: 0\r\n\r\n"].concat();
        let interim = |count: usize| {
            [b"HTTP/1.1 102 Processing\r\n\r\n".repeat(count), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()].concat()
        };
        for piece in [1, 1000, 65_536, 200_000] {
            assert!(run(&endless, piece, false).is_err(), "{piece}");
            assert!(run(&long_line, piece, false).is_err(), "{piece}");
            assert!(matches!(run(&many(HEADERS_MAX - 1), piece, false), Ok(Some((_, 200, true)))), "{piece}");
            assert!(run(&many(HEADERS_MAX), piece, false).is_err(), "{piece}");
            assert!(matches!(run(&interim(usize::from(INTERIM_MAX)), piece, false), Ok(Some((_, 200, true)))), "{piece}");
            assert!(run(&interim(usize::from(INTERIM_MAX) + 1), piece, false).is_err(), "{piece}");
        }
    }

    #[test]
    fn a_reset_answer_parses_the_next_one_and_keeps_no_large_buffer() {
        let (mut answer, mut head_cache) = (Answer::new(false), HeadCache::default());
        let long = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'b'; 30_000], b"\r\nContent-Length: 0\r\n\r\n"].concat();
        for _ in 0..3 {
            assert_eq!(answer.feed(&long[..20_000], &mut head_cache), Ok(Completion::More));
            assert_eq!(answer.feed(&long[20_000..], &mut head_cache), Ok(Completion::Complete(long.len() - 20_000)));
            assert!(answer.head_buffer.capacity() <= HEAD_BYTES_KEPT);
            answer.reset(false);
        }
        assert_eq!(answer.feed(b"HTTP/1.1 2", &mut head_cache), Ok(Completion::More));
        answer.reset(false);
        assert_eq!(answer.feed(b"HTTP/1.1 204 \r\n\r\n", &mut head_cache), Ok(Completion::Complete(17)));
    }

    #[test]
    fn a_cached_head_keeps_its_meaning() {
        let answers: [(&str, u16); 6] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny", 200),
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world", 200),
            ("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 404),
            ("HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n", 404),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", 204),
        ];
        let (mut answer, mut head_cache) = (Answer::new(false), HeadCache::default());
        for (text, status) in answers.iter().chain(&answers).chain(answers.iter().rev()) {
            answer.reset(false);
            assert_eq!(answer.feed(text.as_bytes(), &mut head_cache), Ok(Completion::Complete(text.len())), "{text:?}");
            assert_eq!(answer.status(), *status);
        }
        let long = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'b'; 3000], b"\r\nContent-Length: 0\r\n\r\n"].concat();
        answer.reset(false);
        assert_eq!(answer.feed(&long, &mut head_cache), Ok(Completion::Complete(long.len())));
        assert!(head_cache.bytes.capacity() <= HEAD_CACHE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..300), piece in 1usize..50, to_head in any::<bool>()) {
            let _ = run(&input, piece, to_head);
        }

        #[test]
        fn a_damaged_answer_gives_the_same_result_with_a_filled_cache(
            which in 0usize..4,
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
            piece in 1usize..80,
            to_head in any::<bool>(),
        ) {
            let whole = [
                "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nSum: 5\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno",
                "HTTP/1.0 200 OK\r\n\r\nuntil the close",
            ][which].as_bytes();
            let mut head_cache = HeadCache::default();
            prop_assert!(run_with(&mut head_cache, whole, whole.len(), to_head).is_ok());
            let mut damaged = whole.to_vec();
            for (place, byte, kind) in damage {
                if damaged.is_empty() {
                    break;
                }
                let at = place.index(damaged.len());
                match kind {
                    0 => damaged[at] = byte,
                    1 => damaged.insert(at, byte),
                    2 => drop(damaged.remove(at)),
                    _ => damaged.extend_from_within(at..),
                }
            }
            let (alone, remembering) = (run(&damaged, piece, to_head), run_with(&mut head_cache, &damaged, piece, to_head));
            prop_assert_eq!(alone, remembering);
        }

        #[test]
        fn splitting_never_changes_the_result(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "HTTP/1.1 200 OK\r\n", "HTTP/1.0 404 No\r\n", "HTTP/1.1 100 C\r\n", "\r\n", "\n", "\r", "Content-Length: 3\r\n", "Content-Length: 9\n",
                "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "A: b\r\n", " fold\r\n", "3\r\nabc\r\n", "0\r\n", "abc", "\u{fc}", "\0",
            ]), 0..12),
            piece in 1usize..40,
        ) {
            let input = parts.concat().into_bytes();
            let (split, whole) = (run(&input, piece, false), run(&input, input.len(), false));
            prop_assert_eq!(split.is_err(), whole.is_err(), "{:?} {:?}", split, whole);
            if whole.is_ok() {
                prop_assert_eq!(split, whole);
            }
        }
    }
}
