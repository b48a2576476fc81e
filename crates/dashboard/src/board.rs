//! What is shown: the newest second, and counters since the start. One thread writes it, requests read it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chokepoint_model::observation::{NginxStatus, PhpFpmStatus};
use chokepoint_recorder::{Durations, ResponseTimes, Sample, TargetSample};

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
    /// What the logs gained by the names of NGINX Amplify, by server.
    pub amplify: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

/// The state that is shown.
#[derive(Debug)]
pub struct Board(Mutex<State>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) newest: Option<Sample>,
    pub(crate) totals: BTreeMap<String, Totals>,
    pub(crate) nginx: BTreeMap<String, NginxStatus>,
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
        Self(Mutex::new(State {
            newest: None,
            totals: BTreeMap::new(),
            nginx: BTreeMap::new(),
            fpm: BTreeMap::new(),
            durations_us: BTreeMap::new(),
            responses: BTreeMap::new(),
            incidents: BTreeMap::new(),
            open: BTreeMap::new(),
        }))
    }
}

impl Board {
    /// Shows a second.
    pub fn see(&self, seen: Seen) {
        let mut state = self.state();
        if state.totals.len() > SERVERS_MAX {
            state.totals.retain(|name, _| seen.sample.target(name).is_some());
        }
        for target in &seen.sample.targets {
            state.totals.entry(target.target.clone()).or_default().add(target);
        }
        for (target, counts) in seen.amplify {
            state.totals.entry(target).or_default().add_amplify(counts);
        }
        (state.nginx, state.fpm) = (seen.nginx, seen.fpm);
        state.newest = Some(seen.sample);
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

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
