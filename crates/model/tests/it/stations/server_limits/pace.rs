//! Watched responses that leave at the rate which the configuration allows each of them, by the bytes of their connections.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{NginxLimit, RequestSample};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Diagnosis;

use super::super::waiting::client;
use crate::stage::limits::{nginx, rate};
use crate::stage::*;

const LIMITED: &str = "rate-limited-by-config";
const STEP_US: u64 = 200_000;

fn pace(bytes_per_s: u64) -> NginxLimit {
    NginxLimit { kind: "limit_rate".into(), rate_per_s: None, bytes_per_s: Some(bytes_per_s), ..rate(Some(true), 0, 0) }
}

/// Connections that each get so many bytes a second, before a server with this limit.
fn watched(limit: &NginxLimit, each_per_s: &[u64]) -> Diagnosis {
    let mut obs = nginx(10, 1_024, false, vec![limit.clone()]);
    (obs.load, obs.request.loaded) = (None, false);
    cpu(&mut obs, 0.2);
    for step in 0..(WINDOW.1 - WINDOW.0) / STEP_US {
        let socket = |(number, bytes_per_s): (usize, &u64)| {
            let mut socket = client(number as u16, 20, true);
            let times = socket.times.as_mut().unwrap();
            (times.bytes_acked, times.bytes_sent) = (Some(bytes_per_s * step / 5), Some(bytes_per_s * step / 5));
            socket
        };
        let sockets = each_per_s.iter().enumerate().map(socket).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(WINDOW.0 + step * STEP_US, Reading::Ok(sample));
    }
    told(&obs)
}

#[test]
fn connections_that_all_get_the_allowed_rate_show_the_limit() {
    for bytes_per_s in [50_000, 614_400, 20_000_000] {
        let found = watched(&pace(bytes_per_s), &[bytes_per_s, bytes_per_s * 97 / 100, bytes_per_s * 103 / 100, bytes_per_s / 100]);
        assert_eq!(causes(&found), [LIMITED], "{bytes_per_s}: {}", found.summary);
        let shown = &found.findings[0].evidence[0].text;
        assert!(shown.starts_with("3 connections got"), "{shown}");
    }
}

#[test]
fn connections_at_other_rates_do_not() {
    let silent = |limit: &NginxLimit, each_per_s: &[u64], why: &str| {
        let found = watched(limit, each_per_s);
        assert!(!causes(&found).contains(&LIMITED), "{why}: {found:#?}");
    };
    silent(&pace(500_000), &[100_000, 300_000, 400_000], "their clients ask for no more");
    silent(&pace(500_000), &[2_000_000, 900_000], "it is not in force");
    silent(&pace(500_000), &[500_000, 2_000_000], "most bytes leave faster");
    silent(&NginxLimit { bytes_at_once: 1_000_000, ..pace(500_000) }, &[500_000, 500_000], "not all of a response counts");
    silent(&NginxLimit { applies: Some(false), ..pace(500_000) }, &[500_000, 500_000], "another location's");
}
