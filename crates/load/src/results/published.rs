//! The counts that the threads of a watched load publish for a viewer.

use std::collections::{BTreeMap, VecDeque};

use chokepoint_model::load::Errors;

use crate::results::histogram::Durations;

/// Maximum tenths of a second kept for the viewer.
pub(crate) const TENTHS_MAX: usize = 1_200;

/// The counts of one thread as last published.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) latency: Durations,
    pub(crate) status: BTreeMap<u16, u64>,
    pub(crate) errors: Errors,
    pub(crate) samples: Vec<String>,
}

/// Requests that ended in a tenth of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tenth {
    /// All requests.
    pub ended: u64,
    /// Those with an expected answer.
    pub good: u64,
}

/// What the threads have published.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// The last tenths of a second, and the number of the first of them.
    pub(crate) tenths: VecDeque<Tenth>,
    first: u64,
    pub(crate) threads: BTreeMap<usize, Snapshot>,
}

impl Published {
    /// Adds a thread's finished tenth of a second.
    pub(crate) fn add(&mut self, thread: usize, number: u64, tenth: Tenth, snapshot: Snapshot) {
        self.threads.insert(thread, snapshot);
        while self.first + (self.tenths.len() as u64) <= number {
            if self.tenths.len() == TENTHS_MAX {
                self.tenths.pop_front();
                self.first += 1;
            }
            self.tenths.push_back(Tenth::default());
        }
        // Counts that come after their tenth has been dropped are ignored.
        if let Some(sum) = number.checked_sub(self.first).and_then(|place| self.tenths.get_mut(place as usize)) {
            sum.ended += tenth.ended;
            sum.good += tenth.good;
        }
    }
}
