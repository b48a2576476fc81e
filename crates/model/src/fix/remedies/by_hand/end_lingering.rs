//! Advice for workers that wait for their clients to close: to end that wait at either side.

use crate::facts::pool::EndsAwaited;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::fix::steps::read_in_netns;
use crate::judge::id::FindingId;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const END_LINGERING: AdviceDef = AdviceDef {
    id: "end-lingering",
    finding: FindingId::WAITS_FOR_CLIENTS,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        EndsAwaited::of(ctx, tier)?;
        let text = Message::new("remedy-end-lingering-text").with("tier", tier.name.as_str());
        // The clients that are waited for, by address; those on the same host by process.
        let look = placed.at.netns.and_then(|netns| read_in_netns(ctx, netns, "ss -tnp state fin-wait-2 state close-wait"));
        let runtime = look.map(Step::command).into_iter().collect();
        Some(Advice { runtime, ..Advice::words(text, "remedy-end-lingering-risk", Lift::Further) })
    },
};
