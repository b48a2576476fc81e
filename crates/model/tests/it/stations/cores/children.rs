//! CPU time of processes that a server starts and that end again: it is the server's, and starting them may be what takes the cores.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{BusyProcess, CoreTimes, CpuProfile, CpuTimes, CpuUse, Identity, Observation, OpenFiles, ProcessView};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{LimitedBy, Verdict};
use proptest::prelude::*;

use crate::stage::profiled::profile;
use crate::stage::*;

/// The process that serves.
const SERVER_PID: u32 = 42;

/// nginx uses this share of its core, and children that it waits for this one; another program has the rest of what is busy.
#[derive(Debug, Clone, Copy)]
struct Forking {
    own: f64,
    children: f64,
    others: f64,
}

impl Forking {
    /// `counted`: whether the kernel's count of ended children was read.
    fn observed(self, counted: bool) -> Observation {
        let mut obs = healthy();
        obs.cpu = Default::default();
        let process = obs.processes.get_mut(&SERVER_PID).unwrap();
        process.cpu = Default::default();
        for second in 0..=11_u64 {
            let ticks = |share: f64| (second as f64 * 100.0 * share).round() as u64;
            let busy = self.own + self.children + self.others;
            let own = CoreTimes { user: ticks(busy), idle: ticks(1.0 - busy), ..CoreTimes::default() };
            let client = CoreTimes { user: ticks(0.3), idle: ticks(0.7), ..CoreTimes::default() };
            obs.cpu.push(second * 1_000_000, Reading::Ok(CpuTimes { cores: vec![(0, client), (1, own)] }));
            let run_ns = Some((second as f64 * 1e9 * self.own) as u64);
            let reaped_ticks = counted.then(|| 5_000 + ticks(self.children));
            let used = CpuUse { user_ticks: ticks(self.own), reaped_ticks, run_ns, run_delay_ns: run_ns, threads: 1, ..CpuUse::default() };
            process.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        obs
    }
}

/// Whether the report says that other programs used the servers' cores.
fn tells_of_others(obs: &Observation) -> bool {
    told(obs).warnings.iter().any(|note| note.contains("Other programs"))
}

proptest! {
    #[test]
    fn what_children_used_is_the_servers(own in 0.05..0.4_f64, children in 0.2..0.55_f64) {
        let forking = Forking { own, children, others: 0.0 };
        prop_assert!(!tells_of_others(&forking.observed(true)));
        // What was not read is nobody's.
        prop_assert!(tells_of_others(&forking.observed(false)));
        let beside = Forking { own, children: 0.0, others: children };
        prop_assert!(tells_of_others(&beside.observed(true)));
    }

    /// A worker ends in the middle: the kernel then counts all of its life at once, with what it used before the window.
    #[test]
    fn what_a_child_used_before_it_was_watched_does_not_count(before in 1_000..100_000_u64, rate in 5..40_u64) {
        let mut obs = Forking { own: 0.2, children: 0.0, others: 0.3 }.observed(true);
        let mut child = ProcessView::default();
        let identity = Identity { pid: 43, parent: SERVER_PID, comm: "nginx".into(), cpus_allowed: vec![1], ..Identity::default() };
        child.identity.push(0, Reading::Ok(identity));
        child.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: vec![100] }));
        for second in 0..=6_u64 {
            let used = CpuUse { user_ticks: before + second * rate, threads: 1, ..CpuUse::default() };
            child.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        child.cpu.push(7_000_000, Reading::Absent(Lack::new("the process ended".to_owned())));
        obs.processes.insert(43, child);
        let parent = obs.processes.get_mut(&SERVER_PID).unwrap();
        let points: Vec<(u64, CpuUse)> = parent.cpu.points().to_vec();
        parent.cpu = Default::default();
        for (at_us, used) in points {
            let reaped = if at_us >= 7_000_000 { before + 7 * rate } else { 0 };
            parent.cpu.push(at_us, Reading::Ok(CpuUse { reaped_ticks: Some(5_000 + reaped), ..used }));
        }
        // The other program has 30 %, less what the child used of it in the window: 2 to 26 %.
        let least = 0.3 - 0.07 * rate as f64 / 10.0;
        prop_assume!((least - 0.15).abs() > 0.03);
        prop_assert_eq!(tells_of_others(&obs), least > 0.15, "{}", least);
    }
}

/// nginx fills its core, and was sampled: parts of (process, layer, aspects, began meanwhile, samples).
fn sampled(parts: &[(u32, &str, &[&str], bool, u64)], starts: Option<&[(u32, u64)]>) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.99);
    let counted: Vec<_> = parts.iter().map(|(pid, layer, aspects, _, samples)| (*pid, 1, *layer, *aspects, *samples)).collect();
    profile(&mut obs, &counted);
    let mut taken: CpuProfile = obs.profile.last().unwrap().clone();
    for (part, (.., is_started, _)) in taken.parts.iter_mut().zip(parts) {
        part.is_started = *is_started;
    }
    taken.starts = starts.map(|starts| starts.iter().copied().collect());
    obs.profile = Default::default();
    obs.profile.push(10_600_000, Reading::Ok(taken));
    obs
}

const START: &[&str] = &["process-start"];

#[test]
fn processes_that_are_started_all_the_time_are_a_cause() {
    let parts: &[(u32, &str, &[&str], bool, u64)] = &[
        (SERVER_PID, "kernel-other", START, false, 60),
        (SERVER_PID, "page-fault", &[], true, 80),
        (SERVER_PID, "application", &[], true, 260),
    ];
    let found = told(&sampled(parts, Some(&[(SERVER_PID, 40_000)])));
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec!["process-starts-hot"]));
    let finding = &found.findings[0];
    assert_eq!(finding.title, "nginx starts processes all the time, which takes 35 % of the time of core 1");
    assert!(finding.evidence.iter().any(|proof| proof.text.contains("10,000 processes a second")), "{:?}", finding.evidence);
    assert_eq!(finding.remedies.len(), 1);
}

#[test]
fn threads_others_processes_and_what_was_not_read_are_none() {
    let parts: &[(u32, &str, &[&str], bool, u64)] =
        &[(SERVER_PID, "kernel-other", START, false, 140), (SERVER_PID, "application", &[], false, 260)];
    let kept: &[(u32, &str, &[&str], bool, u64)] =
        &[(SERVER_PID, "page-fault", &[], false, 140), (SERVER_PID, "application", &[], false, 260)];
    for (what, parts, starts) in [
        ("threads", parts, Some(&[][..])),
        ("another's", parts, Some(&[(7, 40_000)][..])),
        ("not read", parts, None),
        ("page faults of what stays", kept, Some(&[(SERVER_PID, 3)][..])),
    ] {
        let found = told(&sampled(parts, starts));
        assert_eq!((found.verdict, found.limited_by), (Verdict::Healthy, Some(LimitedBy::Cpu)), "{what}");
        assert!(found.improvements.is_empty(), "{what}: {:?}", found.improvements);
    }
}

/// A process that this one started and that stays, as a database has one for each connection that is kept.
fn staying(parents: &[u32], share: f64, until_s: u64) -> Observation {
    let mut obs = Forking { own: 0.1, children: 0.0, others: share }.observed(true);
    for second in 0..=11_u64 {
        let grown_ticks = if second == 0 { 0 } else { (100.0 * share).round() as u64 };
        let process = BusyProcess {
            pid: 77,
            start_ticks: 5,
            comm: "postgres".into(),
            core: Some(1),
            parents: parents.to_vec(),
            grown_ticks,
            sockets: Some(vec![9_000]),
            ..BusyProcess::default()
        };
        let all = if second <= until_s { vec![process] } else { Vec::new() };
        obs.busy_processes.push(second * 1_000_000, Reading::Ok(all));
    }
    obs
}

#[test]
fn processes_that_stay_are_none_that_are_started_all_the_time() {
    // Without a profile nothing says what ended children used their time for.
    let of_ended = told(&Forking { own: 0.1, children: 0.85, others: 0.0 }.observed(true));
    assert!(of_ended.summary.contains("processes"), "{}", of_ended.summary);
    let of_staying = told(&staying(&[SERVER_PID, 1], 0.85, 11));
    assert_eq!((of_staying.verdict, of_staying.limited_by), (Verdict::Healthy, Some(LimitedBy::Cpu)), "{}", of_staying.summary);
}

proptest! {
    #[test]
    fn what_a_child_uses_that_stays_is_its_servers(share in 0.2..0.85_f64) {
        prop_assert!(!tells_of_others(&staying(&[SERVER_PID, 1], share, 11)));
        prop_assert!(!tells_of_others(&staying(&[600, SERVER_PID, 1], share, 11)), "a child's child");
        prop_assert!(tells_of_others(&staying(&[1], share, 11)), "another's");
        // One that ended is counted once its parent has waited for it, and here none was.
        prop_assert!(tells_of_others(&staying(&[SERVER_PID, 1], share, 8)));
    }
}
