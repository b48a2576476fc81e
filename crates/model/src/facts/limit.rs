//! Limits set in a server's configuration: which one limits this traffic, and how.

pub(crate) mod disk;
mod pace;
pub(crate) mod tasks;

pub(crate) use pace::Pace;

use super::suffered::answers_with;
use super::suffered::others::own_growth;
use super::traffic::errors::makes_itself;
use super::traffic::on_wire::Answered;
use super::traffic::{Statuses, TOO_MANY};
use super::{Context, Logged};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::observation::load::{LoadResult, Loop};
use crate::observation::{AccessLog, ListenerAddress, LogEvent, NginxLimit, StatedRefusal};
use crate::output::message::Message;
use crate::output::report::Ceiling;

/// Share of the answers with the limit's status that the limit's own log lines must explain.
pub(crate) const LOGGED_SHARE: f64 = 0.5;
/// Share of the requests that were logged as delayed from which the median request waits too.
pub(crate) const DELAYED_SHARE: f64 = 0.5;
/// Largest difference between goodput and the rate that a limit allows: nginx counts in thousandths of a request and in milliseconds, and the window has two
/// ends.
pub(crate) const RATE_SPREAD: f64 = 0.03;
/// The same for watched traffic: a log is read a little before and after the window.
pub(crate) const WATCHED_SPREAD: f64 = 0.05;
/// What an event loop under load adds to each interval between requests, milliseconds: it reads the clock once for all pending events.
pub(crate) const LOOP_MS: f64 = 1.0;
/// Intervals that half of the requests must have waited if nothing else shows that they waited. Fewer may be a request in service.
pub(crate) const TURNS_WAITED: f64 = 5.0;

/// The effect of a limit on this traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitEffect {
    /// It refused requests.
    Refused,
    /// It delayed requests.
    Delayed,
    /// It paced responses.
    Paced,
}

/// One limit on the path of the request.
pub(crate) struct Limit<'a> {
    pub(crate) config: &'a NginxLimit,
    /// Whether this request is subject to it, if known.
    pub(crate) applies: Option<bool>,
    pub(crate) refused: Option<Logged>,
    pub(crate) delayed: Option<Logged>,
    pub(crate) effect: Option<LimitEffect>,
    /// True if the server's log shows it.
    pub(crate) is_logged: bool,
}

impl<'a> Limit<'a> {
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier, config: &'a NginxLimit) -> Option<Self> {
        let applies = applies(ctx, tier, config);
        // Log lines of a zone that does not apply to this request belong to other traffic, unless the line shows this request's path.
        let is_ours = |logged: &Logged| applies != Some(false) || requested_path(&logged.line) == Some(ctx.obs.request.path());
        let line = |event: fn(Option<String>) -> LogEvent| ctx.logged(tier, &event(Some(config.zone.clone()))).filter(is_ours);
        let (refused, delayed) = match config.kind.as_str() {
            "limit_conn" => (line(LogEvent::ConnectionsLimited), None),
            _ => (line(LogEvent::RateLimited), line(LogEvent::RateDelayed)),
        };
        // A limit for other requests only.
        if applies == Some(false) && refused.is_none() && delayed.is_none() {
            return None;
        }
        let mut limit = Self { config, applies, refused, delayed, effect: None, is_logged: false };
        limit.judge(ctx, tier);
        Some(limit)
    }

    pub(crate) fn judge(&mut self, ctx: &Context<'_>, tier: &Tier) {
        if self.config.bytes_per_s.is_some() {
            self.effect = (self.applies == Some(true) && Pace::of(ctx, tier, self.config).is_some()).then_some(LimitEffect::Paced);
            return;
        }
        let count = |logged: &Option<Logged>| logged.as_ref().map_or(0, |logged| logged.count) as f64;
        let (refused, delayed) = (count(&self.refused), count(&self.delayed));
        let Some(load) = &ctx.obs.load else {
            (self.effect, self.is_logged) = self.watched(ctx, tier, refused, delayed);
            return;
        };
        // An answer with an expected status is no failure.
        let failed = load.requests.saturating_sub(load.good);
        let answers = answers_with(load, &[self.config.status]).min(failed);
        let requests = load.requests as f64;
        let is_surely_here = self.applies == Some(true);
        (self.effect, self.is_logged) = if Cost::of_requests(answers, load.requests).hurts() {
            match refused >= LOGGED_SHARE * answers as f64 {
                true => (Some(LimitEffect::Refused), true),
                // The log is not readable or does not record it: the status is the evidence, with the exact rate, or with more requests at once than it allows.
                false => {
                    let refuses = is_surely_here && self.passes_all_it_may(load) || self.refuses_more_at_once(ctx, tier);
                    (refuses.then_some(LimitEffect::Refused), false)
                }
            }
        } else if self.config.burst > self.config.burst_at_once && load.wants_more() {
            match delayed >= DELAYED_SHARE * requests {
                true => (Some(LimitEffect::Delayed), true),
                false => ((is_surely_here && self.passes_all_it_may(load)).then_some(LimitEffect::Delayed), false),
            }
        } else {
            (None, false)
        };
    }

    /// True if a limit of connections is why this server answers with the limit's status, though no log says so: it makes these answers itself, no other limit of it refuses so, and more
    /// requests than it lets pass were in flight.
    fn refuses_more_at_once(&self, ctx: &Context<'_>, tier: &Tier) -> bool {
        let Some(connections) = self.config.connections.filter(|_| self.applies == Some(true)) else { return false };
        let limits = ctx.nginx_of(tier).map_or(&[][..], |nginx| &nginx.limits);
        let may_refuse =
            |other: &&NginxLimit| other.bytes_per_s.is_none() && other.status == self.config.status && other.applies != Some(false);
        let is_only_one = limits.iter().filter(may_refuse).count() == 1;
        let at_once = match ctx.obs.load.as_ref().map(|load| &load.shape) {
            Some(Loop::Closed { connections }) => Some(f64::from(*connections)),
            _ => ctx.account().map(|account| account.under_way()),
        };
        is_only_one && at_once.is_some_and(|at_once| at_once > connections as f64) && self.status_hurts(ctx, tier)
    }

    /// True if so many of a tier's responses have the limit's status that it is harm, and the tier makes these itself.
    fn status_hurts(&self, ctx: &Context<'_>, tier: &Tier) -> bool {
        let status = self.config.status;
        let clients = || Statuses::of(ctx).map(|seen| (seen.by_status, seen.requests, seen.seconds));
        let callers = || Answered::of(ctx, tier).map(|seen| (seen.by_status.clone(), seen.all(), seen.seconds));
        let Some((by_status, requests, seconds)) = (if ctx.path.is_first(tier) { clients() } else { callers() }) else { return false };
        let count = by_status.get(&status).copied().unwrap_or(0);
        let per_s = count as f64 / seconds.max(1e-6);
        Cost::of_requests(count, requests).hurts() && makes_itself(ctx, tier, status, per_s)
    }

    /// The same for watched traffic.
    pub(crate) fn watched(&self, ctx: &Context<'_>, tier: &Tier, refused: f64, delayed: f64) -> (Option<LimitEffect>, bool) {
        if refused == 0.0 && self.refuses_more_at_once(ctx, tier) {
            return (Some(LimitEffect::Refused), false);
        }
        let Some(seen) = WatchedTraffic::of(ctx, tier) else { return (None, false) };
        if Cost::share_of_requests(refused / seen.requests.max(1.0)).hurts() {
            return (Some(LimitEffect::Refused), true);
        }
        if self.config.burst <= self.config.burst_at_once {
            return (None, false);
        }
        if delayed >= DELAYED_SHARE * seen.requests {
            return (Some(LimitEffect::Delayed), true);
        }
        // All requests come from one client, and nginx held them for longer than the interval between requests.
        let is_at_rate = self.config.rate_per_s.is_some_and(|rate| {
            let waits = seen.own_wait_s.is_some_and(|wait| wait >= TURNS_WAITED / rate);
            waits && (seen.requests / ctx.seconds().max(1e-6) / rate - 1.0).abs() <= WATCHED_SPREAD
        });
        ((self.applies == Some(true) && is_at_rate).then_some(LimitEffect::Delayed), false)
    }

    /// Requests a second that the limit lets pass for one client that always has more to send: the rate, and in a short window in addition the burst that
    /// passes at the beginning. Delayed requests pass at the rate. Without a burst fewer pass, because unused time is lost: nginx counts in whole milliseconds
    /// (ngx_http_limit_req_module.c), and a request passes if it comes a whole interval after the last one, in one of the next iterations of the event loop.
    pub(crate) fn allowed_rps(&self, load: &LoadResult) -> Option<Ceiling> {
        allowed_rps(self.config, load)
    }

    /// True if goodput is exactly what the limit allows one client address.
    pub(crate) fn passes_all_it_may(&self, load: &LoadResult) -> bool {
        passes_all_it_may(self.config, load)
    }

    /// True if more was answered well than the limit allows: it does not count this traffic, whatever the configuration that was read says.
    pub(crate) fn is_exceeded(&self, load: &LoadResult) -> bool {
        is_exceeded(self.config, load)
    }

    pub(crate) fn proofs(&self) -> impl Iterator<Item = &Logged> {
        self.refused.iter().chain(&self.delayed)
    }
}

/// [`Limit::allowed_rps`] of a configured limit.
fn allowed_rps(config: &NginxLimit, load: &LoadResult) -> Option<Ceiling> {
    let rate = config.rate_per_s?;
    if config.burst == 0 {
        let after_ms = |more_ms: f64| 1e3 / ((1e3 / rate).ceil() + more_ms);
        return Some(Ceiling { value: after_ms(LOOP_MS / 2.0), low: after_ms(LOOP_MS), high: after_ms(0.0) });
    }
    let burst = config.burst_at_once as f64 * 1e6 / load.duration_us.max(1) as f64;
    Some(Ceiling { value: rate, low: rate, high: rate + burst })
}

/// [`Limit::passes_all_it_may`] of a configured limit.
pub(crate) fn passes_all_it_may(config: &NginxLimit, load: &LoadResult) -> bool {
    allowed_rps(config, load)
        .is_some_and(|allowed| (allowed.low * (1.0 - RATE_SPREAD)..=allowed.high * (1.0 + RATE_SPREAD)).contains(&load.goodput_rps()))
}

/// [`Limit::is_exceeded`] of a configured limit.
pub(crate) fn is_exceeded(config: &NginxLimit, load: &LoadResult) -> bool {
    allowed_rps(config, load).is_some_and(|allowed| load.goodput_rps() > allowed.high * (1.0 + RATE_SPREAD))
}

/// Whether the request is subject to a limit. If clients reach the first server by an address that is not its own, as with a published port, this follows from
/// the configuration of the sockets that they reach.
pub(crate) fn applies(ctx: &Context<'_>, tier: &Tier, config: &NginxLimit) -> Option<bool> {
    let at = |address: &ListenerAddress| config.applies_at.iter().find(|(known, _)| known == address).map(|(_, applies)| *applies);
    let reached = || tier.listeners.iter().map(|placed| at(&placed.listener.address)).reduce(|a, b| a.filter(|_| a == b)).flatten();
    config.applies.or_else(|| ctx.path.is_first(tier).then(reached).flatten())
}

/// The path in `request: "GET /path HTTP/1.1"`, without its query.
pub(crate) fn requested_path(line: &str) -> Option<&str> {
    let request = line.split_once(", request: \"")?.1;
    request.split(' ').nth(1)?.split('?').next()
}

/// Traffic watched at a tier.
pub(crate) struct WatchedTraffic {
    pub(crate) requests: f64,
    /// Time that the tier itself held a request, without the upstreams' time, seconds: the median from its log, or else the mean from samples of sockets.
    /// `None` if neither is known.
    pub(crate) own_wait_s: Option<f64>,
}

impl WatchedTraffic {
    fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        Self::by_logs(ctx, tier).or_else(|| Self::by_sockets(ctx, tier))
    }

    /// From the connections that the namespace accepted, if others had none there, and from socket samples: kept connections carry more than one request.
    fn by_sockets(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let accepted = own_growth(ctx, tier.netns, "Tcp.PassiveOpens").map(|count| count as f64);
        let ended = ctx.account().and_then(|account| Some(account.rate_rps()? * ctx.seconds()));
        let requests = accepted.into_iter().chain(ended).reduce(f64::max).filter(|requests| *requests > 0.0)?;
        Some(Self { requests, own_wait_s: mean_wait_s(ctx, tier, requests) })
    }

    /// From the tier's access logs, if their growth is known.
    fn by_logs(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let logs: Vec<&AccessLog> = ctx.access_logs(tier).filter(|log| log.lines > 0).collect();
        let requests = logs.iter().map(|log| log.gained()).sum::<Option<f64>>()?;
        let largest = logs.iter().max_by_key(|log| log.lines)?;
        let upstream = largest.upstream_time_us.map_or(0, |times| times.p50);
        let logged = largest.request_time_us.map(|times| times.p50.saturating_sub(upstream) as f64 / 1e6);
        Some(Self { requests, own_wait_s: logged.or_else(|| mean_wait_s(ctx, tier, requests)) })
    }
}

/// Mean time that a tier itself held each of `requests` requests, from socket samples (Little's law), seconds.
fn mean_wait_s(ctx: &Context<'_>, tier: &Tier, requests: f64) -> Option<f64> {
    ctx.account().filter(|_| requests > 0.0).map(|account| account.inside(tier.id.0).value * ctx.seconds() / requests)
}

/// The limit that limits a tier's traffic, else the lowest limit that applies.
pub(crate) fn narrowest<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<Limit<'a>> {
    let configured = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.nginx()).flat_map(|nginx| &nginx.limits);
    let limits = configured.filter_map(|config| Limit::of(ctx, tier, config));
    let rate = |limit: &Limit<'_>| limit.config.rate_per_s.unwrap_or(f64::MAX);
    let weight = |limit: &Limit<'_>| (limit.effect.is_some(), limit.is_logged, limit.applies == Some(true));
    limits.min_by(|a, b| weight(b).cmp(&weight(a)).then(rate(a).total_cmp(&rate(b))))
}

/// A message with all values of a limit.
pub(crate) fn told(id: &'static str, tier: &Tier, config: &NginxLimit) -> Message {
    Message::new(id)
        .with("tier", tier.name.as_str())
        .with("directive", config.kind.as_str())
        .with("zone", config.zone.as_str())
        .with("key", config.key.as_str())
        .with("rate", config.rate_per_s.unwrap_or(0.0))
        .with("connections", config.connections.unwrap_or(0))
        .with("pace", config.bytes_per_s.unwrap_or(0) as f64 / 1e3)
        .with("burst", config.burst)
        .with("status", config.status.to_string())
        .with("place", config.origin.to_string())
}

/// The limit that limits a tier's traffic, if one does.
pub(crate) fn holding<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a NginxLimit> {
    narrowest(ctx, tier).filter(|limit| limit.effect.is_some()).map(|limit| limit.config)
}

/// The rule of a tier's configuration that answers requests "429 Too Many Requests".
pub(crate) fn refusing<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a StatedRefusal> {
    let stated = tier.pids.iter().find_map(|pid| ctx.obs.servers.get(pid)?.stated())?;
    stated.refusals.iter().find(|rule| rule.status == TOO_MANY && rule.is_asked != Some(false))
}
