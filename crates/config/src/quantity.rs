//! Sizes, times and flags as nginx and php-fpm write them.

/// Bytes of a size like `8k`, `1m` or `512` (`ngx_parse_size`). nginx accepts `g` for offsets only; it is accepted here for sizes too.
pub(crate) fn size_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit)
}

/// Milliseconds of an nginx time: `60`, `60s`, `1h30m`, `500ms`, `1d 2h` (`ngx_parse_time`: units from large to small, seconds if no unit
/// is given). Months have 30 days, years 365.
pub(crate) fn time_ms(text: &str) -> Option<u64> {
    const UNITS: &[(&str, u64)] = &[
        ("y", 31_536_000_000),
        ("M", 2_592_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("ms", 1),
        ("m", 60_000),
        ("s", 1_000),
    ];
    let mut rest = text;
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let value = number(&rest[..digits])?;
        rest = &rest[digits..];
        let unit = match UNITS.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, unit)) => {
                rest = rest[name.len()..].trim_start_matches(' ');
                *unit
            }
            // A number without a unit means seconds. Only the last number may have no unit.
            None if rest.trim_start_matches(' ').is_empty() => {
                rest = "";
                1_000
            }
            None => return None,
        };
        if unit >= smallest {
            return None;
        }
        smallest = unit;
        total = total.checked_add(value.checked_mul(unit)?)?;
    }
    Some(total)
}

/// A decimal number without a sign.
pub(crate) fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `on` and `off`, in any case (`ngx_conf_set_flag_slot`).
pub(crate) fn flag(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("on") {
        Some(true)
    } else if text.eq_ignore_ascii_case("off") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("8k"), Some(8192));
        assert_eq!(size_bytes("1M"), Some(1 << 20));
        assert_eq!(size_bytes("17"), Some(17));
        for bad in ["", "k", "-1", "1kb", "99999999999999999999", "18446744073709551615k"] {
            assert_eq!(size_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn times() {
        for (text, ms) in
            [("60", 60_000), ("65s", 65_000), ("1h30m", 5_400_000), ("500ms", 500), ("1m 30s", 90_000), ("1m30", 90_000), ("0", 0)]
        {
            assert_eq!(time_ms(text), Some(ms), "{text}");
        }
        for bad in ["", "s", "1x", "30s1m", "5 5", "1s1s", "99999999999999999999s", "999999999999999999y"] {
            assert_eq!(time_ms(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,12}") {
            prop_assert!(time_ms(&text).is_none() || text.contains(|c: char| c.is_ascii_digit()));
            prop_assert!(size_bytes(&text).is_none() || text.contains(|c: char| c.is_ascii_digit()));
        }
    }
}
