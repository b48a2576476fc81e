//! Tests of rules of packet filters: a dump of a kernel, hostile bytes, and lines that come back.

use proptest::prelude::*;

use super::rules::Listed;
use super::*;
use crate::netlink::wire::{WireError, attribute, request};

/// Chains and rules of five families on Linux 6.18, written by nft 1.0.6.
const DUMP: &[u8] = include_bytes!("../../tests/data/netlink/nf_tables.bin");
/// What nft printed of them, and what is wanted here.
const WANTED: &str = include_str!("../../tests/data/netlink/nf_tables.txt");

fn listed(bytes: &[u8]) -> Result<FilterRules, WireError> {
    let mut listed = Listed::default();
    messages(bytes).try_for_each(|message| listed.add(&message?))?;
    Ok(listed.takers(RULES_MAX))
}

#[test]
fn rules_that_drop_are_read_as_nft_prints_them() {
    let found = listed(DUMP).unwrap();
    assert_eq!(text(&found), WANTED);
    assert_eq!(parse(text(&found).as_bytes()), Ok(found));
    assert_eq!(parse(b""), Ok(FilterRules::default()));
}

#[test]
fn more_rules_than_are_kept_are_counted() {
    let mut listed = Listed::default();
    messages(DUMP).try_for_each(|message| listed.add(&message?)).unwrap();
    let found = FilterRules { has_others: true, ..listed.takers(3) };
    assert_eq!((found.rules.len(), found.left_out), (3, WANTED.lines().count() as u64 - 3));
    assert_eq!(parse(text(&found).as_bytes()), Ok(found));
}

#[test]
fn a_dump_that_is_cut_is_an_error_or_less() {
    for cut in (0..DUMP.len()).step_by(7) {
        if let Ok(found) = listed(&DUMP[..cut]) {
            assert!(found.rules.len() <= WANTED.lines().count());
        }
    }
}

#[test]
fn chains_that_call_each_other_end() {
    // A chain "a" with a rule that jumps to "b", and the other way around: the kernel refuses that, a made-up dump may not.
    let jump = |target: &str| {
        let verdict = [attribute(1, &(-3_i32).to_be_bytes()), attribute(2, target.as_bytes())].concat();
        let data = [attribute(1, &0_u32.to_be_bytes()), attribute(2, &attribute(2, &verdict))].concat();
        attribute(1, &[attribute(1, b"immediate"), attribute(2, &data)].concat())
    };
    let rule = |chain: &str, expressions: &[u8]| {
        let body =
            [attribute(1, b"t"), attribute(2, chain.as_bytes()), attribute(3, &7_u64.to_be_bytes()), attribute(4, expressions)].concat();
        request(10 << 8 | 6, 0, 0, &[&[1, 0, 0, 0][..], &body].concat())
    };
    let drop = attribute(1, &[attribute(1, b"reject"), attribute(2, &[])].concat());
    let bytes = [rule("a", &jump("b")), rule("b", &jump("a")), rule("b", &drop)].concat();
    assert_eq!(listed(&bytes), Ok(FilterRules::default()), "nothing leads there");
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in prop_oneof![Just(10 << 8 | 3), Just(10_u16 << 8 | 6)]) {
        let _ = (listed(&bytes), listed(&request(kind, 0, 0, &bytes)), parse(&bytes));
    }

    /// Damaged dumps give an error, or rules whose lines come back as they were.
    #[test]
    fn damaged_rules_come_back_or_are_refused(changes in proptest::collection::vec((0..DUMP.len(), any::<u8>()), 1..20)) {
        let mut bytes = DUMP.to_vec();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        if let Ok(found) = listed(&bytes) {
            let lines = text(&found);
            let back = parse(lines.as_bytes());
            prop_assert_eq!(back.map(|back| text(&back)), Ok(lines));
        }
    }

    #[test]
    fn any_line_gives_an_answer(line in "[a-z0-9:?, -]{0,60}") {
        let _ = parse(format!("{line}\n").as_bytes());
    }
}
