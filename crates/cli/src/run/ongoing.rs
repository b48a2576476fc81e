//! An observation without an end: the readings of the last seconds, the paths of one or more targets, and the ledger of each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::path::{self, Path, PlacedListener};
use chokepoint_model::report::{SourceReport, Whereabouts};
use chokepoint_model::whereabouts::{EdgePorts, Unanswered, edge_ports, lacking, with_ages};
use chokepoint_recording::{Entry, Scope};
use chokepoint_sources::{ObserveOptions, Observer, Recent};

/// Readings are kept this much longer than the longest window: readers report once a second, and the growth of a counter needs its value before the window.
const MARGIN: Duration = Duration::from_secs(2);
/// Time between two searches for a path. It changes rarely, and reading the connections of a busy host takes long.
const PATH_PERIOD: Duration = Duration::from_secs(5);
/// Where nothing was found for this long, it is searched for no more often than that.
const SOUGHT_MAX: Duration = Duration::from_secs(10);
/// A search can miss a tier that is called over short connections. A longer path is kept for this long.
const PATH_KEPT_MAX: Duration = Duration::from_secs(30);
/// Readers report at whole seconds of the observation's clock. A report takes up to the second time.
const REPORT_PERIOD: Duration = Duration::from_secs(1);
const REPORT_TIME_MAX: Duration = Duration::from_millis(250);
/// Large sources that the ledger does not need: they serve only the path, or are not shown.
const NOT_FOR_LEDGER: [&str; 7] =
    ["sockets", "process_files", "conntrack_translations", "tcp_info", "time_wait", "process_syscall", "process_threads"];
/// The source of the samples.
const SAMPLES: &str = "requests";

/// The time that a ledger covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Its length.
    pub(crate) usual: Duration,
    /// Its length where samples are rarer than `samples`: on a busy host each is expensive.
    pub(crate) longest: Duration,
    /// The samples of each namespace that it is to have.
    pub(crate) samples: usize,
}

/// The observation and the paths found in it.
pub(crate) struct Ongoing {
    observer: Observer,
    /// Zero of the observation's clock, seconds since 1970.
    began_s: f64,
    began: Instant,
    window: Window,
    recent: Recent,
    /// Time of the first sample, microseconds of the observation's clock.
    first_us: Option<u64>,
    targets: Vec<TargetPath>,
}

/// A target and its path.
struct TargetPath {
    request: Request,
    path: Path,
    /// When the path was last searched for, and when it was last found in its present length.
    searched: Option<Instant>,
    found_whole: Instant,
    /// Since when it is searched for.
    sought: Instant,
    lacking: Vec<SourceReport>,
    /// As of the last search.
    ports: Vec<EdgePorts>,
}

/// The ledger of one target, and what it was made of.
pub(crate) struct Looked<'a> {
    pub(crate) report: Whereabouts,
    pub(crate) unanswered: Unanswered,
    pub(crate) path: &'a Path,
    /// The ports of its edges, as of the last search for it.
    pub(crate) ports: &'a [EdgePorts],
    /// The observation of the window, without some large sources.
    pub(crate) observation: &'a Observation,
    /// How long ago its namespace was sampled last, or read where it has no listener; nothing if that was too long ago to be held.
    pub(crate) age: Option<Duration>,
}

impl Ongoing {
    /// Starts to observe these targets, at least one. Each ledger covers a window that ends now.
    pub(crate) fn begin(requests: Vec<Request>, window: Window) -> Result<Self> {
        let (first, also) = requests.split_first().context("there is nothing to watch")?;
        let observer = Observer::start(ObserveOptions::endless(first.clone(), also.to_vec())).context("the host cannot be observed")?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Self {
            began_s: now_s - observer.elapsed_us() as f64 / 1e6,
            began: Instant::now(),
            recent: Recent::new(window.longest + MARGIN),
            observer,
            window,
            first_us: None,
            targets: requests.into_iter().map(TargetPath::of).collect(),
        })
    }

    /// Watches these targets from now on, at least one, and searches the host's namespaces for them. Those that are watched already keep their paths. False if the
    /// observation has too much to do; then nothing changed.
    pub(crate) fn follow(&mut self, requests: Vec<Request>) -> bool {
        if requests.is_empty() || !self.observer.follow(&requests) {
            return false;
        }
        let mut known = std::mem::take(&mut self.targets);
        let mut target = |request: Request| match known.iter().position(|target| target.request == request) {
            Some(at) => known.swap_remove(at),
            None => TargetPath::of(request),
        };
        self.targets = requests.into_iter().map(&mut target).collect();
        true
    }

    /// How long ago a window may have ended that can still be looked at.
    pub(crate) fn reach(&self) -> Duration {
        (self.window.longest + MARGIN).saturating_sub(self.window.usual)
    }

    /// How long it has observed.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// True if no target has a listener on this host.
    pub(crate) fn is_pathless(&self) -> bool {
        self.targets.iter().all(|target| target.path.tiers.is_empty())
    }

    /// Time until the readers' next report is complete.
    pub(crate) fn until_readings(&self) -> Duration {
        let period_us = REPORT_PERIOD.as_micros() as u64;
        Duration::from_micros(period_us - self.observer.elapsed_us() % period_us) + REPORT_TIME_MAX
    }

    /// Takes over what was read since the last call and calls `each` with the ledger of every target, in their order. `ended`: when the window ended, at most
    /// [`Ongoing::reach`] ago; nothing for now. In a window of before now no paths are searched for.
    pub(crate) fn look(&mut self, words: &Catalogue, ended: Option<Instant>, mut each: impl FnMut(usize, Looked<'_>)) {
        self.recent.add(self.observer.drain());
        let ago_us = ended.map_or(0, |ended| u64::try_from(ended.elapsed().as_micros()).unwrap_or(u64::MAX));
        let (is_now, now_us) = (ended.is_none(), self.observer.elapsed_us().saturating_sub(ago_us));
        let is_newest = |entry: &&Entry| is_sample(entry) && entry.at_us <= now_us;
        let newest_us = self.recent.entries().iter().rfind(is_newest).map_or(now_us, |entry| entry.at_us);
        let oldest_us = || self.recent.entries().iter().find(|entry| is_sample(entry)).map_or(newest_us, |entry| entry.at_us);
        let first_us = *self.first_us.get_or_insert_with(oldest_us);
        let window_us = (begin_us(self.recent.entries(), newest_us, self.window).max(first_us), newest_us);
        let are_searched = is_now && self.targets.iter().any(TargetPath::is_due);
        let without: &[&str] = if are_searched { &[] } else { &NOT_FOR_LEDGER };
        let mut observation: Option<Observation> = None;
        for (number, target) in self.targets.iter_mut().enumerate() {
            let observation = observation.get_or_insert_with(|| self.recent.observation(&target.request, window_us, without));
            observation.request.clone_from(&target.request);
            if !listens(&target.path, observation) {
                // It is searched for in the next look, which has what that takes.
                (target.path, target.ports, target.sought) = (Path::default(), Vec::new(), Instant::now());
            } else if are_searched && (target.is_due() || target.joins()) {
                target.find_path(observation, words);
            }
            let (report, unanswered) = with_ages(observation, &target.path, self.began_s, words);
            let report = Whereabouts { lacking: target.lacking.clone(), ..report };
            let age = target.age(self.recent.entries(), now_us);
            each(number, Looked { report, unanswered, path: &target.path, ports: &target.ports, observation, age });
        }
        if let Some(observation) = observation {
            self.recent.take_back(observation);
        }
    }
}

impl TargetPath {
    fn of(request: Request) -> Self {
        Self {
            request,
            path: Path::default(),
            searched: None,
            found_whole: Instant::now(),
            sought: Instant::now(),
            lacking: Vec::new(),
            ports: Vec::new(),
        }
    }

    /// A path that is new or gone is searched for in each look for a while. Then nothing listens there, and that may go on for ever.
    fn is_due(&self) -> bool {
        let is_sought = self.path.tiers.is_empty() && self.sought.elapsed() < SOUGHT_MAX;
        is_sought || self.searched.is_none_or(|searched| searched.elapsed() >= PATH_PERIOD)
    }

    /// What a search needs is read out once for all paths: one that is due soon joins, and from then on they are due together.
    fn joins(&self) -> bool {
        self.searched.is_none_or(|searched| searched.elapsed() >= PATH_PERIOD / 2)
    }

    /// How long before `now_us` its namespace was sampled last. Where nothing listens nothing is sampled, and any reading shows that it is looked at.
    fn age(&self, entries: &[Entry], now_us: u64) -> Option<Duration> {
        let first = self.path.tiers.first().and_then(|tier| tier.listeners.first()).map(|placed| placed.netns);
        let netns = first.or(self.request.server_netns).unwrap_or(self.request.client_netns);
        let counts = |entry: &&Entry| entry.scope == Scope::Netns(netns.0) && (first.is_none() || is_sample(entry));
        let newest = entries.iter().rfind(|entry| entry.at_us <= now_us && counts(entry))?;
        Some(Duration::from_micros(now_us.saturating_sub(newest.at_us)))
    }

    /// Searches for the path.
    fn find_path(&mut self, observation: &Observation, words: &Catalogue) {
        let found = path::discover(observation);
        if !is_less(&found, &self.path) || self.found_whole.elapsed() >= PATH_KEPT_MAX {
            self.path = found;
            self.found_whole = Instant::now();
        }
        self.searched = Some(Instant::now());
        self.lacking = lacking(observation, &self.path);
        self.ports = edge_ports(observation, &self.path, words);
    }
}

/// True for the sockets of a sample; another entry says how it was taken.
fn is_sample(entry: &Entry) -> bool {
    entry.source == SAMPLES && entry.item.is_empty()
}

/// Where a window begins that ends with the newest sample: every namespace that was sampled in the longest window has the samples that it is to have, if there are so
/// many.
fn begin_us(entries: &[Entry], newest_us: u64, window: Window) -> u64 {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let (usual_us, longest_us) = (newest_us.saturating_sub(micros(window.usual)), newest_us.saturating_sub(micros(window.longest)));
    let mut times: BTreeMap<Scope, Vec<u64>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| is_sample(entry) && (longest_us..=newest_us).contains(&entry.at_us)) {
        times.entry(entry.scope).or_default().push(entry.at_us);
    }
    let enough = |times: &Vec<u64>| times.iter().rev().nth(window.samples.saturating_sub(1)).or(times.first()).copied();
    times.values().filter_map(enough).fold(usual_us, u64::min)
}

/// True unless all listeners of the path's first tier are gone. Listeners are read some times a second, a path is searched for more rarely.
fn listens(path: &Path, observation: &Observation) -> bool {
    let Some(first) = path.tiers.first() else { return true };
    let is_there = |placed: &PlacedListener| {
        let newest = observation.netns.get(&placed.netns).and_then(|view| view.listeners.last());
        newest.is_none_or(|listeners| listeners.iter().any(|listener| listener.inode == placed.listener.inode))
    };
    first.listeners.iter().any(is_there)
}

/// True if `found` begins at the same listener as `known` and has fewer tiers, or none of the processes of a tier: a search within a budget does not see each every time.
fn is_less(found: &Path, known: &Path) -> bool {
    let inode = |path: &Path| path.tiers.first().and_then(|tier| tier.listeners.first()).map(|placed| placed.listener.inode);
    let lacks_processes = || found.tiers.iter().zip(&known.tiers).any(|(found, known)| found.pids.is_empty() && !known.pids.is_empty());
    inode(found) == inode(known) && (found.tiers.len() < known.tiers.len() || lacks_processes())
}

#[cfg(test)]
mod tests {
    use chokepoint_model::observation::{Listener, ListenerAddress, NetnsId, NetnsView};
    use chokepoint_model::path::Tier;
    use chokepoint_model::reading::Reading;
    use chokepoint_recording::Outcome;

    use super::*;

    /// A path with this many tiers whose first listener has this inode.
    fn path(inode: u64, tiers: usize) -> Path {
        let address = ListenerAddress::Tcp("10.0.0.2".parse().unwrap(), 80);
        let listener = Listener { address, v6_only: false, inode, accept_queue: 0, accept_queue_limit: 1, drops: None };
        let tier = |id| Tier {
            id: chokepoint_model::facts::TierId(id),
            name: String::new(),
            netns: NetnsId(1),
            listeners: vec![PlacedListener { netns: NetnsId(1), listener: listener.clone() }],
            children: Vec::new(),
            pids: Vec::new(),
            upstreams: Vec::new(),
            configured: Vec::new(),
            supposed: Vec::new(),
            apart: Vec::new(),
        };
        Path { tiers: (0..tiers).map(tier).collect(), ..Path::default() }
    }

    #[test]
    fn a_window_is_longer_where_samples_are_rare() {
        let window = Window { usual: Duration::from_secs(1), longest: Duration::from_secs(5), samples: 4 };
        let sample = |netns: u64, at_ms: u64| Entry {
            at_us: at_ms * 1000,
            source: SAMPLES.to_owned(),
            scope: Scope::Netns(netns),
            item: String::new(),
            outcome: Outcome::Ok(Vec::new()),
        };
        let begin_ms = |entries: &[Entry]| begin_us(entries, 10_000_000, window) / 1000;
        let often: Vec<Entry> = (0..=40).map(|n| sample(1, 2_000 + 200 * n)).collect();
        assert_eq!(begin_ms(&often), 9_000);
        let rare: Vec<Entry> = (0..10).map(|n| sample(2, 1_000 + 1_000 * n)).collect();
        assert_eq!(begin_ms(&rare), 7_000, "four samples");
        assert_eq!(begin_ms(&[often.clone(), rare].concat()), 7_000, "of each namespace");
        assert_eq!(begin_us(&often, 6_000_000, window), 5_000_000, "samples from behind its end do not count");
        assert_eq!((begin_ms(&[sample(1, 6_000), sample(1, 10_000)]), begin_ms(&[sample(1, 3_000)]), begin_ms(&[])), (6_000, 9_000, 9_000));
    }

    #[test]
    fn paths_that_were_searched_for_apart_are_searched_for_together() {
        let searched = |ago_ms: u64| TargetPath {
            path: path(7, 1),
            searched: Instant::now().checked_sub(Duration::from_millis(ago_ms)),
            ..TargetPath::of(Request::default())
        };
        let of = |ago_ms: u64| (searched(ago_ms).is_due(), searched(ago_ms).joins());
        assert_eq!([of(5_100), of(4_900), of(1_100)], [(true, true), (false, true), (false, false)]);
    }

    #[test]
    fn a_listener_that_was_not_read_is_not_gone() {
        let mut observation = Observation::default();
        assert!(listens(&path(7, 2), &observation) && listens(&Path::default(), &observation));
        let mut view = NetnsView::default();
        view.listeners.push(1, Reading::Ok(vec![path(7, 1).tiers[0].listeners[0].listener.clone()]));
        observation.netns.insert(NetnsId(1), view);
        assert!(listens(&path(7, 2), &observation) && !listens(&path(8, 2), &observation));
    }

    #[test]
    fn a_path_is_kept_if_less_is_found_behind_the_same_listener() {
        assert!(is_less(&path(7, 1), &path(7, 2)), "nothing called the second tier lately");
        assert!(!is_less(&path(7, 2), &path(7, 2)));
        assert!(!is_less(&path(7, 3), &path(7, 2)));
        assert!(!is_less(&path(8, 1), &path(7, 2)), "the server was restarted");
        assert!(!is_less(&path(7, 0), &path(7, 2)), "it has gone");
        let mut known = path(7, 2);
        known.tiers[1].pids = vec![42];
        assert!(is_less(&path(7, 2), &known) && !is_less(&known, &path(7, 2)), "the processes were not read this time");
    }
}
