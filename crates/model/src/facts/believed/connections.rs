//! "worker_connections are not enough": the connections that each worker held.

use super::Belief;
use super::looks::{at_once_most, came, longest_gap_s, opened};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::setting::changed_since_read;
use crate::observation::{ListenerAddress, LogEvent, NginxConfig, OpenFiles, ProcessView};
use crate::output::message::Message;

/// nginx makes room from this share of its connections on (`ngx_drain_connections` of ngx_connection.c).
const DRAIN_SHARE: f64 = 15.0 / 16.0;
/// How many it closes at a time: one in this many of its connections, and at most this number.
const DRAIN_PART: u32 = 8;
const DRAIN_MAX: u32 = 32;
/// Connections that a request takes at most: its client's, and one to an upstream.
const EACH: f64 = 2.0;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier, event: &LogEvent, line: &str) -> Belief {
    let Some((master, nginx)) = tier.pids.iter().find_map(|pid| Some((*pid, ctx.obs.servers.get(pid)?.nginx()?))) else {
        return Belief::Alone;
    };
    let dropped = ctx.dropped_accepts(tier);
    if dropped.is_some_and(|count| count > 0) {
        return Belief::Shown;
    }
    let said = limit_in(line);
    let (limit, is_sure) = in_force(ctx, tier, (master, nginx), said);
    let is_worker = |pid: &&u32| {
        let identity = ctx.obs.processes.get(pid).and_then(|process| process.identity.first());
        identity.is_some_and(|identity| identity.parent == master)
    };
    let workers: Vec<u32> = tier.pids.iter().filter(is_worker).copied().collect();
    let siblings = workers.len().saturating_sub(1) as u32;
    let held: Vec<Held> = workers.iter().filter_map(|pid| Held::of(ctx.obs.processes.get(pid)?)).collect();
    let drained = (limit / DRAIN_PART).min(DRAIN_MAX);
    let room_from = DRAIN_SHARE * f64::from(limit);
    if is_sure && held.iter().any(|held| f64::from(held.least.saturating_sub(siblings) + drained) >= room_from) {
        return Belief::Shown;
    }
    if dropped == Some(0) && nginx.passes.is_empty() && *event == LogEvent::ConnectionsExhausted {
        return Belief::Against(Message::new("log-but-handled"));
    }
    if workers.is_empty() || held.len() < workers.len() {
        return Belief::Alone;
    }
    let most = held.iter().map(|held| held.most).max().unwrap_or(0);
    let more = held.iter().map(|held| held.more(ctx, tier, nginx)).reduce(|a, b| Some(a?.max(b?))).flatten();
    match more {
        Some(more) if f64::from(most) + more < room_from => {
            let why = Message::new("log-but-connections").with("peak", most).with("limit", limit).with("more", more.ceil());
            Belief::Against(why)
        }
        _ => Belief::Alone,
    }
}

/// The connections that a worker may have, from its configuration, or from the line of its log if the configuration may have been changed since it was read.
pub(crate) fn limit_in_force(ctx: &Context<'_>, tier: &Tier, of: (u32, &NginxConfig), line: Option<&str>) -> u32 {
    let configured = of.1.worker_connections.value;
    if is_as_read(ctx, tier, of) { configured } else { line.and_then(limit_in).unwrap_or(configured) }
}

/// The limit against which to hold what was seen, and whether it is sure that it is the one in force.
fn in_force(ctx: &Context<'_>, tier: &Tier, of: (u32, &NginxConfig), said: Option<u32>) -> (u32, bool) {
    let configured = of.1.worker_connections.value;
    match said {
        Some(said) if said != configured && !is_as_read(ctx, tier, of) => {
            (said.min(configured), changed_since_read(ctx, tier, of.0, None).is_some())
        }
        _ => (configured, true),
    }
}

/// True if the files were read, and none was changed since the server read it.
fn is_as_read(ctx: &Context<'_>, tier: &Tier, (master, nginx): (u32, &NginxConfig)) -> bool {
    let is_dated = ctx.obs.kernel.last().is_some_and(|kernel| kernel.boot_s.is_some()) && !nginx.files.is_empty();
    is_dated && changed_since_read(ctx, tier, master, None).is_none()
}

/// The number in "768 worker_connections are not enough".
fn limit_in(line: &str) -> Option<u32> {
    line.split_once(" worker_connections")?.0.rsplit(' ').next()?.parse().ok()
}

/// The sockets of one worker in all looks at it.
struct Held {
    /// The most that it had for sure.
    least: u32,
    /// The most that it can have had in a look.
    most: u32,
    looks_us: Vec<u64>,
}

impl Held {
    fn of(process: &ProcessView) -> Option<Self> {
        let sockets = |files: &OpenFiles| u32::try_from(files.sockets.len()).unwrap_or(u32::MAX);
        let others = || process.files.values().map(|files| files.count.saturating_sub(sockets(files)));
        // Between two looks at which descriptors are sockets, their number follows from that of all: at least and at most as many others are open as were ever seen.
        let (fewest, most) = (others().min(), others().max());
        let of_all = |without: u32| process.fd_count.values().map(move |count| count.saturating_sub(without));
        let seen = || process.files.values().map(sockets);
        let looks = process.files.points().iter().map(|(at, _)| *at).chain(process.fd_count.points().iter().map(|(at, _)| *at));
        Some(Self {
            least: seen().chain(most.into_iter().flat_map(of_all)).max()?,
            most: seen().chain(of_all(fewest.unwrap_or(0))).max()?,
            looks_us: looks.collect(),
        })
    }

    /// The most connections that can have come between two looks.
    fn more(&self, ctx: &Context<'_>, tier: &Tier, nginx: &NginxConfig) -> Option<f64> {
        let gap_s = longest_gap_s(ctx, self.looks_us.iter().copied())?;
        let opened = opened(ctx, tier.netns, &["Tcp.PassiveOpens", "Tcp.ActiveOpens"], gap_s);
        let is_unix = |index: &usize| {
            ctx.path.tiers[*index].listeners.iter().any(|placed| matches!(placed.listener.address, ListenerAddress::Unix(_)))
        };
        let is_tcp =
            tier.upstreams.is_empty() && nginx.passes.is_empty() || !tier.upstreams.is_empty() && !tier.upstreams.iter().any(is_unix);
        // No counter has connections to unix sockets: a request takes at most one.
        let unix = if is_tcp { Some(0.0) } else { came(ctx, tier, gap_s) };
        let by_rate = opened.zip(unix).map(|(tcp, unix)| tcp + unix);
        let by_load = at_once_most(ctx, tier).map(|requests| EACH * requests);
        by_rate.into_iter().chain(by_load).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::limit_in;

    #[test]
    fn the_limit_in_force_is_in_the_line() {
        assert_eq!(limit_in("2026/11/20 07:17:47 [alert] 9#9: *5 768 worker_connections are not enough"), Some(768));
        assert_eq!(limit_in("2026/11/20 07:17:47 [alert] 9#9: 64 worker_connections are not enough, reusing connections"), Some(64));
        for other in ["", "worker_connections", " worker_connections", "x worker_connections are", "99999999999 worker_connections"] {
            assert_eq!(limit_in(other), None, "{other}");
        }
    }
}
