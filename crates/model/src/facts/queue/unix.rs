//! Accept queues of unix sockets. The kernel does not count refusals there, so the logs of the callers are the evidence.
//!
//! If the queue is full, a non-blocking connect is refused at once with EAGAIN, errno 11 (unix(7)). nginx then answers 502.

use super::Queue;
use crate::facts::Context;
use crate::facts::Logged;
use crate::facts::harm::Cost;
use crate::facts::path::{PlacedListener, Tier, plain};
use crate::facts::suffered::{answers_with, turned_away};
use crate::observation::{ListenerAddress, LogEvent, NetnsId};

/// A connect that found the queue full (EAGAIN).
const NO_ROOM: LogEvent = LogEvent::ConnectFailed(Some(11));
/// Statuses of a gateway whose upstream refused or did not answer.
const GATEWAY_STATUSES: [u16; 3] = [502, 503, 504];

/// The path of a unix listener. `None` for others.
pub(crate) fn path_of(placed: &PlacedListener) -> Option<&str> {
    match &placed.listener.address {
        ListenerAddress::Unix(path) => Some(path),
        ListenerAddress::Tcp(..) => None,
    }
}

/// Refused connections of the load itself, if it connects to this socket: with EAGAIN because the queue was full, or because nobody listened for a while.
pub(crate) fn own_refused(ctx: &Context<'_>, netns: Option<NetnsId>, path: &str) -> Option<u64> {
    let load = ctx.obs.load.as_ref().filter(|_| !ctx.obs.request.unix.is_empty())?;
    let first = ctx.path.tiers.first()?;
    let asked = |placed: &PlacedListener| Some(placed.netns) == netns && path_of(placed) == Some(path);
    first.listeners.iter().any(asked).then_some(load.errors.connect_refused)
}

/// Refused connections at a tier's unix socket: the callers' log lines. If their logs show nothing at all and the queue was seen beyond its limit, the gateway
/// errors.
pub(crate) fn refused(ctx: &Context<'_>, tier: &Tier, netns: NetnsId, path: &str, queue: Queue) -> Option<u64> {
    if let Some(own) = own_refused(ctx, Some(netns), path) {
        // Refused clients retry at once, so the queue is seen full. If it was not, there was another reason.
        return Some(if queue.is_full() { own } else { 0 });
    }
    // Limit + 1 connections may wait: then the queue was full.
    let was_full = queue.peak > queue.limit;
    if let Some(logged) = logged(ctx, tier, path, was_full) {
        return Some(logged.count);
    }
    match lines(ctx, tier) {
        // An empty log may have a level that does not record this.
        Some(0) | None if was_full => ctx.obs.load.as_ref().map(|load| answers_with(load, &GATEWAY_STATUSES[..2])),
        lines => lines.map(|_| 0),
    }
}

/// Log lines of a tier's callers about refusals at this path. Only the first line of each event is known. If it names another socket, the lines count for this
/// one only if its queue was seen full.
pub(crate) fn logged(ctx: &Context<'_>, tier: &Tier, path: &str, was_full: bool) -> Option<Logged> {
    let about = |logged: &Logged| names(&logged.line, path) || (was_full && logged.line.contains("unix:"));
    let told = ctx.path.callers(tier.id).filter_map(|caller| ctx.logged(caller, &NO_ROOM)).filter(about);
    told.max_by_key(|logged| logged.count)
}

/// True if a line names this socket: "connect() to unix:/run/php.sock failed (11: ...".
fn names(line: &str, path: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'));
    let named = |from: &str| from.strip_prefix(path).or_else(|| plain(from).strip_prefix(plain(path))).is_some_and(ends);
    line.match_indices("unix:").any(|(at, prefix)| named(&line[at + prefix.len()..]))
}

/// Number of lines in the error logs of a tier's callers. `None` if no log could be read.
fn lines(ctx: &Context<'_>, tier: &Tier) -> Option<u64> {
    let views = ctx.path.callers(tier.id).flat_map(|caller| caller.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)));
    let logs = views.flat_map(|view| view.error_logs.values().filter_map(|log| log.last()));
    logs.map(|log| log.events.values().sum::<u64>()).reduce(|all, lines| all + lines)
}

/// True if the refusals did harm: refused connections of the load itself if it connects to this socket, else gateway errors. For watched traffic: the refusals
/// as a share of the connections.
pub(crate) fn harmed(ctx: &Context<'_>, netns: NetnsId, path: &str, refused: u64) -> bool {
    let Some(load) = &ctx.obs.load else { return turned_away(ctx, None, refused).hurts() };
    let lost = own_refused(ctx, Some(netns), path).unwrap_or_else(|| answers_with(load, &GATEWAY_STATUSES));
    Cost::of_requests(lost, load.requests).hurts()
}

/// How long a client waits for its answer, seconds.
pub(crate) fn patience_s(ctx: &Context<'_>) -> f64 {
    ctx.obs.load.as_ref().map_or(f64::INFINITY, |load| load.timeout_us as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_line_names_the_very_path() {
        let line =
            "connect() to unix:/run/php.sock failed (11: Resource temporarily unavailable), upstream: \"fastcgi://unix:/run/php.sock:\"";
        assert!(names(line, "/run/php.sock") && names(line, "/var/run/php.sock"));
        for other in ["/run/php", "/run/php.soc", "/run/php.sock2", "/php.sock", "/run/other.sock"] {
            assert!(!names(line, other), "{other}");
        }
        assert!(names("connect() to unix:/var/run/php.sock failed (11: ", "/run/php.sock"));
        assert!(!names("connect() to unix:/run/php.sock.old failed (11: ", "/run/php.sock"));
        assert!(!names("connect() to 10.0.0.1:80 failed (11: ", "/run/php.sock") && !names("unix:", "/run/php.sock"));
    }
}
