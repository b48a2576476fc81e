//! Finding `waits-for-clients` by idle connections: the workers of a full pool each hold one on which nothing is asked.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::{IdleHeld, PoolKind};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, held: &IdleHeld) -> Finding {
    let unit = match held.kind {
        PoolKind::Processes => "workers",
        PoolKind::Threads => "threads",
        PoolKind::Loops => "connections",
    };
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("unit", unit).with("workers", held.workers as f64);
        let message = message.with("idle", tenths(held.idle)).with("taken", tenths(held.taken)).with("asked", tenths(held.asked()));
        message.with("waiting", tenths(held.waiting))
    };
    let netns = ctx.netns_name(tier.netns);
    let tcp_info = || format!("sock_diag struct tcp_info ({netns})");
    let mut proofs = vec![Evidence::new(args("evidence-idle-held"), tcp_info(), Some(tenths(held.idle)))];
    if let Some(looks) = held.looks {
        let text = args("evidence-idle-held-looks").with("count", looks.clients as f64).with("looks", looks.all as f64);
        proofs.push(Evidence::new(text, "/proc/PID/syscall, sock_diag", Some(looks.clients as f64)));
    }
    let are_seen = held.looks.is_some_and(|looks| looks.are_at_clients());
    if let Some((connections, each_ms)) = held.turnover {
        let text = args("evidence-idle-held-turnover").with("connections", connections as f64).with("ms", each_ms);
        let text = text.with("idle_ms", each_ms * held.idle / held.taken).with("seconds", each_ms * connections as f64 / held.taken / 1e3);
        proofs.push(Evidence::new(text, "sock_diag", Some(each_ms)));
    }
    if let Some(ms) = held.since_ms {
        proofs.push(Evidence::new(args("evidence-idle-held-since").with("ms", ms as f64), tcp_info(), Some(ms as f64)));
    }
    proofs.push(Evidence::new(args("evidence-worker-pool-waiting"), format!("sock_diag ({netns})"), Some(held.waiting)));
    Finding {
        // Where the threads could not be looked at, one may still work for a client that has its response.
        confidence: if are_seen || held.kind == PoolKind::Loops { Confidence::High } else { Confidence::Medium },
        title: args("finding-idle-held-title"),
        evidence: proofs,
        explanation: vec![args("finding-idle-held-explanation")],
        ..STATION.finding(FindingId::WAITS_FOR_CLIENTS, tier, Location::in_netns(tier.netns))
    }
}
