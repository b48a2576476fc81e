//! Finding `workers-wait-for-each-other`: of a full pool's workers only a few go on at a time, and more of them would wait as well.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::{Pool, TakingTurns};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::{going_on, tenths};
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, pool: &Pool, held: &TakingTurns) -> Finding {
    let held_ms = 1e3 * pool.busy_mean() / held.rate_rps;
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64);
        let message = message.with("waiting", tenths(held.waiting)).with("at_once", going_on(held.at_once)).with("rate", held.rate_rps);
        message.with("alone", held.alone_us / 1e3).with("held", held_ms)
    };
    let netns = ctx.netns_name(tier.netns);
    let sockets = format!("sock_diag struct tcp_info ({netns}), /proc/PID/task/TID/schedstat");
    Finding {
        confidence: Confidence::High,
        title: args(if held.at_once < 1.0 {
            "finding-workers-wait-for-each-other-title-few"
        } else {
            "finding-workers-wait-for-each-other-title"
        }),
        evidence: vec![
            Evidence::new(args("evidence-each-other-little"), "load", Some(going_on(held.at_once))),
            Evidence::new(args("evidence-each-other-held"), "load, sock_diag", Some(held_ms)),
            Evidence::new(args("evidence-each-other-inside"), sockets, Some(tenths(held.waiting))),
        ],
        explanation: vec![args("finding-workers-wait-for-each-other-explanation")],
        ..STATION.finding(FindingId::POOL_TAKES_TURNS, tier, Location::in_netns(tier.netns))
    }
}
