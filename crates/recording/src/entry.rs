//! One reading by one reader.

use serde::{Deserialize, Serialize};

/// The scope of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole host.
    Host,
    /// One network namespace, by inode number.
    Netns(u64),
    /// One process, by process id in the observer's pid namespace.
    Process(u32),
}

/// The outcome of an attempt to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes as they were read.
    Ok(Vec<u8>),
    /// Not available on this host or to this user: the reason, and the privilege that would make it available.
    Absent(String, Option<String>),
    /// An error: its message, and the privilege that would avoid it.
    Failed(String, Option<String>),
}

/// One attempt of one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since the observation began.
    pub at_us: u64,
    /// The source's name in the `SOURCES` table ("netstat", "listeners"), or a name without a reader: "request",
    /// "unloaded", "warmth", "load", "window", "profile".
    pub source: String,
    /// The scope of the reading.
    pub scope: Scope,
    /// The item, if the source reads several: a sysctl's name or a file's path; else empty.
    pub item: String,
    /// The outcome.
    pub outcome: Outcome,
}
