//! What parsing some bytes of an answer results in, and the limits of an answer's head.

/// Maximum bytes of an answer's head; a longer one is a bad response.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum header fields of an answer; more are a bad response.
pub const HEADERS_MAX: usize = 128;

/// Why these bytes are no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadAnswer(pub(crate) &'static str);

/// The result of parsing some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The answer is not complete.
    More,
    /// The answer is complete; it ended after this many of the bytes.
    Complete(usize),
}
