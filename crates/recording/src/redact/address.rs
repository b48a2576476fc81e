//! Which addresses identify something outside the site, and their pseudonyms.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First address of 198.18.0.0/15 (RFC 2544): 131,070 pseudonyms, without the first and the last address.
const BENCHMARK_FIRST: u32 = 0xC612_0000;
const BENCHMARK_COUNT: u32 = 1 << 17;
/// First address of 240.0.0.0/4 (RFC 1112, reserved): the next pseudonyms.
const RESERVED_FIRST: u32 = 0xF000_0000;
/// First address of 2001:db8::/32 (RFC 3849).
const DOCUMENTATION_FIRST: u128 = 0x2001_0db8 << 96;
/// 64:ff9b::/96 (RFC 6052): the last 32 bits are an IPv4 address.
const NAT64_FIRST: u128 = 0x0064_ff9b << 96;

/// Where an address has a meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It has a meaning everywhere.
    Public,
    /// It has a meaning within the site or on the link.
    Site,
    /// It means the same everywhere, or nothing at all.
    Fixed,
}

/// The pseudonyms of one recording. Memory grows with the number of different addresses.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    names_v4: HashMap<u32, u32>,
    names_v6: HashMap<u128, u128>,
    /// Addresses in the pseudonyms' ranges that occur in the recording.
    taken: HashSet<IpAddr>,
    issued_v4: u32,
    issued_v6: u64,
}

impl Pseudonyms {
    /// Excludes an address from the pseudonyms if it is in their ranges.
    pub(super) fn take(&mut self, address: IpAddr) {
        let pseudonym_like = match address {
            IpAddr::V4(v4) => is_benchmark(v4.to_bits()) || v4.to_bits() >= RESERVED_FIRST,
            IpAddr::V6(v6) => match embedded_v4(v6) {
                Some((_, v4)) => return self.take(IpAddr::V4(v4)),
                None => is_documentation_v6(v6.to_bits()),
            },
        };
        if pseudonym_like {
            self.taken.insert(address);
        }
    }

    /// The number of addresses with a pseudonym.
    pub(super) fn count(&self) -> usize {
        self.names_v4.len() + self.names_v6.len()
    }

    /// The pseudonym of this address.
    pub(super) fn of(&mut self, address: IpAddr, site_too: bool) -> IpAddr {
        match address {
            IpAddr::V4(v4) => self.of_v4(v4, site_too).into(),
            IpAddr::V6(v6) => match embedded_v4(v6) {
                Some((prefix, v4)) => Ipv6Addr::from_bits(prefix | u128::from(self.of_v4(v4, site_too).to_bits())).into(),
                None => self.of_v6(v6, site_too).into(),
            },
        }
    }

    fn of_v4(&mut self, address: Ipv4Addr, site_too: bool) -> Ipv4Addr {
        let reach = reach_v4(address);
        if reach == Reach::Fixed || (reach == Reach::Site && !site_too) {
            return address;
        }
        if let Some(name) = self.names_v4.get(&address.to_bits()) {
            return Ipv4Addr::from_bits(*name);
        }
        let name = loop {
            let name = nth_v4(self.issued_v4);
            self.issued_v4 = self.issued_v4.saturating_add(1);
            if !self.taken.contains(&IpAddr::V4(Ipv4Addr::from_bits(name))) {
                break name;
            }
        };
        self.names_v4.insert(address.to_bits(), name);
        Ipv4Addr::from_bits(name)
    }

    fn of_v6(&mut self, address: Ipv6Addr, site_too: bool) -> Ipv6Addr {
        let reach = reach_v6(address);
        if reach == Reach::Fixed || (reach == Reach::Site && !site_too) {
            return address;
        }
        if let Some(name) = self.names_v6.get(&address.to_bits()) {
            return Ipv6Addr::from_bits(*name);
        }
        let name = loop {
            self.issued_v6 += 1;
            let name = DOCUMENTATION_FIRST + u128::from(self.issued_v6);
            if !self.taken.contains(&IpAddr::V6(Ipv6Addr::from_bits(name))) {
                break name;
            }
        };
        self.names_v6.insert(address.to_bits(), name);
        Ipv6Addr::from_bits(name)
    }
}

/// The n-th IPv4 pseudonym. After 268 million, the last one is shared. No recording within its limits has that many.
fn nth_v4(n: u32) -> u32 {
    const FIRST_COUNT: u32 = BENCHMARK_COUNT - 2;
    if n < FIRST_COUNT { BENCHMARK_FIRST + 1 + n } else { RESERVED_FIRST.saturating_add(n - FIRST_COUNT).min(u32::MAX - 1) }
}

fn is_benchmark(bits: u32) -> bool {
    bits >> 17 == BENCHMARK_FIRST >> 17
}

fn is_documentation_v6(bits: u128) -> bool {
    bits >> 96 == DOCUMENTATION_FIRST >> 96
}

/// The prefix of an address whose last 32 bits are an IPv4 address (IPv4-mapped, NAT64), and that address.
fn embedded_v4(address: Ipv6Addr) -> Option<(u128, Ipv4Addr)> {
    let bits = address.to_bits();
    let prefix = bits >> 32 << 32;
    (prefix == 0xffff << 32 || prefix == NAT64_FIRST).then(|| (prefix, Ipv4Addr::from_bits(bits as u32)))
}

/// Follows the IANA IPv4 Special-Purpose Address Registry (RFC 6890).
fn reach_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This network, loopback, multicast, and everything above: 240.0.0.0/4, netmasks, broadcast.
        (0 | 127 | 224.., _, _) => Reach::Fixed,
        // Benchmarking (RFC 2544): the pseudonyms.
        (198, 18 | 19, _) => Reach::Fixed,
        // Private (RFC 1918), shared (RFC 6598), link-local (RFC 3927), IETF protocols (RFC 6890).
        (10, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (169, 254, _) | (192, 0, 0) => Reach::Site,
        // Documentation (RFC 5737).
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Reach::Site,
        _ => Reach::Public,
    }
}

/// Follows the IANA IPv6 Special-Purpose Address Registry.
fn reach_v6(address: Ipv6Addr) -> Reach {
    let head = address.segments()[0];
    if address.is_unspecified() || address.is_loopback() || head >= 0xff00 || is_documentation_v6(address.to_bits()) {
        return Reach::Fixed;
    }
    match head {
        // Unique local (RFC 4193); link-local and the former site-local (RFC 4291).
        0xfc00..=0xfdff | 0xfe80..=0xfeff => Reach::Site,
        // Documentation (RFC 9637), discard (RFC 6666).
        0x3fff if address.segments()[1] < 0x1000 => Reach::Site,
        0x0100 if address.segments()[1..4] == [0, 0, 0] => Reach::Site,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pseudonyms: &mut Pseudonyms, text: &str, site_too: bool) -> String {
        pseudonyms.of(text.parse().unwrap(), site_too).to_string()
    }

    #[test]
    fn public_addresses_get_pseudonyms_and_others_stay() {
        let mut names = Pseudonyms::default();
        for (from, to) in [
            ("8.8.8.8", "198.18.0.1"),
            ("1.1.1.1", "198.18.0.2"),
            ("8.8.8.8", "198.18.0.1"),
            ("::ffff:8.8.8.8", "::ffff:198.18.0.1"),
            ("64:ff9b::808:808", "64:ff9b::c612:1"),
            ("2a00:1450::1", "2001:db8::1"),
            ("2002:808:808::1", "2001:db8::2"),
            ("2a00:1450::1", "2001:db8::1"),
            ("172.32.0.1", "198.18.0.3"),
            ("100.128.0.1", "198.18.0.4"),
            ("192.0.3.1", "198.18.0.5"),
            ("4000::1", "2001:db8::3"),
        ] {
            assert_eq!(of(&mut names, from, false), to, "{from}");
        }
        for same in [
            "0.0.0.0",
            "127.0.0.1",
            "127.8.9.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.1.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "255.255.255.255",
            "255.255.255.0",
            "240.0.0.1",
            "198.18.0.77",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "2001:db8::9",
            "3fff::1",
            "100::1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(of(&mut names, same, false), same);
        }
    }

    #[test]
    fn level_all_also_replaces_addresses_of_the_site() {
        let mut names = Pseudonyms::default();
        for (from, to) in [
            ("10.0.0.1", "198.18.0.1"),
            ("169.254.0.1", "198.18.0.2"),
            ("203.0.113.9", "198.18.0.3"),
            ("::ffff:10.0.0.1", "::ffff:198.18.0.1"),
            ("fd00::1", "2001:db8::1"),
            ("fe80::1", "2001:db8::2"),
        ] {
            assert_eq!(of(&mut names, from, true), to, "{from}");
        }
        for same in ["0.0.0.0", "127.0.0.1", "255.255.255.255", "224.0.0.1", "::", "::1", "ff02::1", "198.18.0.1", "2001:db8::1"] {
            assert_eq!(of(&mut names, same, true), same);
        }
    }

    #[test]
    fn a_pseudonym_never_equals_an_address_that_occurs() {
        let mut names = Pseudonyms::default();
        for taken in ["198.18.0.1", "::ffff:198.18.0.2", "2001:db8::1", "10.0.0.1"] {
            names.take(taken.parse().unwrap());
        }
        assert_eq!(of(&mut names, "8.8.8.8", false), "198.18.0.3");
        assert_eq!(of(&mut names, "2a00::1", false), "2001:db8::2");
    }

    #[test]
    fn pseudonyms_continue_in_the_reserved_range() {
        assert_eq!(Ipv4Addr::from_bits(nth_v4(0)).to_string(), "198.18.0.1");
        assert_eq!(Ipv4Addr::from_bits(nth_v4(131_069)).to_string(), "198.19.255.254");
        assert_eq!(Ipv4Addr::from_bits(nth_v4(131_070)).to_string(), "240.0.0.0");
        assert_eq!(Ipv4Addr::from_bits(nth_v4(u32::MAX)).to_string(), "255.255.255.254");
    }
}
