//! Requests that take as long as a lost packet although no server has them.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::reading::Reading;

use super::{UNKNOWN, client, under_load, verdict};
use crate::stage::*;

/// Most requests are quick and some wait as long as TCP does before it sends again, while the servers have none of them: whatever drops packets counts nothing here.
#[test]
fn requests_that_are_late_at_no_server_are_never_healthy() {
    let with = |at_server: u16, p99_us: u64, requests: u64| {
        let mut obs = under_load(1_000, &|_| (0..100).map(|n| client(n, 20, n < at_server)).collect());
        let view = obs.netns.get_mut(&SERVER).unwrap();
        for (at_us, mut sample) in std::mem::take(&mut view.request_samples).points().to_vec() {
            // The generator says that no response has come in part.
            sample.begun = Some(0.0);
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (requests, requests, BTreeMap::from([(200, requests)]));
        (load.latency_us.p50, load.latency_us.p99) = (1_000, p99_us);
        told(&obs)
    };
    let lost = with(4, 213_000, 50_000);
    assert_eq!(verdict(&lost), UNKNOWN, "{}", lost.summary);
    assert!(lost.summary.contains("at no server"), "{}", lost.summary);
    for (told, why) in [
        (with(4, 9_000, 50_000), "nothing waits for so long"),
        (with(4, 213_000, 960_000), "they do so in the long run too: the few late ones cost next to nothing"),
        (with(90, 213_000, 50_000), "a server has them"),
    ] {
        assert!(!told.summary.contains("at no server"), "{why}: {}", told.summary);
    }
}
