//! Remedy `widen-port-range`: more ephemeral ports for each upstream address and port.

use crate::facts::Context;
use crate::facts::port_range::{KEY_RANGE, usable};
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::Advised;
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::ephemeral_ports::all;
use crate::observation::{ListenerAddress, NetnsView};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "widen-port-range", finding: FindingId::PORTS_EXHAUSTED, activation: Activation::Live, propose };

/// The widest range proposed. Services by custom listen on lower ports, and the kernel gives out no port below 1024 anyway.
const WIDE: (u32, u32) = (10_000, 65_535);

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let view = ctx.obs.netns.get(&id)?;
    let ports = all(ctx).into_iter().find(|ports| ports.netns == id && placed.at.edge == Some(ports.edge()))?;
    let from = view.sysctl(KEY_RANGE)?.split_whitespace().collect::<Vec<_>>().join(" ");
    let wide = (ports.range.0.min(WIDE.0).max(1024), ports.range.1.max(WIDE.1));
    // If the range is already about this wide, widening it does not help.
    if wide.1 - wide.0 < (ports.range.1 - ports.range.0) * 5 / 4 {
        return None;
    }
    let listening = listening(view, wide);
    let change =
        Change::Sysctl { key: KEY_RANGE.to_owned(), netns: id, netns_name: ctx.netns_name(id), from, to: format!("{} {}", wide.0, wide.1) };
    let to = usable(view, wide);
    let reserved = wide.1 - wide.0 + 1 - to;
    let sum = Message::new(if reserved > 0 { "sum-ports-reserved" } else { "sum-ports" });
    // A port is a name: it is not grouped as a quantity is.
    let (low, high) = (wide.0.to_string(), wide.1.to_string());
    let advised = Advised::new(f64::from(to), sum.with("low", low.as_str()).with("high", high.as_str()).with("reserved", reserved));
    let text = Message::new("remedy-widen-port-range-text").with("low", low).with("high", high).with("from", ports.usable);
    let text = text.with("to", to).with("sum", advised.sum);
    let risk = match listening.is_empty() {
        true => Message::new("remedy-widen-port-range-risk"),
        false => Message::new("remedy-widen-port-range-risk-listeners").with("ports", listening.join(", ")),
    };
    Some(Proposal {
        reload: None,
        change: vec![change],
        text,
        risk,
        signal: Signal::Refusals(StationId::EPHEMERAL_PORTS),
        lifts: Lift::Limit(f64::from(to)),
    })
}

/// Listening ports inside the wide range. After a restart of such a service, an outgoing connection could hold its port.
fn listening(view: &NetnsView, (low, high): (u32, u32)) -> Vec<String> {
    let listeners = view.listeners.last().map(Vec::as_slice).unwrap_or_default();
    let mut ports: Vec<u32> = (listeners.iter())
        .filter_map(|listener| match listener.address {
            ListenerAddress::Tcp(_, port) if (low..=high).contains(&u32::from(port)) => Some(u32::from(port)),
            _ => None,
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports.into_iter().take(8).map(|port| port.to_string()).collect()
}
