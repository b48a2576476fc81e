//! What servers say of themselves on their status pages: connections that nginx dropped, and workers that php-fpm counts as taken. Each with
//! its silent twin.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::observation::{NginxStatus, Observation, PhpFpmStatus, ServerStatus};
use chokepoint_model::path::discover;
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::stations::Context;

use crate::stage::pool::php_pool;
use crate::stage::*;

/// nginx's page told these (accepts, handled) at these times.
fn nginx(points: &[(u64, u64, u64)]) -> Observation {
    let mut obs = healthy();
    for &(at_us, accepts, handled) in points {
        let counts = NginxStatus { accepts, handled, ..NginxStatus::default() };
        let page = obs.servers.entry(42).or_default().status.entry("nginx".into()).or_default();
        page.push(at_us, Reading::Ok(ServerStatus::Nginx(counts)));
    }
    obs
}

fn dropped(obs: &Observation) -> Option<u64> {
    let (path, words) = (discover(obs), Catalogue::english());
    Context::new(obs, &path, &words).dropped_accepts(&path.tiers[0])
}

#[test]
fn what_nginx_accepted_and_closed_at_once_is_counted_over_the_window() {
    let (begin, end) = WINDOW;
    assert_eq!(dropped(&nginx(&[(begin - 1, 100, 90), (begin + 5, 150, 130), (end + 1, 400, 300)])), Some(90), "10 were dropped before");
    assert_eq!(dropped(&nginx(&[(begin - 1, 100, 90), (end + 1, 400, 390)])), Some(0));
    assert_eq!(dropped(&nginx(&[(begin - 1, 100, 90), (end + 1, 40, 40)])), None, "it was started anew");
    assert_eq!(dropped(&nginx(&[(begin - 1, 100, 90)])), None, "one reading says nothing of the window");
    assert_eq!(dropped(&healthy()), None);
    let mut lacking = nginx(&[(begin - 1, 100, 90)]);
    let page = lacking.servers.get_mut(&42).unwrap().status.get_mut("nginx").unwrap();
    page.push(end, Reading::Absent(Lack::new("no answer for 500 ms")));
    assert_eq!(dropped(&lacking), None, "an answer that was not had is not zero");
}

#[test]
fn a_page_is_told_among_the_readings() {
    let mut obs = nginx(&[]);
    let why = "127.0.0.1:80: it answered with status 403";
    obs.servers.entry(42).or_default().status.entry("nginx".into()).or_default().push(1, Reading::Absent(Lack::new(why)));
    let diagnosis = told(&obs);
    let page = diagnosis.readings.iter().find(|reading| reading.source == "server_status nginx (pid 42)").unwrap();
    assert_eq!(page.why.as_deref(), Some(why));
}

/// The page of the pool, asked each second, counts this many of five workers as active, and this many times that it wanted more.
fn counted(obs: &mut Observation, item: &str, active: u64, reached: impl Fn(u64) -> u64) {
    for second in 0..=11_u64 {
        let counts = PhpFpmStatus { active, total: 5, max_children_reached: reached(second), ..PhpFpmStatus::default() };
        let page = obs.servers.entry(50).or_default().status.entry(item.to_owned()).or_default();
        page.push(second * 1_000_000, Reading::Ok(ServerStatus::PhpFpm(counts)));
    }
}

#[test]
fn the_pools_own_page_confirms_what_connections_show_and_nothing_else() {
    let proofs = |obs: &Observation| -> Vec<String> {
        let diagnosis = told(obs);
        assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
        let page = diagnosis.findings[0].evidence.iter().filter(|proof| proof.source == "pm.status_path (www)");
        page.map(|proof| proof.text.clone()).collect()
    };
    let mut full = php_pool(5, "dynamic", 5, true);
    counted(&mut full, "pool www", 5, |second| 1 + second);
    let told_both = proofs(&full);
    assert!(told_both.len() == 2 && told_both[0].contains("all 5 workers") && told_both[1].contains("needed more"), "{told_both:?}");
    for (item, active, reached) in [("own pool www", 4, 7), ("pool www", 4, 7), ("pool other", 5, 7)] {
        let mut twin = php_pool(5, "dynamic", 5, true);
        counted(&mut twin, item, active, |_| reached);
        assert_eq!(proofs(&twin), [""; 0], "{item}: a count from long before the window says nothing");
    }
}

#[test]
fn a_page_that_counts_all_workers_as_active_is_no_finding_where_nobody_waits() {
    let mut obs = php_pool(5, "static", 5, false);
    counted(&mut obs, "pool www", 5, |_| 0);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.iter_mut().for_each(|listener| listener.accept_queue = 0);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    assert_eq!(causes(&told(&obs)), [""; 0]);
}
