//! A backlog that is written and not in force, where it would be enough.

use super::super::{TIMES_MIN, changed_proof, evidence, place, unforced};
use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::setting::unforced_backlog;
use crate::facts::suffered::in_flight_peak;
use crate::output::message::Message;
use crate::output::report::{Finding, Station};

/// The cause of an accept queue that overflows although what is written has room for all who come.
pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener, station: &Station, full: &Finding) -> Option<Finding> {
    let in_force = station.limit?;
    let written = unforced_backlog(ctx, tier, placed, in_force)?;
    let needed = ctx.obs.load.as_ref().map_or(TIMES_MIN * in_force, in_flight_peak);
    if (written.limit as f64) < needed {
        return None;
    }
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("listener", placed.listener.address.to_string());
        message.with("limit", in_force).with("written", written.limit)
    };
    let explanation = match &written.changed {
        Some(file) => args("finding-setting-not-in-force-queue-edited").with("file", file.as_str()),
        None => args("finding-setting-not-in-force-queue"),
    };
    let backlog = Message::new("evidence-not-in-force-backlog").with("setting", written.backlog.setting.told());
    let backlog = backlog.with("value", written.backlog.value as f64);
    let somaxconn = Message::new("evidence-not-in-force-somaxconn").with("somaxconn", written.somaxconn as f64);
    let mut proofs = vec![
        evidence(ctx.text(args("evidence-not-in-force-queue")), "sock_diag", Some(in_force)),
        evidence(ctx.text(backlog), place(&written.backlog.origin), Some(written.backlog.value as f64)),
        evidence(ctx.text(somaxconn), "sysctl net.core.somaxconn", Some(written.somaxconn as f64)),
    ];
    proofs.extend(written.changed.as_deref().map(|file| changed_proof(ctx, file)));
    Some(unforced(ctx, args("finding-setting-not-in-force-queue-title"), explanation, proofs, full))
}
