//! Station `worker-connections`: the connections that one nginx worker may hold at once, including those to upstreams. When they are used up, new connections
//! are closed unanswered and never reach the access log.

use crate::facts::Context;
use crate::facts::Logged;
use crate::facts::believed::limit_in_force;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::suffered::others::{self, CUT_OFF, CutOff};
use crate::facts::suffered::{answers_with, in_flight_peak, turned_away};
use crate::facts::sum::per_second;
use crate::facts::table::is_filled_by_cuts;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::load::LoadResult;
use crate::observation::{LogEvent, OpenFiles, Origin};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-worker-connections"],
    graph: &[
        CouplingDef::found(FindingId::THROTTLED, FindingId::CONNECTIONS_EXHAUSTED, Relation::Tier, "coupling-held-quota"),
        CouplingDef::judged(FindingId::TABLE_FULL, FindingId::CONNECTIONS_EXHAUSTED, Relation::Edge, "coupling-held-table"),
    ],
    // Clients that are cut off and come again fill tables; the tables do not hold them up.
    standing: |ctx, _, _| if is_filled_by_cuts(ctx) { Standing::Alone } else { Standing::Perhaps },
    ..StationDef::new(StationId("worker-connections"), StationKind::Cliff, &[FindingId::CONNECTIONS_EXHAUSTED], read, judge)
};

/// A connection was refused, or an answer failed, for lack of a connection.
const REFUSED: LogEvent = LogEvent::ConnectionsExhausted;
/// Kept and fresh connections were closed to make room; at most one line per second and worker.
const REUSED: LogEvent = LogEvent::ConnectionsReused;
/// Share of its connections from which a worker closes kept and fresh ones to make room (ngx_connection.c, `ngx_drain_connections`).
const DRAIN_SHARE: f64 = 15.0 / 16.0;
/// How many it closes at a time: one in this many of its connections, and at most this number. Any number in between may be seen.
const DRAIN_PART: u32 = 8;
const DRAIN_MAX: u32 = 32;
/// The largest change of a worker's other open files, as a part of its connections, for which their number between two looks counts as known.
const OTHERS_PART: u32 = 32;
/// Samples in which a worker must have been at that point if no log shows it.
const SAMPLES_MIN: usize = 2;
/// Share from which the headroom is reported as small.
const NEAR_SHARE: f64 = 0.8;
/// Share of the accepted connections that were cut off with a request in them from which one sample of a full worker is enough.
const CUT_SHARE_MANY: f64 = 0.1;
/// Statuses with which nginx, or a gateway in front of it, answers if it has no connection left for the upstream.
const NO_CONNECTION: &[u16] = &[500, 502, 503];

/// The connections of one nginx's workers in the window.
pub(crate) struct Held {
    /// Connections that a worker may have: the limit in force from its own log, or else the configured one.
    pub(crate) limit: u32,
    /// Where the configuration sets it.
    origin: Origin,
    /// Connections that a request takes: its own, and one to an upstream if requests are passed on.
    pub(crate) each: f64,
    /// Running workers.
    pub(crate) workers: usize,
    /// The most sockets seen in one worker that use a connection; `None` if they could not be read.
    pub(crate) peak: Option<u32>,
    /// That worker.
    pid: Option<u32>,
    /// Samples of it in which it had to make room, and all samples of it.
    full_samples: usize,
    samples: usize,
    /// Refused connections from the error log or the status page; `None` if neither could be read.
    refused: Option<u64>,
    /// Connections that were accepted and closed at once, from the status page (accepts - handled).
    dropped: Option<u64>,
    refused_log: Option<Logged>,
    reused_log: Option<Logged>,
}

/// What shows that connections ran out.
enum Shown {
    /// The server logged what it turned away.
    Refused,
    /// The server logged that it made room, or was seen with hardly a connection left.
    Drained,
}

impl Held {
    /// The connections of a tier's first nginx with a configuration that was read.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let (master, nginx) = tier.pids.iter().find_map(|pid| Some((*pid, ctx.obs.servers.get(pid)?.nginx()?)))?;
        let is_worker = |pid: &&u32| {
            let identity = ctx.obs.processes.get(pid).and_then(|process| process.identity.first());
            identity.is_some_and(|identity| identity.parent == master)
        };
        let workers: Vec<u32> = tier.pids.iter().filter(is_worker).copied().collect();
        let refused_log = ctx.logged(tier, &REFUSED);
        let reused_log = ctx.logged(tier, &REUSED);
        let logs = ctx.obs.servers.get(&master).into_iter().flat_map(|view| view.error_logs.values());
        let is_logged = logs.filter_map(|log| log.last()).next().is_some();
        let line = [&refused_log, &reused_log].into_iter().flatten().map(|logged| logged.line.as_str()).next();
        let limit = limit_in_force(ctx, tier, (master, nginx), line);
        let dropped = ctx.dropped_accepts(tier);
        let mut held = Self {
            limit,
            origin: nginx.worker_connections.origin.clone(),
            each: if nginx.passes.is_empty() { 1.0 } else { 2.0 },
            workers: workers.len().max(1),
            peak: None,
            pid: None,
            full_samples: 0,
            samples: 0,
            refused: dropped.max(is_logged.then(|| refused_log.as_ref().map_or(0, |logged| logged.count))),
            dropped: dropped.filter(|count| *count > 0),
            refused_log,
            reused_log,
        };
        workers.iter().for_each(|pid| held.watch(ctx, *pid));
        Some(held)
    }

    /// Counts the sockets of one worker. The channels between the master and its workers are sockets too: a worker's own end uses a connection, the inherited
    /// ends of the others do not. Between two looks at which descriptors are sockets, the total number is used: at most as many non-sockets are open as were
    /// ever seen.
    fn watch(&mut self, ctx: &Context<'_>, pid: u32) {
        let Some(process) = ctx.obs.processes.get(&pid) else { return };
        let sockets_of = |files: &OpenFiles| u32::try_from(files.sockets.len()).unwrap_or(u32::MAX);
        let others: Vec<u32> = process.files.values().map(|files| files.count.saturating_sub(sockets_of(files))).collect();
        // If the number of other files changes, as in a worker that opens a file for each answer, the total says nothing about the sockets.
        let least = others.iter().min().copied().unwrap_or(0);
        let others = others.into_iter().max().filter(|most| most - least <= self.limit / OTHERS_PART);
        let looks = ctx.in_window(&process.files).map(|(at, files)| (*at, sockets_of(files)));
        let told = ctx.in_window(&process.fd_count).filter_map(|(at, count)| Some((*at, count.saturating_sub(others?).min(self.limit))));
        let siblings = u32::try_from(self.workers.saturating_sub(1)).unwrap_or(u32::MAX);
        let counts = per_second(looks.chain(told).map(|(at, count)| (at, count.saturating_sub(siblings))));
        let Some(peak) = counts.iter().copied().max() else { return };
        if self.peak.is_none_or(|known| peak > known) {
            let drained = (self.limit / DRAIN_PART).min(DRAIN_MAX);
            let full = |count: &&u32| f64::from(**count + drained) >= DRAIN_SHARE * f64::from(self.limit);
            (self.peak, self.pid, self.samples) = (Some(peak), Some(pid), counts.len());
            self.full_samples = counts.iter().filter(full).count();
        }
    }

    fn share(&self) -> Option<f64> {
        Some(f64::from(self.peak?) / f64::from(self.limit.max(1)))
    }

    fn turned_away(&self) -> u64 {
        self.refused.unwrap_or(0)
    }

    /// Connections that the load would make its workers hold at once.
    fn asked(&self, load: &LoadResult) -> f64 {
        in_flight_peak(load) * self.each
    }

    /// Two independent signals make it certain: the log, and the connections held or the answers.
    fn confidence(&self, shown: &Shown) -> Confidence {
        let is_logged = self.turned_away() > 0 || self.reused_log.is_some();
        match shown {
            Shown::Refused => Confidence::High,
            Shown::Drained if is_logged && self.full_samples > 0 => Confidence::High,
            Shown::Drained => Confidence::Medium,
        }
    }

    fn shown(&self, ctx: &Context<'_>, tier: &Tier) -> Option<Shown> {
        let Some(load) = &ctx.obs.load else {
            // Nobody may notice that it closes kept connections to make room, unless requests were under way in them.
            let drained = match cut_off(ctx, tier) {
                Some(cut) if cut.own_share() >= CUT_SHARE_MANY => self.full_samples > 0,
                Some(_) => self.full_samples >= SAMPLES_MIN && self.full_samples * 2 >= self.samples,
                None => false,
            };
            let refused = turned_away(ctx, Some(tier.netns), self.turned_away()).hurts();
            return refused.then_some(Shown::Refused).or(drained.then_some(Shown::Drained));
        };
        let hurts = |count: u64| Cost::of_requests(count, load.requests).hurts();
        let failed = closed(load) + answers_with(load, NO_CONNECTION);
        let refused = self.turned_away();
        if hurts(failed.min(refused)) {
            return Some(Shown::Refused);
        }
        // Most connections that are closed to make room get no log line, and at nginx's default level none does. The kernel counts those with an unread
        // request. If the load needs more than all workers may hold, that is enough.
        let all = f64::from(self.limit) * self.workers as f64;
        let samples = match cut_off(ctx, tier) {
            Some(_) if self.asked(load) >= all => 0,
            Some(_) => 1,
            None if refused > 0 => 1,
            None => SAMPLES_MIN,
        };
        let drained =
            self.reused_log.is_some() || (self.full_samples >= samples && self.asked(load) >= DRAIN_SHARE * f64::from(self.limit));
        (drained && hurts(seen_closed(ctx, tier, load))).then_some(Shown::Drained)
    }
}

/// Connections closed in the tier's namespace with an unread request, if those that no others can have had are more than a few of the accepted ones.
fn cut_off(ctx: &Context<'_>, tier: &Tier) -> Option<CutOff> {
    let cut = others::cut_off(ctx, tier.netns)?;
    Cost::share_of_requests(cut.own_share()).hurts().then_some(cut)
}

/// Requests whose connection ended before the answer.
fn closed(load: &LoadResult) -> u64 {
    load.errors.reset + load.errors.closed_before_answer + load.resent
}

/// Connections that a tier closed unanswered, as the load saw them: directly for the first tier, as a bad gateway for an inner one.
fn seen_closed(ctx: &Context<'_>, tier: &Tier, load: &LoadResult) -> u64 {
    let is_first = ctx.path.is_first(tier);
    if is_first { closed(load) } else { answers_with(load, &[502]) }
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let held = ctx.path.tiers.iter().filter_map(|tier| Some((tier, Held::of(ctx, tier)?)));
    held.map(|(tier, held)| reading(ctx, tier, &held)).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, held: &Held) -> StationReading {
    let at = Location::in_netns(tier.netns);
    let mut station = STATION.reading(tier, at, "connections");
    station.limit = Some(f64::from(held.limit));
    station.used = held.peak.map(f64::from);
    station.utilization = held.share();
    let shown = held.shown(ctx, tier);
    // Connections closed to make room are counted only by the clients that lost them.
    let refused = match (&shown, &ctx.obs.load) {
        (Some(Shown::Drained), Some(load)) => Some(seen_closed(ctx, tier, load)),
        (Some(Shown::Drained), None) => cut_off(ctx, tier).map(|cut| cut.own()),
        _ => held.refused,
    };
    station.refused_per_s = refused.map(|count| count as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| {
        let message = Message::new(id).with("limit", held.limit).with("peak", held.peak.unwrap_or(0));
        message.with("count", held.refused.unwrap_or(0))
    };
    let (state, why) = match shown {
        Some(Shown::Refused) => (StationState::Refusing, args("state-worker-connections-refusing")),
        Some(Shown::Drained) => (StationState::Refusing, args("state-worker-connections-drained")),
        None if held.turned_away() > 0 => (StationState::Near, args("state-worker-connections-harmless")),
        None if held.reused_log.is_some() || held.share().is_some_and(|share| share >= NEAR_SHARE) => {
            (StationState::Near, args("state-worker-connections-near"))
        }
        None if held.peak.is_none() && held.refused.is_none() => (StationState::Unknown, args("state-worker-connections-unknown")),
        None => (StationState::Ok, args("state-worker-connections-ok")),
    };
    station.in_state(state, why)
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.state == StationState::Refusing);
    refusing
        .filter_map(|placed| {
            let tier = ctx.only_tier(&placed.owner)?;
            let held = Held::of(ctx, tier)?;
            let shown = held.shown(ctx, tier)?;
            Some(finding(ctx, placed, tier, &held, &shown))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &StationReading, tier: &Tier, held: &Held, shown: &Shown) -> Finding {
    let args =
        |id: &'static str| Message::new(id).with("tier", tier.name.as_str()).with("limit", held.limit).with("workers", held.workers as f64);
    Finding {
        confidence: held.confidence(shown),
        title: args("finding-worker-connections-exhausted-title"),
        evidence: proofs(ctx, tier, held),
        explanation: vec![args("finding-worker-connections-exhausted-explanation")],
        ..placed.finding(FindingId::CONNECTIONS_EXHAUSTED)
    }
}

fn proofs(ctx: &Context<'_>, tier: &Tier, held: &Held) -> Vec<Evidence> {
    let mut proofs: Vec<Evidence> = [&held.refused_log, &held.reused_log].into_iter().flatten().map(|logged| logged.proof()).collect();
    if let Some(dropped) = held.dropped {
        let text = Message::new("evidence-worker-connections-dropped").with("count", dropped);
        proofs.push(Evidence::new(text, "stub_status", Some(dropped as f64)));
    }
    let limit = Message::new("evidence-worker-connections-limit").with("limit", held.limit).with("workers", held.workers as f64);
    let source = match held.origin.file.is_empty() {
        true => "nginx, default".to_owned(),
        false => held.origin.to_string(),
    };
    proofs.push(Evidence::new(limit, source, Some(f64::from(held.limit))));
    if let (Some(peak), Some(pid)) = (held.peak, held.pid) {
        let text = Message::new("evidence-worker-connections-held").with("peak", peak).with("limit", held.limit);
        proofs.push(Evidence::new(text, format!("/proc/{pid}/fd"), Some(f64::from(peak))));
    }
    if let (None, Some(count)) = (&ctx.obs.load, cut_off(ctx, tier).as_ref().map(CutOff::own)) {
        let text = Message::new("evidence-worker-connections-cut").with("count", count);
        proofs.push(Evidence::new(
            text,
            format!("/proc/net/netstat: {} ({})", CUT_OFF.join(", "), ctx.netns_name(tier.netns)),
            Some(count as f64),
        ));
    }
    if let Some(load) = &ctx.obs.load {
        let text = Message::new("evidence-worker-connections-harm")
            .with("closed", closed(load))
            .with("resent", load.resent)
            .with("answers", answers_with(load, NO_CONNECTION))
            .with("requests", load.requests)
            .with("tier", tier.name.as_str());
        proofs.push(Evidence::new(text, "load", Some(load.requests.saturating_sub(load.good) as f64)));
    }
    proofs
}
