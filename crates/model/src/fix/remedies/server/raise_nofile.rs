//! Remedy `raise-nofile`: lets nginx's workers open as many files as their connections need.

use super::raise_worker_connections::{FILES_PER_CONNECTION, at_once, files_most, files_set, nginx_of};
use crate::facts::Context;
use crate::fix::change::{Activation, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::Advised;
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::file_descriptors::Files;
use crate::judge::stations::worker_connections::Held;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-nofile", finding: FindingId::FILES_EXHAUSTED, activation: Activation::Reload, propose };

pub(super) fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let tier = ctx.only_tier(&placed.owner)?;
    let (server, nginx) = nginx_of(ctx, tier)?;
    let (held, files) = (Held::of(ctx, tier)?, Files::of(ctx, tier)?);
    // The connections that are allowed already, or that will be needed.
    let connections = u64::from(held.limit).max(at_once(ctx, &held).unwrap_or(0.0).ceil() as u64);
    let needed = connections.saturating_mul(FILES_PER_CONNECTION);
    let advised = Advised::new(needed as f64, Message::new("sum-connection-files").with("connections", connections));
    let advised =
        advised.at_least(Advised::twice(files.limit)).power_of_two(u64::MAX).at_most(files_most(ctx, tier, &server), "sum-nr-open");
    let wanted = advised.number;
    if wanted <= files.limit {
        return None;
    }
    let change = server.change(ServerSetting::NginxWorkerRlimitNofile, &files_set(nginx), &wanted.to_string(), Activation::Reload);
    Some(Proposal {
        reload: None,
        change: vec![change],
        text: Message::new("remedy-raise-nofile-text").with("from", files.limit).with("to", wanted).with("sum", advised.sum),
        risk: Message::new("remedy-raise-nofile-risk"),
        signal: Signal::Refusals(StationId::FILE_DESCRIPTORS),
        lifts: Lift::to_room(wanted >= needed),
    })
}
