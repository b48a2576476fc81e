//! Servers that a tier tries to connect to in vain.

use crate::facts::harm::Cost;
use crate::facts::path::{Endpoint, Tier, answers, is_local};
use crate::facts::pool::MOST;
use crate::facts::suffered::others::own_growth;
use crate::facts::traffic::Statuses;
use crate::facts::{Context, GOOD_MIN};
use crate::observation::load::INITIAL_RTO_S;
use crate::observation::{ListenerAddress, NetnsView, RequestSocket, RequestTimes, TcpState, WireAnswers};

use super::unanswered;
use crate::ledger::Calls;

/// Fewest connections that were seen with an unanswered SYN. One that carries a request and its answer is established for a round trip or more, as long as its SYN takes at
/// least: of a server that answers, so many are seen without one that is established once in four thousand times.
const TRIED_MIN: usize = 12;
/// The same where each lasted for at least half of the time after which its SYN is sent again (RFC 6298: few paths take as long): one packet of three may be lost, and hardly all of them.
const TRIED_LONG_MIN: usize = 3;

/// An address that a tier passes requests to, and where no connection comes about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unreached {
    /// Index of the tier that connects.
    pub(crate) tier: usize,
    /// The address; `None` where only the program knows it.
    pub(crate) remote: Option<Endpoint>,
    /// What happens to the connections.
    pub(crate) how: Unreachable,
    /// Mean number of requests that wait for it; at most, where the kernel refuses: the tier waits for as long as it likes before it tries again.
    pub(crate) waiting: f64,
    /// Requests that failed for want of an answer, and all that ended; `None` if too few failed to do harm, or it is not known.
    pub(crate) failed: Option<(u64, u64)>,
}

/// What happens to connections that do not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// Nobody answers their SYN: so many were seen.
    Unanswered(usize),
    /// Nobody listens there, and the kernel of this host refuses them: so many connections of the namespace failed.
    Refused(u64),
    /// The same of a program whose configuration is not read.
    Absent(u64),
}

impl Unreachable {
    /// The connections that did not come about, as far as they were seen or counted.
    pub(crate) fn connections(self) -> u64 {
        match self {
            Self::Unanswered(tried) => tried as u64,
            Self::Refused(refused) | Self::Absent(refused) => refused,
        }
    }
}

/// Those that cost the requests much: they wait for a connection, or fail for want of one.
pub(crate) fn unreached(ctx: &Context<'_>) -> Vec<Unreached> {
    let Some(account) = ctx.account() else { return Vec::new() };
    let under_way = account.under_way();
    let ended = unanswered(ctx);
    let failed = ended.filter(|(failed, of)| Cost::of_requests(*failed, *of).hurts());
    let mut found = Vec::new();
    for calls in account.calls() {
        // Connections of requests that were given up may go on.
        let waiting = calls.connecting.min(under_way);
        if is_unanswered(ctx, calls) && are_waited_for(ctx, calls, waiting) {
            found.push(Unreached {
                tier: calls.tier,
                remote: Some(calls.remote),
                how: Unreachable::Unanswered(calls.tried),
                waiting,
                failed,
            });
        }
    }
    for tier in &ctx.path.tiers {
        let waiting = account.inside(tier.id.0).value;
        // Whoever asks another server at once loses next to nothing. Requests that wait inside the tier for another reason are not that many.
        let is_most = 2.0 * waiting > under_way;
        let refused = refused(ctx, tier).filter(|_| is_most || failed.is_some());
        // Fewer than the requests that wait inside the tier, or that fail, do not explain these.
        let is_enough = |refused: u64| refused as f64 >= waiting && ended.is_none_or(|(failed, _)| refused >= failed);
        if let Some(refused) = refused.filter(|refused| is_enough(*refused)) {
            let of = |remote| Unreached { tier: tier.id.0, remote: Some(remote), how: Unreachable::Refused(refused), waiting, failed };
            found.extend(unheard(ctx, tier).into_iter().map(of));
        }
    }
    if found.is_empty() {
        found.extend(absent(ctx));
    }
    found.retain(|of| of.failed.is_some() || Cost::of_time(of.waiting / under_way.max(f64::MIN_POSITIVE)).hurts());
    found
}

/// Most requests end with an error, and as many connections as these are refused in the namespace of the one tier whose program may have made them: nothing listens at an address that only
/// the program knows. Of a proxy the configuration says where its requests go.
fn absent(ctx: &Context<'_>) -> Option<Unreached> {
    let own: u64 = ctx.obs.load.as_ref().map_or(0, |load| load.errors.connect_refused);
    let is_known = |tier: &Tier| tier.pids.iter().any(|pid| ctx.obs.servers.get(pid).is_some_and(|server| server.config.last().is_some()));
    let mut programs = ctx.path.tiers.iter().filter(|tier| !is_known(tier));
    let (Some(tier), None) = (programs.next(), programs.next()) else { return None };
    let refused = refused(ctx, tier)?.saturating_sub(own);
    let (failed, of) = answered_with_errors(ctx).or_else(|| never_answered(ctx, refused))?;
    let waiting = ctx.account().map_or(0.0, |account| account.inside(tier.id.0).value);
    let is_it = 2 * failed > of && failed >= GOOD_MIN && refused >= failed;
    is_it.then_some(Unreached { tier: tier.id.0, remote: None, how: Unreachable::Absent(refused), waiting, failed: Some((failed, of)) })
}

/// Requests that reached a server and got an error, or its end, for an answer, and all that ended. `None` if that is not known.
fn answered_with_errors(ctx: &Context<'_>) -> Option<(u64, u64)> {
    let statuses = Statuses::of(ctx)?;
    let cut = ctx.obs.load.as_ref().map_or(0, |load| load.errors.closed_before_answer + load.errors.reset);
    Some((statuses.errors() + cut, statuses.requests))
}

/// Connections to a watched server of which none got a response, at most as many as could not connect to what it calls, and all that came. `None` if any response left it, or if those were
/// not counted: they are where they are in plain HTTP/1 (RFC 9112).
fn never_answered(ctx: &Context<'_>, refused: u64) -> Option<(u64, u64)> {
    let first = ctx.path.tiers.first().filter(|_| ctx.obs.load.is_none() && ctx.obs.request.scheme == "http")?;
    let view = ctx.obs.netns.get(&first.netns)?;
    let counted: Vec<&WireAnswers> = ctx.in_window(&view.answers).map(|(_, counted)| counted).collect();
    let open_s = counted.iter().map(|counted| counted.open_us).sum::<u64>() as f64 / 1e6;
    let is_own = |from: &std::net::SocketAddr| {
        first.listeners.iter().any(|placed| matches!(placed.listener.address, ListenerAddress::Tcp(_, port) if port == from.port()))
    };
    let left = counted
        .iter()
        .any(|counted| counted.lost > 0 || counted.left_out > 0 || counted.servers.keys().chain(counted.kept.keys()).any(is_own));
    let came = own_growth(ctx, first.netns, "Tcp.PassiveOpens")?;
    (!left && open_s >= MOST * ctx.seconds()).then_some((refused.min(came), came))
}

/// True if connections to an address were tried, and no sign of one that came about was seen: none established, none that ended, no response in packets.
fn is_unanswered(ctx: &Context<'_>, calls: &Calls) -> bool {
    let Some(view) = ctx.obs.netns.get(&ctx.path.tiers[calls.tier].netns) else { return false };
    let is_it = |ip: std::net::IpAddr, port: u16| (ip.to_canonical(), port) == calls.remote;
    let came = ctx.in_window(&view.answers).flat_map(|(_, counted)| counted.came.keys()).any(|from| is_it(from.ip(), from.port()));
    let ended = ctx.in_window(&view.time_waits).flat_map(|(_, waits)| &waits.dialled).any(|group| is_it(group.remote.0, group.remote.1));
    let fewest = if each_connects_s(ctx, calls) >= MOST * INITIAL_RTO_S { TRIED_LONG_MIN } else { TRIED_MIN };
    calls.tried >= fewest && calls.established == 0 && !came && !ended
}

/// How long each connection that was tried stood with an unanswered SYN, seconds.
fn each_connects_s(ctx: &Context<'_>, calls: &Calls) -> f64 {
    ctx.seconds() * calls.connecting / calls.tried.max(1) as f64
}

/// True if the tier that connects has requests that may wait for that: at least half of those that would have to, and each for a quarter of the time that one of these takes, as three of four
/// do; no longer than until its SYN is sent again, since of many connections only some are seen. A program may as well try again and again to reach what no request waits for, such as a collector of its logs.
fn are_waited_for(ctx: &Context<'_>, calls: &Calls, connecting: f64) -> bool {
    let tier = &ctx.path.tiers[calls.tier];
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return false };
    let each_ms = 1e3 * each_connects_s(ctx, calls).min(INITIAL_RTO_S);
    let is_old = |times: &RequestTimes| times.received_last() != Some(false) && times.last_data_recv_ms as f64 >= each_ms / 4.0;
    let waits = |socket: &&RequestSocket| {
        let is_accepted = socket.inode != 0 && socket.state == TcpState::Established && tier.accepts(&socket.address);
        // The kernel has no times of unix sockets.
        is_accepted && socket.times.as_ref().is_none_or(is_old)
    };
    let (mut waiting, mut samples) = (0.0, 0.0);
    for (_, sample) in ctx.in_window(&view.request_samples) {
        waiting += sample.sockets.iter().filter(waits).map(|socket| sample.weight(socket)).sum::<f64>();
        samples += 1.0;
    }
    samples > 0.0 && waiting / samples >= MOST * connecting
}

/// The addresses of this host that a tier's configuration passes the requests asked for to, and at which nobody listens.
fn unheard(ctx: &Context<'_>, tier: &Tier) -> Vec<Endpoint> {
    let Some(view) = ctx.obs.netns.get(&tier.netns).filter(|view| view.listeners.last().is_some()) else { return Vec::new() };
    let configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.config.last());
    let asked = configs.flat_map(|config| config.leads_to().map_or_else(|| config.passes_to(), |asked| asked.iter().collect()));
    let mut unheard: Vec<Endpoint> = asked.filter_map(|address| is_unheard(view, address)).collect();
    unheard.sort_unstable();
    unheard.dedup();
    unheard
}

/// The address, if it is one of the namespace's own and no listener was seen at it.
fn is_unheard(view: &NetnsView, address: &ListenerAddress) -> Option<Endpoint> {
    let ListenerAddress::Tcp(ip, port) = address else { return None };
    let is_heard = || view.listeners.values().flatten().any(|listener| answers(view, true, listener, *ip, *port));
    (is_local(view, true, *ip) && !is_heard()).then(|| (ip.to_canonical(), *port))
}

/// Connections of a tier's namespace that were refused there: each is answered with a reset. `None` if there were none, or they were not counted.
fn refused(ctx: &Context<'_>, tier: &Tier) -> Option<u64> {
    let view = ctx.obs.netns.get(&tier.netns)?;
    let refused = ctx.netstat_growth(view, "Tcp.AttemptFails")?.min(ctx.netstat_growth(view, "Tcp.OutRsts")?);
    Some(refused).filter(|refused| *refused > 0)
}
