//! What a viewer sees of a running load: rates, outcomes and percentiles, up to a tenth of a second old.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use chokepoint_model::load::{Errors, Percentiles};

use crate::engine::control::{Control, lock};
use crate::results::histogram::Durations;
use crate::results::outcome::add_errors;
use crate::results::published::Tenth;

/// Time span of the recent percentiles.
const RECENT: Duration = Duration::from_secs(1);
/// Number of the viewer's earlier looks kept for them.
const LOOKS_MAX: usize = 16;

/// What the viewer sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The last tenths of a second without the warm-up; at most two minutes.
    pub tenths: Vec<Tenth>,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Requests without an answer.
    pub errors: Errors,
    /// Latency of all requests so far.
    pub latency_us: Percentiles,
    /// Latency of about the last second; all zero if nothing ended in it.
    pub recent_us: Percentiles,
    /// The first example of each kind of failure.
    pub samples: Vec<String>,
}

/// Watches a load.
#[derive(Debug, Default)]
pub struct Viewer {
    looks: VecDeque<(Instant, Durations)>,
}

impl Viewer {
    /// Looks now; none if the load is not watched ([`Control::watched`]) or has not published anything yet.
    pub fn look(&mut self, control: &Control) -> Option<View> {
        let mut view = View::default();
        let mut latency: Option<Durations> = None;
        {
            let published = lock(control.published()?);
            for snapshot in published.threads.values() {
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
            view.tenths = published.tenths.iter().copied().collect();
        }
        let latency = latency?;
        view.samples.sort();
        view.samples.dedup();
        view.latency_us = latency.percentiles();
        let now = Instant::now();
        // The latest look that is old enough; before there is one, the oldest.
        while self.looks.len() > 1 && now.duration_since(self.looks[1].0) >= RECENT {
            self.looks.pop_front();
        }
        let mut recent = latency.clone();
        if let Some((_, before)) = self.looks.front() {
            recent.subtract(before);
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
    use crate::results::published::{Published, Snapshot, TENTHS_MAX};

    fn snapshot(ms: u64, times: u64) -> Snapshot {
        let mut latency = Durations::default();
        latency.record_ns_times(ms * 1_000_000, times);
        Snapshot { latency, status: [(200, times)].into(), errors: Errors::default(), samples: vec!["a sample".to_owned()] }
    }

    #[test]
    fn the_counts_of_all_threads_are_added() {
        let control = Control::watched();
        let mut viewer = Viewer::default();
        assert_eq!(viewer.look(&control), None, "nothing was told yet");
        let tenth = |ended: u64| Tenth { ended, good: ended };
        lock(control.published().expect("it is watched")).add(0, 0, tenth(5), snapshot(10, 5));
        lock(control.published().expect("it is watched")).add(1, 1, tenth(3), snapshot(20, 3));
        lock(control.published().expect("it is watched")).add(1, 0, tenth(1), snapshot(20, 4));
        let view = viewer.look(&control).expect("there is something");
        assert_eq!(view.tenths, [tenth(6), tenth(3)]);
        assert_eq!((view.status, view.samples), ([(200, 9)].into(), vec!["a sample".to_owned()]));
        assert_eq!((view.latency_us.max, view.latency_us), (20_000, view.recent_us));
        assert_eq!(Viewer::default().look(&Control::new()), None, "nobody asked to watch");
    }

    #[test]
    fn recent_percentiles_cover_the_time_since_the_last_look() {
        let control = Control::watched();
        let mut viewer = Viewer::default();
        lock(control.published().expect("it is watched")).add(0, 0, Tenth::default(), snapshot(10, 100));
        viewer.look(&control);
        let mut later = snapshot(10, 100);
        later.latency.record_ns_times(500_000_000, 10);
        lock(control.published().expect("it is watched")).add(0, 1, Tenth::default(), later);
        let view = viewer.look(&control).expect("there is something");
        assert!(view.recent_us.p50 >= 499_000 && view.latency_us.p50 <= 10_010, "{view:?}");
    }

    #[test]
    fn the_kept_tenths_are_bounded() {
        let mut published = Published::default();
        for number in 0..10_000 {
            published.add(0, number, Tenth { ended: number, good: 0 }, snapshot(1, 1));
        }
        published.add(0, 3, Tenth { ended: 7, good: 0 }, snapshot(1, 1));
        assert_eq!((published.tenths.len(), published.tenths.back().map(|tenth| tenth.ended)), (TENTHS_MAX, Some(9_999)));
        assert_eq!(published.tenths.front().map(|tenth| tenth.ended), Some(10_000 - TENTHS_MAX as u64));
    }
}
