//! What the captures gave: edges with their verdicts, streams, and the files that could not be read.

use std::path::PathBuf;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::Keepalive;
use chokepoint_model::message::Message;
use chokepoint_packets::{Edge, Report};
use chokepoint_runs::{Better, Figure};
use serde_json::{Value, json};

use super::live::Caught;
use crate::report::edge::keepalive_json;
use crate::report::view::Phrases;

/// A file that could not be read to its end, and why.
pub(crate) struct UnreadFile {
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

/// The result of an analysis.
pub(crate) struct StreamsResult {
    /// The files or the interface.
    pub(crate) source: String,
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

    /// How much there was, in one sentence.
    pub(super) fn summary(&self, phrases: Phrases<'_>) -> String {
        let totals = &self.report.totals;
        let time = phrases.duration_us(totals.end_ns.saturating_sub(totals.begin_ns).max(0) as f64 / 1e3);
        let message = Message::new("streams-totals").with("packets", totals.packets).with("segments", totals.segments);
        phrases.say(&message.with("time", time).with("streams", totals.streams))
    }

    /// What `runs compare` compares. Rates over less than a second say nothing.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let Report { totals, edges, .. } = &self.report;
        let seconds = totals.end_ns.saturating_sub(totals.begin_ns).max(0) as f64 / 1e9;
        let sum = |of: fn(&Edge) -> u64| edges.iter().map(of).sum::<u64>() as f64;
        let figure = |name: &str, value: f64, unit: &str, better| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better };
        let rate = |count: f64| (seconds >= 1.0).then(|| count / seconds);
        let data = sum(|edge| edge.client_sent.data_packets + edge.server_sent.data_packets);
        let again = sum(|edge| edge.client_sent.retransmissions + edge.server_sent.retransmissions);
        let all = [
            rate(sum(|edge| edge.requests)).map(|rate| figure("requests", rate, "/s", Better::More)),
            (data > 0.0).then(|| figure("retransmitted", 100.0 * again / data, "%", Better::Less)),
            rate(totals.streams as f64).map(|rate| figure("connections", rate, "/s", Better::Less)),
        ];
        all.into_iter().flatten().collect()
    }

    pub(super) fn json(&self, words: &Catalogue) -> Value {
        let edges = self.report.edges.iter().zip(&self.verdicts).map(|(edge, verdict)| edge_json(edge, verdict, words));
        json!({
            "schema": "chokepoint/streams/1",
            "totals": self.report.totals,
            "edges": edges.collect::<Vec<_>>(),
            "notable": self.report.notable,
            "traffic": self.report.traffic,
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
