//! Damaged entries of real recordings are assembled, redacted and judged within the bounds of `docs/fuzzing.md`.
//!
//! Deterministic: recorded bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use chokepoint_hostile::{Chance, Corpus, run_made};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome, Scope};
use chokepoint_sources::{assemble, place, redact};

/// Recordings of very different kinds: a cause with a profile, watched traffic, unix sockets, lost packets, servers of several kinds.
const RECORDINGS: &[&str] = &[
    "data/conntrack-table/conntrack-60.rec",
    "data/transport/packet-loss.rec",
    "data/ephemeral-ports/port-search.rec",
    "data/cpu-quota/quota-throttled.rec",
    "misses/sending/delayed-ack.rec",
    "misses/worker-pool/haproxy-maxconn.rec",
    "misses/sending/receiver-small.rec",
    "misses/worker-connections/worker-connections-few-watched.rec",
];
/// Longest entry to damage.
const ENTRY_BYTES_MAX: usize = 24 << 10;
/// Longest entry of a thinned recording, which is judged thousands of times.
const THIN_BYTES_MAX: usize = 6 << 10;
/// Entries of one source, scope and item in a thinned recording: two, so that there is a difference.
const KEPT: usize = 2;
/// Scopes of one source in a thinned recording.
const SCOPES_MAX: usize = 2;

fn recording(name: &str) -> Vec<Entry> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name);
    chokepoint_recording::read(&std::fs::read(path).unwrap()).unwrap().entries
}

/// The entries of a recording, reduced so that a second suffices to judge it thousands of times.
fn thinned(entries: Vec<Entry>, bytes_max: usize) -> Vec<Entry> {
    let mut scopes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    let is_kept = |entry: &Entry| {
        let of_source = scopes.entry(entry.source.clone()).or_default();
        let scope = format!("{:?}", entry.scope);
        if of_source.len() >= SCOPES_MAX && !of_source.contains(&scope) {
            return false;
        }
        of_source.insert(scope);
        let count = kept.entry(format!("{} {:?} {}", entry.source, entry.scope, entry.item)).or_default();
        *count += 1;
        let short = !matches!(&entry.outcome, Outcome::Ok(bytes) if bytes.len() > bytes_max);
        *count <= KEPT && short
    };
    entries.into_iter().filter(is_kept).collect()
}

static THINNED: LazyLock<Vec<Vec<Entry>>> =
    LazyLock::new(|| RECORDINGS.iter().map(|name| thinned(recording(name), THIN_BYTES_MAX)).collect());

/// Entries by source. The bytes of each source are a separate corpus.
static BY_SOURCE: LazyLock<Vec<(Entry, Corpus)>> = LazyLock::new(|| {
    let mut by_source: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let all = RECORDINGS.iter().flat_map(|name| thinned(recording(name), ENTRY_BYTES_MAX));
    for entry in all.filter(|entry| matches!(entry.outcome, Outcome::Ok(_))) {
        let all = by_source.entry(entry.source.clone()).or_default();
        if all.len() < 12 {
            all.push(entry);
        }
    }
    by_source.into_values().flat_map(|entries| corpora(&entries)).collect()
});

fn bytes(entry: &Entry) -> Vec<u8> {
    match &entry.outcome {
        Outcome::Ok(bytes) => bytes.clone(),
        Outcome::Absent(..) | Outcome::Failed(..) => Vec::new(),
    }
}

fn corpora(entries: &[Entry]) -> Vec<(Entry, Corpus)> {
    let inputs: Vec<Vec<u8>> = entries.iter().map(bytes).collect();
    let texts: Option<Vec<&str>> = inputs.iter().map(|input| std::str::from_utf8(input).ok()).collect();
    let corpus = match texts {
        Some(texts) => Corpus { parts: false, ..Corpus::text(&texts) },
        None => Corpus::bytes(inputs.clone()),
    };
    // The item of an entry decides how its bytes are parsed.
    let mut seen = BTreeSet::new();
    entries.iter().filter(|entry| seen.insert(entry.item.clone())).map(|entry| (entry.clone(), corpus.clone())).collect()
}

/// Splits an input into the number of its entry and the rest.
fn split(input: &[u8]) -> (usize, &[u8]) {
    match input.split_first_chunk::<4>() {
        Some((number, rest)) => (u32::from_le_bytes(*number) as usize, rest),
        None => (0, input),
    }
}

fn with_number(number: usize, mut rest: Vec<u8>) -> Vec<u8> {
    let mut input = u32::try_from(number).unwrap().to_le_bytes().to_vec();
    input.append(&mut rest);
    input
}

#[test]
fn every_source_has_an_entry() {
    let sources: BTreeSet<&str> = BY_SOURCE.iter().map(|(entry, _)| entry.source.as_str()).collect();
    for name in
        ["listeners", "sockets", "tcp_info", "links", "qdiscs", "netstat", "conntrack_cpus", "request", "load", "profile", "server_config"]
    {
        assert!(sources.contains(name), "{name} is not among {sources:?}");
    }
}

#[test]
fn a_damaged_reading_is_handled_within_bounds() {
    let make = |chance: &mut Chance| {
        let number = chance.below(BY_SOURCE.len());
        with_number(number, BY_SOURCE[number].1.damaged(chance))
    };
    run_made("reading", make, |input| {
        let (number, bytes) = split(input);
        let (template, _) = &BY_SOURCE[number % BY_SOURCE.len()];
        let mut observation = Observation::default();
        let scopes = [template.scope, Scope::Host, Scope::Process(1), Scope::Netns(u64::MAX)];
        for (at_us, scope) in [0, 1, u64::MAX].into_iter().zip(scopes) {
            let entry = Entry { at_us, scope, outcome: Outcome::Ok(bytes.to_vec()), ..template.clone() };
            place(&mut observation, &entry);
            redact(&entry, &mut |address| address);
        }
        let item = String::from_utf8_lossy(bytes).chars().take(200).collect();
        place(&mut observation, &Entry { item, outcome: Outcome::Ok(bytes.to_vec()), ..template.clone() });
    });
}

#[test]
fn a_damaged_recording_is_judged_within_bounds() {
    let catalogue = Catalogue::english();
    let make = |chance: &mut Chance| {
        // The entries to damage, each by its number, with their new bytes.
        let (number, mut all) = (chance.below(THINNED.len()), Vec::new());
        for _ in 0..1 + chance.below(4) {
            let at = chance.below(THINNED[number].len());
            let corpus = BY_SOURCE.iter().find(|(entry, _)| entry.source == THINNED[number][at].source).map(|(_, corpus)| corpus);
            let damaged = corpus.map_or_else(Vec::new, |corpus| corpus.damage(bytes(&THINNED[number][at]), chance));
            all.extend(with_number(at, with_number(damaged.len(), damaged)));
        }
        with_number(number, all)
    };
    run_made("report", make, |input| {
        let (number, mut rest) = split(input);
        let mut entries = THINNED[number % THINNED.len()].clone();
        while !rest.is_empty() {
            let (at, behind) = split(rest);
            let (length, behind) = split(behind);
            let length = length.min(behind.len());
            let at = at % entries.len();
            entries[at].outcome = Outcome::Ok(behind[..length].to_vec());
            rest = &behind[length..];
        }
        let report = diagnose(&assemble(&entries), &catalogue);
        serde_json::to_string(&report).expect("a report can be written");
    });
}
