//! Quantities as guards and thresholds are written with them: percentages, durations, plain numbers.

/// "20%" as 0.2.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| decimal(number.trim_end()));
    match number {
        Some(percent) if percent <= 100.0 => Ok(percent / 100.0),
        _ => Err(format!("{text:?} is no percentage like 20% (0% to 100%)")),
    }
}

/// "250ms" in nanoseconds.
pub(crate) fn duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no duration like 5s or 250ms (units us, ms, s, m; at most 60m)");
    let split = text.find(|char: char| char.is_ascii_alphabetic() || !char.is_ascii()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let unit_ns = match unit {
        "us" | "\u{b5}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        _ => return Err(wrong()),
    };
    let ns = decimal(number.trim_end()).ok_or_else(wrong)? * unit_ns;
    if ns <= 3600e9 { Ok(ns as u64) } else { Err(wrong()) }
}

/// Digits with at most one point among them; no sign, exponent, infinity or NaN.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.bytes().any(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
