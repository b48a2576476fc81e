//! What was seen of each server in the last second.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::{Listener, NetnsId, NginxStatus, Observation, Request, ServerStatus};
use chokepoint_model::path::{PlacedListener, Tier};
use chokepoint_recorder::{Durations, Logged, Mean, Queue, Sample, TargetSample};
use chokepoint_sources::{LogGrowth, LogTails};

use super::config::Settings;
use super::targets::{Watched, watched};
use crate::run::ongoing::{Looked, Ongoing, Window};

/// The time that a ledger covers: the last second, or as long as it takes to have four samples of each namespace.
const WINDOW: Window = Window { usual: Duration::from_secs(1), longest: Duration::from_secs(5), samples: 4 };
/// Time between two searches for servers to watch.
const SEARCH_PERIOD: Duration = Duration::from_secs(10);
/// The wall clock may differ so much from the seconds that passed before it counts as set anew.
const CLOCK_SET_MIN: u64 = 2;

/// The watched servers.
pub(super) struct Seconds {
    settings: Settings,
    watched: Vec<Watched>,
    ongoing: Option<Ongoing>,
    logs: LogTails,
    searched: std::time::Instant,
    /// The second that was last reported, since 1970.
    at_s: u64,
}

/// One server in the last second.
pub(super) struct LookedTarget {
    pub(super) request: Request,
    pub(super) sample: TargetSample,
    /// The listeners of its first tier, and of the others.
    first: BTreeSet<(NetnsId, u64)>,
    behind: BTreeSet<(NetnsId, u64)>,
    /// nginx's own counts, from its status page.
    pub(super) nginx: Option<NginxStatus>,
    /// Masters of a known kind of server in its first tier: they name its logs.
    masters: BTreeSet<u32>,
}

/// All servers in the last second.
pub(super) struct Look {
    pub(super) at_s: u64,
    pub(super) targets: Vec<LookedTarget>,
}

impl Look {
    /// What is kept of it.
    pub(super) fn sample(&self) -> Sample {
        let targets = self.targets.iter().map(|target| target.sample.clone()).collect();
        Sample { at_s: self.at_s, span_s: 1, targets }
    }
}

impl Seconds {
    /// Begins to watch.
    pub(super) fn begin(settings: &Settings) -> Result<Self> {
        let watched = watched(settings)?;
        let ongoing = begin(&watched)?;
        let (searched, at_s) = (std::time::Instant::now(), now_s());
        Ok(Self { settings: settings.clone(), watched, ongoing, logs: LogTails::default(), searched, at_s })
    }

    /// Time until the next second is complete.
    pub(super) fn until_readings(&self) -> Duration {
        self.ongoing.as_ref().map_or(WINDOW.usual, Ongoing::until_readings)
    }

    /// The last second.
    pub(super) fn look(&mut self, words: &Catalogue) -> Result<Look> {
        self.search()?;
        let mut targets = Vec::new();
        if let Some(ongoing) = &mut self.ongoing {
            let watched = &self.watched;
            ongoing.look(words, |number, looked| targets.push(looked_target(&watched[number], looked)));
        }
        // A server behind another one is a tier of that one, unless it was named.
        if self.settings.targets.is_empty() {
            let behind: BTreeSet<(NetnsId, u64)> = targets.iter().flat_map(|target| target.behind.iter().copied()).collect();
            targets.retain(|target| target.first.is_empty() || !target.first.iter().any(|listener| behind.contains(listener)));
        }
        self.add_logs(&mut targets);
        let now_s = now_s();
        self.at_s = if (self.at_s + 1).abs_diff(now_s) > CLOCK_SET_MIN { now_s } else { self.at_s + 1 };
        Ok(Look { at_s: self.at_s, targets })
    }

    /// Adds what the logs of the servers gained. Two targets of one server share its logs, which are counted for the first.
    fn add_logs(&mut self, targets: &mut [LookedTarget]) {
        let masters: BTreeSet<u32> = targets.iter().flat_map(|target| target.masters.iter().copied()).collect();
        for log in self.logs.read(&masters) {
            let (Some(target), Ok(growth)) = (targets.iter_mut().find(|target| target.masters.contains(&log.pid)), log.growth) else {
                continue;
            };
            target.sample.logged.get_or_insert_default().merge(&logged(growth));
        }
        for sample in targets.iter_mut().map(|target| &mut target.sample).filter(|sample| sample.rate.value().is_none()) {
            if let Some(answers) = sample.logged.as_ref().map(Logged::answers) {
                sample.rate = Mean::of(Some(answers as f64), sample.under_way.seconds);
            }
        }
    }

    /// Looks for servers that began or ended to listen, and begins anew with them. A server that ended is still watched: that it is gone is to be seen.
    fn search(&mut self) -> Result<()> {
        if self.searched.elapsed() < SEARCH_PERIOD {
            return Ok(());
        }
        self.searched = std::time::Instant::now();
        // It fails while a named namespace is gone. It may come back.
        let Ok(found) = watched(&self.settings) else { return Ok(()) };
        let is_new = found.iter().any(|found| self.watched.iter().all(|known| known.name != found.name));
        let is_pathless = self.ongoing.as_ref().is_some_and(Ongoing::is_pathless) && !self.settings.targets.is_empty();
        if is_new || is_pathless {
            let gone: Vec<Watched> = self.watched.drain(..).filter(|known| found.iter().all(|found| found.name != known.name)).collect();
            self.watched = found.into_iter().chain(gone).collect();
            self.ongoing = begin(&self.watched)?;
        }
        Ok(())
    }
}

fn begin(watched: &[Watched]) -> Result<Option<Ongoing>> {
    if watched.is_empty() {
        return Ok(None);
    }
    Ongoing::begin(watched.iter().map(|watched| watched.request.clone()).collect(), WINDOW).map(Some)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn looked_target(watched: &Watched, looked: Looked<'_>) -> LookedTarget {
    let Looked { report, unanswered, path, observation } = looked;
    let listeners = |tier: &Tier| tier.listeners.iter().map(|placed| (placed.netns, placed.listener.inode)).collect::<Vec<_>>();
    let window_s = (report.window.to_s - report.window.from_s).max(0.0);
    let mut sample = TargetSample::of(&watched.name, report.ledger.as_ref(), if window_s > 0.0 { 1.0 } else { 0.0 });
    sample.see_unanswered(&unanswered.ages_ms, unanswered.tick_ms);
    sample.queues = path.tiers.iter().flat_map(|tier| &tier.listeners).filter_map(|placed| queue(placed, observation)).collect();
    LookedTarget {
        request: watched.request.clone(),
        sample,
        first: path.tiers.first().map(|tier| listeners(tier).into_iter().collect()).unwrap_or_default(),
        behind: path.tiers.iter().skip(1).flat_map(listeners).collect(),
        nginx: path.tiers.first().and_then(|tier| tier.pids.iter().find_map(|pid| nginx(observation, *pid))),
        masters: path
            .tiers
            .first()
            .map(|tier| tier.pids.iter().copied().filter(|pid| observation.servers.contains_key(pid)).collect())
            .unwrap_or_default(),
    }
}

/// What the status page of an nginx told last.
fn nginx(observation: &Observation, pid: u32) -> Option<NginxStatus> {
    match observation.servers.get(&pid)?.nginx_status()?.last()? {
        ServerStatus::Nginx(status) => Some(status.clone()),
        ServerStatus::PhpFpm(_) => None,
    }
}

fn logged(growth: LogGrowth) -> Logged {
    let durations_us = growth.durations_us.into_iter().map(|(name, counts)| (name.to_owned(), Durations(counts))).collect();
    let skipped_lines = |answers: u64| growth.extent.scale().map_or(0.0, |scale| answers as f64 * (scale - 1.0)) as u64;
    let answers = growth.status.values().sum();
    Logged { unread: growth.misfits + skipped_lines(answers), status: growth.status, bytes: growth.bytes, durations_us }
}

/// The queue of a listener in the window.
fn queue(placed: &PlacedListener, observation: &Observation) -> Option<Queue> {
    let (from_us, to_us) = observation.window_us?;
    let own = |listeners: &Vec<Listener>| listeners.iter().find(|listener| listener.inode == placed.listener.inode).cloned();
    let points = observation.netns.get(&placed.netns)?.listeners.points();
    let seen: Vec<Listener> =
        points.iter().filter(|(at_us, _)| (from_us..=to_us).contains(at_us)).filter_map(|(_, all)| own(all)).collect();
    let most = seen.iter().map(|listener| listener.accept_queue).max()?;
    Some(Queue { listener: placed.listener.address.to_string(), most, limit: seen.last()?.accept_queue_limit })
}
