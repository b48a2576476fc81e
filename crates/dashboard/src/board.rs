//! What is shown: the newest second, and counters since the start. One thread writes it, requests read it. How old it is follows from the clock of those who read: a
//! thread that hangs cannot say that it hangs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chokepoint_model::observation::{NginxStatus, PhpFpmStatus};
use chokepoint_recorder::{Durations, ResponseTimes, Sample, TargetSample, is_stale};
use tokio::sync::watch;

use crate::freshness::{Freshness, Moment};
use crate::totals::Totals;

/// Servers whose sums are kept, also while they are not watched.
const SERVERS_MAX: usize = 64;

/// A second, with what is shown of it and not kept.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The sample.
    pub sample: Sample,
    /// nginx's own counts, by server.
    pub nginx: BTreeMap<String, NginxStatus>,
    /// Those of php-fpm's pools, by the server in front of them.
    pub fpm: BTreeMap<String, Vec<PhpFpmStatus>>,
    /// What a page is to say of this second, as a JSON document.
    pub said: String,
    /// What the logs gained by the names of NGINX Amplify, by server.
    pub amplify: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Values under its names that are no counts, by server. Those that were not seen this time stay as they were.
    pub values: BTreeMap<String, BTreeMap<&'static str, f64>>,
    /// How long ago it was measured; nothing if nothing was. A host without servers is measured by the look for them.
    pub age: Option<Duration>,
    /// The same of each server. One that is missing was not measured.
    pub ages: BTreeMap<String, Duration>,
}

/// When something was measured last.
#[derive(Debug, Clone, Copy)]
struct Measured {
    moment: Moment,
    /// The second that it belongs to; nothing before the first.
    at_s: Option<u64>,
}

/// The state that is shown.
#[derive(Debug)]
pub struct Board {
    state: Mutex<State>,
    /// Apart from the state, so that it is known whatever is done with that.
    measured: Mutex<Measured>,
    /// Counts the seconds that were shown.
    news: watch::Sender<u64>,
}

/// A document that changes rarely and is large, and its text as JSON.
pub(crate) type Document = Arc<str>;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) newest: Option<Sample>,
    /// When each server was measured last.
    measured: BTreeMap<String, Moment>,
    pub(crate) said: String,
    /// What names mean, for the page; empty until it is given.
    pub(crate) about: Document,
    /// What the last look at the path of each server found.
    pub(crate) looks: Document,
    pub(crate) totals: BTreeMap<String, Totals>,
    pub(crate) nginx: BTreeMap<String, NginxStatus>,
    pub(crate) values: BTreeMap<String, BTreeMap<&'static str, f64>>,
    pub(crate) fpm: BTreeMap<String, Vec<PhpFpmStatus>>,
    /// Durations in the log of the last minute, by server and kind.
    pub(crate) durations_us: BTreeMap<String, BTreeMap<String, Durations>>,
    /// Response times of the last minute, by server.
    pub(crate) responses: BTreeMap<String, ResponseTimes>,
    /// Incidents that were told, by server, and those that last.
    pub(crate) incidents: BTreeMap<String, u64>,
    pub(crate) open: BTreeMap<String, u64>,
}

impl Default for Board {
    fn default() -> Self {
        let state = State {
            newest: None,
            measured: BTreeMap::new(),
            said: String::new(),
            about: "{}".into(),
            looks: "{}".into(),
            totals: BTreeMap::new(),
            nginx: BTreeMap::new(),
            values: BTreeMap::new(),
            fpm: BTreeMap::new(),
            durations_us: BTreeMap::new(),
            responses: BTreeMap::new(),
            incidents: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        let measured = Measured { moment: Moment::ago(Duration::ZERO), at_s: None };
        Self { state: Mutex::new(state), measured: Mutex::new(measured), news: watch::Sender::new(0) }
    }
}

impl Board {
    /// Shows a second.
    pub fn see(&self, seen: Seen) {
        if let Some(age) = seen.age {
            let (moment, mut measured) = (Moment::ago(age), self.measured());
            // A look may see the same as the one before; then it is of that second.
            if measured.at_s.is_none() || moment.is_after(measured.moment) {
                let late_s = if is_stale(age) { age.as_secs() } else { 0 };
                *measured = Measured { moment, at_s: Some(seen.sample.at_s.saturating_sub(late_s)) };
            }
        }
        let mut state = self.state();
        state.measured.extend(seen.ages.into_iter().map(|(name, age)| (name, Moment::ago(age))));
        state.measured.retain(|name, _| seen.sample.target(name).is_some());
        if state.totals.len() > SERVERS_MAX {
            state.totals.retain(|name, _| seen.sample.target(name).is_some());
        }
        for target in &seen.sample.targets {
            state.totals.entry(target.target.clone()).or_default().add(target);
        }
        for (target, counts) in seen.amplify {
            state.totals.entry(target).or_default().add_amplify(counts);
        }
        state.values.retain(|name, _| seen.sample.target(name).is_some());
        for (target, values) in seen.values {
            state.values.entry(target).or_default().extend(values);
        }
        (state.nginx, state.fpm) = (seen.nginx, seen.fpm);
        (state.newest, state.said) = (Some(seen.sample), seen.said);
        drop(state);
        self.news.send_modify(|seconds| *seconds += 1);
    }

    /// Shows what names mean.
    pub fn about(&self, document: &str) {
        self.state().about = document.into();
    }

    /// Shows what was found at the paths of the servers.
    pub fn looked(&self, document: &str) {
        self.state().looks = document.into();
    }

    /// Changes with each second that is shown.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Shows what only a minute tells.
    pub fn see_minute(&self, minute: &Sample) {
        let response = |target: &TargetSample| Some((target.target.clone(), target.response?));
        let mut state = self.state();
        state.responses = minute.targets.iter().filter_map(response).collect();
        let durations = |target: &TargetSample| Some((target.target.clone(), target.logged.as_ref()?.durations_us.clone()));
        state.durations_us = minute.targets.iter().filter_map(durations).collect();
    }

    /// An incident of this server was told, or is over.
    pub fn incident(&self, target: &str, lasts: bool) {
        let mut state = self.state();
        if lasts {
            *state.incidents.entry(target.to_owned()).or_default() += 1;
        }
        let open = state.open.entry(target.to_owned()).or_default();
        *open = if lasts { *open + 1 } else { open.saturating_sub(1) };
    }

    /// How old the newest second is.
    pub fn freshness(&self) -> Freshness {
        let Measured { moment, at_s } = *self.measured();
        Freshness::of(at_s, moment)
    }

    /// When something was measured last, seconds since 1970; nothing before the first time.
    pub(crate) fn measured_s(&self) -> Option<f64> {
        let Measured { moment, at_s } = *self.measured();
        at_s.map(|_| moment.since_1970_s())
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// True if what is known of a server may be shown as now.
    pub(crate) fn is_fresh(&self, server: &str) -> bool {
        self.measured.get(server).is_some_and(|moment| !is_stale(moment.age()))
    }

    /// When each server was measured last, seconds since 1970.
    pub(crate) fn measured_s(&self) -> impl Iterator<Item = (&String, f64)> {
        self.measured.iter().map(|(server, moment)| (server, moment.since_1970_s()))
    }
}
