//! When what was measured last is no longer "now". All that show it decide by this one bound, each with a clock of its own.

use std::time::Duration;

/// A value older than this is shown as old. Seconds come each second, but where samples are expensive the account of a second covers up to five
/// ([docs/watch](../../../docs/watch/README.md)): an age below that is how a busy host is measured, an age beyond it is five turns without any.
pub const STALE_AFTER: Duration = Duration::from_secs(5);

/// True if something of this age must not be shown as now.
pub fn is_stale(age: Duration) -> bool {
    age > STALE_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_window_of_a_second_is_not_stale_and_more_is() {
        assert!(!is_stale(Duration::ZERO) && !is_stale(STALE_AFTER));
        assert!(is_stale(STALE_AFTER + Duration::from_millis(1)));
    }
}
