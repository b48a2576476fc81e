//! Lines that whoever sends requests wrote into an error log: beside a reading that rules them out they make no finding, without one no more than a likely cause that is never changed by
//! itself. What really ran out stays what it was.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{Observation, TimeWaits};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis};
use proptest::prelude::*;

use crate::stage::edge::{BACKEND, edge};
use crate::stage::limits::*;
use crate::stage::*;

use super::accept_queue_unix::{PATH, behind, no_room};

const CONNECTIONS: &str = "worker-connections-exhausted";
const FILES: &str = "file-descriptors-exhausted";
const PORTS: &str = "ephemeral-ports-exhausted";
const QUEUE: &str = "accept-queue-full";
const LIMITED: &str = "rate-limited-by-config";

/// What was read beside the log.
#[derive(Debug, Clone, Copy)]
enum Read {
    /// The limit was seen reached.
    Full,
    /// This much of it was used at most, and this many connections came in eleven seconds.
    Far(u64, u64),
    /// Nothing that tells.
    Nothing,
}

/// How many connections the namespace of the server opened, if that was read.
fn came(obs: &mut Observation, read: Read) {
    if let Read::Far(_, opened) = read {
        protocol_counters(obs, SERVER, &[("Tcp.PassiveOpens", opened), ("Tcp.ActiveOpens", opened)]);
    }
}

fn watched(obs: &mut Observation) {
    obs.load = None;
    obs.request.loaded = false;
}

/// A server that fails most requests for a reason of its own, with lines that say that connections ran out.
fn connections(read: Read, lines: u64) -> Observation {
    let sockets = match read {
        Read::Full => 64,
        Read::Far(used, _) => used,
        Read::Nothing => 9,
    };
    let mut obs = nginx(sockets, 1_024, false, Vec::new());
    suffer(&mut obs, 4_000, &[(500, 1_000)]);
    logged(&mut obs, "worker_connections", lines, ALERT);
    came(&mut obs, read);
    if matches!(read, Read::Nothing) {
        obs.processes.get_mut(&43).unwrap().files = Default::default();
    }
    obs
}

fn files(read: Read, lines: u64) -> Observation {
    let open = match read {
        Read::Full => 80,
        Read::Far(used, _) => used,
        Read::Nothing => 60,
    };
    let mut obs = nginx(open, 80, true, Vec::new());
    suffer(&mut obs, 0, &[(500, 2_000)]);
    obs.load.as_mut().unwrap().latency_us.p99 = 510_000;
    // Requests come so slowly that few are under way between two looks.
    obs.load.as_mut().unwrap().duration_us = if matches!(read, Read::Far(..)) { 10_000_000_000 } else { 10_000_000 };
    logged(&mut obs, "socket 24", lines, "socket() failed (24: Too many open files)");
    came(&mut obs, read);
    obs
}

fn ports(read: Read, lines: u64) -> Observation {
    let live = match read {
        Read::Full => 95,
        Read::Far(used, _) => used as u16,
        Read::Nothing => 60,
    };
    let mut obs = edge(BACKEND, "20000 20099", live);
    crate::stage::edge::gateway_errors(&mut obs, 60_000);
    let line = format!("2026/11/24 04:36:35 [crit] 42#42: *1 connect() to {BACKEND}:8080 failed (99: Cannot assign requested address)");
    logged(&mut obs, "connect 99", lines, &line);
    came(&mut obs, read);
    if matches!(read, Read::Far(..)) {
        let waits = &mut obs.netns.get_mut(&SERVER).unwrap().time_waits;
        (0..=11_u64).for_each(|second| waits.push(second * 1_000_000, Reading::Ok(TimeWaits::default())));
    }
    obs
}

fn queue(read: Read, lines: u64) -> Observation {
    let peak = match read {
        Read::Full => 11,
        Read::Far(used, _) => used as u32,
        Read::Nothing => 3,
    };
    let mut obs = behind(peak);
    let load = obs.load.as_mut().unwrap();
    if matches!(read, Read::Far(..)) {
        // A few requests a second.
        (load.requests, load.good, load.connections, load.shape) = (100, 100, 100, Loop::Closed { connections: 4 });
    }
    load.good = load.requests / 2;
    load.status = [(200, load.good), (502, load.requests - load.good)].into();
    logged(&mut obs, "connect 11", lines, &no_room(PATH));
    came(&mut obs, read);
    obs
}

type Made = (&'static str, fn(Read, u64) -> Observation);
const KINDS: &[Made] = &[(CONNECTIONS, connections), (FILES, files), (PORTS, ports), (QUEUE, queue)];

fn found<'a>(diagnosis: &'a Diagnosis, id: &str) -> Option<&'a chokepoint_model::report::Finding> {
    diagnosis.findings.iter().find(|finding| finding.id == id)
}

fn is_noted(diagnosis: &Diagnosis) -> bool {
    diagnosis.warnings.iter().any(|warning| warning.contains("were not believed. Whoever sends requests can write such lines."))
}

#[test]
fn what_was_seen_to_run_out_stays_a_cause() {
    for (id, made) in KINDS {
        let diagnosis = told(&made(Read::Full, 50_000));
        let finding = found(&diagnosis, id).unwrap_or_else(|| panic!("{id}: {:?}", diagnosis.summary));
        assert_eq!((finding.confidence, is_noted(&diagnosis)), (Confidence::High, false), "{id}");
    }
    let changed = |id: &str, made: fn(Read, u64) -> Observation| {
        found(&told(&made(Read::Full, 50_000)), id).unwrap().remedies.iter().any(|remedy| !remedy.change.is_empty())
    };
    assert!(changed(CONNECTIONS, connections) && changed(FILES, files) && changed(PORTS, ports));
}

#[test]
fn a_log_alone_is_at_most_likely_and_nothing_is_changed_for_it() {
    for (id, made) in KINDS {
        let diagnosis = told(&made(Read::Nothing, 50_000));
        let finding = found(&diagnosis, id).unwrap_or_else(|| panic!("{id}: {:?}", diagnosis.summary));
        assert!(finding.confidence <= Confidence::Medium, "{id}");
        assert!(finding.remedies.iter().all(|remedy| remedy.change.is_empty()), "{id}: {:?}", finding.remedies);
        assert!(!is_noted(&diagnosis), "{id}");
    }
    let diagnosis = told(&connections(Read::Nothing, 50_000));
    let remedy = &found(&diagnosis, CONNECTIONS).unwrap().remedies[0];
    assert!(remedy.runtime[0].text.as_ref().is_some_and(|text| text.contains("Only an error log says so")), "{:?}", remedy.runtime);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn lines_that_a_reading_rules_out_are_not_believed(kind in 0..KINDS.len(), used in 1_u64..8, opened in 0_u64..40, lines in 1_u64..2_000_000, alone: bool) {
        let (id, made) = KINDS[kind];
        let mut obs = made(Read::Far(used, opened), lines);
        // Without a load the rate of requests to a unix socket, and of files, is not known: there the lines are at most likely.
        let is_ruled_out = !alone || matches!(id, CONNECTIONS | PORTS);
        if alone {
            watched(&mut obs);
        }
        let diagnosis = told(&obs);
        let finding = found(&diagnosis, id);
        prop_assert!(finding.is_none_or(|finding| finding.remedies.iter().all(|remedy| remedy.change.is_empty())));
        if is_ruled_out {
            prop_assert!(finding.is_none(), "{id} {used} {opened} {lines}: {finding:?}");
            prop_assert!(is_noted(&diagnosis), "{id} {used} {opened} {lines}: {:?}", diagnosis.warnings);
        } else {
            prop_assert!(finding.is_none_or(|finding| finding.confidence <= Confidence::Medium));
        }
    }

    /// Between two looks nearly all that came may have been held at once: then nothing is ruled out.
    #[test]
    fn what_may_have_happened_between_two_looks_is_not_ruled_out(used in 20_u64..50, missing in 0_u64..20) {
        // In one second as many come as are missing, and some more.
        let mut obs = connections(Read::Far(used, (64 - used + missing) * 11), 5_000);
        watched(&mut obs);
        prop_assert!(!is_noted(&told(&obs)), "{used}");
    }
}

#[test]
fn limits_that_the_configuration_or_the_responses_know_nothing_of_limit_nobody() {
    for (kind, limits) in [("limiting requests other", vec![rate(Some(true), 20, 20)]), ("limiting requests one", Vec::new())] {
        let mut obs = nginx(10, 1_024, false, limits);
        suffer(&mut obs, 0, &[(500, 8_000)]);
        logged(&mut obs, kind, 8_000, "*1 limiting requests, excess: 20.400 by zone");
        let diagnosis = told(&obs);
        assert!(found(&diagnosis, LIMITED).is_none() && is_noted(&diagnosis), "{kind}: {:?}", diagnosis.warnings);
        let lost = diagnosis.ledger.iter().flat_map(|ledger| &ledger.losses).filter_map(|loss| loss.place.as_deref());
        assert!(!lost.collect::<Vec<_>>().contains(&"rate-limit"), "{kind}");
    }
    // The status of the limit is among the responses only where it refused.
    for (status, is_limited) in [(429, true), (500, false)] {
        let mut obs = nginx(10, 1_024, false, vec![rate(Some(true), 20, 20)]);
        suffer(&mut obs, 0, &[(status, 7_980)]);
        logged(&mut obs, "limiting requests one", 7_980, "*1 limiting requests, excess: 20.400 by zone \"one\"");
        let diagnosis = told(&obs);
        assert_eq!((found(&diagnosis, LIMITED).is_some(), is_noted(&diagnosis)), (is_limited, !is_limited), "{status}");
    }
    // More is answered than a limit lets pass: it delays nobody.
    for (good, is_limited) in [(2_001, true), (90_000, false)] {
        let mut obs = nginx(10, 1_024, false, vec![rate(None, 1_000, 0)]);
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.shape, load.status) = (good, good, Loop::Closed { connections: 50 }, [(200, good)].into());
        logged(&mut obs, "delaying requests one", good, "*1 delaying request, excess: 20.400, by zone \"one\"");
        let diagnosis = told(&obs);
        assert_eq!((found(&diagnosis, LIMITED).is_some(), is_noted(&diagnosis)), (is_limited, !is_limited), "{good}");
    }
}

#[test]
fn a_line_does_not_say_which_limit_is_in_force() {
    // The configuration was read as it is in force: a line with a smaller limit, which is reached, does not count against it.
    let mut obs = connections(Read::Far(9, 10), 5_000);
    let mut kernel = obs.kernel.last().cloned().unwrap();
    kernel.boot_s = Some(1_000);
    obs.kernel.push(1, Reading::Ok(kernel));
    let config = obs.servers.get_mut(&42).unwrap();
    let mut nginx = config.nginx().unwrap().clone();
    nginx.files = vec![(MAIN.to_owned(), 5)];
    config.config.push(1, Reading::Ok(chokepoint_model::observation::ServerConfig::Nginx(nginx)));
    config.error_logs.clear();
    logged(&mut obs, "worker_connections", 5_000, &ALERT.replace("64 worker", "9 worker"));
    let diagnosis = told(&obs);
    assert!(found(&diagnosis, CONNECTIONS).is_none() && is_noted(&diagnosis), "{:?}", diagnosis.warnings);
}
