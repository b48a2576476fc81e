//! Conntrack entries of one namespace by protocol and state, counted from `/proc/net/nf_conntrack`. The mix shows whether the table or the timeouts are at
//! fault.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome};

use super::entries::{FILE, ITEM_PARTIAL, LINES_MAX, NEEDS, Progress, TIME_MAX, each_line};
use super::table::explain_missing;
use crate::root::outcome_of;
use crate::scope::put_netns;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, lines, whole};

const NAME: &str = "conntrack_states";
/// Protocols times states are a few dozen.
const KINDS_MAX: usize = 256;

/// At both ends in each namespace: lines "protocol STATE count" ("tcp TIME_WAIT 12", "udp 3"), from at most 300,000 entries and in at most 200 ms. If there
/// are more, item "partial" fails and says how many were counted. The file is ordered by hash, so the counted entries are a fair sample and their shares hold
/// for all.
pub(crate) const CONNTRACK_STATES: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let file = match context.root.open(FILE) {
        Ok(file) => file,
        Err(error) => return only_item(explain_missing(context.root, outcome_of(&error, Some(NEEDS)))),
    };
    match count(file, LINES_MAX, TIME_MAX) {
        Ok(counted) => {
            let mut entries = only_item(Outcome::Ok(counted.text));
            if counted.progress.is_partial {
                entries.push((ITEM_PARTIAL.to_owned(), Outcome::Failed(counted.progress.why_partial(), None)));
            }
            entries
        }
        Err(error) => only_item(outcome_of(&error, Some(NEEDS))),
    }
}

/// The counts of a file.
#[derive(Debug)]
struct KindCounts {
    /// Lines "kind count".
    text: Vec<u8>,
    /// How many entries were counted.
    progress: Progress,
}

/// Counts the lines of the file by kind. Nothing else of a connection is kept.
fn count(file: impl Read, lines_max: u64, time_max: Duration) -> std::io::Result<KindCounts> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let progress = each_line(file, lines_max, time_max, |line| {
        let mut kind = kind_of(line);
        if kinds.len() == KINDS_MAX && !kinds.contains_key(&kind) {
            kind = "other".to_owned();
        }
        *kinds.entry(kind).or_default() += 1;
    })?;
    let text = kinds.iter().flat_map(|(kind, count)| format!("{kind} {count}\n").into_bytes()).collect();
    Ok(KindCounts { text, progress })
}

/// The kind of one entry: "tcp ESTABLISHED" or "udp". An entry is "l3name l3num l4name l4num [seconds] [STATE] src=...". Entries in a flow table have the mark
/// "[OFFLOAD]" or "[HW_OFFLOAD]" instead of seconds and state (nf_conntrack_standalone.c).
fn kind_of(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut tokens = line.split_ascii_whitespace().skip(2);
    let protocol = tokens.next().unwrap_or("unknown");
    let mut state = tokens.nth(1).unwrap_or("");
    if state.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        state = tokens.next().unwrap_or("");
    }
    let is_state = !state.is_empty() && state.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_state {
        format!("{protocol} {state}")
    } else if line.contains("OFFLOAD]") {
        format!("{protocol} OFFLOAD")
    } else {
        protocol.to_owned()
    }
}

/// Parses lines "kind count". An empty text is an empty table.
pub(crate) fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let mut states = BTreeMap::new();
    if bytes.is_empty() {
        return Ok(states);
    }
    let text = whole(NAME, bytes)?;
    for (place, line) in lines(NAME, &text) {
        let Some((kind, count)) = line.rsplit_once(' ').filter(|(kind, _)| !kind.is_empty()) else {
            return Err(place.expected("a kind and its count", line));
        };
        states.insert(kind.to_owned(), place.number("a count", Some(count))?);
    }
    Ok(states)
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_netns(observation, entry, |netns| &mut netns.conntrack_states, parse);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTRIES: &[u8] = include_bytes!("../../../tests/data/text/variants/nf_conntrack-mixed");

    /// A file that returns a few bytes for each read.
    struct SlowFile<'a>(&'a [u8], usize);
    impl Read for SlowFile<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    #[test]
    fn entries_are_counted_by_protocol_and_state_for_any_read_size() {
        let expected = [
            ("dccp OPEN", 1),
            ("icmp", 1),
            ("icmpv6", 1),
            ("sctp COOKIE_WAIT", 1),
            ("tcp ESTABLISHED", 2),
            ("tcp OFFLOAD", 2),
            ("tcp SYN_SENT2", 1),
            ("tcp TIME_WAIT", 2),
            ("udp", 2),
            ("unknown", 1),
        ];
        for bytes_a_read in [1, 7, 4096] {
            let counted = count(SlowFile(ENTRIES, bytes_a_read), LINES_MAX, Duration::from_secs(60)).unwrap();
            assert!(!counted.progress.is_partial);
            let states = parse(&counted.text).unwrap();
            assert_eq!(states.iter().map(|(kind, count)| (kind.as_str(), *count)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_bound_is_reported() {
        let counted = count(ENTRIES, 3, Duration::from_secs(60)).unwrap();
        assert_eq!(counted.progress, Progress { entries: 3, is_partial: true });
        assert_eq!(parse(&counted.text).unwrap().values().sum::<u64>(), 3);
        let counted = count(SlowFile(ENTRIES, 300), LINES_MAX, Duration::ZERO).unwrap();
        assert!(counted.progress.is_partial && counted.progress.entries < 14);
        let counted = count(ENTRIES, 14, Duration::from_secs(60)).unwrap();
        assert!(!counted.progress.is_partial, "a count that reached the end is whole");
    }

    #[test]
    fn an_empty_table_is_a_value() {
        assert_eq!(count(&b""[..], LINES_MAX, TIME_MAX).unwrap().text, b"");
        assert_eq!(parse(b""), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_malformed_count_is_an_error() {
        for wrong in ["\n", "tcp\n", " 1\n", "tcp ESTABLISHED x\n", "tcp ESTABLISHED 1"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..20_000), step in 1usize..5000) {
            let newlines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            let states = parse(&count(SlowFile(&bytes, step), LINES_MAX, Duration::from_secs(60)).unwrap().text).unwrap();
            prop_assert_eq!(states.values().sum::<u64>(), newlines);
            prop_assert!(states.len() <= KINDS_MAX + 1);
        }
    }
}
