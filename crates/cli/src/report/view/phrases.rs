//! Phrases of the report's language, and numbers with units.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;

/// Phrases of a catalogue. They have no-break spaces between numbers and units.
#[derive(Clone, Copy)]
pub(crate) struct Phrases<'a>(pub(crate) &'a Catalogue);

impl Phrases<'_> {
    /// A sentence of the catalogue.
    pub(crate) fn say(&self, message: &Message) -> String {
        self.0.text(message)
    }

    /// A sentence of the catalogue without arguments.
    pub(crate) fn word(&self, id: &'static str) -> String {
        self.0.text(&Message::new(id))
    }

    /// A plain number.
    pub(crate) fn number(&self, number: f64) -> String {
        self.say(&Message::new("report-number").with("n", number))
    }

    /// A measured number with three significant digits.
    pub(crate) fn rounded(&self, number: f64) -> String {
        self.number(significant(number))
    }

    /// A share between 0 and 1 in percent. It is never rounded up to 100 or down to 0.
    pub(crate) fn percent(&self, share: f64) -> String {
        let percent = share * 100.0;
        if percent > 0.0 && percent < 0.995 {
            return self.word("report-percent-little");
        }
        let whole = if percent < 100.0 { percent.round().min(99.0) } else { percent.round() };
        self.say(&Message::new("report-percent").with("n", whole))
    }

    /// A duration given in microseconds, in us, ms or s.
    pub(crate) fn duration_us(&self, us: f64) -> String {
        let (id, n) = match us {
            us if us < 1e3 => ("report-us", us),
            us if us < 1e6 => ("report-ms", us / 1e3),
            us => ("report-s", us / 1e6),
        };
        self.say(&Message::new(id).with("n", n))
    }

    /// The unit of a station as a noun for this count; empty if [`Phrases::amount`] includes it.
    pub(crate) fn unit(&self, count: f64, unit: &str) -> String {
        let id = match unit {
            "bits/s" => return String::new(),
            "connections" => "report-unit-connections",
            "cores" => "report-unit-cores",
            "entries" => "report-unit-entries",
            "ports" => "report-unit-ports",
            "threads" => "report-unit-threads",
            "workers" => "report-unit-workers",
            other => return other.to_owned(),
        };
        self.say(&Message::new(id).with("n", count))
    }

    /// An amount in the unit of a station. The unit is included only if it is not a plain noun: see [`Phrases::unit`].
    pub(crate) fn amount(&self, amount: f64, unit: &str) -> String {
        if unit != "bits/s" {
            return self.number(amount);
        }
        let (id, n) = match amount.abs() {
            size if size >= 1e9 => ("report-gigabits", amount / 1e9),
            size if size >= 1e6 => ("report-megabits", amount / 1e6),
            size if size >= 1e3 => ("report-kilobits", amount / 1e3),
            _ => ("report-bits", amount),
        };
        self.say(&Message::new(id).with("n", n))
    }
}

/// The number with three significant digits; whole below 1,000 if it is whole.
fn significant(number: f64) -> f64 {
    if !number.is_finite() || number.abs() < 1000.0 {
        return number;
    }
    let unit = 10_f64.powf(number.abs().log10().floor() - 2.0);
    (number / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_rounded_to_0_or_100_percent() {
        let words = Catalogue::english();
        for (share, text) in [(0.0, "0\u{a0}%"), (0.0004, "<1\u{a0}%"), (0.9996, "99\u{a0}%"), (1.0, "100\u{a0}%"), (1.101, "110\u{a0}%")] {
            assert_eq!(Phrases(&words).percent(share), text, "{share}");
        }
    }

    #[test]
    fn units_follow_the_size() {
        let words = Catalogue::english();
        let phrases = Phrases(&words);
        assert_eq!(phrases.duration_us(850.0), "850\u{a0}µs");
        assert_eq!(phrases.duration_us(12_340.0), "12.3\u{a0}ms");
        assert_eq!(phrases.duration_us(2_000_000.0), "2\u{a0}s");
        assert_eq!(phrases.amount(941e6, "bits/s"), "941\u{a0}Mbit/s");
        assert_eq!(phrases.amount(28_232.0, "ports"), "28,232");
    }
}
