//! Accept queues of unix sockets. The kernel has no counter for them. Evidence is the callers' logs, or a queue above its limit together with the
//! failed answers.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{ErrorLog, Identity, ListenerAddress, Observation, OpenFiles, ProcessView};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Role, Verdict};

use crate::stage::limits::event;
use crate::stage::*;

pub(super) const PATH: &str = "/run/php.sock";

fn process(obs: &mut Observation, pid: u32, comm: &str, sockets: &[u64]) {
    let mut view = ProcessView::default();
    let identity = Identity { pid, comm: comm.into(), start_ticks: u64::from(pid), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: sockets.to_vec() }));
    obs.processes.insert(pid, view);
}

/// nginx in front of a pool on a unix socket with a limit of ten. At most `peak` connections waited, in one sample of ten.
pub(super) fn behind(peak: u32) -> Observation {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (n, (at, mut listeners)) in points.into_iter().enumerate() {
        let waiting = if (WINDOW.0..=WINDOW.1).contains(&at) && n % 10 == 0 { peak } else { 0 };
        let mut own = listener(ListenerAddress::Unix(PATH.into()), 300, waiting, 0);
        (own.accept_queue_limit, own.drops) = (10, None);
        listeners.push(own);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    view.sockets.push(1_000_000, Reading::Ok(vec![pool::unix(600, None, 601), pool::unix(601, Some(PATH), 600)]));
    process(&mut obs, 42, "nginx", &[100, 600]);
    process(&mut obs, 60, "php-fpm8.2", &[300, 601]);
    obs
}

/// The namespace counted overflows of TCP listeners.
fn tcp_overflows(obs: &mut Observation, count: i64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, count) in [(0, 0), (11_000_000, count)] {
        view.netstat.push(at, Reading::Ok([("TcpExt.ListenOverflows".to_owned(), count)].into()));
    }
}

fn gateway_answers(obs: &mut Observation, count: u64) {
    let load = obs.load.as_mut().unwrap();
    load.good -= count;
    load.status = [(200, load.good), (502, count)].into();
}

fn logs(obs: &mut Observation, lines: &[(&str, u64, &str)]) {
    let events = lines.iter().map(|(kind, count, _)| (event(kind), *count)).collect();
    let samples = lines.iter().map(|(kind, _, line)| (event(kind), (*line).to_owned())).collect();
    let log = obs.servers.entry(42).or_default().error_logs.entry("/var/log/nginx/error.log".into()).or_default();
    log.push(11_000_000, Reading::Ok(ErrorLog { events, samples, ..ErrorLog::default() }));
}

pub(super) fn no_room(path: &str) -> String {
    format!("connect() to unix:{path} failed (11: Resource temporarily unavailable) while connecting to upstream")
}

fn refused_per_s(diagnosis: &Diagnosis) -> Option<f64> {
    let own = |station: &&chokepoint_model::report::Station| {
        station.station == "accept-queue" && station.at.listener.as_deref() == Some("unix:/run/php.sock")
    };
    diagnosis.path.iter().find(own).and_then(|station| station.refused_per_s)
}

#[test]
fn errors_in_the_callers_log_are_a_cause_with_and_without_load() {
    for (loaded, peak) in [(true, 11), (true, 3), (false, 3)] {
        let mut obs = behind(peak);
        gateway_answers(&mut obs, 30_000);
        logs(&mut obs, &[("connect 11", 30_000, &no_room(PATH))]);
        if !loaded {
            obs.load = None;
            obs.request.loaded = false;
        }
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accept-queue-full"]), "{loaded} {peak}");
        let finding = &diagnosis.findings[0];
        assert_eq!((finding.tier.as_str(), finding.at.listener.as_deref()), ("php-fpm", Some("unix:/run/php.sock")));
        assert_eq!(finding.confidence, if loaded && peak > 10 { Confidence::High } else { Confidence::Medium });
        assert!(finding.evidence[0].text.contains("30000") || finding.evidence[0].text.contains("30,000"), "{}", finding.evidence[0].text);
        assert!(finding.explanation.contains("errno 11"), "nobody retries at a unix socket: {}", finding.explanation);
        assert!(refused_per_s(&diagnosis).is_some_and(|rate| (2_999.0..3_001.0).contains(&rate)));
    }
}

#[test]
fn a_full_queue_and_answers_without_an_upstream_are_a_cause_without_logs() {
    for keeps_a_log in [false, true] {
        let mut obs = behind(11);
        gateway_answers(&mut obs, 30_000);
        if keeps_a_log {
            logs(&mut obs, &[]);
        }
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), ["accept-queue-full"]);
        assert_eq!(diagnosis.findings[0].confidence, Confidence::Medium);
    }
}

#[test]
fn a_queue_that_fills_without_refusals_is_no_finding() {
    for peak in [3, 10, 11] {
        let mut obs = behind(peak);
        logs(&mut obs, &[]);
        assert_eq!((told(&obs).verdict, causes(&told(&obs))), (Verdict::Healthy, vec![]), "{peak} waited");
    }
}

#[test]
fn other_failures_or_another_socket_do_not_count_for_this_queue() {
    for (peak, kind, line) in [
        (3, "connect 11", no_room("/run/other.sock")),
        (3, "connect 111", "connect() to unix:/run/php.sock failed (111: Connection refused)".to_owned()),
        (11, "connect 111", "connect() to unix:/run/other.sock failed (111: Connection refused)".to_owned()),
        (11, "upstream timed out", "upstream timed out (110: Connection timed out)".to_owned()),
    ] {
        let mut obs = behind(peak);
        gateway_answers(&mut obs, 30_000);
        logs(&mut obs, &[(kind, 30_000, &line)]);
        assert!(!causes(&told(&obs)).contains(&"accept-queue-full"), "{line}");
    }
}

#[test]
fn overflows_of_tcp_listeners_do_not_count_for_a_unix_socket() {
    let mut obs = behind(11);
    tcp_overflows(&mut obs, 5_000);
    obs.load.as_mut().unwrap().latency_us.max = 1_100_000;
    let diagnosis = told(&obs);
    assert!(diagnosis.findings.iter().all(|finding| finding.at.listener.as_deref() != Some("unix:/run/php.sock")));
}

#[test]
fn log_lines_without_harm_to_requests_are_no_cause() {
    let mut obs = behind(11);
    logs(&mut obs, &[("connect 11", 3, &no_room(PATH))]);
    assert_eq!(causes(&told(&obs)), [""; 0], "every request got its answer, from another server of the group");
}

#[test]
fn a_queue_that_stays_longer_than_the_timeout_is_a_symptom() {
    let mut obs = behind(11);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.iter_mut().filter(|listener| listener.inode == 300).for_each(|listener| listener.accept_queue = 11);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    logs(&mut obs, &[("connect 11", 30_000, &no_room(PATH))]);
    let load = obs.load.as_mut().unwrap();
    (load.good, load.status) = (300, [(200, 300), (502, 99_700)].into());
    let diagnosis = told(&obs);
    let roles: Vec<Role> = diagnosis.findings.iter().map(|finding| finding.role).collect();
    assert_eq!(
        (roles, causes(&diagnosis)),
        (vec![Role::Cause, Role::Symptom], vec!["accepts-slowly"]),
        "a hundred connections and 30 answers a second: the last would wait for three seconds"
    );
}

/// The load connects directly to the socket, and this many of its connections are refused.
fn directly(obs: &mut Observation, refused: u64) {
    obs.request.addresses.clear();
    obs.request.unix = vec![PATH.to_owned()];
    let load = obs.load.as_mut().unwrap();
    load.errors.connect_refused = refused;
    load.requests += refused;
}

#[test]
fn refused_connections_of_the_load_itself_are_a_cause_with_high_confidence() {
    let mut obs = behind(11);
    directly(&mut obs, 30_000);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["accept-queue-full"]);
    assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
    assert!(diagnosis.findings[0].evidence[0].text.contains("30,000 connections of this load"), "{:?}", diagnosis.findings[0].evidence);
    assert!(refused_per_s(&diagnosis).is_some_and(|rate| (2_999.0..3_001.0).contains(&rate)));
}

#[test]
fn a_load_without_refusals_or_to_another_socket_proves_nothing_about_the_queue() {
    for peak in [3, 11] {
        let mut obs = behind(peak);
        directly(&mut obs, 0);
        assert_eq!((told(&obs).verdict, causes(&told(&obs))), (Verdict::Healthy, vec![]), "{peak} waited");
    }
    // Refused because nobody listened for a while: the queue was never seen full.
    let mut obs = behind(3);
    directly(&mut obs, 30_000);
    assert!(!causes(&told(&obs)).contains(&"accept-queue-full"), "{:?}", causes(&told(&obs)));
    let mut obs = behind(3);
    let load = obs.load.as_mut().unwrap();
    (load.errors.connect_refused, load.requests) = (30_000, load.requests + 30_000);
    assert!(!causes(&told(&obs)).contains(&"accept-queue-full"), "refused at nginx's port");
}

#[test]
fn a_unix_target_is_reported_by_its_name_and_watched_by_its_connections() {
    let mut obs = behind(3);
    directly(&mut obs, 0);
    obs.load = None;
    obs.request.loaded = false;
    let is_quiet = |obs: &Observation| told(obs).summary.contains("no connection reached the server");
    assert!(is_quiet(&obs), "{}", told(&obs).summary);
    let mut later = obs.netns[&SERVER].sockets.last().unwrap().clone();
    later.iter_mut().filter(|socket| socket.inode == 601).for_each(|socket| socket.inode = 602);
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(2_000_000, Reading::Ok(later));
    assert!(!is_quiet(&obs), "{}", told(&obs).summary);
    obs.request.unix = vec!["/run/other.sock".to_owned()];
    assert!(told(&obs).summary.contains("/run/other.sock"), "{}", told(&obs).summary);
}
