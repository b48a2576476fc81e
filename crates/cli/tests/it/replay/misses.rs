//! Recordings that were once judged wrong (tests/misses). Each must keep its right verdict and first cause; the rest of the report may change.
//!
//! Deterministic: recordings and command lines.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::{Chokepoint, recordings, repository};

#[test]
fn every_former_miss_is_judged_right() {
    let directory = repository("tests/misses");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
    let chokepoint = Chokepoint::new();
    let mut wrong: Vec<String> = Vec::new();
    for case in &cases {
        let file = directory.join(format!("{}.rec", case["recording"].as_str().unwrap()));
        let ran = chokepoint.run(&["diagnose", "--json", "--replay", file.to_str().unwrap()]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{case}: {error}: {}", ran.stderr));
        let findings = report["findings"].as_array().unwrap();
        let named = |finding: &Value| format!("{} of {}", finding["id"].as_str().unwrap(), finding["tier"].as_str().unwrap());
        let causes: Vec<String> = findings.iter().filter(|finding| finding["role"] == "cause").map(named).collect();
        // In some cases the mistake was an additional cause.
        let is_alone = case["alone"] != true || causes.len() == 1;
        // In others it was a number or a reason.
        let says = case["says"].as_str().is_none_or(|words| report["summary"].as_str().unwrap().contains(words));
        let verdict = (&report["verdict"], &report["limited_by"]);
        if causes.first().map(String::as_str) != case["first"].as_str()
            || !is_alone
            || !says
            || verdict != (&case["verdict"], &case["limited_by"])
        {
            wrong.push(format!("{case}: {verdict:?} {causes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed: BTreeSet<String> = cases.iter().filter_map(|case| Some(case["recording"].as_str()?.to_owned())).collect();
    assert_eq!(recordings("misses"), listed, "each recording has its line");
}
