//! Counters that only grow, as Prometheus wants them: sums of the samples since the program was started.

use std::collections::BTreeMap;

use chokepoint_recorder::TargetSample;
use chokepoint_statistics::histogram::Counts;

/// Most different statuses and places of losses of one server; a hostile log has any status.
const KINDS_MAX: usize = 1_000;

/// The sums of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    /// Answers, by the sockets.
    pub(crate) answered: f64,
    /// Lost requests by tier, place and kind.
    pub(crate) lost: BTreeMap<[String; 3], f64>,
    /// Answers by status, by the log.
    pub(crate) status: BTreeMap<u16, u64>,
    pub(crate) bytes: u64,
    /// Lines of the log that were not read.
    pub(crate) unread: u64,
    /// Counts by the names of NGINX Amplify.
    pub(crate) amplify: BTreeMap<&'static str, u64>,
    /// Durations of the log, microseconds.
    pub(crate) durations_us: BTreeMap<String, Counts>,
}

impl Totals {
    /// Adds what the logs gained by the names of NGINX Amplify.
    pub(crate) fn add_amplify(&mut self, counts: BTreeMap<&'static str, u64>) {
        for (name, count) in counts {
            let sum = self.amplify.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds a second.
    pub(crate) fn add(&mut self, sample: &TargetSample) {
        self.answered += sample.rate.sum;
        for loss in &sample.losses {
            let kind = serde_json::to_value(loss.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
            let key = [loss.tier.clone().unwrap_or_default(), loss.place.clone().unwrap_or_default(), kind];
            if self.lost.len() < KINDS_MAX || self.lost.contains_key(&key) {
                *self.lost.entry(key).or_default() += loss.count;
            }
        }
        let Some(logged) = &sample.logged else { return };
        for (status, count) in &logged.status {
            *self.status.entry(*status).or_default() += count;
        }
        self.bytes = self.bytes.saturating_add(logged.bytes);
        self.unread = self.unread.saturating_add(logged.unread);
        for (name, durations) in &logged.durations_us {
            self.durations_us.entry(name.clone()).or_default().merge(&durations.0);
        }
    }
}
