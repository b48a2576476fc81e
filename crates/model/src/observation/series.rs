//! The readings of one source over time, in chronological order.

use crate::observation::reading::{Lack, Reading};

/// Readings of one kind over time. Times are microseconds since the observation began and never decrease.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<T> {
    points: Vec<(u64, T)>,
    absent: Option<Lack>,
    failed: Option<Lack>,
    failures: u64,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { points: Vec::new(), absent: None, failed: None, failures: 0 }
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
            Reading::Absent(lack) => self.absent = Some(lack),
            Reading::Failed(lack) => {
                self.failures += 1;
                self.failed = Some(lack);
            }
        }
    }

    /// Extends the last value if it was taken at this time: for a reading that arrives in parts.
    pub fn amend(&mut self, at_us: u64, add: impl FnOnce(&mut T)) {
        if let Some((_, value)) = self.points.last_mut().filter(|(last_us, _)| *last_us == at_us) {
            add(value);
        }
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
            (Some(lack), _, _) => SeriesState::Failed(lack, self.failures),
            (None, _, false) => SeriesState::Ok,
            (None, Some(lack), true) => SeriesState::Absent(lack),
            (None, None, true) => SeriesState::Unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
