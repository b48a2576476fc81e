//! Numbers and times as logs write them.

/// A decimal number; `None` for `-`, an empty text, or one that does not fit.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    /// Numbers of so many digits cannot be too large.
    const SAFE: usize = 19;
    let (safe, rest) = text.split_at(text.len().min(SAFE));
    let mut value = 0_u64;
    for byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + u64::from(digit);
    }
    for byte in rest {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    (!text.is_empty()).then_some(value)
}

/// Microseconds of seconds with a fraction of any length: `0.003`, `1795159067.123`. nginx rounds to milliseconds, so 0 means below one.
pub fn seconds_us(text: &[u8]) -> Option<u64> {
    let dot = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = dot.map_or((text, &b""[..]), |dot| (&text[..dot], &text[dot + 1..]));
    let mut micros = unsigned(whole)?.checked_mul(1_000_000)?;
    let mut unit = 100_000;
    for byte in fraction {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        micros = micros.checked_add(digit * unit)?;
        unit /= 10;
    }
    (dot.is_none() || !fraction.is_empty()).then_some(micros)
}

/// Microseconds since 1970 of `$msec`, `$time_iso8601` or `$time_local`; the last two have whole seconds only.
pub fn time_epoch_us(text: &[u8]) -> Option<u64> {
    match text.get(2) {
        Some(b'/') => time_local(text),
        Some(_) if text.get(4) == Some(&b'-') => time_iso(text),
        _ => seconds_us(text),
    }
}

/// `20/Nov/2026:07:17:47 +0000`.
fn time_local(text: &[u8]) -> Option<u64> {
    let month = month(text.get(3..6)?)?;
    let [day, year] = [unsigned(text.get(0..2)?)?, unsigned(text.get(7..11)?)?];
    let clock = clock(text.get(12..20)?)?;
    epoch_us(year, month, day, clock, zone(text.get(21..26)?)?)
}

/// `2026-11-20T07:17:47+00:00`.
fn time_iso(text: &[u8]) -> Option<u64> {
    let [year, month, day] = [unsigned(text.get(0..4)?)?, unsigned(text.get(5..7)?)?, unsigned(text.get(8..10)?)?];
    let zone_text = text.get(19..)?;
    let mut digits = [0; 5];
    let plain = zone_text.iter().filter(|&&byte| byte != b':');
    if zone_text.len() > 6 || plain.clone().count() != 5 {
        return None;
    }
    digits.iter_mut().zip(plain).for_each(|(to, from)| *to = *from);
    epoch_us(year, month, day, clock(text.get(11..19)?)?, zone(&digits)?)
}

/// `Jan` to `Dec`, 1 to 12.
pub fn month(name: &[u8]) -> Option<u64> {
    const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    NAMES.chunks_exact(3).position(|known| known == name).map(|index| index as u64 + 1)
}

/// Seconds of `07:17:47`.
pub fn clock(text: &[u8]) -> Option<u64> {
    if text.len() != 8 || text[2] != b':' || text[5] != b':' {
        return None;
    }
    let [hour, minute, second] = [unsigned(&text[0..2])?, unsigned(&text[3..5])?, unsigned(&text[6..8])?];
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
}

/// Seconds east of Greenwich of `+0130`.
fn zone(text: &[u8]) -> Option<i64> {
    let seconds = (unsigned(text.get(1..3)?)? * 3_600 + unsigned(text.get(3..5)?)? * 60) as i64;
    match text.first()? {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Microseconds since 1970 of a date and a time of day in a time zone.
pub(crate) fn epoch_us(year: u64, month: u64, day: u64, clock: u64, zone: i64) -> Option<u64> {
    let days = epoch_days(year, month, day)?;
    let seconds = (days as i64).checked_mul(86_400)?.checked_add(clock as i64)?.checked_sub(zone)?;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000)
}

/// Days from 1970-01-01 in the Gregorian calendar (Howard Hinnant, days_from_civil).
fn epoch_days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(unsigned(b"200"), Some(200));
        assert_eq!(seconds_us(b"0.003"), Some(3_000));
        assert_eq!(seconds_us(b"12"), Some(12_000_000));
        assert_eq!(seconds_us(b"0.1234567"), Some(123_456));
        for bad in ["", "-", "a", "1.", ".5", "1.x", "99999999999999999999", "18446744073709551615"] {
            assert_eq!(seconds_us(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn times() {
        // date -u -d @1795159067
        let us = Some(1_795_159_067_000_000);
        assert_eq!(time_epoch_us(b"20/Nov/2026:07:17:47 +0000"), us);
        assert_eq!(time_epoch_us(b"20/Nov/2026:08:47:47 +0130"), us);
        assert_eq!(time_epoch_us(b"19/Nov/2026:23:17:47 -0800"), us);
        assert_eq!(time_epoch_us(b"2026-11-20T07:17:47+00:00"), us);
        assert_eq!(time_epoch_us(b"1795159067.123"), Some(1_795_159_067_123_000));
        assert_eq!(time_epoch_us(b"29/Feb/2024:00:00:00 +0000"), Some(1_709_164_800_000_000));
        assert_eq!(time_epoch_us(b"01/Jan/1970:00:00:00 +0000"), Some(0));
        for bad in [
            "",
            "20/Xxx/2026:07:17:47 +0000",
            "20/Nov/2026:25:17:47 +0000",
            "20/Nov/2026",
            "2026-13-20T07:17:47+00:00",
            "01/Jan/1970:00:00:00 +0100",
        ] {
            assert_eq!(time_epoch_us(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9/:T+. a-zA-Z-]{0,30}") {
            if time_epoch_us(text.as_bytes()).is_some() {
                prop_assert!(text.contains(|c: char| c.is_ascii_digit()));
            }
        }
    }
}
