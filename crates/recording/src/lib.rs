//! Recordings: the raw bytes that each reader read, time-stamped, in one file that replays on any machine.
//!
//! This crate is pure: it turns entries into bytes and bytes into entries; opening files is its callers' business.
#![forbid(unsafe_code)]

mod entry;

pub use entry::{Entry, Outcome, Scope};
