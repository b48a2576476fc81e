//! Finds IP and hardware addresses in any text and redacts them. Version numbers, times and counters are not addresses.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Redactor;

/// Groups of an IPv6 address as text, including the empty ones of a "::".
const GROUPS_MAX: usize = 9;
/// Longest IPv6 address as text: "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".
const IPV6_TEXT_MAX: usize = 45;
/// Least number of groups of two hexadecimal digits that form a hardware address (EUI-48).
const HARDWARE_GROUPS_MIN: usize = 6;
/// Groups in the `MAC=` field of a netfilter log line: destination, source and the protocol's number. The number stays.
const NETFILTER_GROUPS: usize = 14;

/// Redacts every address in the text.
pub(super) fn rewrite(text: &[u8], redactor: &mut Redactor) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut at = 0;
    // The end of the last escape sequence: its last letter does not belong to the word that follows.
    let mut fresh = 0;
    while at < text.len() {
        if let Some(length) = escape_length(&text[at..]) {
            out.extend_from_slice(&text[at..at + length]);
            at += length;
            fresh = at;
        } else if let Some(length) = dashed_hardware_length(&text[at..], &text[fresh..at]) {
            put_hardware(&text[at..at + length], redactor, &mut out);
            at += length;
        } else if is_run(text[at]) {
            let length = text[at..].iter().take_while(|byte| is_run(**byte)).count();
            Run::new(&text[at..at + length], &text[fresh..at], text.get(at + length).copied()).rewrite(redactor, &mut out);
            at += length;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

/// Characters of an address.
fn is_run(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':' || byte == b'.'
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the escape sequence at the start, in the notation of JSON, C, the kernel log or a URL. Text escaped several times
/// has several backslashes.
fn escape_length(text: &[u8]) -> Option<usize> {
    const BACKSLASHES_MAX: usize = 8;
    if text[0] == b'%' {
        return percent_length(text);
    }
    let slashes = text.iter().take(BACKSLASHES_MAX).take_while(|byte| **byte == b'\\').count();
    let digits = |count: usize, is: fn(&u8) -> bool| text.get(slashes + 1..slashes + 1 + count).is_some_and(|it| it.iter().all(is));
    match text.get(slashes)? {
        _ if slashes == 0 => None,
        b'n' | b't' | b'r' | b'b' | b'f' | b'v' => Some(slashes + 1),
        // A pseudonym after "\x" must read as the same address in a second pass.
        _ if begins_pseudonym(&text[slashes..]) => None,
        b'x' | b'u' | b'0' | b'1' if begins_pseudonym(&text[slashes + 1..]) => Some(slashes + 1),
        b'x' if digits(2, u8::is_ascii_hexdigit) => Some(slashes + 3),
        b'u' if digits(4, u8::is_ascii_hexdigit) => Some(slashes + 5),
        // Octal from 000 to 177: "\040203.0.113.9" is an address after a blank, "\203.0.113.9" and "\100.64.0.1" follow a backslash.
        b'0' | b'1' if digits(2, |byte| (b'0'..=b'7').contains(byte)) && text.get(slashes + 3) != Some(&b'.') => Some(slashes + 3),
        _ => None,
    }
}

fn begins_pseudonym(text: &[u8]) -> bool {
    [&b"198.18."[..], b"198.19.", b"240.", b"2001:db8:"].iter().any(|head| text.starts_with(head))
}

/// The length of a percent-encoded separator (RFC 3986) at the start. Other octets do not end a word, and "%2001:db8::1" is not a blank.
fn percent_length(text: &[u8]) -> Option<usize> {
    const SEPARATORS: &[&[u8]] = &[
        b"09", b"0a", b"0d", b"20", b"22", b"26", b"27", b"28", b"29", b"2c", b"2f", b"3a", b"3b", b"3c", b"3d", b"3e", b"3f", b"40",
        b"5b", b"5d", b"7c",
    ];
    let octet = text.get(1..3)?.to_ascii_lowercase();
    let address = text.get(3) == Some(&b'.') || begins_pseudonym(&text[1..]);
    (SEPARATORS.contains(&&octet[..]) && !address).then_some(3)
}

/// A run of hexadecimal digits, colons and dots, and the range in it where addresses may lie.
struct Run<'a> {
    bytes: &'a [u8],
    /// Groups that begin before this belong to a word that began before the run ("SRC:" of "SRC:2a00::1" ends in a hexadecimal digit).
    from: usize,
    /// Groups that end after this belong to a word that continues after the run.
    to: usize,
    /// The run follows the "v" of a version ("v1.2.3.4").
    version: bool,
}

impl<'a> Run<'a> {
    fn new(bytes: &'a [u8], before: &[u8], after: Option<u8>) -> Self {
        let version = match before {
            [.., outer, b'v' | b'V'] => !is_word(*outer),
            [b'v' | b'V'] => true,
            _ => false,
        };
        Self::between(bytes, before.last().is_some_and(|byte| is_word(*byte)), after.is_some_and(is_word), version)
    }

    /// A run, given whether the bytes before and after it belong to a word.
    fn between(bytes: &'a [u8], word_before: bool, word_after: bool, version: bool) -> Self {
        let first = bytes.iter().position(|byte| *byte == b':');
        let last = bytes.iter().rposition(|byte| *byte == b':');
        let from = if word_before { first.map_or(usize::MAX, |at| at + 1) } else { 0 };
        let to = if word_after { last.unwrap_or(0) } else { bytes.len() };
        Self { bytes, from, to, version }
    }

    fn rewrite(&self, redactor: &mut Redactor, out: &mut Vec<u8>) {
        let start = out.len();
        self.rewrite_groups(redactor, out);
        let colons = self.bytes.iter().filter(|byte| **byte == b':').count();
        if colons < 2 || out[start..] == *self.bytes {
            return;
        }
        // Groups next to a shorter pseudonym could form a new address with it. Nobody writes such a run on purpose: one pseudonym
        // replaces all of it.
        let mut again = Vec::new();
        let (word_before, word_after) = (self.from > 0, self.to < self.bytes.len());
        Run::between(&out[start..], word_before, word_after, self.version).rewrite_groups(redactor, &mut again);
        if out[start..] != again[..] {
            out.truncate(start);
            out.extend_from_slice(if self.from > 0 { b":" } else { b"" });
            out.extend_from_slice(b"2001:db8::");
            out.extend_from_slice(if self.to < self.bytes.len() { b":" } else { b"" });
        }
    }

    /// Goes from group to group and redacts the longest address that begins at each.
    fn rewrite_groups(&self, redactor: &mut Redactor, out: &mut Vec<u8>) {
        let colons = self.bytes.iter().filter(|byte| **byte == b':').count();
        let mut at = 0;
        loop {
            let eligible = colons >= 2 && at >= self.from;
            if let Some(end) = eligible.then(|| self.hardware_end(at)).flatten() {
                put_hardware(&self.bytes[at..end], redactor, out);
                at = end;
            } else if let Some((start, end, address)) = eligible.then(|| self.ipv6(at)).flatten() {
                out.extend_from_slice(&self.bytes[at..start]);
                put_address(&self.bytes[start..end], address.into(), redactor, out);
                at = end;
            }
            let end = self.group_end(at);
            self.rewrite_ipv4(at, end, redactor, out);
            if end == self.bytes.len() {
                return;
            }
            out.push(b':');
            at = end + 1;
        }
    }

    fn group_end(&self, at: usize) -> usize {
        self.bytes[at..].iter().position(|byte| *byte == b':').map_or(self.bytes.len(), |length| at + length)
    }

    /// The end of the hardware address that begins here.
    fn hardware_end(&self, at: usize) -> Option<usize> {
        let (mut groups, mut end, mut next) = (0, at, at);
        while next < self.bytes.len() {
            let group_end = self.group_end(next);
            let group = &self.bytes[next..group_end];
            let dots = group.iter().rev().take_while(|byte| **byte == b'.').count();
            if group.len() - dots != 2 || group_end > self.to || group[..2].contains(&b'.') {
                break;
            }
            (groups, end, next) = (groups + 1, group_end - dots, group_end + 1);
            if dots > 0 {
                break;
            }
        }
        (groups >= HARDWARE_GROUPS_MIN).then_some(end)
    }

    /// The longest IPv6 address that begins in this group: its start, its end and its value.
    fn ipv6(&self, at: usize) -> Option<(usize, usize, Ipv6Addr)> {
        let start = at + self.bytes[at..].iter().take_while(|byte| **byte == b'.').count();
        let mut ends = [0; GROUPS_MAX];
        let mut count = 0;
        let mut next = at;
        while count < GROUPS_MAX && next <= self.to {
            let end = self.group_end(next);
            if end > self.to || end - start.min(end) > IPV6_TEXT_MAX + 1 {
                break;
            }
            ends[count] = end;
            count += 1;
            next = end + 1;
        }
        ends[..count].iter().rev().find_map(|end| {
            let text = self.bytes.get(start..*end)?;
            let dots = text.iter().rev().take_while(|byte| **byte == b'.').count();
            let text = &text[..text.len() - dots];
            let address = std::str::from_utf8(text).ok()?.parse().ok()?;
            Some((start, end - dots, address))
        })
    }

    /// Redacts the IPv4 addresses within one group.
    fn rewrite_ipv4(&self, from: usize, to: usize, redactor: &mut Redactor, out: &mut Vec<u8>) {
        let is_digit_or_dot = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let mut at = from;
        while at < to {
            let length = self.bytes[at..to].iter().take_while(|byte| is_digit_or_dot(byte)).count();
            if length == 0 {
                out.push(self.bytes[at]);
                at += 1;
            } else if self.version && at == 0 {
                out.extend_from_slice(&self.bytes[at..at + length]);
                at += length;
            } else {
                // Leading zeros are allowed only if no IPv6 address could end in the result: redaction must not create new addresses.
                rewrite_dotted(&self.bytes[at..at + length], from == 0, redactor, out);
                at += length;
            }
        }
    }
}

/// Redacts digits and dots. Each part between ".." is separate: a part of four numbers is an address, a part of more is not.
fn rewrite_dotted(text: &[u8], zeros: bool, redactor: &mut Redactor, out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let dots = text[at..].iter().take_while(|byte| **byte == b'.').count();
        out.extend_from_slice(&text[at..at + dots]);
        at += dots;
        let rest = &text[at..];
        let end = rest.windows(2).position(|pair| pair == b"..").unwrap_or(rest.len());
        let part = rest[..end].strip_suffix(b".").unwrap_or(&rest[..end]);
        match ipv4(part, zeros) {
            Some(address) => put_address(part, address.into(), redactor, out),
            None => out.extend_from_slice(part),
        }
        at += part.len();
    }
}

/// Four decimal numbers up to 255, with up to three digits each.
fn ipv4(text: &[u8], zeros: bool) -> Option<Ipv4Addr> {
    const TEXT_MAX: usize = 15;
    if text.len() > TEXT_MAX {
        return None;
    }
    let mut octets = [0; 4];
    let mut numbers = text.split(|byte| *byte == b'.');
    for octet in &mut octets {
        let number = numbers.next().filter(|number| (1..=3).contains(&number.len()))?;
        if number.len() > 1 && number[0] == b'0' && !zeros {
            return None;
        }
        let value = number.iter().try_fold(0_u16, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0')))?;
        *octet = u8::try_from(value).ok()?;
    }
    numbers.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Writes the pseudonym, or the original text if the address stays.
fn put_address(text: &[u8], address: IpAddr, redactor: &mut Redactor, out: &mut Vec<u8>) {
    let name = redactor.address(address);
    if name == address {
        out.extend_from_slice(text);
    } else {
        // Writing to memory cannot fail.
        let _ = write!(out, "{name}");
    }
}

/// The length of a hardware address with dashes ("00-11-22-33-44-55") at the beginning.
fn dashed_hardware_length(text: &[u8], before: &[u8]) -> Option<usize> {
    let is_hex = |at: usize| text.get(at).is_some_and(u8::is_ascii_hexdigit);
    if text.get(2) != Some(&b'-') || before.last().is_some_and(|byte| is_word(*byte) || *byte == b'-') {
        return None;
    }
    let mut groups = 0;
    let mut at = 0;
    while is_hex(at) && is_hex(at + 1) {
        groups += 1;
        at += 2;
        if text.get(at) != Some(&b'-') {
            break;
        }
        at += 1;
    }
    let ended = text.get(at).is_none_or(|byte| !is_word(*byte));
    (ended && groups >= HARDWARE_GROUPS_MIN && text[at - 1] != b'-').then_some(at)
}

/// Writes a hardware address of any length with its digits zeroed. Broadcast stays, and so does the protocol after two addresses.
fn put_hardware(text: &[u8], redactor: &Redactor, out: &mut Vec<u8>) {
    let groups: Vec<&[u8]> = text.split(|byte| *byte == b':' || *byte == b'-').collect();
    let separator = text[2];
    let six = |at: usize| &groups[at / 6 * 6..(at / 6 * 6 + 6).min(groups.len())];
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            out.push(separator);
        }
        let protocol = groups.len() == NETFILTER_GROUPS && at >= NETFILTER_GROUPS - 2;
        let broadcast = six(at).iter().all(|group| group.eq_ignore_ascii_case(b"ff"));
        let mut byte = [1];
        redactor.hardware(&mut byte);
        out.extend_from_slice(if protocol || broadcast || byte == [1] { group } else { b"00" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Level;

    fn public(text: &str) -> String {
        String::from_utf8(rewrite(text.as_bytes(), &mut Redactor::new(Level::Public))).unwrap()
    }

    #[test]
    fn addresses_are_found_anywhere() {
        for (from, to) in [
            ("8.8.8.8", "198.18.0.1"),
            ("from 8.8.8.8:53 to 8.8.4.4.", "from 198.18.0.1:53 to 198.18.0.2."),
            ("src=8.8.8.8 dst=10.0.0.1 sport=1", "src=198.18.0.1 dst=10.0.0.1 sport=1"),
            ("8.8.8.0/24,8.8.8.8..8.8.4.4", "198.18.0.1/24,198.18.0.2..198.18.0.3"),
            ("8.8.8.8-8.8.4.4 (8.8.8.8) <8.8.8.8>", "198.18.0.1-198.18.0.2 (198.18.0.1) <198.18.0.1>"),
            ("[2a00::1]:443 2A00:0:0:0:0:0:0:1", "[2001:db8::1]:443 2001:db8::1"),
            ("2a00::1: error, 2a00::/32; 2a00::1%eth0", "2001:db8::1: error, 2001:db8::2/32; 2001:db8::1%eth0"),
            ("SRC:2a00::1 addr:2a00::1 face:8.8.8.8", "SRC:2001:db8::1 addr:2001:db8::1 face:198.18.0.1"),
            ("[::ffff:8.8.8.8]:80 ::ffff:8.8.8.8:80", "[::ffff:198.18.0.1]:80 ::ffff:198.18.0.1:80"),
            ("::ffff:808:808. addr:::ffff:8.8.8.8", "::ffff:198.18.0.1. addr:::ffff:198.18.0.1"),
            (
                r"\n8.8.8.8\n2a00::1\x0a2a00::1\\n2a00::1\0402a00::1",
                r"\n198.18.0.1\n2001:db8::1\x0a2001:db8::1\\n2001:db8::1\0402001:db8::1",
            ),
            ("%208.8.8.8%20 \\203.1.1.1", "%20198.18.0.1%20 \\198.18.0.2"),
            ("ip8.8.8.8ms a8.8.8.8b", "ip198.18.0.1ms a198.18.0.1b"),
            ("008.008.008.008", "198.18.0.1"),
            ("8.8.8.8.in-addr.arpa static.8.8.8.8.example", "198.18.0.1.in-addr.arpa static.198.18.0.1.example"),
            ("2606:4700:4700::1111/128", "2001:db8::1/128"),
            ("1:2:3:4:5:6:7:8", "2001:db8::1"),
        ] {
            assert_eq!(public(from), to, "{from}");
        }
    }

    #[test]
    fn text_without_addresses_stays() {
        for same in [
            "nginx/1.22.1",
            "07:17:47",
            "2025-11-20 07:17:47.123",
            "Linux 6.1.0-13",
            "1.2.3.4.5",
            "v1.2.3.4 (V5.6.7.8)",
            "256.1.1.1",
            "1.2.3",
            "1.2.3.4444",
            "std::vector<dead::gone>",
            "foo::bar",
            "foo::1",
            "cgroup 0::/system.slice",
            "12:cpu:/",
            "::",
            "::1",
            "[::1]:80",
            "127.0.0.1:80",
            "00000001 0a00000f deadbeef",
            "0.15 0.10 0.05 1/234 5678",
            "a:b:c",
            "aa:bb:cc:dd:ee",
            "....",
            ":::::",
            "10.0.0.1/8",
            "fe80::1%eth0",
            "0::/",
            "7f000001:1F90",
            "0000000000000000FFFF00000100007F:0050",
            "%",
            "\\",
            "%4",
            "\\x",
        ] {
            assert_eq!(public(same), same);
        }
    }

    #[test]
    fn hardware_addresses_are_zeroed() {
        for (from, to) in [
            ("link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff", "link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff"),
            ("HWaddr:52:54:00:12:34:56, 52-54-00-12-34-56", "HWaddr:00:00:00:00:00:00, 00-00-00-00-00-00"),
            ("MAC=ff:ff:ff:ff:ff:ff:52:54:00:12:34:56:08:00 SRC=8.8.8.8", "MAC=ff:ff:ff:ff:ff:ff:00:00:00:00:00:00:08:00 SRC=198.18.0.1"),
            ("guid 50:01:43:80:12:34:56:78.", "guid 00:00:00:00:00:00:00:00."),
        ] {
            assert_eq!(public(from), to, "{from}");
        }
        for same in ["2024-01-02-03-04-05", "123e4567-e89b-12d3-a456-426614174000", "12-34-56-78-9a-bcd", "a-52-54-00-12-34-56-"] {
            assert_eq!(public(same), same);
        }
        let none = rewrite(b"52:54:00:12:34:56 8.8.8.8", &mut Redactor::new(Level::None));
        assert_eq!(none, b"52:54:00:12:34:56 8.8.8.8");
    }
}
