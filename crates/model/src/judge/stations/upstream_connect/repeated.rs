//! Finding `calls-repeated`: a tier asks the servers behind it again when a call fails, and they get a multiple of its requests.

use super::STATION;
use crate::facts::owner::Owner;
use crate::facts::path::Tier;
use crate::facts::{Context, Logged};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::StationReading;
use crate::ledger::{Failing, Repeated};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationState};

/// Those that are told as what to look at first.
fn told<'c>(ctx: &'c Context<'_>) -> impl Iterator<Item = &'c Repeated> {
    ctx.repeated().iter().filter(|found| found.is_told(ctx))
}

/// A reading for each edge whose calls are repeated.
pub(super) fn readings(ctx: &Context<'_>) -> Vec<StationReading> {
    told(ctx).filter_map(|found| reading(ctx, found)).collect()
}

fn reading(ctx: &Context<'_>, found: &Repeated) -> Option<StationReading> {
    let (owner, at) = place(ctx, found)?;
    let mut reading = STATION.reading(owner, at, "connects/s");
    reading.refused_per_s = Some(found.seen as f64 / ctx.seconds().max(1e-6));
    Some(reading.in_state(StationState::Refusing, found.args(ctx, "state-upstream-connect-repeated")))
}

pub(super) fn findings(ctx: &Context<'_>) -> Vec<Finding> {
    told(ctx).filter_map(|found| finding(ctx, found)).collect()
}

fn finding(ctx: &Context<'_>, found: &Repeated) -> Option<Finding> {
    let (owner, at) = place(ctx, found)?;
    let netns = ctx.netns_name(ctx.path.tiers[found.caller].netns);
    let (id, source) = match found.how {
        Failing::Error => ("evidence-calls-repeated-errors", "packet(7)".to_owned()),
        Failing::GivenUp => ("evidence-calls-repeated-given-up", format!("sock_diag CLOSE-WAIT, FIN-WAIT ({netns})")),
        Failing::Unanswered => ("evidence-calls-repeated-unanswered", format!("/proc/net/snmp Tcp.ActiveOpens ({netns}), packet(7)")),
    };
    let calls = found.logged.as_ref().map_or_else(|| Evidence::new(found.args(ctx, id), source, Some(found.seen as f64)), Logged::proof);
    let keeps_up = found.args(ctx, "evidence-calls-repeated-keeps-up");
    let keeps_up = Some(Evidence::new(keeps_up, "packet(7)", None)).filter(|_| found.how == Failing::GivenUp);
    let in_turn = Evidence::new(found.args(ctx, "evidence-calls-repeated-in-turn"), format!("sock_diag struct tcp_info ({netns})"), None);
    Some(Finding {
        confidence: if found.is_sure { Confidence::High } else { Confidence::Medium },
        title: found.args(ctx, "finding-calls-repeated-title"),
        evidence: std::iter::once(calls).chain(keeps_up).chain([in_turn]).collect(),
        explanation: vec![found.args(ctx, "finding-calls-repeated-explanation")],
        lost_time: Some(found.lost_time),
        ..STATION.finding(FindingId::REPEATED, owner, at)
    })
}

/// Repeated calls that no finding tells: why they fail is told, or not known.
pub(super) fn notes(ctx: &Context<'_>) -> Vec<Message> {
    let untold = ctx.repeated().iter().filter(|found| !found.is_told(ctx) && !found.are_errors_told(ctx));
    untold.map(|found| found.args(ctx, "warning-calls-repeated")).collect()
}

/// It is about the servers that are asked, at the edge from the one that asks.
fn place(ctx: &Context<'_>, found: &Repeated) -> Option<(Owner, Location)> {
    let asked: Vec<&Tier> = found.asked.iter().map(|tier| &ctx.path.tiers[*tier]).collect();
    let first = asked.first()?;
    let placed = first.listeners.first()?;
    let edge = Some(EdgeId::Tiers(ctx.path.tiers[found.caller].id, first.id));
    Some((asked.as_slice().into(), Location { edge, ..Location::at_listener(placed.netns, placed.listener.address.clone()) }))
}
