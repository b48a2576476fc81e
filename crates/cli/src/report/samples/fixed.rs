//! Diagnoses with rounds: a fix, a chain of them, and the five faults of the demo.

use chokepoint_model::report::*;

use super::{choked, served};

/// The same host after `--fix`.
pub(crate) fn fixed() -> Diagnosis {
    let mut sample = choked();
    let mut after = served(5382.4, 53_830);
    after.status.insert("502".into(), 12);
    after.requests += 12;
    after.throughput_rps += 1.2;
    sample.rounds = vec![
        Round {
            n: 1,
            kind: RoundKind::Apply,
            prediction_held: None,
            load: after.clone(),
            finding: "conntrack-table-full".into(),
            remedy: "raise-conntrack-max".into(),
            prediction: Prediction::Refused { refused: "only 6 % of the requests were answered well".into(), at_most: None, unsaid: None },
            before_rps: sample.load.as_ref().map(|load| load.goodput_rps),
            measured_rps: after.goodput_rps,
            kept: Kept::Final,
            why: "No packet was dropped any more and goodput rose from 12.3/s to 5,382/s.".into(),
            verdict: Verdict::Healthy,
            limited_by: Some(LimitedBy::Cpu),
            summary: "Healthy, limited by CPU: cores 1, all that the servers may use, were 99.4 % busy.".into(),
            limit: "CPU (core 1, 99 %)".into(),
            settings: raised(),
        },
        Round {
            n: 2,
            kind: RoundKind::Apply,
            prediction_held: Some(false),
            load: LoadReport { goodput_rps: 5391.0, ..after },
            finding: "worker-pool-exhausted".into(),
            remedy: "raise-max-children".into(),
            prediction: Prediction::Goodput { goodput_rps: 6900.0, low: 6400.0, high: 7300.0, next_station: "cpu".into() },
            before_rps: Some(5382.4),
            measured_rps: 5391.0,
            kept: Kept::No,
            why: "Goodput did not change beyond noise.".into(),
            verdict: Verdict::Healthy,
            limited_by: Some(LimitedBy::Cpu),
            summary: "Healthy, limited by CPU: cores 1, all that the servers may use, were 99.5 % busy.".into(),
            limit: "CPU (core 1, 99 %)".into(),
            settings: Vec::new(),
        },
    ];
    compared(sample)
}

/// The sample with the server before and after.
fn compared(mut sample: Diagnosis) -> Diagnosis {
    let served = |load: &LoadReport, limit: &str, verdict: Verdict| Served {
        goodput_rps: load.goodput_rps,
        failed_share: load.failed_share(),
        p99_us: load.p99_us(),
        limit: limit.into(),
        verdict,
    };
    sample.before = sample.load.as_ref().map(|load| served(load, "conntrack table of nginx", sample.verdict));
    sample.after = sample.result().map(|last| served(&last.load, &last.limit, last.verdict));
    sample
}

/// The setting of a change.
fn raised() -> Vec<SettingChange> {
    vec![SettingChange {
        setting: "net.netfilter.nf_conntrack_max".into(),
        name: "conntrack table".into(),
        place: "web".into(),
        from: "200".into(),
        to: "262144".into(),
    }]
}

/// Several changes, each left out again at the end: one has no effect in addition to the others.
pub(crate) fn chain() -> Diagnosis {
    let mut sample = choked();
    let predicted = |rate: f64, low: f64, high: f64| Prediction::Goodput { goodput_rps: rate, low, high, next_station: "cpu".into() };
    let refused = || Prediction::Refused {
        refused: "nothing was applied in this round, so nothing was predicted".into(),
        at_most: None,
        unsaid: None,
    };
    let hidden = || Prediction::Refused { refused: "only 6 % of the requests were answered well".into(), at_most: None, unsaid: None };
    type Measured = (RoundKind, &'static str, &'static str, Prediction, Option<bool>, f64, Kept, &'static str);
    let table: [Measured; 7] = [
        (RoundKind::Apply, "conntrack-table-full", "raise-conntrack-max", hidden(), None, 212.0, Kept::Final, "Its signal improved."),
        (
            RoundKind::Apply,
            "worker-pool-exhausted",
            "raise-max-children",
            predicted(980.0, 900.0, 1060.0),
            Some(true),
            1012.0,
            Kept::Final,
            "",
        ),
        (RoundKind::Apply, "accept-queue-full", "raise-backlog", hidden(), None, 1019.0, Kept::No, "It does nothing beside the others."),
        (RoundKind::Without, "conntrack-table-full", "raise-conntrack-max", refused(), None, 13.1, Kept::Final, "Needed."),
        (RoundKind::Without, "worker-pool-exhausted", "raise-max-children", refused(), None, 215.0, Kept::Final, "Needed."),
        (RoundKind::Without, "accept-queue-full", "raise-backlog", refused(), None, 1011.0, Kept::No, "Not needed."),
        (RoundKind::Confirm, "", "", refused(), None, 1014.0, Kept::Final, "With all changes that stay: goodput 1,014 requests/s."),
    ];
    let round = |(place, (kind, finding, remedy, prediction, prediction_held, rate, kept, why)): (usize, Measured)| Round {
        n: place as u32 + 1,
        kind,
        load: served(rate, (rate * 10.0) as u64),
        finding: finding.into(),
        remedy: remedy.into(),
        prediction,
        prediction_held,
        // Each is compared with the state with all changes so far.
        before_rps: Some([12.3, 212.0, 1012.0, 1012.0, 1012.0, 1012.0, 1012.0][place.min(6)]),
        measured_rps: rate,
        kept,
        why: why.into(),
        verdict: Verdict::Healthy,
        limited_by: Some(LimitedBy::Cpu),
        summary: "Healthy, limited by CPU: cores 1, all that the servers may use, were 99.4 % busy.".into(),
        limit: "CPU (core 1, 99 %)".into(),
        settings: if kind == RoundKind::Apply { raised() } else { Vec::new() },
    };
    sample.rounds = table.into_iter().enumerate().map(round).collect();
    compared(sample)
}

/// The five faults of `lab run throughput-collapse`, found and fixed one after the other: a real run.
pub(crate) fn collapse() -> Diagnosis {
    serde_json::from_str(include_str!("../../../tests/data/collapse.json")).expect("a diagnosis")
}
