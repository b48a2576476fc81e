//! What guards, thresholds and stages are written with: conditions, percentages, durations, plain numbers.

use chokepoint_model::quantity::{split_unit, unit_ns};

/// Maximum conditions of one guard or threshold.
pub(crate) const CONDITIONS_MAX: usize = 16;
/// Maximum bytes of the text of a guard or threshold.
const TEXT_BYTES_MAX: usize = 1000;

/// The conditions of a text, which are joined by `||`.
pub(crate) fn conditions<T>(text: &str, condition: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("longer than {TEXT_BYTES_MAX} bytes"));
    }
    let conditions: Vec<T> = text.split("||").map(condition).collect::<Result<_, _>>()?;
    if conditions.len() > CONDITIONS_MAX { Err(format!("more than {CONDITIONS_MAX} conditions")) } else { Ok(conditions) }
}

/// "20%" as 0.2.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match split_unit(text) {
        Some((percent, unit)) if unit.trim_ascii_start() == "%" && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err(format!("{text:?} is not a percentage: write one like 20% (0% to 100%)")),
    }
}

/// "250ms" in nanoseconds.
pub(crate) fn duration_ns(text: &str) -> Result<u64, String> {
    let ns = split_unit(text).and_then(|(number, unit)| Some(number * unit_ns(unit.trim_ascii_start().replace('\u{b5}', "u").as_str())?));
    let wrong = || format!("{text:?} is not a duration: write one like 5s or 250ms (units us, ms, s, m; at most 60m)");
    ns.filter(|ns| *ns <= 3600e9).map(|ns| ns as u64).ok_or_else(wrong)
}

/// Digits with at most one point; no sign, exponent, infinity or NaN.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    split_unit(text).filter(|(_, unit)| unit.is_empty()).map(|(number, _)| number)
}
