//! How many workers a full pool should have: requests a second times the time that each holds a worker, and a reserve, with the arithmetic in the text. The
//! length of the queue is no demand.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{AccessLog, Listener, Observation};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Remedy;

use crate::stage::pool::{pool, ran};
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
