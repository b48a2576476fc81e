//! How old what is shown is. It follows from the clock of those who ask: a thread that hangs cannot say that it hangs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chokepoint_recorder::is_stale;
use serde::Serialize;

/// By how much the two clocks may differ before the one of the day counts as set anew, seconds.
const CLOCK_SET_MIN_S: f64 = 1.0;

/// Two moments that differ by less are one: ages are read one after the other.
const SAME: Duration = Duration::from_millis(50);

/// How old the newest second is, as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Freshness {
    /// The newest second that was measured, since 1970; nothing before the first.
    pub newest_s: Option<u64>,
    /// Seconds since it was measured; before the first, since the start.
    pub age_s: f64,
    /// It is too old to be shown as now.
    pub stale: bool,
}

impl Freshness {
    pub(crate) fn of(newest_s: Option<u64>, measured: Moment) -> Self {
        let age = measured.age();
        Self { newest_s, age_s: (age.as_secs_f64() * 10.0).round() / 10.0, stale: is_stale(age) }
    }
}

/// A moment by two clocks: one that is never set tells its age, the other the time of day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    /// Seconds since 1970, to the millisecond.
    at_s: f64,
}

impl Moment {
    /// So long ago.
    pub(crate) fn ago(age: Duration) -> Self {
        let now = Instant::now();
        let at = now.checked_sub(age).unwrap_or(now);
        Self { at, at_s: day(at) }
    }

    /// True if it is later by more than the two were rounded.
    pub(crate) fn is_after(self, other: Self) -> bool {
        self.at > other.at + SAME
    }

    pub(crate) fn age(self) -> Duration {
        self.at.elapsed()
    }

    /// Seconds since 1970, by the clock as it is set now.
    pub(crate) fn since_1970_s(self) -> f64 {
        let now = day(self.at);
        if (now - self.at_s).abs() >= CLOCK_SET_MIN_S { now } else { self.at_s }
    }
}

fn day(at: Instant) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.saturating_sub(at.elapsed()).as_secs_f64() * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_its_age_and_follows_a_clock_that_is_set() {
        let moment = Moment::ago(Duration::from_secs(8));
        assert!(moment.age() >= Duration::from_secs(8));
        assert_eq!(moment.since_1970_s(), moment.at_s, "it does not tremble between two scrapes");
        let before_it_was_set = Moment { at_s: moment.at_s - 3_600.0, ..moment };
        assert!((before_it_was_set.since_1970_s() - moment.at_s).abs() < 1.0);
    }

    #[test]
    fn what_is_older_than_the_bound_is_stale() {
        let of = |age_s: u64| Freshness::of(Some(7), Moment::ago(Duration::from_secs(age_s)));
        assert_eq!((of(0).stale, of(8).stale, of(8).newest_s), (false, true, Some(7)));
        assert!(of(8).age_s >= 8.0);
        assert!(Moment::ago(Duration::ZERO).is_after(Moment::ago(Duration::from_secs(1))));
        assert!(!Moment::ago(Duration::from_secs(1)).is_after(Moment::ago(Duration::from_secs(1))));
    }
}
