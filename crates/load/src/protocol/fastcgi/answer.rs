//! Parses a FastCGI answer byte by byte: records that are split anywhere, the CGI head in FCGI_STDOUT (RFC 3875 section 6), the end.

use super::record::{END_REQUEST, HEADER_BYTES, REQUEST_ID, STDERR, STDOUT, VERSION};
use crate::protocol::completion::{BadAnswer, Completion, HEADERS_MAX};
use crate::protocol::gathered::HeadBuffer;

/// Bytes of the content of FCGI_END_REQUEST.
const END_BYTES: usize = 8;
/// Maximum bytes kept as an example of FCGI_STDERR output.
const EXAMPLE_BYTES_MAX: usize = 120;

/// What a thread's answers contained in FCGI_STDERR.
#[derive(Debug, Default)]
pub(crate) struct ErrorOutput {
    /// Number of requests with such output.
    requests: u64,
    /// The longest piece, cut to its maximum. Pieces of several answers are never mixed.
    example: Vec<u8>,
}

impl ErrorOutput {
    fn take(&mut self, bytes: &[u8], is_first: bool) {
        self.requests += u64::from(is_first);
        let bytes = &bytes[..bytes.len().min(EXAMPLE_BYTES_MAX)];
        if bytes.len() > self.example.len() {
            self.example.clear();
            self.example.extend_from_slice(bytes);
        }
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &ErrorOutput) {
        self.take(&other.example, false);
        self.requests += other.requests;
    }

    /// In words, if there was any.
    pub(crate) fn text(&self) -> Option<String> {
        let example = String::from_utf8_lossy(&self.example).replace(|char: char| char.is_control(), " ");
        let requests = self.requests;
        (requests > 0).then(|| format!("error output (FCGI_STDERR) with {requests} responses, for example: {}", example.trim()))
    }
}

/// The part of a record that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Content,
    Padding,
}

/// An answer while it is parsed. [`Answer::reset`] prepares it for the next.
#[derive(Debug)]
pub(crate) struct Answer {
    part: Part,
    /// The received part of the record's header, then of the content of FCGI_END_REQUEST.
    fixed: [u8; HEADER_BYTES],
    fixed_bytes: u8,
    kind: u8,
    /// Bytes of content and of padding left in this record.
    content: u16,
    padding: u8,
    /// The head is complete.
    has_head: bool,
    /// FCGI_END_REQUEST is complete.
    has_ended: bool,
    /// There was output in FCGI_STDERR.
    has_error_output: bool,
    /// FCGI_KEEP_CONN was requested.
    keep_connection: bool,
    status: u16,
    head_buffer: HeadBuffer,
}

impl Answer {
    /// `keep_connection`: the request has FCGI_KEEP_CONN.
    pub(crate) fn new(keep_connection: bool) -> Self {
        Answer {
            part: Part::Header,
            fixed: [0; HEADER_BYTES],
            fixed_bytes: 0,
            kind: 0,
            content: 0,
            padding: 0,
            has_head: false,
            has_ended: false,
            has_error_output: false,
            keep_connection,
            status: 0,
            head_buffer: HeadBuffer::of_fields(),
        }
    }

    /// Forgets the last answer.
    pub(crate) fn reset(&mut self) {
        self.part = Part::Header;
        self.fixed_bytes = 0;
        self.has_head = false;
        self.has_ended = false;
        self.has_error_output = false;
        self.head_buffer.clear();
    }

    /// Status of a complete answer.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection can carry another request after this complete answer.
    pub(crate) fn reusable(&self) -> bool {
        self.keep_connection
    }

    /// Parses the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], error_output: &mut ErrorOutput) -> Result<Completion, BadAnswer> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.part {
                Part::Header => {
                    used += self.fix(rest);
                    // Checked first, so that a server of another protocol is noticed at its first byte.
                    if self.fixed_bytes > 0 && self.fixed[0] != VERSION {
                        return Err(BadAnswer("no FastCGI record of version 1"));
                    }
                    if usize::from(self.fixed_bytes) < HEADER_BYTES {
                        return Ok(Completion::More);
                    }
                    self.begin()?;
                }
                Part::Content => {
                    let take = rest.len().min(usize::from(self.content));
                    self.take(&rest[..take], error_output)?;
                    self.content -= take as u16;
                    used += take;
                    if self.content > 0 {
                        return Ok(Completion::More);
                    }
                    self.part = Part::Padding;
                }
                Part::Padding => {
                    let take = rest.len().min(usize::from(self.padding));
                    self.padding -= take as u8;
                    used += take;
                    if self.padding > 0 {
                        return Ok(Completion::More);
                    }
                    if self.has_ended {
                        return Ok(Completion::Complete(used));
                    }
                    self.part = Part::Header;
                    self.fixed_bytes = 0;
                }
            }
        }
    }

    /// Fills the fixed part. Returns the number of bytes used.
    fn fix(&mut self, bytes: &[u8]) -> usize {
        let from = usize::from(self.fixed_bytes);
        let take = bytes.len().min(HEADER_BYTES - from);
        self.fixed[from..from + take].copy_from_slice(&bytes[..take]);
        self.fixed_bytes += take as u8;
        take
    }

    /// Starts a record: its type and lengths.
    fn begin(&mut self) -> Result<(), BadAnswer> {
        let [_, kind, id_high, id_low, high, low, padding, _] = self.fixed;
        let content = u16::from_be_bytes([high, low]);
        match ([id_high, id_low], kind) {
            // Management records (FCGI_GET_VALUES_RESULT, FCGI_UNKNOWN_TYPE) are not part of an answer.
            ([0, 0], 9..) => {}
            ([0, REQUEST_ID], STDOUT | STDERR) => {}
            ([0, REQUEST_ID], END_REQUEST) if usize::from(content) == END_BYTES => {}
            ([0, REQUEST_ID], END_REQUEST) => return Err(BadAnswer("an FCGI_END_REQUEST that does not have eight bytes")),
            ([0, REQUEST_ID], _) => return Err(BadAnswer("a FastCGI record of a type that no responder sends")),
            _ => return Err(BadAnswer("a FastCGI record of another request")),
        }
        (self.kind, self.content, self.padding) = (kind, content, padding);
        self.part = Part::Content;
        self.fixed_bytes = 0;
        Ok(())
    }

    /// Parses bytes of this record's content.
    fn take(&mut self, bytes: &[u8], error_output: &mut ErrorOutput) -> Result<(), BadAnswer> {
        match self.kind {
            STDOUT if !self.has_head => self.take_head(bytes),
            STDERR if !bytes.is_empty() => {
                error_output.take(bytes, !self.has_error_output);
                self.has_error_output = true;
                Ok(())
            }
            END_REQUEST => {
                self.fix(bytes);
                if usize::from(self.fixed_bytes) < END_BYTES { Ok(()) } else { self.end() }
            }
            _ => Ok(()),
        }
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<(), BadAnswer> {
        let end = self.head_buffer.find_end(bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        // A head that arrives whole is parsed in place.
        if self.head_buffer.bytes().is_empty() && end.is_some() {
            self.status = status(part)?;
        } else {
            self.head_buffer.add(part)?;
            if end.is_none() {
                return Ok(());
            }
            self.status = status(self.head_buffer.bytes())?;
        }
        self.has_head = true;
        self.head_buffer.clear();
        Ok(())
    }

    /// FCGI_END_REQUEST: the application's own status, which means nothing to a client, then the protocol's status.
    fn end(&mut self) -> Result<(), BadAnswer> {
        self.has_ended = true;
        match self.fixed[4] {
            0 if self.has_head => Ok(()),
            0 => Err(BadAnswer("the request ended before the head of its response")),
            1 => Err(BadAnswer("FCGI_CANT_MPX_CONN: the server accepts only one request at a time on a connection")),
            2 => Err(BadAnswer("FCGI_OVERLOADED: the server is out of some resource")),
            3 => Err(BadAnswer("FCGI_UNKNOWN_ROLE: the server is not a responder")),
            _ => Err(BadAnswer("a protocol status that FastCGI 1.0 does not have")),
        }
    }
}

/// Status of a complete CGI head: its Status field, 302 for a redirect (RFC 3875 section 6.2.4), else 200.
fn status(head: &[u8]) -> Result<u16, BadAnswer> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let fields = match httparse::parse_headers(head, &mut fields) {
        Ok(httparse::Status::Complete((bytes, fields))) if bytes == head.len() => fields,
        Ok(_) => return Err(BadAnswer("a response head without an empty line at its end")),
        Err(httparse::Error::TooManyHeaders) => return Err(BadAnswer("more than 128 header fields")),
        Err(_) => return Err(BadAnswer("a malformed CGI head")),
    };
    let field = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
    match (field("status"), field("location")) {
        (Some(value), _) => code(value).ok_or(BadAnswer("a status that is not a number of three digits")),
        (None, Some(_)) => Ok(302),
        (None, None) => Ok(200),
    }
}

/// The number of a status such as "404 Not Found".
fn code(value: &[u8]) -> Option<u16> {
    let (digits, rest) = value.split_at_checked(3)?;
    let is_end = rest.first().is_none_or(|byte| *byte == b' ');
    let number = str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    (is_end && number >= 100).then_some(number)
}

#[cfg(test)]
mod tests;
