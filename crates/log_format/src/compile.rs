//! A log format as a sequence of literals and variables.

use thiserror::Error;

use super::shape::{Shape, of_nginx};

/// The most variables of one format.
const VARIABLES_MAX: usize = 256;
/// Bytes of the largest number.
const NUMBER_BYTES: usize = size_of::<u64>();
/// nginx's built-in format.
pub const COMBINED: &str =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// How nginx escapes values in a log (`log_format ... escape=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// `"`, `\`, control characters and bytes above 126 become `\xHH`; a missing value is `-`.
    #[default]
    Default,
    /// Escaped as JSON strings require; a missing value is empty.
    Json,
    /// No escaping; a missing value is empty.
    None,
}

/// Why a format cannot be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FormatError {
    /// A `$` without a name, or `${` without `}`.
    #[error("a \"$\" without a variable's name")]
    Name,
    /// A `%` token that php-fpm does not know, or one without its braces.
    #[error("an unknown \"%\" token")]
    Token,
    /// More than the bound.
    #[error("more than {VARIABLES_MAX} variables")]
    TooMany,
}

/// One variable of a format and the literal after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) literal: Literal,
    /// True if the end of the value is unknown because another variable follows directly. This value and the next are not given.
    pub(super) ambiguous: bool,
}

/// The text between two variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Literal {
    text: Vec<u8>,
    /// The text as a number, if it has no more bytes than one, and the bits that count.
    number: u64,
    mask: u64,
}

impl Literal {
    fn extend(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        let mut bytes = [0; NUMBER_BYTES];
        let mut mask = [0; NUMBER_BYTES];
        for (at, byte) in self.text.iter().take(NUMBER_BYTES).enumerate() {
            (bytes[at], mask[at]) = (*byte, u8::MAX);
        }
        (self.number, self.mask) = (u64::from_le_bytes(bytes), u64::from_le_bytes(mask));
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// True if `bytes` begin with it. Most literals are short: they are compared as one number. Where there is none nothing is compared: a
    /// memcmp(3) of no bytes at a dangling address took as long as parsing three fields.
    pub(super) fn begins(&self, bytes: &[u8]) -> bool {
        match bytes.first_chunk() {
            Some(chunk) if self.text.len() <= NUMBER_BYTES => u64::from_le_bytes(*chunk) & self.mask == self.number,
            _ => self.text.is_empty() || bytes.starts_with(&self.text),
        }
    }

    /// The first position of it in `bytes`, unless it is empty.
    pub(super) fn position(&self, bytes: &[u8]) -> Option<usize> {
        let first = *self.text.first()?;
        let mut at = 0;
        loop {
            at += memchr::memchr(first, bytes.get(at..)?)?;
            if self.begins(&bytes[at..]) {
                return Some(at);
            }
            at += 1;
        }
    }
}

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// The literal before the first variable.
    pub(super) head: Literal,
    pub(super) fields: Vec<Field>,
    pub(super) escape: Escape,
    pub(super) known: Known,
}

/// Indexes of the fields that [`super::Access`] reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) status: Option<usize>,
    pub(super) request_time: Option<usize>,
    pub(super) request: Option<usize>,
    pub(super) request_method: Option<usize>,
    pub(super) server_protocol: Option<usize>,
    pub(super) cache_status: Option<usize>,
    pub(super) gzip_ratio: Option<usize>,
    pub(super) upstream_length: Option<usize>,
    pub(super) request_uri: Option<usize>,
    pub(super) upstream_connect_time: Option<usize>,
    pub(super) upstream_header_time: Option<usize>,
    pub(super) upstream_response_time: Option<usize>,
    pub(super) upstream_status: Option<usize>,
    pub(super) upstream_addr: Option<usize>,
    pub(super) bytes_sent: Option<usize>,
    pub(super) body_bytes_sent: Option<usize>,
    pub(super) request_length: Option<usize>,
    pub(super) connection: Option<usize>,
    pub(super) connection_requests: Option<usize>,
    pub(super) time: Option<usize>,
}

impl LogFormat {
    /// Compiles the text of an nginx `log_format`, its arguments joined.
    pub fn nginx(format: &str, escape: Escape) -> Result<Self, FormatError> {
        let mut head = Literal::default();
        let mut fields: Vec<Field> = Vec::new();
        let mut rest = format;
        while let Some(at) = rest.find('$') {
            put(&rest.as_bytes()[..at], &mut head, &mut fields);
            let (name, after) = variable(&rest[at + 1..]).ok_or(FormatError::Name)?;
            if fields.len() >= VARIABLES_MAX {
                return Err(FormatError::TooMany);
            }
            fields.push(Field { name: name.to_owned(), shape: of_nginx(name), literal: Literal::default(), ambiguous: false });
            rest = after;
        }
        put(rest.as_bytes(), &mut head, &mut fields);
        Ok(Self::of(head, fields, escape))
    }

    /// nginx's built-in `combined`.
    pub fn combined() -> Self {
        // The text is a constant, and a test compiles it.
        Self::nginx(COMBINED, Escape::Default).unwrap_or_else(|_| Self::of(Literal::default(), Vec::new(), Escape::Default))
    }

    pub(super) fn of(head: Literal, mut fields: Vec<Field>, escape: Escape) -> Self {
        let glued = |field: &Field, next: Option<&Field>| field.literal.is_empty() && next.is_some() && !field.shape.has_own_end();
        for index in 0..fields.len() {
            let next = fields.get(index + 1);
            let ends_by_kind = next.is_some_and(|next| is_apart(fields[index].shape, next.shape));
            if glued(&fields[index], next) && !ends_by_kind {
                fields[index].ambiguous = true;
                fields[index + 1].ambiguous = true;
            }
        }
        let known = Known::of(&fields);
        Self { head, fields, escape, known }
    }

    /// Names of the variables, in their order in the format.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// The slot of a variable for [`Record::get`]; `None` if the format does not have it or its ends are unknown.
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name && !field.ambiguous)
    }

    /// Variables whose values cannot be separated from their neighbours'.
    pub fn ambiguous(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(|field| field.ambiguous).map(|field| field.name.as_str())
    }

    /// Whether a line contains the status of the answer. Without it, good and failed answers cannot be counted from this log.
    pub fn has_status(&self) -> bool {
        self.known.status.is_some()
    }
}

/// Adds text after the last field, or to the head if there is none yet.
pub(super) fn put(text: &[u8], head: &mut Literal, fields: &mut [Field]) {
    fields.last_mut().map_or(head, |field| &mut field.literal).extend(text);
}

/// Two adjacent variables that can still be separated: a number ends at the first character that is no digit.
fn is_apart(first: Shape, second: Shape) -> bool {
    matches!((first, second), (Shape::Integer | Shape::Decimal, Shape::Pipe))
}

impl Known {
    fn of(fields: &[Field]) -> Self {
        let slot = |name: &str| fields.iter().position(|field| field.name == name && !field.ambiguous);
        Self {
            status: slot("status"),
            request_time: slot("request_time"),
            request: slot("request"),
            request_method: slot("request_method"),
            server_protocol: slot("server_protocol"),
            cache_status: slot("upstream_cache_status"),
            gzip_ratio: slot("gzip_ratio"),
            upstream_length: slot("upstream_response_length"),
            request_uri: slot("request_uri"),
            upstream_connect_time: slot("upstream_connect_time"),
            upstream_header_time: slot("upstream_header_time"),
            upstream_response_time: slot("upstream_response_time"),
            upstream_status: slot("upstream_status"),
            upstream_addr: slot("upstream_addr"),
            bytes_sent: slot("bytes_sent"),
            body_bytes_sent: slot("body_bytes_sent"),
            request_length: slot("request_length"),
            connection: slot("connection"),
            connection_requests: slot("connection_requests"),
            // The most precise clock first.
            time: slot("msec").or_else(|| slot("time_iso8601")).or_else(|| slot("time_local")),
        }
    }
}

/// The name and the rest after a `$`.
fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}
