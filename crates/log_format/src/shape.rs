//! The shapes of values in a log. They give the end of a value if a delimiter alone would be ambiguous.

/// The shape of a variable's values. In every shape but `Text`, `-` (or nothing, with `escape=json` and `escape=none`) means a missing
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Anything up to the next literal.
    Text,
    /// Anything without blanks.
    Word,
    /// Digits, with a minus in front if the value can be negative.
    Integer,
    /// Three digits.
    Status,
    /// Digits and one dot.
    Decimal,
    /// One number for each upstream tried, separated by ", ", or by " : " after an internal redirect to another group.
    Numbers,
    /// The same with addresses.
    Addresses,
    /// `20/Nov/2026:07:17:47 +0000`.
    TimeLocal,
    /// `2026-11-20T07:17:47+00:00`.
    TimeIso,
    /// `p` or `.`.
    Pipe,
}

/// The shape of an nginx variable.
pub(super) fn of_nginx(name: &str) -> Shape {
    match name {
        "status" => Shape::Status,
        "body_bytes_sent"
        | "bytes_sent"
        | "connection"
        | "connection_requests"
        | "content_length"
        | "pid"
        | "remote_port"
        | "request_length"
        | "server_port"
        | "proxy_protocol_port"
        | "connections_active"
        | "connections_reading"
        | "connections_waiting"
        | "connections_writing"
        | "bytes_received"
        | "protocol_version" => Shape::Integer,
        "msec" | "request_time" | "connection_time" | "session_time" | "gzip_ratio" => Shape::Decimal,
        "upstream_bytes_received"
        | "upstream_bytes_sent"
        | "upstream_connect_time"
        | "upstream_first_byte_time"
        | "upstream_header_time"
        | "upstream_response_length"
        | "upstream_response_time"
        | "upstream_session_time"
        | "upstream_status"
        | "upstream_queue_time" => Shape::Numbers,
        "upstream_addr" => Shape::Addresses,
        "time_local" => Shape::TimeLocal,
        "time_iso8601" => Shape::TimeIso,
        "pipe" => Shape::Pipe,
        "remote_addr"
        | "realip_remote_addr"
        | "binary_remote_addr"
        | "server_addr"
        | "scheme"
        | "server_protocol"
        | "request_method"
        | "hostname"
        | "request_id"
        | "server_name"
        | "ssl_protocol"
        | "ssl_cipher"
        | "ssl_session_reused"
        | "upstream_cache_status"
        | "https"
        | "http2"
        | "tcpinfo_rtt"
        | "tcpinfo_rttvar"
        | "tcpinfo_snd_cwnd"
        | "tcpinfo_rcv_space"
        | "nginx_version"
        | "protocol" => Shape::Word,
        _ => Shape::Text,
    }
}

impl Shape {
    /// True if the value itself shows its end, so that another variable may follow directly.
    pub(super) fn has_own_end(self) -> bool {
        matches!(self, Self::Status | Self::TimeLocal | Self::TimeIso | Self::Pipe)
    }

    /// The longest value at the start of `bytes`; `None` if there is none. `Text` and `Word` extend as far as they can.
    pub(super) fn longest(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Text => Some(bytes.len()),
            Self::Word => Some(bytes.iter().take_while(|byte| !byte.is_ascii_whitespace()).count()),
            Self::Integer => Some(number_len(bytes, false)),
            Self::Decimal => Some(number_len(bytes, true)),
            Self::Status => Some(if bytes.first() == Some(&b'-') { 1 } else { digits(bytes, 3) }),
            Self::Numbers => Some(list_len(bytes, |rest| number_len(rest, true))),
            Self::Addresses => Some(list_len(bytes, address_len)),
            Self::TimeLocal => TIME_LOCAL.fits(bytes),
            Self::TimeIso => TIME_ISO.fits(bytes),
            Self::Pipe => matches!(bytes.first(), Some(b'p' | b'.')).then_some(1),
        }
    }

    /// Lengths shorter than `len` that are also a whole value, from long to short. Lists may lose their last entries.
    pub(super) fn shorter(self, bytes: &[u8], len: usize) -> Option<usize> {
        match self {
            Self::Numbers | Self::Addresses => {
                let value = &bytes[..len];
                let comma = value.windows(2).rposition(|pair| pair == b", ");
                let colon = value.windows(3).rposition(|triple| triple == b" : ");
                comma.max(colon)
            }
            // A value may also be missing if a number's first character belongs to the literal after it.
            Self::Integer | Self::Decimal if len > 0 => Some(0),
            _ => None,
        }
    }
}

fn digits(bytes: &[u8], most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count()
}

fn all_digits(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len())
}

/// `-`, `12`, `-12`, and with a fraction `1.234`.
fn number_len(bytes: &[u8], fraction: bool) -> usize {
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = all_digits(&bytes[sign..]);
    let mut len = sign + whole;
    if fraction && whole > 0 && bytes.get(len) == Some(&b'.') {
        let part = all_digits(&bytes[len + 1..]);
        len += if part > 0 { part + 1 } else { 0 };
    }
    len
}

/// An address of an upstream: `10.0.0.1:80`, `[::1]:80`, `unix:/run/x.sock`, a name.
fn address_len(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b',' | b'"' | b'\'' | b'|' | b';')).count()
}

fn list_len(bytes: &[u8], entry: impl Fn(&[u8]) -> usize) -> usize {
    let mut len = entry(bytes);
    loop {
        let rest = &bytes[len..];
        let separator = if len > 0 && rest.starts_with(b", ") {
            2
        } else if len > 0 && rest.starts_with(b" : ") {
            3
        } else {
            return len;
        };
        let more = entry(&rest[separator..]);
        if more == 0 {
            return len;
        }
        len += separator + more;
    }
}

/// The least and the greatest byte at each place of a text of fixed form. A line has one or two such texts, so they are compared without branches.
struct Form<const LENGTH: usize> {
    least: [u8; LENGTH],
    most: [u8; LENGTH],
}

const TIME_LOCAL: Form<26> = Form::of(b"00/AAA/0000:00:00:00 +0000");
const TIME_ISO: Form<25> = Form::of(b"0000-00-00T00:00:00+00:00");

impl<const LENGTH: usize> Form<LENGTH> {
    /// From a model: `0` for a digit, `A` for a letter, `+` for a sign, and literals.
    const fn of(model: &[u8; LENGTH]) -> Self {
        let mut form = Self { least: *model, most: *model };
        let mut at = 0;
        while at < LENGTH {
            (form.least[at], form.most[at]) = match model[at] {
                b'0' => (b'0', b'9'),
                b'A' => (b'A', b'z'),
                b'+' => (b'+', b'-'),
                literal => (literal, literal),
            };
            at += 1;
        }
        form
    }

    /// The length of the text, if `bytes` begin with one of this form.
    fn fits(&self, bytes: &[u8]) -> Option<usize> {
        let text: &[u8; LENGTH] = bytes.first_chunk()?;
        let mut outside = 0;
        for (byte, (least, most)) in text.iter().zip(self.least.iter().zip(&self.most)) {
            outside |= u8::from(byte < least) | u8::from(byte > most);
        }
        (outside == 0).then_some(LENGTH)
    }
}
