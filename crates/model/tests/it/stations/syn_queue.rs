//! Station `syn-queue`: a cause if dropped SYNs do harm, a symptom if the accept queue overflows, and no finding with cookies or otherwise.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{RequestSample, RequestSocket, Socket};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Diagnosis, Role, Station, StationState, Verdict};

use crate::stage::handshakes::*;
use crate::stage::queue::at_times;
use crate::stage::*;

fn hurt(shown: &Shown<'_>) -> Diagnosis {
    let mut obs = healthy();
    show(&mut obs, shown);
    suffer(&mut obs);
    told(&obs)
}

fn station(diagnosis: &Diagnosis) -> &Station {
    diagnosis.path.iter().find(|station| station.station == "syn-queue").unwrap()
}

fn settings(diagnosis: &Diagnosis) -> Vec<(&str, String, &str, &str)> {
    let remedies = diagnosis.findings[0].remedies.iter();
    remedies.flat_map(|remedy| remedy.change.iter().map(|change| (remedy.id.as_str(), change.key(), change.from(), change.to()))).collect()
}

#[test]
fn a_full_queue_without_cookies_is_a_cause_with_any_limit() {
    for (shown, limit) in [(FULL, 128.0), (FULL_BY_SYSCTL, 97.0), (Shown { address: "::", ..FULL }, 128.0)] {
        let diagnosis = hurt(&shown);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["syn-queue-full"]), "limit {limit}");
        assert_eq!(diagnosis.findings.len(), 1, "the same drops are not the accept queue's");
        assert_eq!((station(&diagnosis).limit, station(&diagnosis).state), (Some(limit), StationState::Refusing));
        assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
        assert!(diagnosis.findings[0].evidence.len() >= 5, "{:?}", diagnosis.findings[0].evidence);
    }
}

#[test]
fn handshakes_are_counted_in_request_samples_if_reading_all_sockets_was_too_expensive() {
    for share in [1.0, 0.5] {
        let mut obs = healthy();
        show(&mut obs, &Shown { open: ((97.0 * share) as u16 + 1, 1), ..FULL_BY_SYSCTL });
        suffer(&mut obs);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let sockets = std::mem::take(&mut view.sockets).last().cloned().unwrap();
        let of = |socket: Socket| RequestSocket {
            address: socket.address,
            cookie: 0,
            state: socket.state,
            inode: 0,
            receive_queue: 0,
            send_queue: 0,
            times: None,
        };
        let sample =
            RequestSample { share: 1.0, handshake_share: share, sockets: sockets.into_iter().map(of).collect(), ..Default::default() };
        (0..55).for_each(|tick| view.request_samples.push(tick * 200_000, Reading::Ok(sample.clone())));
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), ["syn-queue-full"], "a share of {share}");
        assert_eq!(station(&diagnosis).utilization.map(|share| share >= 1.0), Some(true));
    }
}

#[test]
fn a_queue_that_drops_was_full_between_two_samples_if_most_of_it_was_seen_in_use() {
    let seen = |open: u16| hurt(&Shown { open: (open, 1), ..FULL_BY_SYSCTL });
    let diagnosis = seen(60);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["syn-queue-full"]), "60 of 97 handshakes");
    assert_eq!(diagnosis.findings[0].confidence, Confidence::Medium);
    assert!(!causes(&seen(30)).contains(&"syn-queue-full"), "it was never near its limit: something else drops");
}

#[test]
fn cookies_come_first_and_the_sysctl_is_raised_only_if_it_is_the_limit() {
    let cookies = ("send-syn-cookies", "net.ipv4.tcp_syncookies".to_owned(), "0", "1");
    assert_eq!(settings(&hurt(&FULL)), std::slice::from_ref(&cookies));
    let backlog = ("raise-syn-backlog", "net.ipv4.tcp_max_syn_backlog".to_owned(), "128", "8192");
    assert_eq!(settings(&hurt(&FULL_BY_SYSCTL)), [cookies, backlog]);
}

#[test]
fn with_cookies_nobody_is_refused() {
    let grown = Grown { full: 0, cookies: 30_000, drops: 0, overflows: 0 };
    for cookies in ["1", "2"] {
        let mut obs = healthy();
        show(&mut obs, &Shown { own: Some(0), sysctls: (cookies, "128"), grown, ..FULL });
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, diagnosis.findings.len()), (Verdict::Healthy, 0));
        let station = station(&diagnosis);
        assert_eq!((station.state, station.limit), (StationState::Near, Some(128.0)));
        assert!(station.why.contains("cookies"), "{}", station.why);
    }
}

#[test]
fn drops_without_a_slow_connect_are_reported_and_no_cause() {
    let mut obs = healthy();
    show(&mut obs, &Shown { own: Some(3), grown: Grown { full: 3, drops: 3, ..Grown::default() }, ..FULL });
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Healthy, vec![]));
    assert_eq!(station(&diagnosis).state, StationState::Near);
    // Slow answers are no sign of a lost SYN.
    obs.load.as_mut().unwrap().errors.response_timeout = 900;
    assert!(!causes(&told(&obs)).contains(&"syn-queue-full"));
}

#[test]
fn a_short_queue_that_is_never_full_is_no_finding() {
    let mut obs = healthy();
    show(&mut obs, &Shown { limit: 10, own: Some(0), open: (2, 1), grown: Grown::default(), ..FULL });
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.findings.len(), station(&diagnosis).state), (Verdict::Healthy, 0, StationState::Ok));
}

#[test]
fn before_an_overflowing_accept_queue_it_is_a_symptom() {
    let shown = Shown {
        limit: 10,
        standing: 11,
        own: Some(3_400),
        open: (10, 1),
        grown: Grown { full: 3_000, cookies: 0, drops: 3_400, overflows: 400 },
        ..FULL
    };
    let mut obs = healthy();
    show(&mut obs, &shown);
    at_times(&mut obs);
    suffer(&mut obs);
    obs.load.as_mut().unwrap().good = 100_000;
    obs.load.as_mut().unwrap().requests = 100_300;
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["accept-queue-full"]);
    let syn = diagnosis.findings.iter().find(|finding| finding.id == "syn-queue-full").unwrap();
    assert_eq!((syn.role, syn.symptom_of.as_slice()), (Role::Symptom, ["accept-queue-full".to_owned()].as_slice()));
}

#[test]
fn an_accept_queue_that_overflows_in_bursts_is_not_reported_as_a_syn_queue() {
    let grown = Grown { full: 0, cookies: 0, drops: 3_000, overflows: 3_000 };
    // Whether or not tcp_max_syn_backlog is the limit, and although the queue is short.
    for (sysctls, open) in [(("0", "128"), (5, 1)), (("0", "4096"), (5, 1)), (("1", "128"), (5, 1))] {
        let diagnosis = hurt(&Shown { limit: 511, sysctls, open, grown, ..FULL });
        assert_eq!(causes(&diagnosis), ["accept-queue-full"], "{sysctls:?}");
        assert_eq!(diagnosis.findings.len(), 1);
    }
}

#[test]
fn drops_of_another_listener_do_not_count_for_this_one() {
    let diagnosis = hurt(&Shown { own: Some(0), open: (1, 1), ..FULL });
    assert_eq!(causes(&diagnosis), [""; 0]);
    // Overflows elsewhere do not count for the listener whose SYN queue is full either.
    let grown = Grown { full: 3_000, cookies: 0, drops: 4_000, overflows: 1_000 };
    let diagnosis = hurt(&Shown { grown, ..FULL });
    assert_eq!((causes(&diagnosis), diagnosis.findings.len()), (vec!["syn-queue-full"], 1));
}

#[test]
fn missing_readings_are_not_zero_and_give_no_finding() {
    let mut obs = healthy();
    show(&mut obs, &FULL);
    suffer(&mut obs);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.netstat = Default::default();
    view.netstat.push(0, Reading::Absent(Lack::needing("permission denied", "CAP_SYS_ADMIN")));
    let diagnosis = told(&obs);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != "syn-queue-full"));
    assert_eq!((station(&diagnosis).state, station(&diagnosis).refused_per_s), (StationState::Unknown, None));
    // Without the sockets, the counters still show it: drops of a listener without an overflow of an accept queue.
    let mut obs = healthy();
    show(&mut obs, &FULL);
    suffer(&mut obs);
    obs.netns.get_mut(&SERVER).unwrap().sockets = Default::default();
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["syn-queue-full"], Confidence::Medium));
    assert_eq!(station(&diagnosis).used, None);
}

#[test]
fn watched_traffic_gives_medium_confidence_from_the_counters() {
    let mut obs = healthy();
    show(&mut obs, &FULL);
    obs.load = None;
    obs.request.loaded = false;
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["syn-queue-full"], Confidence::Medium));
}
