//! A limit that somebody set, and a number that meets the demand: remedy `raise-server-limit` where the server's files can be edited and it reads them again, advice
//! `raise-server-limit-by-hand` or `-by-restart` elsewhere.

use super::definition::{Advice, AdviceDef, Proposal, RemedyDef};
use super::server::servers;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::limits::Used;
use crate::fix::change::Activation;
use crate::fix::remedy::{Signal, Step};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::server_limit::{args, limit_at};
use crate::observation::LimitOf;
use crate::output::message::Message;
use crate::predict::Lift;

pub(super) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-server-limit", finding: FindingId::SERVER_LIMIT_REACHED, activation: Activation::Reload, propose };
pub(super) const BY_HAND: AdviceDef = AdviceDef {
    id: "raise-server-limit-by-hand",
    finding: FindingId::SERVER_LIMIT_REACHED,
    activation: Activation::Reload,
    advise: |ctx, placed| advise(ctx, placed, false),
};
pub(super) const BY_RESTART: AdviceDef = AdviceDef {
    id: "raise-server-limit-by-restart",
    finding: FindingId::SERVER_LIMIT_REACHED,
    activation: Activation::Restart,
    advise: |ctx, placed| advise(ctx, placed, true),
};

/// A limit, and the number that would be enough.
struct Raised<'c> {
    tier: &'c Tier,
    used: Used<'c>,
    enough: u64,
    /// What raising it means.
    text: Message,
    /// What could go wrong with more.
    risk: Message,
}

impl<'c> Raised<'c> {
    /// The limit at the place of a reading.
    fn of(ctx: &'c Context<'_>, placed: &StationReading) -> Option<Self> {
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
        let risk = if used.limit.is_refused { "remedy-raise-server-limit-risk-own" } else { "remedy-raise-server-limit-risk" };
        Some(Self { tier, used, enough, text, risk: Message::new(risk).with("tier", tier.name.as_str()) })
    }
}

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let raised = Raised::of(ctx, placed)?;
    let limit = raised.used.limit;
    let setting = limit.change.clone().filter(|_| !limit.needs_restart)?;
    let server = servers::of(ctx, raised.tier).into_iter().find(|server| server.pid() == raised.used.pid)?;
    // The files may state it in several places, or compute it.
    let stands = server.value(&setting).is_some_and(|value| value == limit.value.to_string());
    stands.then(|| Proposal {
        change: vec![server.change(setting, &limit.value.to_string(), &raised.enough.to_string(), Activation::Reload)],
        reload: None,
        text: raised.text,
        risk: raised.risk,
        signal: Signal::Goodput,
        lifts: Lift::Further,
    })
}

fn advise(ctx: &Context<'_>, placed: &StationReading, by_restart: bool) -> Option<Advice> {
    // If the remedy applies, it replaces this advice.
    if propose(ctx, placed).is_some() {
        return None;
    }
    let raised = Raised::of(ctx, placed)?;
    let limit = raised.used.limit;
    // A server whose limit has a setting, and whose files are no text to edit, has nobody who reads them again.
    let has_master = ctx.obs.servers.get(&raised.used.pid).is_some_and(|view| view.files.text.is_some());
    let needs_restart = limit.needs_restart || limit.change.is_some() && !has_master;
    if needs_restart != by_restart {
        return None;
    }
    let line = |value: u64| format!("{} {value}", limit.line);
    let at = limit.origin.to_string();
    let restart = if needs_restart { "yes" } else { "no" };
    let written = Message::new("remedy-raise-server-limit-line").with("tier", raised.tier.name.as_str()).with("restart", restart);
    Some(Advice {
        risk: raised.risk,
        runtime: Vec::new(),
        persistent: vec![
            Step::lines(Message::new("step-line-now").with("place", at.as_str()), line(limit.value)),
            Step::lines(written, line(raised.enough)),
        ],
        undo: vec![Step::lines(Message::new("remedy-raise-server-limit-undo").with("place", at), line(limit.value))],
        text: raised.text,
        signal: Signal::Goodput,
        lifts: Lift::Further,
    })
}
