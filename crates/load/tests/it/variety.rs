//! What a load can vary: its rate in stages, its targets, and its source addresses.
//!
//! Live: load on this test's own server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chokepoint_load::{Control, LoadError, Order, PlanError, Stages, Target, Targets, measure, run};
use chokepoint_model::load::Loop;

use crate::server::{self, HELLO, Server, load, plan};

/// First lines of requests, and their source addresses.
type Seen = Arc<Mutex<Vec<(String, IpAddr)>>>;

/// A server that records the first line of each request, in order of arrival, and its source address.
fn noting() -> (Server, Seen) {
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    let server = Server::start(move |mut stream: TcpStream, _| {
        let peer = stream.peer_addr().expect("connected").ip();
        let mut lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
        while let Some(Ok(first)) = lines.next() {
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let is_head = first.starts_with("HEAD");
            notes.lock().expect("no panics").push((first, peer));
            // An answer to HEAD states a length and has no body (RFC 9110 section 9.3.2).
            let answer = if is_head { HELLO.trim_end_matches("hello") } else { HELLO };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (server, seen)
}

fn targets(order: Order) -> Targets {
    let target = |(method, path): (&str, &str)| Target { method: method.to_owned(), path_and_query: path.to_owned() };
    Targets { targets: [("GET", "/a"), ("HEAD", "/b?c=d"), ("GET", "/e")].into_iter().map(target).collect(), order }
}

#[test]
fn stages_offer_the_area_below_the_rate() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    let stages = Stages::parse(100.0, "500ms:300,300ms:300,0s:100,400ms:0").expect("stages");
    plan.shape = Loop::Open { rate_per_s: stages.mean_per_s(), connections: 50 };
    (plan.requests, plan.duration, plan.timeout) = (None, Some(stages.duration()), Duration::from_secs(5));
    plan.options.stages = Some(stages);
    let measured = measure(&plan, &Control::new()).expect("the load runs");
    let result = &measured.result;
    // 200 on average for half a second, 300 for 0.3 s, 50 for 0.4 s.
    assert_eq!((result.requests, result.good, result.duration_us), (210, 210, 1_200_000), "{result:?}");
    let by = |bucket: usize| measured.detail.series.points[..bucket].iter().map(|point| point.started).sum::<u32>();
    // A busy machine sends late, never early: until 250 ms 100 t + 200 t^2 requests are due, until 800 ms 190.
    assert!(by(25) <= 39 && by(50) <= 101 && by(80) <= 191, "{} {} {}", by(25), by(50), by(80));
    // A warm-up uses the initial rate and is not counted.
    plan.options.warm_up = Duration::from_millis(200);
    assert_eq!(load(&plan).requests, 210);
    plan.requests = Some(90);
    assert_eq!(load(&plan).requests, 90, "a number of requests ends it earlier");
}

#[test]
fn invalid_stages_are_refused() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    plan.options.stages = Some(Stages::parse(0.0, "1s:10").expect("stages"));
    plan.duration = Some(Duration::from_secs(1));
    assert_eq!(plan.check(), Err(PlanError::StagesClosed));
    plan.shape = Loop::Open { rate_per_s: 5.0, connections: 5 };
    assert_eq!(plan.check(), Ok(()));
    plan.duration = Some(Duration::from_secs(2));
    assert!(matches!(plan.check(), Err(PlanError::StagesDuration(_))));
    plan.duration = Some(Duration::from_secs(1));
    plan.options.warm_up = Duration::from_secs(1);
    assert_eq!(plan.check(), Err(PlanError::StagesWarmUp));
    plan.options.stages = Some(Stages::parse(1e8, "1s:10").expect("stages"));
    assert!(matches!(plan.check(), Err(PlanError::Rate(_))));
}

#[test]
fn targets_are_requested_in_turn() {
    for shape in [Loop::Closed { connections: 1 }, Loop::Open { rate_per_s: 2_000.0, connections: 1 }] {
        let (server, seen) = noting();
        let mut plan = plan(server.address);
        (plan.shape, plan.requests, plan.timeout) = (shape, Some(30), Duration::from_secs(5));
        plan.options.targets = Some(targets(Order::InTurn));
        plan.options.requests_per_connection = Some(7);
        let result = load(&plan);
        assert_eq!((result.requests, result.good), (30, 30), "{result:?}");
        let seen: Vec<String> = seen.lock().expect("no panics").iter().map(|(first, _)| first.clone()).collect();
        let due = ["GET /a HTTP/1.1", "HEAD /b?c=d HTTP/1.1", "GET /e HTTP/1.1"];
        assert_eq!(seen, due.into_iter().cycle().take(30).collect::<Vec<_>>());
    }
}

#[test]
fn targets_drawn_with_one_seed_are_the_same_for_any_number_of_threads() {
    let counts = |seed: u64, threads: u32| {
        let (server, seen) = noting();
        let mut plan = plan(server.address);
        plan.shape = Loop::Open { rate_per_s: 3_000.0, connections: 6 };
        (plan.requests, plan.threads, plan.timeout) = (Some(300), Some(threads), Duration::from_secs(5));
        plan.options.targets = Some(targets(Order::Drawn { seed }));
        let result = load(&plan);
        assert_eq!((result.requests, result.good), (300, 300), "{result:?}");
        let mut counts = BTreeMap::<String, u32>::new();
        for (first, _) in seen.lock().expect("no panics").iter() {
            *counts.entry(first.clone()).or_default() += 1;
        }
        counts
    };
    let one = counts(7, 1);
    assert!(one.len() == 3 && one.values().all(|count| (60..=140).contains(count)), "{one:?}");
    assert_eq!(one, counts(7, 3));
    assert_ne!(one, counts(8, 1));
}

#[test]
fn an_invalid_target_is_reported_by_its_number() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    let mut all = targets(Order::InTurn);
    all.targets[2].path_and_query = "/a b".to_owned();
    plan.options.targets = Some(all);
    assert!(matches!(plan.check(), Err(PlanError::Target(3, _))), "{:?}", plan.check());
    plan.options.targets = Some(Targets { targets: Vec::new(), order: Order::InTurn });
    assert!(plan.check().is_err());
    let mut many = targets(Order::InTurn);
    plan.body = vec![0; 100 << 20];
    many.targets.truncate(2);
    plan.options.targets = Some(many.clone());
    assert_eq!(plan.check(), Ok(()));
    many.targets.push(many.targets[0].clone());
    plan.options.targets = Some(many);
    assert!(matches!(plan.check(), Err(PlanError::TooLarge { .. })), "three bodies of 100 MiB are too much to prepare");
}

#[test]
fn each_given_address_is_a_source_of_connections() {
    let (server, seen) = noting();
    let mut plan = plan(server.address);
    let addresses: Vec<IpAddr> = (2..5).map(|last| [127, 0, 0, last].into()).collect();
    plan.options.bind = addresses.clone();
    plan.options.requests_per_connection = Some(1);
    (plan.shape, plan.requests, plan.timeout) = (Loop::Closed { connections: 12 }, Some(600), Duration::from_secs(5));
    let result = load(&plan);
    assert_eq!((result.requests, result.good), (600, 600), "{result:?}");
    let mut from = BTreeMap::<IpAddr, u32>::new();
    for (_, peer) in seen.lock().expect("no panics").iter() {
        *from.entry(*peer).or_default() += 1;
    }
    assert_eq!(from.keys().copied().collect::<Vec<_>>(), addresses, "{from:?}");
}

#[test]
fn connections_use_the_addresses_in_turn() {
    // A server that never answers holds each connection, so each is counted once.
    let peers = Arc::new(Mutex::new(BTreeMap::<IpAddr, u32>::new()));
    let noted = Arc::clone(&peers);
    let server = Server::start(move |mut stream, _| {
        *noted.lock().expect("no panics").entry(stream.peer_addr().expect("connected").ip()).or_default() += 1;
        server::until_closed(&mut stream);
    });
    let mut plan = plan(server.address);
    (plan.shape, plan.requests, plan.threads) = (Loop::Closed { connections: 12 }, Some(12), Some(5));
    plan.options.bind = (2..5).map(|last| [127, 0, 0, last].into()).collect();
    load(&plan);
    assert_eq!(peers.lock().expect("no panics").values().copied().collect::<Vec<_>>(), [4, 4, 4]);
}

#[test]
fn an_address_of_another_host_is_an_error_without_load() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    // A documentation address (RFC 5737) belongs to nobody.
    plan.options.bind = vec![[192, 0, 2, 1].into()];
    let error = run(&plan, &Control::new()).expect_err("no such address");
    assert!(matches!(error, LoadError::Bind { .. }) && error.to_string().contains("192.0.2.1"), "{error}");
    plan.options.bind = vec!["::1".parse().expect("an address")];
    assert!(matches!(plan.check(), Err(PlanError::Bind(..))), "the families differ");
}
