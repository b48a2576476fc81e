//! Finding `collects-garbage`: threads with the names of collectors that take the time of a program whose requests wait.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Observation, ThreadName, ThreadTimes};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Role};

use super::{at_random, under_load};
use crate::stage::profiled::{Counted, profile};
use crate::stage::*;

/// A thread with this name runs for this share of the time, and is ready for another.
#[derive(Clone, Copy)]
struct Thread(&'static str, f64, f64);

/// A server with these threads, whose requests wait inside it.
fn with(threads: &[Thread]) -> Observation {
    let mut obs = under_load(40_000, &|_| at_random(100, 1_000));
    let view = obs.processes.get_mut(&42).unwrap();
    view.cpu = Default::default();
    let ids = || (42..).zip(threads);
    for second in 0..=11_u64 {
        let ns = |share: f64| (second as f64 * 1e9 * share) as u64;
        let thread_times: Vec<ThreadTimes> =
            ids().map(|(id, Thread(_, ran, delayed))| ThreadTimes { id, run_ns: ns(*ran), delay_ns: ns(*delayed) }).collect();
        let (run_ns, threads) = (Some(thread_times.iter().map(|times| times.run_ns).sum()), thread_times.len() as u32);
        view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times, run_ns, threads, ..CpuUse::default() }));
    }
    for at_us in [0, 11_000_000] {
        let names = ids().map(|(id, Thread(name, ..))| ThreadName { id, name: (*name).to_owned() }).collect();
        view.thread_names.push(at_us, Reading::Ok(names));
    }
    obs
}

fn found(diagnosis: &Diagnosis) -> Option<(Role, String)> {
    let found = diagnosis.findings.iter().find(|finding| finding.id == "collects-garbage")?;
    Some((found.role, found.title.clone()))
}

const WORKERS: [Thread; 2] = [Thread("java", 0.0, 0.0), Thread("pool-1-thread-1", 0.1, 0.0)];

#[test]
fn a_program_that_stands_still_for_its_collectors_is_the_cause_whatever_its_runtime() {
    for collectors in [
        vec![
            Thread("GC Thread#0", 0.5, 0.1),
            Thread("GC Thread#1", 0.1, 0.1),
            Thread("G1 Conc#0", 0.1, 0.0),
            Thread("VM Thread", 0.1, 0.0),
        ],
        vec![Thread("VM Thread", 0.6, 0.0)],
        vec![Thread("GC task thread#", 0.6, 0.0)],
        vec![Thread(".NET Server GC", 0.6, 0.0)],
    ] {
        let diagnosis = told(&with(&[&WORKERS[..], &collectors].concat()));
        let (role, title) = found(&diagnosis).unwrap_or_else(|| panic!("{}: {}", collectors[0].0, diagnosis.summary));
        assert_eq!(role, Role::Cause, "{}", collectors[0].0);
        assert!(title.ends_with("stands still for 60 % of the time to collect garbage"), "{title}");
    }
}

#[test]
fn a_usual_share_and_collectors_beside_the_others_are_silent() {
    for collectors in [
        // The goal of the virtual machine, and what a tenth of throughput would need.
        vec![Thread("GC Thread#0", 0.077, 0.0)],
        vec![Thread("GC Thread#0", 0.15, 0.0)],
        // Beside the program's threads, on cores with time left.
        vec![Thread("G1 Conc#0", 0.6, 0.0), Thread("GC Thread#0", 0.02, 0.0)],
        // Not only collections are work of the whole machine, where others collect.
        vec![Thread("VM Thread", 0.6, 0.0), Thread("GC Thread#0", 0.01, 0.0)],
        vec![Thread("worker", 0.6, 0.0)],
    ] {
        let diagnosis = told(&with(&[&WORKERS[..], &collectors].concat()));
        assert_eq!(found(&diagnosis), None, "{}", collectors[0].0);
    }
    // Not read is not none, and no cause either.
    let mut unnamed = with(&[&WORKERS[..], &[Thread("GC Thread#0", 0.6, 0.0)]].concat());
    unnamed.processes.get_mut(&42).unwrap().thread_names = Default::default();
    assert_eq!(found(&told(&unnamed)), None);
}

#[test]
fn where_the_cores_are_full_the_collectors_part_of_them_is_lost() {
    for (share, expected) in [(0.4, true), (0.3, true), (0.1, false)] {
        // One core for the server, full.
        let mut obs = with(&[&WORKERS[..], &[Thread("G1 Conc#0", share, 0.0), Thread("pool-1-thread-2", 0.9 - share, 0.5)]].concat());
        cpu(&mut obs, 1.0);
        let title = found(&told(&obs)).map(|(_, title)| title);
        assert_eq!(title.is_some(), expected, "{share}: {title:?}");
        assert!(title.is_none_or(|title| title.contains("of the time of its cores on collecting garbage")), "{share}");
    }
}

/// Where the threads of the program collect in turn, a profile shows it; only what goes beyond what Go's runtime gives to it is lost.
#[test]
fn functions_that_collect_are_the_cause_beyond_their_usual_part_of_full_cores() {
    for (collects, expected) in [(40, false), (80, false), (200, true), (320, true)] {
        let mut obs = with(&[Thread("app", 0.9, 0.5), Thread("app", 0.1, 0.0)]);
        obs.processes.get_mut(&42).unwrap().thread_names = Default::default();
        cpu(&mut obs, 1.0);
        let counted: &[Counted<'_>] =
            &[(42, 1, "application", &["garbage-collection"], collects), (42, 1, "application", &[], 400 - collects)];
        profile(&mut obs, counted);
        let diagnosis = told(&obs);
        let title = found(&diagnosis).map(|(_, title)| title);
        assert_eq!(title.is_some(), expected, "{collects}: {title:?}, {}", diagnosis.summary);
        let says = |words: &str| diagnosis.findings.iter().flat_map(|found| &found.evidence).any(|proof| proof.text.contains(words));
        assert_eq!(says("Functions that collect garbage"), expected, "{collects}");
        // On idle cores it takes nothing from the requests.
        let mut idle = with(&[Thread("app", 0.2, 0.0)]);
        idle.processes.get_mut(&42).unwrap().thread_names = Default::default();
        cpu(&mut idle, 0.3);
        profile(&mut idle, counted);
        assert_eq!(found(&told(&idle)), None, "{collects}");
    }
}
