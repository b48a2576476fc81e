//! Translations of destination addresses in one namespace, from the two directions of each entry of `/proc/net/nf_conntrack`. With them the path is followed
//! to servers behind a destination NAT, such as containers.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use chokepoint_model::observation::{Observation, Translation};
use chokepoint_recording::{Entry, Outcome};

use super::entries::{FILE, ITEM_PARTIAL, LINES_MAX, NEEDS, Progress, TIME_MAX, each_line};
use super::table::{COUNT_FILE, explain_missing, parse_count};
use crate::root::{outcome_of, reading_of};
use crate::scope::netns_view;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

pub(crate) const NAME: &str = "conntrack_translations";
/// Most translations of one namespace: services times backends. Those of the first entries are kept; the table is ordered by hash.
const KINDS_MAX: usize = 1024;

/// At both ends in each namespace, and while no listener of the target is known: lines "original-address port translated-address port count" ("10.0.0.2 8080
/// 172.20.0.2 80 12"), from at most 300,000 entries and in at most 200 ms. If there are more, item "partial" says how many were read. A frequent address is
/// among them, since the file is ordered by hash.
pub(crate) const CONNTRACK_TRANSLATIONS: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::Text };

type Endpoint = (IpAddr, u16);

fn read(context: &ReadContext<'_>) -> Items {
    let file = match context.root.open(FILE) {
        Ok(file) => file,
        Err(error) => return only_item(explain_missing(context.root, outcome_of(&error, Some(NEEDS)))),
    };
    // Even in a namespace without entries, reading the file walks the table of the whole machine.
    if let Outcome::Ok(count) = context.root.read(COUNT_FILE, 64, None)
        && parse_count(&count) == Ok(0)
    {
        return only_item(Outcome::Ok(Vec::new()));
    }
    match gather(file, LINES_MAX, TIME_MAX) {
        Ok((text, progress)) => {
            let mut entries = only_item(Outcome::Ok(text));
            if progress.is_partial {
                entries.push((ITEM_PARTIAL.to_owned(), Outcome::Failed(progress.why_partial(), None)));
            }
            entries
        }
        Err(error) => only_item(outcome_of(&error, Some(NEEDS))),
    }
}

/// The translations in a file's entries, and how many entries were read.
fn gather(file: impl Read, lines_max: u64, time_max: Duration) -> std::io::Result<(Vec<u8>, Progress)> {
    let mut seen: BTreeMap<(Endpoint, Endpoint), u64> = BTreeMap::new();
    let progress = each_line(file, lines_max, time_max, |line| {
        if let Some(translation) = translation_of(line)
            && (seen.len() < KINDS_MAX || seen.contains_key(&translation))
        {
            *seen.entry(translation).or_default() += 1;
        }
    })?;
    let line = |((original, translated), count): (&(Endpoint, Endpoint), &u64)| {
        format!("{} {} {} {} {count}\n", original.0, original.1, translated.0, translated.1).into_bytes()
    };
    Ok((seen.iter().flat_map(line).collect(), progress))
}

/// The translated destination of one TCP entry, if it has one. The entry ends in "src=A dst=B sport=C dport=D" of the original direction and the same of the
/// reply direction, whose source is the real server (nf_conntrack_standalone.c, `ct_seq_show`); flags are in between.
fn translation_of(line: &[u8]) -> Option<(Endpoint, Endpoint)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut tokens = line.split_ascii_whitespace().skip(2);
    if tokens.next() != Some("tcp") {
        return None;
    }
    let mut sides = [[None; 4]; 2];
    for (key, value) in tokens.filter_map(|token| token.split_once('=')) {
        if let Some(at) = ["src", "dst", "sport", "dport"].iter().position(|name| *name == key) {
            let side = usize::from(sides[0][at].is_some());
            sides[side][at].get_or_insert(value);
        }
    }
    let endpoint = |ip: Option<&str>, port: Option<&str>| -> Option<Endpoint> { Some((ip?.parse().ok()?, port?.parse().ok()?)) };
    let [[_, to, _, to_port], [from, _, from_port, _]] = sides;
    let (original, translated) = (endpoint(to, to_port)?, endpoint(from, from_port)?);
    (original != translated && original.0.is_ipv4() == translated.0.is_ipv4()).then_some((original, translated))
}

/// Reads lines "address port address port count". No line at all: nothing is translated.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Translation>, ParseError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let text = whole(NAME, bytes)?;
    let one = |(place, line): (TextLine, &str)| {
        let mut tokens = line.split(' ');
        let mut endpoint =
            || -> Result<Endpoint, ParseError> { Ok((place.number("an address", tokens.next())?, place.number("a port", tokens.next())?)) };
        let (original, translated) = (endpoint()?, endpoint()?);
        let count = place.number("a count of entries", tokens.next())?;
        match tokens.next() {
            None => Ok(Translation { original, translated, count }),
            Some(more) => Err(place.expected("the end of the line", more)),
        }
    };
    lines(NAME, &text).take(KINDS_MAX).map(one).collect()
}

fn put(observation: &mut Observation, entry: &Entry) {
    // The translations that were found are still valid, and a frequent address is among them.
    if entry.item == ITEM_PARTIAL {
        let (Outcome::Absent(why, _) | Outcome::Failed(why, _)) = &entry.outcome else { return };
        let text = format!("{NAME}: {why}");
        if !observation.bounded.contains(&text) {
            observation.bounded.push(text);
        }
        return;
    }
    if let Some(netns) = netns_view(observation, entry) {
        netns.conntrack_translations.push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTRIES: &[u8] = include_bytes!("../../../tests/data/text/variants/nf_conntrack-translated");

    fn translations(bytes: &[u8]) -> Vec<String> {
        let (text, _) = gather(bytes, LINES_MAX, Duration::from_secs(60)).unwrap();
        let shown = |seen: Translation| format!("{:?} {:?} {}", seen.original, seen.translated, seen.count);
        parse(&text).unwrap().into_iter().map(shown).collect()
    }

    #[test]
    fn a_translated_destination_counts_and_a_masqueraded_source_does_not() {
        let expected = [
            "(10.78.0.2, 8080) (172.20.0.2, 80) 3",
            "(10.78.0.2, 8081) (10.78.0.2, 81) 1",
            "(10.78.0.2, 9090) (172.20.0.9, 90) 1",
            "(fd78::2, 8080) (fd20::2, 80) 1",
        ];
        assert_eq!(translations(ENTRIES), expected, "redirected ports, unanswered and offloaded entries count, other protocols do not");
        assert_eq!(translations(include_bytes!("../../../tests/data/text/variants/nf_conntrack-mixed")), [""; 0]);
    }

    #[test]
    fn bounds_hold() {
        let many: Vec<u8> = (0..3_000_u32)
            .flat_map(|n| {
                let (a, b) = (n / 250, n % 250);
                format!("ipv4     2 tcp      6 9 ESTABLISHED src=10.0.0.1 dst=10.1.{a}.{b} sport=4 dport=80 src=10.2.{a}.{b} dst=10.0.0.1 sport=80 dport=4\n")
                    .into_bytes()
            })
            .collect();
        assert_eq!(translations(&many).len(), KINDS_MAX);
        let (text, progress) = gather(&many[..], 5, Duration::from_secs(60)).unwrap();
        assert_eq!((parse(&text).unwrap().len(), progress), (5, Progress { entries: 5, is_partial: true }));
    }

    #[test]
    fn a_partly_read_table_is_reported_as_bounded_and_its_translations_stay() {
        let entry = |item: &str, outcome| Entry {
            at_us: 1,
            source: NAME.into(),
            scope: chokepoint_recording::Scope::Netns(7),
            item: item.into(),
            outcome,
        };
        let partial = || Outcome::Failed(Progress { entries: 5, is_partial: true }.why_partial(), None);
        let found = Outcome::Ok(b"10.78.0.2 8080 172.20.0.2 80 3\n".to_vec());
        let observation = crate::assemble::assemble(&[entry("", found), entry(ITEM_PARTIAL, partial()), entry(ITEM_PARTIAL, partial())]);
        let series = &observation.netns.values().next().unwrap().conntrack_translations;
        assert_eq!((series.last().map(Vec::len), series.state()), (Some(1), chokepoint_model::series::SeriesState::Ok));
        assert!(observation.bounded.len() == 1 && observation.bounded[0].contains("only 5 entries"), "{:?}", observation.bounded);
    }

    #[test]
    fn a_file_cut_at_any_byte_gives_no_wrong_translation() {
        let whole = translations(ENTRIES);
        let pairs = |all: &[String]| all.iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>();
        for cut in 0..ENTRIES.len() {
            let seen = translations(&ENTRIES[..cut]);
            assert!(pairs(&seen).iter().all(|pair| pairs(&whole).contains(pair)), "cut at {cut}: {seen:?}");
        }
    }

    #[test]
    fn malformed_entries_are_skipped() {
        for line in [
            "",
            "\n",
            "ipv4 2 tcp\n",
            "ipv4 2 tcp 6 9 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=4 dport=80\n",
            "ipv4 2 tcp 6 9 ESTABLISHED src=a dst=b sport=c dport=d src=e dst=f sport=g dport=h\n",
            "ipv4 2 tcp 6 9 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=4 dport=80 src=10.0.0.3 dst=10.0.0.1 sport=99999 dport=4\n",
            "ipv4 2 tcp 6 9 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=4 dport=80 src=fd00::1 dst=10.0.0.1 sport=80 dport=4\n",
        ] {
            assert_eq!(translations(line.as_bytes()), [""; 0], "{line:?}");
        }
    }

    #[test]
    fn a_malformed_translation_is_an_error() {
        for wrong in ["\n", "10.0.0.1 80\n", "10.0.0.1 80 10.0.0.2 x 1\n", "10.0.0.1 80 10.0.0.2 80 1 2\n", "10.0.0.1 80 10.0.0.2 80 1"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert_eq!(parse(b""), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..20_000)) {
            let (text, _) = gather(&bytes[..], LINES_MAX, Duration::from_secs(60)).unwrap();
            prop_assert!(parse(&text).unwrap().len() <= KINDS_MAX);
            let _ = parse(&bytes);
        }

        #[test]
        fn any_words_of_an_entry_are_parsed_without_harm(words in proptest::collection::vec("(src|dst|sport|dport|tcp|=|\\[UNREPLIED\\]|10\\.0\\.0\\.[0-9]|::1|[0-9]{1,6}| )", 0..60)) {
            let line = format!("ipv4     2 tcp      6 9 {}\n", words.concat());
            let (text, _) = gather(line.as_bytes(), LINES_MAX, Duration::from_secs(60)).unwrap();
            prop_assert!(parse(&text).unwrap().len() <= 1);
        }
    }
}
