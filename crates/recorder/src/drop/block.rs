//! Blocks: seconds put together until they hold enough requests that one more or less does not matter.

use crate::drop::Figures;
use crate::sample::TargetSample;

/// Requests of a block. Fewer than about thirty tell no mean (DESIGN: "fewer than 30 good answers").
const REQUESTS_MIN: f64 = 30.0;
/// The longest block, seconds. A server with few requests has blocks of few requests, and a past that is as uneven.
const SECONDS_MAX: u64 = 5;

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
    lost: f64,
    /// Answers in the log, and those that failed.
    logged: f64,
    failed: f64,
    /// Seconds without anything that listens.
    pub(super) gone_s: u64,
}

impl Block {
    /// Adds a second to the block; gives it back if it is complete.
    pub(super) fn add(&mut self, at_s: u64, second: &TargetSample) -> Option<Self> {
        if *self == Self::default() {
            self.from_s = at_s;
        }
        self.gone_s += u64::from(second.under_way.value().is_none());
        self.seconds += second.under_way.seconds;
        self.request_seconds += second.under_way.sum;
        if second.rate.value().is_some() {
            self.counted_s += second.rate.seconds;
            self.answered += second.rate.sum;
            self.request_seconds_counted += second.under_way.sum;
        }
        self.lost += second.losses.iter().map(|loss| loss.count).sum::<f64>();
        if let Some(logged) = &second.logged {
            self.logged += logged.answers() as f64;
            self.failed += logged.status.iter().filter(|(status, _)| is_failed(**status)).map(|(_, count)| *count as f64).sum::<f64>();
        }
        let is_complete = self.answered + self.lost >= REQUESTS_MIN || at_s + 1 >= self.from_s + SECONDS_MAX;
        is_complete.then(|| std::mem::take(self))
    }

    /// True if requests came.
    pub(super) fn has_traffic(&self) -> bool {
        self.answered + self.lost > 0.0 || self.request_seconds > 0.0
    }

    pub(super) fn rate_rps(&self) -> Option<f64> {
        (self.counted_s > 0.0).then(|| self.answered / self.counted_s)
    }

    /// Seconds for each answer: infinite if requests are under way and none is answered, `None` if there is nothing to tell it from.
    pub(super) fn response_s(&self) -> Option<f64> {
        if self.counted_s <= 0.0 || (self.answered <= 0.0 && self.request_seconds_counted <= 0.0) {
            return None;
        }
        Some(if self.answered > 0.0 { self.request_seconds_counted / self.answered } else { f64::INFINITY })
    }

    /// `None` if no request ended.
    pub(super) fn bad_share(&self) -> Option<f64> {
        let ended = self.answered + self.lost;
        // A log that is written in bursts has other answers than those that were counted meanwhile.
        let failed = if self.logged > 0.0 { (self.failed / self.logged).min(1.0) } else { 0.0 };
        (ended > 0.0).then(|| (self.lost + failed * self.answered) / ended)
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
            sum.lost += block.lost;
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
            response_ms: self.response_s().filter(|response| response.is_finite()).map(|seconds| seconds * 1e3),
            bad_share: self.bad_share(),
        }
    }
}

/// Statuses that mean a client was not served: the server's errors, a refusal by a rate limit (RFC 6585), and nginx's 499, a client that gave up waiting. Other
/// 4xx are answers to what the client asked.
fn is_failed(status: u16) -> bool {
    status >= 500 || status == 429 || status == 499
}
