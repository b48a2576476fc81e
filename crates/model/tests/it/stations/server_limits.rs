//! Stations `worker-connections`, `file-descriptors` and `rate-limit`: reported if the limit is reached and requests suffer from exactly that.
//! No finding for a small limit that is not reached, for log lines of other traffic, and for failures with another cause.
//!
//! Deterministic: observations made up by the tests.

mod disk;
mod pace;
mod tasks;
mod too_many;

use chokepoint_model::change::{Change, ServerSetting};
use chokepoint_model::load::{Loop, Percentiles};
use chokepoint_model::observation::{AccessLog, ErrorLog, LogExtent, NginxLimit, NginxStatus, Observation, OpenFiles, ServerStatus};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Remedy, Role, Station, StationState, Step, Verdict};

use crate::stage::limits::*;
use crate::stage::*;

const CONNECTIONS: &str = "worker-connections-exhausted";
const FILES: &str = "file-descriptors-exhausted";
const LIMITED: &str = "rate-limited-by-config";

fn passive(obs: &mut Observation) {
    obs.load = None;
    obs.request.loaded = false;
}

fn station<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a Station {
    diagnosis.path.iter().find(|station| station.station == id).unwrap()
}

fn remedy<'a>(diagnosis: &'a Diagnosis, finding: &str) -> &'a Remedy {
    &diagnosis.findings.iter().find(|found| found.id == finding).unwrap().remedies[0]
}

fn changes(remedy: &Remedy) -> Vec<(ServerSetting, &str, &str)> {
    let of = |change: &'_ Change| match change {
        Change::Server { setting, .. } => setting.clone(),
        Change::Sysctl { .. } | Change::Cgroup { .. } | Change::Affinity { .. } => panic!("not of the kernel"),
    };
    remedy.change.iter().map(|change| (of(change), change.from(), change.to())).collect()
}

#[test]
fn refused_connections_in_the_log_and_closed_connections_at_the_client_are_a_cause() {
    let mut obs = nginx(64, 1_024, true, Vec::new());
    suffer(&mut obs, 4_000, &[(500, 1_000)]);
    logged(&mut obs, "worker_connections", 5_000, ALERT);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![CONNECTIONS]));
    assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
    // A hundred connections, each with a second one, plus headroom: 250, rounded up to a power of two.
    let remedy = remedy(&diagnosis, CONNECTIONS);
    assert_eq!(changes(remedy), [(ServerSetting::NginxWorkerConnections, "64", "256")]);
    passive(&mut obs);
    assert_eq!(causes(&told(&obs)), [CONNECTIONS], "what the server turned away is harm");
}

#[test]
fn a_load_generator_kept_busy_by_refusals_is_a_symptom_of_them() {
    let busy = |failed: u64, logged_lines: u64| {
        let mut obs = nginx(if logged_lines > 0 { 64 } else { 1 }, 1_024, true, Vec::new());
        suffer(&mut obs, failed, &[]);
        if logged_lines > 0 {
            logged(&mut obs, "worker_connections", logged_lines, ALERT);
        }
        let load = obs.load.as_mut().unwrap();
        load.threads[0].cpu_us = 9_800_000;
        load.good = load.requests - failed;
        obs
    };
    let requests = busy(0, 0).load.unwrap().requests;
    let kept_busy = told(&busy(requests * 3 / 4, requests));
    assert_eq!((kept_busy.verdict, causes(&kept_busy)), (Verdict::Choked, vec![CONNECTIONS]));
    let symptom = kept_busy.findings.iter().find(|finding| finding.role == Role::Symptom).unwrap();
    assert_eq!((symptom.id.as_str(), symptom.symptom_of.as_slice()), ("load-generator-limited", [CONNECTIONS.to_owned()].as_slice()));
    // Most requests succeed. Requests that the generator could not send hide the server's capacity.
    assert_eq!(told(&busy(requests / 4, requests)).verdict, Verdict::ClientLimited);
    // Why they failed was not seen: that the generator is busy with asking again says nothing about it.
    let alone = told(&busy(requests * 3 / 4, 0));
    assert_eq!((alone.verdict, causes(&alone)), (Verdict::Unknown, vec![]));
    assert!(alone.summary.contains("75 %"), "{}", alone.summary);
    // What times out is not asked again at once: the generator itself was the limit.
    let mut slow = busy(requests * 3 / 4, 0);
    let errors = &mut slow.load.as_mut().unwrap().errors;
    (errors.response_timeout, errors.closed_before_answer, errors.reset) = (requests * 3 / 4, 0, 0);
    assert_eq!(told(&slow).verdict, Verdict::ClientLimited);
}

#[test]
fn connections_not_handled_on_the_status_page_are_as_good_as_a_log() {
    for (dropped, expected) in [(4_000, vec![CONNECTIONS]), (0, vec![])] {
        let mut obs = nginx(40, 1_024, true, Vec::new());
        suffer(&mut obs, 4_000, &[]);
        let page = obs.servers.get_mut(&42).unwrap().status.entry("nginx".into()).or_default();
        for (at_us, dropped) in [(0, 0), (11_000_000, dropped)] {
            let counts = NginxStatus { accepts: 9_000 + dropped, handled: 9_000, ..NginxStatus::default() };
            page.push(at_us, Reading::Ok(ServerStatus::Nginx(counts)));
        }
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), expected);
        assert_eq!(
            diagnosis.findings.iter().any(|finding| finding.evidence.iter().any(|proof| proof.source == "stub_status")),
            dropped > 0
        );
    }
}

#[test]
fn a_worker_that_closes_connections_to_make_room_is_a_cause_with_and_without_a_log() {
    for (kind, confidence) in
        [(None, Confidence::Medium), (Some("worker_connections reused"), Confidence::High), (Some("worker_connections"), Confidence::High)]
    {
        let mut obs = nginx(58, 1_024, false, Vec::new());
        suffer(&mut obs, 700, &[]);
        kind.into_iter().for_each(|kind| logged(&mut obs, kind, 9, ALERT));
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), [CONNECTIONS], "{kind:?}");
        assert_eq!(diagnosis.findings[0].confidence, confidence, "{kind:?}");
        assert!((station(&diagnosis, "worker-connections").refused_per_s.unwrap() - 70.0).abs() < 0.1);
    }
}

#[test]
fn the_open_files_limit_is_raised_too_if_it_would_be_next() {
    let mut obs = nginx(64, 128, true, Vec::new());
    obs.load.as_mut().unwrap().shape = Loop::Closed { connections: 1_000 };
    suffer(&mut obs, 4_000, &[]);
    logged(&mut obs, "worker_connections", 4_000, ALERT);
    let diagnosis = told(&obs);
    let found = changes(remedy(&diagnosis, CONNECTIONS));
    assert_eq!(found, [(ServerSetting::NginxWorkerConnections, "64", "4096"), (ServerSetting::NginxWorkerRlimitNofile, "unset", "8192")]);
    assert!(remedy(&diagnosis, CONNECTIONS).risk.contains("worker_rlimit_nofile"));
    // A master that is not root may not raise it, so there are no more connections than files.
    let master = obs.processes.get_mut(&42).unwrap();
    let mut identity = master.identity.last().cloned().unwrap();
    identity.uid = 33;
    master.identity.push(1, Reading::Ok(identity));
    assert_eq!(told(&obs).findings[0].remedies.len(), 0, "64 connections are what 128 files have room for");
}

/// Changes of the counters of the server's namespace over the observation.
fn netstat(obs: &mut Observation, aborted: i64, opened: i64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, share) in [(0, 0), (11_000_000, 1)] {
        let counters = [("TcpExt.TCPAbortOnClose", 7 + share * aborted), ("Tcp.PassiveOpens", 9 + share * opened)];
        view.netstat.push(at, Reading::Ok(counters.map(|(name, value)| (name.to_owned(), value)).into()));
    }
}

#[test]
fn watched_connections_aborted_with_a_request_are_harm() {
    for (sockets, aborted, expected) in [(58, 400, vec![CONNECTIONS]), (58, 20, vec![]), (40, 400, vec![])] {
        let mut obs = nginx(sockets, 1_024, false, Vec::new());
        passive(&mut obs);
        netstat(&mut obs, aborted, 5_000);
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), expected, "{sockets} sockets, {aborted} cut off");
        let refused = station(&diagnosis, "worker-connections").refused_per_s.unwrap_or(0.0);
        assert_eq!(refused > 30.0, !expected.is_empty(), "{refused}");
    }
}

#[test]
fn one_sample_of_a_full_worker_suffices_if_many_connections_are_aborted() {
    for (aborted, expected) in [(1_500, vec![CONNECTIONS]), (400, vec![])] {
        let mut obs = nginx(58, 1_024, false, Vec::new());
        passive(&mut obs);
        netstat(&mut obs, aborted, 5_000);
        let files = &mut obs.processes.get_mut(&43).unwrap().files;
        *files = Default::default();
        for (at, sockets) in [(2_000_000, 40), (4_000_000, 58), (6_000_000, 44)] {
            files.push(at, Reading::Ok(OpenFiles { count: sockets, sockets: (100..100 + u64::from(sockets)).collect() }));
        }
        assert_eq!(causes(&told(&obs)), expected, "{aborted} cut off");
    }
}

#[test]
fn a_worker_that_is_full_between_two_samples_is_found_by_its_number_of_descriptors() {
    // Besides its sockets it has six other files open.
    for (between, expected) in [(64, vec![CONNECTIONS]), (46, vec![])] {
        let mut obs = nginx(40, 1_024, false, Vec::new());
        passive(&mut obs);
        netstat(&mut obs, 1_500, 5_000);
        let process = obs.processes.get_mut(&43).unwrap();
        process.files = Default::default();
        for at in [2_000_000, 6_000_000] {
            process.files.push(at, Reading::Ok(OpenFiles { count: 46, sockets: (100..140).collect() }));
        }
        for at in [3_000_000, 3_250_000, 3_500_000] {
            process.fd_count.push(at, Reading::Ok(between));
        }
        assert_eq!(causes(&told(&obs)), expected, "{between} descriptors");
    }
}

#[test]
fn a_process_at_its_limit_of_files_is_found_by_their_number() {
    let mut obs = nginx(60, 80, false, Vec::new());
    for at in [3_000_000, 3_250_000, 3_500_000] {
        obs.processes.get_mut(&43).unwrap().fd_count.push(at, Reading::Ok(80));
    }
    let files = told(&obs);
    let files = files.path.iter().find(|station| station.station == "file-descriptors").unwrap();
    assert_eq!((files.used, files.limit), (Some(80.0), Some(80.0)));
}

#[test]
fn a_small_limit_that_is_not_reached_or_harmless_is_no_finding() {
    let quiet = |obs: &Observation, what: &str| assert_eq!(causes(&told(obs)), [""; 0], "{what}");
    let mut unreached = nginx(40, 1_024, false, Vec::new());
    quiet(&unreached, "not reached");
    suffer(&mut unreached, 700, &[]);
    quiet(&unreached, "connections are closed for another reason");
    quiet(&nginx(63, 1_024, false, Vec::new()), "full and nobody suffers");
    let mut elsewhere = nginx(64, 1_024, false, Vec::new());
    logged(&mut elsewhere, "worker_connections", 300, ALERT);
    quiet(&elsewhere, "another client's connections were refused");
    assert_eq!(station(&told(&elsewhere), "worker-connections").state, StationState::Near);
    let mut few = nginx(58, 1_024, false, Vec::new());
    few.load.as_mut().unwrap().shape = Loop::Closed { connections: 50 };
    suffer(&mut few, 700, &[]);
    quiet(&few, "fewer are asked for than there is room for");
    let mut watched = nginx(60, 1_024, false, Vec::new());
    passive(&mut watched);
    logged(&mut watched, "worker_connections reused", 10, ALERT);
    quiet(&watched, "kept connections may be closed");
}

#[test]
fn a_logged_errno_with_failures_is_a_cause_and_the_queue_before_it_a_symptom() {
    for (kind, count, answers) in [("socket 24", 2_000, 2_000), ("open 24", 500, 600), ("accept 24", 20, 0)] {
        let mut obs = nginx(80, 80, true, Vec::new());
        suffer(&mut obs, 0, &[(500, answers)]);
        obs.load.as_mut().unwrap().latency_us.p99 = 510_000;
        logged(&mut obs, kind, count, "accept4() failed (24: Too many open files)");
        let diagnosis = told(&obs);
        assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![FILES], Confidence::High), "{kind}");
        // 100 clients, each with a connection of its own and one to the server behind.
        assert_eq!(changes(remedy(&diagnosis, FILES)), [(ServerSetting::NginxWorkerRlimitNofile, "unset", "512")], "{kind}");
        let text = &remedy(&diagnosis, FILES).text;
        assert!(text.contains("200 connections x 2 files each = 400, rounded up to a power of two: 512"), "{text}");
    }
    let mut obs = nginx(80, 80, false, Vec::new());
    overflow(&mut obs);
    logged(&mut obs, "accept 24", 20, "accept4() failed (24: Too many open files)");
    let diagnosis = told(&obs);
    let queue = diagnosis.findings.iter().find(|finding| finding.id == "accept-queue-full").unwrap();
    assert_eq!((causes(&diagnosis), queue.role, queue.symptom_of.as_slice()), (vec![FILES], Role::Symptom, [FILES.to_owned()].as_slice()));
}

#[test]
fn clients_that_are_never_accepted_suffer_although_few_requests_fail() {
    // Accepted clients are answered quickly and go on, so the other clients are few among all requests.
    for (waiting, expected) in [(0, vec![]), (1, vec![]), (15, vec![FILES])] {
        let mut obs = nginx(80, 80, true, Vec::new());
        stand(&mut obs, waiting, |_| 0);
        logged(&mut obs, "accept 24", 60, "accept4() failed (24: Too many open files)");
        assert_eq!(causes(&told(&obs)), expected, "{waiting} waiting");
    }
    // Where others are watched, those that keep their connections open none, and another worker accepts what comes.
    for (waiting, expected) in [(0, vec![]), (15, vec![FILES])] {
        let mut obs = nginx(80, 80, true, Vec::new());
        stand(&mut obs, waiting, |_| 0);
        logged(&mut obs, "accept 24", 8, "accept4() failed (24: Too many open files)");
        passive(&mut obs);
        assert_eq!(causes(&told(&obs)), expected, "{waiting} waiting, watched");
    }
    let mut elsewhere = nginx(60, 80, true, Vec::new());
    stand(&mut elsewhere, 15, |_| 0);
    logged(&mut elsewhere, "open 24", 60, "open() failed (24: Too many open files)");
    assert_eq!(causes(&told(&elsewhere)), [""; 0], "they wait for something else than to be accepted");
}

#[test]
fn failures_are_counted_like_the_rates_and_more_that_wait_than_there_are_clients_are_explained() {
    let mut obs = nginx(80, 80, true, Vec::new());
    stand(&mut obs, 282, |_| 0);
    logged(&mut obs, "accept 24", 60, "accept4() failed (24: Too many open files)");
    let load = obs.load.as_mut().unwrap();
    // Of 285 that failed, 200 were awaited after the end: no rate has them.
    (load.requests, load.good, load.status, load.errors.response_timeout, load.drained) =
        (10_285, 10_000, [(200, 10_000)].into(), 285, 200);
    let diagnosis = told(&obs);
    let evidence = &diagnosis.findings.iter().find(|finding| finding.id == FILES).unwrap().evidence;
    let says = |words: &str| evidence.iter().any(|proof| proof.text.contains(words));
    assert!(says("85 of 10,085 requests failed"), "{evidence:#?}");
    assert!(says("282 connections waited to be accepted, more than the 100 clients of this load"), "{evidence:#?}");
    let mut fewer = nginx(80, 80, true, Vec::new());
    stand(&mut fewer, 15, |_| 0);
    logged(&mut fewer, "accept 24", 60, "accept4() failed (24: Too many open files)");
    assert!(!told(&fewer).findings[0].evidence.iter().any(|proof| proof.text.contains("more than")));
}

/// This many connections wait in the accept queue all the time.
fn stand(obs: &mut Observation, waiting: u32, drops: fn(u64) -> u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[0].drops = Some(drops(at));
        listeners[0].accept_queue = if (WINDOW.0..=WINDOW.1).contains(&at) { waiting } else { 0 };
        view.listeners.push(at, Reading::Ok(listeners));
    }
}

/// An unknown program at its limit of open files.
fn unknown(open: u64) -> Observation {
    let mut obs = healthy();
    process(&mut obs, 42, 1, open, 256);
    overflow(&mut obs);
    obs
}

#[test]
fn an_unknown_program_at_its_limit_is_a_cause_and_the_advice_is_not_applied() {
    let diagnosis = told(&unknown(255));
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![FILES], Confidence::Medium));
    let advice = remedy(&diagnosis, FILES);
    assert_eq!((advice.id.as_str(), advice.change.len()), ("raise-nofile-by-hand", 0));
    assert_eq!(advice.runtime, [Step::of_command("prlimit --pid 42 --nofile=512:512")]);
    assert_eq!(advice.undo, [Step::of_command("prlimit --pid 42 --nofile=256:256")]);
    assert!(advice.persistent[0].lines.as_ref().unwrap().contains("LimitNOFILE=512"));
    let mut watched = unknown(256);
    passive(&mut watched);
    assert!(causes(&told(&watched)).contains(&FILES));
}

#[test]
fn free_descriptors_or_unrelated_log_lines_are_no_finding() {
    let is_silent = |obs: &Observation, what: &str| assert!(!causes(&told(obs)).contains(&FILES), "{what}");
    is_silent(&unknown(200), "files to spare");
    let mut used = healthy();
    process(&mut used, 42, 1, 256, 256);
    is_silent(&used, "as many files as it needs");
    let mut spike = nginx(60, 80, false, Vec::new());
    logged(&mut spike, "accept 24", 1, "x");
    spike.load.as_mut().unwrap().latency_us.p99 = 700_000;
    is_silent(&spike, "half a second in ten is not why everybody waits");
    let mut other = nginx(60, 80, false, Vec::new());
    suffer(&mut other, 0, &[(502, 5_000)]);
    logged(&mut other, "open 24", 3, "x");
    is_silent(&other, "three files are not why half of the requests failed");
    let mut host = nginx(60, 80, false, Vec::new());
    suffer(&mut host, 0, &[(500, 5_000)]);
    logged(&mut host, "accept 23", 5_000, "x");
    is_silent(&host, "the host's limit is another one");
    let mut unread = healthy();
    unread.processes.get_mut(&42).unwrap().limits = Default::default();
    assert!(told(&unread).path.iter().all(|station| station.station != "file-descriptors"), "what was not read is no reading");
}

const LIMITING: &str = "2026/11/20 07:17:47 [error] 43#43: *1 limiting requests, excess: 20.400 by zone \"one\", client: 10.0.0.1, server: , request: \"GET / HTTP/1.1\", host: \"x\"";

/// The load got 200 answers per second, and the rest was refused with 429.
fn refused(limit: NginxLimit) -> Observation {
    let mut obs = nginx(10, 1_024, false, vec![limit]);
    suffer(&mut obs, 0, &[(429, 7_980)]);
    obs
}

#[test]
fn a_limit_that_refuses_is_a_cause_by_its_log_or_by_the_measured_rate() {
    for (applies, lines, confidence) in [
        (Some(true), 7_980, Confidence::High),
        (None, 7_980, Confidence::High),
        (Some(true), 0, Confidence::Medium),
        (Some(false), 7_980, Confidence::High),
    ] {
        let mut obs = refused(rate(applies, 20, 20));
        if lines > 0 {
            logged(&mut obs, "limiting requests one", lines, LIMITING);
        }
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![LIMITED]), "{applies:?} {lines}");
        assert_eq!(diagnosis.findings[0].confidence, confidence, "{applies:?} {lines}");
        let advice = remedy(&diagnosis, LIMITED);
        assert!(advice.change.is_empty() && advice.runtime.is_empty(), "never applied");
        assert_eq!(advice.persistent[0].lines.as_deref(), Some("limit_req zone=one burst=20 nodelay;"));
        let place = |step: usize, place: &str| advice.persistent[step].text.as_ref().is_some_and(|text| text.contains(place));
        assert!(place(0, "nginx.conf:20") && place(1, "nginx.conf:5"), "{:?}", advice.persistent);
    }
    let ceiling = station(&told(&refused(rate(Some(true), 20, 20))), "rate-limit").ceiling_rps.unwrap();
    assert!((ceiling.value - 200.0).abs() < 0.1 && (ceiling.high - 202.0).abs() < 0.1, "{ceiling:?}");
}

#[test]
fn without_a_burst_the_remainder_of_an_interval_is_lost() {
    let got = |limit: NginxLimit, good: u64| {
        let mut obs = refused(limit);
        suffer(&mut obs, 0, &[(429, 10_000 - good)]);
        told(&obs)
    };
    // An interval of 3.2 ms becomes 4 ms, and then the event loop must run: 200 to 250 per second.
    for (rps, is_limited) in [(180, false), (205, true), (235, true), (250, true), (280, false), (314, false)] {
        let diagnosis = got(NginxLimit { rate_per_s: Some(314.0), ..rate(Some(true), 0, 0) }, rps * 10);
        assert_eq!(causes(&diagnosis).contains(&LIMITED), is_limited, "{rps}");
        let ceiling = station(&diagnosis, "rate-limit").ceiling_rps;
        assert_eq!(ceiling.is_some(), rps <= 250, "a limit that more passes is none: {rps}");
        assert!(ceiling.is_none_or(|ceiling| (ceiling.low - 200.0).abs() < 0.1 && (ceiling.high - 250.0).abs() < 0.1), "{ceiling:?}");
    }
    // At any higher rate, one request per millisecond passes.
    let ceiling =
        station(&got(NginxLimit { rate_per_s: Some(5_000.0), ..rate(Some(true), 0, 0) }, 9_000), "rate-limit").ceiling_rps.unwrap();
    assert!((ceiling.high - 1_000.0).abs() < 0.1, "{ceiling:?}");
}

#[test]
fn a_limit_that_much_more_passes_than_it_allows_does_not_count_this_traffic() {
    let mut obs = refused(rate(Some(true), 20, 20));
    suffer(&mut obs, 0, &[]);
    let diagnosis = told(&obs);
    let limit = station(&diagnosis, "rate-limit");
    assert_eq!((limit.state, limit.utilization, limit.ceiling_rps.is_none()), (StationState::Ok, None, true), "{limit:?}");
    assert!(limit.why.contains("more were answered"), "{}", limit.why);
}

#[test]
fn the_end_of_a_log_that_is_too_large_stands_for_all_of_it() {
    let told_of = |extent: LogExtent| {
        let mut obs = refused(rate(None, 20, 20));
        let log = ErrorLog { events: [(event("limiting requests one"), 2_000)].into(), extent, ..ErrorLog::default() };
        obs.servers.entry(42).or_default().error_logs.entry("e".into()).or_default().push(11_000_000, Reading::Ok(log));
        told(&obs)
    };
    let part = |skipped_bytes, read_bytes| told_of(LogExtent { rotated: false, skipped_bytes, read_bytes });
    assert_eq!(causes(&part(0, 1_000)), [""; 0], "a quarter of what was refused");
    let diagnosis = part(3_000, 1_000);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![LIMITED], Confidence::High));
    let proof = &diagnosis.findings[0].evidence[0];
    assert!(proof.text.contains("about 8,000 times") && proof.value == Some(8_000.0), "{proof:?}");
    assert_eq!(causes(&part(3_000, 0)), [""; 0], "how much was read is not known");
    assert_eq!(causes(&told_of(LogExtent { rotated: true, skipped_bytes: 3_000, read_bytes: 1_000 })), [""; 0], "lines are missing");
}

#[test]
fn a_limit_that_delays_requests_is_a_cause_although_nothing_fails() {
    let waits = |limit: NginxLimit, good: u64, shape: Loop| {
        let mut obs = nginx(10, 1_024, false, vec![limit]);
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.shape, load.status) = (good, good, shape, [(200, good)].into());
        obs
    };
    let closed = Loop::Closed { connections: 50 };
    assert_eq!(causes(&told(&waits(rate(Some(true), 1_000, 0), 2_001, closed))), [LIMITED]);
    let mut said = waits(rate(None, 1_000, 0), 2_001, closed);
    logged(&mut said, "delaying requests one", 2_000, LIMITING);
    let diagnosis = told(&said);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![LIMITED], Confidence::High));
    let silent = |obs: &Observation, what: &str| assert_eq!(causes(&told(obs)), [""; 0], "{what}");
    silent(&waits(rate(Some(true), 1_000, 1_000), 2_001, closed), "nodelay");
    silent(&waits(rate(Some(true), 1_000, 0), 1_500, closed), "slower than the limit");
    silent(&waits(rate(None, 1_000, 0), 2_001, closed), "it may be another location's");
    silent(&waits(rate(Some(true), 1_000, 0), 2_000, Loop::Open { rate_per_s: 200.0, connections: 100 }), "all that was offered");
}

#[test]
fn a_limit_that_is_elsewhere_or_not_reached_or_whose_status_has_another_cause_is_no_finding() {
    let is_silent = |obs: &Observation, what: &str| assert!(!causes(&told(obs)).contains(&LIMITED), "{what}");
    is_silent(&nginx(10, 1_024, false, vec![rate(Some(true), 20, 20)]), "not reached");
    let mut elsewhere = refused(rate(Some(false), 20, 20));
    is_silent(&elsewhere, "the limit is another location's");
    logged(&mut elsewhere, "limiting requests one", 7_980, &LIMITING.replace("GET / ", "POST /login "));
    is_silent(&elsewhere, "and so are its lines");
    assert!(told(&elsewhere).path.iter().all(|station| station.station != "rate-limit"));
    let mut backend = refused(rate(Some(true), 20, 20));
    suffer(&mut backend, 0, &[(429, 3_000)]);
    is_silent(&backend, "an application answers 429 itself, and goodput is not the rate");
    let mut expected = refused(rate(Some(true), 20, 20));
    expected.load.as_mut().unwrap().good = 10_000;
    is_silent(&expected, "429 is what was expected");
}

#[test]
fn a_pace_that_responses_take_as_long_as_is_a_cause() {
    let pace = NginxLimit {
        kind: "limit_rate".into(),
        zone: String::new(),
        rate_per_s: None,
        bytes_per_s: Some(500_000),
        ..rate(Some(true), 0, 0)
    };
    let with = |limit: &NginxLimit, bytes: u64, p50_ms: u64| {
        let mut obs = nginx(10, 1_024, false, vec![limit.clone()]);
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status, load.received_bytes) = (200, 200, [(200, 200)].into(), 200 * bytes);
        (load.latency_us.p50, load.latency_us.p99) = (1_000 * p50_ms, 1_010 * p50_ms);
        told(&obs)
    };
    let held = with(&pace, 1_000_000, 1_050);
    assert_eq!((causes(&held), held.findings[0].confidence), (vec![LIMITED], Confidence::High));
    assert!(held.findings[0].title.contains("at 500 kB/s at most"), "{}", held.findings[0].title);
    // Without sendfile all of it leaves at the rate, and not only what comes after the first second's worth.
    for (bytes, took_ms) in [(300_000, 590), (60_000, 125), (2_000_000, 4_100)] {
        assert_eq!(causes(&with(&pace, bytes, took_ms)), [LIMITED], "{bytes} {took_ms}");
    }
    let silent = |diagnosis: &Diagnosis, why: &str| assert!(!causes(diagnosis).contains(&LIMITED), "{why}");
    silent(&with(&pace, 300_000, 700), "it takes longer");
    silent(&with(&pace, 400_000, 5), "it leaves at once");
    silent(&with(&pace, 1_000_000, 5), "it is not in force");
    silent(&with(&pace, 1_000_000, 5_000), "they take longer for something else");
    silent(&with(&NginxLimit { bytes_at_once: 1_000_000, ..pace.clone() }, 1_000_000, 1_050), "all of it comes before the pace");
    silent(&with(&NginxLimit { applies: Some(false), ..pace.clone() }, 1_000_000, 1_050), "another location's");
}

#[test]
fn a_connection_limit_is_found_by_its_log_or_by_its_status() {
    let limit = |applies| NginxLimit { kind: "limit_conn".into(), rate_per_s: None, connections: Some(5), ..rate(applies, 0, 0) };
    let with = |limits: Vec<NginxLimit>, passes: bool| {
        let mut obs = nginx(10, 1_024, passes, limits);
        suffer(&mut obs, 0, &[(429, 7_980)]);
        obs
    };
    let passes_on = with(vec![limit(Some(true))], true);
    assert_eq!(causes(&told(&passes_on)), [""; 0], "the server behind may answer so");
    assert_eq!(causes(&told(&with(vec![limit(None)], false))), [""; 0], "it may be another location's");
    assert_eq!(
        causes(&told(&with(vec![limit(Some(true)), NginxLimit { rate_per_s: Some(1_000.0), ..rate(Some(true), 0, 0) }], false))),
        [""; 0],
        "which of two limits is not known"
    );
    let mut wide = limit(Some(true));
    wide.connections = Some(5_000);
    assert_eq!(causes(&told(&with(vec![wide], false))), [""; 0], "there were never as many");
    let mut obs = with(vec![limit(Some(true))], false);
    let by_status = told(&obs);
    assert_eq!((causes(&by_status), by_status.findings[0].confidence), (vec![LIMITED], Confidence::Medium));
    logged(&mut obs, "limiting connections one", 7_980, LIMITING);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![LIMITED], Confidence::High));
    assert!(diagnosis.findings[0].title.contains("5"), "{}", diagnosis.findings[0].title);
    assert_eq!(remedy(&diagnosis, LIMITED).persistent[0].lines.as_deref(), Some("limit_conn one 5;"));
}

#[test]
fn watched_requests_that_nginx_delays_are_a_cause() {
    let waits = |lines: u64, request_us: u64, upstream_us: u64, limit: NginxLimit| {
        let mut obs = nginx(10, 1_024, true, vec![limit]);
        passive(&mut obs);
        let times = |p50| Some(Percentiles { p50, ..Percentiles::default() });
        let log = AccessLog {
            lines,
            has_status: true,
            request_time_us: times(request_us),
            upstream_time_us: times(upstream_us),
            ..AccessLog::default()
        };
        obs.servers.entry(42).or_default().access_logs.entry("a".into()).or_default().push(11_000_000, Reading::Ok(log));
        causes(&told(&obs)).join(" ")
    };
    assert_eq!(waits(2_010, 250_000, 3_000, rate(Some(true), 1_000, 0)), LIMITED);
    assert_eq!(waits(1_500, 250_000, 3_000, rate(Some(true), 1_000, 0)), "", "slower than the limit");
    assert_eq!(waits(2_010, 250_000, 240_000, rate(Some(true), 1_000, 0)), "", "the upstream takes that long");
    assert_eq!(waits(2_010, 5_000, 3_000, rate(Some(true), 1_000, 0)), "", "nobody waits");
    assert_eq!(waits(2_010, 250_000, 3_000, rate(None, 1_000, 0)), "", "it may be another location's");
    assert_eq!(waits(2_010, 250_000, 3_000, rate(Some(true), 1_000, 1_000)), "", "nodelay");
}

#[test]
fn watched_traffic_is_limited_if_its_share_is_known() {
    let mut obs = refused(rate(Some(true), 20, 20));
    passive(&mut obs);
    logged(&mut obs, "limiting requests one", 500, LIMITING);
    assert_eq!(causes(&told(&obs)), [""; 0], "of how many is not known");
    let log = AccessLog { lines: 10_000, has_status: true, ..AccessLog::default() };
    obs.servers.entry(42).or_default().access_logs.entry("a".into()).or_default().push(11_000_000, Reading::Ok(log.clone()));
    assert_eq!(causes(&told(&obs)), [LIMITED]);
    let many = AccessLog { lines: 1_000_000, ..log };
    obs.servers.entry(42).or_default().access_logs.entry("a".into()).or_default().push(11_000_001, Reading::Ok(many));
    assert_eq!(causes(&told(&obs)), [""; 0], "one in two thousand");
}
