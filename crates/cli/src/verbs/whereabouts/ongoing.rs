//! An observation without an end: the readings of the last seconds, the path, and the ledger of both.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::path::{self, Path};
use chokepoint_model::report::{SourceReport, Whereabouts};
use chokepoint_model::whereabouts::{lacking, whereabouts};
use chokepoint_sources::{ObserveOptions, Observer, Recent};

use super::setup::WhereSetup;

/// Readings are kept this much longer than the window: readers report once a second, and the growth of a counter needs its value before the window.
const MARGIN: Duration = Duration::from_secs(2);
/// Time between two searches for the path. It changes rarely, and reading the connections of a busy host takes long.
const PATH_PERIOD: Duration = Duration::from_secs(5);
/// A search can miss a tier that is called over short connections. A longer path is kept for this long.
const PATH_KEPT_MAX: Duration = Duration::from_secs(30);
/// If nothing listens for this long, the host is surveyed again: there may be new namespaces.
const SURVEY_PERIOD: Duration = Duration::from_secs(10);
/// Readers report at whole seconds of the observation's clock. A report takes up to the second time.
const REPORT_PERIOD: Duration = Duration::from_secs(1);
const REPORT_TIME_MAX: Duration = Duration::from_millis(250);
/// Large sources that the ledger does not need: they serve only the path, or are not shown.
const NOT_FOR_LEDGER: [&str; 6] = ["sockets", "process_files", "conntrack_translations", "tcp_info", "time_wait", "process_syscall"];
/// The source of the samples.
const SAMPLES: &str = "requests";

/// The observation and the path found in it.
pub(super) struct Ongoing<'a> {
    setup: &'a WhereSetup,
    observer: Observer,
    /// Zero of the observation's clock, seconds since 1970.
    began_s: f64,
    /// When it began, or when a new survey was last tried.
    began: Instant,
    recent: Recent,
    /// Time of the first sample, microseconds of the observation's clock.
    first_us: Option<u64>,
    request: Request,
    path: Path,
    /// When the path was last searched for, and when it was last found in its present length.
    searched: Option<Instant>,
    found_whole: Instant,
    lacking: Vec<SourceReport>,
}

impl<'a> Ongoing<'a> {
    /// Starts to observe.
    pub(super) fn begin(setup: &'a WhereSetup) -> Result<Self> {
        let request = setup.request()?;
        let observer = Observer::start(ObserveOptions::endless(request.clone())).context("the host cannot be observed")?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Self {
            began_s: now_s - observer.elapsed_us() as f64 / 1e6,
            began: Instant::now(),
            recent: Recent::new(setup.window + MARGIN),
            observer,
            first_us: None,
            request,
            setup,
            path: Path::default(),
            searched: None,
            found_whole: Instant::now(),
            lacking: Vec::new(),
        })
    }

    /// Time until the readers' next report is complete.
    pub(super) fn until_readings(&self) -> Duration {
        let period_us = REPORT_PERIOD.as_micros() as u64;
        Duration::from_micros(period_us - self.observer.elapsed_us() % period_us) + REPORT_TIME_MAX
    }

    /// The ledger of the last seconds.
    pub(super) fn ledger(&mut self, words: &Catalogue) -> Whereabouts {
        if self.path.tiers.is_empty() && self.began.elapsed() >= SURVEY_PERIOD {
            // This fails while a named namespace is gone. It may come back.
            match Self::begin(self.setup) {
                Ok(anew) => *self = anew,
                Err(_) => self.began = Instant::now(),
            }
        }
        self.recent.add(self.observer.drain());
        let window_us = self.window_us();
        let is_due = self.path.tiers.is_empty() || self.searched.is_none_or(|searched| searched.elapsed() >= PATH_PERIOD);
        let observation = self.recent.observation(&self.request, window_us, if is_due { &[] } else { &NOT_FOR_LEDGER });
        if is_due {
            self.find_path(&observation);
        }
        let report = whereabouts(&observation, &self.path, self.began_s, words);
        Whereabouts { lacking: self.lacking.clone(), ..report }
    }

    /// Searches for the path.
    fn find_path(&mut self, observation: &Observation) {
        let found = path::discover(observation);
        if !is_shorter(&found, &self.path) || self.found_whole.elapsed() >= PATH_KEPT_MAX {
            self.path = found;
            self.found_whole = Instant::now();
        }
        self.searched = Some(Instant::now());
        self.lacking = lacking(observation, &self.path);
    }

    /// The window: it ends with the newest sample and does not begin before the first one.
    fn window_us(&mut self) -> (u64, u64) {
        let mut times = self.recent.entries().iter().filter(|entry| entry.source == SAMPLES).map(|entry| entry.at_us);
        let first_us = *self.first_us.get_or_insert_with(|| times.next().unwrap_or_else(|| self.observer.elapsed_us()));
        let newest_us = times.next_back().unwrap_or_else(|| self.observer.elapsed_us());
        let window_us = u64::try_from(self.setup.window.as_micros()).unwrap_or(u64::MAX);
        (newest_us.saturating_sub(window_us).max(first_us), newest_us)
    }
}

/// True if `found` begins at the same listener as `known` and has fewer tiers.
fn is_shorter(found: &Path, known: &Path) -> bool {
    let inode = |path: &Path| path.tiers.first().and_then(|tier| tier.listeners.first()).map(|placed| placed.listener.inode);
    found.tiers.len() < known.tiers.len() && inode(found) == inode(known)
}

#[cfg(test)]
mod tests {
    use chokepoint_model::observation::{Listener, ListenerAddress, NetnsId};
    use chokepoint_model::path::{PlacedListener, Tier};

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
            pids: Vec::new(),
            upstreams: Vec::new(),
            configured: Vec::new(),
        };
        Path { tiers: (0..tiers).map(tier).collect(), ..Path::default() }
    }

    #[test]
    fn a_path_is_kept_if_fewer_tiers_are_found_behind_the_same_listener() {
        assert!(is_shorter(&path(7, 1), &path(7, 2)), "nothing called the second tier lately");
        assert!(!is_shorter(&path(7, 2), &path(7, 2)));
        assert!(!is_shorter(&path(7, 3), &path(7, 2)));
        assert!(!is_shorter(&path(8, 1), &path(7, 2)), "the server was restarted");
        assert!(!is_shorter(&path(7, 0), &path(7, 2)), "it has gone");
    }
}
