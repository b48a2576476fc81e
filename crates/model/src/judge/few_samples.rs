//! Too few samples of requests as the reason for not knowing: what waits longer than a moment shows in several of them.

use crate::facts::Context;
use crate::judge::verdict::Judgement;
use crate::output::message::Message;
use crate::output::report::Verdict;

/// Samples from which the account has an interval (two batches), and pools are seen to stay full.
const ENOUGH: usize = 6;
/// The proposed length is a multiple of this.
const STEP_S: f64 = 10.0;

/// A judgement that nothing explains what was seen; with too few samples it says so, and how long to measure.
pub(super) fn told(ctx: &Context<'_>, judgement: Judgement) -> Judgement {
    match judgement.verdict {
        Verdict::Unknown => Judgement { summary: explained(ctx, judgement.summary), ..judgement },
        _ => judgement,
    }
}

/// The same for its sentence.
pub(super) fn explained(ctx: &Context<'_>, why: Message) -> Message {
    let Some(samples) = fewest(ctx).filter(|samples| *samples < ENOUGH) else { return why };
    let longer_s = (ctx.seconds() * ENOUGH as f64 / samples as f64 / STEP_S).ceil() * STEP_S;
    let told = Message::new("verdict-unknown-few-samples").with("why", why).with("samples", samples as f64);
    told.with("seconds", ctx.seconds().round()).with("longer", longer_s)
}

/// The samples of the namespace of the path that has the fewest; nothing where none could be taken.
fn fewest(ctx: &Context<'_>) -> Option<usize> {
    let sampled = ctx.path.tiers.iter().filter_map(|tier| ctx.obs.netns.get(&tier.netns));
    sampled.map(|view| ctx.in_window(&view.request_samples).count()).filter(|count| *count > 0).min()
}
