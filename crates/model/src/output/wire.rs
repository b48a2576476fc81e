//! What packets add to a verdict: by edge, with the streams that show it. It only reports; the verdict follows from the other readings alone.

use crate::facts::Context;
use crate::observation::{WireCount, WireEdge, WireSign};
use crate::output::message::Message;
use crate::output::report::{WireEdgeReport, WireEvidence, WireReport};
use crate::tools::edge::{ConnectionReuse, keepalive};

/// Largest number of edges reported.
const EDGES_MAX: usize = 8;
/// Share of the requests' time from which set-up is reported.
const SETUP_SHARE_MIN: f64 = 0.05;

/// The report; `None` if no packets were captured.
pub(crate) fn report(ctx: &Context<'_>) -> Option<WireReport> {
    let view = ctx.obs.wire.last()?;
    let is_shown = |edge: &&WireEdge| edge.facts.requests > 0 || !edge.signs.is_empty();
    let quality = Message::new("wire-quality")
        .with("from", view.from.as_str())
        .with("packets", view.packets)
        .with("streams", view.streams)
        .with("dropped", view.dropped);
    Some(WireReport {
        from: view.from.clone(),
        packets: view.packets,
        dropped: view.dropped,
        streams: view.streams,
        quality: ctx.text(quality),
        edges: view.edges.iter().filter(is_shown).take(EDGES_MAX).map(|seen| edge(ctx, seen)).collect(),
    })
}

fn edge(ctx: &Context<'_>, edge: &WireEdge) -> WireEdgeReport {
    let verdict = keepalive(&edge.facts);
    let mut evidence = Vec::new();
    if let Some(share) = edge.setup_share.filter(|share| *share >= SETUP_SHARE_MIN) {
        let mut text = ctx.text(Message::new("wire-setup-share").with("share", share * 100.0));
        if let Some(gain) = &verdict.gain {
            text = format!("{text} {}", ctx.text(gain.text.clone()));
        }
        evidence.push(WireEvidence { text, streams: Vec::new() });
    }
    let mut signs: Vec<(&WireSign, &WireCount)> = edge.signs.iter().filter(|(_, count)| count.count > 0).collect();
    signs.sort_by_key(|(sign, count)| (std::cmp::Reverse(count.time_ns), **sign));
    evidence.extend(
        signs
            .into_iter()
            .map(|(sign, count)| WireEvidence { text: ctx.text(sign_message(*sign, count, edge)), streams: count.examples.clone() }),
    );
    let mut summary = if edge.facts.requests > 0 { ctx.text(verdict.summary) } else { ctx.text(Message::new("wire-no-requests")) };
    for why in verdict.why {
        summary = format!("{summary} {}", ctx.text(why));
    }
    let kept = if edge.facts.requests > 0 { verdict.kept } else { ConnectionReuse::Unknown };
    WireEdgeReport { client: edge.client, server: edge.server, kept, summary, evidence }
}

fn sign_message(sign: WireSign, count: &WireCount, edge: &WireEdge) -> Message {
    let message = Message::new(match sign {
        WireSign::Retransmission => "wire-retransmission",
        WireSign::Timeout => "wire-timeout",
        WireSign::ZeroWindow => "wire-zero-window",
        WireSign::DelayedAck => "wire-delayed-ack",
        WireSign::ClientClosed => "wire-client-closed",
        WireSign::ServerClosed => "wire-server-closed",
        WireSign::Reset => "wire-reset",
        WireSign::Race => "wire-race",
    });
    let share = if edge.data_segments > 0 { count.count as f64 / edge.data_segments as f64 * 100.0 } else { 0.0 };
    let message = message.with("count", count.count).with("streams", count.streams).with("share", share);
    message.with("seconds", count.time_ns as f64 / 1e9).with("connections", edge.facts.connections)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::observation::reading::Reading;
    use crate::observation::{Closes, EdgeFacts, EdgeProtocol, Observation, WireView};
    use crate::output::catalogue::Catalogue;
    use crate::output::diagnose::diagnose;

    fn facts() -> EdgeFacts {
        let all = Closes { fin: 100, rst: 0 };
        EdgeFacts {
            connections: 100,
            requests: 100,
            answers: 100,
            setup_ms: Some(20.0),
            request_ms: Some(20.0),
            client_after_answer: all,
            protocol: EdgeProtocol::Http,
            ..EdgeFacts::default()
        }
    }

    fn reported(signs: BTreeMap<WireSign, WireCount>, facts: EdgeFacts, setup_share: Option<f64>) -> Option<WireReport> {
        let server = Some("10.0.0.2:80".parse().unwrap());
        let edge = WireEdge { client: None, server, facts, setup_share, data_segments: 1000, signs };
        let view = WireView { from: "lo".to_owned(), packets: 9, dropped: 1, streams: 3, edges: vec![edge], edges_left_out: 0 };
        let mut obs = Observation::default();
        obs.wire.push(1, Reading::Ok(view));
        diagnose(&obs, &Catalogue::english()).wire
    }

    #[test]
    fn each_sign_is_told_with_its_streams() {
        use WireSign::*;
        for sign in [Retransmission, Timeout, ZeroWindow, DelayedAck, ClientClosed, ServerClosed, Reset, Race] {
            let count = WireCount { count: 5, time_ns: 2_000_000_000, streams: 2, examples: vec![4711, 3] };
            let report = reported(BTreeMap::from([(sign, count)]), facts(), None).unwrap();
            let evidence = &report.edges[0].evidence[0];
            assert_eq!(evidence.streams, [4711, 3]);
            assert!(evidence.text.contains('5') && !evidence.text.contains("[wire-"), "{}", evidence.text);
        }
    }

    #[test]
    fn set_up_and_keepalive_are_told_and_the_costliest_comes_first() {
        let count = |time_ns| WireCount { count: 1, time_ns, streams: 1, examples: vec![0] };
        let signs = BTreeMap::from([(WireSign::Retransmission, count(0)), (WireSign::DelayedAck, count(9))]);
        let report = reported(signs, facts(), Some(0.5)).unwrap();
        let edge = &report.edges[0];
        assert_eq!((edge.kept, edge.evidence.len()), (ConnectionReuse::Not, 3));
        assert!(edge.evidence[0].text.contains("50") && edge.evidence[1].text.contains("delayed"), "{:?}", edge.evidence);
        assert!(report.quality.contains("lo") && edge.summary.contains("not in force"), "{report:?}");
    }

    #[test]
    fn nothing_captured_is_nothing_told() {
        assert_eq!(diagnose(&Observation::default(), &Catalogue::english()).wire, None);
        // A clean edge is reported by its verdict alone.
        let kept = EdgeFacts { connections: 1, client_after_answer: Closes::default(), ..facts() };
        let report = reported(BTreeMap::new(), kept, Some(0.01)).unwrap();
        assert_eq!((report.edges[0].kept, report.edges[0].evidence.len()), (ConnectionReuse::InForce, 0));
    }
}
