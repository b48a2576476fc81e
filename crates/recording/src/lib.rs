//! Recordings: the raw bytes of each reading, with timestamps, in one file that replays on any host.
//!
//! This crate is pure: it encodes entries as bytes and decodes bytes to entries. Its callers open files.
#![forbid(unsafe_code)]

mod entry;
mod format;
mod redact;

pub use entry::{Entry, Outcome, Scope};
pub use format::{
    ENTRY_BYTES_MAX, ENTRY_COUNT_MAX, Meta, ReadError, Recording, TOTAL_BYTES_MAX, UNPACKED_BYTES_MIN, UNPACKED_RATIO_MAX, VERSION, read,
    read_from, write,
};
pub use redact::{Hidden, Level, Redactor, UnknownLevel};
