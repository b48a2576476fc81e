//! What a viewer may see of a load under way: rates, outcomes and percentiles, a tenth of a second old.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use chokepoint_model::load::{Errors, Percentiles};

use crate::engine::control::Control;
use crate::engine::shared::lock;
use crate::results::histogram::Durations;
use crate::results::tally::add_errors;

/// Most tenths of a second that are kept for the viewer.
const TENTHS_MAX: usize = 1_200;
/// Time over which the recent percentiles are taken.
const RECENT: Duration = Duration::from_secs(1);
/// Looks of the viewer that are kept for that.
const LOOKS_MAX: usize = 16;

/// One thread's counts as it last told them.
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
    /// Whatever their end.
    pub ended: u64,
    /// Those with an expected answer.
    pub good: u64,
}

/// What the threads have told.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The last tenths of a second, and the number of the first of them.
    tenths: VecDeque<Tenth>,
    first: u64,
    threads: BTreeMap<usize, Snapshot>,
}

impl Shown {
    /// A thread tells of a tenth of a second that is over.
    pub(crate) fn tell(&mut self, thread: usize, number: u64, tenth: Tenth, snapshot: Snapshot) {
        self.threads.insert(thread, snapshot);
        while self.first + (self.tenths.len() as u64) <= number {
            if self.tenths.len() == TENTHS_MAX {
                self.tenths.pop_front();
                self.first += 1;
            }
            self.tenths.push_back(Tenth::default());
        }
        // What is so late that its place has gone is seen by nobody.
        if let Some(sum) = number.checked_sub(self.first).and_then(|place| self.tenths.get_mut(place as usize)) {
            sum.ended += tenth.ended;
            sum.good += tenth.good;
        }
    }
}

/// What is to be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The last tenths of a second, the warm-up left out; at most two minutes of them.
    pub tenths: Vec<Tenth>,
    /// Answers by their status.
    pub status: BTreeMap<u16, u64>,
    /// Requests without an answer.
    pub errors: Errors,
    /// Latency of all requests so far.
    pub latency_us: Percentiles,
    /// The same of the last second or so; all zero where nothing ended in it.
    pub recent_us: Percentiles,
    /// The first of each kind that went wrong.
    pub samples: Vec<String>,
}

/// Somebody who looks at a load.
#[derive(Debug, Default)]
pub struct Viewer {
    looks: VecDeque<(Instant, Durations)>,
}

impl Viewer {
    /// Looks now; nothing where the load is not watched ([`Control::watched`]) or has not told anything yet.
    pub fn look(&mut self, control: &Control) -> Option<View> {
        let mut view = View::default();
        let mut latency: Option<Durations> = None;
        {
            let told = lock(control.told()?);
            for snapshot in told.threads.values() {
                match &mut latency {
                    Some(sum) => sum.add(&snapshot.latency),
                    None => latency = Some(snapshot.latency.clone()),
                }
                for (status, count) in &snapshot.status {
                    *view.status.entry(*status).or_default() += count;
                }
                add_errors(&mut view.errors, &snapshot.errors);
                view.samples.extend(snapshot.samples.iter().cloned());
            }
            view.tenths = told.tenths.iter().copied().collect();
        }
        let latency = latency?;
        view.samples.sort();
        view.samples.dedup();
        view.latency_us = latency.percentiles();
        let now = Instant::now();
        // The youngest look that is old enough; before there is one, the oldest.
        while self.looks.len() > 1 && now.duration_since(self.looks[1].0) >= RECENT {
            self.looks.pop_front();
        }
        let mut recent = latency.clone();
        if let Some((_, before)) = self.looks.front() {
            recent.take_off(before);
        }
        view.recent_us = recent.percentiles();
        if self.looks.back().is_none_or(|(at, _)| now.duration_since(*at) >= RECENT / LOOKS_MAX as u32 * 2) {
            self.looks.push_back((now, latency));
        }
        Some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(ms: u64, times: u64) -> Snapshot {
        let mut latency = Durations::new();
        latency.record_ns_times(ms * 1_000_000, times);
        Snapshot { latency, status: [(200, times)].into(), errors: Errors::default(), samples: vec!["a sample".to_owned()] }
    }

    #[test]
    fn the_threads_are_seen_as_one() {
        let control = Control::watched();
        let mut viewer = Viewer::default();
        assert_eq!(viewer.look(&control), None, "nothing was told yet");
        let tenth = |ended: u64| Tenth { ended, good: ended };
        lock(control.told().expect("it is watched")).tell(0, 0, tenth(5), snapshot(10, 5));
        lock(control.told().expect("it is watched")).tell(1, 1, tenth(3), snapshot(20, 3));
        lock(control.told().expect("it is watched")).tell(1, 0, tenth(1), snapshot(20, 4));
        let view = viewer.look(&control).expect("there is something");
        assert_eq!(view.tenths, [tenth(6), tenth(3)]);
        assert_eq!((view.status, view.samples), ([(200, 9)].into(), vec!["a sample".to_owned()]));
        assert_eq!((view.latency_us.max, view.latency_us), (20_000, view.recent_us));
        assert_eq!(Viewer::default().look(&Control::new()), None, "nobody asked to watch");
    }

    #[test]
    fn recent_is_what_came_since() {
        let control = Control::watched();
        let mut viewer = Viewer::default();
        lock(control.told().expect("it is watched")).tell(0, 0, Tenth::default(), snapshot(10, 100));
        viewer.look(&control);
        let mut later = snapshot(10, 100);
        later.latency.record_ns_times(500_000_000, 10);
        lock(control.told().expect("it is watched")).tell(0, 1, Tenth::default(), later);
        let view = viewer.look(&control).expect("there is something");
        assert!(view.recent_us.p50 >= 499_000 && view.latency_us.p50 <= 10_010, "{view:?}");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut told = Shown::default();
        for number in 0..10_000 {
            told.tell(0, number, Tenth { ended: number, good: 0 }, snapshot(1, 1));
        }
        told.tell(0, 3, Tenth { ended: 7, good: 0 }, snapshot(1, 1));
        assert_eq!((told.tenths.len(), told.tenths.back().map(|tenth| tenth.ended)), (TENTHS_MAX, Some(9_999)));
        assert_eq!(told.tenths.front().map(|tenth| tenth.ended), Some(10_000 - TENTHS_MAX as u64));
    }
}
