//! Whether a reading bears out what a line of an error log says. Whoever sends a request writes into that log what they like, whole lines of the server's form among it (nginx writes the
//! decoded path as it is, line feeds too), so a line proposes and a reading proves: the only place that says so.
//!
//! (docs/decisions/stations.md, 73.)
//!
//! Nothing here asks for the account: pools ask for their log lines while it is computed.

mod connections;
mod descriptors;
mod limits;
mod looks;
mod ports;
mod queues;
mod workers;

pub(crate) use connections::limit_in_force;
pub(crate) use descriptors::CHURN_SHARE;

use std::collections::BTreeMap;

use super::Context;
use crate::facts::path::Tier;
use crate::observation::LogEvent;
use crate::output::message::Message;

/// Most notes on lines that were not believed.
const NOTES_MAX: usize = 3;

/// What readings say about the lines of one event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Belief {
    /// A reading says the same, or this event makes no finding without a reading of its own.
    Shown,
    /// No reading says the same, and none that was taken rules it out.
    Alone,
    /// A reading rules it out: why, as the end of a sentence.
    Against(Message),
}

/// What the readings say about lines of this event in the error logs of a tier. `line` is the first of them.
pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, event: &LogEvent, line: &str) -> Belief {
    match event {
        LogEvent::ConnectionsExhausted | LogEvent::ConnectionsReused => connections::of(ctx, tier, event, line),
        LogEvent::AcceptFailed(Some(24)) | LogEvent::SocketFailed(Some(24)) | LogEvent::OpenFailed(Some(24)) => descriptors::of(ctx, tier),
        LogEvent::ConnectFailed(Some(99)) => ports::of(ctx, tier),
        LogEvent::ConnectFailed(Some(11)) => queues::of(ctx, tier),
        LogEvent::RateLimited(zone) | LogEvent::RateDelayed(zone) | LogEvent::ConnectionsLimited(zone) => {
            limits::of(ctx, tier, event, zone.as_deref())
        }
        LogEvent::WorkersExhausted(Some(pool)) => workers::of(ctx, tier, pool),
        // Findings by these events count responses, resets or the server's end as well.
        _ => Belief::Shown,
    }
}

/// What the lines say, as the end of a sentence.
fn says(event: &LogEvent) -> Message {
    Message::new(match event {
        LogEvent::ConnectionsExhausted | LogEvent::ConnectionsReused => "log-says-connections",
        LogEvent::ConnectFailed(Some(99)) => "log-says-ports",
        LogEvent::ConnectFailed(_) => "log-says-queue",
        LogEvent::RateDelayed(_) => "log-says-delayed",
        LogEvent::RateLimited(_) | LogEvent::ConnectionsLimited(_) => "log-says-limited",
        LogEvent::WorkersExhausted(_) => "log-says-workers",
        _ => "log-says-files",
    })
}

/// The notes on lines that were not believed, those of one meaning together.
pub(crate) fn notes(ctx: &Context<'_>) -> Vec<Message> {
    let mut told: BTreeMap<(usize, &'static str), (u64, Message, Message)> = BTreeMap::new();
    for tier in &ctx.path.tiers {
        for event in ctx.logged_events(tier) {
            let Some((logged, Belief::Against(why))) = ctx.logged_with_belief(tier, event) else { continue };
            let says = says(event);
            told.entry((tier.id.0, says.id)).or_insert((0, says, why)).0 += logged.count;
        }
    }
    let note = |((tier, _), (count, says, why)): ((usize, &str), (u64, Message, Message))| {
        let message = Message::new("warning-log-not-believed").with("tier", ctx.path.tiers[tier].name.as_str());
        message.with("count", count).with("says", says).with("why", why)
    };
    told.into_iter().take(NOTES_MAX).map(note).collect()
}
