//! The input of facts and stations: an observation, its path, and the window that is judged.

use std::collections::BTreeSet;

use super::Facts;
use super::sum::mean;
use crate::facts::believed::{self, Belief};
use crate::facts::path::{Path, Tier, words_for};
use crate::facts::traffic;
use crate::ledger::Account;
use crate::observation::load::Loop;
use crate::observation::series::Series;
use crate::observation::{AccessLog, CpuUse, Listener, LogEvent, NetnsId, NetnsView, NginxConfig, Observation, ServerStatus, ServerView};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;

/// Fewest good answers for a cost per answer (DESIGN.md, when the model must refuse).
pub(crate) const GOOD_MIN: u64 = 30;

/// Fewest single requests without load for their median to count.
const SINGLE_MIN: u64 = 5;

/// Lines of one kind in an error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Number of lines.
    pub count: u64,
    /// True if not all of the log was read, so that the number is an estimate.
    pub is_estimated: bool,
    /// The log with the first line.
    pub path: String,
    /// The first line.
    pub line: String,
    /// True if no reading says the same: whoever sends requests can have written the lines.
    pub is_alone: bool,
}

/// The input of a station.
pub struct Context<'a> {
    /// The observation.
    pub obs: &'a Observation,
    /// The request's path.
    pub path: &'a Path,
    /// The message catalogue.
    pub words: &'a Catalogue,
    /// The window that is judged, microseconds since the observation began.
    pub window_us: (u64, u64),
    /// Facts computed so far.
    pub(super) facts: Facts<'a>,
}

impl<'a> Context<'a> {
    /// A context for the observation's window, or for all of it if no load was applied.
    pub fn new(obs: &'a Observation, path: &'a Path, words: &'a Catalogue) -> Self {
        let whole = obs.netns.values().flat_map(|view| view.listeners.points().last().map(|point| point.0)).max().unwrap_or(0);
        Self { obs, path, words, window_us: obs.window_us.unwrap_or((0, whole)), facts: Facts::default() }
    }

    /// The sentence of a message.
    pub fn text(&self, message: Message) -> String {
        self.words.text(&message)
    }

    /// Median response time of single requests and in the closed loop, microseconds. `None` if too few single requests got a good answer.
    pub fn answer_us(&self) -> Option<(f64, f64)> {
        let load = self.obs.load.as_ref().filter(|load| matches!(load.shape, Loop::Closed { .. }))?;
        Some((self.alone_us()?, load.latency_us.p50 as f64))
    }

    /// Length of the window, seconds.
    pub fn seconds(&self) -> f64 {
        (self.window_us.1.saturating_sub(self.window_us.0)) as f64 / 1e6
    }

    /// The access logs of a tier's servers that were read.
    pub(crate) fn access_logs(&self, tier: &Tier) -> impl Iterator<Item = &'a AccessLog> {
        let views = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid));
        views.flat_map(|view| view.access_logs.values()).filter_map(|log| log.last())
    }

    /// The first configuration read of a tier's nginx.
    pub(crate) fn nginx_of(&self, tier: &Tier) -> Option<&'a NginxConfig> {
        tier.pids.iter().find_map(|pid| self.obs.servers.get(pid)?.nginx())
    }

    /// The kind of server that a tier is, for words that fit it.
    pub(crate) fn words_for(&self, tier: &Tier) -> &'static str {
        words_for(tier.pids.iter().filter_map(|pid| self.obs.processes.get(pid)?.identity.last()))
    }

    /// Lines of one event in the error logs of a tier's servers, with the first line and its log. `None` if there are none, or if a reading rules out what they say.
    pub fn logged(&self, tier: &Tier, event: &LogEvent) -> Option<Logged> {
        let (logged, belief) = self.logged_with_belief(tier, event)?;
        (!matches!(belief, Belief::Against(_))).then_some(logged)
    }

    /// The events in the error logs of a tier's servers, each once.
    pub(crate) fn logged_events(&self, tier: &Tier) -> BTreeSet<&'a LogEvent> {
        let views = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid));
        views.flat_map(|view| view.error_logs.values()).filter_map(|log| log.last()).flat_map(|log| log.events.keys()).collect()
    }

    /// The same with what the readings say about the lines.
    pub(crate) fn logged_with_belief(&self, tier: &Tier, event: &LogEvent) -> Option<(Logged, Belief)> {
        let views: Vec<&ServerView> = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)).collect();
        let count: u64 = views.iter().map(|view| view.errors(event)).sum();
        let (path, line) = views.iter().find_map(|view| view.error_sample(event)).unwrap_or_default();
        let is_estimated = views.iter().any(|view| view.is_estimated(event));
        if count == 0 {
            return None;
        }
        let belief = believed::of(self, tier, event, line);
        let line = self.obs.request.shown(line);
        Some((Logged { count, is_estimated, path: path.to_owned(), line, is_alone: belief == Belief::Alone }, belief))
    }

    /// Connections that a tier's nginx accepted in the window and closed at once because no connection was free to serve them (accepts minus handled of
    /// `stub_status`). `None` without a status page at both ends of the window, or if nginx was restarted meanwhile.
    pub fn dropped_accepts(&self, tier: &Tier) -> Option<u64> {
        let pages = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)?.nginx_status());
        let dropped = |status: &ServerStatus| match status {
            ServerStatus::Nginx(nginx) => nginx.accepts.checked_sub(nginx.handled),
            _ => None,
        };
        let told = pages.filter_map(|page| {
            let (first, last, _) = self.around(page)?;
            dropped(last)?.checked_sub(dropped(first)?)
        });
        told.reduce(|sum, more| sum.saturating_add(more))
    }

    /// Growth of a counter in the window. `None` if the series was not read at both ends or has no such counter.
    pub(crate) fn growth<T>(&self, series: &Series<T>, count: impl Fn(&T) -> Option<u64>) -> Option<u64> {
        let (first, last, _) = self.around(series)?;
        Some(count(last)?.saturating_sub(count(first)?))
    }

    /// Growth in the window of one counter of a namespace's `netstat`. `None` if it was not read or this kernel has no counter of that name.
    pub fn netstat_growth(&self, view: &NetnsView, name: &str) -> Option<u64> {
        self.growth(&view.netstat, |counters| u64::try_from(*counters.get(name)?).ok())
    }

    /// Mean number of a process's threads in the state that this clock counts. `None` if it was not read twice.
    pub(crate) fn clocked(&self, pid: u32, clock_ns: fn(&CpuUse) -> Option<u64>) -> Option<f64> {
        let (first, last, elapsed_us) = self.inside(&self.obs.processes.get(&pid)?.cpu)?;
        Some(clock_ns(last)?.saturating_sub(clock_ns(first)?) as f64 / 1e3 / elapsed_us as f64)
    }

    /// Median response time while no other request was under way, microseconds. `None` if it was not measured often enough.
    pub fn alone_us(&self) -> Option<f64> {
        let few = self.obs.unloaded.as_ref().filter(|few| few.good >= SINGLE_MIN)?;
        Some(few.latency_us.p50.max(1) as f64)
    }

    /// Share of the requests without a good answer. `None` if it is not known.
    pub(crate) fn failed_share(&self) -> Option<f64> {
        traffic::of(self)?.failed_share()
    }

    /// Number of good answers, if load was applied.
    pub fn good(&self) -> Option<u64> {
        self.obs.load.as_ref().map(|load| load.good)
    }

    /// True if a cost per good answer is meaningful: at least [`GOOD_MIN`] good answers, and at least half of all that ended (DESIGN.md, when the model must
    /// refuse).
    pub fn can_divide_by_good(&self) -> bool {
        self.obs.load.as_ref().is_some_and(|load| load.good >= GOOD_MIN && load.good * 2 >= load.requests)
    }

    /// Answers of the servers to all clients as a multiple of those to the load; 1 unless other clients ask as well. Stations serve all of them.
    pub(crate) fn times_own(&self) -> f64 {
        self.account().and_then(Account::others).map_or(1.0, |(_, times)| times)
    }

    /// Good answers a second to all clients, if load was applied.
    pub(crate) fn answers_rps(&self) -> Option<f64> {
        self.obs.load.as_ref().map(|load| load.goodput_rps() * self.times_own())
    }

    /// Connections waiting in the accept queues of a tier, for each sample.
    pub fn queued(&self, tier: &Tier) -> Vec<u64> {
        let Some(view) = self.obs.netns.get(&tier.netns) else { return Vec::new() };
        let own = |inode: u64| tier.listeners.iter().any(|placed| placed.listener.inode == inode);
        let queued = |listeners: &[Listener]| -> u64 {
            listeners.iter().filter(|listener| own(listener.inode)).map(|listener| u64::from(listener.accept_queue)).sum()
        };
        self.in_window(&view.listeners).map(|(_, listeners)| queued(listeners)).collect()
    }

    /// Mean number of connections waiting in the accept queues of these tiers.
    pub fn queued_mean<'t>(&self, tiers: impl IntoIterator<Item = &'t Tier>) -> f64 {
        tiers.into_iter().map(|tier| mean(self.queued(tier))).sum()
    }

    /// All tiers behind a tier, directly or indirectly, each once.
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

    /// The namespaces on the path of the request, the client's first, each once.
    pub fn netns_on_path(&self) -> Vec<(NetnsId, &'a NetnsView)> {
        let mut ids = vec![self.obs.request.client_netns];
        ids.extend(self.path.tiers.iter().flat_map(|tier| tier.listeners.iter().map(|placed| placed.netns)));
        ids.extend(self.path.translated.iter().map(|hop| hop.netns));
        // A packet between two namespaces of this host passes the host's own namespace if they are bridged or routed there.
        ids.extend(self.obs.netns.iter().filter(|(_, view)| view.is_host).map(|(&id, _)| id));
        let mut seen = Vec::new();
        for id in ids {
            if !seen.contains(&id) {
                seen.push(id);
            }
        }
        seen.into_iter().filter_map(|id| self.obs.netns.get(&id).map(|view| (id, view))).collect()
    }

    /// The values of a series at or just before the window's beginning and at or just after its end, and the microseconds between them: the change of a
    /// counter in the window, plus at most one sampling interval on each side.
    pub fn around<'s, T>(&self, series: &'s Series<T>) -> Option<(&'s T, &'s T, u64)> {
        around(series, self.window_us)
    }

    /// All values of a series that are compared with those of another one: over the time that lies between the two values of `of` around the window, and at most one interval more on each side.
    pub(crate) fn around_those<'s, T, U>(&self, series: &'s Series<T>, of: &Series<U>) -> &'s [(u64, T)] {
        let (begin, end) = places_around(series.points(), self.span_of(of));
        series.points().get(begin..=end).unwrap_or_default()
    }

    /// From the value of a series at or just before the window's beginning to that at or just after its end.
    fn span_of<U>(&self, of: &Series<U>) -> (u64, u64) {
        let points = of.points();
        let (begin, end) = places_around(points, self.window_us);
        points.get(begin).zip(points.get(end)).map_or(self.window_us, |(first, last)| (first.0, last.0))
    }

    /// The first and last value inside the window, for shares of time, which the edges would dilute. Falls back to [`Context::around`] with fewer than two
    /// values inside.
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

fn around<T>(series: &Series<T>, span_us: (u64, u64)) -> Option<(&T, &T, u64)> {
    let points = series.points();
    let (begin, end) = places_around(points, span_us);
    ends(points, begin, end)
}

/// The places of the last value up to the beginning, and of the first from the end on.
fn places_around<T>(points: &[(u64, T)], (from_us, to_us): (u64, u64)) -> (usize, usize) {
    let begin = points.iter().rposition(|(at, _)| *at <= from_us).unwrap_or(0);
    let end = points.iter().position(|(at, _)| *at >= to_us).unwrap_or(points.len().saturating_sub(1));
    (begin, end)
}

fn ends<T>(points: &[(u64, T)], begin: usize, end: usize) -> Option<(&T, &T, u64)> {
    let (first, last) = (points.get(begin)?, points.get(end)?);
    (last.0 > first.0).then(|| (&first.1, &last.1, last.0 - first.0))
}
