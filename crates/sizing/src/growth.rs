//! A rate of growth, and when traffic that grows by it reaches a limit.

/// Growth of traffic, compounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Share by which traffic grows in each period, above 0.
    pub share: f64,
    /// The period.
    pub period: Period,
}

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// A day.
    Day,
    /// Seven days.
    Week,
    /// A month of the Gregorian calendar: 365.2425 / 12 days.
    Month,
    /// A year of the Gregorian calendar: 365.2425 days.
    Year,
}

impl Period {
    const NAMES: [(&'static str, Self); 4] = [("day", Self::Day), ("week", Self::Week), ("month", Self::Month), ("year", Self::Year)];

    /// Its length.
    pub fn days(self) -> f64 {
        match self {
            Self::Day => 1.0,
            Self::Week => 7.0,
            Self::Month => 365.2425 / 12.0,
            Self::Year => 365.2425,
        }
    }

    /// Its English name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, period)| *period == self).map_or("day", |(name, _)| name)
    }
}

impl Growth {
    /// "5%/week". The percentage is above 0 and at most 1,000.
    pub fn parse(text: &str) -> Option<Self> {
        let (share, period) = text.trim().split_once('/')?;
        let percent: f64 = share.trim().strip_suffix('%')?.trim().parse().ok()?;
        let period = Period::NAMES.iter().find(|(name, _)| *name == period.trim()).map(|(_, period)| *period)?;
        (percent > 0.0 && percent <= 1000.0).then_some(Self { share: percent / 100.0, period })
    }

    /// Days until a rate has grown to a limit; zero if it is there already. `None` if the rate is zero.
    pub fn days_until(&self, rate: f64, limit: f64) -> Option<f64> {
        if rate <= 0.0 || !limit.is_finite() {
            return None;
        }
        Some((limit / rate).max(1.0).ln() / self.share.ln_1p() * self.period.days())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_a_percentage_and_a_period() {
        assert_eq!(Growth::parse("5%/week"), Some(Growth { share: 0.05, period: Period::Week }));
        assert_eq!(Growth::parse(" 0.5 % / day"), Some(Growth { share: 0.005, period: Period::Day }));
        for wrong in ["", "5%", "5/week", "5%/hour", "0%/day", "-1%/day", "1e9%/day", "nan%/day", "inf%/day"] {
            assert_eq!(Growth::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn it_is_compounded() {
        let weekly = Growth::parse("5%/week").unwrap();
        // 1.05^14.2 = 2.
        assert!((weekly.days_until(100.0, 200.0).unwrap() / 7.0 - 14.2067).abs() < 1e-3);
        assert_eq!((weekly.days_until(200.0, 100.0), weekly.days_until(0.0, 100.0)), (Some(0.0), None));
        assert_eq!(Growth::parse("100%/month").unwrap().days_until(1.0, 2.0).map(|days| days.round()), Some(30.0));
    }
}
