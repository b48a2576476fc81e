//! Remedy `reuse-time-wait`: lets new connections take over a port that is in TIME_WAIT.

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::ephemeral_ports::{KEY_REUSE, Ports, all};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "reuse-time-wait", finding: FindingId::TIME_WAIT_SEARCH, activation: Activation::Live, propose };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let from = ctx.obs.netns.get(&id)?.sysctl(KEY_REUSE)?.to_owned();
    // For loopback the default does the same.
    let reuses = |ports: &Ports| ports.netns == id && placed.at.edge == Some(ports.edge()) && ports.reuses;
    if from == "1" || all(ctx).iter().any(reuses) {
        return None;
    }
    let change =
        Change::Sysctl { key: KEY_REUSE.to_owned(), netns: id, netns_name: ctx.netns_name(id), from: from.clone(), to: "1".to_owned() };
    Some(Proposal {
        reload: None,
        change: vec![change],
        text: Message::new("remedy-reuse-time-wait-text").with("from", from),
        risk: Message::new("remedy-reuse-time-wait-risk"),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}
