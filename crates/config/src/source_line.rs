//! The origin of a value: a file and a line, or the program's own default.

use std::fmt;
use std::sync::Arc;

/// One entry (directive, key, line) of a parsed set of files; edits take it as their target. It is valid only for the tree that it was read
/// from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Index of the file in its tree.
    pub file: usize,
    /// Index of the entry in that file.
    pub entry: usize,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Path as the server would open it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// The entry on that line, for edits.
    pub node: Node,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// No line sets it: the default of the program's version.
    Default,
    /// The command line gives it.
    CommandLine,
    /// This line sets it.
    Set(SourceLine),
}

impl Origin {
    /// The line, if one sets it.
    pub fn place(&self) -> Option<&SourceLine> {
        match self {
            Self::Default | Self::CommandLine => None,
            Self::Set(place) => Some(place),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::CommandLine => f.write_str("command line"),
            Self::Set(place) => place.fmt(f),
        }
    }
}

/// A value in force with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it was set.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value that a line sets.
    pub fn set(value: T, place: SourceLine) -> Self {
        Self { value, origin: Origin::Set(place) }
    }

    /// The program's default.
    pub fn default_of(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// The same origin with a converted value.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: form(self.value), origin: self.origin }
    }
}
