//! Steps for programs whose configuration is not known: their limits, and a look inside.
//!
//! Live beside others: processes and the clock; nothing is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use chokepoint_model::observation::{BusyProcess, CgroupCpu, CgroupId, CgroupIo, CgroupTasks, Limits};
use chokepoint_model::reading::Reading;
use chokepoint_model::series::Series;

use super::recorded::{Recorded, only};
use super::{Shell, commands};
use crate::harness::{Chokepoint, Running, has_programs, is_root, wait_until};

/// Limits of open files as systemd starts services. To raise the hard one takes CAP_SYS_RESOURCE, which root in a container may lack.
const SOFT: u64 = 80;
const HARD: u64 = 4_096;

/// The recorded processes that the commands name.
fn pids(recorded: &Recorded, commands: &[String]) -> BTreeSet<u32> {
    let words = commands.iter().flat_map(|command| command.split([' ', ';']));
    words.filter_map(|word| word.parse().ok()).filter(|pid| recorded.observation.processes.contains_key(pid)).collect()
}

/// All numbers in commands, also those within a path.
fn numbers(commands: &[String]) -> BTreeSet<u32> {
    commands.iter().flat_map(|command| command.split([' ', '/'])).filter_map(|word| word.parse().ok()).collect()
}

/// The nice value of a process.
fn nice(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(16).unwrap().to_owned()
}

/// Soft and hard limit of a process by its name.
fn limits_of(pid: u32, name: &str) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().take(2).collect::<Vec<_>>().join(":")
}

/// The commands with these processes in place of the recorded ones.
fn of_processes(commands: &[String], processes: &BTreeMap<u32, Running>) -> Vec<String> {
    let here = |word: &str| {
        let (number, end) = word.strip_suffix(';').map_or((word, ""), |number| (number, ";"));
        let process = number.parse().ok().and_then(|pid: u32| processes.get(&pid));
        process.map_or_else(|| word.to_owned(), |process| format!("{}{end}", process.0.id()))
    };
    let within = |word: &str| word.split('/').map(here).collect::<Vec<_>>().join("/");
    commands.iter().map(|command| command.split(' ').map(within).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_steps_for_the_open_files_of_a_program_change_its_limits() {
    if !is_root() || !has_programs(&["prlimit"]) {
        return;
    }
    // Without its configuration, nginx is a program like any other.
    let mut recorded = Recorded::of("left-out/files-few");
    let master = recorded.master("nginx.conf");
    recorded.observation.servers.get_mut(&master).unwrap().config = Series::default();
    for process in recorded.observation.processes.values_mut() {
        let limits =
            process.limits.last().map(|_| Limits { open_files_soft: Some(SOFT), open_files_hard: Some(HARD), ..Limits::default() });
        process.limits = limits.map(only).unwrap_or_default();
    }
    let remedy = recorded.remedy("raise-nofile-by-hand");
    let (runtime, undo) = (commands(&remedy, "runtime"), commands(&remedy, "undo"));
    let limits = format!("--nofile={SOFT}:{HARD}");
    let process = || Running::start(Command::new("prlimit").args([&limits, "sleep", "1000"])).unwrap();
    let processes: BTreeMap<u32, Running> = pids(&recorded, &undo).into_iter().map(|pid| (pid, process())).collect();
    assert!(processes.len() > 1, "the master and its worker: {remedy:#}");
    let in_force = || processes.values().map(|process| limits_of(process.0.id(), "Max open files")).collect::<Vec<_>>();
    let before = vec![format!("{SOFT}:{HARD}"); processes.len()];
    wait_until("prlimit(1) has set the limits", || in_force() == before);
    let carry_out = |steps: &[String]| of_processes(steps, &processes).iter().for_each(|command| Shell::of_host().run(command));
    carry_out(&runtime);
    assert!(in_force().iter().all(|now| *now == format!("256:{HARD}")), "{:?}", in_force());
    carry_out(&undo);
    assert_eq!(in_force(), before, "{remedy:#}");
}

#[test]
fn the_steps_that_allow_more_tasks_change_the_limit_of_a_users_processes() {
    if !is_root() || !has_programs(&["prlimit"]) {
        return;
    }
    let mut recorded = Recorded::of("misses/tasks/user-threads");
    for process in recorded.observation.processes.values_mut() {
        let limits = process.limits.last().map(|limits| Limits { tasks_hard: Some(HARD), ..limits.clone() });
        process.limits = limits.map(only).unwrap_or_default();
    }
    let remedy = recorded.remedy("allow-more-tasks");
    let (runtime, undo) = (commands(&remedy, "runtime"), commands(&remedy, "undo"));
    let process = || Running::start(Command::new("prlimit").args([&format!("--nproc=14:{HARD}"), "sleep", "1000"])).unwrap();
    let processes: BTreeMap<u32, Running> = pids(&recorded, &undo).into_iter().map(|pid| (pid, process())).collect();
    let in_force = || processes.values().map(|process| limits_of(process.0.id(), "Max processes ")).collect::<Vec<_>>();
    let before = vec![format!("14:{HARD}"); processes.len()];
    wait_until("prlimit(1) has set the limits", || in_force() == before);
    of_processes(&runtime, &processes).iter().for_each(|command| Shell::of_host().run(command));
    assert!(!processes.is_empty() && in_force().iter().all(|now| *now == format!("32:{HARD}")), "{:?}", in_force());
    of_processes(&undo, &processes).iter().for_each(|command| Shell::of_host().run(command));
    assert_eq!(in_force(), before, "{remedy:#}");
}

/// A directory stands for the cgroup.
#[test]
fn the_steps_that_allow_more_tasks_write_the_limit_of_a_cgroup() {
    let chokepoint = Chokepoint::new();
    let dir = chokepoint.path("a cgroup");
    std::fs::create_dir(&dir).unwrap();
    let mut recorded = Recorded::of("misses/tasks/cgroup-threads");
    for series in recorded.observation.cgroup_tasks.values_mut() {
        let there = series.last().map(|tasks| CgroupTasks { dir: dir.clone(), ..tasks.clone() });
        let points: Vec<_> = series.points().iter().map(|(at_us, tasks)| (*at_us, tasks.refused)).collect();
        *series = Series::default();
        for (at_us, refused) in points {
            series.push(at_us, Reading::Ok(CgroupTasks { refused, ..there.clone().unwrap() }));
        }
    }
    let remedy = recorded.remedy("allow-more-tasks");
    let written = || std::fs::read_to_string(chokepoint.file("a cgroup").join("pids.max")).unwrap();
    Shell::of_host().carry_out(&remedy, "runtime");
    assert_eq!(written(), "32\n");
    Shell::of_host().carry_out(&remedy, "undo");
    assert_eq!(written(), "12\n");
}

/// A directory stands for the cgroup.
#[test]
fn the_steps_that_allow_more_of_a_disk_write_the_limit_of_a_cgroup() {
    let chokepoint = Chokepoint::new();
    let dir = chokepoint.path("a cgroup");
    std::fs::create_dir(&dir).unwrap();
    let mut recorded = Recorded::of("misses/disk-limit/read-bytes-load");
    for series in recorded.observation.cgroup_io.values_mut() {
        let points: Vec<_> = series.points().to_vec();
        *series = Series::default();
        for (at_us, io) in points {
            series.push(at_us, Reading::Ok(CgroupIo { dir: dir.clone(), ..io }));
        }
    }
    let remedy = recorded.remedy("allow-more-of-the-disk");
    let written = || std::fs::read_to_string(chokepoint.file("a cgroup").join("blkio.throttle.read_bps_device")).unwrap();
    Shell::of_host().carry_out(&remedy, "runtime");
    assert_eq!(written(), "254:0 8388608\n");
    Shell::of_host().carry_out(&remedy, "undo");
    assert_eq!(written(), "254:0 4194304\n");
}

#[test]
fn the_steps_that_look_inside_a_program_are_accepted() {
    let can_trace = std::fs::read_to_string("/proc/filesystems").is_ok_and(|systems| systems.contains("tracefs"));
    if !is_root() || !can_trace {
        println!("skipped: needs root and a kernel with tracepoints");
        return;
    }
    let recorded = Recorded::of("left-out/rate-limit-delay");
    let look = commands(&recorded.remedy("look-inside"), "runtime");
    let process = || Running::start(Command::new("sleep").arg("1000")).unwrap();
    let processes = pids(&recorded, &look).into_iter().map(|pid| (pid, process())).collect::<BTreeMap<_, _>>();
    assert_eq!(processes.len(), 1, "{look:?}");
    let programs = Path::new(env!("CARGO_BIN_EXE_chokepoint")).parent().map(Path::to_owned);
    let shell = Shell { before: Vec::new(), programs };
    of_processes(&look, &processes).iter().for_each(|command| shell.run(command));
}

#[test]
fn the_steps_that_let_a_program_yield_are_carried_out_and_taken_back() {
    nice_and_back(&Recorded::of("improvements/cores/taken-event-loop"), "give-cores-back", 19);
}

#[test]
fn the_steps_that_raise_a_servers_priority_are_carried_out_and_taken_back() {
    let mut recorded = Recorded::of("improvements/cores/taken-event-loop");
    recorded.change_busy(|process, is_servers| BusyProcess {
        nice: if is_servers { 5 } else { 2 },
        session: None,
        task_group: Some("/".to_owned()),
        ..process
    });
    nice_and_back(&recorded, "raise-priority", 2);
}

/// A directory stands for the cgroup.
#[test]
fn the_steps_that_raise_a_servers_share_write_that_of_its_cgroup() {
    let chokepoint = Chokepoint::new();
    let dir = chokepoint.path("a cgroup");
    std::fs::create_dir(&dir).unwrap();
    let mut recorded = Recorded::of("improvements/cores/taken-event-loop");
    let group = CgroupCpu { dir: dir.clone(), share: Some(10), ..CgroupCpu::default() };
    recorded.observation.cgroups = BTreeMap::from([(CgroupId::parse("v1:/web").unwrap(), only(group))]);
    for process in recorded.observation.processes.values_mut() {
        process.cgroups = only(BTreeMap::from([("cpu".to_owned(), "/web".to_owned())]));
    }
    recorded.change_busy(|process, _| BusyProcess { cgroup: Some("/batch".to_owned()), ..process });
    let remedy = recorded.remedy("raise-priority");
    let written = || std::fs::read_to_string(chokepoint.file("a cgroup").join("cpu.shares")).unwrap();
    Shell::of_host().carry_out(&remedy, "runtime");
    assert_eq!(written(), "1024\n");
    Shell::of_host().carry_out(&remedy, "undo");
    assert_eq!(written(), "10\n");
}

/// Carries out the steps of a remedy that sets this nice value, and takes them back.
fn nice_and_back(recorded: &Recorded, id: &str, set: i32) {
    if !is_root() || !has_programs(&["renice", "setsid"]) {
        return;
    }
    let remedy = recorded.remedy(id);
    let (runtime, undo) = (commands(&remedy, "runtime"), commands(&remedy, "undo"));
    let readings = recorded.observation.busy_processes.values().flatten();
    let busy: BTreeSet<u32> = readings.map(|process| process.pid).collect();
    // A session of its own for each, whose nice value may change.
    let process = || Running::start(Command::new("setsid").args(["sleep", "1000"])).unwrap();
    let processes: BTreeMap<u32, Running> = numbers(&runtime).intersection(&busy).map(|pid| (*pid, process())).collect();
    assert!(!processes.is_empty(), "{remedy:#}");
    let in_force = || processes.values().map(|process| nice(process.0.id())).collect::<BTreeSet<_>>();
    let carry_out = |steps: &[String]| of_processes(steps, &processes).iter().for_each(|command| Shell::of_host().run(command));
    carry_out(&runtime);
    assert_eq!(in_force(), BTreeSet::from([set.to_string()]), "{runtime:?}");
    carry_out(&undo);
    let recorded_nice = recorded.observation.busy_processes.values().flatten().find(|one| processes.contains_key(&one.pid));
    assert_eq!(in_force(), BTreeSet::from([recorded_nice.unwrap().nice.to_string()]), "{undo:?}");
}

#[test]
fn the_steps_that_look_for_ends_left_open_show_them() {
    if !has_programs(&["ss"]) {
        return;
    }
    let recorded = Recorded::of("data/worker-pool/clients-linger");
    let mut look = commands(&recorded.remedy("end-lingering"), "runtime");
    let command = look.pop().unwrap();
    // Where the pool is in the namespace of a shell, without the prefix that enters another one.
    let here = &command[command.find("ss ").unwrap()..];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (served, peer) = listener.accept().unwrap();
    served.shutdown(Shutdown::Write).unwrap();
    let shown = || String::from_utf8(Command::new("sh").args(["-c", here]).output().unwrap().stdout).unwrap();
    let peer = peer.to_string();
    let has_both = |text: &str| {
        let of_them = text.lines().filter(|line| line.split_whitespace().any(|word| word == peer));
        of_them.filter_map(|line| line.split_whitespace().next()).collect::<BTreeSet<_>>() == BTreeSet::from(["CLOSE-WAIT", "FIN-WAIT-2"])
    };
    wait_until("both ends are listed", || has_both(&shown()));
    drop(client);
    wait_until("they are gone", || !shown().contains(&peer));
    assert!(look.is_empty(), "{look:?}");
}
