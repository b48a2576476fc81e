//! What facts and stations read from: an observation, its path, and the window that is judged.

use super::Facts;
use super::sum::mean;
use crate::facts::path::{Path, Tier};
use crate::facts::traffic;
use crate::observation::load::Loop;
use crate::observation::series::Series;
use crate::observation::{AccessLog, Counters, CpuUse, Listener, NetnsId, NetnsView, NginxConfig, Observation, ServerStatus, ServerView};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;

/// Good answers below which nothing is divided by them (DESIGN.md, when the model must refuse).
pub(crate) const GOOD_MIN: u64 = 30;

/// Single requests without load below which their median says nothing.
const SINGLE_MIN: u64 = 5;

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
    /// What was worked out of it so far.
    pub(super) facts: Facts<'a>,
}

impl<'a> Context<'a> {
    /// A context over the observation's window, or all of it where no load was applied.
    pub fn new(obs: &'a Observation, path: &'a Path, words: &'a Catalogue) -> Self {
        let whole = obs.netns.values().flat_map(|view| view.listeners.points().last().map(|point| point.0)).max().unwrap_or(0);
        Self { obs, path, words, window_us: obs.window_us.unwrap_or((0, whole)), facts: Facts::default() }
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

    /// The tier with this name in the report.
    pub(crate) fn tier(&self, name: &str) -> Option<&'a Tier> {
        self.path.tiers.iter().find(|tier| tier.name == name)
    }

    /// The configuration of a tier's nginx, of the first whose was read.
    pub(crate) fn nginx_of(&self, tier: &Tier) -> Option<&'a NginxConfig> {
        tier.pids.iter().find_map(|pid| self.obs.servers.get(pid)?.nginx())
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
