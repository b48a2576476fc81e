//! Numbers with a unit, as flags, guards and scenario files contain them.

/// Splits "12.5ms" into 12.5 and "ms". None if it does not start with a number: digits with at most one point.
pub fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Nanoseconds of a unit of time: us, ms, s or m.
pub fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "m" => Some(60e9),
        _ => None,
    }
}
