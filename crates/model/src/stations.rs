//! The stations of the request's path, in the order in which a request passes them.
//!
//! A station is one file and one line in [`STATIONS`]. Each reads its instances out of the observation and judges its own findings;
//! what they mean together is `diagnose`'s business.

mod accept_queue;
mod clients;
pub(crate) mod conntrack_table;
mod cpu;
pub(crate) mod cpu_quota;
pub(crate) mod ephemeral_ports;
pub(crate) mod file_descriptors;
pub(crate) mod in_force;
mod link;
pub(crate) mod load_generator;
pub(crate) mod rate_limit;
pub(crate) mod sending;
pub(crate) mod syn_queue;
pub(crate) mod transport;
pub(crate) mod upstream_connect;
pub(crate) mod worker_connections;
mod worker_pool;

use crate::catalogue::Catalogue;
use crate::load::{LoadResult, Loop};
use crate::message::Message;
use crate::observation::{AccessLog, Counters, CpuUse, Listener, NetnsId, NetnsView, Observation, ServerStatus, ServerView};
use crate::path::{Path, Tier};
use crate::report::{At, Ceiling, Evidence, Finding, Station, StationKind, StationState};
use crate::series::Series;
use crate::traffic;

pub(crate) use cpu::{
    Limiting, Polling, SATURATED_UTILIZATION, Sign, cores_are_spare, few_threads, limiting, other_tenants, own_cores, own_share, polling,
};
pub(crate) use load_generator::waited as generator_waited;
pub(crate) use worker_pool::{CONNECTIONS, waited_for};

/// Good answers below which nothing is divided by them (DESIGN.md, when the model must refuse).
pub(crate) const GOOD_MIN: u64 = 30;

/// Share of failed requests above which a verdict has to explain them.
pub(crate) const FAILED_SHARE_MAX: f64 = 0.01;

/// Single requests without load below which their median says nothing.
const SINGLE_MIN: u64 = 5;

/// A station's definition.
pub struct StationDef {
    /// Id, kebab-case.
    pub id: &'static str,
    /// Rate or cliff.
    pub kind: StationKind,
    /// The findings it can make.
    pub findings: &'static [&'static str],
    /// Its instances on this path; none where the request does not pass it.
    pub read: fn(&Context<'_>) -> Vec<Placed>,
    /// Its findings, from its own instances.
    pub judge: fn(&Context<'_>, &[Placed]) -> Vec<Finding>,
}

/// All stations, in the order of the path.
pub const STATIONS: &[&StationDef] = &[
    &load_generator::STATION,
    &clients::STATION,
    &link::STATION,
    &transport::STATION,
    &sending::STATION,
    &conntrack_table::STATION,
    &syn_queue::STATION,
    &accept_queue::STATION,
    &worker_connections::STATION,
    &file_descriptors::STATION,
    &rate_limit::STATION,
    &ephemeral_ports::STATION,
    &upstream_connect::STATION,
    &worker_pool::STATION,
    &cpu_quota::STATION,
    &cpu::STATION,
];

/// A station's reading with the namespace it was made in.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The namespace, where the station has one.
    pub netns: Option<NetnsId>,
    /// The reading.
    pub station: Station,
}

/// Lines of one kind in an error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// How many.
    pub count: u64,
    /// True where not all of the log was read, so that the number is an estimate.
    pub is_estimated: bool,
    /// The log of the first one.
    pub path: String,
    /// The first one.
    pub line: String,
}

impl Logged {
    /// As a proof: how many, and the first of them.
    fn proof(&self, ctx: &Context<'_>) -> Evidence {
        let text = Message::new("evidence-logged")
            .with("count", self.count)
            .with("about", u64::from(self.is_estimated))
            .with("line", self.line.as_str());
        evidence(ctx.text(text), self.path.as_str(), Some(self.count as f64))
    }
}

/// What a station reads from.
pub struct Context<'a> {
    /// The observation.
    pub obs: &'a Observation,
    /// The request's path.
    pub path: &'a Path,
    /// The sentences.
    pub words: &'a Catalogue,
    /// The window that is judged, microseconds since the observation began.
    pub window_us: (u64, u64),
}

impl<'a> Context<'a> {
    /// A context over the observation's window, or all of it where no load was applied.
    pub fn new(obs: &'a Observation, path: &'a Path, words: &'a Catalogue) -> Self {
        let whole = obs.netns.values().flat_map(|view| view.listeners.points().last().map(|point| point.0)).max().unwrap_or(0);
        Self { obs, path, words, window_us: obs.window_us.unwrap_or((0, whole)) }
    }

    /// The sentence of a message.
    pub fn text(&self, message: Message) -> String {
        self.words.text(&message)
    }

    /// Median time of an answer alone and in the closed loop, microseconds; nothing where too few single requests were answered well.
    pub fn answer_us(&self) -> Option<(f64, f64)> {
        let load = self.obs.load.as_ref().filter(|load| matches!(load.shape, Loop::Closed { .. }))?;
        Some((self.alone_us()?, load.latency_us.p50 as f64))
    }

    /// Seconds of the window.
    pub fn seconds(&self) -> f64 {
        (self.window_us.1.saturating_sub(self.window_us.0)) as f64 / 1e6
    }

    /// The access logs of a tier's servers that were read.
    pub(crate) fn access_logs(&self, tier: &Tier) -> impl Iterator<Item = &'a AccessLog> {
        let views = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid));
        views.flat_map(|view| view.access_logs.values()).filter_map(|log| log.last())
    }

    /// Lines of one kind in the error logs of a tier's servers, with the first of them and its log.
    pub fn logged(&self, tier: &Tier, kind: &str) -> Option<Logged> {
        let views: Vec<&ServerView> = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)).collect();
        let count: u64 = views.iter().map(|view| view.errors(kind)).sum();
        let (path, line) = views.iter().find_map(|view| view.error_sample(kind)).unwrap_or_default();
        let is_estimated = views.iter().any(|view| view.is_estimated(kind));
        (count > 0).then(|| Logged { count, is_estimated, path: path.to_owned(), line: self.obs.request.shown(line) })
    }

    /// Connections that a tier's nginx accepted in the window and closed at once, for it had no free connection to serve them with (accepts
    /// minus handled of `stub_status`); nothing where no status page told of both ends, or nginx was started anew meanwhile.
    pub fn dropped_accepts(&self, tier: &Tier) -> Option<u64> {
        let pages = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)?.nginx_status());
        let dropped = |status: &ServerStatus| match status {
            ServerStatus::Nginx(nginx) => nginx.accepts.checked_sub(nginx.handled),
            ServerStatus::PhpFpm(_) => None,
        };
        let told = pages.filter_map(|page| {
            let (first, last, _) = self.around(page)?;
            dropped(last)?.checked_sub(dropped(first)?)
        });
        told.reduce(|sum, more| sum.saturating_add(more))
    }

    /// What a counter of a namespace's `netstat` grew by in the window; nothing where it was not read or this kernel has none of that name.
    pub fn counted(&self, view: &NetnsView, name: &str) -> Option<u64> {
        let (first, last, _) = self.around(&view.netstat)?;
        let count = |counters: &Counters| counters.get(name).copied();
        Some(u64::try_from(count(last)?.saturating_sub(count(first)?)).unwrap_or(0))
    }

    /// Mean number of a process's threads that did in the window what this clock counts; nothing where it was not read twice.
    pub(crate) fn clocked(&self, pid: u32, clock_ns: fn(&CpuUse) -> Option<u64>) -> Option<f64> {
        let (first, last, elapsed_us) = self.inside(&self.obs.processes.get(&pid)?.cpu)?;
        Some(clock_ns(last)?.saturating_sub(clock_ns(first)?) as f64 / 1e3 / elapsed_us as f64)
    }

    /// How long an answer took while no other request was under way, microseconds; nothing where that was not measured often enough.
    pub fn alone_us(&self) -> Option<f64> {
        let few = self.obs.unloaded.as_ref().filter(|few| few.good >= SINGLE_MIN)?;
        Some(few.latency_us.p50.max(1) as f64)
    }

    /// Share of the requests that were not answered as expected; nothing where none was sent and no log tells.
    pub(crate) fn failed_share(&self) -> Option<f64> {
        traffic::of(self)?.failed_share()
    }

    /// Good answers, where load was applied.
    pub fn good(&self) -> Option<u64> {
        self.obs.load.as_ref().map(|load| load.good)
    }

    /// True where the good answers can carry a cost per answer: at least [`GOOD_MIN`] of them, and no fewer than half of all that ended
    /// (DESIGN.md, when the model must refuse).
    pub fn can_divide_by_good(&self) -> bool {
        self.obs.load.as_ref().is_some_and(|load| load.good >= GOOD_MIN && load.good * 2 >= load.requests)
    }

    /// Connections that waited to be accepted by a tier, in each sample.
    pub fn queued(&self, tier: &Tier) -> Vec<u64> {
        let Some(view) = self.obs.netns.get(&tier.netns) else { return Vec::new() };
        let own = |inode: u64| tier.listeners.iter().any(|placed| placed.listener.inode == inode);
        let queued = |listeners: &[Listener]| -> u64 {
            listeners.iter().filter(|listener| own(listener.inode)).map(|listener| u64::from(listener.accept_queue)).sum()
        };
        self.in_window(&view.listeners).map(|(_, listeners)| queued(listeners)).collect()
    }

    /// Mean number of connections that waited to be accepted by these tiers.
    pub fn queued_mean<'t>(&self, tiers: impl IntoIterator<Item = &'t Tier>) -> f64 {
        tiers.into_iter().map(|tier| mean(self.queued(tier))).sum()
    }

    /// The tiers that a tier calls, and those that they call, each once; the path is followed through rings once.
    pub fn behind(&self, tier: &Tier) -> Vec<&'a Tier> {
        let mut found: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = tier.upstreams.clone();
        while let Some(index) = open.pop() {
            if !found.contains(&index) {
                found.push(index);
                open.extend(&self.path.tiers[index].upstreams);
            }
        }
        found.into_iter().map(|index| &self.path.tiers[index]).collect()
    }

    /// The name of a namespace for the report.
    pub fn netns_name(&self, id: NetnsId) -> String {
        self.obs.netns.get(&id).and_then(|view| view.name.clone()).unwrap_or_else(|| id.to_string())
    }

    /// The namespaces that the request passes, the client's first, each once.
    pub fn netns_on_path(&self) -> Vec<(NetnsId, &'a NetnsView)> {
        let mut ids = vec![self.obs.request.client_netns];
        ids.extend(self.path.tiers.iter().flat_map(|tier| tier.listeners.iter().map(|placed| placed.netns)));
        ids.extend(self.path.translated.iter().map(|hop| hop.netns));
        // A packet between two namespaces of this host passes the host's own where they are bridged or routed there.
        ids.extend(self.obs.netns.iter().filter(|(_, view)| view.is_host).map(|(&id, _)| id));
        let mut seen = Vec::new();
        for id in ids {
            if !seen.contains(&id) {
                seen.push(id);
            }
        }
        seen.into_iter().filter_map(|id| self.obs.netns.get(&id).map(|view| (id, view))).collect()
    }

    /// The name of the tier that listens in a namespace, "router" for one that translates addresses on the way and is not this host's
    /// own, "client" for the client's, else "host".
    pub fn tier_of(&self, id: NetnsId) -> String {
        let is_host = self.obs.netns.get(&id).is_some_and(|view| view.is_host);
        let translates = self.path.translated.iter().any(|hop| hop.netns == id);
        match self.path.tiers.iter().find(|tier| tier.netns == id) {
            Some(tier) => tier.name.clone(),
            // Servers are published where the host translates: what is short there is no fault of a client that happens to run beside them.
            None if translates && (is_host || id != self.obs.request.client_netns) => if is_host { "host" } else { "router" }.to_owned(),
            None if id == self.obs.request.client_netns => "client".to_owned(),
            None => "host".to_owned(),
        }
    }

    /// The values of a series just before (or at) the window's beginning and just after (or at) its end, with the microseconds between
    /// them: what a counter did in the window, and at the most one sampling interval more on each side.
    pub fn around<'s, T>(&self, series: &'s Series<T>) -> Option<(&'s T, &'s T, u64)> {
        let points = series.points();
        let begin = points.iter().rposition(|(at, _)| *at <= self.window_us.0).unwrap_or(0);
        let end = points.iter().position(|(at, _)| *at >= self.window_us.1).unwrap_or(points.len().saturating_sub(1));
        ends(points, begin, end)
    }

    /// The first and last values that lie inside the window: for shares of time, which the edges would dilute. Falls back to
    /// [`Context::around`] where fewer than two lie inside.
    pub fn inside<'s, T>(&self, series: &'s Series<T>) -> Option<(&'s T, &'s T, u64)> {
        let points = series.points();
        let begin = points.iter().position(|(at, _)| *at >= self.window_us.0);
        let end = points.iter().rposition(|(at, _)| *at <= self.window_us.1);
        match (begin, end) {
            (Some(begin), Some(end)) if end > begin => ends(points, begin, end),
            _ => self.around(series),
        }
    }

    /// The values inside the window.
    pub fn in_window<'s, T>(&self, series: &'s Series<T>) -> impl Iterator<Item = &'s (u64, T)> + use<'s, T> {
        let (begin, end) = self.window_us;
        series.points().iter().filter(move |(at, _)| (begin..=end).contains(at))
    }
}

fn ends<T>(points: &[(u64, T)], begin: usize, end: usize) -> Option<(&T, &T, u64)> {
    let (first, last) = (points.get(begin)?, points.get(end)?);
    (last.0 > first.0).then(|| (&first.1, &last.1, last.0 - first.0))
}

/// Nine tenths of the time after which a SYN that was lost is sent again (RFC 6298, initial RTO of one second): what a clock may show of it.
const SYN_RETRY_SEEN_US: u64 = 900_000;

/// Share of the requests that must have suffered for what a cliff turned away to count as harm: fewer are the tail of any load, and may be somebody
/// else's bad luck.
const SUFFERED_SHARE_MIN: f64 = 0.001;

/// True where more than a few of so many suffered.
fn is_harm(suffered: u64, of: u64) -> bool {
    suffered > 0 && suffered as f64 >= SUFFERED_SHARE_MIN * of as f64
}

/// True where more than a few requests took longer than the median by as much as it takes to send a SYN again: where all are slow, a slow one
/// is no sign of that.
fn waited_for_retry(load: &LoadResult) -> bool {
    let took = load.latency_us;
    connected_us(load) >= SYN_RETRY_SEEN_US || took.p999.saturating_sub(took.p50) >= SYN_RETRY_SEEN_US
}

/// The time that so many connections took to be established, or longer, as make up [`SUFFERED_SHARE_MIN`] of the requests, microseconds; nothing
/// where all of them are fewer. Of connections that are kept each serves many requests, and few of them make all wait.
fn connected_us(load: &LoadResult) -> u64 {
    let share = SUFFERED_SHARE_MIN * load.requests as f64 / load.connections.max(1) as f64;
    let took = load.connect_us;
    let shares = [(0.001, took.p999), (0.01, took.p99), (0.05, took.p95), (0.1, took.p90), (0.25, took.p75), (0.5, took.p50)];
    // The percentiles are far apart: half as many is near enough.
    shares.into_iter().find(|(of, _)| share <= 2.0 * *of).map_or(0, |(_, us)| us)
}

/// Share of its clients' time that a closed loop must have lost for that to count as harm, however few requests it was.
const LOST_TIME_MIN: f64 = 0.01;

/// True where the clients of a closed loop stood still for much of the time until they gave up so many requests: of connections that are kept each
/// serves many, and a few that are lost take a client's whole time.
fn stood_still(load: &LoadResult, given_up: u64) -> bool {
    let Loop::Closed { connections } = load.shape else { return false };
    // What is given up is the longest that anything took.
    let lost_us = given_up as f64 * load.latency_us.max as f64;
    given_up > 0 && lost_us >= LOST_TIME_MIN * f64::from(connections) * load.duration_us as f64
}

/// True where more than a few connections of the load were not established, or took as long as one does whose SYN was lost.
fn waited_to_connect(load: &LoadResult) -> bool {
    let errors = load.errors;
    let is_long = connected_us(load) >= SYN_RETRY_SEEN_US;
    is_long || is_harm(errors.connect_timeout + errors.connect_failed, load.requests) || stood_still(load, errors.connect_timeout)
}

/// True where the load's own requests suffered as dropped first packets make them suffer, at whichever tier; without load of our own, drops count
/// as harm.
fn lost_first_packets(ctx: &Context<'_>) -> bool {
    ctx.obs.load.as_ref().is_none_or(|load| {
        let errors = load.errors;
        let failed = errors.connect_timeout + errors.response_timeout + errors.connect_failed;
        let is_many = is_harm(failed + answers_with(load, &[502, 503, 504]), load.requests);
        is_many || stood_still(load, errors.connect_timeout + errors.response_timeout) || waited_for_retry(load)
    })
}

/// Requests that were under way at once, at the most.
pub(crate) fn in_flight_peak(load: &LoadResult) -> f64 {
    match load.shape {
        Loop::Closed { connections } => f64::from(connections),
        Loop::Open { .. } => load.slices.iter().map(|slice| f64::from(slice.in_flight)).fold(0.0, f64::max),
    }
}

/// Answers with one of these statuses.
fn answers_with(load: &LoadResult, statuses: &[u16]) -> u64 {
    statuses.iter().filter_map(|status| load.status.get(status)).sum()
}

/// The highest of each second's values: what is read several times a second is one sample of it, however short the moment was.
fn per_second(values: impl Iterator<Item = (u64, u32)>) -> Vec<u32> {
    let mut highest: std::collections::BTreeMap<u64, u32> = std::collections::BTreeMap::new();
    for (at_us, value) in values {
        let second = highest.entry(at_us / 1_000_000).or_insert(value);
        *second = value.max(*second);
    }
    highest.into_values().collect()
}

/// The mean of counts; zero of none.
fn mean(counts: impl IntoIterator<Item = u64>) -> f64 {
    let (sum, number) = counts.into_iter().fold((0, 0_u64), |(sum, number), count| (sum + count, number + 1));
    sum as f64 / number.max(1) as f64
}

/// How far a rate that was predicted from a ceiling may be off: the worst of the prototype's undisturbed predictions was 14 to 18 %, the
/// median 1 to 2 % (DESIGN.md). The noise of the two runs that were compared there is in it.
const CEILING_SPREAD: f64 = 0.15;

/// A ceiling that lies between two others, each of them off by the usual spread; nothing where that gives no rate. What makes it uncertain and the spread
/// have nothing to do with each other, so that their factors add up like the sides of a right angle.
fn ceiling_between(value: f64, low: f64, high: f64) -> Option<Ceiling> {
    ceiling_spread(value, low, high, CEILING_SPREAD)
}

/// As [`ceiling_between`], with a spread of its own.
fn ceiling_spread(value: f64, low: f64, high: f64, spread: f64) -> Option<Ceiling> {
    let times = |bound: f64, spread: f64| (bound / value).ln().hypot(spread.ln()).exp();
    let (low, high) = (value / times(low.min(value), 1.0 - spread), value * times(high.max(value), 1.0 + spread));
    (value.is_finite() && high.is_finite() && value > 0.0).then_some(Ceiling { value, low, high })
}

/// The bare reading of a station, to be filled in.
fn blank(def: &StationDef, tier: String, at: At, unit: &str) -> Station {
    Station {
        tier,
        station: def.id.to_owned(),
        at,
        kind: def.kind,
        limit: None,
        used: None,
        waiting: None,
        refused_per_s: None,
        utilization: None,
        unit: unit.to_owned(),
        ceiling_rps: None::<Ceiling>,
        state: StationState::Unknown,
        why: String::new(),
    }
}

fn evidence(text: String, source: impl Into<String>, value: Option<f64>) -> Evidence {
    Evidence { text, source: source.into(), value }
}
