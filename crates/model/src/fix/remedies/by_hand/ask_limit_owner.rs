//! Advice `ask-limit-owner`: shows the lines of a limit that somebody set on purpose, so that its owner can decide.

use crate::facts::Context;
use crate::facts::limit::{holding, refusing, told};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::{Signal, Step};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::{NginxLimit, Origin};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const ADVICE: AdviceDef =
    AdviceDef { id: "ask-limit-owner", finding: FindingId::LIMITED_BY_CONFIG, activation: Activation::Reload, advise };

fn advise(ctx: &Context<'_>, placed: &StationReading) -> Option<Advice> {
    let tier = ctx.only_tier(&placed.owner)?;
    let Some(limit) = holding(ctx, tier) else {
        let text = match refusing(ctx, tier) {
            Some(rule) => Message::new("remedy-ask-limit-owner-text-rule").with("place", rule.origin.to_string()),
            // Where the limit stands is not known.
            None => Message::new("remedy-ask-limit-owner-text-unknown").with("tier", tier.name.as_str()),
        };
        return Some(Advice {
            text,
            risk: Message::new("remedy-ask-limit-owner-risk"),
            runtime: Vec::new(),
            persistent: Vec::new(),
            undo: Vec::new(),
            signal: Signal::Goodput,
            lifts: Lift::Away,
        });
    };
    let id = match limit.connections {
        Some(_) => "remedy-ask-limit-owner-text-connections",
        None if limit.bytes_per_s.is_some() => "remedy-ask-limit-owner-text-pace",
        None => "remedy-ask-limit-owner-text",
    };
    Some(Advice {
        text: told(id, tier, limit).with("zone_place", limit.zone_origin.to_string()),
        risk: Message::new("remedy-ask-limit-owner-risk"),
        runtime: Vec::new(),
        persistent: lines(limit),
        undo: Vec::new(),
        signal: Signal::Goodput,
        lifts: Lift::Away,
    })
}

/// The lines that would have to change, each with its file and line number.
fn lines(limit: &NginxLimit) -> Vec<Step> {
    let step = |origin: &Origin, line: String| Step::lines(Message::new("step-line-now").with("place", origin.to_string()), line);
    let zone = &limit.zone;
    if let Some(rate) = limit.bytes_per_s {
        return vec![step(&limit.origin, format!("limit_rate {rate};"))];
    }
    match (limit.connections, limit.rate_per_s) {
        (Some(connections), _) => vec![step(&limit.origin, format!("limit_conn {zone} {connections};"))],
        (None, rate) => {
            let burst = if limit.burst > 0 { format!(" burst={}", limit.burst) } else { String::new() };
            let delay = match limit.burst_at_once {
                0 => String::new(),
                all if all >= limit.burst => " nodelay".to_owned(),
                some => format!(" delay={some}"),
            };
            let mut steps = vec![step(&limit.origin, format!("limit_req zone={zone}{burst}{delay};"))];
            if let Some(rate) = rate {
                // nginx takes whole numbers, so a rate below one per second is written per minute.
                let rate = if rate.fract() == 0.0 { format!("{rate:.0}r/s") } else { format!("{:.0}r/m", rate * 60.0) };
                steps.push(step(&limit.zone_origin, format!("limit_req_zone {} zone={zone}:... rate={rate};", limit.key)));
            }
            steps
        }
    }
}
