//! A measured number with its 95 % interval.

use chokepoint_model::report::Ceiling;
use serde::{Deserialize, Serialize};

/// A value and the interval in which the true one lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Best estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// A value without noise.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Half of its width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half of its width as a share of the value; infinite for zero.
    pub fn relative(&self) -> f64 {
        if self.value > 0.0 { self.half() / self.value } else { f64::INFINITY }
    }

    /// True if this value is higher than the other by more than the noise of both: the halves of two independent intervals add up in squares.
    pub fn is_above(&self, other: &Self) -> bool {
        self.value - other.value > self.half().hypot(other.half())
    }
}

impl From<Ceiling> for Interval {
    fn from(ceiling: Ceiling) -> Self {
        Self { value: ceiling.value, low: ceiling.low, high: ceiling.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_beyond_the_noise_of_both() {
        let of = |value: f64, half: f64| Interval { value, low: value - half, high: value + half };
        assert!(of(110.0, 3.0).is_above(&of(100.0, 4.0)));
        assert!(!of(104.0, 3.0).is_above(&of(100.0, 4.0)));
        assert!(!of(100.0, 0.0).is_above(&of(100.0, 0.0)));
        assert_eq!((of(100.0, 5.0).relative(), of(0.0, 1.0).relative()), (0.05, f64::INFINITY));
    }
}
