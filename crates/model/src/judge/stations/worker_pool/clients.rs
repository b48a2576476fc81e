//! Finding `waits-for-clients`: workers have answered and ended their side of the connection, and wait for their clients to end the other.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::EndsAwaited;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::judge::station::StationReading;
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationState};

use super::STATION;

/// The reading of a tier whose number of workers is not known.
pub(super) fn reading(tier: &Tier, awaited: &EndsAwaited) -> StationReading {
    let reading = StationReading { waiting: Some(awaited.waiting), ..STATION.reading(tier, Location::in_netns(tier.netns), "workers") };
    let why = Message::new("state-worker-pool-clients").with("held", tenths(awaited.held)).with("waiting", tenths(awaited.waiting));
    reading.in_state(StationState::Saturated, why)
}

pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, awaited: &EndsAwaited) -> Finding {
    let args = |id: &'static str| {
        let message =
            Message::new(id).with("tier", tier.name.as_str()).with("held", tenths(awaited.held)).with("taken", tenths(awaited.taken));
        message.with("waiting", tenths(awaited.waiting)).with("workers", awaited.workers.unwrap_or(0) as f64)
    };
    let netns = ctx.netns_name(tier.netns);
    let mut proofs = vec![Evidence::new(args("evidence-waits-for-clients"), format!("sock_diag ({netns})"), Some(tenths(awaited.held)))];
    if let Some((ends, looks)) = awaited.looks {
        let text = args("evidence-waits-for-clients-looks").with("count", ends as f64).with("looks", looks as f64);
        proofs.push(Evidence::new(text, "/proc/PID/syscall, sock_diag", Some(ends as f64)));
    }
    if let Some(ms) = awaited.since_answer_ms {
        let text = args("evidence-waits-for-clients-since").with("ms", ms as f64);
        proofs.push(Evidence::new(text, "sock_diag struct tcp_info", Some(ms as f64)));
    }
    if tenths(awaited.left_open) > 0.0 {
        let text = args("evidence-waits-for-clients-open").with("open", tenths(awaited.left_open));
        proofs.push(Evidence::new(text, "sock_diag", Some(tenths(awaited.left_open))));
    }
    proofs.push(Evidence::new(args("evidence-worker-pool-waiting"), format!("sock_diag ({netns})"), Some(awaited.waiting)));
    Finding {
        confidence: if awaited.looks.is_some() { Confidence::High } else { Confidence::Medium },
        title: args("finding-waits-for-clients-title"),
        evidence: proofs,
        explanation: vec![args("finding-waits-for-clients-explanation")],
        ..STATION.finding(FindingId::WAITS_FOR_CLIENTS, tier, Location::in_netns(tier.netns))
    }
}
