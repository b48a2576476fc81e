//! Advice for a process that is stopped: to let it go on.

use crate::facts::queue::accepting::{Idle, holders, idle};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const LET_GO_ON: AdviceDef = AdviceDef {
    id: "let-go-on",
    finding: FindingId::ACCEPTS_NONE,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let listener = placed.at.listener_of(tier)?;
        let Some(Idle::Stopped(_)) = idle(ctx, tier, listener) else { return None };
        let pids: Vec<String> = holders(ctx, tier, listener).iter().map(u32::to_string).collect();
        let text = Message::new("remedy-let-go-on-text").with("tier", tier.name.as_str()).with("pids", pids.join(" "));
        Some(Advice::words(text, "remedy-let-go-on-risk", Lift::Further))
    },
};
