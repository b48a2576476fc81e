//! Compares the newest minutes with the same time of day on the days before: what creeps in is no change against the minutes before it.

use std::collections::VecDeque;

use super::block::{Block, Served, told_ms};
use super::past::{PAST_MIN, Past, WORSE_BLOCKS};
use super::{Against, Drop, Event, Figures};
use crate::sample::TargetSample;

const DAY_S: u64 = 86_400;
/// Days that are compared.
const DAYS: u64 = 7;
/// The same time of day, give or take so much: half an hour.
const AROUND_S: u64 = 1_800;
/// What lasts this long is how the server is now. It is not told again before it was over.
const LASTS_MAX_S: u64 = 3_600;
/// The clock of two days may differ by so much.
const LEEWAY_S: u64 = 60;

/// Watches one server, minute by minute.
#[derive(Debug, Clone)]
pub struct Daily {
    target: String,
    past: VecDeque<Minute>,
    drop: Option<(Drop, u64)>,
    /// The last drop was taken for how the server is now, and is not over yet.
    is_settled: bool,
}

/// One minute. A week of them is kept for each server, so it is small.
#[derive(Debug, Clone, Copy)]
struct Minute {
    at_s: u64,
    response_s: (f32, f32),
    bad_share: f32,
    rate_rps: f32,
    under_way: f32,
}

impl Minute {
    fn of(at_s: u64, minute: &TargetSample) -> Self {
        let block = Block::of(at_s, minute);
        let known = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
        let Served { response_s, bad_share, rate_rps, .. } = block.served();
        Self {
            at_s,
            response_s: (known(response_s.map(|(least, _)| least)), known(response_s.map(|(_, most)| most))),
            bad_share: known(bad_share),
            rate_rps: known(rate_rps),
            under_way: known(block.figures().under_way),
        }
    }

    fn response_s(&self) -> Option<(f64, f64)> {
        let (least, most) = self.response_s;
        (!least.is_nan() && !most.is_nan()).then(|| (f64::from(least), f64::from(most)))
    }

    fn served(&self) -> Served {
        let known = |value: f32| (!value.is_nan()).then(|| f64::from(value));
        Served {
            response_s: self.response_s(),
            bad_share: known(self.bad_share),
            rate_rps: known(self.rate_rps),
            has_traffic: self.under_way > 0.0 || self.rate_rps > 0.0,
            ..Served::default()
        }
    }

    fn figures(&self) -> Figures {
        let known = |value: f32| (!value.is_nan()).then(|| f64::from(value));
        Figures {
            rate_rps: known(self.rate_rps),
            under_way: known(self.under_way),
            response_ms: self.response_s().and_then(told_ms),
            bad_share: known(self.bad_share),
            lost_per_s: None,
        }
    }

    /// True if it was at the same time of day as another, on one of the days before.
    fn is_daily(&self, at_s: u64) -> bool {
        let Some(ago_s) = at_s.checked_sub(self.at_s) else { return false };
        let days = (ago_s + DAY_S / 2) / DAY_S;
        (1..=DAYS).contains(&days) && ago_s.abs_diff(days * DAY_S) <= AROUND_S
    }
}

impl Daily {
    /// Of a server of this name.
    pub fn new(target: &str) -> Self {
        Self { target: target.to_owned(), past: VecDeque::new(), drop: None, is_settled: false }
    }

    /// Takes a minute that is only part of the past: it comes from the history.
    pub fn remember(&mut self, at_s: u64, minute: &TargetSample) {
        // A clock that was set back: later minutes are of another time.
        while self.past.back().is_some_and(|last| last.at_s >= at_s) {
            self.past.pop_back();
        }
        self.past.push_back(Minute::of(at_s, minute));
        let oldest_s = at_s.saturating_sub(DAYS * DAY_S + AROUND_S + LEEWAY_S);
        while self.past.front().is_some_and(|first| first.at_s < oldest_s) {
            self.past.pop_front();
        }
    }

    /// Takes the newest minute. `is_dropping`: a drop against the last minutes is known already, and is not told twice.
    pub fn add(&mut self, at_s: u64, minute: &TargetSample, is_dropping: bool) -> Option<Event> {
        self.remember(at_s, minute);
        let newest: Vec<Minute> = self.past.iter().rev().take(WORSE_BLOCKS).copied().collect();
        let same_time: Vec<Minute> = self.past.iter().filter(|minute| minute.is_daily(at_s)).copied().collect();
        if newest.len() < WORSE_BLOCKS || same_time.len() < PAST_MIN {
            return None;
        }
        let past = Past::of(same_time.iter().map(Minute::served));
        let kinds = past.exceeded(&newest.iter().map(Minute::served).collect::<Vec<_>>());
        let since_s = newest.last().map_or(at_s, |minute| minute.at_s);
        match self.drop.take() {
            None if kinds.is_empty() => {
                self.is_settled = false;
                None
            }
            None if is_dropping || self.is_settled => None,
            None => {
                let during = Figures::medians(&newest.iter().map(Minute::figures).collect::<Vec<_>>());
                let before = Figures::medians(&same_time.iter().map(Minute::figures).collect::<Vec<_>>());
                let drop = Drop { target: self.target.clone(), since_s, kinds, against: Against::Days, before, during };
                self.drop = Some((drop.clone(), at_s));
                Some(Event::Began(drop))
            }
            Some((drop, seen_s)) => {
                let is_worse = |minute: &Minute| drop.kinds.iter().any(|kind| past.is_exceeded(*kind, &minute.served()));
                let seen_s = if newest.first().is_some_and(is_worse) { at_s } else { seen_s };
                let recovered = !newest.iter().any(is_worse);
                if !recovered && at_s < drop.since_s + LASTS_MAX_S {
                    self.drop = Some((drop, seen_s));
                    return None;
                }
                self.is_settled = !recovered;
                Some(Event::Ended { target: self.target.clone(), at_s: seen_s, recovered })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drop::Kind;
    use crate::sample::Mean;
    use chokepoint_statistics::Random;

    /// A minute at a time, with a wave over the day, in which each request takes so long.
    fn minute(at_s: u64, response_s: f64, random: &mut Random) -> TargetSample {
        let of_day = at_s as f64 / DAY_S as f64 * std::f64::consts::TAU;
        let rate = (100.0 + 50.0 * of_day.sin()) * (1.0 + 0.05 * random.normal());
        let response_s = response_s * (1.0 + 0.05 * random.normal());
        TargetSample { under_way: Mean::of(Some(rate * response_s), 60.0), rate: Mean::of(Some(rate), 60.0), ..TargetSample::default() }
    }

    #[test]
    fn what_creeps_in_is_worse_than_on_the_days_before() {
        for seed in 1..=5 {
            let random = &mut Random::new(seed);
            let mut daily = Daily::new("t");
            let (begin, noon) = (20_000 * DAY_S, 20_003 * DAY_S + DAY_S / 2);
            for at_s in (begin..noon).step_by(60) {
                assert_eq!(daily.add(at_s, &minute(at_s, 0.05, random), false), None, "{seed}: three days like each other");
            }
            // A hundredth slower each minute.
            let mut events = Vec::new();
            for n in 0..120 {
                let at_s = noon + 60 * n;
                let slow = 0.05 * 1.01_f64.powi(n as i32);
                events.extend(daily.add(at_s, &minute(at_s, slow, random), false).map(|event| (n, event)));
            }
            let (n, Event::Began(drop)) = &events[0] else { panic!("{events:?}") };
            assert!((10..45).contains(n) && drop.kinds == [Kind::Slower] && drop.against == Against::Days, "{seed}: {n} {drop:?}");
            let (_, Event::Ended { recovered, .. }) = &events[1] else { panic!("{events:?}") };
            assert!(!recovered && events.len() == 2, "it lasts, and is told once: {events:?}");
        }
    }

    #[test]
    fn a_day_like_the_others_or_with_half_the_requests_is_no_drop_and_a_known_one_is_not_told_twice() {
        let random = &mut Random::new(9);
        let mut daily = Daily::new("t");
        let (begin, noon) = (20_000 * DAY_S, 20_002 * DAY_S + DAY_S / 2);
        (begin..noon).step_by(60).for_each(|at_s| daily.remember(at_s, &minute(at_s, 0.05, random)));
        let half = |at_s: u64, random: &mut Random| {
            let whole = minute(at_s, 0.05, random);
            let halved = |mean: Mean| Mean::of(mean.value().map(|value| value / 2.0), 60.0);
            TargetSample { under_way: halved(whole.under_way), rate: halved(whole.rate), ..whole }
        };
        for at_s in (noon..noon + 3_600).step_by(60) {
            assert_eq!(daily.add(at_s, &half(at_s, random), false), None);
        }
        for at_s in (noon + 3_600..noon + 7_200).step_by(60) {
            assert_eq!(daily.add(at_s, &minute(at_s, 0.5, random), true), None, "the other detector has told it");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_forgets_what_is_later() {
        let random = &mut Random::new(3);
        let mut daily = Daily::new("t");
        (0..100).for_each(|n| daily.remember(60 * n, &minute(60 * n, 0.05, random)));
        daily.remember(600, &minute(600, 0.05, random));
        assert_eq!(daily.past.len(), 11);
    }
}
