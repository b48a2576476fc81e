//! Times as HAProxy writes them (its manual, section 2.5).

use crate::quantity;

/// Milliseconds of `500`, `500ms`, `5s`, `1m`, `2h` or `1d`: one number with one unit, milliseconds if none is given. A part of a millisecond is none.
pub(super) fn time_ms(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64, u64); 6] =
        [("us", 1, 1_000), ("ms", 1, 1), ("s", 1_000, 1), ("m", 60_000, 1), ("h", 3_600_000, 1), ("d", 86_400_000, 1)];
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (times, per) = match UNITS.iter().find(|(name, ..)| *name == unit) {
        Some((_, times, per)) => (*times, *per),
        None if unit.is_empty() => (1, 1),
        None => return None,
    };
    Some(quantity::number(digits)?.checked_mul(times)? / per)
}
