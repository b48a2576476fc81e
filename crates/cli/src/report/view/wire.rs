//! What the captured packets show, in a few lines: each edge, and its evidence with the streams that show it.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, WireEdgeReport, WireEvidence};

use super::Phrases;

/// The lines; none if no packets were captured.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<String> {
    let Some(wire) = &diagnosis.wire else { return Vec::new() };
    let of_edge = |edge| std::iter::once(head(edge, phrases)).chain(edge.evidence.iter().map(|evidence| evidence_text(evidence, phrases)));
    wire.edges.iter().flat_map(of_edge).chain([wire.quality.clone()]).collect()
}

fn head(edge: &WireEdgeReport, phrases: Phrases<'_>) -> String {
    let client = edge.client.map_or_else(|| phrases.word("streams-any"), |client| client.to_string());
    let server = edge.server.map_or_else(|| phrases.word("streams-others"), |server| server.to_string());
    phrases.say(&Message::new("report-wire-edge").with("client", client).with("server", server).with("summary", edge.summary.as_str()))
}

fn evidence_text(evidence: &WireEvidence, phrases: Phrases<'_>) -> String {
    if evidence.streams.is_empty() {
        return evidence.text.clone();
    }
    let streams: Vec<String> = evidence.streams.iter().map(u64::to_string).collect();
    phrases.say(&Message::new("report-wire-streams").with("text", evidence.text.as_str()).with("streams", streams.join(", ")))
}
