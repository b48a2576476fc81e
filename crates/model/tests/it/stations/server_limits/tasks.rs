//! Station `tasks`: processes and threads that cannot be started, by a cgroup's limit or that of a user. Silent where nothing was refused, or nobody suffers.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupId, CgroupTasks, CpuUse, Identity, Limits, Mappings, Observation, TaskLimits};
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

/// The host has so many tasks, and these limits. The server's threads are 3 and 4 by turns if they change.
fn on_host(limits: TaskLimits, changes: bool) -> Observation {
    let mut obs = of_user(0, None, 3, 0);
    let process = obs.processes.get_mut(&42).unwrap();
    let points: Vec<(u64, CpuUse)> = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for (place, (at_us, used)) in points.into_iter().enumerate() {
        let threads = 3 + u32::from(changes && place % 2 == 1);
        process.cpu.push(at_us, Reading::Ok(CpuUse { threads, ..used }));
        obs.task_limits.push(at_us, Reading::Ok(limits));
    }
    obs
}

/// The server's process has so many mappings from this second on, and 200 before.
fn with_mappings(count: u64, limit: u64, since_s: u64) -> Observation {
    let mut obs = healthy();
    for second in 0..=11_u64 {
        let count = if second < since_s { 200 } else { count };
        obs.processes.get_mut(&42).unwrap().mappings.push(second * 1_000_000, Reading::Ok(Mappings { count, limit, threads: 90 }));
    }
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

/// The first finding's title and the commands of its first remedy.
fn words(diagnosis: &Diagnosis) -> (String, String) {
    let finding = &diagnosis.findings[0];
    (finding.title.clone(), format!("{:?}", finding.remedies[0].runtime))
}

proptest! {
    #[test]
    fn a_host_that_has_as_many_tasks_as_it_may_is_a_cause(limit in 1_000..2_000_000_u64, low in 0..300_u64) {
        let room = TaskLimits { tasks: limit, threads_max: 10 * limit, pid_max: 10 * limit, low_pids: low, is_first: true };
        let of_host = TaskLimits { threads_max: limit, ..room };
        let of_ids = TaskLimits { pid_max: limit + 300 - low, ..room };
        for (limits, key, twice) in [(of_host, "kernel.threads-max", 2 * limit), (of_ids, "kernel.pid_max", 2 * (limit + 300 - low))] {
            let told = told(&failing(on_host(limits, true), 3_000));
            prop_assert_eq!((causes(&told), told.findings[0].confidence), (vec![FOUND], Confidence::Medium));
            let (_, commands) = words(&told);
            let most = if key == "kernel.pid_max" { 1 << 22 } else { u64::MAX };
            prop_assert!(commands.contains(&format!("sysctl -w {key}={}", twice.next_power_of_two().min(most))), "{}", commands);
            for (what, obs) in [
                ("a server that starts none", failing(on_host(limits, false), 3_000)),
                ("nobody suffers", on_host(limits, true)),
                ("room", failing(on_host(TaskLimits { tasks: limit / 2, ..limits }, true), 3_000)),
            ] {
                prop_assert!(!found(&crate::stage::told(&obs)), "{}", what);
            }
        }
    }

    #[test]
    fn mappings_that_are_used_up_are_a_cause(limit in 1_000..1_000_000_u64, free in 0..3_u64, since_s in 0..7_u64) {
        let told = told(&failing(with_mappings(limit + 1 - free, limit, since_s), 3_000));
        prop_assert_eq!((causes(&told), told.findings[0].confidence), (vec![FOUND], Confidence::Medium));
        let (title, commands) = words(&told);
        prop_assert!(title.contains("process 42 may have") && commands.contains("sysctl -w vm.max_map_count="), "{} {}", title, commands);
        for (what, obs) in [
            ("nobody suffers", with_mappings(limit, limit, since_s)),
            ("room", failing(with_mappings(limit * 98 / 100, limit, since_s), 3_000)),
            ("no longer", failing(with_mappings(200, limit, 12), 3_000)),
        ] {
            prop_assert!(!found(&crate::stage::told(&obs)), "{}", what);
        }
    }
}

/// In another pid namespace the host's tasks say nothing of its ids: those that /proc shows are counted.
#[test]
fn ids_of_another_pid_namespace_are_counted_by_its_own_tasks() {
    let limits = TaskLimits { tasks: 5_000, threads_max: 200_000, pid_max: 2_000, low_pids: 280, is_first: false };
    let with_others = |others: u64| {
        let mut obs = failing(on_host(limits, true), 3_000);
        obs.user_tasks = Default::default();
        obs.user_tasks.push(11_000_000, Reading::Ok([(0, others), (33, 4)].into()));
        told(&obs)
    };
    let full = with_others(1_980);
    assert_eq!(causes(&full), [FOUND]);
    assert!(full.findings[0].title.contains("there are 2,000 process ids"), "{}", full.findings[0].title);
    assert!(!found(&with_others(1_200)));
    let mut uncounted = failing(on_host(limits, true), 3_000);
    uncounted.user_tasks = Default::default();
    assert!(!found(&told(&uncounted)), "what was not counted is not the host's number");
}
