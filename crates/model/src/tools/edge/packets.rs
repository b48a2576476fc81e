//! The keepalive verdict on one edge from its captured packets.

use super::verdict::{ConnectionReuse, GAIN_MIN, Gain, KEPT_SHARE, Keepalive, REQUEST_LIMIT_FINE, Reason, SHARE_MIN, most};
use crate::observation::{EdgeFacts, EdgeProtocol};
use crate::output::message::Message;

/// Fewer answers than this allow no verdict.
const ANSWERS_MIN: u64 = 2;

/// The keepalive verdict on an edge.
pub fn keepalive(facts: &EdgeFacts) -> Keepalive {
    let again = facts.requests.saturating_sub(facts.connections);
    let share = if facts.requests > 0 { again as f64 / facts.requests as f64 } else { 0.0 };
    let reasons = reasons(facts, share);
    let closed_singles = facts.connections.saturating_sub(facts.single_open);
    let kept = if facts.answers < ANSWERS_MIN || again == 0 && closed_singles == 0 {
        ConnectionReuse::Unknown
    } else if again == 0 || share < 0.01 {
        ConnectionReuse::Not
    } else if share < SHARE_MIN || share < KEPT_SHARE && !reasons.is_empty() || facts.races > 0 || reasons.contains(&Reason::RequestLimit) {
        ConnectionReuse::Partly
    } else {
        ConnectionReuse::InForce
    };
    let reasons = if matches!(kept, ConnectionReuse::Not | ConnectionReuse::Partly) { reasons } else { Vec::new() };
    let mut lines: Vec<Message> = Vec::new();
    for reason in &reasons {
        let line = Message::new(reason.ids().1);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let why = reasons.iter().map(|reason| sentence(*reason, facts)).collect();
    let summary = Message::new(match kept {
        ConnectionReuse::InForce => "keepalive-in-force",
        ConnectionReuse::Partly => "keepalive-partly",
        ConnectionReuse::Not => "keepalive-not",
        ConnectionReuse::Unknown => "keepalive-unknown",
    })
    .with("requests", facts.requests as f64)
    .with("connections", facts.connections as f64)
    .with("share", share * 100.0);
    Keepalive { kept, reasons, open: false, summary, why, lines, gain: gain(facts, share, kept) }
}

fn reasons(facts: &EdgeFacts, share: f64) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let closing = facts.requests_close + facts.requests_http10;
    let kept = share >= KEPT_SHARE;
    let singles = facts.requests < 2 * facts.connections;
    if !kept {
        // The client's requests explain the server's behaviour.
        if most(facts.requests_close, facts.requests) {
            reasons.push(Reason::CloseRequested);
        } else if most(facts.requests_http10, facts.requests) {
            reasons.push(Reason::Http10);
        } else if facts.protocol == EdgeProtocol::Fastcgi && most(facts.requests_unkept, facts.requests) {
            reasons.push(Reason::KeepConnUnset);
        } else if !singles {
            // Connections that carry several requests have another reason to end, or none.
        } else if facts.request_limit.is_none() && most(facts.answers_close.saturating_sub(closing), facts.connections) {
            reasons.push(Reason::ServerCloses);
        } else if facts.request_limit.is_none() && most(facts.server_after_answer.total(), facts.connections) {
            reasons.push(Reason::ServerClosesSilently);
        } else if most(facts.client_after_answer.total(), facts.connections) {
            reasons.push(Reason::ClientCloses);
        }
    }
    if reasons.is_empty()
        && let Some((requests, _)) = facts.request_limit
        && requests < REQUEST_LIMIT_FINE
    {
        reasons.push(Reason::RequestLimit);
    }
    let idle = facts.server_idle.total();
    if facts.races > 0 || reasons.is_empty() && idle > 0 && idle > facts.client_idle.total() {
        reasons.push(Reason::ServerIdle);
    }
    reasons
}

fn sentence(reason: Reason, facts: &EdgeFacts) -> Message {
    let message = Message::new(reason.ids().0).with("requests", facts.requests as f64).with("connections", facts.connections as f64);
    match reason {
        Reason::CloseRequested => message.with("count", facts.requests_close as f64),
        Reason::Http10 => message.with("count", facts.requests_http10 as f64),
        Reason::KeepConnUnset => message.with("count", facts.requests_unkept as f64),
        Reason::ServerCloses => message.with("count", facts.answers_close as f64).with("answers", facts.answers as f64),
        Reason::ServerClosesSilently => {
            message.with("fin", facts.server_after_answer.fin as f64).with("rst", facts.server_after_answer.rst as f64)
        }
        Reason::ClientCloses => message.with("fin", facts.client_after_answer.fin as f64).with("rst", facts.client_after_answer.rst as f64),
        Reason::RequestLimit => {
            let (limit, ended) = facts.request_limit.unwrap_or_default();
            message.with("limit", limit as f64).with("count", ended as f64)
        }
        Reason::ServerIdle => message
            .with("count", facts.server_idle.total() as f64)
            .with("seconds", facts.server_idle_s.unwrap_or(0.0))
            .with("races", facts.races as f64),
    }
}

/// From mean times: how many more requests the same clients could send without connection set-up.
fn gain(facts: &EdgeFacts, share: f64, kept: ConnectionReuse) -> Option<Gain> {
    let (setup_ms, request_ms) = (facts.setup_ms?, facts.request_ms?);
    if !matches!(kept, ConnectionReuse::Not | ConnectionReuse::Partly) || request_ms <= 0.0 {
        return None;
    }
    let spared_ms = setup_ms * (1.0 - share);
    let factor = (request_ms + spared_ms) / request_ms;
    if factor < GAIN_MIN {
        return None;
    }
    let text = Message::new("keepalive-gain")
        .with("setup", setup_ms)
        .with("request", request_ms)
        .with("percent", (factor - 1.0) * 100.0)
        .with("factor", factor);
    Some(Gain { factor, text })
}
