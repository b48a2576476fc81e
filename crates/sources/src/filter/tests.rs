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

/// An expression: its name and its attributes.
fn expression(name: &str, data: &[u8]) -> Vec<u8> {
    attribute(1, &[attribute(1, name.as_bytes()), attribute(2, data)].concat())
}

fn jump(target: &str) -> Vec<u8> {
    let verdict = [attribute(1, &(-3_i32).to_be_bytes()), attribute(2, target.as_bytes())].concat();
    expression("immediate", &[attribute(1, &0_u32.to_be_bytes()), attribute(2, &attribute(2, &verdict))].concat())
}

/// "th dport PORT".
fn at_port(port: u16) -> Vec<u8> {
    let number = |kind, number: u32| attribute(kind, &number.to_be_bytes());
    let load = expression("payload", &[number(1, 1), number(2, 2), number(3, 2), number(4, 2)].concat());
    let compare = expression("cmp", &[number(1, 1), number(2, 0), attribute(3, &attribute(1, &port.to_be_bytes()))].concat());
    [load, compare].concat()
}

fn reject() -> Vec<u8> {
    expression("reject", &[])
}

fn message(kind: u16, attributes: &[u8]) -> Vec<u8> {
    request(10 << 8 | kind, 0, 0, &[&[1, 0, 0, 0][..], attributes].concat())
}

fn rule(chain: &str, expressions: &[u8]) -> Vec<u8> {
    message(
        6,
        &[attribute(1, b"t"), attribute(2, chain.as_bytes()), attribute(3, &7_u64.to_be_bytes()), attribute(4, expressions)].concat(),
    )
}

/// A chain at the hook of what comes in.
fn base(name: &str) -> Vec<u8> {
    message(3, &[attribute(1, b"t"), attribute(3, name.as_bytes()), attribute(4, &attribute(1, &1_u32.to_be_bytes()))].concat())
}

#[test]
fn chains_that_call_each_other_end() {
    // The kernel refuses that, a made-up dump may not.
    let ring = [rule("a", &jump("b")), rule("b", &jump("a")), rule("b", &reject())].concat();
    assert_eq!(listed(&ring), Ok(FilterRules::default()), "nothing leads there");
    let led = listed(&[base("in"), rule("in", &jump("a")), ring].concat()).unwrap();
    assert_eq!(text(&led), "inet t b 7 input ? any - reject\n");
}

#[test]
fn many_chains_that_call_many_are_listed_at_once() {
    // Forty levels of forty chains, each called by all of the level before.
    let name = |level: usize, n: usize| format!("{level}-{n}");
    let mut bytes = [base("in"), rule("in", &jump("0-0"))].concat();
    for level in 0..40 {
        for (from, to) in (0..40).flat_map(|from| (0..40).map(move |to| (from, to))) {
            bytes.extend(rule(&name(level, from), &jump(&name(level + 1, to))));
        }
    }
    bytes.extend(rule("40-3", &reject()));
    assert_eq!(listed(&bytes).unwrap().rules.len(), 1);
}

#[test]
fn a_rule_asks_for_what_the_jumps_to_it_ask_for() {
    let ports = |jumps: &[(Option<u16>, &str)], own: Option<u16>| {
        let asked = |port: Option<u16>| port.map(at_port).unwrap_or_default();
        let mut bytes = base("in");
        for (port, chain) in jumps {
            bytes.extend(rule("in", &[asked(*port), jump(chain)].concat()));
        }
        bytes.extend(rule("web", &[asked(own), reject()].concat()));
        listed(&bytes).unwrap().rules[0].ports
    };
    assert_eq!(ports(&[(Some(80), "web")], None), FilterPorts::Destination(80, 80));
    assert_eq!(ports(&[(Some(80), "web")], Some(80)), FilterPorts::Destination(80, 80));
    assert_eq!(ports(&[(None, "web")], Some(80)), FilterPorts::Destination(80, 80));
    assert_eq!(ports(&[(Some(80), "web"), (Some(443), "web")], None), FilterPorts::Unknown);
    assert_eq!(ports(&[(Some(80), "web"), (None, "web")], None), FilterPorts::Any);
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
