//! Advice for workers that wait for their clients to close: to end that wait at either side.

use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::judge::id::FindingId;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const END_LINGERING: AdviceDef = AdviceDef {
    id: "end-lingering",
    finding: FindingId::WAITS_FOR_CLIENTS,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let text = Message::new("remedy-end-lingering-text").with("tier", ctx.owner_name(&placed.owner));
        // Whose ends of these connections are on this host.
        let look = vec![Step::command("ss -tnp state close-wait".to_owned())];
        Some(Advice { runtime: look, ..Advice::words(text, "remedy-end-lingering-risk", Lift::Further) })
    },
};
