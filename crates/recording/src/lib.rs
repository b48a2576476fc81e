//! Recordings: the raw bytes that each reader read, time-stamped, in one file that replays on any machine.
//!
//! This crate is pure: it turns entries into bytes and bytes into entries; opening files is its callers' business.
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
