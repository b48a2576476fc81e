//! Finding `answers-none`: one of two servers behind a proxy takes requests and answers none.
//!
//! Deterministic: observations made up by the tests.

mod repeated;

use chokepoint_model::observation::{
    ListenerAddress, Observation, RequestSample, RequestSocket, RequestTimes, Socket, SocketAddress, TcpState,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Evidence, Verdict};

use super::peers::{EQUAL, beside};
use crate::stage::pool::{process, ran, tcp};
use crate::stage::*;

pub(super) const FRONT: (&str, u16) = (SERVER_IP, 80);
pub(super) const GOOD: (&str, u16) = ("127.0.0.1", 8_080);
pub(super) const SILENT: (&str, u16) = ("127.0.0.1", 8_081);

/// The accepted end of a connection with a request of this age, on which so many requests were answered.
pub(super) fn accepted(at: (&str, u16), n: u64, inode: u64, age_ms: u64, answered: u64) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: age_ms,
        last_data_sent_ms: age_ms + 4,
        data_segs_in: Some(answered + 1),
        data_segs_out: Some(answered),
        bytes_received: Some(100 * (answered + 1)),
        bytes_sent: Some(200 * answered),
        min_rtt_us: Some(20),
        rtt_us: Some(50),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(at.0), at.1), remote: (ip("127.0.0.1"), 20_000 + (n % 40_000) as u16) },
        cookie: u64::from(at.1) * 100_000 + n,
        state: TcpState::Established,
        inode,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// nginx before two servers, under a load of 40 connections. `behind` gives the sockets of both in each sample; half of the requests end with 504 after a second.
pub(super) fn proxied(behind: impl Fn(u64) -> Vec<RequestSocket>) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.1);
    process(&mut obs, 42, 1, "nginx", &[100, 7, 500, 501]);
    process(&mut obs, 50, 1, "node", &[200, 8]);
    process(&mut obs, 51, 1, "node", &[201, 9]);
    ran(&mut obs, [42, 50, 51], 1_000_000);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let all = [(FRONT, 100), (GOOD, 200), (SILENT, 201)];
        let all = all.map(|((host, port), inode)| listener(ListenerAddress::Tcp(ip(host), port), inode, 0, 0));
        view.listeners.push(tick * 50_000, Reading::Ok(all.to_vec()));
    }
    let dialled = |inode: u64, to: (&str, u16)| tcp(inode, (ip("127.0.0.1"), 30_000 + inode as u16), (ip(to.0), to.1));
    let dialled: Vec<Socket> = vec![dialled(500, GOOD), dialled(501, SILENT)];
    for second in 1..=10_u64 {
        view.sockets.push(second * 1_000_000, Reading::Ok(dialled.clone()));
    }
    for number in 0..48_u64 {
        let front = (0..40).map(|n| accepted(FRONT, n, 7, 20 * n, number + 1));
        let sockets = front.chain(behind(number)).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, under_way: Some(40.0), sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + 100_000 + number * 200_000, Reading::Ok(sample));
    }
    let load = obs.load.as_mut().unwrap();
    load.shape = chokepoint_model::load::Loop::Closed { connections: 40 };
    load.keep_alive = true;
    (load.requests, load.good, load.status) = (800, 400, [(200, 400), (504, 400)].into());
    (load.latency_us.p50, load.latency_us.p99) = (500_000, 1_010_000);
    obs
}

/// Connections that end after a second, one each 25 ms: of these `seen` is made.
pub(super) fn passing(number: u64, made: impl Fn(u64, u64) -> RequestSocket) -> Vec<RequestSocket> {
    (0..40).map(|n| made(number * 8 + 40 - n, 25 * n)).collect()
}

/// A connection to the server that answers, with one more answer in each sample.
fn answering(number: u64) -> RequestSocket {
    accepted(GOOD, 1, 8, 4, 10 * number)
}

#[test]
fn one_of_two_servers_that_answers_nothing_is_named() {
    let obs = proxied(|number| {
        let silent = passing(number, |n, age_ms| accepted(SILENT, n, 9, age_ms, 0));
        silent.into_iter().chain([answering(number)]).collect()
    });
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["answers-none"]), "{}", diagnosis.summary);
    let cause = &diagnosis.findings[0];
    assert!(cause.title.starts_with("node:8081 at 127.0.0.1:8081 was not seen to answer any request"), "{}", cause.title);
    assert!(cause.explanation.contains("while node:8080 answers what nginx passes to it"), "{}", cause.explanation);
    assert!(
        cause.evidence.iter().any(|proof| proof.text == "400 of 800 requests failed because no answer came in time."),
        "{:?}",
        cause.evidence
    );
    assert_eq!((cause.confidence, cause.remedies.is_empty()), (Confidence::Medium, false));
}

#[test]
fn a_server_that_is_slow_and_answers_is_not_silent() {
    let slow = |number: u64, answered: u64| {
        let slow = passing(number, |n, age_ms| accepted(SILENT, n, 9, age_ms, 0));
        // One of its connections had an answer.
        slow.into_iter().chain([answering(number), accepted(SILENT, 50_000, 9, 100, answered)]).collect()
    };
    let answers = proxied(|number| slow(number, number / 10));
    let never = |obs: &Observation| told(obs).findings.iter().all(|finding| finding.id != "answers-none");
    assert!(never(&answers), "it answers slowly");
    let mut all_good = proxied(|number| slow(number, 0));
    let load = all_good.load.as_mut().unwrap();
    (load.good, load.status) = (800, [(200, 800)].into());
    assert!(never(&all_good), "no request fails");
    let mut errors = proxied(|number| slow(number, 0));
    errors.load.as_mut().unwrap().status = [(200, 400), (500, 400)].into();
    assert!(never(&errors), "what fails is answered");
    // Nobody else is seen to answer, so what was answered was this server's.
    assert!(never(&proxied(|number| passing(number, |n, age_ms| accepted(SILENT, n, 9, age_ms, 0)))), "it may answer half");
    let mut full = proxied(|number| slow(number, 0));
    cpu(&mut full, 0.99);
    full.processes.get_mut(&42).unwrap().cpu = Default::default();
    ran(&mut full, [42], 990_000_000);
    assert!(never(&full), "the cores are full");
    // What it sent before the first sample belongs to earlier requests.
    let fell_silent = proxied(|number| {
        let silent = (0..39).map(|n| accepted(SILENT, n, 9, 200 * number + n, 5));
        silent.chain([answering(number)]).collect()
    });
    assert_eq!(causes(&told(&fell_silent)), ["answers-none"]);
}

#[test]
fn a_server_that_answers_nothing_beside_one_that_does_the_same_work_needs_no_failures() {
    let found = |obs: &Observation| told(obs).findings.iter().any(|finding| finding.id == "answers-none");
    let told_of = told(&beside((0, 10), EQUAL));
    assert_eq!(causes(&told_of), ["answers-none"], "{}", told_of.summary);
    let is_told = |evidence: &Evidence| {
        evidence.text.starts_with("Packets showed ") && evidence.text.ends_with(" responses of node:8080, and none of node:8081.")
    };
    assert!(told_of.findings[0].evidence.iter().any(is_told), "{:?}", told_of.findings[0].evidence);
    // Nobody else on the host takes its cores: the other one has them, too.
    let mut busy = beside((0, 10), EQUAL);
    cpu(&mut busy, 0.99);
    assert_eq!(causes(&told(&busy)), ["answers-none"]);
    assert!(!found(&beside((0, 10), ["node app.js 8080", "node reports.js 8081"])), "another program has its own time");
    assert!(!found(&beside((1, 10), EQUAL)), "one answer is one");
    assert!(!found(&beside((0, 0), EQUAL)), "no packets of the other one, either");
}

#[test]
fn a_server_whose_requests_are_not_over_may_answer_them_yet() {
    // All came at the beginning, and none of them has ended.
    let mut obs = beside((0, 10), EQUAL);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let samples = view.request_samples.points().to_vec();
    view.request_samples = Default::default();
    for (number, (at_us, mut sample)) in samples.into_iter().enumerate() {
        sample.sockets.retain(|socket| socket.inode != 9);
        sample.sockets.extend((0..40).map(|n| accepted(SILENT, n, 9, 200 * number as u64 + 5, 0)));
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    assert!(told(&obs).findings.iter().all(|finding| finding.id != "answers-none"));
}
