//! Advice `raise-server-limit`: the line of a limit that somebody set, and a number that meets the demand.

use crate::facts::Context;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::{Signal, Step};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::server_limit::{args, limit_at};
use crate::observation::LimitOf;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "raise-server-limit", finding: FindingId::SERVER_LIMIT_REACHED, activation: Activation::Reload, advise };

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let (tier, used) = limit_at(ctx, placed)?;
    let (enough, sum) = used.enough(ctx, tier);
    let text = args(ctx, "remedy-raise-server-limit-text", tier, &used).with("enough", enough);
    let text = match sum {
        Some((rate_rps, held_s)) => text.with("known", "yes").with("rate", rate_rps).with("held", 1e3 * held_s),
        // The connections of a load say nothing of how many would come in a second.
        None => text
            .with("known", if ctx.obs.load.is_some() && used.limit.of != LimitOf::ConnectionRate { "load" } else { "no" })
            .with("rate", 0.0)
            .with("held", 0.0),
    };
    let line = |value: u64| format!("{} {value}", used.limit.line);
    let at = used.limit.origin.to_string();
    let restart = if used.limit.needs_restart { "yes" } else { "no" };
    let written = Message::new("remedy-raise-server-limit-line").with("tier", tier.name.as_str()).with("restart", restart);
    let risk = if used.limit.is_refused { "remedy-raise-server-limit-risk-own" } else { "remedy-raise-server-limit-risk" };
    Some(Advice {
        text,
        risk: Message::new(risk).with("tier", tier.name.as_str()),
        runtime: Vec::new(),
        persistent: vec![
            Step::lines(Message::new("step-line-now").with("place", at.as_str()), line(used.limit.value)),
            Step::lines(written, line(enough)),
        ],
        undo: vec![Step::lines(Message::new("remedy-raise-server-limit-undo").with("place", at), line(used.limit.value))],
        signal: Signal::Goodput,
        lifts: Lift::Further,
    })
}
