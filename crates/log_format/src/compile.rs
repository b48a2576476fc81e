//! A log format as a sequence of literals and variables.

use thiserror::Error;

use super::shape::{Shape, of_nginx};

/// The most variables of one format.
const VARIABLES_MAX: usize = 256;
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
    pub(super) literal: Vec<u8>,
    /// True if the end of the value is unknown because another variable follows directly. This value and the next are not given.
    pub(super) ambiguous: bool,
}

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// The literal before the first variable.
    pub(super) head: Vec<u8>,
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
        let mut head = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        let mut rest = format;
        while let Some(at) = rest.find('$') {
            fields.last_mut().map_or(&mut head, |field| &mut field.literal).extend_from_slice(&rest.as_bytes()[..at]);
            let (name, after) = variable(&rest[at + 1..]).ok_or(FormatError::Name)?;
            if fields.len() >= VARIABLES_MAX {
                return Err(FormatError::TooMany);
            }
            fields.push(Field { name: name.to_owned(), shape: of_nginx(name), literal: Vec::new(), ambiguous: false });
            rest = after;
        }
        fields.last_mut().map_or(&mut head, |field| &mut field.literal).extend_from_slice(rest.as_bytes());
        Ok(Self::of(head, fields, escape))
    }

    /// nginx's built-in `combined`.
    pub fn combined() -> Self {
        // The text is a constant, and a test compiles it.
        Self::nginx(COMBINED, Escape::Default).unwrap_or_else(|_| Self::of(Vec::new(), Vec::new(), Escape::Default))
    }

    pub(super) fn of(head: Vec<u8>, mut fields: Vec<Field>, escape: Escape) -> Self {
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
