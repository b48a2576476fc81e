//! Remedy `reload-configuration`: advises a reload of a server whose file changed after the server read it. Only the owner knows what else changed in the
//! file, so the reload is left to them.

use super::raise_accept_backlog::{configured, has_room};
use super::raise_max_children::{risk, worker_bytes};
use super::servers;
use crate::facts::Context;
use crate::facts::path::Tier;
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
    let command = backlog.change(u32::try_from(unforced.limit).ok()?).command();
    Some(Proposal {
        change: Vec::new(),
        text: text.with("command", command).with("limit", unforced.limit),
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
    let command = server.change(setting, &written.to_string(), &written.to_string(), Activation::Reload).command();
    let text = Message::new("remedy-reload-configuration-pool").with("file", unforced.file).with("tier", tier.name.as_str());
    let mib = (f64::from(written) - running) * worker_bytes(ctx, tier) / f64::from(1 << 20);
    Some(Proposal {
        change: Vec::new(),
        text: text.with("command", command).with("written", written).with("running", running),
        risk: Message::new(risk(server.view().php_fpm()?)).with("mib", mib),
        signal: Signal::Goodput,
        lifts: Lift::Limit(f64::from(written)),
    })
}
