//! "server reached pm.max_children setting": the workers of a php-fpm pool.

use super::Belief;
use super::looks::{at_once_most, came, longest_gap_s, opened};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::{configured, worker_pids};
use crate::observation::{ListenerAddress, ServerStatus, Socket};
use crate::output::message::Message;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier, name: &str) -> Belief {
    let Some(pool) = configured(ctx, tier).into_iter().find(|pool| pool.name == name) else { return Belief::Alone };
    let most = pool.max_children.value;
    if worker_pids(ctx, tier).len() >= most as usize {
        return Belief::Shown;
    }
    let counted = tier.pids.iter().find_map(|pid| {
        let (page, _) = ctx.obs.servers.get(pid)?.pool_status(name)?;
        let reached = |status: &ServerStatus| match status {
            ServerStatus::PhpFpm(pool) => Some(pool.max_children_reached),
            _ => None,
        };
        ctx.growth(page, reached)
    });
    match counted {
        Some(0) => return Belief::Against(Message::new("log-but-not-counted").with("limit", most)),
        Some(_) => return Belief::Shown,
        None => {}
    }
    // The pool starts a worker only where a connection finds none idle.
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Belief::Alone };
    let own = |sockets: &Vec<Socket>| sockets.iter().filter(|socket| tier.accepts(&socket.address)).count();
    let Some(peak) = view.sockets.values().map(own).max() else { return Belief::Alone };
    let Some(gap_s) = longest_gap_s(ctx, view.sockets.points().iter().map(|(at, _)| *at)) else { return Belief::Alone };
    let by_rate = match pool.listen {
        ListenerAddress::Tcp(..) => opened(ctx, tier.netns, &["Tcp.PassiveOpens"], gap_s),
        ListenerAddress::Unix(_) => came(ctx, tier, gap_s),
    };
    let more = by_rate.into_iter().chain(at_once_most(ctx, tier)).reduce(f64::min);
    match more {
        Some(more) if peak as f64 + more < f64::from(most) => {
            Belief::Against(Message::new("log-but-workers").with("peak", peak as f64).with("limit", most).with("more", more.ceil()))
        }
        _ => Belief::Alone,
    }
}
