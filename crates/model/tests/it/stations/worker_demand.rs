//! How many workers a full pool should have: requests a second times the time that each holds a worker, and a reserve, with the arithmetic in the text. The
//! length of the queue is no demand.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{AccessLog, Listener, Observation, Socket, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Remedy;

use crate::stage::pool::{Served, pool, ran, selector, tcp};
use crate::stage::*;

/// Two workers, and a queue that grows from nothing to 290 in the window, as 20 requests a second come and 8 are answered: each takes 250 ms.
fn outage() -> Observation {
    let mut obs = pool(2, 2, 145);
    ran(&mut obs, 51..=52, 1_000_000);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    let (begin, end) = WINDOW;
    for (at, mut listeners) in points {
        let passed = at.clamp(begin, end) - begin;
        listeners[1].accept_queue = 10 + (120 * passed / (end - begin)) as u32;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    obs
}

/// The same, watched: the log of the web server has 20 requests a second, 8 of them answered.
fn watched() -> Observation {
    let mut obs = outage();
    (obs.load, obs.request.loaded) = (None, false);
    let seconds = (WINDOW.1 - WINDOW.0) / 1_000_000;
    let log = AccessLog {
        lines: 20 * seconds,
        has_status: true,
        status: [(200, 8 * seconds), (504, 12 * seconds)].into(),
        ..AccessLog::default()
    };
    obs.servers
        .entry(42)
        .or_default()
        .access_logs
        .entry("/var/log/nginx/access.log".into())
        .or_default()
        .push(11_000_000, Reading::Ok(log));
    obs
}

fn advice(obs: &Observation) -> Remedy {
    let diagnosis = told(obs);
    let all = diagnosis.findings.iter().flat_map(|finding| &finding.remedies);
    all.into_iter().find(|remedy| remedy.id == "raise-max-children").unwrap_or_else(|| panic!("{diagnosis:#?}")).clone()
}

#[test]
fn an_open_load_takes_its_rate_times_the_service_time() {
    let mut obs = outage();
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Open { rate_per_s: 20.0, connections: 1_000 };
    (load.good, load.requests, load.status) = (80, 80, [(200, 80)].into());
    let text = advice(&obs).text;
    assert!(text.contains("7 workers instead of 2") && text.contains("20/s x 250 ms = 5 at once, plus reserve: 7"), "{text}");
}

#[test]
fn an_outage_that_is_watched_is_not_sized_by_its_queue() {
    let text = advice(&watched()).text;
    // The requests that came, and those that wait in addition at the end of the window.
    let workers: u32 = text.split(" workers instead of 2").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((7..=12).contains(&workers) && text.contains("x 250 ms ="), "{text}");
}

#[test]
fn clients_that_wait_for_their_answers_stand_there_at_once() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.02);
    let text = advice(&obs).text;
    assert!(text.contains("65 workers instead of 5") && text.contains("5 requests were in service at once and 60 waited"), "{text}");
}

#[test]
fn no_more_are_advised_than_the_cores_carry() {
    let mut obs = pool(5, 5, 4_000);
    cpu(&mut obs, 0.5);
    let text = advice(&obs).text;
    assert!(text.contains("the cores have time for") && text.contains("plus reserve"), "{text}");
}

/// Connections of clients that gave up stand in the queue until a worker finds them closed.
#[test]
fn no_more_clients_ask_at_once_than_there_are() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.02);
    obs.load.as_mut().unwrap().shape = Loop::Closed { connections: 20 };
    let text = advice(&obs).text;
    assert!(text.contains("20 workers instead of 5") && text.contains("20 clients ask at once"), "{text}");
}

/// 230 connections come each second to four threads that take 20 ms for each, so that 30 more wait each second. Of the next sample they are others.
fn threads_too_few() -> Observation {
    selector(4, 230, |number| {
        // A sample may count a finished request and the next one of the same thread.
        let taken = if number % 10 == 3 { 5 } else { 4 };
        Served { taken, unread: 5 + 6 * number as u32, first: 46 * number, requests: 1 }
    })
}

#[test]
fn a_thread_that_only_accepts_is_none_of_those_that_serve() {
    let diagnosis = told(&threads_too_few());
    let title = &diagnosis.findings.first().unwrap_or_else(|| panic!("{diagnosis:#?}")).title;
    assert!(title.contains("all 4 threads of gunicorn"), "{title}");
    let pool = diagnosis.path.iter().find(|station| station.station == "worker-pool").unwrap();
    assert_eq!((pool.limit, pool.unit.as_str()), (Some(4.0), "threads"));
}

/// Of any number that varies a tenth is above some other. Threads that are all there is are taken as long as somebody waits; those of a server that has more of them come and go with what waits for
/// their lock, or for a core.
#[test]
fn numbers_in_service_that_vary_are_no_number_of_threads() {
    let all_taken = |threads: u32, taken: &dyn Fn(u64) -> u32| {
        let obs = selector(threads, 230, |number| Served { taken: taken(number), unread: 8, first: 46 * number, requests: 1 });
        told(&obs).findings.iter().any(|finding| finding.id == "worker-pool-exhausted" && finding.title.contains("are taken"))
    };
    for threads in [4, 9, 25, 60] {
        for churn in 0..=threads / 10 {
            let pool = |number: u64| threads - if number.is_multiple_of(3) { churn } else { 0 };
            assert!(all_taken(threads, &pool), "{threads} {churn}");
        }
        // Between a half and all of three quarters of them, without an order. Of few threads one more or less is what two counts differ by.
        let most = 3 * threads / 4;
        let varying = |number: u64| most - ((number * 7 + number * number * 3) % u64::from(most / 2 + 1)) as u32;
        assert!(threads == 4 || !all_taken(threads, &varying), "{threads}");
    }
}

#[test]
fn watched_threads_follow_from_what_comes_and_are_called_as_the_server_calls_them() {
    let text = advice(&threads_too_few()).text;
    assert!(text.contains("7 threads instead of 4 (--threads 7)") && text.contains("at once, plus reserve: 7"), "{text}");
}

/// As many always wait: on connections of their own, or on the same all the time. Neither says how many come: more may, once they are answered sooner.
#[test]
fn a_watched_queue_is_no_demand() {
    let leaving = selector(4, 200, |number| Served { taken: 4, unread: 200, first: 400 * number, requests: 1 });
    let staying = selector(4, 0, |number| Served { taken: 4, unread: 36, first: 0, requests: 2 + number });
    for queued in [leaving, staying] {
        let text = advice(&queued).text;
        assert!(text.contains("6 threads instead of 4") && text.contains("plus reserve: 6, and then measure again"), "{text}");
    }
}

/// The same server, which holds a thousand connections of clients that gave up and does not read them; those that come wait to be accepted.
#[test]
fn threads_are_the_cause_where_a_server_holds_as_many_connections_as_it_may() {
    let mut obs = threads_too_few();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.request_samples = Default::default();
    for second in 1..=10_u64 {
        let held = |n: u64| {
            let taken = n < 4;
            // The end of the client is a byte of the queue.
            Socket {
                state: TcpState::CloseWait,
                receive_queue: if taken { 1 } else { 101 },
                ..tcp(2_000 + n, (ip(SERVER_IP), 80), (ip("10.0.0.1"), 3_000 + n as u16))
            }
        };
        view.sockets.push(second * 1_000_000, Reading::Ok((0..1_000).map(held).collect()));
    }
    let points: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[0].accept_queue = 100 + (at / 40_000) as u32;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let diagnosis = told(&obs);
    let title = &diagnosis.findings.first().unwrap_or_else(|| panic!("{diagnosis:#?}")).title;
    assert!(title.contains("all 4 threads of gunicorn"), "{title}");
}

/// One report has one time for which a request holds a worker: by the answers that workers gave. What the gateway answers for silent workers they did not, and an error of the
/// page is an answer.
#[test]
fn a_report_has_one_service_time() {
    for (status, time) in [(504, "250 ms"), (404, "100 ms")] {
        let mut obs = watched();
        let logs = &mut obs.servers.get_mut(&42).unwrap().access_logs;
        for log in logs.values_mut() {
            let mut read = log.last().unwrap().clone();
            let failed = read.status.remove(&504).unwrap();
            read.status.insert(status, failed);
            *log = Default::default();
            log.push(11_000_000, Reading::Ok(read));
        }
        let diagnosis = told(&obs);
        let found = diagnosis.findings.iter().find(|finding| finding.id == "worker-pool-exhausted").unwrap();
        assert!(found.explanation.contains(&format!("holds one for {time}")), "{status}: {}", found.explanation);
        let text = advice(&obs).text;
        assert!(text.contains(&format!("x {time} =")) || text.contains("time for"), "{status}: {text}");
    }
}
