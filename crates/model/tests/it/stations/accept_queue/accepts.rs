//! Findings `accepts-none` and `accepts-slowly`: a queue that stays full is no burst, and a longer one is no remedy.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Limits, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Role, Verdict};

use crate::stage::pool::ran;
use crate::stage::queue::*;
use crate::stage::*;

/// The queue is always full, and the cores are idle.
pub(super) fn standing(limit: u32, good: u64) -> Observation {
    let mut obs = healthy();
    queue(&mut obs, limit, limit + 1, 3_000);
    suffer(&mut obs, 1_000, good);
    cpu(&mut obs, 0.05);
    let sysctls = &mut obs.netns.get_mut(&SERVER).unwrap().sysctls;
    sysctls.entry("net.core.somaxconn".into()).or_default().push(0, Reading::Ok("4096".into()));
    let limits = Limits { open_files_soft: Some(1_024), open_files_hard: Some(1_024), ..Limits::default() };
    obs.processes.get_mut(&42).unwrap().limits.push(0, Reading::Ok(limits));
    obs
}

/// The server's process is in this state, and runs for so long in each second.
fn runs(obs: &mut Observation, state: char, ns_per_s: u64) {
    states(obs, 42, ns_per_s, |_| state);
}

/// A process is in this state in each second, and runs for so long.
pub(super) fn states(obs: &mut Observation, pid: u32, ns_per_s: u64, state: impl Fn(u64) -> char) {
    let series = &mut obs.processes.get_mut(&pid).unwrap().cpu;
    *series = Default::default();
    for second in 0..=11_u64 {
        let (run_ns, state) = (Some(second * ns_per_s), state(second));
        let used = CpuUse { state, run_ns, run_delay_ns: Some(0), threads: 1, ..CpuUse::default() };
        series.push(second * 1_000_000, Reading::Ok(used));
    }
}

/// With the load, and watched.
pub(super) fn both(obs: &Observation) -> [Diagnosis; 2] {
    let watched = Observation { load: None, ..obs.clone() };
    let watched = Observation { request: chokepoint_model::observation::Request { loaded: false, ..obs.request.clone() }, ..watched };
    [told(obs), told(&watched)]
}

pub(super) fn offers_a_longer_queue(diagnosis: &Diagnosis) -> bool {
    diagnosis.findings.iter().flat_map(|finding| &finding.remedies).any(|remedy| remedy.id == "raise-accept-backlog")
}

pub(super) fn says(diagnosis: &Diagnosis, words: &str) -> bool {
    serde_json::to_string(diagnosis).unwrap().contains(words)
}

#[test]
fn a_stopped_process_accepts_nothing_and_that_is_said() {
    for (state, title) in [('T', "nginx is stopped (SIGSTOP or a debugger) and accepts no"), ('S', "nginx accepts no connections at")] {
        let mut obs = standing(511, 0);
        runs(&mut obs, state, 0);
        for diagnosis in both(&obs) {
            assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accepts-none"]), "{state}");
            let cause = &diagnosis.findings[0];
            assert!(cause.title.starts_with(title), "{}", cause.title);
            assert_eq!(cause.confidence, Confidence::High);
            assert!(!cause.remedies.is_empty() && !offers_a_longer_queue(&diagnosis));
            assert_eq!((diagnosis.findings[1].id.as_str(), diagnosis.findings[1].role), ("accept-queue-full", Role::Symptom));
            assert!(!says(&diagnosis, "arrive in bursts"), "{:?}", diagnosis.findings[1].explanation);
        }
    }
}

#[test]
fn a_queue_that_is_nearly_always_full_is_no_burst() {
    let mut obs = standing(5, 840);
    ran(&mut obs, [42], 70_000_000);
    for diagnosis in both(&obs) {
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accepts-slowly"]));
        assert_eq!((diagnosis.findings[1].id.as_str(), diagnosis.findings[1].role), ("accept-queue-full", Role::Symptom));
        assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
        assert!(!offers_a_longer_queue(&diagnosis) && !says(&diagnosis, "arrive in bursts"));
        assert!(diagnosis.findings[0].evidence.iter().any(|proof| proof.text.contains("was full in 201 of 201 samples")));
    }
}

#[test]
fn a_queue_with_room_most_of_the_time_overflows_in_bursts() {
    let mut obs = standing(5, 50_000);
    at_times(&mut obs);
    runs(&mut obs, 'S', 70_000_000);
    for diagnosis in both(&obs) {
        assert_eq!(causes(&diagnosis), ["accept-queue-full"]);
        assert!(offers_a_longer_queue(&diagnosis));
    }
}

#[test]
fn whoever_ran_may_have_accepted_and_what_was_not_read_is_not_zero() {
    // A process of the listener ran; nothing is known of it; the queue was seen shorter than before.
    let mut one_ran = standing(511, 0);
    runs(&mut one_ran, 'S', 1_000_000);
    let unread = standing(511, 0);
    let mut fell = standing(511, 0);
    runs(&mut fell, 'S', 0);
    at_times(&mut fell);
    for (name, obs) in [("ran", one_ran), ("unread", unread), ("fell", fell)] {
        for diagnosis in both(&obs) {
            assert!(diagnosis.findings.iter().all(|finding| finding.id != "accepts-none"), "{name}");
        }
    }
}

#[test]
fn a_queue_that_is_always_full_before_full_cores_is_no_burst_either() {
    let mut obs = standing(511, 50_000);
    ran(&mut obs, [42], 950_000_000);
    cpu(&mut obs, 0.99);
    // Nobody knows for how many clients a longer queue would have to have room, unless they are ours.
    for (diagnosis, why) in both(&obs).iter().zip(["was full in 201 of 201 samples", "a longer queue would only add waiting time"]) {
        let full = diagnosis.findings.iter().find(|finding| finding.id == "accept-queue-full").unwrap();
        assert!(!says(diagnosis, "arrive in bursts"), "{:?}", full.explanation);
        assert!(full.explanation.contains(why), "{:?}", full.explanation);
    }
}

#[test]
fn cores_that_are_full_accept_no_faster() {
    let mut obs = standing(511, 2_500);
    ran(&mut obs, [42], 950_000_000);
    cpu(&mut obs, 0.99);
    assert!(told(&obs).findings.iter().all(|finding| finding.id != "accepts-slowly"));
}

/// A watched server with one request in service and this many in its queue, which has room for all, in each sample.
pub(super) fn queued(waiting: u32, ns_per_s: u64) -> Observation {
    let mut obs = standing(511, 0);
    (obs.load, obs.request.loaded) = (None, false);
    queue(&mut obs, 511, waiting, 0);
    runs(&mut obs, 'S', ns_per_s);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for number in 0..48_u64 {
        let socket = |n: u64| {
            let times = RequestTimes {
                last_data_recv_ms: 200,
                last_data_sent_ms: 200,
                data_segs_in: Some(1),
                data_segs_out: Some(0),
                bytes_received: Some(100),
                bytes_sent: Some(0),
                min_rtt_us: Some(20),
                rtt_us: Some(50),
                ..RequestTimes::default()
            };
            let remote = (ip("10.0.0.1"), 10_000 + ((number * 97 + n) % 50_000) as u16);
            RequestSocket {
                address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote },
                cookie: 1 + number * 97 + n,
                state: TcpState::Established,
                inode: if n == 0 { 7 } else { 0 },
                receive_queue: if n == 0 { 0 } else { 100 },
                send_queue: 0,
                times: Some(times),
            }
        };
        let sockets = (0..=u64::from(waiting)).map(socket).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + 100_000 + number * 200_000, Reading::Ok(sample));
    }
    for (at, opens) in [(0, 0), (11_000_000, 1_100)] {
        view.netstat.push(at, Reading::Ok([("Tcp.PassiveOpens".to_owned(), opens)].into_iter().collect()));
    }
    obs
}

/// python with one thread and a backlog that is long enough: most of each request's time passes in the queue.
#[test]
fn requests_that_always_stand_in_a_queue_with_room_are_held_back_by_whoever_accepts() {
    let diagnosis = told(&queued(38, 50_000_000));
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accepts-slowly"]), "{}", diagnosis.summary);
    let proofs = &diagnosis.findings[0].evidence;
    assert!(proofs.iter().any(|proof| proof.text.starts_with("Of 39 requests in flight, 38 waited to be accepted")), "{proofs:?}");
    for (waiting, ns_per_s, why) in [(0, 50_000_000, "nothing waits"), (38, 900_000_000, "its thread computes")] {
        assert!(causes(&told(&queued(waiting, ns_per_s))).is_empty(), "{why}");
    }
}
