//! The readings of one source over time, in chronological order.

use crate::observation::reading::{Lack, Reading};

/// Readings of one kind over time. Times are microseconds since the observation began and never decrease.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<T> {
    points: Vec<(u64, T)>,
    absent: Option<(u64, Lack)>,
    failed: Option<Lack>,
    /// When readings failed.
    failures_us: Vec<u64>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { points: Vec::new(), absent: None, failed: None, failures_us: Vec::new() }
    }
}

/// How a source fared over the whole observation.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesState<'a> {
    /// It was never read.
    Unread,
    /// It gave at least one value and never failed.
    Ok,
    /// It gave no value because this host or this user does not have it.
    Absent(&'a Lack),
    /// At least one attempt failed; the number of failed attempts.
    Failed(&'a Lack, u64),
}

impl<T> Series<T> {
    /// Adds a reading taken `at_us` microseconds after the observation began.
    pub fn push(&mut self, at_us: u64, reading: Reading<T>) {
        match reading {
            Reading::Ok(value) => self.points.push((at_us, value)),
            Reading::Absent(lack) => self.absent = Some((at_us, lack)),
            Reading::Failed(lack) => {
                self.failures_us.push(at_us);
                self.failed = Some(lack);
            }
        }
    }

    /// Drops readings from before that time, but the newest of them: it has what was so at that time.
    pub fn let_go(&mut self, from_us: u64) {
        let absent_us = self.absent.as_ref().map(|(at_us, _)| *at_us);
        let times = self.points.iter().map(|(at_us, _)| *at_us).chain(absent_us).chain(self.failures_us.iter().copied());
        let Some(newest_us) = times.filter(|at_us| *at_us < from_us).max() else { return };
        let stays = |at_us: u64| at_us >= newest_us;
        self.points.retain(|(at_us, _)| stays(*at_us));
        self.failures_us.retain(|at_us| stays(*at_us));
        self.absent = self.absent.take().filter(|(at_us, _)| stays(*at_us));
        self.failed = self.failed.take().filter(|_| !self.failures_us.is_empty());
    }

    /// Extends the last value if it was taken at this time: for a reading that arrives in parts.
    pub fn amend(&mut self, at_us: u64, add: impl FnOnce(&mut T)) {
        if let Some((_, value)) = self.points.last_mut().filter(|(last_us, _)| *last_us == at_us) {
            add(value);
        }
    }

    /// When it was last found that there is nothing to read, if no value came after that: of a process, since when it has ended at the latest.
    pub fn gone_us(&self) -> Option<u64> {
        let last_us = self.points.last().map(|(at_us, _)| *at_us);
        self.absent.as_ref().map(|(at_us, _)| *at_us).filter(|absent_us| last_us.is_none_or(|last_us| *absent_us > last_us))
    }

    /// All values with their times (microseconds).
    pub fn points(&self) -> &[(u64, T)] {
        &self.points
    }

    /// All values in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.points.iter().map(|(_, value)| value)
    }

    /// The first value.
    pub fn first(&self) -> Option<&T> {
        self.points.first().map(|(_, value)| value)
    }

    /// The last value.
    pub fn last(&self) -> Option<&T> {
        self.points.last().map(|(_, value)| value)
    }

    /// The first and last value with the microseconds between them. `None` with fewer than two values or if no time passed.
    pub fn ends(&self) -> Option<(&T, &T, u64)> {
        let (first_us, first) = self.points.first()?;
        let (last_us, last) = self.points.last()?;
        (last_us > first_us).then_some((first, last, last_us - first_us))
    }

    /// How the source fared.
    pub fn state(&self) -> SeriesState<'_> {
        match (&self.failed, &self.absent, self.points.is_empty()) {
            (Some(lack), _, _) => SeriesState::Failed(lack, self.failures_us.len() as u64),
            (None, _, false) => SeriesState::Ok,
            (None, Some((_, lack)), true) => SeriesState::Absent(lack),
            (None, None, true) => SeriesState::Unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_is_forgotten_but_the_newest_of_it() {
        let mut series = Series::default();
        for at_us in 1..=9_u32 {
            series.push(at_us.into(), if at_us % 3 == 0 { Reading::Failed(Lack::new("no".to_owned())) } else { Reading::Ok(at_us) });
        }
        series.let_go(1);
        assert_eq!((series.points().len(), series.state()), (6, SeriesState::Failed(&Lack::new("no".to_owned()), 3)));
        series.let_go(6);
        assert_eq!(series.values().copied().collect::<Vec<_>>(), [5, 7, 8]);
        series.push(10, Reading::Ok(10));
        series.let_go(10);
        assert_eq!((series.values().count(), series.state()), (1, SeriesState::Failed(&Lack::new("no".to_owned()), 1)), "it failed last");
        series.let_go(11);
        assert_eq!((series.values().copied().collect::<Vec<_>>(), series.state()), (vec![10], SeriesState::Ok));
        series.push(12, Reading::Absent(Lack::new("gone".to_owned())));
        series.let_go(20);
        assert_eq!(series.state(), SeriesState::Absent(&Lack::new("gone".to_owned())));
    }

    #[test]
    fn only_a_value_of_the_same_time_is_added_to() {
        let mut series = Series::default();
        series.amend(1, |value: &mut u32| *value += 1);
        series.push(1, Reading::Ok(5));
        series.amend(1, |value| *value += 1);
        series.push(2, Reading::Failed(Lack::new("no".to_owned())));
        series.amend(2, |value| *value += 1);
        assert_eq!(series.points(), [(1, 6)]);
    }
}
