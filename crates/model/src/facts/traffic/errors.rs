//! Who answers with server errors: the innermost server of the path whose responses have them.

use super::on_wire::Answered;
use super::out_of_service::OutOfService;
use super::{Statuses, main_error};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::{Context, Logged};
use crate::observation::{ListenerAddress, LogEvent};

/// Statuses that a gateway makes itself, for want of a response from behind it (RFC 9110, sections 15.6.3 and 15.6.5).
const OF_GATEWAYS: [u16; 2] = [502, 504];
/// Least time of a call over TCP, seconds: its caller and its server are each woken once, which takes some 10 us on one host.
const CALL_S_MIN: f64 = 20e-6;
/// Expected calls in all looks from which it is no accident that not one was met: of three, none is met once in twenty times (Poisson).
const MET_MIN: f64 = 3.0;
/// From this share of a tier's errors on, those of the servers behind it are the same errors, passed on.
const PASSED_ON: f64 = 0.5;

/// Server errors in numbers that hurt, and whose they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerErrors<'a> {
    /// Who makes them.
    pub(crate) tier: &'a Tier,
    /// The most frequent status among those that the clients got.
    pub(crate) status: u16,
    /// True if the clients ask `tier` itself: what they got is what it sent.
    pub(crate) is_first: bool,
    /// Other servers that the same callers ask and that answer with errors as well, with their number and that of all responses.
    pub(crate) siblings: Vec<(&'a str, u64, u64)>,
    /// Errors that the clients got, and all responses to them.
    pub(crate) clients: (u64, u64),
    /// Errors a second that the clients got.
    pub(crate) per_s: f64,
    /// Where the clients' errors were counted: "load", "access log" or "packets".
    pub(crate) source: &'static str,
    /// What was counted at `tier` on the wire. `None` if nothing was.
    pub(crate) own: Option<Answered>,
    /// What the servers behind it answered.
    pub(crate) behind: Behind,
    /// What its error log says of most of them.
    pub(crate) reason: Option<Reason>,
}

/// What a server's own error log says of its errors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reason {
    pub(crate) event: LogEvent,
    pub(crate) logged: Logged,
    /// The other events of this kind in it, with their number.
    pub(crate) others: Vec<(LogEvent, u64)>,
}

impl Reason {
    /// The events after which a gateway answers with an error, by what most lines say. `None` if they are fewer than half of these errors, or end in another status than most.
    fn of(ctx: &Context<'_>, tier: &Tier, (status, errors): (u16, u64)) -> Option<Self> {
        // Without a local port, a place in a queue or a descriptor left, stations of their own judge what it says.
        let ends_so = |event: &&LogEvent| match event {
            LogEvent::ConnectFailed(errno) => !matches!(errno, Some(11 | 24 | 99)),
            LogEvent::UpstreamTimedOut | LogEvent::UpstreamClosed | LogEvent::UpstreamReset => true,
            LogEvent::NoLiveUpstreams | LogEvent::AnswerHeaderTooBig | LogEvent::AnswerInvalid => true,
            _ => false,
        };
        let events = ctx.logged_events(tier).into_iter().filter(ends_so);
        let mut seen: Vec<(LogEvent, Logged)> = events.filter_map(|event| Some((event.clone(), ctx.logged(tier, event)?))).collect();
        seen.sort_by_key(|(_, logged)| std::cmp::Reverse(logged.count));
        let mut seen = seen.into_iter();
        let (event, logged) = seen.next().filter(|(_, logged)| logged.count as f64 >= PASSED_ON * errors as f64)?;
        let [bad, late] = OF_GATEWAYS;
        if status != (if event == LogEvent::UpstreamTimedOut { late } else { bad }) {
            return None;
        }
        Some(Self { event, logged, others: seen.map(|(event, logged)| (event, logged.count)).collect() })
    }

    /// The word of its kind.
    pub(crate) fn word(&self) -> &'static str {
        match self.event {
            LogEvent::AnswerHeaderTooBig => "header",
            LogEvent::AnswerInvalid => "invalid",
            LogEvent::NoLiveUpstreams => "none-live",
            LogEvent::UpstreamTimedOut => "timed-out",
            LogEvent::UpstreamClosed => "closed",
            LogEvent::UpstreamReset => "reset",
            _ => "connect",
        }
    }
}

/// What is known of the servers behind the one that makes errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Behind {
    /// There are none.
    Nobody,
    /// Their responses were read: so many errors of so many.
    Answers(u64, u64),
    /// They were asked for hardly any of these requests, or for none: so many of their responses were read.
    NotAsked(u64),
    /// All of them are out of service, as the one before them says itself: it asks none.
    OutOfService,
    /// They give no HTTP responses in plain text: databases and the like, or over TLS.
    Unread,
}

impl<'a> ServerErrors<'a> {
    /// Those of the path. `None` if they do no harm, or if it is not known who makes them: nobody is named whose own responses were not read.
    pub(crate) fn of(ctx: &Context<'a>) -> Option<Self> {
        let first = ctx.path.tiers.first()?;
        let clients = Statuses::of(ctx).filter(|clients| Cost::of_requests(clients.errors(), clients.requests).hurts())?;
        let status = main_error(&clients.by_status)?;
        let per_s = clients.errors() as f64 / clients.seconds.max(1e-6);
        // Rates on the wire are compared with each other: a load is not offered for all of the time in which packets are counted.
        let on_wire = Answered::of(ctx, first).filter(|own| own.errors() > 0).map(|own| own.errors_rps());
        let (tier, errors_rps) = innermost(ctx, (first, on_wire.unwrap_or(per_s)));
        // Whoever writes of most of the errors how each came to be makes them.
        let reason = Reason::of(ctx, tier, (status, clients.errors()));
        let behind = known(ctx, tier, (status, errors_rps)).or(reason.as_ref().map(|_| Behind::Unread))?;
        let own = Answered::of(ctx, tier).filter(|own| own.errors() > 0);
        let (is_first, siblings) = (ctx.path.is_first(tier), siblings(ctx, tier));
        let clients_got = (clients.errors(), clients.requests);
        let found = Self { tier, status, is_first, siblings, clients: clients_got, per_s, source: clients.source, own, behind, reason };
        // A first server sends what its clients got, whether or not it was read on the wire.
        let is_surely_its = found.behind == Behind::OutOfService && is_first;
        (found.own.is_some() || found.reason.is_some() || is_surely_its).then_some(found)
    }
}

/// The other servers that a tier's callers ask, where errors among their responses hurt.
fn siblings<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<(&'a str, u64, u64)> {
    let callers: Vec<&Tier> = ctx.path.callers(tier.id).collect();
    let is_sibling = |other: &&Tier| other.id != tier.id && callers.iter().any(|caller| caller.upstreams.contains(&other.id.0));
    let answered = ctx.path.tiers.iter().filter(is_sibling).filter_map(|other| Some((other.name.as_str(), Answered::of(ctx, other)?)));
    let with_errors = answered.filter(|(_, own)| Cost::of_requests(own.errors(), own.all()).hurts());
    with_errors.map(|(name, own)| (name, own.errors(), own.all())).collect()
}

/// True if a server makes most of its responses with this status itself, `per_s` of them: whoever it asks, or may ask, was read and gives fewer.
pub(crate) fn makes_itself(ctx: &Context<'_>, tier: &Tier, status: u16, per_s: f64) -> bool {
    let behind = behind(ctx, tier);
    let is_read = if behind.is_empty() { !passes_on(ctx, tier) } else { behind.iter().all(|(_, seen)| seen.is_some()) };
    let passed_on: f64 = behind.iter().filter_map(|(_, seen)| seen.as_ref()).map(|seen| seen.rps_of(status)).sum();
    tier.is_known() && is_read && passed_on < PASSED_ON * per_s
}

/// True if a tier's configuration passes requests on, whether or not it was seen to: at the first tier those that were asked for, if it decides that.
fn passes_on(ctx: &Context<'_>, tier: &Tier) -> bool {
    let configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.config.last());
    let decided: Vec<bool> = configs.filter_map(|config| Some(!config.leads_to()?.is_empty())).collect();
    if ctx.path.is_first(tier) && !decided.is_empty() {
        return decided.into_iter().any(|passes| passes);
    }
    ctx.nginx_of(tier).is_some_and(|nginx| !nginx.passes.is_empty())
}

/// The servers that a tier asks, with their responses where these were read.
fn behind<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<(&'a Tier, Option<Answered>)> {
    let upstreams = tier.upstreams.iter().filter_map(|index| ctx.path.tiers.get(*index));
    upstreams.map(|upstream| (upstream, Answered::of(ctx, upstream).or_else(|| Answered::none_of(ctx, upstream)))).collect()
}

/// The last server on the way of most errors from the one that sends them to the clients inwards, and how many it sends a second.
fn innermost<'a>(ctx: &Context<'a>, (mut tier, mut per_s): (&'a Tier, f64)) -> (&'a Tier, f64) {
    // No way through the path is longer than it has tiers.
    for _ in 0..ctx.path.tiers.len() {
        let read: Vec<(&Tier, f64)> = behind(ctx, tier).into_iter().filter_map(|(next, seen)| Some((next, seen?.errors_rps()))).collect();
        let passed_on: f64 = read.iter().map(|(_, errors_rps)| errors_rps).sum();
        match read.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((next, errors_rps)) if passed_on >= PASSED_ON * per_s => (tier, per_s) = (next, errors_rps),
            _ => return (tier, per_s),
        }
    }
    (tier, per_s)
}

/// True if a tier that passes requests on over TCP has no connection to anybody in any look, although a part of so many calls a second would be met in some.
fn asks_nobody(ctx: &Context<'_>, tier: &Tier, per_s: f64) -> bool {
    let configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.config.last());
    let is_tcp = |address: &ListenerAddress| matches!(address, ListenerAddress::Tcp(..));
    let mut ways = configs.filter_map(|config| config.leads_to()).flatten().peekable();
    let looks = ctx.obs.netns.get(&tier.netns).map_or(0, |view| ctx.in_window(&view.request_samples).count());
    let is_met = looks as f64 * per_s * CALL_S_MIN >= MET_MIN;
    tier.upstreams.is_empty() && ways.peek().is_some() && ways.all(is_tcp) && is_met
}

/// What the servers behind a tier answered, if that is enough to know that the tier makes the errors itself.
fn known(ctx: &Context<'_>, tier: &Tier, (status, per_s): (u16, f64)) -> Option<Behind> {
    if OutOfService::of(ctx, tier).is_some_and(|out| out.was_always_all) {
        return Some(Behind::OutOfService);
    }
    let behind = behind(ctx, tier);
    // Without its processes it is not known whom it asks. Whoever else sends as many errors may be asked by it, on another host or unseen.
    if !tier.is_known() || Answered::errors_beside_rps(ctx, tier) >= PASSED_ON * per_s {
        return None;
    }
    let passes_on = passes_on(ctx, tier);
    if behind.is_empty() && !passes_on {
        return Some(Behind::Nobody);
    }
    if asks_nobody(ctx, tier, per_s) {
        return Some(Behind::NotAsked(0));
    }
    if !behind.is_empty() && behind.iter().all(|(_, seen)| seen.is_some()) {
        let sum = |count: fn(&Answered) -> u64| behind.iter().filter_map(|(_, seen)| seen.as_ref()).map(count).sum();
        let asked_rps: f64 = behind.iter().filter_map(|(_, seen)| seen.as_ref()).map(Answered::all_rps).sum();
        // Whoever gives good answers, as many as come from behind, asks there: what it lacks is not a server.
        let good_rps = Answered::of(ctx, tier).map_or(0.0, |own| own.all_rps() - own.errors_rps());
        let passes_good_ones_on = good_rps > 0.0 && good_rps >= PASSED_ON * asked_rps;
        return Some(match asked_rps < PASSED_ON * per_s && !passes_good_ones_on {
            true => Behind::NotAsked(sum(Answered::all)),
            false => Behind::Answers(sum(Answered::errors), sum(Answered::all)),
        });
    }
    // A server whose configuration passes requests on may pass on the errors of one that was not read. Of any other, those behind it are databases and the like, unless they are
    // asked through a unix socket, on which nothing is read.
    let unread = || behind.iter().filter(|(_, seen)| seen.is_none()).flat_map(|(tier, _)| &tier.listeners);
    let is_unix = || unread().any(|placed| matches!(placed.listener.address, ListenerAddress::Unix(..)));
    let is_sure = OF_GATEWAYS.contains(&status) || (!passes_on && !is_unix());
    is_sure.then_some(Behind::Unread)
}
