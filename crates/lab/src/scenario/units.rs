//! Values with units in scenario files: time spans, sizes, rates, addresses with prefix, permissions, status ranges.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

use chokepoint_model::quantity::{split_unit, unit_ns};
use serde::{Deserialize, Deserializer, de};

/// A time span: "500us", "250ms", "10s", "2m"; at most a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan(pub Duration);

/// A number of bytes: "512B", "64KiB", "10MiB", "1GiB", or a whole number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// Bits a second: "500kbit", "50mbit", "1gbit" (powers of ten, as tc(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitRate(pub u64);

/// An address with its prefix length: "10.0.0.1/24", "fd00::1/64".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address.
    pub ip: IpAddr,
    /// Length of the prefix, bits.
    pub prefix_bits: u8,
}

/// Permissions of a file, in octal: "0644".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

/// Expected statuses as ranges that include both ends: "2xx,3xx", "200", "200-204,404".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRanges(pub Vec<(u16, u16)>);

impl Default for StatusRanges {
    fn default() -> Self {
        StatusRanges(vec![(200, 299), (300, 399)])
    }
}

impl FromStr for TimeSpan {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a time: write a number with a unit, \"500us\", \"250ms\", \"10s\" or \"2m\"");
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        let seconds = number * unit_ns(unit).ok_or_else(wrong)? / 1e9;
        if seconds > 86_400.0 {
            return Err(format!("\"{text}\" is longer than a day"));
        }
        Ok(TimeSpan(Duration::from_secs_f64(seconds)))
    }
}

impl FromStr for ByteSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a size: write a number with a unit, \"512B\", \"64KiB\", \"10MiB\" or \"1GiB\"");
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        let factor = match unit {
            "B" => 1.0,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            _ => return Err(wrong()),
        };
        let bytes = number * factor;
        if bytes > 1e15 { Err(format!("\"{text}\" is too large")) } else { Ok(ByteSize(bytes as u64)) }
    }
}

impl FromStr for BitRate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a rate: write bits per second with a unit, \"500kbit\", \"50mbit\" or \"1gbit\"");
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        let factor = match unit {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return Err(wrong()),
        };
        let bits = number * factor;
        if (8.0..=1e12).contains(&bits) { Ok(BitRate(bits as u64)) } else { Err(format!("\"{text}\" is not between 8bit and 1000gbit")) }
    }
}

impl FromStr for Cidr {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not an address with a prefix length, such as \"10.0.0.1/24\" or \"fd00::1/64\"");
        let (ip, bits) = text.split_once('/').ok_or_else(wrong)?;
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let bits_max = if ip.is_ipv4() { 32 } else { 128 };
        match bits.parse::<u8>() {
            Ok(prefix_bits) if prefix_bits <= bits_max => Ok(Cidr { ip, prefix_bits }),
            _ => Err(format!("\"{text}\": the prefix length must be 0 to {bits_max}")),
        }
    }
}

impl Cidr {
    /// True where no bit is set beyond the prefix: a network, not an address in it.
    pub fn is_network(&self) -> bool {
        match self.ip {
            IpAddr::V4(ip) => ip.to_bits().checked_shl(u32::from(self.prefix_bits)).unwrap_or(0) == 0,
            IpAddr::V6(ip) => ip.to_bits().checked_shl(u32::from(self.prefix_bits)).unwrap_or(0) == 0,
        }
    }

    /// True where the other address is in this one's network.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.ip, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => prefix_equal_v4(own, other, self.prefix_bits),
            (IpAddr::V6(own), IpAddr::V6(other)) => prefix_equal_v6(own, other, self.prefix_bits),
            _ => false,
        }
    }
}

fn prefix_equal_v4(a: Ipv4Addr, b: Ipv4Addr, bits: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    (a.to_bits() ^ b.to_bits()) & mask == 0
}

fn prefix_equal_v6(a: Ipv6Addr, b: Ipv6Addr, bits: u8) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    (a.to_bits() ^ b.to_bits()) & mask == 0
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_bits)
    }
}

impl FromStr for FileMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let octal = (3..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
        let mode = if octal { u32::from_str_radix(text, 8).ok() } else { None };
        match mode {
            Some(mode) if mode <= 0o777 => Ok(FileMode(mode)),
            _ => Err(format!("\"{text}\" are not permissions: write three octal digits, \"0644\" or \"0755\"")),
        }
    }
}

impl FromStr for StatusRanges {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let wrong = || format!("\"{part}\" is not an HTTP status: write \"200\", \"200-204\" or \"2xx\", several separated by commas");
            let range = match part.strip_suffix("xx") {
                Some(class) => {
                    class.parse::<u16>().ok().and_then(|class| Some((class.checked_mul(100)?, class.checked_mul(100)?.checked_add(99)?)))
                }
                None => {
                    let (low, high) = part.split_once('-').unwrap_or((part, part));
                    low.parse().ok().zip(high.parse().ok())
                }
            };
            match range {
                Some((low, high)) if (100..=599).contains(&low) && low <= high && high <= 599 => ranges.push((low, high)),
                _ => return Err(wrong()),
            }
        }
        Ok(StatusRanges(ranges))
    }
}

macro_rules! deserialize_from_text {
    ($($name:ty),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}
deserialize_from_text!(TimeSpan, BitRate, Cidr, FileMode, StatusRanges);

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = ByteSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size: \"64KiB\", \"10MiB\", or a whole number of bytes")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<ByteSize, E> {
                u64::try_from(value).map(ByteSize).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<ByteSize, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_units_are_parsed() {
        assert_eq!("500us".parse(), Ok(TimeSpan(Duration::from_micros(500))));
        assert_eq!("1.5s".parse(), Ok(TimeSpan(Duration::from_millis(1500))));
        assert_eq!("2m".parse(), Ok(TimeSpan(Duration::from_secs(120))));
        assert_eq!("64KiB".parse(), Ok(ByteSize(65_536)));
        assert_eq!("1.5MiB".parse(), Ok(ByteSize(1_572_864)));
        assert_eq!("50mbit".parse(), Ok(BitRate(50_000_000)));
        assert_eq!("0644".parse(), Ok(FileMode(0o644)));
        assert_eq!("755".parse(), Ok(FileMode(0o755)));
        assert_eq!("2xx, 404,500-503".parse(), Ok(StatusRanges(vec![(200, 299), (404, 404), (500, 503)])));
        assert_eq!("fd00::1/64".parse::<Cidr>().map(|cidr| cidr.to_string()), Ok("fd00::1/64".to_owned()));
    }

    #[test]
    fn invalid_values_are_refused_with_an_example() {
        for text in ["", "10", "s", "-1s", "1e9s", "1h", "10 s", "nans", "1.2.3s", "99999m"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
        for text in ["", "64", "64kb", "-1B", "9999999999GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        for text in ["", "50", "50mb", "1bit", "9999gbit"] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
        for text in ["", "10.0.0.1", "10.0.0.1/33", "fd00::1/129", "10.0.0/24", "10.0.0.1/-1", "/24"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        for text in ["", "9", "0888", "7777", "64444", "rw-"] {
            assert!(text.parse::<FileMode>().is_err(), "{text}");
        }
        for text in ["", "abc", "99", "600", "6xx", "204-200", "2xx,", "655xx", "-5"] {
            assert!(text.parse::<StatusRanges>().is_err(), "{text}");
        }
        assert!("5 minutes".parse::<TimeSpan>().unwrap_err().contains("\"10s\""));
    }

    #[test]
    fn a_network_contains_its_addresses_only() {
        let contains = |cidr: &str, ip: &str| cidr.parse::<Cidr>().unwrap().contains(ip.parse().unwrap());
        assert!(contains("10.0.0.1/24", "10.0.0.200"));
        assert!(!contains("10.0.0.1/24", "10.0.1.1"));
        assert!(contains("10.0.0.1/0", "192.0.2.1"));
        assert!(contains("10.0.0.1/32", "10.0.0.1"));
        assert!(!contains("10.0.0.1/32", "10.0.0.2"));
        assert!(contains("fd00::1/64", "fd00::ffff"));
        assert!(!contains("fd00::1/64", "fd00:0:0:1::1"));
        assert!(!contains("10.0.0.1/0", "::1"));
        assert!(contains("::/0", "2001:db8::1"));
    }
}
