//! A configured backlog that is not in force and would be large enough.

use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::setting::unforced_backlog;
use crate::facts::suffered::in_flight_peak;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::station::{TIMES_MIN, changed_proof, unforced};
use crate::output::message::Message;

/// The cause of an accept queue that overflows although the configured limit has room for all clients.
pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener, in_force: f64, full: &Finding) -> Option<Finding> {
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
        Evidence::new(args("evidence-not-in-force-queue"), "sock_diag", Some(in_force)),
        Evidence::new(backlog, written.backlog.origin.to_string(), Some(written.backlog.value as f64)),
        Evidence::new(somaxconn, "sysctl net.core.somaxconn", Some(written.somaxconn as f64)),
    ];
    proofs.extend(written.changed.as_deref().map(changed_proof));
    Some(unforced(args("finding-setting-not-in-force-queue-title"), explanation, proofs, full))
}
