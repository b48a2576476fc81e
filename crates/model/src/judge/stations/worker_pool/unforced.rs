//! A pool whose file configures more workers than run, and these would be enough.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::setting::{UnforcedPool, unforced_pool};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::station::{TIMES_MIN, changed_proof, unforced};
use crate::output::message::Message;

/// The cause of an exhausted pool whose file configures more workers: as many as are needed, or twice the running number.
pub(super) fn finding(ctx: &Context<'_>, tier: &Tier, running: f64, waiting: f64, exhausted: &Finding) -> Option<Finding> {
    let UnforcedPool { pool, file, .. } = unforced_pool(ctx, tier, running)?;
    let written = f64::from(pool.max_children.value);
    if written < (running + waiting).min(TIMES_MIN * running) {
        return None;
    }
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("pool", pool.name.as_str()).with("file", file.as_str());
        message.with("running", running).with("written", written)
    };
    let proofs =
        vec![Evidence::new(args("evidence-not-in-force-pool"), pool.max_children.origin.to_string(), Some(written)), changed_proof(&file)];
    Some(unforced(args("finding-setting-not-in-force-pool-title"), args("finding-setting-not-in-force-pool"), proofs, exhausted))
}
