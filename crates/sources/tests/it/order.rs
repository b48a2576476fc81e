//! Recorded entries in any order give the same observation and the same report, and missing entries do not lead to invented causes.
//!
//! Deterministic: recorded bytes.

use std::sync::LazyLock;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::report::{Confidence, Diagnosis, Role};
use chokepoint_recording::{Entry, Outcome};
use chokepoint_sources::assemble;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The file name of a recording, its entries up to the second measurement, and their report.
type Recorded = (String, Vec<Entry>, Diagnosis);

static RECORDED: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data");
    let folders = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut recordings: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "rec")).collect();
    recordings.sort();
    let read = |path: &std::path::PathBuf| {
        let entries = chokepoint_recording::read(&std::fs::read(path).unwrap()).unwrap().entries;
        let is_separator = |entry: &Entry| ["measurement", "action", "stopped"].contains(&entry.source.as_str());
        let first: Vec<Entry> =
            entries.into_iter().skip_while(|entry| is_separator(entry)).take_while(|entry| !is_separator(entry)).collect();
        let report = report_of(&first);
        (path.file_name().unwrap().to_string_lossy().into_owned(), first, report)
    };
    recordings.iter().map(read).collect()
});

fn report_of(entries: &[Entry]) -> Diagnosis {
    diagnose(&assemble(entries), &Catalogue::english())
}

/// A pseudo-random number for a text, always the same.
fn hashed(seed: u64, text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, step).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

#[test]
fn there_are_recordings_with_and_without_a_cause() {
    let causes = |report: &Diagnosis| report.findings.iter().filter(|finding| finding.role == Role::Cause).count();
    assert!(RECORDED.iter().any(|(.., report)| causes(report) > 0) && RECORDED.iter().any(|(.., report)| causes(report) == 0));
}

proptest! {
    // The same cases in every run: a deterministic test does not fail by chance.
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(64) })]

    #[test]
    fn the_order_of_entries_changes_nothing((place, seed) in (0..RECORDED.len(), any::<u64>())) {
        let (name, entries, report) = &RECORDED[place];
        // Only their order distinguishes readings of one thing at one time.
        let mut mixed = entries.clone();
        mixed.sort_by_cached_key(|entry| hashed(seed, &format!("{} {:?} {} {}", entry.source, entry.scope, entry.item, entry.at_us)));
        prop_assert!(mixed != *entries);
        prop_assert!(&report_of(&mixed) == report, "{name}");
    }

    #[test]
    fn missing_entries_lead_to_no_invented_cause(
        (place, seed, how) in (0..RECORDED.len(), any::<u64>(), 0_u8..3),
        share in prop_oneof![Just(2_u64), Just(10), Just(50)],
    ) {
        let (name, entries, report) = &RECORDED[place];
        // A source fails completely in one scope, as it does without a privilege.
        let is_gone = |entry: &Entry| {
            let is_reading = !["request", "unloaded", "load", "window"].contains(&entry.source.as_str());
            is_reading && hashed(seed, &format!("{} {:?}", entry.source, entry.scope)).is_multiple_of(share)
        };
        let blinded = entries.iter().filter(|entry| how != 0 || !is_gone(entry)).map(|entry| match is_gone(entry) {
            true if how == 1 => Entry { outcome: Outcome::Absent("permission denied".into(), Some("CAP_SYS_ADMIN".into())), ..entry.clone() },
            true => Entry { outcome: Outcome::Failed("it could not be understood".into(), None), ..entry.clone() },
            false => entry.clone(),
        });
        let blinded = report_of(&blinded.collect::<Vec<_>>());
        let confident = blinded.findings.iter().filter(|finding| finding.role == Role::Cause && finding.confidence > Confidence::Low);
        for finding in confident {
            prop_assert!(report.findings.iter().any(|other| other.id == finding.id), "{name}: {} was made out of nothing", finding.id);
        }
    }
}
