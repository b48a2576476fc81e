//! Blocks: seconds put together until they hold enough requests that one more or less does not matter.

use chokepoint_model::observation::is_unserved;
use chokepoint_model::report::LedgerPlaceKind;

use crate::drop::Figures;
use crate::sample::{PoolUse, TargetSample};

/// Requests of a block. Fewer than about thirty tell no mean (DESIGN: "fewer than 30 good answers").
pub(super) const REQUESTS_MIN: f64 = 30.0;
/// Fewest requests that wait for others while nearly all do, and so many times those that are served: before a server that is busy for nine tenths of its time nine
/// wait for each one on average (M/M/1), and it is not so in every second.
const WAITING_MIN: f64 = 10.0;
const WAITING_TIMES: f64 = 10.0;
/// The longest block, seconds. A server with few requests has blocks of few requests, and a past that is as uneven.
pub(super) const SECONDS_MAX: u64 = 5;

/// How clients were served in a block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Served {
    /// The mean response time, at least and at most: connections of which it is not known whether they have a request have none, or one each.
    pub(super) response_s: Option<(f64, f64)>,
    pub(super) bad_share: Option<f64>,
    pub(super) rate_rps: Option<f64>,
    /// Requests a second that were refused or lost.
    pub(super) lost_per_s: Option<f64>,
    /// Something was full all the time.
    pub(super) is_full: bool,
    pub(super) has_traffic: bool,
    pub(super) is_gone: bool,
}

/// Sums over some seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Block {
    pub(super) from_s: u64,
    /// Seconds that were seen.
    seconds: f64,
    /// Seconds in which the rate was seen, and answers in them.
    counted_s: f64,
    answered: f64,
    /// Requests under way times seconds; in the seconds with a rate.
    request_seconds: f64,
    request_seconds_counted: f64,
    /// Those of them that may be idle connections; in the seconds with a rate.
    undecided_counted: f64,
    lost: f64,
    /// Those of the seconds with a rate.
    lost_counted: f64,
    /// Spans that were put together, and those in which something was full.
    spans: u64,
    full: u64,
    /// Answers in the log, and those that failed.
    logged: f64,
    failed: f64,
    /// Seconds without anything that listens.
    pub(super) gone_s: u64,
}

impl Block {
    /// What was seen in one span.
    pub(super) fn of(at_s: u64, span: &TargetSample) -> Self {
        let mut block = Self { from_s: at_s, ..Self::default() };
        block.gone_s = u64::from(span.under_way.value().is_none());
        block.seconds = span.under_way.seconds;
        block.request_seconds = span.under_way.sum;
        if let Some(under_way) = span.under_way.value().filter(|_| span.rate.value().is_some()) {
            block.counted_s = span.rate.seconds;
            block.answered = span.rate.sum;
            block.request_seconds_counted = under_way * span.rate.seconds;
            block.undecided_counted = span.undecided().min(under_way) * span.rate.seconds;
        }
        // An empty sum is -0.
        block.lost = span.losses.iter().fold(0.0, |sum, loss| sum + loss.count);
        block.lost_counted = if block.counted_s > 0.0 { block.lost } else { 0.0 };
        (block.spans, block.full) = (1, u64::from(is_full(span)));
        if let Some(logged) = &span.logged {
            block.logged = logged.answers() as f64;
            block.failed = logged.status.iter().filter(|(status, _)| is_unserved(**status)).map(|(_, count)| *count as f64).sum();
        }
        block
    }

    /// Adds a second to the block; gives it back if it is complete.
    pub(super) fn add(&mut self, at_s: u64, second: &TargetSample) -> Option<Self> {
        let second = Self::of(at_s, second);
        *self = if *self == Self::default() { second } else { Self::sum(&[*self, second]) };
        let is_complete = self.answered + self.lost >= REQUESTS_MIN || at_s + 1 >= self.from_s + SECONDS_MAX;
        is_complete.then(|| std::mem::take(self))
    }

    /// What is judged of it.
    pub(super) fn served(&self) -> Served {
        Served {
            response_s: self.response_s(),
            bad_share: self.bad_share(),
            rate_rps: self.rate_rps(),
            lost_per_s: self.lost_per_s(),
            is_full: self.spans > 0 && self.full == self.spans,
            has_traffic: self.has_traffic(),
            is_gone: self.gone_s > 0 && !self.has_traffic(),
        }
    }

    /// True if requests came.
    pub(super) fn has_traffic(&self) -> bool {
        self.answered + self.lost > 0.0 || self.request_seconds > 0.0
    }

    pub(super) fn rate_rps(&self) -> Option<f64> {
        (self.counted_s > 0.0).then(|| self.answered / self.counted_s)
    }

    /// Seconds for each answer, at least and at most: infinite if requests are under way and none is answered, `None` if there is nothing to tell it from.
    pub(super) fn response_s(&self) -> Option<(f64, f64)> {
        let all = self.request_seconds_counted;
        if self.counted_s <= 0.0 || (self.answered <= 0.0 && all <= 0.0) {
            return None;
        }
        let each = |request_seconds: f64| match request_seconds {
            _ if self.answered > 0.0 => request_seconds / self.answered,
            known if known > 0.0 => f64::INFINITY,
            _ => 0.0,
        };
        Some((each(all - self.undecided_counted), each(all)))
    }

    /// `None` if no request ended, and if it was not counted how many were answered: losses alone are no share.
    pub(super) fn bad_share(&self) -> Option<f64> {
        let (answered, lost) = if self.counted_s > 0.0 { (self.answered, self.lost_counted) } else { (self.logged, self.lost) };
        let ended = answered + lost;
        // A log that is written in bursts has other answers than those that were counted meanwhile.
        let failed = if self.logged > 0.0 { (self.failed / self.logged).min(1.0) } else { 0.0 };
        (ended > 0.0 && (self.counted_s > 0.0 || self.logged > 0.0)).then(|| (lost + failed * answered) / ended)
    }

    pub(super) fn lost_per_s(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.lost / self.seconds)
    }

    /// Requests that were seen to end.
    pub(super) fn ended(&self) -> f64 {
        self.lost + if self.counted_s > 0.0 { self.answered } else { self.logged }
    }

    /// Adds up several blocks.
    pub(super) fn sum(blocks: &[Self]) -> Self {
        let mut sum = blocks.first().copied().unwrap_or_default();
        for block in blocks.iter().skip(1) {
            sum.seconds += block.seconds;
            sum.counted_s += block.counted_s;
            sum.answered += block.answered;
            sum.request_seconds += block.request_seconds;
            sum.request_seconds_counted += block.request_seconds_counted;
            sum.undecided_counted += block.undecided_counted;
            sum.lost += block.lost;
            sum.lost_counted += block.lost_counted;
            sum.spans += block.spans;
            sum.full += block.full;
            sum.logged += block.logged;
            sum.failed += block.failed;
            sum.gone_s += block.gone_s;
        }
        sum
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            rate_rps: self.rate_rps(),
            under_way: (self.seconds > 0.0).then(|| self.request_seconds / self.seconds),
            response_ms: self.response_s().and_then(told_ms),
            bad_share: self.bad_share(),
            lost_per_s: self.lost_per_s(),
        }
    }
}

/// A response time in figures, milliseconds: the least, unless it is infinite or the most is twice as much and tells nothing.
pub(super) fn told_ms((least, most): (f64, f64)) -> Option<f64> {
    (least.is_finite() && most <= 2.0 * least).then_some(least * 1e3)
}

/// True if an accept queue had no room (the kernel refuses once more wait than its limit), or if all workers of a pool were taken and at least as many requests again
/// were under way: each waits longer than it is served. Of what has no pool that is known, if nearly all requests wait for others.
fn is_full(span: &TargetSample) -> bool {
    let is_taken = |pool: &PoolUse| {
        let known = span.under_way.value().map(|under_way| under_way - span.undecided());
        let values = (pool.active.value(), pool.total.value(), known);
        matches!(values, (Some(active), Some(total), Some(under_way)) if total > 0.0 && active >= total && under_way >= 2.0 * total)
    };
    let is_refusing = span.queues.iter().any(|queue| queue.limit > 0 && queue.most > queue.limit);
    is_refusing || span.pools.values().any(is_taken) || nearly_all_wait(span)
}

/// True if many requests are not accepted or not read, and many times as many as those that are.
fn nearly_all_wait(span: &TargetSample) -> bool {
    let waits = |place: LedgerPlaceKind| matches!(place, LedgerPlaceKind::AcceptQueue | LedgerPlaceKind::Unread);
    let waiting: f64 = span.places.iter().filter(|standing| waits(standing.place)).map(|standing| span.mean_at(standing)).sum();
    let served = span.under_way.value().map(|under_way| (under_way - waiting).max(0.0));
    served.is_some_and(|served| waiting >= WAITING_MIN && waiting >= WAITING_TIMES * served)
}
