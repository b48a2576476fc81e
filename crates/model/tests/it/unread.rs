//! What a user without rights cannot read: every kind of observation without each of these readings, and without all. The verdict becomes weaker or unknown,
//! never another one.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeSet;

use chokepoint_model::observation::Observation;
use chokepoint_model::report::{Diagnosis, Verdict};

use crate::stage::all::all;
use crate::stage::*;

/// A reading, and what it is to lack it (docs/privileges.md).
type Lacking = (&'static str, fn(&mut Observation));

const LACKING: &[Lacking] = &[
    ("which process holds a socket", |obs| {
        obs.processes.values_mut().for_each(|process| (process.files, process.fd_count) = Default::default());
    }),
    ("configurations, logs and status pages", |obs| obs.servers.clear()),
    ("what workers wait for", |obs| obs.processes.values_mut().for_each(|process| process.syscall = Default::default())),
    ("a profile", |obs| obs.profile = Default::default()),
    ("other namespaces", |obs| obs.netns.retain(|id, _| *id == SERVER)),
];

/// What the workers of a full pool wait for.
const WAITS: [&str; 3] = ["workers-blocked-on-upstream", "workers-wait-for-each-other", "waits-for-clients"];

fn causes_of(diagnosis: &Diagnosis) -> BTreeSet<String> {
    causes(diagnosis).into_iter().map(str::to_owned).collect()
}

/// What may be claimed with less: the causes; that a pool is full, without what its workers wait for; and that workers wait for something, which the first
/// diagnosis followed further.
fn claims_of(diagnosis: &Diagnosis) -> BTreeSet<String> {
    let found = |id: &str| diagnosis.findings.iter().any(|finding| finding.id == id);
    let pools = WAITS.into_iter().filter(|id| found(id)).flat_map(|id| [id, "worker-pool-exhausted"]).map(str::to_owned);
    causes_of(diagnosis).into_iter().chain(pools).collect()
}

/// Whether the second verdict claims nothing that the first one does not.
fn is_weaker(whole: &Diagnosis, less: &Diagnosis) -> bool {
    less.verdict == Verdict::Unknown
        || (less.verdict, less.limited_by) == (whole.verdict, whole.limited_by) && causes_of(less).is_subset(&claims_of(whole))
}

#[test]
fn without_a_reading_a_verdict_becomes_weaker_or_unknown_and_never_another_one() {
    let mut wrong = Vec::new();
    for (name, _, obs) in all() {
        let whole = told(&obs);
        let mut none = obs.clone();
        LACKING.iter().for_each(|(_, lack)| lack(&mut none));
        let each = LACKING.iter().map(|(what, lack)| {
            let mut less = obs.clone();
            lack(&mut less);
            (*what, less)
        });
        for (what, less) in each.chain([("all of it", none)]) {
            let less = told(&less);
            if !is_weaker(&whole, &less) {
                let told = |one: &Diagnosis| format!("{:?} {:?} {:?}", one.verdict, one.limited_by, causes(one));
                wrong.push(format!("{name}, without {what}: {} instead of {}", told(&less), told(&whole)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
