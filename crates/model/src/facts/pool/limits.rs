//! The limits that the configuration of a server states: how much of each is used, and how many requests wait for it.

use std::collections::BTreeSet;

use super::awaited::Awaited;
use super::{BUSY_TIMES_MAX, MOST, Queued, SAMPLES_MIN, STEADY_SHARE, Staffing};
use crate::facts::Context;
use crate::facts::cores::limiting::limiting;
use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::path::{PlacedListener, Tier, is_bound_to};
use crate::facts::suffered::others::own_growth;
use crate::facts::traffic::Statuses;
use crate::facts::traffic::errors::ServerErrors;
use crate::ledger::{Mean, STEADY_SAMPLES_MIN};
use crate::observation::load::Loop;
use crate::observation::{
    LimitOf, LimitScope, Listener, ListenerAddress, RequestSocket, SocketAddress, StatedLimit, TcpState, TimeWaitAccepted,
};
use crate::output::report::LedgerPlaceKind as Place;

/// How many times as long as alone a server takes from which it is what holds its requests, and not the limit before it.
const SLOW_TIMES: f64 = 2.0;
/// Share of a limit of connections from which it is reached: they are not all read at one moment.
const REACHED_SHARE: f64 = 0.98;
/// Looks that must find a limit reached beyond which a server refuses: one may meet connections that just end.
const FULL_MIN: usize = 2;
/// How many times the limit is advised where the demand is not known.
const TIMES_UNKNOWN: f64 = 2.0;

/// A limit in use.
pub(crate) struct Used<'a> {
    /// The limit as stated.
    pub(crate) limit: &'a StatedLimit,
    /// The master that it was read of.
    pub(crate) pid: u32,
    /// Mean number in use.
    pub(crate) used: f64,
    /// Mean number of requests that wait for it, if it is reached.
    pub(crate) waiting: Mean,
    /// True if all of it is in use all the time, but for moments.
    pub(crate) is_reached: bool,
    /// True if it is the server behind that holds the requests, whatever the limit.
    pub(crate) is_slow_behind: bool,
    /// The tier behind it, by its index.
    pub(crate) to: Option<usize>,
}

impl<'a> Used<'a> {
    /// The limits of a tier whose use is known: those that the requests asked for come under.
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier) -> Vec<Self> {
        let stated = tier.pids.iter().find_map(|pid| Some((*pid, ctx.obs.servers.get(pid)?.stated()?)));
        let Some((pid, stated)) = stated else { return Vec::new() };
        let asked: Vec<&StatedLimit> = stated.limits.iter().filter(|limit| limit.is_asked != Some(false)).collect();
        let of = |limit: &&'a StatedLimit| match (limit.scope, limit.of) {
            (LimitScope::Upstream, _) => {
                // The connections of several to one address cannot be told apart.
                let is_shared = asked.iter().filter(|other| other.scope == limit.scope && other.at == limit.at).count() > 1;
                if is_shared { None } else { Self::of_upstream(ctx, tier, limit, pid) }
            }
            (_, LimitOf::Connections) if limit.is_refused => Self::of_refusing(ctx, tier, limit, pid),
            (LimitScope::Listener | LimitScope::Server, LimitOf::Connections) => Self::of_connections(ctx, tier, limit, pid),
            (LimitScope::Listener | LimitScope::Server, LimitOf::ConnectionRate) => Self::of_rate(ctx, tier, limit, pid),
            _ => None,
        };
        asked.iter().filter_map(of).collect()
    }

    fn of_upstream(ctx: &Context<'a>, tier: &Tier, limit: &'a StatedLimit, pid: u32) -> Option<Self> {
        let [ListenerAddress::Tcp(ip, port)] = limit.at[..] else { return None };
        let account = ctx.account()?;
        let calls = account.calls_to(tier.id.0, (ip, port))?;
        let used = calls.in_use(ctx.window_us);
        let waiting = account.inside(tier.id.0);
        let is_reached = calls.keep_at(limit.value as f64);
        let is_slow_behind = is_reached && (is_full_behind(ctx, calls.to, used) || is_slow(ctx, tier, used));
        Some(Self { limit, pid, used, waiting, is_reached, is_slow_behind, to: calls.to })
    }

    fn of_connections(ctx: &Context<'a>, tier: &Tier, limit: &'a StatedLimit, pid: u32) -> Option<Self> {
        let listeners = listeners(tier, limit);
        let view = ctx.obs.netns.get(&tier.netns).filter(|_| !listeners.is_empty())?;
        // Those that wait to be accepted belong to nobody.
        let is_open = |socket: &&RequestSocket| {
            socket.state == TcpState::Established
                && socket.inode != 0
                && listeners.iter().any(|placed| placed.listener.accepts(&socket.address))
        };
        let counts: Vec<f64> = ctx
            .in_window(&view.request_samples)
            .map(|(_, sample)| sample.sockets.iter().filter(is_open).map(|socket| sample.weight(socket)).sum())
            .collect();
        let queued = Queued::of(ctx, tier);
        let all = counts.len().max(1) as f64;
        let used = counts.iter().sum::<f64>() / all;
        let reached = counts.iter().filter(|count| **count >= REACHED_SHARE * limit.value as f64).count() as f64;
        let waits = queued.waited_share() >= STEADY_SHARE;
        let is_reached = counts.len() >= STEADY_SAMPLES_MIN && reached >= STEADY_SHARE * all && waits;
        Some(Self { limit, pid, used, waiting: unaccepted(ctx, tier), is_reached, is_slow_behind: false, to: None })
    }

    /// A server that refuses what exceeds its limit: all of its connections count, whoever has them and by whichever of its sockets. It is reached if they are as many again and again, and
    /// others try to come.
    fn of_refusing(ctx: &Context<'a>, tier: &Tier, limit: &'a StatedLimit, pid: u32) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let held: BTreeSet<u64> = ctx.obs.processes.get(&pid)?.files.values().flat_map(|files| files.sockets.iter().copied()).collect();
        let listeners: Vec<&Listener> = view.listeners.last()?.iter().filter(|listener| held.contains(&listener.inode)).collect();
        // What is not accepted yet, or what its client has closed, takes none of them.
        let is_open = |state: TcpState, inode: u64, address: &SocketAddress| {
            state == TcpState::Established && inode != 0 && listeners.iter().any(|listener| listener.accepts(address))
        };
        let listed = ctx.in_window(&view.sockets).map(|(_, sockets)| {
            sockets.iter().filter(|socket| is_open(socket.state, socket.inode, &socket.address)).map(|socket| socket.inode).collect()
        });
        let whole = ctx.in_window(&view.request_samples).map(|(_, sample)| sample).filter(|sample| sample.share >= 1.0);
        let sampled = whole.map(|sample| {
            let open = sample.sockets.iter().filter(|socket| is_open(socket.state, socket.inode, &socket.address));
            open.map(|socket| socket.inode).collect()
        });
        let looks: Vec<BTreeSet<u64>> = listed.chain(sampled).collect();
        let all = looks.len().max(1) as f64;
        let used = looks.iter().map(|look| look.len() as f64).sum::<f64>() / all;
        let allowed = limit.allowed() as f64;
        let full = looks.iter().filter(|look| look.len() as f64 >= REACHED_SHARE * allowed).count();
        // Whoever is refused is closed by the server, whose end waits for a while; where connections come and go, some of those that come are.
        let is_its = |group: &TimeWaitAccepted| listeners.iter().any(|listener| listener.covers(group.local));
        let has_ended = ctx.in_window(&view.time_waits).any(|(_, waits)| waits.accepted.iter().any(is_its));
        let most = looks.iter().map(BTreeSet::len).max().unwrap_or(0);
        let comes = has_ended || looks.iter().flatten().collect::<BTreeSet<_>>().len() > most;
        // A moment without a free one is enough to refuse, so that it need not be reached all the time.
        let is_reached = looks.len() >= SAMPLES_MIN && full >= FULL_MIN && used >= MOST * allowed && comes;
        let none = Mean { value: 0.0, low: 0.0, high: 0.0 };
        Some(Self { limit, pid, used, waiting: none, is_reached, is_slow_behind: false, to: None })
    }

    /// A limit of new connections a second is reached if as many were accepted, and others wait for that all the time.
    fn of_rate(ctx: &Context<'a>, tier: &Tier, limit: &'a StatedLimit, pid: u32) -> Option<Self> {
        let used = accepted_per_s(ctx, tier).filter(|_| !listeners(tier, limit).is_empty())?;
        let is_at_limit = (used / limit.value as f64 - 1.0).abs() <= NOISE_SHARE;
        let is_reached = is_at_limit && Queued::of(ctx, tier).waited_share() >= STEADY_SHARE;
        Some(Self { limit, pid, used, waiting: unaccepted(ctx, tier), is_reached, is_slow_behind: false, to: None })
    }

    /// What it costs those who wait for it.
    pub(crate) fn cost(&self, ctx: &Context<'_>) -> Cost {
        if self.limit.is_refused {
            return Statuses::of(ctx).map_or_else(Cost::default, |seen| Cost::of_requests(seen.errors(), seen.requests));
        }
        let under_way = ctx.account().map_or(0.0, |account| account.under_way()).max(self.waiting.value);
        let waiting = self.waiting.low.max(0.0);
        if waiting < 1.0 { Cost::default() } else { Cost::of_time(waiting / under_way) }
    }

    /// True if it is what the requests wait for: all of it is in use, they lose time by it, and neither full cores nor the server behind would hold them back without it.
    pub(crate) fn holds(&self, ctx: &Context<'_>) -> bool {
        let asks_more = ctx.obs.load.as_ref().is_none_or(|load| load.wants_more());
        // Full cores explain that requests wait, and not that they are refused.
        let is_free = || self.limit.is_refused || asks_more && limiting(ctx).is_empty();
        self.is_reached && !self.is_slow_behind && self.cost(ctx).hurts() && is_free()
    }

    /// Requests that wait for it in the queue of the server that has the limit, as that one counts them: the mean of its looks. `None` if it was not asked.
    pub(crate) fn queued_itself(&self, ctx: &Context<'_>) -> Option<f64> {
        let looks = ctx.in_window(ctx.obs.servers.get(&self.pid)?.proxied()?);
        let waiting = looks.filter_map(|(_, status)| status.proxied()?.iter().find(|server| server.name == self.limit.owner)?.waiting);
        let all: Vec<u64> = waiting.collect();
        (!all.is_empty()).then(|| all.iter().sum::<u64>() as f64 / all.len() as f64)
    }

    /// Requests that were refused because they waited for too long, and all requests; with the status.
    pub(crate) fn refused(&self, ctx: &Context<'_>, tier: &Tier) -> Option<(u64, u64, u16)> {
        let status = self.limit.gives_up_status.filter(|_| self.limit.gives_up_ms.is_some())?;
        let errors = ServerErrors::of(ctx).filter(|errors| errors.tier.id == tier.id && errors.status == status)?;
        Some((errors.clients.0, errors.clients.1, status))
    }

    /// Mean time that each holds it, seconds. `None` if unknown, or if there are others beside it.
    pub(crate) fn held_s(&self, ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
        let account = ctx.account()?;
        let is_only = self.limit.scope == LimitScope::Upstream && are_all_calls(ctx, tier, self.used);
        let refused_rps = ServerErrors::of(ctx).filter(|errors| errors.tier.id == tier.id).map_or(0.0, |errors| errors.per_s);
        let passed_rps = account.rate_rps()? - refused_rps;
        (is_only && passed_rps > 0.0).then(|| self.used / passed_rps)
    }

    /// How many would be enough for what comes, and the rate and the time, seconds, from which that follows: not from those who wait, whose number only says for how long it was too few. Twice as
    /// many if that is not known.
    pub(crate) fn enough(&self, ctx: &Context<'_>, tier: &Tier) -> (u64, Option<(f64, f64)>) {
        let unknown = TIMES_UNKNOWN * self.limit.value as f64;
        if self.limit.of == LimitOf::ConnectionRate {
            return (unknown as u64, None);
        }
        let arrives_rps = match ctx.obs.load.as_ref().map(|load| load.shape) {
            Some(Loop::Open { rate_per_s, .. }) => Some(rate_per_s),
            // All of its connections ask at once if nothing holds them.
            Some(Loop::Closed { connections }) => return ((f64::from(connections).max(unknown)) as u64, None),
            // Whoever was refused came as well. Watched clients that only wait would ask for more if they were answered sooner.
            None => self.refused(ctx, tier).and_then(|_| ctx.account()?.rate_rps()),
        };
        let staffing = arrives_rps.zip(self.held_s(ctx, tier));
        let staffing = staffing.map(|(rate_rps, held_s)| Staffing { rate_rps, held_s, cpu_s: 0.0 });
        match staffing.filter(|staffing| staffing.workers() > self.limit.value as f64) {
            Some(staffing) => (staffing.workers() as u64, Some((staffing.rate_rps, staffing.held_s))),
            None => (unknown as u64, None),
        }
    }
}

/// The listeners of a tier that come under a limit.
fn listeners<'t>(tier: &'t Tier, limit: &StatedLimit) -> Vec<&'t PlacedListener> {
    let is_here = |placed: &&PlacedListener| limit.at.is_empty() || limit.at.iter().any(|at| is_bound_to(at, &placed.listener.address));
    tier.listeners.iter().filter(is_here).collect()
}

/// Mean number of connections that wait to be accepted.
fn unaccepted(ctx: &Context<'_>, tier: &Tier) -> Mean {
    let value = ctx.queued_mean([tier]);
    Mean { value, low: value, high: value }
}

/// Connections a second that a tier accepted: of the first one as many as the load opened, or as the namespace counts if nobody else there had any, other tiers among them; else as many as
/// requests ended, if each has a connection of its own.
fn accepted_per_s(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let per_s = |count: u64| count as f64 / ctx.seconds().max(1e-6);
    let is_first = ctx.path.is_first(tier);
    let is_tcp = |placed: &PlacedListener| placed.netns == tier.netns && matches!(placed.listener.address, ListenerAddress::Tcp(..));
    let is_alone = !ctx.path.tiers.iter().any(|other| other.id != tier.id && other.listeners.iter().any(is_tcp));
    match &ctx.obs.load {
        // Those that still wait at its end were opened, too: where clients give up, ever more do.
        Some(load) if is_first => Some((load.connections as f64 - left_waiting(ctx, tier)).max(0.0) * 1e6 / load.duration_us.max(1) as f64),
        Some(_) => None,
        None => own_growth(ctx, tier.netns, "Tcp.PassiveOpens")
            .filter(|_| is_alone)
            .map(per_s)
            .or_else(|| ctx.account()?.rate_rps().filter(|_| is_first)),
    }
}

/// Connections that wait to be accepted when the window ends.
fn left_waiting(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let last = tier.listeners.iter().filter_map(|placed| {
        let (_, listeners) = ctx.in_window(&ctx.obs.netns.get(&placed.netns)?.listeners).last()?;
        listeners.iter().find(|listener| listener.inode == placed.listener.inode).map(|listener| f64::from(listener.accept_queue))
    });
    last.sum()
}

/// True if half of the requests at the tier behind wait there to be accepted or read, or if they wait there for a lock.
fn is_full_behind(ctx: &Context<'_>, to: Option<usize>, used: f64) -> bool {
    let waits = |place: Place| matches!(place, Place::AcceptQueue | Place::Unread);
    let stands = |to: usize| ctx.account().map_or(0.0, |account| account.at_places(to, waits));
    let is_locked = |to: usize| Awaited::of(ctx, &ctx.path.tiers[to], used).is_some_and(|awaited| awaited.is_lock());
    to.is_some_and(|to| stands(to) >= MOST * used || is_locked(to))
}

/// True if a request takes much longer behind a tier than a single one took in all.
fn is_slow(ctx: &Context<'_>, tier: &Tier, used: f64) -> bool {
    let Some((account, (alone_us, _))) = ctx.account().zip(ctx.answer_us()) else { return false };
    let rate_rps = account.rate_rps().filter(|rate_rps| *rate_rps > 0.0 && are_all_calls(ctx, tier, used));
    let held_s = rate_rps.map(|rate_rps| used / rate_rps);
    held_s.is_some_and(|held_s| 1e6 * held_s > SLOW_TIMES * alone_us)
}

/// True if a tier makes hardly any other calls than these.
fn are_all_calls(ctx: &Context<'_>, tier: &Tier, used: f64) -> bool {
    ctx.account().is_some_and(|account| account.calls_in_use(ctx, tier.id.0) <= BUSY_TIMES_MAX * used)
}
