//! One thing that one reader read, once.

use serde::{Deserialize, Serialize};

/// What a reading holds for.
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

/// What came of an attempt to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes as they were read.
    Ok(Vec<u8>),
    /// Not on this host or not for this user: why, and the privilege that would give it.
    Absent(String, Option<String>),
    /// An error: what it said, and the privilege that would mend it.
    Failed(String, Option<String>),
}

/// One attempt of one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since the observation began.
    pub at_us: u64,
    /// The source's name in the `SOURCES` table ("netstat", "listeners"), or one of the names that are no readers: "request",
    /// "unloaded", "warmth", "load", "window", "profile".
    pub source: String,
    /// What it holds for.
    pub scope: Scope,
    /// A detail within the source where it reads several things: a sysctl's name, a file's path; else empty.
    pub item: String,
    /// What came of it.
    pub outcome: Outcome,
}
