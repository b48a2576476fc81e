//! One look after the other at an observation that goes on: the readings of the last seconds, the path, and the account of both.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::Observation;
use chokepoint_model::observation::Request;
use chokepoint_model::path::{self, Path};
use chokepoint_model::report::{SourceReport, Whereabouts};
use chokepoint_model::whereabouts::{lacking, whereabouts};
use chokepoint_sources::{ObserveOptions, Observer, Recent};

use super::Setup;

/// Readings are kept for so long beyond the window: readers tell once a second, and a counter's value before the window belongs to it.
const MARGIN: Duration = Duration::from_secs(2);
/// The path is found anew this often: it changes rarely, and the connections of a busy host take long to go through.
const PATH_EVERY: Duration = Duration::from_secs(5);
/// A tier that short connections lead to is not seen each time: so long it is taken to be there still.
const PATH_HELD_MAX: Duration = Duration::from_secs(30);
/// Where nothing listens for so long, the host is surveyed anew: namespaces may have been made since.
const SURVEY_EVERY: Duration = Duration::from_secs(10);
/// Readers tell what they read at whole seconds of the observation's clock, and are done with it some time later.
const TOLD_EVERY: Duration = Duration::from_secs(1);
const TOLD_WITHIN: Duration = Duration::from_millis(250);
/// Sources from which only the path is found, or nothing of what is shown, and that are many bytes.
const NOT_COUNTED: [&str; 6] = ["sockets", "process_files", "conntrack_translations", "tcp_info", "time_wait", "process_syscall"];
/// The source of the samples.
const SAMPLES: &str = "requests";

/// The observation and what is known of it.
pub(super) struct Look<'a> {
    setup: &'a Setup,
    observer: Observer,
    /// When the observation's clock was zero, seconds since 1970.
    began_s: f64,
    /// When it was begun, or last tried to begin anew.
    began: Instant,
    recent: Recent,
    /// When the first sample was taken, microseconds of the observation's clock.
    first_us: Option<u64>,
    request: Request,
    path: Path,
    /// When the path was last found, and when it was last as long as it is now.
    found: Option<Instant>,
    seen_whole: Instant,
    lacking: Vec<SourceReport>,
}

impl<'a> Look<'a> {
    /// Begins to observe.
    pub(super) fn begin(setup: &'a Setup) -> Result<Self> {
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
            found: None,
            seen_whole: Instant::now(),
            lacking: Vec::new(),
        })
    }

    /// Time until readers have told next what they read.
    pub(super) fn until_told(&self) -> Duration {
        let period_us = TOLD_EVERY.as_micros() as u64;
        Duration::from_micros(period_us - self.observer.elapsed_us() % period_us) + TOLD_WITHIN
    }

    /// The account of the last seconds.
    pub(super) fn take(&mut self, words: &Catalogue) -> Whereabouts {
        if self.path.tiers.is_empty() && self.began.elapsed() >= SURVEY_EVERY {
            // A namespace that went away may come again: until then there is nothing new to see.
            match Self::begin(self.setup) {
                Ok(anew) => *self = anew,
                Err(_) => self.began = Instant::now(),
            }
        }
        self.recent.add(self.observer.drain());
        let window_us = self.window_us();
        let is_due = self.path.tiers.is_empty() || self.found.is_none_or(|found| found.elapsed() >= PATH_EVERY);
        let observation = self.recent.observation(&self.request, window_us, if is_due { &[] } else { &NOT_COUNTED });
        if is_due {
            self.follow(&observation);
        }
        let report = whereabouts(&observation, &self.path, self.began_s, words);
        Whereabouts { lacking: self.lacking.clone(), ..report }
    }

    /// Finds the path anew.
    fn follow(&mut self, observation: &Observation) {
        let found = path::discover(observation);
        if !is_shorter(&found, &self.path) || self.seen_whole.elapsed() >= PATH_HELD_MAX {
            self.path = found;
            self.seen_whole = Instant::now();
        }
        self.found = Some(Instant::now());
        self.lacking = lacking(observation, &self.path);
    }

    /// The window that ends with the newest sample, and begins no sooner than the first.
    fn window_us(&mut self) -> (u64, u64) {
        let mut times = self.recent.entries().iter().filter(|entry| entry.source == SAMPLES).map(|entry| entry.at_us);
        let first_us = *self.first_us.get_or_insert_with(|| times.next().unwrap_or_else(|| self.observer.elapsed_us()));
        let newest_us = times.next_back().unwrap_or_else(|| self.observer.elapsed_us());
        let window_us = u64::try_from(self.setup.window.as_micros()).unwrap_or(u64::MAX);
        (newest_us.saturating_sub(window_us).max(first_us), newest_us)
    }
}

/// True where a path leads through the same listener and not as far.
fn is_shorter(found: &Path, known: &Path) -> bool {
    let inode = |path: &Path| path.tiers.first().and_then(|tier| tier.listeners.first()).map(|placed| placed.listener.inode);
    found.tiers.len() < known.tiers.len() && inode(found) == inode(known)
}

#[cfg(test)]
mod tests {
    use chokepoint_model::observation::{Listener, ListenerAddress, NetnsId};
    use chokepoint_model::path::{PlacedListener, Tier};

    use super::*;

    /// A path whose first listener has this inode, and so many tiers.
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
    fn a_path_is_held_where_fewer_tiers_are_seen_behind_the_same_listener() {
        assert!(is_shorter(&path(7, 1), &path(7, 2)), "nothing called the second tier lately");
        assert!(!is_shorter(&path(7, 2), &path(7, 2)));
        assert!(!is_shorter(&path(7, 3), &path(7, 2)));
        assert!(!is_shorter(&path(8, 1), &path(7, 2)), "the server was started anew");
        assert!(!is_shorter(&path(7, 0), &path(7, 2)), "it has gone");
    }
}
