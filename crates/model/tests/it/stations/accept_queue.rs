//! Station `accept-queue`: a cause if a longer queue would serve the refused clients, a symptom if busy workers do not accept, otherwise no finding.
//!
//! Deterministic: observations made up by the tests.

mod accepts;
mod halted;
mod members;
mod traced;

use chokepoint_model::observation::{Listener, ListenerAddress, Observation};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Role, StationState, Verdict};

use crate::stage::both::overflowing;
use crate::stage::edge::{BACKEND, edge};
use crate::stage::queue::*;
use crate::stage::*;

#[test]
fn bursts_into_a_short_queue_are_a_cause() {
    for limit in [5, 10, 128] {
        let mut obs = healthy();
        queue(&mut obs, limit, 1, 3_000);
        suffer(&mut obs, 1_000, 50_000);
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accept-queue-full"]), "limit {limit}");
        assert!(diagnosis.findings[0].evidence.len() >= 3);
    }
}

/// Connections to an upstream come from its caller, whose kernel sends the SYNs again.
#[test]
fn a_lost_syn_to_an_upstream_is_sent_again_by_its_caller() {
    let mut obs = edge(BACKEND, "10000 65535", 20);
    overflowing(&mut obs, 200);
    for (netns, linear) in [(CLIENT, "4"), (SERVER, "1")] {
        for (key, value) in [("net.ipv4.tcp_syn_linear_timeouts", linear), ("net.ipv4.tcp_syn_retries", "3")] {
            let sysctls = &mut obs.netns.get_mut(&netns).unwrap().sysctls;
            sysctls.entry(key.into()).or_default().push(1, Reading::Ok(value.into()));
        }
    }
    let diagnosis = told(&obs);
    let finding = diagnosis.findings.iter().find(|finding| finding.id == "accept-queue-full").unwrap();
    assert!(finding.at.listener.as_deref().is_some_and(|listener| listener.ends_with(":8080")), "{:?}", finding.at);
    assert!(finding.explanation.contains("the client retries after 1, 2, 4, 8 s. "), "{}", finding.explanation);
}

#[test]
fn a_standing_queue_is_a_symptom_of_whoever_accepts() {
    let mut obs = healthy();
    queue(&mut obs, 511, 512, 3_000);
    suffer(&mut obs, 1_000, 2_500);
    cpu(&mut obs, 0.05);
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.findings.iter().map(|finding| finding.role).collect::<Vec<_>>(), [Role::Cause, Role::Symptom]);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accepts-slowly"]));
    // The times of its threads were not read.
    assert_eq!(diagnosis.findings[0].confidence, Confidence::Low);
}

#[test]
fn a_small_queue_that_never_fills_is_no_finding() {
    let mut obs = healthy();
    queue(&mut obs, 4, 1, 0);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.findings.len()), (Verdict::Healthy, 0));
}

/// The drops of the namespace's listeners, and the drops because of a full queue.
fn counted(obs: &mut Observation, drops: i64, overflows: i64) {
    counted_with(obs, drops, overflows, 0);
}

/// The same with packets that only end a deferred handshake.
fn counted_with(obs: &mut Observation, drops: i64, overflows: i64, deferred: i64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, share) in [(0, 0), (11_000_000, 1)] {
        let counters = [("TcpExt.ListenDrops", drops), ("TcpExt.ListenOverflows", overflows), ("TcpExt.TCPDeferAcceptDrop", deferred)];
        view.netstat.push(at, Reading::Ok(counters.map(|(name, count)| (name.to_owned(), count * share)).into()));
    }
}

#[test]
fn drops_of_a_listener_with_room_are_no_overflow_with_and_without_load() {
    for (overflows, expected) in [(0, vec![]), (56, vec!["accept-queue-full"])] {
        for loaded in [true, false] {
            let mut obs = healthy();
            queue(&mut obs, 4_096, 0, 56);
            counted(&mut obs, 56, overflows);
            suffer(&mut obs, 200, 50_000);
            if !loaded {
                obs.load = None;
                obs.request.loaded = false;
            }
            assert_eq!(causes(&told(&obs)), expected, "{overflows} overflows, loaded: {loaded}");
        }
    }
}

/// A server whose queue of this limit dropped 150 connections at times, in a namespace that counted 200 overflows, and so many packets that only end a deferred handshake.
fn beside_overflows(limit: u32, standing: u32, deferred: i64) -> Observation {
    let mut obs = healthy();
    queue(&mut obs, limit, standing, 150);
    at_times(&mut obs);
    counted_with(&mut obs, 200, 200, deferred);
    suffer(&mut obs, 200, 50_000);
    obs
}

/// Adds another listener, by what it had dropped at each time that it was there.
fn beside_another(obs: &mut Observation, limit: u32, dropped: impl Fn(u64) -> Option<u64>) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.extend(dropped(at).map(|dropped| {
            let other = listener(ListenerAddress::Tcp(ip("0.0.0.0"), 9999), 777, 0, dropped);
            Listener { accept_queue_limit: limit, ..other }
        }));
        view.listeners.push(at, Reading::Ok(listeners));
    }
}

/// The causes that are overflows.
fn overflows(obs: &Observation) -> Vec<String> {
    causes(&told(obs)).into_iter().filter(|id| *id == "accept-queue-full").map(str::to_owned).collect()
}

/// Another server of the namespace overflows; this one, whose queue was nearly empty whenever it was looked at, dropped packets for another reason.
#[test]
fn what_another_listener_overflowed_is_not_this_ones() {
    for (limit, standing, elsewhere, expected) in [
        (511, 1, 200, vec![]),
        (511, 1, 300, vec![]),
        // More than the other one can have dropped.
        (511, 1, 100, vec!["accept-queue-full"]),
        // Seen at its limit.
        (5, 6, 200, vec!["accept-queue-full"]),
    ] {
        let mut obs = beside_overflows(limit, standing, 0);
        let dropped = |at: u64| if at < WINDOW.0 { 0 } else { elsewhere * (at.min(WINDOW.1) - WINDOW.0) / (WINDOW.1 - WINDOW.0) };
        beside_another(&mut obs, 5, |at| Some(dropped(at)));
        assert_eq!(overflows(&obs), expected, "limit {limit}, {standing} waited, {elsewhere} dropped elsewhere");
    }
}

#[test]
fn what_a_listener_overflowed_that_has_ended_is_not_this_ones() {
    for (until_us, expected) in [(8_000_000, vec![]), (WINDOW.0, vec!["accept-queue-full"])] {
        let mut obs = beside_overflows(511, 1, 0);
        let dropped = |at: u64| 300 * at.saturating_sub(WINDOW.0) / (8_000_000 - WINDOW.0);
        beside_another(&mut obs, 511, |at| (at <= until_us).then(|| dropped(at)));
        assert_eq!(overflows(&obs), expected, "until {until_us}");
    }
}

/// With TCP_DEFER_ACCEPT a listener drops the last packet of each handshake, and another server of the namespace overflows.
#[test]
fn packets_that_only_end_a_deferred_handshake_are_no_overflow() {
    for (deferred, expected) in [(150, vec![]), (30, vec!["accept-queue-full"])] {
        assert_eq!(overflows(&beside_overflows(511, 1, deferred)), expected, "{deferred} deferred");
    }
}

/// The counters of the namespace are read more seldom than its listeners, and so for longer than the window: what another listener overflowed before and after it is in them as well. This one
/// dropped packets of handshakes that their callers reset, as checks of a proxy do.
#[test]
fn overflows_outside_of_the_window_are_not_this_listeners() {
    for (of_other, expected) in [(220, vec![]), (60, vec!["accept-queue-full"])] {
        let mut obs = healthy();
        queue(&mut obs, 4_096, 0, 30);
        at_times(&mut obs);
        counted(&mut obs, 220, 220);
        suffer(&mut obs, 200, 50_000);
        beside_another(&mut obs, 511, |at| Some(of_other * at.min(11_000_000) / 11_000_000));
        assert_eq!(overflows(&obs), expected, "{of_other} dropped elsewhere");
    }
}

#[test]
fn overflows_without_harm_are_reported_and_no_cause() {
    let mut obs = healthy();
    queue(&mut obs, 10, 0, 3);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [""; 0]);
    let station = diagnosis.path.iter().find(|station| station.station == "accept-queue").unwrap();
    assert_eq!(station.state, StationState::Near);
    assert_eq!(diagnosis.verdict, Verdict::Healthy);
}

/// The listener of the server's queue dropped these connections, all before this time of the observation.
fn dropped_until(obs: &mut Observation, until_us: u64, drops: u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[0].drops = Some(drops * at.clamp(WINDOW.0, until_us).saturating_sub(WINDOW.0) / (until_us - WINDOW.0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
}

#[test]
fn the_burst_at_the_start_of_a_load_is_reported_and_is_a_cause_only_if_it_continues() {
    for (until_us, expected) in [(WINDOW.0 + 1_500_000, vec![]), (WINDOW.0 + 4_000_000, vec!["accept-queue-full"])] {
        let mut obs = healthy();
        queue(&mut obs, 10, 1, 0);
        suffer(&mut obs, 1_000, 50_000);
        dropped_until(&mut obs, until_us, 900);
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), expected, "until {until_us}");
        let station = diagnosis.path.iter().find(|station| station.station == "accept-queue").unwrap();
        assert_eq!(station.why.contains("at the start of the load"), expected.is_empty(), "{}", station.why);
        // A watching run sees no start. A load of three seconds shows nothing after its start.
        (obs.load, obs.request.loaded) = (None, false);
        assert_eq!(causes(&told(&obs)), ["accept-queue-full"], "until {until_us}");
    }
    // With kept connections, a few late connections delay few requests.
    let kept = |opened: u64| {
        let mut obs = healthy();
        queue(&mut obs, 10, 1, 0);
        dropped_until(&mut obs, WINDOW.0 + 4_000_000, 900);
        let load = obs.load.as_mut().unwrap();
        (load.connections, load.errors.response_timeout, load.requests) = (opened, 40, load.good + 40);
        let connects = &mut load.connect_us;
        (connects.p99, connects.p999, connects.max) = (1_000_000, 2_000_000, 2_000_000);
        told(&obs)
    };
    assert_eq!(causes(&kept(320)), [""; 0]);
    assert_eq!(causes(&kept(50_000)), ["accept-queue-full"], "a connection for two requests");
    let mut short = healthy();
    queue(&mut short, 10, 1, 0);
    suffer(&mut short, 1_000, 50_000);
    dropped_until(&mut short, WINDOW.0 + 1_500_000, 900);
    short.window_us = Some((WINDOW.0, WINDOW.0 + 3_000_000));
    assert_eq!(causes(&told(&short)), ["accept-queue-full"]);
}

#[test]
fn a_few_overflows_beside_other_failures_or_slowness_are_no_cause() {
    let burst = |change: fn(&mut Observation)| {
        let mut obs = healthy();
        queue(&mut obs, 10, 0, 40);
        change(&mut obs);
        causes(&told(&obs)).len()
    };
    let app_errors = burst(|obs| {
        let load = obs.load.as_mut().unwrap();
        (load.good, load.status) = (95_000, [(200, 95_000), (500, 5_000)].into());
    });
    assert_eq!(app_errors, 0, "errors of the application");
    let one_slow = burst(|obs| {
        let load = obs.load.as_mut().unwrap();
        (load.latency_us.max, load.connect_us.max, load.errors.response_timeout) = (1_900_000, 1_010_000, 1);
    });
    assert_eq!(one_slow, 0, "one in a hundred thousand");
    let slow_pages = burst(|obs| {
        let load = obs.load.as_mut().unwrap();
        (load.latency_us.p50, load.latency_us.p99, load.latency_us.p999) = (1_200_000, 1_500_000, 1_800_000);
    });
    assert_eq!(slow_pages, 0, "every page takes a second");
    // Connect timeouts are the harm that overflows do.
    let timeouts = burst(|obs| {
        obs.load.as_mut().unwrap().errors.connect_timeout = 1_500;
        obs.load.as_mut().unwrap().good -= 1_500;
    });
    assert_eq!(timeouts, 1);
}

#[test]
fn overflows_of_very_few_connections_are_no_cause_with_and_without_load() {
    for (accepted, expected) in [(400_000, vec![]), (5_000, vec!["accept-queue-full"])] {
        for loaded in [true, false] {
            let mut obs = healthy();
            queue(&mut obs, 10, 1, 60);
            suffer(&mut obs, 1_000, 50_000);
            let view = obs.netns.get_mut(&SERVER).unwrap();
            for (at, opens) in [(0, 7), (11_000_000, 7 + accepted)] {
                view.netstat.push(at, Reading::Ok([("Tcp.PassiveOpens".to_owned(), opens)].into()));
            }
            if !loaded {
                (obs.load, obs.request.loaded) = (None, false);
            }
            assert_eq!(causes(&told(&obs)), expected, "{accepted} accepted, loaded: {loaded}");
        }
    }
}

#[test]
fn drops_without_a_known_reason_have_less_confidence_and_may_be_syns() {
    let mut obs = healthy();
    queue(&mut obs, 128, 1, 3_000);
    suffer(&mut obs, 1_000, 50_000);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["accept-queue-full"], Confidence::Low));
    // Without cookies a full SYN queue drops connections too. A queue that was seen full drops them itself.
    let cookies = |obs: &mut Observation, value: &str| {
        let series = obs.netns.get_mut(&SERVER).unwrap().sysctls.entry("net.ipv4.tcp_syncookies".into()).or_default();
        series.push(0, Reading::Ok(value.into()));
    };
    cookies(&mut obs, "0");
    assert_eq!(causes(&told(&obs)), [""; 0]);
    let mut full = healthy();
    queue(&mut full, 10, 10, 3_000);
    at_times(&mut full);
    suffer(&mut full, 1_000, 50_000);
    cookies(&mut full, "0");
    assert_eq!(causes(&told(&full)), ["accept-queue-full"]);
    counted(&mut full, 3_000, 3_000);
    assert_eq!(told(&full).findings[0].confidence, Confidence::High);
}
