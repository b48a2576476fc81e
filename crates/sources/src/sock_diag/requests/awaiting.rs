//! Samples that wait for a request. If a load seldom has a request under way, samples at random moments would hardly ever meet one.

use std::time::{Duration, Instant};

use crate::observer::under_way::UnderWay;

/// The shortest time between two looks at the load generator.
pub(crate) const LOOK_US: u64 = 1_000;
/// Each look is paid for by this much time. A look takes about 3 us, mostly to wake up: little more than 0.1 % of a core for each reader.
const EARNS_ONE: Duration = Duration::from_micros(2_500);
/// Most looks that may be saved up.
const LOOKS_MAX: u32 = 40;

/// After a sample without requests, another one is taken as soon as the load generator has a request under way.
#[derive(Debug, Default)]
pub(super) struct Awaiting {
    is_on: bool,
    has_found: bool,
    /// Looks since the wait began.
    looks: u32,
    /// Looks that are left, as of `earned_at`.
    left: u32,
    earned_at: Option<Instant>,
}

impl Awaiting {
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.is_on {
            (self.is_on, self.has_found, self.looks) = (true, false, 0);
        }
        if self.earned_at.is_none() {
            (self.left, self.earned_at) = (LOOKS_MAX, Some(now));
        }
    }

    /// Whether the load has a request under way now; nothing if no sample waits for one, or no look is left.
    pub(super) fn look(&mut self, under_way: &UnderWay, now: Instant) -> Option<bool> {
        let earned_at = self.earned_at.as_mut().filter(|_| self.is_on)?;
        let earned = (now.saturating_duration_since(*earned_at).as_nanos() / EARNS_ONE.as_nanos()) as u32;
        *earned_at += EARNS_ONE * earned;
        self.left = self.left.saturating_add(earned).min(LOOKS_MAX);
        self.left = self.left.checked_sub(1)?;
        self.looks += 1;
        self.has_found = under_way.now().all > 0;
        Some(self.has_found)
    }

    /// The number of looks once a request was found. This ends the wait.
    pub(super) fn take_found(&mut self) -> Option<u32> {
        (self.is_on && self.has_found).then(|| {
            self.is_on = false;
            self.looks
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_model::load::InFlight;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn looks_end_with_the_first_request_and_are_limited() {
        let number = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&number);
        let under_way = UnderWay::new(move || InFlight { all: read.load(Ordering::Relaxed), is_loading: true, ..InFlight::default() });
        let (mut awaiting, mut now) = (Awaiting::default(), Instant::now());
        assert_eq!(awaiting.look(&under_way, now), None, "no sample waits");
        awaiting.begin(now);
        assert_eq!(awaiting.look(&under_way, now), Some(false));
        assert_eq!(awaiting.take_found(), None);
        number.store(1, Ordering::Relaxed);
        assert_eq!(awaiting.look(&under_way, now), Some(true));
        assert_eq!(awaiting.take_found(), Some(2));
        assert_eq!((awaiting.take_found(), awaiting.look(&under_way, now)), (None, None));
        number.store(0, Ordering::Relaxed);
        awaiting.begin(now);
        let looks = |awaiting: &mut Awaiting, now| (0..100).map_while(|_| awaiting.look(&under_way, now)).count() as u32;
        assert_eq!(looks(&mut awaiting, now), LOOKS_MAX - 2, "a new wait does not add looks");
        now += 3 * EARNS_ONE;
        assert_eq!(looks(&mut awaiting, now), 3);
        now += 1_000 * EARNS_ONE;
        assert_eq!(looks(&mut awaiting, now), LOOKS_MAX);
    }
}
