//! A FastCGI answer as a state machine fed with bytes: records split anywhere, the CGI head in FCGI_STDOUT (RFC 3875 section 6), the end.

use super::{END_REQUEST, HEADER_BYTES, REQUEST_ID, STDERR, STDOUT, VERSION};
use crate::protocol::answer::{Bad, Fed, HEADERS_MAX};
use crate::protocol::gathered::Gathered;

/// Bytes of the content of FCGI_END_REQUEST.
const END_BYTES: usize = 8;
/// Bytes of an example of what came in FCGI_STDERR.
const EXAMPLE_BYTES_MAX: usize = 120;

/// What answers said on FCGI_STDERR, of all connections of a thread.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    /// Requests with at least one byte there.
    requests: u64,
    /// The longest piece, as far as it is kept: pieces of several answers are never mixed.
    example: Vec<u8>,
}

impl Complaints {
    fn take(&mut self, bytes: &[u8], is_first: bool) {
        self.requests += u64::from(is_first);
        let bytes = &bytes[..bytes.len().min(EXAMPLE_BYTES_MAX)];
        if bytes.len() > self.example.len() {
            self.example.clear();
            self.example.extend_from_slice(bytes);
        }
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Complaints) {
        self.take(&other.example, false);
        self.requests += other.requests;
    }

    /// In words, if there was any.
    pub(crate) fn text(&self) -> Option<String> {
        let example = String::from_utf8_lossy(&self.example).replace(|char: char| char.is_control(), " ");
        let requests = self.requests;
        (requests > 0).then(|| format!("error output (FCGI_STDERR) with {requests} answers, such as: {}", example.trim()))
    }
}

/// Where in the records the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Content,
    Padding,
}

/// One answer in the making. [`Answer::reset`] makes it ready for the next.
#[derive(Debug)]
pub(crate) struct Answer {
    part: Part,
    /// The record's header, then what FCGI_END_REQUEST holds, as far as they came.
    fixed: [u8; HEADER_BYTES],
    fixed_bytes: u8,
    kind: u8,
    /// Bytes of content and of padding left in this record.
    content: u16,
    padding: u8,
    /// The head is complete.
    has_head: bool,
    /// FCGI_END_REQUEST has come whole.
    has_ended: bool,
    /// There was something on FCGI_STDERR.
    has_complained: bool,
    /// FCGI_KEEP_CONN was asked for.
    keep_connection: bool,
    status: u16,
    gathered: Gathered,
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
            has_complained: false,
            keep_connection,
            status: 0,
            gathered: Gathered::of_fields(),
        }
    }

    /// Forgets everything of the last answer.
    pub(crate) fn reset(&mut self) {
        self.part = Part::Header;
        self.fixed_bytes = 0;
        self.has_head = false;
        self.has_ended = false;
        self.has_complained = false;
        self.gathered.clear();
    }

    /// Status of a complete answer.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// True where the connection may carry another request after this complete answer.
    pub(crate) fn reusable(&self) -> bool {
        self.keep_connection
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], complaints: &mut Complaints) -> Result<Fed, Bad> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.part {
                Part::Header => {
                    used += self.fix(rest);
                    // Looked at first, so that a server of another protocol is told at its first byte.
                    if self.fixed_bytes > 0 && self.fixed[0] != VERSION {
                        return Err(Bad("no FastCGI record of version 1"));
                    }
                    if usize::from(self.fixed_bytes) < HEADER_BYTES {
                        return Ok(Fed::More);
                    }
                    self.begin()?;
                }
                Part::Content => {
                    let take = rest.len().min(usize::from(self.content));
                    self.take(&rest[..take], complaints)?;
                    self.content -= take as u16;
                    used += take;
                    if self.content > 0 {
                        return Ok(Fed::More);
                    }
                    self.part = Part::Padding;
                }
                Part::Padding => {
                    let take = rest.len().min(usize::from(self.padding));
                    self.padding -= take as u8;
                    used += take;
                    if self.padding > 0 {
                        return Ok(Fed::More);
                    }
                    if self.has_ended {
                        return Ok(Fed::Complete(used));
                    }
                    self.part = Part::Header;
                    self.fixed_bytes = 0;
                }
            }
        }
    }

    /// Fills the fixed part; the number of bytes taken.
    fn fix(&mut self, bytes: &[u8]) -> usize {
        let from = usize::from(self.fixed_bytes);
        let take = bytes.len().min(HEADER_BYTES - from);
        self.fixed[from..from + take].copy_from_slice(&bytes[..take]);
        self.fixed_bytes += take as u8;
        take
    }

    /// A record begins: what it is and how long.
    fn begin(&mut self) -> Result<(), Bad> {
        let [_, kind, id_high, id_low, high, low, padding, _] = self.fixed;
        let content = u16::from_be_bytes([high, low]);
        match ([id_high, id_low], kind) {
            // Management records (FCGI_GET_VALUES_RESULT, FCGI_UNKNOWN_TYPE) are no part of an answer.
            ([0, 0], 9..) => {}
            ([0, REQUEST_ID], STDOUT | STDERR) => {}
            ([0, REQUEST_ID], END_REQUEST) if usize::from(content) == END_BYTES => {}
            ([0, REQUEST_ID], END_REQUEST) => return Err(Bad("an FCGI_END_REQUEST that is not of eight bytes")),
            ([0, REQUEST_ID], _) => return Err(Bad("a FastCGI record of a type that no responder sends")),
            _ => return Err(Bad("a FastCGI record of another request")),
        }
        (self.kind, self.content, self.padding) = (kind, content, padding);
        self.part = Part::Content;
        self.fixed_bytes = 0;
        Ok(())
    }

    /// Takes bytes of this record's content.
    fn take(&mut self, bytes: &[u8], complaints: &mut Complaints) -> Result<(), Bad> {
        match self.kind {
            STDOUT if !self.has_head => self.take_head(bytes),
            STDERR if !bytes.is_empty() => {
                complaints.take(bytes, !self.has_complained);
                self.has_complained = true;
                Ok(())
            }
            END_REQUEST => {
                self.fix(bytes);
                if usize::from(self.fixed_bytes) < END_BYTES { Ok(()) } else { self.end() }
            }
            _ => Ok(()),
        }
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        let end = self.gathered.find_end(bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        // A head that came whole is parsed where it lies.
        if self.gathered.bytes().is_empty() && end.is_some() {
            self.status = status(part)?;
        } else {
            self.gathered.add(part)?;
            if end.is_none() {
                return Ok(());
            }
            self.status = status(self.gathered.bytes())?;
        }
        self.has_head = true;
        self.gathered.clear();
        Ok(())
    }

    /// FCGI_END_REQUEST: the application's own status, which says nothing to a client, then the protocol's.
    fn end(&mut self) -> Result<(), Bad> {
        self.has_ended = true;
        match self.fixed[4] {
            0 if self.has_head => Ok(()),
            0 => Err(Bad("the request ended before the head of its answer")),
            1 => Err(Bad("FCGI_CANT_MPX_CONN: the server takes one request at a time on a connection")),
            2 => Err(Bad("FCGI_OVERLOADED: the server says that it is out of some resource")),
            3 => Err(Bad("FCGI_UNKNOWN_ROLE: the server is no responder")),
            _ => Err(Bad("a protocol status that FastCGI 1.0 does not have")),
        }
    }
}

/// Status of a whole CGI head: that of its Status field, 302 where it sends the client elsewhere (RFC 3875 section 6.2.4), else 200.
fn status(head: &[u8]) -> Result<u16, Bad> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let fields = match httparse::parse_headers(head, &mut fields) {
        Ok(httparse::Status::Complete((bytes, fields))) if bytes == head.len() => fields,
        Ok(_) => return Err(Bad("a head that does not end at its empty line")),
        Err(httparse::Error::TooManyHeaders) => return Err(Bad("more than 128 header fields")),
        Err(_) => return Err(Bad("a malformed CGI head")),
    };
    let field = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
    match (field("status"), field("location")) {
        (Some(value), _) => code(value).ok_or(Bad("a status that is no number of three digits")),
        (None, Some(_)) => Ok(302),
        (None, None) => Ok(200),
    }
}

/// "404 Not Found" as its number.
fn code(value: &[u8]) -> Option<u16> {
    let (digits, rest) = value.split_at_checked(3)?;
    let is_end = rest.first().is_none_or(|byte| *byte == b' ');
    let number = str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    (is_end && number >= 100).then_some(number)
}

#[cfg(test)]
mod tests;
