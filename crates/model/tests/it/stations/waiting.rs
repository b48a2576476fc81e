//! Station `waiting`: when requests waiting inside a program are the choke point, when that is unknown, and when nothing is wrong.
//!
//! Deterministic: observations made up by the tests.

mod awaited;
mod bursts;
mod collector;
mod errors;
mod held_up;
mod kept_connections;
mod late;
mod limits;
mod names;
mod peers;
mod silent;
mod unreached;

use std::collections::BTreeMap;

use chokepoint_model::load::{LoadResult, Loop, Lost};
use chokepoint_model::observation::{
    CpuUse, Identity, Observation, OpenFiles, RequestSample, RequestSocket, RequestTimes, SocketAddress, Syscall, TcpState, ThreadTimes,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Evidence, LimitedBy, Role, Verdict};

use crate::stage::*;

const STEP_US: u64 = 200_000;
/// The inodes of connections that clients opened, and of connections that the server opened.
const ACCEPTED: u64 = 7;
const MADE: u64 = 8;

/// The sockets of the server's namespace in each sample, by its number.
pub(super) type Sockets<'a> = &'a dyn Fn(u64) -> Vec<RequestSocket>;

/// A client's connection with a request of this age, or idle since the last answer.
pub(super) fn client(number: u16, age_ms: u64, is_asked: bool) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: age_ms,
        last_data_sent_ms: if is_asked { age_ms + 4 } else { age_ms.saturating_sub(4) },
        data_segs_in: Some(5),
        data_segs_out: Some(if is_asked { 4 } else { 5 }),
        bytes_received: Some(500),
        bytes_sent: Some(400),
        min_rtt_us: Some(20),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + number) },
        cookie: 1_000 + u64::from(number),
        state: TcpState::Established,
        inode: ACCEPTED,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// Clients whose requests came one after another, this many milliseconds apart.
fn evenly(count: u16, apart_ms: u64) -> Vec<RequestSocket> {
    (0..count).map(|n| client(n, 4 + u64::from(n) * apart_ms, true)).collect()
}

/// A number without a visible order (splitmix64).
fn mixed(seed: u64) -> u64 {
    let mut all = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    all = (all ^ (all >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    all = (all ^ (all >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    all ^ (all >> 31)
}

/// Clients whose requests came at random.
fn at_random(count: u16, most_ms: u64) -> Vec<RequestSocket> {
    (0..count).map(|n| client(n, mixed(n.into()) % most_ms / 4 * 4 + 4, true)).collect()
}

/// Clients of which each is answered after this time, asks again at once, and began at random, as a sample of this number shows them.
fn in_turn(count: u16, each_ms: u64, sample: u64) -> Vec<RequestSocket> {
    let since_ms = |n: u16| mixed(n.into()) % each_ms + sample * STEP_US / 1_000;
    (0..count).map(|n| later(client(n, since_ms(n) % each_ms / 4 * 4 + 4, true), since_ms(n) / each_ms)).collect()
}

/// The same connection after this many more requests of one segment.
fn later(mut socket: RequestSocket, requests: u64) -> RequestSocket {
    let times = socket.times.as_mut().unwrap();
    let more = |count: &mut Option<u64>, each: u64| *count = count.map(|count| count + each * requests);
    more(&mut times.data_segs_in, 1);
    more(&mut times.data_segs_out, 1);
    more(&mut times.bytes_received, 100);
    more(&mut times.bytes_sent, 100);
    socket
}

/// A connection that the server opened to another host, with or without a request. This many segments arrived on it.
fn made(number: u16, is_in_use: bool, came: u64) -> RequestSocket {
    let mut socket = client(number, 20, !is_in_use);
    socket.address = SocketAddress::Tcp { local: (ip(SERVER_IP), 40_000 + number), remote: (ip("10.0.0.9"), 5_432) };
    (socket.cookie, socket.inode) = (9_000 + u64::from(number), MADE);
    let times = socket.times.as_mut().unwrap();
    (times.data_segs_in, times.data_segs_out) = (Some(came), Some(came + 1));
    if is_in_use {
        (times.last_data_sent_ms, times.last_data_recv_ms) = (20, 24);
    }
    socket
}

/// A stage with samples and an unchanged load.
pub(super) fn sampled(mut obs: Observation, sockets: Sockets<'_>) -> Observation {
    cpu(&mut obs, 0.2);
    for number in 0..(WINDOW.1 - WINDOW.0) / STEP_US {
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets: sockets(number), ..RequestSample::default() };
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(WINDOW.0 + number * STEP_US, Reading::Ok(sample));
    }
    let files = &mut obs.processes.get_mut(&42).unwrap().files;
    files.push(1_000_000, Reading::Ok(OpenFiles { count: 99, sockets: vec![100, ACCEPTED, MADE] }));
    obs
}

fn watched(sockets: Sockets<'_>) -> Diagnosis {
    told(&seen(sockets))
}

/// The same observation before it is judged.
fn seen(sockets: Sockets<'_>) -> Observation {
    let mut obs = sampled(healthy(), sockets);
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    obs
}

/// A load of 100 connections whose answers took a second each, or this long alone.
fn loaded(alone_us: u64, sockets: Sockets<'_>) -> Diagnosis {
    told(&under_load(alone_us, sockets))
}

/// The same before it is judged.
fn under_load(alone_us: u64, sockets: Sockets<'_>) -> Observation {
    let mut obs = sampled(healthy(), sockets);
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.status) = (1_000, 1_000, BTreeMap::from([(200, 1_000)]));
    (load.latency_us.p50, load.latency_us.p99) = (1_000_000, 1_010_000);
    let mut few = load.clone();
    (few.requests, few.good, few.latency_us.p50) = (10, 10, alone_us);
    obs.unloaded = Some(few);
    obs
}

fn verdict(diagnosis: &Diagnosis) -> (Verdict, Option<LimitedBy>, Vec<&str>) {
    (diagnosis.verdict, diagnosis.limited_by, causes(diagnosis))
}

const CHOKED: (Verdict, Option<LimitedBy>, Vec<&str>) = (Verdict::Choked, None, Vec::new());

fn is_choked(diagnosis: &Diagnosis) -> bool {
    verdict(diagnosis) == (CHOKED.0, CHOKED.1, vec!["waits-inside"])
}

/// The verdict about watched requests whose number and ages are these in each sample.
fn levels(of: impl Fn(u64) -> (u16, u64)) -> Diagnosis {
    watched(&|n| {
        let (count, most_ms) = of(n);
        at_random(count, most_ms)
    })
}

const HEALTHY: (Verdict, Option<LimitedBy>, Vec<&str>) = (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new());
const UNKNOWN: (Verdict, Option<LimitedBy>, Vec<&str>) = (Verdict::Unknown, None, Vec::new());

#[test]
fn a_number_that_never_changes_tells_nothing_however_even_the_ages_are() {
    let even = watched(&|_| evenly(100, 10));
    assert_eq!(verdict(&even), UNKNOWN, "a constant time in a closed loop spreads ages evenly too: {even:#?}");
    assert!(even.summary.contains("-c"), "what would tell: {}", even.summary);
    assert_eq!(verdict(&watched(&|_| at_random(100, 1_000))), UNKNOWN);
    assert_eq!(verdict(&watched(&|_| (0..100).map(|n| client(n, 400, true)).collect())), UNKNOWN);
    assert_eq!(verdict(&watched(&|_| at_random(100, 9_000))), UNKNOWN, "as long as the watch");
    let fresh = |mut socket: RequestSocket| {
        let times = socket.times.as_mut().unwrap();
        (times.data_segs_in, times.data_segs_out, times.bytes_sent) = (Some(1), Some(0), Some(0));
        socket
    };
    let each = |_| evenly(100, 10).into_iter().map(fresh).collect();
    assert_eq!(verdict(&watched(&each)), UNKNOWN, "a connection for each request");
}

#[test]
fn requests_that_take_longer_the_more_there_are_are_choked() {
    // More come than are answered.
    let growing = levels(|n| (40 + 4 * n as u16, 400 + 40 * n));
    assert!(is_choked(&growing), "{growing:#?}");
    assert!(growing.findings[0].title.contains("requests wait inside nginx"), "{}", growing.findings[0].title);
    // The same after a while, when the queue is long.
    let long = levels(|n| (400 + 4 * n as u16, 4_000 + 40 * n));
    assert!(is_choked(&long), "{long:#?}");
    // A busy host gives few samples.
    let rare = seen(&|n| at_random(100 + 5 * n as u16, 500 + 25 * n));
    let mut few = rare.clone();
    let samples = rare.netns[&SERVER].request_samples.points().iter().step_by(11).cloned().collect::<Vec<_>>();
    few.netns.get_mut(&SERVER).unwrap().request_samples = Default::default();
    for (at_us, sample) in samples {
        few.netns.get_mut(&SERVER).unwrap().request_samples.push(at_us, Reading::Ok(sample));
    }
    let few = told(&few);
    assert_eq!(verdict(&few), UNKNOWN);
    assert!(few.summary.contains("does not keep up") && few.summary.contains("Only 5 samples"), "{}", few.summary);
    // A load that varies, and as many answers as before.
    let varied = levels(|n| if n / 10 % 2 == 0 { (20, 200) } else { (100, 1_000) });
    assert!(is_choked(&varied), "{varied:#?}");
    // It comes and goes within a part of the window: too short for a cause, and not healthy.
    let hasty = levels(|n| if n % 2 == 0 { (20, 200) } else { (60, 600) });
    assert_eq!(verdict(&hasty), UNKNOWN, "{}", hasty.summary);
    assert!(hasty.summary.contains("does not keep up"), "{}", hasty.summary);
    // More are asked for, and each takes as long as before.
    assert_eq!(verdict(&levels(|n| (40 + 4 * n as u16, 400))), HEALTHY);
    assert_eq!(verdict(&levels(|n| if n / 10 % 2 == 0 { (20, 300) } else { (100, 300) })), HEALTHY);
    // A pause of everything makes all requests old at once, and is over.
    let paused = levels(|n| if (20..24).contains(&n) { (90, 900) } else { (4 + mixed(n) as u16 % 6, 60) });
    assert_eq!(verdict(&paused), HEALTHY, "{}", paused.summary);
    // More stand there and each is older, but others come first: cores are full.
    let full = busy(&|n| at_random(40 + 4 * n as u16, 400 + 40 * n));
    assert_eq!(verdict(&full), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
}

#[test]
fn a_server_that_keeps_up_is_healthy_and_says_why() {
    let idle = |all: Vec<RequestSocket>| [all, (200..320).map(|n| client(n, 400, false)).collect()].concat();
    assert_eq!(verdict(&watched(&|_| idle(evenly(100, 10)))), HEALTHY, "most connections are idle");
    assert_eq!(verdict(&watched(&|_| evenly(1, 10))), HEALTHY, "one request waits for nobody");
    // Twice the heads of sixteen coins: sixteen on average with a variance of sixteen, as in a Poisson process.
    let number = |n: u64| (0..16).filter(|throw| mixed(100 * n + throw).is_multiple_of(2)).count() as u16;
    assert_eq!(verdict(&watched(&|n| at_random(2 * number(n), 80))), HEALTHY, "they come and go by themselves");
    let empty = watched(&|n| if n.is_multiple_of(5) { Vec::new() } else { evenly(4, 3) });
    assert_eq!(verdict(&empty), HEALTHY);
    assert!(empty.summary.contains("at most 4") && empty.summary.contains("none in 20 % of the samples"), "{}", empty.summary);
    assert!(empty.summary.contains("-c"), "what was not tried: {}", empty.summary);
}

/// It stops for seconds, and hundreds wait meanwhile: that nobody waits at times is no sign that it keeps up.
#[test]
fn a_server_that_is_empty_between_long_stops_does_not_keep_up() {
    let stopping = watched(&|n| match n % 8 {
        0 => Vec::new(),
        step => at_random(60 * step as u16, 150 * step),
    });
    assert_eq!(verdict(&stopping), UNKNOWN, "{}", stopping.summary);
    assert!(stopping.summary.contains("does not keep up"), "{}", stopping.summary);
    // Random arrivals at a place that is busy as often: seven on average, and thirty at times.
    let random = watched(&|n| if n.is_multiple_of(8) { Vec::new() } else { at_random(1 + (mixed(n) % 14) as u16, 40) });
    assert_eq!(verdict(&random), HEALTHY, "{}", random.summary);
}

/// Requests before this many processes that serve one connection each and wait in this system call.
fn before_workers(workers: u32, call: &str, number: &dyn Fn(u64) -> u16) -> Diagnosis {
    let mut obs = seen(&|n| evenly(number(n), 10));
    pool::process(&mut obs, 42, 1, "server", &[100, ACCEPTED]);
    for pid in (0..workers).map(|n| 43 + n) {
        pool::process(&mut obs, pid, 42, "server", &[100, ACCEPTED]);
        let call = Syscall { call: Some(call.to_owned()), ..Syscall::default() };
        obs.processes.get_mut(&pid).unwrap().syscall.push(5_000_000, Reading::Ok(call));
    }
    told(&obs)
}

#[test]
fn a_known_limit_is_told_beside_the_most_that_stood_there() {
    let varied = |n: u64| 80 + 5 * (n % 5) as u16;
    let roomy = before_workers(120, "nanosleep", &varied);
    assert_eq!(verdict(&roomy), HEALTHY, "{}", roomy.summary);
    assert!(roomy.summary.contains("of the 120 workers of server were taken on average, at most 100"), "{}", roomy.summary);
    let unknown = |diagnosis: &Diagnosis, why: &str| assert_eq!(diagnosis.verdict, Verdict::Unknown, "{why}: {}", diagnosis.summary);
    unknown(&before_workers(80, "nanosleep", &varied), "none is free most of the time");
    unknown(&before_workers(120, "flock", &varied), "they wait for one lock");
    unknown(&before_workers(120, "nanosleep", &|n| if n % 7 == 3 { 90 } else { 100 }), "all that ask wait nearly all the time");
}

#[test]
fn what_is_usual_tells_where_a_history_knows_it() {
    // A hundred requests in flight; each connection has ten requests a second, so each takes 100 ms.
    let with = |usual_ms: Option<f64>| {
        let mut obs = seen(&|n| at_random(100, 100).into_iter().map(|socket| later(socket, 2 * n)).collect());
        obs.request.usual_ms = usual_ms;
        told(&obs)
    };
    assert_eq!(verdict(&with(None)), UNKNOWN);
    assert_eq!(verdict(&with(Some(95.0))), HEALTHY, "{}", with(Some(95.0)).summary);
    let slower = with(Some(30.0));
    assert_eq!(verdict(&slower), UNKNOWN);
    assert!(slower.summary.contains("usually 30 ms"), "{}", slower.summary);
}

#[test]
fn clients_that_could_ask_again_and_do_not_are_not_held_back() {
    let with = |spare: &dyn Fn(u64) -> Vec<RequestSocket>| watched(&|n| evenly(20, 10).into_iter().chain(spare(n)).collect());
    // Ten others are free in each sample, for some time since their last answers.
    let open = with(&|n| (0..10).map(|other| client(100 + other + (n % 3) as u16, 60, false)).collect());
    assert_eq!(verdict(&open), HEALTHY, "{}", open.summary);
    assert!(open.summary.contains("to spare"), "{}", open.summary);
    // More come at times, and are answered faster than they came.
    let bursts = watched(&|n| evenly(if n % 7 == 3 { 30 } else { 20 }, 10));
    assert_eq!(verdict(&bursts), HEALTHY, "{}", bursts.summary);
    // As many as there are clients, and at times fewer, when the clients had no core to ask on.
    assert_eq!(verdict(&watched(&|n| evenly(if n % 7 == 3 { 12 } else { 20 }, 10))), UNKNOWN);
    // Clients of a closed loop ask again within a tick.
    assert_eq!(verdict(&with(&|n| (0..10).map(|other| client(100 + other + (n % 3) as u16, 4, false)).collect())), UNKNOWN);
    // Connections that are never asked on are nobody's pace.
    assert_eq!(verdict(&with(&|n| (0..10).map(|other| client(100 + other, 600_000 + 200 * n, false)).collect())), UNKNOWN);
    // One that is free for a moment is little beside twenty that wait.
    assert_eq!(verdict(&with(&|n| vec![client(100 + (n % 3) as u16, 60, false)])), UNKNOWN);
}

#[test]
fn connections_that_are_all_in_use_show_the_limit() {
    let with = |connections: u16, in_use: u16, grows: u64| {
        watched(&move |n| {
            let calls = (0..connections).map(|number| made(number, number < in_use, 100 + n * grows));
            in_turn(100, 1_000, n).into_iter().chain(calls).collect()
        })
    };
    let full = with(4, 4, 12);
    assert!(is_choked(&full), "{full:#?}");
    assert_eq!(
        full.findings[0].title,
        "96 of 100 requests wait inside nginx, which uses all of its 4 connections to 10.0.0.9:5432 all the time"
    );
    assert_eq!(full.findings[0].remedies[0].id, "allow-more-connections");
    assert_eq!(verdict(&with(4, 1, 12)).0, Verdict::Unknown, "three are free");
    assert_eq!(verdict(&with(4, 4, 0)).0, Verdict::Unknown, "a log that is never answered");
    // Four of six at a time, all the time.
    let part = with(6, 4, 12);
    assert!(is_choked(&part), "{part:#?}");
    assert_eq!(part.findings[0].title, "96 of 100 requests wait inside nginx, which has at most 4 at a time at 10.0.0.9:5432");
    assert_eq!(part.findings[0].remedies[0].id, "allow-more-connections");
    assert_eq!(verdict(&with(6, 4, 0)).0, Verdict::Unknown, "subscribers that are never answered");
    // With one for each request nobody waits for a free one.
    for connections in [100, 101, 140] {
        let title = with(connections, connections, 12).findings.first().map(|found| found.title.clone()).unwrap_or_default();
        assert!(!title.contains("uses all of its"), "{connections}: {title}");
    }
    let away = with(100, 100, 12);
    assert_eq!(verdict(&away).0, Verdict::Unknown);
    assert!(away.summary.contains("10.0.0.9:5432"), "they wait for that server: {}", away.summary);
}

#[test]
fn with_load_the_time_of_a_single_request_shows_whether_requests_wait_for_each_other() {
    let queue = loaded(40_000, &|_| at_random(100, 1_000));
    assert!(is_choked(&queue), "{queue:#?}");
    assert!(queue.findings[0].evidence.iter().any(|proof| proof.text.contains("40 ms alone") || proof.text.contains("took 40 ms")));
    let slow = loaded(990_000, &|_| evenly(100, 10));
    assert_eq!(verdict(&slow), (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new()), "an answer takes a second alone");
}

#[test]
fn an_event_loop_that_is_held_up_leaves_its_requests_unread() {
    let told_of = |unread: usize, ran: f64, is_read: bool| {
        let mut obs = under_load(40_000, &|_| {
            let mut all = at_random(100, 1_000);
            all.iter_mut().take(unread).for_each(|socket| socket.receive_queue = 80);
            all
        });
        let view = obs.processes.get_mut(&42).unwrap();
        view.cpu = Default::default();
        for second in 0..=11 {
            let times = vec![ThreadTimes { id: 42, run_ns: (second as f64 * ran * 1e9) as u64, delay_ns: 0 }];
            let used = CpuUse { thread_times: times, threads: 1, ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some("write".into()), ..Syscall::default() }));
        }
        if is_read {
            obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
        }
        told(&obs)
    };
    let held_up = |unread: usize, ran: f64| told_of(unread, ran, true);
    let late = held_up(90, 0.02);
    assert!(is_choked(&late), "{late:#?}");
    assert!(late.findings[0].title.contains("or until it reads them"), "{}", late.findings[0].title);
    assert!(late.findings[0].evidence.iter().any(|proof| proof.text.contains("not even read")), "{:#?}", late.findings[0].evidence);
    assert!(!held_up(2, 0.02).findings[0].title.contains("until"), "that some are not read yet is chance");
    assert!(!causes(&told_of(90, 0.02, false)).contains(&"waits-inside"), "whether it is a pool with all its threads taken was not seen");
    // A loop that computes all the time reads late as well, for lack of a core.
    assert!(!causes(&held_up(90, 1.0)).contains(&"waits-inside"), "{:#?}", held_up(90, 1.0).summary);
}

#[test]
fn how_many_go_through_is_said_where_it_is_at_least_one() {
    let says = |alone_us: u64| {
        let diagnosis = told(&under_load(alone_us, &|_| at_random(100, 1_000)));
        diagnosis.findings.iter().flat_map(|finding| &finding.evidence).any(|proof| proof.text.contains("at a time"))
    };
    assert!(says(40_000) && !says(200), "two hundredths of a request are no limit");
}

#[test]
fn a_wait_inside_names_the_dump_of_the_runtime_and_the_number_that_goes_through() {
    let with = |exe: &str| {
        let mut obs = under_load(40_000, &|_| at_random(100, 1_000));
        let process = obs.processes.get_mut(&42).unwrap();
        let identity = Identity { exe: Some(exe.to_owned()), ..process.identity.first().unwrap().clone() };
        process.identity = Default::default();
        process.identity.push(0, Reading::Ok(identity));
        let finding = told(&obs).findings.swap_remove(0);
        let says = |proof: &Evidence| proof.text.contains("100/s x 40 ms = 4 at a time");
        assert!(finding.evidence.iter().any(says), "{:?}", finding.evidence);
        let steps = &finding.remedies.iter().find(|remedy| remedy.id == "look-inside").unwrap().runtime;
        steps.iter().flat_map(|step| [&step.text, &step.command]).flatten().cloned().collect::<Vec<_>>().join(" ")
    };
    let dumps = [
        ("/usr/bin/java", "jstack 42"),
        ("/usr/bin/python3.11", "py-spy dump --pid 42"),
        ("/usr/bin/python3.14t", "py-spy dump --pid 42"),
        ("/usr/bin/ruby3.1", "rbspy snapshot --pid 42"),
        ("/usr/bin/node", "--cpu-prof"),
        ("/usr/sbin/php-fpm8.2", "phpspy --pid=42"),
        ("/srv/app/server", "kill -QUIT 42"),
        ("/srv/app/server", "/debug/pprof/goroutine"),
    ];
    for (exe, dump) in dumps {
        assert!(with(exe).contains(dump), "{exe}: {}", with(exe));
    }
    assert!(!with("/usr/sbin/nginx").contains("QUIT"));
}

#[test]
fn a_generator_that_waited_is_a_note_where_requests_wait_at_the_server() {
    let with = |at_server: u16| {
        let unread = |number: u16| RequestSocket { receive_queue: 80, ..client(number, 500, true) };
        let mut obs = sampled(healthy(), &|_| (0..at_server).map(|n| if n % 2 == 0 { unread(n) } else { client(n, 500, true) }).collect());
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (1_000, 1_000, BTreeMap::from([(200, 1_000)]));
        (load.latency_us.p50, load.latency_us.p99) = (1_000_000, 1_010_000);
        load.threads[0].wait_us = Some(1_100_000);
        load.under_way_us = Some(100 * load.duration_us);
        let mut few = load.clone();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, 6_000);
        obs.unloaded = Some(few);
        told(&obs)
    };
    let server = with(90);
    assert_eq!(verdict(&server), UNKNOWN);
    assert!(server.summary.contains("alone") && !server.summary.contains("generator itself waited"), "{}", server.summary);
    let note = server.warnings.iter().find(|warning| warning.contains("generator itself waited"));
    assert!(note.is_some_and(|note| note.contains("11 %")), "{:?}", server.warnings);
    let client = with(1);
    assert!(client.summary.contains("generator itself waited"), "{}", client.summary);
    assert!(client.warnings.iter().all(|warning| !warning.contains("generator itself")), "{:?}", client.warnings);
}

#[test]
fn without_a_gain_to_expect_a_wait_is_no_cause() {
    // The cores are full of the server's work: whatever the requests wait for, there would be no time for more of them.
    let mut obs = sampled(healthy(), &|_| at_random(100, 1_000));
    cpu(&mut obs, 0.99);
    let mut few = obs.load.clone().unwrap();
    (few.requests, few.good, few.latency_us.p50) = (10, 10, 4_000);
    obs.unloaded = Some(few);
    let full = told(&obs);
    assert_eq!(verdict(&full), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()), "{full:#?}");
}

/// A full core that other programs use for the most part. Each of a hundred threads of the server runs for this long and waits for the core for this long a second.
fn crowded(run_ns: u64, delay_ns: Option<u64>) -> Diagnosis {
    let mut obs = under_load(40_000, &|_| at_random(100, 1_000));
    cpu(&mut obs, 0.99);
    for second in 0..=11_u64 {
        let thread = |id| ThreadTimes { id, run_ns: second * run_ns, delay_ns: second * delay_ns.unwrap_or(0) };
        let used = CpuUse {
            user_ticks: second * run_ns / 100_000,
            run_ns: delay_ns.map(|_| second * 100 * run_ns),
            run_delay_ns: delay_ns.map(|delay_ns| second * 100 * delay_ns),
            thread_times: delay_ns.map_or_else(Vec::new, |_| (0..100).map(thread).collect()),
            threads: 100,
            ..CpuUse::default()
        };
        obs.processes.get_mut(&42).unwrap().cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    told(&obs)
}

#[test]
fn cores_that_others_keep_busy_do_not_explain_requests_that_wait_inside() {
    let cores = (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new());
    // About four go on at a time. One of them is at the core on average.
    let waits = crowded(300_000, Some(9_700_000));
    assert!(is_choked(&waits), "{waits:#?}");
    // Three are: what the others wait for needs the core.
    assert_eq!(verdict(&crowded(300_000, Some(30_000_000))), cores);
    // The core is full of the server's own work.
    assert_eq!(verdict(&crowded(9_500_000, Some(9_700_000))), cores);
    // How long its threads waited for the core is not known, however little they ran.
    let untold = crowded(300_000, None);
    assert_eq!(verdict(&untold), UNKNOWN, "{untold:#?}");
    for said in ["100 of 100 requests wait inside nginx", "other programs use 9", "could not be read"] {
        assert!(untold.summary.contains(said), "{}", untold.summary);
    }
}

#[test]
fn a_queue_before_full_cores_is_explained_by_them() {
    let unread = |number: u16| RequestSocket { receive_queue: 80, ..client(number, 3_000, true) };
    let with = |busy: f64, p50_us: u64, fail: &dyn Fn(&mut LoadResult)| {
        let mut obs = sampled(healthy(), &|_| (0..100).map(unread).collect());
        cpu(&mut obs, busy);
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (1_000, 900, BTreeMap::from([(200, 900)]));
        (load.latency_us.p50, load.latency_us.p99, load.latency_us.max) = (p50_us, 2_000_000, 2_000_000);
        load.lost = Some(Lost { patience_us: 2_000_000, late: 0, time_us: 220_000_000, of_us: 1_000_000_000 });
        fail(load);
        told(&obs)
    };
    let late = |load: &mut LoadResult| load.errors.response_timeout = 100;
    let cores = (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new());
    let queued = with(0.99, 900_000, &late);
    assert_eq!(verdict(&queued), cores, "{}", queued.summary);
    assert_eq!(verdict(&with(0.5, 900_000, &late)), UNKNOWN, "the cores are idle");
    assert_eq!(verdict(&with(0.99, 20_000, &late)), UNKNOWN, "half are answered soon, so others starve");
    let reset = |load: &mut LoadResult| load.errors.reset = 100;
    assert_eq!(verdict(&with(0.99, 900_000, &reset)), UNKNOWN, "a full core resets nothing");
}

#[test]
fn findings_of_other_stations_come_first() {
    let mut obs = sampled(healthy(), &|n| at_random(40 + n as u16, 400 + 20 * n));
    cpu(&mut obs, 0.99);
    let diagnosis = told(&obs);
    assert_eq!(verdict(&diagnosis), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    assert_eq!(diagnosis.findings[0].role, Role::Symptom);
    let full = told(&sampled(table_full(200), &|_| evenly(100, 10)));
    assert_eq!(causes(&full), ["conntrack-table-full"]);
    let mut rate = sampled(healthy(), &|_| evenly(100, 10));
    rate.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!(verdict(&told(&rate)), (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new()), "the rate was met");
}

#[test]
fn multiplexed_connections_are_not_choked() {
    let frames = |n: u64| {
        let asked = |mut socket: RequestSocket| {
            let times = socket.times.as_mut().unwrap();
            (times.data_segs_in, times.bytes_received) = (Some(5 + n), Some(100 * (5 + n)));
            socket
        };
        evenly(100, 10).into_iter().map(asked).collect()
    };
    let diagnosis = watched(&frames);
    assert_eq!(verdict(&diagnosis), (Verdict::Unknown, None, Vec::new()), "{diagnosis:#?}");
    assert!(diagnosis.summary.contains("several requests at once"), "{}", diagnosis.summary);
}

/// A full core, with samples of the requests at the server.
fn busy(sockets: Sockets<'_>) -> Diagnosis {
    let mut obs = sampled(healthy(), sockets);
    cpu(&mut obs, 0.99);
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    told(&obs)
}

#[test]
fn a_busy_core_does_not_explain_clients_that_are_never_accepted() {
    let at_the_door = |number: u16| RequestSocket { inode: 0, receive_queue: 80, ..client(number, 3_000, true) };
    let answered = |n: u64| (0..4).map(move |number| later(client(number, 4, true), 1_000 * n));
    let starved = busy(&|n| answered(n).chain((10..46).map(at_the_door)).collect());
    assert_eq!(verdict(&starved), (Verdict::Unknown, None, Vec::new()));
    assert!(
        starved.summary.contains("36 connections with a request waited") && starved.summary.contains("while 4 others"),
        "{}",
        starved.summary
    );
    // All are accepted in turn: each sample has other clients in the queue.
    let turns = busy(&|n| answered(n).chain((10..46).map(|number| at_the_door(number + 50 * n as u16))).collect());
    assert_eq!(verdict(&turns), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    // Nobody is answered twice: all wait equally long, as with a full core.
    let alike = busy(&|_| answered(0).chain((10..46).map(at_the_door)).collect());
    assert_eq!(verdict(&alike), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    // Connections that were opened ahead and have no request.
    let ahead = |number: u16| RequestSocket { receive_queue: 0, ..at_the_door(number) };
    let early = busy(&|n| answered(n).chain((10..46).map(ahead)).collect());
    assert_eq!(verdict(&early), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
}

#[test]
fn without_samples_a_watched_server_is_not_reported_healthy() {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.verdict, Verdict::Unknown);
    assert!(diagnosis.summary.contains("not sampled"), "{}", diagnosis.summary);
}
