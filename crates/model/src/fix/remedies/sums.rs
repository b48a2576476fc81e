//! Advised numbers, each with the arithmetic that gives it, for the text: a reader can do the sum.

use crate::facts::Context;
use crate::facts::suffered::in_flight_peak;
use crate::observation::load::Loop;
use crate::output::message::Message;

/// Requests that are under way at once.
pub(super) struct AtOnce {
    pub(super) number: f64,
    /// "100 clients", or "500/s x 20 ms = 10, plus reserve: 13".
    pub(super) sum: Message,
}

impl AtOnce {
    /// Clients that ask again only once they are answered are as many as there are. Of an offered rate it is what is in service at once, and a reserve (Little's law,
    /// and the square root of that number: Halfin and Whitt 1981): what stands there in an outage grows with it. `None` without load.
    pub(super) fn of(ctx: &Context<'_>) -> Option<Self> {
        let load = ctx.obs.load.as_ref()?;
        let peak = in_flight_peak(load);
        let seen = |id: &'static str| Self { number: peak, sum: Message::new(id).with("number", peak) };
        let Loop::Open { rate_per_s, .. } = load.shape else { return Some(seen("sum-at-once-clients")) };
        let Some(alone_us) = ctx.alone_us() else { return Some(seen("sum-at-once-seen")) };
        let in_service = rate_per_s * alone_us / 1e6;
        let number = (in_service + in_service.sqrt()).ceil();
        if number >= peak {
            return Some(seen("sum-at-once-seen"));
        }
        let sum = Message::new("sum-at-once-rate").with("rate", rate_per_s).with("ms", alone_us / 1e3).with("in_service", in_service);
        Some(Self { number, sum: sum.with("number", number) })
    }
}

/// A number to advise.
#[derive(Clone)]
pub(super) struct Advised {
    pub(super) number: u64,
    /// How it follows. It ends with the number.
    pub(super) sum: Message,
}

impl Advised {
    /// The result of a sum, rounded up; the sentence gets it as `$needed`.
    pub(super) fn new(needed: f64, sum: Message) -> Self {
        let number = needed.ceil().clamp(0.0, u64::MAX as f64) as u64;
        Self { number, sum: sum.with("needed", number) }
    }

    /// Twice the number in force: for limits that were reached while nothing says how much more is needed.
    pub(super) fn twice(now: u64) -> Self {
        Self::new(now.saturating_mul(2) as f64, Message::new("sum-twice").with("now", now))
    }

    /// At least another number.
    pub(super) fn at_least(self, least: Self) -> Self {
        if self.number < least.number { least } else { self }
    }

    /// At most this number, for the reason that a message gives; it gets the number as `$needed`.
    pub(super) fn at_most(self, most: u64, why: &'static str) -> Self {
        if self.number > most { Self::new(most as f64, Message::new(why)) } else { self }
    }

    /// Rounded up to a power of two, but not above a bound.
    pub(super) fn power_of_two(self, bound: u64) -> Self {
        match self.number.checked_next_power_of_two().filter(|rounded| *rounded <= bound && *rounded != self.number) {
            Some(rounded) => Self { number: rounded, sum: Message::new("sum-power-of-two").with("sum", self.sum).with("to", rounded) },
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::catalogue::Catalogue;

    fn text(advised: &Advised) -> String {
        Catalogue::english().text(&advised.sum)
    }

    #[test]
    fn each_number_ends_the_sum_that_gives_it() {
        let clients = Message::new("sum-at-once-clients").with("number", 300.0);
        let sum = Message::new("sum-files").with("at_once", clients);
        let needed = Advised::new(600.0, sum);
        assert_eq!((needed.number, text(&needed).as_str()), (600, "300 clients x 2 files each = 600"));
        let rounded = needed.clone().power_of_two(u64::MAX);
        assert_eq!(
            (rounded.number, text(&rounded).as_str()),
            (1_024, "300 clients x 2 files each = 600, rounded up to a power of two: 1,024")
        );
        assert_eq!(text(&needed.clone().power_of_two(1_000)), text(&needed), "the bound is below");
        let twice = needed.clone().at_least(Advised::twice(512));
        assert_eq!((twice.number, text(&twice).as_str()), (1_024, "twice the present 512 = 1,024"));
        let few = needed.at_most(500, "sum-nr-open");
        assert_eq!((few.number, text(&few).as_str()), (500, "as many files as a process may open (fs.nr_open, or its hard limit): 500"));
    }
}
