//! Station `tasks`: processes and threads that cannot be started, by a cgroup's limit or that of a user. Silent where nothing was refused, or nobody suffers.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, CgroupTasks, CpuUse, Identity, Limits, Observation};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, StationState, Verdict};
use proptest::prelude::*;

use crate::stage::*;

const FOUND: &str = "tasks-exhausted";

/// The web server is in a cgroup with this limit, of which there are so many tasks; each second so many more cannot be started.
fn in_cgroup(path: &str, limit: Option<u64>, current: u64, refused_per_s: Option<u64>) -> Observation {
    let mut obs = healthy();
    let id = CgroupId::parse(&format!("v2:{path}")).unwrap();
    let paths: BTreeMap<String, String> = [(String::new(), format!("{path}/inner"))].into();
    obs.processes.get_mut(&42).unwrap().cgroups.push(0, Reading::Ok(paths));
    let series = obs.cgroup_tasks.entry(id).or_default();
    for second in 0..=11_u64 {
        let refused = refused_per_s.map(|per_s| 7_000 + per_s * second);
        series.push(second * 1_000_000, Reading::Ok(CgroupTasks { dir: format!("/sys/fs/cgroup{path}"), limit, current, refused }));
    }
    obs
}

/// The server belongs to this user, who may have so many tasks and has `others` beside the server's threads.
fn of_user(user: u32, limit: Option<u64>, threads: u32, others: u64) -> Observation {
    let mut obs = healthy();
    let process = obs.processes.get_mut(&42).unwrap();
    let identity: Identity = process.identity.last().unwrap().clone();
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(Identity { uid: user, ..identity }));
    process.limits = Default::default();
    process
        .limits
        .push(0, Reading::Ok(Limits { open_files_soft: Some(20_000), tasks_soft: limit, tasks_hard: limit, ..Limits::default() }));
    let points: Vec<(u64, CpuUse)> = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for second in 0..=11_u64 {
        let used = points.last().map(|(_, used)| used.clone()).unwrap_or_default();
        process.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { threads, ..used }));
    }
    obs.user_tasks.push(11_000_000, Reading::Ok([(user, u64::from(threads) + others)].into()));
    obs
}

/// Of its requests so many fail.
fn failing(mut obs: Observation, failed: u64) -> Observation {
    let load = obs.load.as_mut().unwrap();
    load.good -= failed;
    load.errors.closed_before_answer += failed;
    load.status = [(200, load.good)].into();
    obs
}

fn found(diagnosis: &Diagnosis) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == FOUND)
}

proptest! {
    #[test]
    fn what_a_cgroup_refuses_is_a_cause(limit in 2..100_000_u64, per_s in 100..10_000_u64, failed in 1_000..5_000_u64) {
        let told = told(&failing(in_cgroup("/system.slice/app.service", Some(limit), limit, Some(per_s)), failed));
        prop_assert_eq!((told.verdict, causes(&told)), (Verdict::Choked, vec![FOUND]));
        let finding = &told.findings[0];
        prop_assert!(finding.title.contains("/system.slice/app.service") && finding.confidence == Confidence::High, "{}", finding.title);
        let commands = format!("{:?}", finding.remedies[0].runtime);
        let wanted = format!("systemctl set-property --runtime app.service TasksMax={}", (2 * limit).next_power_of_two());
        prop_assert!(commands.contains(&wanted), "{}", commands);
    }

    #[test]
    fn a_limit_that_refuses_nothing_or_hurts_nobody_is_none(limit in 2..100_000_u64, per_s in 1..10_000_u64) {
        for (what, obs) in [
            ("nothing refused", failing(in_cgroup("/a", Some(limit), limit, Some(0)), 3_000)),
            ("nobody suffers", in_cgroup("/a", Some(limit), limit, Some(per_s))),
            ("no limit", failing(in_cgroup("/a", None, 500, Some(0)), 3_000)),
            ("room", failing(in_cgroup("/a", Some(10 * limit), limit, None), 3_000)),
        ] {
            prop_assert!(!found(&told(&obs)), "{}", what);
        }
    }

    #[test]
    fn a_user_who_has_as_many_as_may_be_is_a_cause_of_medium_confidence(threads in 1..500_u32, others in 0..500_u64) {
        let limit = u64::from(threads) + others;
        let told = told(&failing(of_user(1_000, Some(limit), threads, others), 3_000));
        prop_assert_eq!(causes(&told), vec![FOUND]);
        prop_assert_eq!(told.findings[0].confidence, Confidence::Medium);
        // Root is exempt, and so is who may have more, or has no limit.
        for (what, user, limit) in [("root", 0, Some(limit)), ("room", 1_000, Some(2 * limit + 4)), ("no limit", 1_000, None), ("the right given up", 1_000, Some(0))] {
            prop_assert!(!found(&crate::stage::told(&failing(of_user(user, limit, threads, others), 3_000))), "{}", what);
        }
    }
}

#[test]
fn a_limit_without_a_unit_is_written_to_its_file_and_what_was_not_counted_is_no_refusal() {
    let told = told(&failing(in_cgroup("/a;reboot.service", Some(40), 40, Some(500)), 3_000));
    let commands = format!("{:?}", told.findings[0].remedies[0]);
    assert!(commands.contains("> '/sys/fs/cgroup/a;reboot.service/pids.max'") && !commands.contains("systemctl set"), "{commands}");
    let uncounted = crate::stage::told(&failing(in_cgroup("/a", Some(40), 40, None), 3_000));
    let station = uncounted.path.iter().find(|station| station.station == "tasks").unwrap();
    assert_eq!((station.refused_per_s, station.state), (None, StationState::Refusing));
    assert_eq!(uncounted.findings[0].confidence, Confidence::Medium);
}
