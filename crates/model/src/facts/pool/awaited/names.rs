//! Whether requests wait for name servers though fewer threads or sockets ask these than requests wait: before a place that only so many may ask at, or for one look-up that serves many.

use super::{Awaited, Counted};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::looks::{are_enough, are_most};

/// Most datagrams of one look-up that is answered in the end: an A and an AAAA to each of three name servers (resolv.conf(5), MAXNS).
const QUESTIONS_MAX: f64 = 6.0;

/// What the counters of a tier's namespace say of look-ups and of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Names {
    /// Datagrams a second that its namespace sends: no fewer than its questions.
    sent_rps: f64,
    /// Those to which none came back: no fewer than its questions without an answer, unless others are sent to it.
    unanswered_rps: f64,
    /// Requests a second that are answered.
    answered_rps: f64,
}

impl Names {
    /// `None` if either was not read.
    pub(super) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let grew = |of_four: &str, of_six: &str| Some(ctx.netstat_growth(view, of_four)? + ctx.netstat_growth(view, of_six).unwrap_or(0));
        let sent = grew("Udp.OutDatagrams", "Udp6.OutDatagrams")?;
        let unanswered = sent.saturating_sub(grew("Udp.InDatagrams", "Udp6.InDatagrams")?);
        // What its client gave up the server goes on with.
        let answered_rps = ctx.answers_rps().or_else(|| ctx.account()?.rate_rps()).unwrap_or(0.0);
        let a_second = |number: u64| number as f64 / ctx.seconds();
        Some(Self { sent_rps: a_second(sent), unanswered_rps: a_second(unanswered), answered_rps })
    }

    /// True if these wait for the answer before which all of the `waiting` requests stand.
    pub(super) fn hold_up(self, awaited: &Awaited, waiting: f64) -> bool {
        let is_seen = awaited.is_of_names() && are_enough(awaited.looks);
        is_seen && (self.are_lost(awaited) || self.fill_a_place(awaited) || self.are_shared(awaited, waiting))
    }

    /// Somebody always asks, and for each request that is answered a question was not.
    fn are_lost(self, awaited: &Awaited) -> bool {
        awaited.is_always_waited_for() && self.unanswered_rps > 0.0 && self.unanswered_rps >= self.answered_rps
    }

    /// As many ask as may at once (libuv, a pool of threads), and a question is sent for each request that is answered: the others wait for their turn.
    fn fill_a_place(self, awaited: &Awaited) -> bool {
        awaited.is_full && self.sent_rps > 0.0 && self.sent_rps >= self.answered_rps
    }

    /// Somebody always asks, and a request takes about as long as a look-up: resolvers that find a question for the same name under way wait for its answer (Go). By Little's law a
    /// question lasts no shorter than those under way at the rate of all datagrams.
    fn are_shared(self, awaited: &Awaited, waiting: f64) -> bool {
        let lasts_s = awaited.threads / self.sent_rps;
        let takes_s = waiting / self.answered_rps;
        // Who comes while it lasts waits for half of it on average.
        awaited.is_always_waited_for() && takes_s >= lasts_s / 2.0 && takes_s <= QUESTIONS_MAX * lasts_s
    }
}

impl Counted {
    /// True if as many wait so at most looks, and never more: all that may.
    pub(super) fn is_full(&self, looks: usize) -> bool {
        let most = self.numbers.iter().copied().fold(0.0, f64::max);
        are_most(self.numbers.iter().filter(|number| **number >= most).count(), looks)
    }
}
