//! What was removed of a lab, and what could not be.

use std::fmt;

/// A machine setting that was left alone because it has neither the lab's value nor the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The setting.
    pub key: String,
    /// The value before the lab.
    pub original: String,
    /// The lab's value.
    pub ours: String,
    /// The current value.
    pub found: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { key, original, ours, found } = self;
        write!(
            f,
            "{key} is {found}: the lab had set it to {ours}, and somebody changed it since. To restore the value from before the lab: `sysctl -w {key}='{original}'`"
        )
    }
}

/// What was removed and what could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownReport {
    /// The lab.
    pub name: String,
    /// False where there was no such lab.
    pub found: bool,
    /// The actions in order, one short phrase each.
    pub done: Vec<String>,
    /// Settings that were left alone because someone else changed them.
    pub conflicts: Vec<Conflict>,
    /// What could not be removed, one sentence each.
    pub problems: Vec<String>,
}

impl DownReport {
    pub(crate) fn new(name: &str) -> DownReport {
        DownReport { name: name.to_owned(), found: true, done: Vec::new(), conflicts: Vec::new(), problems: Vec::new() }
    }

    /// True where nothing of the lab is left.
    pub fn is_clean(&self) -> bool {
        self.conflicts.is_empty() && self.problems.is_empty()
    }
}

impl fmt::Display for DownReport {
    /// What is left, or that nothing is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.conflicts.iter().map(ToString::to_string).chain(self.problems.iter().cloned()).collect();
        if lines.is_empty() { write!(f, "nothing of lab \"{}\" is left", self.name) } else { write!(f, "{}", lines.join("\n")) }
    }
}
