//! Host names at level All: each becomes "host-N.invalid" (RFC 2606), the same everywhere.

use std::collections::HashMap;
use std::ops::Range;

/// Longest host name (RFC 1035, section 2.3.4).
const NAME_MAX: usize = 253;

/// The host names of one recording in lower case, and their pseudonyms.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    names: HashMap<Vec<u8>, String>,
}

impl Hosts {
    /// The pseudonym of this name, created for a new name; `None` if it identifies no host.
    pub(super) fn learn(&mut self, name: &[u8]) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(b".").unwrap_or(&name);
        let telling = !name.is_empty()
            && name.len() <= NAME_MAX
            && name.iter().all(|byte| is_name(*byte))
            && name.iter().any(u8::is_ascii_alphabetic)
            && name.first() != Some(&b'.')
            && name.last() != Some(&b'.');
        let reserved = [&b"localhost"[..], b"invalid"];
        let kept = reserved.iter().any(|last| name.strip_suffix(*last).is_some_and(|rest| rest.is_empty() || rest.ends_with(b".")));
        if !telling || kept {
            return None;
        }
        let next = self.names.len() + 1;
        Some(self.names.entry(name.to_vec()).or_insert_with(|| format!("host-{next}.invalid")))
    }

    /// The number of known names.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Redacts names in host positions (a URL, a Host header), and known names of more than one label anywhere.
    /// A name of one label ("web") may also be the name of a process or a file.
    pub(super) fn rewrite(&mut self, text: &[u8]) -> Vec<u8> {
        let places = places(text);
        for place in &places {
            self.learn(&text[place.clone()]);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut places = places.into_iter().peekable();
        let mut at = 0;
        while at < text.len() {
            while places.next_if(|place| place.start < at).is_some() {}
            if let Some(place) = places.next_if(|place| place.start == at) {
                match self.learn(&text[place.clone()]) {
                    Some(name) => out.extend_from_slice(name.as_bytes()),
                    None => out.extend_from_slice(&text[place.clone()]),
                }
                at = place.end;
                continue;
            }
            let length = text[at..].iter().take_while(|byte| is_name(**byte)).count();
            if length == 0 {
                out.push(text[at]);
                at += 1;
                continue;
            }
            // A word that overlaps a host position ends where the position begins.
            let end = places.peek().map_or(at + length, |place| place.start.min(at + length));
            self.rewrite_word(&text[at..end], &mut out);
            at = end;
        }
        out
    }

    /// Redacts the longest known name at the end of a word, if it begins at a label: "api.example.com" if "example.com" is known.
    fn rewrite_word(&self, word: &[u8], out: &mut Vec<u8>) {
        let dots = word.iter().rev().take_while(|byte| **byte == b'.').count();
        let (word, tail) = word.split_at(word.len() - dots);
        if self.names.is_empty() || !word.contains(&b'.') {
            out.extend_from_slice(word);
            out.extend_from_slice(tail);
            return;
        }
        let lower = word[word.len().saturating_sub(NAME_MAX)..].to_ascii_lowercase();
        let skipped = word.len() - lower.len();
        let starts = (0..lower.len()).filter(|start| *start == 0 && skipped == 0 || *start > 0 && lower[*start - 1] == b'.');
        let known =
            starts.filter(|start| lower[*start..].contains(&b'.')).find_map(|start| Some((start, self.names.get(&lower[start..])?)));
        match known {
            Some((start, name)) => {
                out.extend_from_slice(&word[..skipped + start]);
                out.extend_from_slice(name.as_bytes());
            }
            None => out.extend_from_slice(word),
        }
        out.extend_from_slice(tail);
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Host positions: after "://" and user information, and after "Host:" or `host: "`. In order, not overlapping.
fn places(text: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let start = url_host(text, at).or_else(|| header_host(text, at));
        at += 1;
        if let Some(start) = start {
            let length = text[start..].iter().take_while(|byte| is_name(**byte)).count();
            if length == 0 {
                continue;
            }
            // A group of an address is no name, and no "Host:" before the next group either.
            at = start + length;
            if !in_address(&text[at..]) {
                places.push(start..at);
            }
        }
    }
    places
}

/// True if the preceding word is part of an IPv6 or hardware address: a colon, digits, a colon and more of these follow.
fn in_address(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b":") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    rest.get(digits) == Some(&b':') && rest.get(digits + 1).is_some_and(|byte| *byte == b':' || byte.is_ascii_hexdigit())
}

fn url_host(text: &[u8], at: usize) -> Option<usize> {
    let authority = text[at..].strip_prefix(b"://")?;
    let length = authority
        .iter()
        .take(4096)
        .take_while(|byte| (byte.is_ascii_graphic() || !byte.is_ascii()) && !b"/?#\"'<>\\`".contains(byte))
        .count();
    let user = authority[..length].iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    Some(at + 3 + user)
}

fn header_host(text: &[u8], at: usize) -> Option<usize> {
    const NAME: &[u8] = b"host:";
    let head = text.get(at..at + NAME.len())?;
    if !head.eq_ignore_ascii_case(NAME) || at > 0 && (is_name(text[at - 1]) || text[at - 1] == b':') {
        return None;
    }
    let after = at + NAME.len();
    let blanks = text[after..].iter().take(16).take_while(|byte| **byte == b' ').count();
    let quote = usize::from(matches!(text.get(after + blanks), Some(b'"' | b'\'')));
    Some(after + blanks + quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        String::from_utf8(Hosts::default().rewrite(text.as_bytes())).unwrap()
    }

    #[test]
    fn names_are_redacted_in_host_positions_and_where_they_recur() {
        for (from, to) in [
            ("GET http://www.Example.com:8080/a", "GET http://host-1.invalid:8080/a"),
            ("http://u:p@web/ web http://web", "http://u:p@host-1.invalid/ web http://host-1.invalid"),
            ("www.example.com. http://www.example.com/", "host-1.invalid. http://host-1.invalid/"),
            ("api.example.com xexample.com Host: example.com", "api.host-1.invalid xexample.com Host: host-1.invalid"),
            (r#"server: _, host: "a.example""#, r#"server: _, host: "host-1.invalid""#),
            ("https://a.example,https://b.example", "https://host-1.invalid,https://host-2.invalid"),
        ] {
            assert_eq!(hidden(from), to, "{from}");
            assert_eq!(hidden(to), to, "twice: {from}");
        }
        for same in [
            "http://localhost/",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://",
            "://",
            "://host:a:8:1",
            "Host:",
            "host: ",
            "localhost: x",
            "http://.../",
        ] {
            assert_eq!(hidden(same), same);
        }
    }
}
