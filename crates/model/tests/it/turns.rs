//! Workers of a full pool that wait for each other, or for a server behind that has no more room: more workers would wait as well, so that is the cause, and no gain is
//! predicted. And how many workers are advised where clients are only watched.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;
use std::net::IpAddr;

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    CpuUse, Identity, ListenerAddress, NetnsView, Observation, RequestSample, RequestSocket, RequestTimes, Socket, SocketAddress, Syscall,
    TcpState, ThreadWait, WaitKind,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Finding, Prediction, Role, Verdict};

use crate::stage::pool::{cores, files, pool, process, ran, serves_by_threads, tcp, threads};
use crate::stage::*;

const STEP_US: u64 = 200_000;
const EACH_OTHER: &str = "workers-wait-for-each-other";
const BLOCKED: &str = "workers-blocked-on-upstream";
const EXHAUSTED: &str = "worker-pool-exhausted";
const DATABASE: u16 = 3_306;

/// One end of a connection. `asked`: its last data came, and not went.
fn socket(cookie: u64, inode: u64, (local, remote): ((IpAddr, u16), (IpAddr, u16)), asked: bool) -> RequestSocket {
    let (recv_ms, sent_ms) = if asked { (12, 40) } else { (40, 12) };
    let times = RequestTimes {
        last_data_recv_ms: recv_ms,
        last_data_sent_ms: sent_ms,
        data_segs_in: Some(5),
        data_segs_out: Some(if asked { 4 } else { 5 }),
        bytes_received: Some(500),
        bytes_sent: Some(400),
        min_rtt_us: Some(20),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local, remote },
        cookie,
        state: TcpState::Established,
        inode,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

fn local(port: u16) -> (IpAddr, u16) {
    (ip("127.0.0.1"), port)
}

/// 65 clients of a web server before a pool of five, each of which holds a request for 20 ms. `behind` of these stand at a database that the workers call over TCP; the
/// others' connections to it are idle. `alone_us`: a single request, if it was measured.
fn stack(behind: u64, alone_us: Option<u64>) -> Observation {
    let mut obs = pool(5, 5, 60);
    ran(&mut obs, [42, 50, 51, 52, 53, 54, 55], 5_000_000);
    cpu(&mut obs, 0.05);
    let load = obs.load.as_mut().unwrap();
    (load.shape, load.latency_us.p50) = (Loop::Closed { connections: 65 }, 260_000);
    load.threads[0].cpu_us = 100_000;
    obs.unloaded = alone_us.map(|alone_us| {
        let mut few = obs.load.clone().unwrap();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, alone_us);
        few
    });
    database(&mut obs);
    let client = |n: u64| socket(1_000 + n, 7, ((ip(SERVER_IP), 80), (ip("10.0.0.1"), 20_000 + n as u16)), true);
    let worker = |n: u64| socket(2_000 + n, 1_000 + n, (local(9_000), local(40_000 + n as u16)), true);
    let made = |n: u64| socket(3_000 + n, 2_000 + n, (local(30_000 + n as u16), local(DATABASE)), n >= behind);
    let accepted = |n: u64| socket(4_000 + n, 3_000 + n, (local(DATABASE), local(30_000 + n as u16)), n < behind);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for number in 0..(WINDOW.1 - WINDOW.0) / STEP_US {
        let sockets = (0..65).map(client).chain((0..5).flat_map(|n| [worker(n), made(n), accepted(n)])).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, under_way: Some(65.0), sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + number * STEP_US, Reading::Ok(sample));
    }
    files(&mut obs, 42, &[100, 500, 7]);
    obs
}

/// A database of one process with many threads, and the workers' connections to it.
fn database(obs: &mut Observation) {
    process(obs, 80, 1, "mariadbd", &[700]);
    let view: &mut NetnsView = obs.netns.get_mut(&SERVER).unwrap();
    let listeners = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut all) in listeners {
        all.push(listener(ListenerAddress::Tcp(ip("127.0.0.1"), DATABASE), 700, 0, 0));
        view.listeners.push(at, Reading::Ok(all));
    }
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        for n in 0..5_u16 {
            sockets.push(tcp(2_000 + u64::from(n), local(30_000 + n), local(DATABASE)));
            sockets.push(tcp(3_000 + u64::from(n), local(DATABASE), local(30_000 + n)));
        }
        view.sockets.push(at, Reading::Ok(sockets));
    }
    for n in 0..5_u64 {
        files(obs, 51 + n as u32, &[200, 1_000 + n, 2_000 + n]);
    }
    files(obs, 80, &[700, 3_000, 3_001, 3_002, 3_003, 3_004]);
    for second in 0..=11_u64 {
        let used = CpuUse { run_ns: Some(second * 5_000_000), run_delay_ns: Some(0), threads: 30, ..CpuUse::default() };
        obs.processes.get_mut(&80).unwrap().cpu.push(second * 1_000_000, Reading::Ok(used));
    }
}

/// In every sample each worker is in this call, on its connection to the database or on none.
fn looked(obs: &mut Observation, call: &str, on_connection: bool) {
    for n in 0..5_u64 {
        let view = obs.processes.get_mut(&(51 + n as u32)).unwrap();
        for second in 1..=10_u64 {
            let sockets = if on_connection { vec![2_000 + n] } else { Vec::new() };
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some(call.to_owned()), sockets, ..Syscall::default() }));
        }
    }
}

/// In every sample each worker waits for a lock that this process holds, which `holder` names for the second of the sample.
fn locked(obs: &mut Observation, holder: &dyn Fn(u64) -> u32) {
    for n in 0..5_u32 {
        let view = obs.processes.get_mut(&(51 + n)).unwrap();
        for second in 1..=10_u64 {
            let held = holder(second);
            let wait = ThreadWait {
                kind: WaitKind::FileLock,
                is_main: true,
                threads: 1,
                other: Some(held),
                object: Some("/srv/orders.lock".to_owned()),
            };
            // Who holds it sleeps meanwhile.
            let waits = if held == 51 + n { Vec::new() } else { vec![wait] };
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some("flock".to_owned()), waits, ..Syscall::default() }));
        }
    }
}

fn of<'d>(diagnosis: &'d Diagnosis, id: &str) -> &'d Finding {
    diagnosis.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{diagnosis:#?}"))
}

/// The reason for which no gain is predicted for more workers; `None` if one is.
fn refused(diagnosis: &Diagnosis) -> Option<String> {
    let pool = of(diagnosis, EXHAUSTED);
    let remedy = pool.remedies.iter().find(|remedy| remedy.id == "raise-max-children").unwrap_or_else(|| panic!("{pool:#?}"));
    match &remedy.prediction {
        Prediction::Refused { refused, .. } => Some(refused.clone()),
        Prediction::Goodput { .. } => None,
    }
}

#[test]
fn what_workers_wait_for_is_named_with_who_holds_it() {
    let title = |holder: &dyn Fn(u64) -> u32| {
        let mut obs = stack(0, Some(4_000));
        locked(&mut obs, holder);
        of(&told(&obs), "workers-wait-for-each-other").title.clone()
    };
    let in_turn = title(&|second| 51 + (second % 5) as u32);
    assert!(in_turn.ends_with("for a lock on /srv/orders.lock"), "who holds it changes: {in_turn}");
    assert!(title(&|_| 52).ends_with("/srv/orders.lock, held by php-fpm8.2 (process 52)"), "a worker that keeps it: {}", title(&|_| 52));
    assert!(title(&|_| 9_999).ends_with("/srv/orders.lock, held by process 9999"), "{}", title(&|_| 9_999));
    let without = of(&told(&stack(0, Some(4_000))), "workers-wait-for-each-other").title.clone();
    assert!(!without.contains("lock"), "{without}");
}

#[test]
fn workers_of_which_one_at_a_time_goes_on_wait_for_each_other() {
    // 250/s of 4 ms each are one at a time.
    let diagnosis = told(&stack(0, Some(4_000)));
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![EACH_OTHER]), "{diagnosis:#?}");
    let cause = &diagnosis.findings[0];
    assert_eq!((cause.tier.as_str(), cause.confidence), ("php-fpm", Confidence::High));
    assert!(cause.title.contains("5 workers of php-fpm wait for each other: about 1 at a time"), "{}", cause.title);
    assert!(cause.evidence.iter().any(|proof| proof.text.contains("250/s x 4 ms = 1 at a time")), "{:?}", cause.evidence);
    assert_eq!(cause.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["look-inside"]);
    let pool = of(&diagnosis, EXHAUSTED);
    assert_eq!((pool.role, pool.symptom_of.clone()), (Role::Symptom, vec![EACH_OTHER.to_owned()]));
    assert!(refused(&diagnosis).is_some());
}

#[test]
fn workers_that_hold_a_request_as_long_as_one_alone_are_too_few() {
    let diagnosis = told(&stack(0, Some(19_000)));
    assert_eq!(causes(&diagnosis), [EXHAUSTED], "{diagnosis:#?}");
    assert_eq!(refused(&diagnosis), None, "more workers serve more");
    // It takes half as long again as alone: not each other's turns, but a gain that nobody knows.
    let longer = told(&stack(0, Some(13_000)));
    assert_eq!(causes(&longer), [EXHAUSTED], "{longer:#?}");
    assert!(refused(&longer).is_some_and(|why| why.contains("13 ms")), "{:?}", refused(&longer));
    // Without single requests nothing shows that they wait for each other.
    assert_eq!(causes(&told(&stack(0, None))), [EXHAUSTED]);
}

#[test]
fn requests_that_stand_at_a_database_make_it_the_place_to_look() {
    for alone in [Some(4_000), None] {
        let diagnosis = told(&stack(5, alone));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![BLOCKED]), "{diagnosis:#?}");
        let cause = &diagnosis.findings[0];
        assert!(cause.title.contains("wait for mariadbd") && cause.at.edge.as_deref() == Some("php-fpm->mariadbd"), "{cause:#?}");
        let stands = "Of 5 requests that held a worker on average, 5 stood at mariadbd or behind it: 20 ms of each request";
        assert!(cause.evidence.iter().any(|proof| proof.text.contains(stands)), "{:?}", cause.evidence);
        let advice = &cause.remedies[0];
        let asks = |step: &chokepoint_model::report::Step| step.text.as_deref().is_some_and(|text| text.contains("INNODB STATUS"));
        assert!(advice.id == "look-inside" && advice.runtime.iter().any(asks), "{advice:#?}");
        assert_eq!(of(&diagnosis, EXHAUSTED).role, Role::Symptom);
        assert!(refused(&diagnosis).is_some(), "more workers wait there too");
    }
}

#[test]
fn a_database_that_answers_as_soon_as_alone_has_room() {
    let diagnosis = told(&stack(5, Some(19_000)));
    assert_eq!(causes(&diagnosis), [EXHAUSTED], "{diagnosis:#?}");
    assert_eq!(refused(&diagnosis), None);
    // Workers that are seen in a timer wait for no database, whatever their connections show.
    let mut asleep = stack(5, None);
    looked(&mut asleep, "clock_nanosleep", false);
    assert_eq!(causes(&told(&asleep)), [EXHAUSTED]);
}

#[test]
fn a_part_of_the_workers_at_a_database_of_unknown_room_is_enough_to_predict_nothing() {
    let diagnosis = told(&stack(2, None));
    assert_eq!(causes(&diagnosis), [EXHAUSTED], "{diagnosis:#?}");
    let why = refused(&diagnosis).unwrap_or_else(|| panic!("{diagnosis:#?}"));
    assert!(why.contains("40 %") && why.contains("mariadbd"), "{why}");
    let none = refused(&told(&stack(0, None)));
    assert!(none.is_none_or(|why| !why.contains("mariadbd")), "nothing stands there");
}

/// A connection that lives for one request is seen in a sample of requests alone, and there the worker's call names it.
#[test]
fn a_look_finds_a_connection_that_only_the_samples_of_requests_met() {
    let mut obs = stack(5, None);
    looked(&mut obs, "poll", true);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.retain(|socket| !(2_000..3_000).contains(&socket.inode));
        view.sockets.push(at, Reading::Ok(sockets));
    }
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [BLOCKED], "{diagnosis:#?}");
    let seen = "In 50 of 50 samples a busy worker waited for 127.0.0.1:3306";
    assert!(diagnosis.findings[0].evidence.iter().any(|proof| proof.text.contains(seen)), "{:?}", diagnosis.findings[0].evidence);
}

/// A server of one process with threads behind a selector: it has read nine requests, and 112 wait unread. 190 a second are answered.
fn selector(loaded: bool, alone_us: Option<u64>) -> Observation {
    let mut obs = healthy();
    cores(&mut obs, 2, 0.1);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for number in 0..(WINDOW.1 - WINDOW.0) / STEP_US {
        let client = |n: u64| {
            let mut socket = socket(1_000 + n, 7, ((ip(SERVER_IP), 80), (ip("10.0.0.1"), 20_000 + n as u16)), true);
            socket.receive_queue = if n < 9 { 0 } else { 80 };
            // Each of the 121 connections has 1.57 requests a second.
            let times = socket.times.as_mut().unwrap();
            let more = (1.57 * (number * STEP_US) as f64 / 1e6 + (n % 10) as f64 / 10.0) as u64;
            (times.data_segs_in, times.data_segs_out) = (Some(5 + more), Some(4 + more));
            (times.bytes_received, times.bytes_sent) = (Some(500 + 100 * more), Some(400 + 100 * more));
            socket
        };
        let sockets = (0..121).map(client).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + number * STEP_US, Reading::Ok(sample));
    }
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        view.netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    files(&mut obs, 42, &[100, 7]);
    serves_by_threads(&mut obs);
    if !loaded {
        (obs.load, obs.request.loaded) = (None, false);
        return obs;
    }
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Closed { connections: 121 };
    (load.requests, load.good, load.status, load.latency_us.p50) = (1_900, 1_900, BTreeMap::from([(200, 1_900)]), 630_000);
    obs.unloaded = alone_us.map(|alone_us| {
        let mut few = obs.load.clone().unwrap();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, alone_us);
        few
    });
    obs
}

#[test]
fn threads_advised_to_watched_clients_follow_from_the_rate_and_not_from_the_queue() {
    let diagnosis = told(&selector(false, None));
    assert_eq!(causes(&diagnosis), [EXHAUSTED], "{diagnosis:#?}");
    let text = &of(&diagnosis, EXHAUSTED).remedies[0].text;
    assert!(text.contains("12 threads instead of 9") && text.contains("ms = 9 at once, plus reserve: 12"), "{text}");
}

#[test]
fn threads_that_take_turns_at_a_lock_are_not_too_few() {
    // 190/s of 5 ms: one at a time. Of 47 ms: nine.
    let locked = told(&selector(true, Some(5_000)));
    assert_eq!(causes(&locked), [EACH_OTHER], "{locked:#?}");
    let free = told(&selector(true, Some(46_000)));
    assert_eq!(causes(&free), [EXHAUSTED], "{free:#?}");
}

/// Changes the sockets of each sample, given its number.
fn change(obs: &mut Observation, of: impl Fn(usize, &mut Vec<RequestSocket>)) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.request_samples.points().to_vec();
    view.request_samples = Default::default();
    for (number, (at_us, mut sample)) in points.into_iter().enumerate() {
        of(number, &mut sample.sockets);
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
}

#[test]
fn the_number_of_threads_is_what_hardly_a_sample_exceeds() {
    // In one of twenty samples a request that ends and its successor are both counted, twice.
    let mut obs = selector(true, Some(46_000));
    change(&mut obs, |number, sockets| {
        let more = if number % 20 == 7 { 2 } else { 0 };
        sockets[9..9 + more].iter_mut().for_each(|socket| socket.receive_queue = 0);
    });
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [EXHAUSTED]);
    assert!(diagnosis.findings[0].title.contains("all 9 threads"), "{}", diagnosis.findings[0].title);
    // As many are there unread, and threads read as many as come.
    change(&mut obs, |number, sockets| {
        sockets[..30].iter_mut().enumerate().for_each(|(n, socket)| socket.receive_queue = if n < 3 * (number % 10) { 0 } else { 80 });
    });
    assert_eq!(causes(&told(&obs)), [""; 0], "no number is steady");
}

#[test]
fn a_thread_goes_on_with_a_request_whose_client_has_given_up() {
    let given_up = |left: u32| {
        let mut obs = selector(true, Some(46_000));
        change(&mut obs, |number, sockets| {
            // Of nine requests that were read, up to six are of clients that have gone.
            for socket in sockets.iter_mut().take(number % 7) {
                (socket.state, socket.receive_queue) = (TcpState::CloseWait, left);
            }
        });
        told(&obs)
    };
    assert_eq!(causes(&given_up(1)), [EXHAUSTED]);
    assert!(!causes(&given_up(80)).contains(&EXHAUSTED), "what they sent is not read");
}

#[test]
fn threads_without_a_common_lock_may_run_now_and_then() {
    let running = |exe: &str, ran: f64| {
        let mut obs = selector(true, Some(46_000));
        cores(&mut obs, 4, 0.3);
        let view = obs.processes.get_mut(&42).unwrap();
        let identity = Identity { exe: Some(exe.to_owned()), ..view.identity.last().unwrap().clone() };
        (view.identity, view.cpu) = Default::default();
        view.identity.push(0, Reading::Ok(identity));
        for second in 0..=11_u64 {
            let run_ns = Some((second as f64 * 1e9 * ran) as u64);
            let used = CpuUse { run_ns, run_delay_ns: Some(0), threads: 30, ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        told(&obs)
    };
    assert_eq!(causes(&running("/usr/bin/java", 1.0)), [EXHAUSTED], "each of nine runs for a ninth of its time");
    assert!(!causes(&running("/srv/program", 1.0)).contains(&EXHAUSTED), "one may run all the time, and the others wait for it");
}

/// Other programs fill the cores. The database's threads wait for them now and then, and most requests there for a lock.
#[test]
fn a_database_that_hardly_runs_is_no_matter_of_full_cores() {
    let beside = |ran: f64| {
        let mut obs = stack(5, Some(4_000));
        cpu(&mut obs, 1.0);
        let view = obs.processes.get_mut(&80).unwrap();
        view.cpu = Default::default();
        for second in 0..=11_u64 {
            let ns = |share: f64| Some((second as f64 * 1e9 * share) as u64);
            let used = CpuUse { run_ns: ns(ran), run_delay_ns: ns(0.5), threads: 30, ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        told(&obs)
    };
    assert_eq!(causes(&beside(0.1)), [BLOCKED]);
}

/// A server that forgot to close: these clients have their answer and are gone.
#[test]
fn connections_that_were_answered_and_left_open_take_no_thread() {
    let mut obs = selector(true, Some(46_000));
    change(&mut obs, |_, sockets| {
        for socket in sockets.iter_mut().take(9) {
            (socket.state, socket.receive_queue) = (TcpState::CloseWait, 1);
            let times = socket.times.as_mut().unwrap();
            (times.last_data_recv_ms, times.last_data_sent_ms, times.data_segs_out) = (40, 12, times.data_segs_in);
        }
    });
    let diagnosis = told(&obs);
    assert!(!causes(&diagnosis).contains(&EXHAUSTED), "{diagnosis:#?}");
}

/// The same where threads accept the connections themselves: four are held by requests, and six are forgotten.
#[test]
fn a_pool_does_not_count_what_it_left_open() {
    let limit = |forgotten: u64, answered: bool| {
        let mut obs = threads(30, 4, 0.3, 0.2);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.sockets.points().to_vec();
        view.sockets = Default::default();
        for (at_us, mut all) in points {
            let left = |n: u64| Socket { state: TcpState::CloseWait, ..tcp(1_500 + n, local(9_000), local(45_000 + n as u16)) };
            all.extend((0..forgotten).map(left));
            view.sockets.push(at_us, Reading::Ok(all));
        }
        let left = |n: u64| {
            let sampled = socket(8_000 + n, 1_500 + n, (local(9_000), local(45_000 + n as u16)), !answered);
            RequestSocket { state: TcpState::CloseWait, ..sampled }
        };
        // Part of all connections: what is held is counted in the lists of all.
        let sample =
            RequestSample { share: 0.5, handshake_share: 1.0, sockets: (0..forgotten).map(left).collect(), ..RequestSample::default() };
        view.request_samples.push(WINDOW.0, Reading::Ok(sample));
        let diagnosis = told(&obs);
        diagnosis.path.iter().find(|station| station.station == "worker-pool").and_then(|station| station.limit)
    };
    assert_eq!((limit(0, true), limit(6, true), limit(6, false)), (Some(4.0), Some(4.0), Some(10.0)));
}

/// Five connections of a report that another program makes at the database, beside the pool's own, on which nothing is asked.
#[test]
fn what_other_callers_ask_a_database_is_not_the_pools() {
    let beside = |pid: u32| {
        let mut obs = stack(0, None);
        let (made, accepted): (Vec<u64>, Vec<u64>) = ((0..5).map(|n| 6_000 + n).collect(), (0..5).map(|n| 7_000 + n).collect());
        change(&mut obs, |_, sockets| {
            for n in 0..5_u64 {
                let (own, there) = (local(31_000 + n as u16), local(DATABASE));
                sockets.push(socket(6_000 + n, made[n as usize], (own, there), false));
                sockets.push(socket(7_000 + n, accepted[n as usize], (there, own), true));
            }
        });
        if pid == 90 {
            process(&mut obs, 90, 1, "report", &made);
        } else {
            let held: Vec<u64> = [200, 1_000, 2_000].into_iter().chain(made).collect();
            files(&mut obs, pid, &held);
        }
        told(&obs)
    };
    let others = beside(90);
    assert_eq!(causes(&others), [EXHAUSTED], "{others:#?}");
    assert!(refused(&others).is_none_or(|why| !why.contains("mariadbd")), "{:?}", refused(&others));
    assert_eq!(causes(&beside(51)), [BLOCKED], "the same on connections of its own");
}

#[test]
fn threads_behind_a_selector_that_compute_are_not_said_to_wait() {
    let mut obs = selector(true, Some(46_000));
    cores(&mut obs, 16, 0.4);
    let view = obs.processes.get_mut(&42).unwrap();
    view.cpu = Default::default();
    for second in 0..=11_u64 {
        let used = CpuUse { run_ns: Some(second * 4_400_000_000), run_delay_ns: Some(0), threads: 30, ..CpuUse::default() };
        view.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    let diagnosis = told(&obs);
    let found = of(&diagnosis, EXHAUSTED);
    assert!(found.title.contains("9 threads") && found.title.contains("busy"), "{}", found.title);
    assert!(!found.title.contains("do not compute") && !found.explanation.contains("wait for a disk"), "{found:#?}");
}
