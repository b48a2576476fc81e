//! Workers with processes that only work for them (a process pool): these are no workers, though they have the listener open.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Observation, OpenFiles};
use chokepoint_model::reading::Reading;
use proptest::prelude::*;

use crate::stage::pool::{pool, process};
use crate::stage::*;

/// A pool of so many workers, all taken, each with so many children, which hold what `holds` gives for the worker and their place.
fn with_children(workers: u32, children: u32, holds: impl Fn(u32, u32) -> Vec<u64>) -> Observation {
    let mut obs = pool(workers, workers, 30);
    let served = obs.processes[&51].cpu.clone();
    for worker in 0..workers {
        for place in 0..children {
            let pid = 1_000 + worker * children + place;
            let sockets: Vec<u64> = [200].into_iter().chain(holds(worker, place)).collect();
            process(&mut obs, pid, 51 + worker, "php-fpm8.2", &sockets);
            obs.processes.get_mut(&pid).unwrap().cpu = served.clone();
        }
    }
    obs
}

fn workers_named(obs: &Observation) -> Option<String> {
    let found = told(obs);
    let pool = found.findings.iter().find(|finding| finding.id == "worker-pool-exhausted")?;
    Some(pool.title.clone())
}

proptest! {
    #[test]
    fn children_without_connections_are_no_workers(workers in 3..9_u32, children in 1..9_u32) {
        let title = workers_named(&with_children(workers, children, |_, _| vec![]));
        prop_assert!(title.as_ref().is_some_and(|title| title.contains(&format!("all {workers} workers"))), "{:?}", title);
    }

    /// What a child has of its parent's connections since it was made is not its own.
    #[test]
    fn inherited_connections_make_no_workers(workers in 3..9_u32, children in 2..9_u32) {
        let mut obs = with_children(workers, children, |worker, _| vec![2_000 + u64::from(worker)]);
        for worker in 0..workers {
            let files = &mut obs.processes.get_mut(&(51 + worker)).unwrap().files;
            files.push(1_000_000, Reading::Ok(OpenFiles { count: 9, sockets: vec![200, 1_000 + u64::from(worker), 2_000 + u64::from(worker)] }));
        }
        let title = workers_named(&obs);
        prop_assert!(title.as_ref().is_some_and(|title| title.contains(&format!("all {workers} workers"))), "{:?}", title);
    }

    /// The twin: those that the master's children started serve, and have the connections.
    #[test]
    fn children_with_connections_are_the_workers(workers in 2..5_u32, children in 2..5_u32) {
        let all = workers * children;
        let mut obs = pool(all, all, 30);
        let served = obs.processes[&51].cpu.clone();
        for n in 0..all {
            let view = obs.processes.remove(&(51 + n)).unwrap();
            let held = view.files.last().unwrap().sockets.clone();
            process(&mut obs, 1_000 + n, 51 + n % workers, "php-fpm8.2", &held);
            obs.processes.get_mut(&(1_000 + n)).unwrap().cpu = served.clone();
        }
        for n in 0..workers {
            process(&mut obs, 51 + n, 50, "php-fpm8.2", &[200]);
        }
        let title = workers_named(&obs);
        prop_assert!(title.as_ref().is_some_and(|title| title.contains(&format!("all {all} workers"))), "{:?}", title);
    }
}
