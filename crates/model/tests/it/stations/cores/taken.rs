//! Cores that other programs take: named where they keep a server off its core, and silent for the server's own work, its clients, and whoever is not seen.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{
    BusyProcess, CgroupCpu, CgroupId, CoreTimes, CpuTimes, CpuUse, Observation, RealTime, RealTimePolicy, RequestSocket, Socket,
    SocketAddress, TcpState, ThreadTimes, WireAnswers,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Verdict};
use proptest::prelude::*;

use crate::stage::*;
use crate::stations::waiting::{client, sampled};

/// The one thread of nginx ran and waited for its core for these shares of the time, and others used `others` of it; `stolen` went to other guests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Core {
    pub(super) ran: f64,
    pub(super) delayed: f64,
    pub(super) others: f64,
    pub(super) stolen: f64,
}

impl Core {
    pub(super) fn observed(self, others: &[BusyProcess]) -> Observation {
        let mut obs = healthy();
        obs.cpu = Default::default();
        let process = obs.processes.get_mut(&42).unwrap();
        for second in 0..=11_u64 {
            let ticks = |share: f64| (second as f64 * 100.0 * share).round() as u64;
            let ns = |share: f64| (second as f64 * 1e9 * share) as u64;
            let idle = (1.0 - self.ran - self.others - self.stolen).max(0.0);
            let own =
                CoreTimes { user: ticks(self.ran + self.others), steal: ticks(self.stolen), idle: ticks(idle), ..CoreTimes::default() };
            let client = CoreTimes { user: ticks(0.3), idle: ticks(0.7), ..CoreTimes::default() };
            obs.cpu.push(second * 1_000_000, Reading::Ok(CpuTimes { cores: vec![(0, client), (1, own)] }));
            let thread = ThreadTimes { id: 42, run_ns: ns(self.ran), delay_ns: ns(self.delayed) };
            let (run_ns, run_delay_ns) = (Some(thread.run_ns), Some(thread.delay_ns));
            let used =
                CpuUse { user_ticks: ticks(self.ran), run_ns, run_delay_ns, thread_times: vec![thread], threads: 1, ..CpuUse::default() };
            process.cpu.push(second * 1_000_000, Reading::Ok(used));
            let grown =
                |process: &BusyProcess| BusyProcess { grown_ticks: if second == 0 { 0 } else { process.grown_ticks }, ..process.clone() };
            obs.busy_processes.push(second * 1_000_000, Reading::Ok(others.iter().map(grown).collect()));
        }
        obs
    }
}

/// A program that uses this share of core 1, and has no connections.
pub(super) fn program(pid: u32, share: f64) -> BusyProcess {
    let (core, sockets, uid) = (Some(1), Some(Vec::new()), Some(1000));
    BusyProcess {
        pid,
        comm: "xz".into(),
        core,
        sockets,
        uid,
        grown_ticks: (100.0 * share) as u64,
        parents: vec![1],
        ..BusyProcess::default()
    }
}

pub(super) const STARVED: Core = Core { ran: 0.2, delayed: 0.8, others: 0.8, stolen: 0.0 };

fn is_taken(obs: &Observation) -> bool {
    causes(&told(obs)) == ["cores-taken-by-others"]
}

#[test]
fn the_program_that_keeps_a_server_off_its_core_is_named() {
    let found = told(&STARVED.observed(&[program(77, 0.5), program(78, 0.3)]));
    assert_eq!((found.verdict, causes(&found)), (Verdict::Choked, vec!["cores-taken-by-others"]));
    let finding = &found.findings[0];
    assert_eq!((finding.title.as_str(), finding.confidence), ("xz takes 80 % of the cores that nginx needs", Confidence::High));
    let evidence: Vec<&str> = finding.evidence.iter().map(|evidence| evidence.text.as_str()).collect();
    assert!(evidence.contains(&"xz (pid 77 and 1 more of user 1000) used 0.8 cores."), "{evidence:?}");
    // Core 0 has the client alone, which uses three tenths of it.
    assert!(
        evidence.iter().any(|text| text.contains("may run on core 1 alone") && text.contains("while 0.7 of the others (0)")),
        "{evidence:?}"
    );
    let shown: Vec<String> = finding.remedies[0].runtime.iter().map(|step| format!("{step:?}")).collect();
    assert!(shown.iter().any(|step| step.contains("renice -n 19 -p $(ls /proc/77/task)")), "{shown:?}");
}

/// The same thread may run on core 0 as well, which another program fills for this share.
fn on_two(core: Core, share: f64) -> Observation {
    beside_on_two(core, share, &[program(77, core.others), BusyProcess { core: Some(0), ..program(78, share) }])
}

/// The same with these programs.
fn beside_on_two(core: Core, share: f64, programs: &[BusyProcess]) -> Observation {
    let mut obs = core.observed(programs);
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = process.identity.last().unwrap().clone();
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(chokepoint_model::observation::Identity { cpus_allowed: vec![0, 1], ..identity }));
    let points = obs.cpu.points().to_vec();
    obs.cpu = Default::default();
    for (at_us, mut times) in points {
        let ticks = |share: f64| (at_us as f64 / 1e4 * share).round() as u64;
        times.cores[0].1 = CoreTimes { user: ticks(share), idle: ticks(1.0 - share), ..CoreTimes::default() };
        obs.cpu.push(at_us, Reading::Ok(times));
    }
    obs
}

proptest! {
    #[test]
    fn one_thread_that_fills_most_of_a_core_is_the_limit_beside_programs_that_hold_the_others(ran in 0.1_f64..0.9) {
        let found = told(&on_two(Core { ran, delayed: 0.99 - ran, others: 0.99 - ran, stolen: 0.0 }, 0.97));
        let first = causes(&found).first().copied();
        // The count of ticks has a grain of a hundredth of a core, and below this share of its core the thread waits for the others for longer than its own time.
        if ran < 0.74 {
            prop_assert_eq!(first, Some("cores-taken-by-others"), "{} {}", ran, &found.summary);
        } else if ran > 0.76 && causes(&found).contains(&"cores-taken-by-others") {
            prop_assert_eq!(first, Some("single-core-saturated"), "{} {}", ran, &found.summary);
            let told = "idle on average, and other programs held";
            prop_assert!(found.findings[0].evidence.iter().any(|evidence| evidence.text.contains(told)));
        }
    }
}

proptest! {
    /// A program that has only what the servers leave takes no core from a thread that can use one: more threads would have the other.
    #[test]
    fn one_thread_that_fills_a_core_is_the_limit_beside_programs_that_yield(share in 0.2_f64..1.0, nice in 12_i32..=19, is_idle in any::<bool>()) {
        let core = Core { ran: 0.99, delayed: 0.0, others: 0.0, stolen: 0.0 };
        let hog = BusyProcess { nice, is_idle_class: is_idle, core: Some(0), ..program(78, share) };
        let found = told(&beside_on_two(core, share, &[in_session(program(42, 0.99), Some(3), 0), in_session(hog, Some(3), 0)]));
        prop_assert_eq!(causes(&found).first().copied(), Some("single-core-saturated"), "{} {}", share, &found.summary);
    }
}

proptest! {
    /// Requests that an event loop has read stand behind its thread as long as that has no core; what each does by itself stands there all the same where it has.
    #[test]
    fn what_stands_behind_a_thread_without_a_core_waits_for_the_core(delayed in 0.1_f64..0.85, requests in 4_u16..30) {
        prop_assume!((delayed + 0.1 - 0.5).abs() > 0.03);
        let core = Core { ran: 0.1, delayed, others: 0.9, stolen: 0.0 };
        // Every second one is read.
        let of = |n: u16| RequestSocket { receive_queue: if n.is_multiple_of(2) { 100 } else { 0 }, ..client(n, 40, true) };
        let mut obs = sampled(core.observed(&[program(77, 0.9)]), &|_| (0..requests).map(of).collect());
        // `sampled` has cores of its own.
        obs.cpu = core.observed(&[]).cpu;
        obs.load.as_mut().unwrap().shape = chokepoint_model::load::Loop::Closed { connections: requests.into() };
        let found = told(&obs);
        prop_assert_eq!(causes(&found).contains(&"cores-taken-by-others"), delayed + 0.1 > 0.5, "{}", found.summary);
    }
}

/// As `process`, in the root's own group, in this session.
fn in_session(process: BusyProcess, session: Option<u64>, session_nice: i32) -> BusyProcess {
    BusyProcess { session, session_nice: session.map(|_| session_nice), task_group: Some("/".into()), ..process }
}

proptest! {
    /// Where the server and the program meet, the program's weight decides; where that is not known, what it uses counts.
    #[test]
    fn who_has_only_what_the_servers_leave_takes_nothing(nice in -20_i32..=19, server_nice in -20_i32..=19, is_idle in any::<bool>(), of in 0..4) {
        let (server, hog) = (BusyProcess { nice: server_nice, ..program(42, 0.2) }, BusyProcess { nice, is_idle_class: is_idle, ..program(77, 0.8) });
        let (server, hog) = match of {
            0 => (in_session(server, Some(3), 5), in_session(hog, Some(3), 5)),
            1 => (in_session(server, None, 0), in_session(hog, None, 0)),
            2 => (in_session(server, Some(3), server_nice), in_session(hog, Some(4), nice)),
            _ => (in_session(server, Some(3), 0), BusyProcess { task_group: Some("/batch".into()), ..in_session(hog, None, 0) }),
        };
        let weight = if is_idle && of < 2 { 3.0 / 1024.0 } else { 1.25_f64.powi(-nice) } / 1.25_f64.powi(-server_nice);
        let yields = of < 3 && weight / (1.0 + weight) < 0.1;
        let found = told(&STARVED.observed(&[server, hog]));
        prop_assert_eq!(causes(&found).contains(&"cores-taken-by-others"), !yields, "weight {}: {}", weight, &found.summary);
    }
}

proptest! {
    /// A priority that somebody lowered is told with the way back where both meet at it, and only there.
    #[test]
    fn a_server_whose_priority_is_lowered_is_told_to_have_it_raised(nice in -6_i32..=6, server_nice in -2_i32..=6, share in prop::option::of(2_u64..2048), within in any::<bool>()) {
        let (server, hog) = (BusyProcess { nice: server_nice, ..program(42, 0.2) }, BusyProcess { nice, ..program(77, 0.8) });
        let hog = BusyProcess { cgroup: Some(if within { "/web/batch" } else { "/batch" }.into()), ..in_session(hog, None, 0) };
        let mut obs = STARVED.observed(&[in_session(server, None, 0), hog]);
        let id = CgroupId::parse("v1:/web").unwrap();
        let process = obs.processes.get_mut(&42).unwrap();
        process.cgroups.push(0, Reading::Ok(BTreeMap::from([("cpu".to_owned(), "/web".to_owned())])));
        obs.cgroups.entry(id).or_default().push(0, Reading::Ok(CgroupCpu { dir: "/cg/web".into(), share, ..CgroupCpu::default() }));
        let found = told(&obs);
        prop_assert_eq!(causes(&found), ["cores-taken-by-others"], "{}", found.summary);
        let remedy = &found.findings[0].remedies[0];
        let (by_group, by_nice) = (!within && share.is_some_and(|share| share < 1024), server_nice > nice.max(0));
        prop_assert_eq!(remedy.id.as_str() == "raise-priority", by_group || by_nice, "{}", remedy.id);
        let has = |steps: &[chokepoint_model::report::Step], what: String| steps.iter().any(|step| format!("{step:?}").contains(&what));
        let done = |now: String, undo: String| has(&remedy.runtime, now) && has(&remedy.undo, undo);
        if by_group {
            prop_assert!(done("echo 1024 > ".into(), format!("echo {} > ", share.unwrap())), "{:?}", remedy);
        } else if by_nice {
            prop_assert!(done(format!("renice -n {} ", nice.max(0)), format!("renice -n {server_nice} ")), "{:?}", remedy);
        }
    }
}

proptest! {
    /// Threads that wait for a core far longer than they run, for a tenth of the time or more, on cores that have time left: others that use more than they do have these in bursts, and
    /// such a server is not healthy.
    #[test]
    fn cores_that_others_have_in_bursts_make_no_server_healthy(ran in 0.02_f64..0.2, delayed in 0.0_f64..0.8, others in 0.05_f64..0.6) {
        prop_assume!((delayed - 0.1).abs() > 0.02 && (delayed - 2.0 * ran).abs() > 0.02 && (others - ran).abs() > 0.02 && (others - 0.15).abs() > 0.02);
        let core = Core { ran, delayed, others, stolen: 0.0 };
        let of = |n: u16| RequestSocket { receive_queue: if n.is_multiple_of(2) { 100 } else { 0 }, ..client(n, 40, true) };
        let mut obs = sampled(core.observed(&[]), &|_| (0..16).map(of).collect());
        obs.cpu = core.observed(&[]).cpu;
        obs.load.as_mut().unwrap().shape = chokepoint_model::load::Loop::Closed { connections: 16 };
        let found = told(&obs);
        let expected = delayed >= 0.1 && delayed >= 2.0 * ran && others > ran && others > 0.15;
        prop_assert_eq!(found.summary.contains("have it in bursts"), expected, "{} {} {}: {}", ran, delayed, others, found.summary);
        prop_assert!(!expected || found.verdict == Verdict::Unknown);
    }

    /// Watched, the same of a request that is alone most of the time: hardly any waits for a core, however busy others keep the host.
    #[test]
    fn a_request_now_and_then_beside_others_has_the_cores(ran in 0.02_f64..0.2, delayed in 0.1_f64..0.8, others in 0.2_f64..0.6, every in 2..6_u64) {
        let core = Core { ran, delayed, others, stolen: 0.0 };
        let unread = |n: u64| RequestSocket { receive_queue: 100, ..client(n as u16, 4, true) };
        let mut obs = sampled(core.observed(&[]), &|n| if n.is_multiple_of(every) { vec![unread(n)] } else { Vec::new() });
        obs.cpu = core.observed(&[]).cpu;
        (obs.load, obs.request.loaded) = (None, false);
        let found = told(&obs);
        prop_assert!(!found.summary.contains("have it in bursts"), "{}", found.summary);
    }
}

/// Nice values and groups are nothing to a program at real-time priority; the way to give the cores back, and to undo that, is its own.
#[test]
fn a_real_time_program_takes_cores_whatever_its_nice_value() {
    let steps = |steps: &[chokepoint_model::report::Step]| steps.iter().map(|step| format!("{step:?}")).collect::<String>();
    for (policy, option, name) in [
        (RealTimePolicy::Fifo, "--fifo", "SCHED_FIFO"),
        (RealTimePolicy::RoundRobin, "--rr", "SCHED_RR"),
        (RealTimePolicy::Deadline, "", "SCHED_DEADLINE"),
    ] {
        let realtime = Some(RealTime { policy, priority: 50 });
        let server = in_session(program(42, 0.2), Some(3), 0);
        let hog = BusyProcess { nice: 19, realtime, cgroup: Some("/system.slice/backup.service".into()), ..program(77, 0.8) };
        for hog in [in_session(hog.clone(), Some(3), 0), in_session(hog.clone(), Some(4), 19), BusyProcess { task_group: None, ..hog }] {
            let found = told(&STARVED.observed(&[server.clone(), hog]));
            assert_eq!(causes(&found), ["cores-taken-by-others"], "{name}: {}", found.summary);
            let finding = &found.findings[0];
            assert!(finding.evidence.iter().any(|proof| proof.text.contains(name)), "{:?}", finding.evidence);
            let remedy = &finding.remedies[0];
            assert!(steps(&remedy.runtime).contains("chrt --all-tasks --other --pid 0 77"), "{:?}", remedy.runtime);
            let undo = steps(&remedy.undo);
            let expected =
                if option.is_empty() { undo.is_empty() } else { undo.contains(&format!("chrt --all-tasks {option} --pid 50 77")) };
            assert!(expected && !undo.contains("renice"), "{undo}");
        }
    }
}

#[test]
fn many_that_yield_take_their_part_together() {
    let taken_by = |count: u32| {
        let hogs = (0..count).map(|n| BusyProcess { nice: 10, ..in_session(program(77 + n, 0.8 / f64::from(count)), Some(3), 0) });
        let server = in_session(program(42, 0.2), Some(3), 0);
        is_taken(&STARVED.observed(&std::iter::once(server).chain(hogs).collect::<Vec<_>>()))
    };
    assert!(!taken_by(1), "a tenth of the server's weight");
    assert!(taken_by(4));
}

#[test]
fn a_service_yields_by_its_unit_unless_its_name_could_be_a_command() {
    for (cgroup, expected) in [
        ("/system.slice/backup.service", "systemctl set-property --runtime backup.service CPUWeight=10"),
        ("/system.slice/a;reboot.service", "renice -n 19 -p $(ls /proc/77/task)"),
        ("/user.slice/backup.service", "renice -n 19 -p $(ls /proc/77/task)"),
    ] {
        let found = told(&STARVED.observed(&[BusyProcess { cgroup: Some(cgroup.into()), ..program(77, 0.8) }]));
        let shown: Vec<String> = found.findings[0].remedies[0].runtime.iter().map(|step| format!("{step:?}")).collect();
        assert!(
            shown.iter().any(|step| step.contains(expected)) && !shown.iter().any(|step| step.contains("reboot")),
            "{cgroup}: {shown:?}"
        );
    }
}

#[test]
fn who_serves_or_asks_takes_nothing_away() {
    let socket = |inode, (local, remote)| {
        let address = SocketAddress::Tcp { local, remote };
        Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
    };
    let (server, client, elsewhere) = ((ip(SERVER_IP), 80), (ip("10.0.0.1"), 40_000), (ip("10.0.0.3"), 5432));
    for (what, process, expected) in [
        ("no connection", program(77, 0.8), true),
        ("started by the server", BusyProcess { parents: vec![90, 42], ..program(77, 0.8) }, false),
        ("the server itself", program(42, 0.8), false),
        ("a client", BusyProcess { sockets: Some(vec![7]), ..program(77, 0.8) }, false),
        ("a connection to another server", BusyProcess { sockets: Some(vec![8]), ..program(77, 0.8) }, true),
        ("a connection that was not seen", BusyProcess { sockets: Some(vec![9]), ..program(77, 0.8) }, false),
        ("descriptors that may not be seen", BusyProcess { sockets: None, ..program(77, 0.8) }, false),
        ("another core", BusyProcess { core: Some(0), ..program(77, 0.8) }, false),
    ] {
        let mut obs = STARVED.observed(&[process]);
        let sockets = vec![socket(7, (client, server)), socket(8, (client, elsewhere))];
        obs.netns.get_mut(&CLIENT).unwrap().sockets.push(1_000_000, Reading::Ok(sockets));
        assert_eq!(is_taken(&obs), expected, "{what}");
    }
}

#[test]
fn time_that_the_hypervisor_gives_away_is_told() {
    let found = told(&Core { ran: 0.3, delayed: 0.7, others: 0.0, stolen: 0.7 }.observed(&[]));
    assert_eq!(found.findings[0].title, "the hypervisor gives others 70 % of the cores that nginx needs");
    assert!(found.findings[0].remedies[0].runtime.is_empty());
    // Beside a program each has its own part.
    let found = told(&Core { ran: 0.3, delayed: 0.7, others: 0.4, stolen: 0.3 }.observed(&[program(77, 0.4)]));
    assert_eq!(found.findings[0].title, "xz takes 40 % of the cores that nginx needs");
    assert!(found.findings[0].evidence.iter().any(|evidence| evidence.text.starts_with("0.3 cores were given to other guests")));
}

#[test]
fn requests_that_fail_at_once_do_not_wait_for_a_core() {
    let with = |fail: fn(&mut chokepoint_model::load::LoadResult, u64)| {
        let mut obs = STARVED.observed(&[program(77, 0.8)]);
        let load = obs.load.as_mut().unwrap();
        let failed = load.requests * 8 / 10;
        load.good -= failed;
        load.status.insert(200, load.good);
        fail(load, failed);
        is_taken(&obs)
    };
    assert!(!with(|load, failed| load.errors.reset = failed) && !with(|load, failed| load.errors.closed_before_answer = failed));
    assert!(with(|load, failed| load.errors.response_timeout = failed));
}

/// Watched, what looks like answers with an error makes no cause, and takes one away where it is most of them.
#[test]
fn watched_servers_that_refuse_most_requests_are_not_told_to_lack_cores() {
    let with = |errors: u64| {
        let unread = |_| (0..12).map(|n| RequestSocket { receive_queue: 100, ..client(n, 20, true) }).collect();
        let mut obs = sampled(STARVED.observed(&[program(77, 0.8)]), &unread);
        // `sampled` has cores of its own.
        obs.cpu = STARVED.observed(&[]).cpu;
        (obs.load, obs.request.loaded) = (None, false);
        let statuses = [(200, 100 - errors), (502, errors)].into_iter().filter(|(_, count)| *count > 0).collect();
        let kept = [((ip(SERVER_IP), 80).into(), statuses)].into_iter().collect();
        let counted = WireAnswers { open_us: 250_000, kept, ..WireAnswers::default() };
        obs.netns.get_mut(&SERVER).unwrap().answers.push(5_000_000, Reading::Ok(counted));
        told(&obs)
    };
    for errors in [0, 30] {
        assert_eq!(causes(&with(errors)), ["cores-taken-by-others"], "{errors}: {}", with(errors).summary);
    }
    for errors in [60, 100] {
        let refusing = with(errors);
        assert_eq!((refusing.verdict, causes(&refusing).len()), (Verdict::Unknown, 0), "{errors}: {}", refusing.summary);
        assert!(refusing.summary.contains("look like responses"), "{}", refusing.summary);
    }
}

#[test]
fn what_was_not_read_is_not_claimed() {
    let mut obs = STARVED.observed(&[program(77, 0.8)]);
    obs.busy_processes = Default::default();
    assert!(!is_taken(&obs), "nobody is named");
    let mut obs = STARVED.observed(&[program(77, 0.8)]);
    obs.processes.get_mut(&42).unwrap().cpu = Default::default();
    assert!(!is_taken(&obs), "whether it waited is not known");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// On a full core: what others use keeps the server off it only if its thread waits for the core, and they are only said to take what they used.
    #[test]
    fn a_cause_only_where_a_ready_thread_waits(ran in 0.05..0.95_f64, waits in 0.0..1.0_f64, named in 0.0..1.0_f64) {
        let others = 1.0 - ran;
        let delayed = waits * others;
        let found = told(&Core { ran, delayed, others, stolen: 0.0 }.observed(&[program(77, named * others)]));
        let could = (ran + delayed * (named * others).min(others)) / ran;
        let finding = found.findings.iter().find(|finding| finding.id == "cores-taken-by-others");
        // Clock ticks and per cents are rounded.
        if could < 1.05 || named * others < 0.13 {
            prop_assert!(finding.is_none(), "{could} {found:?}");
        } else if could > 1.15 && named * others > 0.17 {
            prop_assert!(finding.is_some(), "{could} {:?} {}", found.verdict, found.summary);
        }
    }
}
