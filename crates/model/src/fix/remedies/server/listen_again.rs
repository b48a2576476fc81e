//! Remedy `listen-again`: a configured backlog that is not in force takes effect with another call of listen(2).

use super::raise_accept_backlog::{configured, has_room};
use crate::facts::Context;
use crate::facts::setting;
use crate::fix::change::{Activation, ServerKind};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "listen-again", finding: FindingId::NOT_IN_FORCE, activation: Activation::Reload, propose };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let tier = ctx.only_tier(&placed.owner)?;
    let listener = placed.at.listener_of(tier)?;
    let in_force = placed.limit?;
    let unforced = setting::unforced_backlog(ctx, tier, listener, in_force)?;
    let backlog = configured(ctx, tier, &listener.listener.address)?;
    // A backlog of -1 means "as large as possible" and has no number, so the kernel's limit is used.
    let wanted = if backlog.written() < 0 { u32::try_from(unforced.limit) } else { u32::try_from(backlog.written()) };
    let change = backlog.change(wanted.ok()?);
    let is_nginx = backlog.server() == ServerKind::Nginx;
    // A reload of nginx would also apply everything else that was changed in the file. That is its owner's decision.
    if is_nginx && unforced.changed.is_some() {
        return None;
    }
    let text = if is_nginx { "remedy-listen-again-text" } else { "remedy-listen-again-text-live" };
    let text = Message::new(text).with("listener", listener.listener.address.to_string()).with("tier", tier.name.as_str());
    Some(Proposal {
        reload: None,
        text: text.with("from", in_force).with("limit", unforced.limit).with("to", change.to()),
        change: vec![change],
        risk: Message::new("remedy-listen-again-risk"),
        signal: Signal::Refusals(StationId::ACCEPT_QUEUE),
        lifts: Lift::to_room(u32::try_from(unforced.limit).is_ok_and(|length| has_room(ctx, length))),
    })
}
