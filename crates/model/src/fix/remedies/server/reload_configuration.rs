//! Remedy `reload-configuration`: advises a reload of a server whose file changed after the server read it. Only the owner knows what else changed in the
//! file, so the reload is left to them.

use super::raise_accept_backlog::{configured, has_room};
use super::raise_max_children::cost;
use super::servers;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::PoolMemory;
use crate::facts::setting;
use crate::fix::change::{Activation, ServerKind, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "reload-configuration", finding: FindingId::NOT_IN_FORCE, activation: Activation::Reload, propose };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let tier = ctx.only_tier(&placed.owner)?;
    if placed.station == StationId::WORKER_POOL { pool(ctx, tier, placed) } else { queue(ctx, tier, placed) }
}

fn queue(ctx: &Context<'_>, tier: &Tier, placed: &StationReading) -> Option<Proposal> {
    let listener = placed.at.listener_of(tier)?;
    let unforced = setting::unforced_backlog(ctx, tier, listener, placed.limit?)?;
    // php-fpm keeps its sockets and their limits across a reload.
    let backlog = configured(ctx, tier, &listener.listener.address).filter(|backlog| backlog.server() == ServerKind::Nginx)?;
    let text = Message::new("remedy-reload-configuration-queue").with("file", unforced.changed?).with("tier", tier.name.as_str());
    Some(Proposal {
        reload: Some(backlog.change(u32::try_from(unforced.limit).ok()?)),
        change: Vec::new(),
        text: text.with("limit", unforced.limit),
        risk: Message::new("remedy-reload-configuration-risk"),
        signal: Signal::Refusals(StationId::ACCEPT_QUEUE),
        lifts: Lift::to_room(u32::try_from(unforced.limit).is_ok_and(|length| has_room(ctx, length))),
    })
}

fn pool(ctx: &Context<'_>, tier: &Tier, placed: &StationReading) -> Option<Proposal> {
    let running = placed.limit?;
    let unforced = setting::unforced_pool(ctx, tier, running)?;
    let server = servers::of(ctx, tier).into_iter().find(|server| server.pid() == unforced.master)?;
    let written = unforced.pool.max_children.value;
    let setting = ServerSetting::PhpFpmMaxChildren { pool: unforced.pool.name.clone() };
    let reload = server.change(setting, &written.to_string(), &written.to_string(), Activation::Reload);
    let text = Message::new("remedy-reload-configuration-pool").with("file", unforced.file).with("tier", tier.name.as_str());
    let more = f64::from(written) - running;
    Some(Proposal {
        reload: Some(reload),
        change: Vec::new(),
        text: text.with("written", written).with("running", running),
        risk: cost("remedy-raise-max-children-risk", PoolMemory::of(ctx, tier), more.max(0.0) as u32),
        signal: Signal::Goodput,
        lifts: Lift::Limit(f64::from(written)),
    })
}
