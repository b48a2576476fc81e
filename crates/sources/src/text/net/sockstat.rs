//! Sockets in use in one namespace, from `/proc/net/sockstat` and `sockstat6`.

use chokepoint_model::observation::{Counters, Observation};
use chokepoint_recording::{Entry, Outcome};

use super::netstat::number;
use super::netstat::push_sharing;
use crate::root::{Root, WHY_MISSING, reading_of};
use crate::scope::netns_view;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "sockstat";
const BYTES_MAX: usize = 16 << 10;

/// Once a second in each namespace: both files, one after the other.
pub(crate) const SOCKSTAT: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(read_files(context.root))
}

/// Reads both files, for [`parse`].
pub(crate) fn read_files(root: &Root) -> Outcome {
    let mut text = match root.read("proc/thread-self/net/sockstat", BYTES_MAX, None) {
        Outcome::Ok(bytes) => bytes,
        lack => return lack,
    };
    match root.read("proc/thread-self/net/sockstat6", BYTES_MAX, None) {
        Outcome::Ok(bytes) => text.extend(bytes),
        // The kernel has no IPv6, or it is disabled at boot.
        Outcome::Absent(why, _) if why == WHY_MISSING => {}
        lack => return lack,
    }
    Outcome::Ok(text)
}

/// Parses lines "Protocol: name value name value ..." into "Protocol.name". "TCP.alloc" and "TCP.mem" count the whole host, the others the namespace
/// (net/ipv4/proc.c).
pub(crate) fn parse(bytes: &[u8]) -> Result<Counters, ParseError> {
    let text = whole(NAME, bytes)?;
    let mut counters: Vec<(String, i64)> = Vec::new();
    for (place, line) in lines(NAME, &text) {
        let Some((protocol, rest)) = line.split_once(": ") else { return Err(place.expected("a protocol and a colon", line)) };
        let mut tokens = rest.split_ascii_whitespace();
        while let Some(name) = tokens.next() {
            counters.push((format!("{protocol}.{name}"), number(place, tokens.next())?));
        }
    }
    if counters.is_empty() {
        return Err(TextLine::new(NAME, 1).expected("at least one number", ""));
    }
    Ok(counters.into_iter().collect())
}

fn put(observation: &mut Observation, entry: &Entry) {
    if let Some(netns) = netns_view(observation, entry) {
        push_sharing(&mut netns.sockstat, entry.at_us, reading_of(&entry.outcome, parse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_alternate() {
        let counters = parse(b"sockets: used 15\nTCP: inuse 1 orphan 0 tw 28160 alloc 1 mem 153\nTCP6: inuse 2\n").unwrap();
        assert_eq!((counters["sockets.used"], counters["TCP.tw"], counters["TCP6.inuse"]), (15, 28_160, 2));
        assert_eq!(counters.len(), 7);
    }

    #[test]
    fn a_missing_name_or_value_is_an_error() {
        for wrong in ["", "\n", "TCP: inuse\n", "TCP: inuse x\n", "TCP inuse 1\n", "TCP: inuse 1", "TCP: \n"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
