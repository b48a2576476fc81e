//! Every text source on files captured from a Linux 6.18 host, on damaged bytes, and on the running host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chokepoint_model::observation::{CgroupId, IoKind, NetnsId, Observation};
use chokepoint_model::series::Series;
use chokepoint_recording::{Entry, Outcome, Scope};
use proptest::prelude::*;

use super::ALL;
use crate::root::{Root, WHY_ENDED};
use crate::table::{Cadence, Notes, Phase, ReadContext, ScopeKind, Source};

/// Process and namespace of the tree: one worker of nginx in a namespace where ten requests went over loopback, half of them over IPv6.
const PID: u32 = 4242;
/// A process of the tree with several threads.
const THREADED: u32 = 4243;
const NETNS: u64 = 4_026_532_245;

fn tree() -> Root {
    Root::new(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/text/tree-6.18"))
}

fn scope_of(source: &Source, pid: u32) -> Scope {
    match source.scope {
        ScopeKind::Host => Scope::Host,
        ScopeKind::Netns => Scope::Netns(NETNS),
        ScopeKind::Process | ScopeKind::Server => Scope::Process(pid),
    }
}

/// Reads a source at both ends like the observer. The mark of the kernel log is in the middle of the tree's records.
fn entries(root: &Root, source: &Source, pid: u32) -> Vec<Entry> {
    let notes = Notes::default();
    // The worker of nginx has one thread.
    let pid = if source.name == "process_mappings" && !root.is_live() { THREADED } else { pid };
    let scope = scope_of(source, pid);
    let mut entries = Vec::new();
    if ["cgroup_cpu", "cgroup_freezer", "cgroup_io", "cgroup_tasks"].contains(&source.name) {
        // The processes determine which cgroups are read.
        let scope = Scope::Process(pid);
        let _ = (self::source("process_cgroups").read)(&ReadContext::new(root, scope, Phase::First, &notes));
    }
    for (at_us, phase) in [(0, Phase::First), (10_000_000, Phase::Last)] {
        if phase == Phase::Last && source.cadence == Cadence::Once {
            continue;
        }
        let context = ReadContext::new(root, scope, phase, &notes);
        for (item, outcome) in (source.read)(&context) {
            entries.push(Entry { at_us, source: source.name.to_owned(), scope, item, outcome });
        }
        if source.name == "kernel_log" && !root.is_live() {
            notes.set("kernel_log", b"6,344,1332406,-;\n".to_vec());
        }
    }
    entries
}

fn observe(entries: &[Entry], source: &Source) -> Observation {
    let mut observation = Observation::default();
    for entry in entries {
        (source.put)(&mut observation, entry);
    }
    observation
}

fn source(name: &str) -> &'static Source {
    ALL.iter().find(|source| source.name == name).expect("a source of that name")
}

/// Readings of a source in an observation: values, and series without a value.
#[derive(Debug, PartialEq)]
struct ReadingCounts {
    values: usize,
    lacks: usize,
}

fn count<'a, T: 'a>(all: impl IntoIterator<Item = &'a Series<T>>) -> ReadingCounts {
    use chokepoint_model::series::SeriesState;
    let mut counts = ReadingCounts { values: 0, lacks: 0 };
    for series in all {
        counts.values += series.points().len();
        counts.lacks += usize::from(matches!(series.state(), SeriesState::Absent(_) | SeriesState::Failed(..)));
    }
    counts
}

/// A source without an arm here has no test. Add one, its files to the tree and its values to the tests below.
fn counts_of(observation: &Observation, source: &Source) -> ReadingCounts {
    let netns = observation.netns.get(&NetnsId(NETNS)).cloned().unwrap_or_default();
    let process = observation.processes.values().next().cloned().unwrap_or_default();
    match source.name {
        "kernel" => count([&observation.kernel]),
        "cpu" => count([&observation.cpu]),
        "busy_processes" => count([&observation.busy_processes]),
        "memory" => count([&observation.memory]),
        "softnet" => count([&observation.softnet]),
        "ksoftirqd" => count(observation.ksoftirqd.values()),
        "kernel_log" => count([&observation.kernel_log]),
        "cgroup_cpu" => count(observation.cgroups.values()),
        "cgroup_freezer" => count(observation.freezers.values()),
        "cgroup_tasks" => count(observation.cgroup_tasks.values()),
        "cgroup_io" => count(observation.cgroup_io.values()),
        "user_tasks" => count([&observation.user_tasks]),
        "task_limits" => count([&observation.task_limits]),
        "sysctls" => count(netns.sysctls.values()),
        "netstat" => count([&netns.netstat]),
        "sockstat" => count([&netns.sockstat]),
        "conntrack_count" => count([&netns.conntrack_count]),
        "conntrack_cpus" => count([&netns.conntrack_cpus]),
        "conntrack_states" => count([&netns.conntrack_states]),
        "conntrack_translations" => count([&netns.conntrack_translations]),
        "process_identity" => count([&process.identity]),
        "process_cpu" => count([&process.cpu]),
        "process_files" => count([&process.files]),
        "process_fd_count" => count([&process.fd_count]),
        "process_syscall" => count([&process.syscall]),
        "process_threads" => count([&process.thread_looks]),
        "process_tracing" => count([&process.tracing]),
        "process_thread_names" => count([&process.thread_names]),
        "process_memory" => count([&process.memory]),
        "process_limits" => count([&process.limits]),
        "process_mappings" => count([&process.mappings]),
        "process_cgroups" => count([&process.cgroups]),
        other => panic!("the source {other} has no fixture"),
    }
}

#[test]
fn every_source_has_a_fixture_that_parses_completely() {
    let root = tree();
    for source in ALL {
        let entries = entries(&root, source, PID);
        let observation = observe(&entries, source);
        let counts = counts_of(&observation, source);
        assert!(counts.values > 0, "{}: the tree has no file for it", source.name);
        // Some settings exist in the first namespace only: netdev_budget, netdev_budget_usecs, netdev_max_backlog, tcp_mem.
        let absent = if source.name == "sysctls" { 4 } else { 0 };
        assert_eq!(counts.lacks, absent, "{}", source.name);
        assert_eq!(observation.unplaced, Vec::<String>::new());
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = ALL.iter().map(|source| source.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

#[test]
fn host_values_of_the_tree() {
    let root = tree();
    let see = |name: &str| observe(&entries(&root, source(name), PID), source(name));

    let kernel = see("kernel").kernel.last().cloned().unwrap();
    assert_eq!((kernel.release.as_str(), kernel.cores), ("6.18.44", 2));
    assert_eq!(kernel.boot_id, "3b1c6f52-8a7e-4d0f-9d5e-2f4a1c0b7e66");
    assert_eq!(kernel.page_bytes, rustix::param::page_size() as u64);

    let cpu = see("cpu");
    let (core, times) = cpu.cpu.last().unwrap().cores[1];
    let line = std::fs::read_to_string(root.path("proc/stat")).unwrap();
    let line = line.lines().find(|line| line.starts_with("cpu1 ")).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().skip(1).map(|number| number.parse().unwrap()).collect();
    assert_eq!((core, times.user, times.idle, times.softirq), (1, numbers[0], numbers[3], numbers[6]));

    assert!(see("memory").memory.last().unwrap().total > 1 << 30);
    let softnet = see("softnet");
    assert_eq!(softnet.softnet.last().unwrap().iter().map(|row| (row.cpu, row.backlog)).collect::<Vec<_>>(), [(0, Some(0)), (1, Some(0))]);

    let ksoftirqd = see("ksoftirqd").ksoftirqd;
    assert_eq!(ksoftirqd.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert_eq!((ksoftirqd[&0].last().unwrap().user_ticks, ksoftirqd[&0].points().len()), (7, 2));
    assert!(ksoftirqd[&0].last().unwrap().run_ns.is_some());

    let cgroups = see("cgroup_cpu").cgroups;
    let cgroup = |path: &str| cgroups[&CgroupId::parse(path).unwrap()].last().cloned().unwrap();
    let unit = cgroup("v2:/system.slice/nginx.service");
    assert_eq!((unit.limit_cores(), unit.throttled_periods, unit.used_ns), (Some(0.5), Some(412), Some(25_816_227_000)));
    assert_eq!((cgroup("v2:/system.slice").quota_us, cgroup("v2:/").quota_us), (None, None), "the root has no limit");

    let freezers = see("cgroup_freezer").freezers;
    let unit = freezers[&CgroupId::parse("v2:/system.slice/nginx.service").unwrap()].last().unwrap();
    assert!(unit.is_frozen && unit.dir.ends_with("/system.slice/nginx.service"), "{unit:?}");

    let tasks = see("cgroup_tasks").cgroup_tasks;
    let unit = tasks[&CgroupId::parse("v2:/system.slice/nginx.service").unwrap()].last().unwrap();
    assert_eq!((unit.limit, unit.current, unit.refused, tasks.len()), (Some(512), 37, Some(4), 1), "the root has no limit");

    let limits = see("task_limits").task_limits.last().copied().unwrap();
    assert_eq!((limits.tasks, limits.threads_max, limits.pid_max, limits.low_pids, limits.is_first), (183, 192_730, 32_768, 2, true));

    let io = see("cgroup_io").cgroup_io;
    let unit = io[&CgroupId::parse("v2:/system.slice/nginx.service").unwrap()].last().unwrap();
    let of = |counts: &BTreeMap<(String, IoKind), u64>, kind| counts.get(&("254:0".to_owned(), kind)).copied();
    assert_eq!((of(&unit.limits, IoKind::ReadBytes), of(&unit.limits, IoKind::Writes), io.len()), (Some(4_194_304), None, 1));
    assert_eq!(of(&unit.done, IoKind::ReadBytes), Some(734_003_200));

    let log = see("kernel_log").kernel_log;
    let texts: Vec<&str> = log.last().unwrap().iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts.len(), 3, "after the mark, without continuation lines: {texts:?}");
    assert_eq!(texts[0], "nf_conntrack: nf_conntrack: table full in netns 4026532201, dropping packet");
}

#[test]
fn namespace_values_of_the_tree() {
    let root = tree();
    let see = |name: &str| observe(&entries(&root, source(name), PID), source(name)).netns.remove(&NetnsId(NETNS)).unwrap();

    let sysctls = see("sysctls").sysctls;
    assert_eq!(sysctls["net.core.somaxconn"].last().unwrap(), "4096");
    assert_eq!(sysctls["net.ipv4.ip_local_port_range"].last().unwrap(), "32768\t60999");
    assert_eq!(sysctls["net.ipv4.ip_local_reserved_ports"].last().unwrap(), "");
    assert_eq!(sysctls["net.netfilter.nf_conntrack_max"].last().unwrap(), "262144");
    assert!(sysctls["net.netfilter.nf_conntrack_max mode"].last().is_some());
    assert!(sysctls["net.core.netdev_max_backlog"].last().is_none(), "only the first namespace has it");
    assert!(!sysctls.contains_key("net.core.netdev_max_backlog mode"));

    let netstat = see("netstat").netstat.last().cloned().unwrap();
    assert_eq!((netstat["Tcp.PassiveOpens"], netstat["Tcp.MaxConn"], netstat["TcpExt.ListenOverflows"]), (10, -1, 0));
    assert!(netstat["Ip6.InReceives"] >= 5 * 8 && netstat["IpExt.InOctets"] > 0);
    assert!(!netstat.iter().any(|(name, _)| name.starts_with("Icmp6")));

    let sockstat = see("sockstat").sockstat.last().cloned().unwrap();
    assert_eq!((sockstat["TCP.inuse"], sockstat["TCP6.inuse"], sockstat["TCP.tw"]), (1, 1, 10));

    let count = *see("conntrack_count").conntrack_count.last().unwrap();
    let states = see("conntrack_states").conntrack_states.last().cloned().unwrap();
    assert_eq!((count, states.into_iter().collect::<Vec<_>>()), (10, vec![("tcp TIME_WAIT".to_owned(), 10)]));
    let cpus = see("conntrack_cpus").conntrack_cpus.last().cloned().unwrap();
    assert_eq!((cpus.len(), cpus[0].counters["drop"], cpus[1].counters["entries"]), (2, 0, 10));
}

#[test]
fn process_values_of_the_tree() {
    let root = tree();
    let see = |name: &str| observe(&entries(&root, source(name), PID), source(name)).processes.remove(&PID).unwrap();
    let identity = see("process_identity").identity.last().cloned().unwrap();
    assert_eq!((identity.pid, identity.parent, identity.comm.as_str(), identity.uid), (PID, 4240, "nginx", 65_534));
    assert_eq!((identity.exe.as_deref(), identity.cmdline.as_str()), (Some("/usr/sbin/nginx"), "nginx: worker process"));
    assert_eq!((identity.netns, identity.cpus_allowed), (NetnsId(NETNS), vec![0, 1]));
    let cpu = see("process_cpu").cpu.last().cloned().unwrap();
    assert_eq!((cpu.state, cpu.threads, cpu.resident_bytes), ('S', 1, 943 * rustix::param::page_size() as u64));
    assert!(cpu.run_ns > Some(0));
    let files = see("process_files").files.last().cloned().unwrap();
    assert_eq!((files.count, files.sockets.len()), (11, 3));
    let syscall = see("process_syscall").syscall.last().cloned().unwrap();
    assert_eq!((syscall.call.is_some(), syscall.sockets.len()), (true, 0), "an event loop waits for everything at once");
    assert_eq!(see("process_memory").memory.last().unwrap().private_bytes, (276 + 1096) << 10);
    let mappings =
        observe(&entries(&root, source("process_mappings"), PID), source("process_mappings")).processes[&THREADED].mappings.last().copied();
    assert_eq!(mappings.map(|mappings| (mappings.count, mappings.limit, mappings.threads)), Some((24, 65_530, 4)));
    assert_eq!(see("process_limits").limits.last().unwrap().open_files_soft, Some(20_000));
    assert_eq!(see("process_cgroups").cgroups.last().unwrap()[""], "/system.slice/nginx.service");
}

#[test]
fn cut_bytes_give_a_complete_value_or_an_error() {
    let root = tree();
    for source in ALL {
        let mut entries = entries(&root, source, PID);
        // The mark of the kernel log is no reading.
        entries.retain(|entry| matches!(entry.outcome, Outcome::Ok(_)) && entry.item != "mark");
        for mut entry in entries.into_iter().take(8) {
            let Outcome::Ok(bytes) = entry.outcome.clone() else { continue };
            for cut in 0..bytes.len() {
                entry.outcome = Outcome::Ok(bytes[..cut].to_vec());
                let counts = counts_of(&observe(std::slice::from_ref(&entry), source), source);
                assert_eq!(counts.values + counts.lacks, 1, "{} cut at {cut}", source.name);
                let within_line = cut > 0 && bytes[cut - 1] != b'\n';
                // The value of a setting has no end mark.
                if within_line && source.name != "sysctls" {
                    assert_eq!(counts.lacks, 1, "{} cut at {cut} within a line", source.name);
                }
            }
        }
    }
}

#[test]
fn an_entry_of_another_scope_is_listed() {
    for source in ALL.iter().filter(|source| source.scope != ScopeKind::Host) {
        let entry =
            Entry { at_us: 0, source: source.name.to_owned(), scope: Scope::Host, item: String::new(), outcome: Outcome::Ok(Vec::new()) };
        let observation = observe(&[entry], source);
        assert_eq!(observation.unplaced.len(), 1, "{}", source.name);
        assert!(observation.netns.is_empty() && observation.processes.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        text in "[a-z0-9:;,. \n-]{0,400}",
        item in "[a-z0-9. ]{0,12}",
    ) {
        for source in ALL {
            for bytes in [bytes.clone(), text.clone().into_bytes()] {
                let (scope, outcome) = (scope_of(source, PID), Outcome::Ok(bytes));
                observe(&[Entry { at_us: 1, source: source.name.to_owned(), scope, item: item.clone(), outcome }], source);
            }
        }
    }

    #[test]
    fn damaged_fixtures_never_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        digits in "[0-9]{20,40}",
    ) {
        let root = tree();
        for source in ALL {
            for mut entry in entries(&root, source, PID).into_iter().take(3) {
                let Outcome::Ok(bytes) = &mut entry.outcome else { continue };
                if bytes.is_empty() {
                    continue;
                }
                for (index, byte) in &damage {
                    let at = index.index(bytes.len());
                    bytes[at] = *byte;
                }
                let at = damage[0].0.index(bytes.len());
                bytes.splice(at..at, digits.bytes());
                observe(&[entry], source);
            }
        }
    }
}

#[test]
fn the_running_host_is_understood() {
    let root = Root::default();
    for source in ALL {
        for entry in entries(&root, source, std::process::id()) {
            let counts = counts_of(&observe(std::slice::from_ref(&entry), source), source);
            match &entry.outcome {
                Outcome::Ok(_) if entry.item == "mark" => {}
                Outcome::Ok(bytes) => {
                    assert_eq!(counts, ReadingCounts { values: 1, lacks: 0 }, "{}: {}", source.name, String::from_utf8_lossy(bytes))
                }
                Outcome::Absent(why, needs) => println!("skipped: {} {}: {why} ({needs:?})", source.name, entry.item),
                // Other programs may log more, or have more connections, than the bounds hold.
                Outcome::Failed(..) if entry.item == "lost" || entry.item == "partial" => {}
                Outcome::Failed(why, _) => panic!("{} {}: {why}", source.name, entry.item),
            }
        }
    }
}

#[test]
fn a_process_that_ended_is_absent_also_before_its_parent_takes_note() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let (root, pid) = (Root::default(), child.id());
    // Mappings are not counted of a process with one thread.
    let sources = || ALL.iter().filter(|source| source.scope == ScopeKind::Process && source.name != "process_mappings");
    let outcome = |source: &Source| entries(&root, source, pid).remove(0).outcome;
    for source in sources() {
        assert!(matches!(outcome(source), Outcome::Ok(_)), "{} of a living process", source.name);
    }
    child.kill().unwrap();
    // Until it is a zombie: the kernel ends it in its own time.
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    for source in sources() {
        assert_eq!(outcome(source), Outcome::Absent(WHY_ENDED.to_owned(), None), "{} of a zombie", source.name);
    }
    child.wait().unwrap();
    for source in sources() {
        assert_eq!(outcome(source), Outcome::Absent(WHY_ENDED.to_owned(), None), "{} of no process", source.name);
    }
}

/// A process that does nothing. `spawn` returns while the kernel is still at execve, when the command line reads empty: it is waited for.
fn sleeping() -> std::process::Child {
    let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let cmdline = format!("/proc/{}/cmdline", child.id());
    while std::fs::read(&cmdline).unwrap().is_empty() {
        std::thread::yield_now();
    }
    child
}

#[test]
fn without_privileges_what_is_missing_names_its_capability() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become somebody else");
        return;
    }
    let mut child = sleeping();
    let pid = child.id();
    let seen = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65_534);
        // Of this thread alone; the kernel takes its capabilities away with it (capabilities(7)).
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let root = Root::default();
        ALL.iter().map(|source| (source, entries(&root, source, pid))).collect::<Vec<_>>()
    });
    let seen = seen.join().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for (source, entries) in seen {
        let mut missing = entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::Absent(_, Some(needs)) => Some(needs.as_str()),
            _ => None,
        });
        match source.name {
            "process_files" | "process_syscall" | "process_memory" => assert_eq!(missing.next(), source.needs, "{entries:?}"),
            "conntrack_states" | "kernel_log" => assert!(missing.next().is_none_or(|needs| Some(needs) == source.needs), "{entries:?}"),
            "process_identity" => {
                let observation = observe(&entries, source);
                let identity = observation.processes[&pid].identity.last().unwrap();
                assert_eq!((identity.comm.as_str(), identity.cmdline.as_str(), identity.uid), ("sleep", "sleep 1000", 0));
                assert_eq!((identity.exe.as_deref(), identity.netns), (None, NetnsId(0)));
            }
            _ => assert_eq!(missing.next(), None, "{} needs no privilege", source.name),
        }
    }
}

#[test]
fn a_settings_mode_tells_whether_this_namespace_may_set_it() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root may make a network namespace, or set anything");
        return;
    }
    let check = || {
        let root = Root::default();
        let entries = entries(&root, source("sysctls"), 0);
        let mut modes = Vec::new();
        for entry in entries.iter().filter(|entry| entry.at_us == 0) {
            let (Some(key), Outcome::Ok(mode)) = (entry.item.strip_suffix(" mode"), &entry.outcome) else { continue };
            // Opening alone changes nothing.
            let path = root.path(&format!("proc/sys/{}", key.replace('.', "/")));
            let opens = std::fs::OpenOptions::new().write(true).open(path).is_ok();
            assert_eq!(mode.as_slice(), if opens { b"rw" } else { b"ro" }, "{key}");
            modes.push((key.to_owned(), opens));
        }
        modes
    };
    let here = check();
    let there = std::thread::spawn(move || {
        // SAFETY: the new namespace is this thread's alone (CLONE_NEWNET shares nothing with descriptors or memory), and it ends here.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.ok()?;
        let root = Root::default();
        for (name, key) in [("netstat", "Tcp.PassiveOpens"), ("sockstat", "TCP.tw")] {
            let observation = observe(&entries(&root, source(name), 0), source(name));
            let netns = &observation.netns[&NetnsId(NETNS)];
            let counters = if name == "netstat" { netns.netstat.last() } else { netns.sockstat.last() };
            assert_eq!(counters.unwrap()[key], 0, "{name} of a new namespace");
        }
        Some(check())
    });
    let Some(there) = there.join().unwrap() else {
        println!("skipped: no right to make a network namespace");
        return;
    };
    assert!(there.len() < here.len(), "a namespace has fewer settings than the host");
    assert!(there.contains(&("net.core.somaxconn".to_owned(), true)));
}
