//! Remedy `raise-accept-backlog`: makes the accept queue large enough for all connections that can come at once, in the server and in the kernel.

use super::servers::{self, Server};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::setting;
use crate::facts::suffered::in_flight_peak;
use crate::fix::change::{Activation, Change, ServerKind};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::{Advised, AtOnce};
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::accept_queue::is_accepted_slowly;
use crate::observation::{ListenerAddress, NetnsId};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-accept-backlog", finding: FindingId::ACCEPT_QUEUE_FULL, activation: Activation::Reload, propose };

/// Sysctl that caps the backlog of every listener of a namespace at listen(2).
const KEY_SOMAXCONN: &str = "net.core.somaxconn";
/// Smallest limit proposed: the kernel's own default since 5.4 (Documentation/networking/ip-sysctl.rst).
const LIMIT_MIN: u32 = 4_096;
/// Largest limit proposed: it fits the kernel's counter in every version.
const LIMIT_MAX: u32 = 65_535;
/// Largest backlog that fits listen(2)'s argument.
const BACKLOG_MAX: u32 = i32::MAX as u32;
/// Room above the largest number of requests under way at once. If clients give up and reconnect, both connections stand in the queue.
const ROOM: f64 = 2.0;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let tier = ctx.only_tier(&placed.owner)?;
    let listener = placed.at.listener_of(tier)?;
    // Connections that come faster than they are accepted, or that nobody accepts, only wait longer in it.
    if is_accepted_slowly(ctx, tier, placed) {
        return None;
    }
    let limit = listener.listener.accept_queue_limit;
    ctx.obs.netns.get(&id)?.sysctl_number(KEY_SOMAXCONN)?;
    let backlog = configured(ctx, tier, &listener.listener.address);
    let advised = wanted(ctx, placed, limit);
    let wanted = advised.number as u32;
    // The kernel's limit comes first, because listen(2) reads it when it is called.
    let mut change: Vec<Change> = raise_somaxconn(ctx, id, wanted).into_iter().collect();
    let text = match &backlog {
        Some(backlog) => {
            change.push(backlog.change(wanted));
            "remedy-raise-accept-backlog-text"
        }
        None => {
            // Raising the kernel's limit alone changes nothing for an existing listener: its server must call listen(2) again with a larger backlog.
            change.clear();
            "remedy-raise-accept-backlog-text-other"
        }
    };
    let name = listener.listener.address.to_string();
    let text = Message::new(text).with("listener", name).with("from", limit).with("to", wanted).with("tier", tier.name.as_str());
    let text = text.with("sum", advised.sum);
    Some(Proposal {
        reload: None,
        change,
        text,
        risk: Message::new("remedy-raise-accept-backlog-risk"),
        signal: Signal::Refusals(StationId::ACCEPT_QUEUE),
        lifts: Lift::to_room(has_room(ctx, wanted)),
    })
}

/// The change that lets a queue of this length be in force, if the namespace's limit does not.
pub(super) fn raise_somaxconn(ctx: &Context<'_>, netns: NetnsId, wanted: u32) -> Option<Change> {
    let somaxconn = ctx.obs.netns.get(&netns)?.sysctl_number(KEY_SOMAXCONN)?;
    (somaxconn < u64::from(wanted)).then(|| Change::Sysctl {
        key: KEY_SOMAXCONN.to_owned(),
        netns,
        netns_name: ctx.netns_name(netns),
        from: somaxconn.to_string(),
        to: wanted.to_string(),
    })
}

/// The length of a new queue, in place of one with this many connections in it.
pub(super) fn queue_for(ctx: &Context<'_>, waiting: u32) -> u32 {
    room_for(ctx, f64::from(waiting)).number as u32
}

/// True if all requests that the load had under way at once fit into a queue of this length.
pub(super) fn has_room(ctx: &Context<'_>, length: u32) -> bool {
    ctx.obs.load.as_ref().is_some_and(|load| in_flight_peak(load) <= f64::from(length))
}

/// Room for all requests that can be under way at once, as a power of two, and always more than before.
fn wanted(ctx: &Context<'_>, placed: &StationReading, limit: u32) -> Advised {
    let room = room_for(ctx, placed.used.unwrap_or(0.0));
    let most = u64::from(LIMIT_MAX.max(limit));
    if room.number > u64::from(limit) { room } else { Advised::twice(u64::from(limit)).at_most(most, "sum-backlog-most") }
}

/// Room for all requests that can be under way at once, as a power of two. Without a load, for these in the queue.
fn room_for(ctx: &Context<'_>, waiting: f64) -> Advised {
    let needed = match AtOnce::of(ctx) {
        Some(at_once) => Advised::new(ROOM * at_once.number, Message::new("sum-backlog").with("at_once", at_once.sum)),
        None => Advised::new(ROOM * waiting, Message::new("sum-backlog-waiting").with("waiting", waiting)),
    };
    let default = Advised::new(f64::from(LIMIT_MIN), Message::new("sum-backlog-default"));
    let room = needed.at_least(default).power_of_two(u64::MAX);
    room.at_most(u64::from(LIMIT_MAX), "sum-backlog-most")
}

/// The setting that gives a listener its backlog, in the server that has it.
pub(super) struct Backlog<'a> {
    server: Server<'a>,
    written: setting::Backlog,
}

impl Backlog<'_> {
    /// The change to a value that differs from the one in the file. With the same value nginx would not call listen(2) again.
    pub(super) fn change(&self, wanted: u32) -> Change {
        let to = if self.written.value != i64::from(wanted) {
            i64::from(wanted)
        } else if wanted < BACKLOG_MAX {
            i64::from(wanted) + 1
        } else {
            i64::from(wanted) - 1
        };
        let setting = self.written.setting.clone();
        let activation = match setting.server() {
            ServerKind::Nginx | ServerKind::Haproxy => Activation::Reload,
            // A reload keeps the socket and its limit. listen(2) on a duplicate of the socket changes the limit and keeps its connections.
            ServerKind::PhpFpm => Activation::Live,
        };
        self.server.change(setting, &self.written.value.to_string(), &to.to_string(), activation)
    }

    /// The program.
    pub(super) fn server(&self) -> ServerKind {
        self.written.setting.server()
    }

    /// The configured value.
    pub(super) fn written(&self) -> i64 {
        self.written.value
    }
}

pub(super) fn configured<'a>(ctx: &Context<'a>, tier: &Tier, bound: &ListenerAddress) -> Option<Backlog<'a>> {
    let written = |server: Server<'a>| Some(Backlog { written: setting::backlog(server.view(), bound)?, server });
    servers::of(ctx, tier).into_iter().find_map(written)
}
