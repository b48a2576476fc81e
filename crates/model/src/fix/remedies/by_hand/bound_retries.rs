//! Advice `bound-retries`: a server that fails must not get more calls for that.

use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::judge::location::EdgeId;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const BOUND_RETRIES: AdviceDef = AdviceDef {
    id: "bound-retries",
    finding: FindingId::REPEATED,
    activation: Activation::Reload,
    advise: |ctx, placed| {
        let Some(EdgeId::Tiers(caller, _)) = placed.at.edge else { return None };
        let caller = ctx.path.tiers.get(caller.0)?;
        let args = |id: &'static str| Message::new(id).with("tier", caller.name.as_str()).with("asked", ctx.owner_name(&placed.owner));
        let risk = args("remedy-bound-retries-risk");
        let advice = Advice::words(
            args("remedy-bound-retries-text").with("kind", ctx.words_for(caller)),
            "remedy-bound-retries-risk",
            Lift::Further,
        );
        Some(Advice { risk, ..advice })
    },
};
