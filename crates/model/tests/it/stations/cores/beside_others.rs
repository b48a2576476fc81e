//! Servers on cores that other programs fill: what the servers themselves spend their time on is as good a reason as these programs, and threads that wait for something else have no use for cores.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Identity, Observation, ProcessView, RequestSocket, Syscall, ThreadCalls};
use chokepoint_model::reading::Reading;
use proptest::prelude::*;

use super::taken::{Core, STARVED, program};
use crate::stage::profiled::profile;
use crate::stage::*;
use crate::stations::waiting::{client, sampled};

/// The observation with these requests in each sample, and the cores as before.
fn with_requests(obs: Observation, requests: &[RequestSocket]) -> Observation {
    let cpu = obs.cpu.clone();
    let mut obs = sampled(obs, &|_| requests.to_vec());
    obs.cpu = cpu;
    obs.load.as_mut().unwrap().shape = chokepoint_model::load::Loop::Closed { connections: requests.len() as u32 };
    obs
}

/// A server that starts a process for each of these requests, met once each second in this state, on a core that another program has for the most part.
fn starting(requests: u32, state: char) -> Observation {
    let core = Core { ran: 0.02, delayed: 0.02, others: 0.75, stolen: 0.0 };
    let mut obs = core.observed(&[program(77, 0.75)]);
    let points: Vec<(u64, CpuUse)> = obs.processes[&42].cpu.points().to_vec();
    let times = obs.cpu.points().to_vec();
    obs.cpu = Default::default();
    for (at_us, mut cores) in times {
        cores.cores[1].1.user = at_us / 10_000;
        cores.cores[1].1.idle = 0;
        obs.cpu.push(at_us, Reading::Ok(cores));
    }
    let server = obs.processes.get_mut(&42).unwrap();
    server.cpu = Default::default();
    for (at_us, used) in points {
        // What they used counts once they ended.
        let reaped_ticks = Some(at_us * 23 / 1_000_000);
        server.cpu.push(at_us, Reading::Ok(CpuUse { reaped_ticks, state: 'S', ..used }));
    }
    for second in 0..11_u32 {
        for number in 0..requests {
            let mut child = ProcessView::default();
            let pid = 1_000 + 100 * second + number;
            let identity = Identity { pid, parent: 42, comm: "php-cgi".into(), cpus_allowed: vec![1], ..Identity::default() };
            let at_us = u64::from(second) * 1_000_000 + 200_000;
            child.identity.push(at_us, Reading::Ok(identity));
            child.cpu.push(at_us, Reading::Ok(CpuUse { state, threads: 1, ..CpuUse::default() }));
            obs.processes.insert(pid, child);
        }
    }
    let inside: Vec<RequestSocket> = (0..requests).map(|number| client(number as u16, 400, true)).collect();
    with_requests(obs, &inside)
}

#[test]
fn requests_stand_at_the_processes_that_were_started_for_them() {
    let found = told(&starting(12, 'R'));
    assert_eq!(causes(&found), ["cores-taken-by-others"], "{}", found.summary);
    let found = told(&starting(12, 'S'));
    assert_ne!(causes(&found), ["cores-taken-by-others"], "they sleep: {}", found.summary);
}

/// Eight threads, of which seven serve one connection each: of these so many wait for a lock or for work. A third of the requests waits for one of them, the others are sent.
fn threads(locked: u32) -> Observation {
    let mut obs = STARVED.observed(&[program(77, 0.8)]);
    let process = obs.processes.get_mut(&42).unwrap();
    let points: Vec<(u64, CpuUse)> = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for (at_us, used) in points {
        process.cpu.push(at_us, Reading::Ok(CpuUse { threads: 8, ..used }));
        let threads = ThreadCalls { looked: 7, locked, untimed: locked, ..ThreadCalls::default() };
        process.syscall.push(at_us, Reading::Ok(Syscall { call: Some("accept4".into()), threads, ..Syscall::default() }));
    }
    let of = |number: u16| match number % 3 {
        0 => RequestSocket { receive_queue: 100, ..client(number, 40, true) },
        _ => RequestSocket { send_queue: 100_000, ..client(number, 40, true) },
    };
    with_requests(obs, &(0..12).map(of).collect::<Vec<_>>())
}

#[test]
fn threads_that_slow_clients_hold_have_no_use_for_cores() {
    let named = |locked| causes(&told(&threads(locked))).contains(&"cores-taken-by-others");
    assert!(!named(0), "each holds one that reads slowly");
    assert!(named(7), "none is held");
}

proptest! {
    /// Whatever other programs use: the part of the servers' own time that could go away is a cause, and comes first if it gives more than these programs' cores.
    #[test]
    fn the_servers_own_work_is_a_reason_beside_other_programs(percent in 15_u64..95, others in 0_u64..2_000) {
        prop_assume!(percent.abs_diff(76) > 3);
        let mut obs = STARVED.observed(&[program(77, 0.8)]);
        let parts: &[(u32, u32, &str, &[&str], u64)] = &[
            (42, 1, "interpreter", &["script-compile"], 5 * percent),
            (42, 1, "application", &[], 500 - 5 * percent),
            (77, 1, "application", &[], others),
        ];
        profile(&mut obs, parts);
        let found = told(&obs);
        // Without them the server would run 4.2 times as much: as without 76 % of its own work.
        let expected: &[&str] = match percent {
            77.. => &["opcode-cache-off", "cores-taken-by-others"],
            _ => &["cores-taken-by-others", "opcode-cache-off"],
        };
        prop_assert_eq!(causes(&found), expected, "{} {}", percent, found.summary);
        let part = format!("{percent} % of the time that other programs leave");
        prop_assert!(found.findings.iter().any(|finding| finding.title.contains(&part)), "{}", part);
    }

    /// What no setting removes is told with its number, and with samples that suffice to say so.
    #[test]
    fn the_servers_own_computing_is_told_beside_other_programs(samples in 5_u64..400, percent in 0_u64..=100) {
        let mut obs = STARVED.observed(&[program(77, 0.8)]);
        let own = samples * percent / 100;
        profile(&mut obs, &[(42, 1, "interpreter", &[], own), (42, 1, "scheduler", &[], samples - own), (77, 1, "application", &[], 300)]);
        let found = told(&obs);
        prop_assert_eq!(causes(&found), ["cores-taken-by-others"]);
        let tells = found.findings[0].explanation.contains("The work of nginx itself counts as well");
        prop_assert!(!tells || samples >= 30, "too few samples");
        prop_assert!(tells || samples < 100, "enough of them: some layer has half of the time");
        let small = found.profile.and_then(|profile| profile.no_bound).is_some_and(|told| told.starts_with("No part of"));
        prop_assert!(!small, "that would be false");
    }
}
