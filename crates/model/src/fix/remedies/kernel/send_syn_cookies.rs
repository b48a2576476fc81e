//! Remedy `send-syn-cookies`: a SYN that finds the queue full is answered without an entry in the queue (`tcp_syncookies`).

use crate::facts::Context;
use crate::facts::queue::KEY_COOKIES;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "send-syn-cookies", finding: FindingId::SYN_QUEUE_FULL, activation: Activation::Live, propose };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let from = ctx.obs.netns.get(&id)?.sysctl(KEY_COOKIES).filter(|from| *from == "0")?.to_owned();
    let change = Change::Sysctl { key: KEY_COOKIES.to_owned(), netns: id, netns_name: ctx.netns_name(id), from, to: "1".to_owned() };
    Some(Proposal {
        reload: None,
        change: vec![change],
        text: Message::new("remedy-send-syn-cookies-text").with("listener", placed.at.listener_name()),
        risk: Message::new("remedy-send-syn-cookies-risk"),
        signal: Signal::Refusals(StationId::SYN_QUEUE),
        lifts: Lift::Away,
    })
}
