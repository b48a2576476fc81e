//! Steps that set the kernel's limits: recorded, and carried out in network namespaces of the tests' own.
//!
//! Live: servers, namespaces, settings of the whole machine and the clock; nothing is measured.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::recorded::Recorded;
use super::{Lab, Shell, commands, there_and_back};
use crate::harness::{Chokepoint, Netns, Running, has_programs, is_root, wait_until};

/// Recordings whose remedies set sysctls of a network namespace: recording, the namespace's name, remedy.
pub(super) const SETTINGS: &[(&str, &str, &str)] = &[
    ("left-out/syn-queue-full", "cp-syn-queue-full-server", "send-syn-cookies"),
    ("left-out/syn-queue-full", "cp-syn-queue-full-server", "raise-syn-backlog"),
    ("left-out/ports-exhausted", "cp-ports-exhausted-server", "widen-port-range"),
    ("left-out/accept-queue-short", "cp-accept-queue-short-server", "raise-accept-backlog"),
    ("data/ephemeral-ports/port-search", "cp-port-search-server", "reuse-time-wait"),
    ("data/ephemeral-ports/time-wait-accepting", "cp-time-wait-accepting-server", "reuse-upstream-connections-short"),
    ("data/ephemeral-ports/time-wait-accepting", "cp-time-wait-accepting-server", "reuse-upstream-connections-medium"),
    ("data/ephemeral-ports/time-wait-accepting", "cp-time-wait-accepting-server", "reuse-upstream-connections-long"),
    ("misses/conntrack-table/random-20261123-57", "cp-random-20261123-57-router", "shorten-conntrack-time-wait"),
    ("misses/sending/send-buffer-small", "cp-send-buffer-small-server", "raise-send-buffer"),
];
/// Directories of files that the kernel's settings are made of at boot.
const AT_BOOT: &str = "/etc/sysctl.d /etc/modules-load.d";

/// A process in a network namespace, and in a mount namespace with empty directories [`AT_BOOT`].
struct Within {
    process: Running,
}

impl Within {
    fn start(netns: &Netns) -> Self {
        let script = format!("for d in {AT_BOOT}; do mkdir -p $d; mount -t tmpfs tmpfs $d; done; echo ready; exec sleep 1000");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &netns.0, "unshare", "-m", "sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let mut ready = [0; 6];
        std::io::Read::read_exact(process.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Self { process }
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// A shell in both.
    fn shell(&self) -> Shell {
        let before = ["nsenter", "-t", &self.pid().to_string(), "-m", "-n"].map(str::to_owned);
        Shell { before: before.into(), programs: None }
    }
}

/// The sysctls of a remedy: key, old and new value.
fn sysctls(remedy: &Value) -> Vec<(String, String, String)> {
    let text = |change: &Value, field: &str| change[field].as_str().unwrap().to_owned();
    let changes = remedy["change"].as_array().unwrap().iter().filter(|change| change["kind"] == "sysctl");
    changes.map(|change| (text(change, "key"), text(change, "from"), text(change, "to"))).collect()
}

fn in_force(netns: &Netns, key: &str) -> String {
    let output = Command::new("ip").args(["netns", "exec", &netns.0, "sysctl", "-n", key]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().replace('\t', " ")
}

/// The commands of these steps that set sysctls, not those for a server.
fn of_kernel(remedy: &Value, which: &str) -> Vec<String> {
    let commands = remedy[which].as_array().unwrap().iter().filter_map(|step| step["command"].as_str());
    commands.filter(|command| command.contains("sysctl")).map(str::to_owned).collect()
}

/// Carries out the sysctls of a remedy and takes them back.
fn sets_and_restores(netns: &Netns, shell: &Shell, remedy: &Value) {
    let sysctls = sysctls(remedy);
    assert!(!sysctls.is_empty(), "{remedy:#}");
    for (key, from, _) in &sysctls {
        Shell::of_host().run(&format!("ip netns exec {} sysctl -qw {key}='{from}'", netns.0));
    }
    of_kernel(remedy, "runtime").iter().for_each(|command| shell.run(command));
    sysctls.iter().for_each(|(key, _, to)| assert_eq!(&in_force(netns, key), to, "{remedy:#}"));
    of_kernel(remedy, "undo").iter().for_each(|command| shell.run(command));
    sysctls.iter().for_each(|(key, from, _)| assert_eq!(&in_force(netns, key), from, "{remedy:#}"));
}

#[test]
fn the_steps_for_a_sysctl_reach_a_named_namespace_and_one_without_a_name() {
    if !has_programs(&["ip", "nsenter", "unshare", "sysctl"]) {
        return;
    }
    let Some(netns) = Netns::add("steps-in") else { return };
    let within = Within::start(&netns);
    for (recording, name, id) in SETTINGS {
        sets_and_restores(&netns, &Shell::of_host(), &Recorded::of(recording).renamed(name, Some(&netns.0)).remedy(id));
        let unnamed = Recorded::of(recording).renamed(name, None).remedy(id);
        if name.ends_with("-router") {
            // No process that is known runs there, so the step is words.
            assert!(of_kernel(&unnamed, "runtime").is_empty() && unnamed["runtime"][0]["text"].is_string(), "{unnamed:#}");
            continue;
        }
        let unnamed = unnamed.to_string();
        // The recorded process that is in the namespace is this one here.
        let (_, after) = unnamed.split_once("nsenter -t ").unwrap_or_else(|| panic!("{unnamed}"));
        let (pid, _) = after.split_once(' ').unwrap();
        let here = unnamed.replace(&format!("nsenter -t {pid} -n"), &format!("nsenter -t {} -n", within.pid()));
        sets_and_restores(&netns, &Shell::of_host(), &serde_json::from_str(&here).unwrap());
    }
}

/// The namespace stands for the host: a shell in it has no prefix, and its directories of files for the boot are empty. What an administrator has set in
/// /etc/sysctl.conf, which Debian's `99-sysctl.conf` leads to, does not win.
#[test]
fn the_steps_for_a_sysctl_of_the_host_keep_it_across_a_boot_and_the_undo_forgets_it() {
    if !has_programs(&["ip", "nsenter", "unshare", "sysctl"]) {
        return;
    }
    let Some(netns) = Netns::add("steps-host") else { return };
    let within = Within::start(&netns);
    let shell = within.shell();
    for (recording, name, id) in SETTINGS {
        let remedy = Recorded::of(recording).on_host(name).remedy(id);
        sets_and_restores(&netns, &shell, &remedy);
        shell.carry_out(&remedy, "persistent");
        sysctls(&remedy).iter().for_each(|(key, from, _)| assert_eq!(&in_force(&netns, key), from, "{id}: not before the boot"));
        let settings = sysctls(&remedy);
        let other = settings.iter().map(|(key, from, _)| format!("'{key} = {from}'")).collect::<Vec<_>>().join(" ");
        shell.run(&format!("printf '%s\\n' {other} > /etc/sysctl.d/99-sysctl.conf"));
        boot(&shell, &settings);
        sysctls(&remedy).iter().for_each(|(key, _, to)| assert_eq!(&in_force(&netns, key), to, "{id}: kept across the boot"));
        let is_conntrack = sysctls(&remedy).iter().any(|(key, ..)| key.starts_with("net.netfilter."));
        shell.run(if is_conntrack {
            "test \"$(cat /etc/modules-load.d/*)\" = nf_conntrack"
        } else {
            "test -z \"$(ls /etc/modules-load.d)\""
        });
        of_kernel(&remedy, "undo").iter().for_each(|command| shell.run(command));
        sysctls(&remedy).iter().for_each(|(key, from, _)| assert_eq!(&in_force(&netns, key), from, "{id}: taken back"));
        shell.run(&format!("rm /etc/sysctl.d/99-sysctl.conf; test -z \"$(find {AT_BOOT} -type f)\""));
    }
}

/// Sets these keys as a boot does (systemd-sysctl(8)), or in the order of the files' names where there is no systemd.
fn boot(shell: &Shell, settings: &[(String, String, String)]) {
    let prefixes = settings.iter().map(|(key, ..)| format!("--prefix=/{}", key.replace('.', "/"))).collect::<Vec<_>>().join(" ");
    let systemd = "/lib/systemd/systemd-sysctl";
    shell.run(&format!("if [ -x {systemd} ]; then {systemd} {prefixes}; else LC_ALL=C cat /etc/sysctl.d/*.conf | sysctl -q -p -; fi"));
}

/// A sysctl of the whole machine, put back when this is dropped: before the lab goes down, which puts back its own.
struct Guard {
    key: &'static str,
    value: String,
}

impl Guard {
    fn of(key: &'static str) -> Self {
        Self { key, value: host(key) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let set = Command::new("sysctl").args(["-qw", &format!("{}={}", self.key, self.value)]).status();
        assert!(std::thread::panicking() || set.is_ok_and(|status| status.success()), "{} is not {} again", self.key, self.value);
    }
}

fn host(key: &str) -> String {
    let output = Command::new("sysctl").args(["-n", key]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The table's limit belongs to the whole machine. The lab of the recording sets it to the recorded value, and puts back what was there.
#[test]
fn the_steps_for_a_full_conntrack_table_raise_its_limit_and_its_buckets() {
    let chokepoint = Chokepoint::new();
    if !is_root() || !has_programs(&["sysctl", "unshare"]) {
        return;
    }
    let (max, buckets) = ("net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets");
    let Some(_lab) = Lab::up(&chokepoint, "conntrack-full") else { return };
    let _guards = [Guard::of(buckets), Guard::of(max)];
    let recorded = Recorded::of("data/conntrack-table/conntrack-full");
    let remedy = [buckets, max].into_iter().fold(recorded, |recorded, key| recorded.with_sysctl_of_host(key, host(key)));
    let remedy = remedy.remedy("raise-conntrack-max");
    let sysctls = sysctls(&remedy);
    let output = Command::new("unshare").args(["-m", "sleep", "1000"]).stdin(Stdio::null()).spawn().unwrap();
    let process = Running(output);
    let shell = Shell { before: ["nsenter", "-t", &process.0.id().to_string(), "-m"].map(str::to_owned).into(), programs: None };
    let own = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    wait_until("the process has its own mounts", || own(&process.0.id().to_string()) != own("self"));
    shell.run(&format!("for d in {AT_BOOT}; do mkdir -p $d; mount -t tmpfs tmpfs $d; done"));
    shell.carry_out(&remedy, "runtime");
    sysctls.iter().for_each(|(key, _, to)| assert_eq!(&host(key), to));
    shell.carry_out(&remedy, "persistent");
    shell.run("test \"$(cat /etc/modules-load.d/*)\" = nf_conntrack");
    let kept: String = sysctls.iter().map(|(key, _, to)| format!("{key} = {to};")).collect();
    shell.run(&format!("test \"$(cat /etc/sysctl.d/*.conf | tr '\\n' ';')\" = '{kept}'"));
    shell.carry_out(&remedy, "undo");
    sysctls.iter().for_each(|(key, from, _)| assert_eq!(&host(key), from));
    shell.run(&format!("test -z \"$(find {AT_BOOT} -type f)\""));
}

/// The cgroup that the recording is about.
const CGROUP: &str = "/cp-quota-throttled-php";

/// The file with the limit of the lab's cgroup, and what it has for this many microseconds of a period of 100 ms.
pub(super) fn quota_file() -> (PathBuf, fn(u32) -> String) {
    let of_version_1 = PathBuf::from(format!("/sys/fs/cgroup/cpu{CGROUP}/cpu.cfs_quota_us"));
    if of_version_1.exists() {
        return (of_version_1, |quota_us| quota_us.to_string());
    }
    (PathBuf::from(format!("/sys/fs/cgroup{CGROUP}/cpu.max")), |quota_us| format!("{quota_us} 100000"))
}

#[test]
fn the_steps_for_a_cpu_quota_write_it_to_the_cgroup() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "quota-throttled") else { return };
    let (file, line) = quota_file();
    if !file.exists() {
        println!("skipped: the lab's cgroup is not below /sys/fs/cgroup");
        return;
    }
    let recorded = Recorded::of("data/cpu-quota/quota-throttled");
    let is_version_2 = file.ends_with("cpu.max");
    let recorded = if is_version_2 { recorded.in_version_2(CGROUP, file.parent().unwrap().to_str().unwrap()) } else { recorded };
    let remedy = recorded.remedy("raise-cpu-quota");
    let in_force = || std::fs::read_to_string(&file).ok().map(|quota| quota.trim().to_owned());
    assert_eq!((commands(&remedy, "runtime").len(), in_force()), (1, Some(line(20_000))), "{remedy:#}");
    there_and_back(&lab, &remedy, &in_force);
}

/// A directory stands for the cgroup: version 2 may have no controller `cpu` here.
#[test]
fn the_steps_for_a_cpu_quota_of_version_2_write_quota_and_period() {
    let chokepoint = Chokepoint::new();
    let dir = chokepoint.path("a cgroup");
    std::fs::create_dir(&dir).unwrap();
    let remedy = Recorded::of("data/cpu-quota/quota-throttled").in_version_2(CGROUP, &dir).remedy("raise-cpu-quota");
    let written = || std::fs::read_to_string(chokepoint.file("a cgroup").join("cpu.max")).unwrap();
    Shell::of_host().carry_out(&remedy, "runtime");
    assert_eq!(written(), "100000 100000\n");
    Shell::of_host().carry_out(&remedy, "undo");
    assert_eq!(written(), "20000 100000\n");
}
