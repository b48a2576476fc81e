//! HTTP/1.0 and HTTP/1.1 (RFC 9112): the boundaries of messages, and what they say about the connection.

use super::exchanges::Exchanges;
use super::order::Piece;

/// Longest head that is parsed, bytes. Servers refuse longer heads (nginx takes at most 32 KiB by default).
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Longest line with the size of a chunk, bytes.
const LINE_BYTES_MAX: usize = 256;
const METHODS: [&[u8]; 9] = [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE "];

/// The parser's position in one direction.
#[derive(Debug, Default)]
enum State {
    /// Before a message.
    #[default]
    Between,
    /// Within a head of which this many bytes came.
    Head(Vec<u8>),
    /// Within a body of which this many bytes remain.
    Body(u64),
    /// Within a chunked body.
    Chunked(Chunk),
    /// Within a body that ends with the connection.
    UntilClose,
    /// Another protocol took over.
    Tunnel,
    /// Out of step. Parsing resumes at the next message that begins with a segment.
    Lost,
}

#[derive(Debug)]
enum Chunk {
    Size(Vec<u8>),
    Data(u64),
    Trailer(Vec<u8>),
}

/// The state of one direction.
#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
}

/// The fields of a head.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    status: u16,
    http10: bool,
    head: bool,
    connect: bool,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep: bool,
    timeout_s: Option<u32>,
}

/// True if these are the first bytes of a request.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.starts_with(method))
}

/// True if these are the first bytes of an answer.
pub(super) fn is_answer(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.")
}

impl Parser {
    pub(super) fn piece(&mut self, piece: Piece<'_>, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        match piece {
            Piece::Hole(missing) => self.hole(missing, client, exchanges, at_ns),
            Piece::Bytes(mut bytes) => {
                if matches!(self.state, State::Lost) && (client && is_request(bytes) || !client && is_answer(bytes)) {
                    self.state = State::Between;
                }
                while !bytes.is_empty() {
                    bytes = self.step(bytes, client, exchanges, at_ns);
                }
            }
        }
    }

    /// Memory that the beginning of a head or line takes whose end did not come yet, bytes.
    pub(super) fn held(&self) -> usize {
        match &self.state {
            State::Head(seen) | State::Chunked(Chunk::Size(seen) | Chunk::Trailer(seen)) => seen.capacity(),
            _ => 0,
        }
    }

    /// Gives such a beginning up: the message is out of step, as after a hole.
    pub(super) fn give_up(&mut self, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        if self.held() > 0 {
            self.lose(client, exchanges, at_ns);
        }
    }

    /// The server has no more to send.
    pub(super) fn ended(&mut self, exchanges: &mut Exchanges, at_ns: i64) {
        if matches!(self.state, State::UntilClose) {
            exchanges.answer_ends(exchanges.last_answer_ns.unwrap_or(at_ns));
            self.state = State::Lost;
        }
    }

    fn hole(&mut self, missing: u64, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        let into = |left: u64| left.checked_sub(missing);
        match &mut self.state {
            State::Body(left) => match into(*left) {
                Some(0) => self.over(client, exchanges, at_ns),
                Some(rest) => {
                    *left = rest;
                    goes_on(client, exchanges, at_ns);
                }
                None => self.lose(client, exchanges, at_ns),
            },
            State::Chunked(Chunk::Data(left)) => match into(*left) {
                Some(rest) if rest > 0 => *left = rest,
                _ => self.lose(client, exchanges, at_ns),
            },
            State::UntilClose => goes_on(client, exchanges, at_ns),
            State::Tunnel | State::Lost => {}
            State::Between | State::Head(_) | State::Chunked(_) => self.lose(client, exchanges, at_ns),
        }
    }

    /// Out of step. An answer in progress counts as complete because its end cannot be seen.
    fn lose(&mut self, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        if !client {
            exchanges.answer_ends(at_ns);
        }
        self.state = State::Lost;
    }

    fn over(&mut self, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        goes_on(client, exchanges, at_ns);
        if !client {
            exchanges.answer_ends(at_ns);
        }
        self.state = State::Between;
    }

    /// Consumes the message at the front. Returns the rest, which is shorter.
    fn step<'a>(&mut self, bytes: &'a [u8], client: bool, exchanges: &mut Exchanges, at_ns: i64) -> &'a [u8] {
        match &mut self.state {
            State::Between => self.begin(bytes, client, exchanges, at_ns),
            State::Head(seen) => {
                let before = seen.len();
                seen.extend_from_slice(bytes.get(..HEAD_BYTES_MAX.min(bytes.len())).unwrap_or_default());
                goes_on(client, exchanges, at_ns);
                match end_of_head(seen, before) {
                    Some(end) => {
                        let head = parse(&seen[..end], client);
                        self.headed(head, client, exchanges, at_ns);
                        bytes.get(end - before..).unwrap_or_default()
                    }
                    None => {
                        if seen.len() > HEAD_BYTES_MAX {
                            self.lose(client, exchanges, at_ns);
                        }
                        &[]
                    }
                }
            }
            State::Body(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                let over = *left == 0;
                goes_on(client, exchanges, at_ns);
                if over {
                    self.over(client, exchanges, at_ns);
                }
                &bytes[taken..]
            }
            State::Chunked(chunk) => {
                goes_on(client, exchanges, at_ns);
                match chunk.step(bytes) {
                    Step::More(rest) => rest,
                    Step::Over(rest) => {
                        self.over(client, exchanges, at_ns);
                        rest
                    }
                    Step::Wrong => {
                        self.lose(client, exchanges, at_ns);
                        &[]
                    }
                }
            }
            State::UntilClose => {
                goes_on(client, exchanges, at_ns);
                &[]
            }
            State::Tunnel | State::Lost => &[],
        }
    }

    fn begin<'a>(&mut self, bytes: &'a [u8], client: bool, exchanges: &mut Exchanges, at_ns: i64) -> &'a [u8] {
        // Empty lines before a message are skipped (RFC 9112, 2.2).
        let bytes = &bytes[bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..];
        if bytes.is_empty() {
            return bytes;
        }
        let begins = if client { bytes[0].is_ascii_uppercase() } else { b"HTTP/1.".starts_with(&bytes[..bytes.len().min(7)]) };
        if !begins && (client || !is_answer(bytes)) {
            self.lose(client, exchanges, at_ns);
            return &[];
        }
        if client {
            exchanges.request_begins(at_ns);
        } else {
            exchanges.answer_begins(at_ns);
        }
        goes_on(client, exchanges, at_ns);
        match end_of_head(bytes, 0) {
            Some(end) => {
                self.headed(parse(&bytes[..end], client), client, exchanges, at_ns);
                &bytes[end..]
            }
            None if bytes.len() > HEAD_BYTES_MAX => {
                self.lose(client, exchanges, at_ns);
                &[]
            }
            None => {
                self.state = State::Head(bytes.to_vec());
                &[]
            }
        }
    }

    /// A head is complete.
    fn headed(&mut self, head: Option<Head>, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        let Some(head) = head else { return self.lose(client, exchanges, at_ns) };
        let unkept = head.http10 && !head.keep;
        if client {
            exchanges.spoken.requests_close += u64::from(head.close);
            exchanges.spoken.requests_http10 += u64::from(unkept && !head.close);
            exchanges.request_goes_on(at_ns, head.head, head.connect);
            self.state = match (head.chunked, head.length) {
                (true, _) => State::Chunked(Chunk::Size(Vec::new())),
                (false, Some(length)) if length > 0 => State::Body(length),
                _ => State::Between,
            };
            return;
        }
        if (100..200).contains(&head.status) && head.status != 101 {
            exchanges.answer_was_interim();
            self.state = State::Between;
            return;
        }
        if let Some(class) = exchanges.spoken.statuses.get_mut(usize::from(head.status / 100).wrapping_sub(1)) {
            *class += 1;
        }
        exchanges.spoken.answers_close += u64::from(head.close || unkept);
        exchanges.spoken.timeout_s = head.timeout_s.or(exchanges.spoken.timeout_s);
        let (asked_head, connect) = exchanges.asked();
        if head.status == 101 || connect && head.status / 100 == 2 {
            exchanges.answer_ends(at_ns);
            self.state = State::Tunnel;
        } else if asked_head || matches!(head.status, 204 | 304) || head.length == Some(0) && !head.chunked {
            self.over(client, exchanges, at_ns);
        } else if head.chunked {
            self.state = State::Chunked(Chunk::Size(Vec::new()));
        } else if let Some(length) = head.length {
            self.state = State::Body(length);
        } else {
            exchanges.spoken.answers_until_close += 1;
            self.state = State::UntilClose;
        }
    }
}

fn goes_on(client: bool, exchanges: &mut Exchanges, at_ns: i64) {
    if client { exchanges.request_goes_on(at_ns, false, false) } else { exchanges.answer_goes_on(at_ns) }
}

enum Step<'a> {
    More(&'a [u8]),
    Over(&'a [u8]),
    Wrong,
}

impl Chunk {
    fn step<'a>(&mut self, bytes: &'a [u8]) -> Step<'a> {
        match self {
            Chunk::Size(line) => match take_line(line, bytes) {
                Line::More => Step::More(&[]),
                Line::TooLong => Step::Wrong,
                Line::Whole(rest) => {
                    let size = chunk_size(line);
                    *self = match size {
                        None => return Step::Wrong,
                        Some(0) => Chunk::Trailer(Vec::new()),
                        // The line end after the data counts with it.
                        Some(size) => Chunk::Data(size.saturating_add(2)),
                    };
                    Step::More(rest)
                }
            },
            Chunk::Data(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    *self = Chunk::Size(Vec::new());
                }
                Step::More(&bytes[taken..])
            }
            Chunk::Trailer(line) => match take_line(line, bytes) {
                Line::More => Step::More(&[]),
                Line::TooLong => Step::Wrong,
                Line::Whole(rest) if line.iter().all(|byte| *byte == b'\r') => Step::Over(rest),
                Line::Whole(rest) => {
                    line.clear();
                    Step::More(rest)
                }
            },
        }
    }
}

enum Line<'a> {
    More,
    Whole(&'a [u8]),
    TooLong,
}

/// Completes a line without its line feed.
fn take_line<'a>(line: &mut Vec<u8>, bytes: &'a [u8]) -> Line<'a> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let part = &bytes[..end.unwrap_or(bytes.len())];
    if line.len() + part.len() > LINE_BYTES_MAX {
        return Line::TooLong;
    }
    line.extend_from_slice(part);
    end.map_or(Line::More, |end| Line::Whole(&bytes[end + 1..]))
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let text = std::str::from_utf8(line.get(..digits)?).ok()?;
    u64::from_str_radix(text, 16).ok()
}

/// Position after the empty line that ends a head. The first `from` bytes were searched before.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from.saturating_sub(3);
    while let Some(place) = bytes.get(at..)?.iter().position(|byte| *byte == b'\n') {
        let end = at + place + 1;
        match bytes.get(end..)? {
            [b'\n', ..] => return Some(end + 1),
            [b'\r', b'\n', ..] => return Some(end + 2),
            _ => at = end,
        }
    }
    None
}

fn parse(head: &[u8], client: bool) -> Option<Head> {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.next()?;
    let mut found = Head::default();
    if client {
        let version = first.get(first.len().checked_sub(8)?..)?;
        found.http10 = version == b"HTTP/1.0";
        if !version.starts_with(b"HTTP/1.") {
            return None;
        }
        found.head = first.starts_with(b"HEAD ");
        found.connect = first.starts_with(b"CONNECT ");
    } else {
        found.http10 = first.starts_with(b"HTTP/1.0");
        found.status = std::str::from_utf8(first.get(9..12)?).ok()?.parse().ok()?;
    }
    for line in lines {
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            found.header(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    Some(found)
}

impl Head {
    fn header(&mut self, name: &[u8], value: &[u8]) {
        let has = |word: &[u8]| value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word));
        if name.eq_ignore_ascii_case(b"connection") {
            self.close |= has(b"close");
            self.keep |= has(b"keep-alive");
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked |= has(b"chunked");
        } else if name.eq_ignore_ascii_case(b"keep-alive") {
            let timeout = value.split(|byte| *byte == b',').find_map(|part| part.trim_ascii().strip_prefix(b"timeout="));
            self.timeout_s = timeout.and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
        }
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
