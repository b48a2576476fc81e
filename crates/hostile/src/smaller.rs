//! Reduces an input that shows a defect, so that a person can read it.

use crate::bounds;

/// Most attempts: for a defect of time, each takes some seconds.
const TRIES_MAX: usize = 400;
const SLOW_TRIES_MAX: usize = 4;

/// The smallest part found that also shows a defect, and the reason.
pub(crate) fn smallest(kind: &str, input: Vec<u8>, why: String, read: impl Fn(&[u8])) -> (Vec<u8>, String) {
    let (mut input, mut why) = (input, why);
    let panics = why.starts_with("it panics");
    let mut tries = if panics { TRIES_MAX } else { SLOW_TRIES_MAX };
    let mut size = input.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < input.len() && tries > 0 {
            tries -= 1;
            let end = input.len().min(at + size);
            let without = [&input[..at], &input[end..]].concat();
            match bounds::within(kind, &without, &read) {
                Err(other) if other.starts_with("it panics") == panics => (input, why) = (without, other),
                _ => at = end,
            }
        }
        size /= 2;
    }
    (input, why)
}
