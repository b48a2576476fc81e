//! What a recording keeps of readings whose text holds more than their parsers read: configurations, command lines, logs and status pages.

use chokepoint_recording::{Entry, Outcome};

use crate::servers::{config, follow, status};
use crate::source;
use crate::table::Redact;
use crate::text::{kernel_log, process_identity};

/// What was kept and left out, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reduction {
    /// Configuration files.
    pub configurations: usize,
    /// Directives in them, which are kept.
    pub directives: usize,
    /// Values of directives that were hidden.
    pub values: usize,
    /// Comments in configurations that were left out.
    pub comments: usize,
    /// Words of command lines that were hidden.
    pub words: usize,
    /// Lines of logs that were left out.
    pub log_lines: usize,
    /// Values of status pages that were left out.
    pub page_values: usize,
}

/// The entry with only what its parser reads. Entries of other sources come back as they are.
pub fn reduce(entry: &Entry, reduction: &mut Reduction) -> Entry {
    let Outcome::Ok(bytes) = &entry.outcome else { return entry.clone() };
    if source(&entry.source).is_none_or(|source| source.redact != Redact::Reduced) {
        return entry.clone();
    }
    let text = || String::from_utf8_lossy(bytes);
    let outcome = match entry.source.as_str() {
        "process_identity" => process_identity::reduced(bytes, reduction),
        "kernel_log" => kernel_log::reduced(bytes, reduction),
        "server_config" => config::reduced(&text(), reduction),
        "server_log" => follow::reduced(&text(), reduction),
        "server_status" => status::reduced(&entry.item, bytes, reduction),
        // A source that says that its text holds more, and not what: nothing of it is kept.
        _ => unreadable(),
    };
    Entry { outcome, ..entry.clone() }
}

/// What stands for a text in which what is read could not be found.
pub(crate) fn unreadable() -> Outcome {
    Outcome::Failed("left out of this recording, for what is read of it could not be found".to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SOURCES;

    #[test]
    fn every_source_that_is_reduced_is_known_here() {
        for source in SOURCES.iter().filter(|source| source.redact == Redact::Reduced) {
            let known = ["process_identity", "kernel_log", "server_config", "server_log", "server_status"];
            assert!(known.contains(&source.name), "{}", source.name);
        }
    }
}
