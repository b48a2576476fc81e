//! What the captures gave: edges with their verdicts, streams, and the files that could not be read.

use std::path::PathBuf;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::Keepalive;
use chokepoint_packets::{Edge, Report};
use serde_json::{Value, json};

use super::live::Caught;
use crate::report::edge::keepalive_json;

/// A file that could not be read to its end, and why.
pub(crate) struct UnreadFile {
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

/// The result of an analysis.
pub(crate) struct StreamsResult {
    pub(crate) report: Report,
    /// The verdict about each edge, in the order of the edges.
    pub(crate) verdicts: Vec<Keepalive>,
    /// Files that could not be read to their end.
    pub(crate) failed: Vec<UnreadFile>,
    /// The bound on streams open at once.
    pub(crate) open_max: u32,
    /// Packets of the live capture; nothing for files.
    pub(crate) caught: Option<Caught>,
}

impl StreamsResult {
    /// True if files failed and no packet came from any.
    pub(super) fn is_nothing_read(&self) -> bool {
        self.caught.is_none() && !self.failed.is_empty() && self.report.totals.packets == 0
    }

    pub(super) fn json(&self, words: &Catalogue) -> Value {
        let edges = self.report.edges.iter().zip(&self.verdicts).map(|(edge, verdict)| edge_json(edge, verdict, words));
        json!({
            "schema": "chokepoint/streams/1",
            "totals": self.report.totals,
            "edges": edges.collect::<Vec<_>>(),
            "notable": self.report.notable,
            "capture": self.caught,
            "failed": self.failed.iter().map(|failed| json!({ "file": failed.file.display().to_string(), "why": failed.why })).collect::<Vec<_>>(),
        })
    }
}

fn edge_json(edge: &Edge, verdict: &Keepalive, words: &Catalogue) -> Value {
    let mut json = json!(edge);
    json["keepalive"] = keepalive_json(verdict, words);
    json
}
