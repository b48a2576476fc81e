//! Remedy `shorten-conntrack-time-wait`: entries of closed connections leave the table earlier.

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "shorten-conntrack-time-wait", finding: FindingId::TABLE_FULL, activation: Activation::Live, propose };

/// Sysctl with the seconds that an entry stays after an orderly close; per namespace.
const KEY: &str = "net.netfilter.nf_conntrack_tcp_timeout_time_wait";
/// The shortened time in seconds. It is still longer than a stray segment is expected to live on a present-day path.
const SHORT_S: u64 = 30;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let view = ctx.obs.netns.get(&id)?;
    let from = view.sysctl_number(KEY)?;
    let states = view.conntrack_states.last()?;
    let all: u64 = states.values().sum();
    let waiting: u64 = states.iter().filter(|(state, _)| state.ends_with("TIME_WAIT")).map(|(_, count)| count).sum();
    // It helps only if closed connections fill the table.
    if from <= SHORT_S || waiting * 2 < all || all == 0 {
        return None;
    }
    let change =
        Change::Sysctl { key: KEY.to_owned(), netns: id, netns_name: ctx.netns_name(id), from: from.to_string(), to: SHORT_S.to_string() };
    let share = 100.0 * waiting as f64 / all as f64;
    Some(Proposal {
        reload: None,
        change: vec![change],
        text: Message::new("remedy-shorten-conntrack-time-wait-text").with("from", from).with("to", SHORT_S).with("share", share),
        risk: Message::new("remedy-shorten-conntrack-time-wait-risk"),
        signal: Signal::Refusals(StationId::CONNTRACK_TABLE),
        lifts: Lift::Further,
    })
}
