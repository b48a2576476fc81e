//! What is shown: the newest second, and counters since the start. One thread writes it, requests read it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chokepoint_model::observation::NginxStatus;
use chokepoint_recorder::{ResponseTimes, Sample, TargetSample};

use crate::totals::Totals;

/// A second, with what is shown of it and not kept.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The sample.
    pub sample: Sample,
    /// nginx's own counts, by server.
    pub nginx: BTreeMap<String, NginxStatus>,
}

/// The state that is shown.
#[derive(Debug)]
pub struct Board(Mutex<State>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) newest: Option<Sample>,
    pub(crate) totals: BTreeMap<String, Totals>,
    pub(crate) nginx: BTreeMap<String, NginxStatus>,
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
        for target in &seen.sample.targets {
            state.totals.entry(target.target.clone()).or_default().add(target);
        }
        state.nginx = seen.nginx;
        state.newest = Some(seen.sample);
    }

    /// Shows what only a minute tells.
    pub fn see_minute(&self, minute: &Sample) {
        let response = |target: &TargetSample| Some((target.target.clone(), target.response?));
        self.state().responses = minute.targets.iter().filter_map(response).collect();
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
