//! Builds real labs and checks that nothing of them is left, even if the builder is killed at any step. Needs root.
//!
//! Live beside others: servers in namespaces of its own; what is there and what is left is judged.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use chokepoint_lab::{DownOptions, Lab, LabError, LeftoverKind, Options, Scenario, down, down_all, inside, leftovers, preflight};

/// A lab without faults and with every kind of part. `NAME` is replaced, so that tests can run in parallel.
const SCENARIO: &str = r#"
schema = 1
name = "NAME"
title = "A test."
[[host]]
name = "client"
routes = [{ to = "default", via = "10.7.1.254" }, { to = "default", via = "fd71::254" }]
[[host]]
name = "router"
sysctls = { "net.ipv4.ip_forward" = 1, "net.ipv6.conf.all.forwarding" = 1 }
[[host]]
name = "server"
sysctls = { "net.core.somaxconn" = "10", "net.ipv4.tcp_rmem" = "4096 131072 6291456" }
routes = [{ to = "default", via = "10.7.2.254" }, { to = "default", via = "fd72::254" }]
[[link]]
mtu = 1400
a = { host = "client", addresses = ["10.7.1.1/24", "fd71::1/64"] }
b = { host = "router", addresses = ["10.7.1.254/24", "fd71::254/64"] }
[[link]]
a = { host = "router", addresses = ["10.7.2.254/24", "fd72::254/64"] }
b = { host = "server", addresses = ["10.7.2.1/24", "fd72::1/64"] }
[[file]]
path = "a/b/page.txt"
content = "{lab} {address:server}"
mode = "0600"
[[file]]
path = "noise"
size = "10001B"
[[server]]
name = "stubborn"
host = "server"
kind = "command"
command = ["sh", "-c", "sleep 1000 & sleep 1000 & wait"]
nofile = 64
[client]
host = "client"
cpus = [0]
[load]
url = "http://{address:server}:81/"
"#;

fn scenario(name: &str, more: &str) -> Scenario {
    Scenario::parse(&format!("{}{more}", SCENARIO.replace("NAME", name)), "test").unwrap_or_else(|error| panic!("{error}"))
}

/// Restores a file when dropped, also if the test fails.
struct PutBack(&'static str, String);

impl Drop for PutBack {
    fn drop(&mut self) {
        std::fs::write(self.0, &self.1).unwrap();
    }
}

/// A run root that other users can pass through. `None`, with a message, where labs cannot be built.
fn run_root() -> Option<tempfile::TempDir> {
    if let Err(missing) = preflight(&scenario("t-none", "")) {
        println!("skipped: {}", missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        return None;
    }
    let root = tempfile::tempdir().unwrap();
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(root)
}

fn up(scenario: &Scenario, root: &Path, outlive: bool) -> Result<Lab, LabError> {
    Lab::up(scenario, Options { run_root: root.to_owned(), outlive, within: None, cancelled: None, on_step: &mut |_| () })
}

fn namespaces(lab: &str) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return BTreeSet::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("cp-{lab}-"))).collect()
}

/// The processes of labs: their HOME is below the run root.
fn processes_of(root: &Path) -> Vec<String> {
    let needle = format!("HOME={}/", root.display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&needle)))
        .collect()
}

fn assert_nothing_left(lab: &str, root: &Path) {
    assert_eq!(namespaces(lab), BTreeSet::new());
    assert_eq!(processes_of(root), Vec::<String>::new());
    assert!(!root.join("lab").exists(), "{:?}", std::fs::read_dir(root.join("lab")).map(|entries| entries.count()));
    assert!(leftovers(root).unwrap().is_empty());
}

#[test]
fn a_lab_matches_its_file_and_is_removed_completely() {
    let Some(root) = run_root() else { return };
    let lab = up(&scenario("t-whole", ""), root.path(), false).unwrap();
    assert_eq!(lab.url(), "http://10.7.2.1:81/");
    assert_eq!(lab.netns_name("server").as_deref(), Some("cp-t-whole-server"));
    assert_eq!((lab.netns_name("x"), namespaces("t-whole").len()), (None, 3));
    assert_eq!(std::fs::read_to_string(lab.run_path().join("a/b/page.txt")).unwrap(), "t-whole 10.7.2.1");
    assert_eq!(std::fs::metadata(lab.run_path().join("a/b/page.txt")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(lab.run_path().join("noise")).unwrap().len(), 10_001);
    let server = lab.netns_path("server").unwrap();
    let sysctl = |key: &str| inside(&server, || std::fs::read_to_string(format!("/proc/sys/{key}")).unwrap()).unwrap();
    assert_eq!((sysctl("net/core/somaxconn").trim(), sysctl("net/ipv4/tcp_rmem").trim()), ("10", "4096\t131072\t6291456"));
    for address in ["10.7.2.1:9", "[fd72::1]:9"] {
        let receiver = inside(&server, || UdpSocket::bind(address).unwrap()).unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let any = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        inside(&lab.client_netns_path(), || UdpSocket::bind(any).unwrap().send_to(b"over the router", address).unwrap()).unwrap();
        // A read with a time limit ends with EINTR also where no handler ran (signal(7)).
        let receive =
            || Some(receiver.recv(&mut [0; 64])).filter(|read| !matches!(read, Err(error) if error.kind() == ErrorKind::Interrupted));
        assert_eq!(std::iter::repeat_with(receive).flatten().next().unwrap().unwrap(), 15);
    }
    let pid = lab.servers()[0].pid;
    assert!(std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap().contains("Max open files            64                   64"));
    let listed = leftovers(root.path()).unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].kind), (1, "t-whole", LeftoverKind::InUse));
    assert!(matches!(up(&scenario("t-whole", ""), root.path(), false), Err(LabError::Exists { .. })));
    let report = lab.down().unwrap();
    assert!(report.is_clean() && report.found, "{report}");
    assert_nothing_left("t-whole", root.path());
    let again = down(root.path(), "t-whole", DownOptions::default()).unwrap();
    assert!(again.is_clean() && !again.found);
}

#[test]
fn hosts_meet_at_a_bridge_and_an_end_is_shaped() {
    let Some(root) = run_root() else { return };
    let more = "[[host]]\nname = 'switch'\nbridge = true\n\
        [[link]]\na = { host = 'client', shape = { rate = '8mbit', burst = '16KiB', limit = '64KiB' } }\nb = { host = 'switch' }\n\
        [[link]]\na = { host = 'switch' }\nb = { host = 'a-host-with-a-long-name' }\n[[host]]\nname = 'a-host-with-a-long-name'\n";
    let lab = match up(&scenario("t-bridge", more), root.path(), false) {
        Err(LabError::Tool { command, output }) if command.contains("bridge") => {
            println!("skipped: this kernel has no bridge ({output})");
            return;
        }
        other => other.unwrap(),
    };
    let far = lab.netns_path("a-host-with-a-long-name").unwrap();
    for address in ["10.78.200.2:9", "[fd78:0:0:c8::2]:9"] {
        let receiver = inside(&far, || UdpSocket::bind(address).unwrap()).unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let any = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        inside(&lab.client_netns_path(), || UdpSocket::bind(any).unwrap().send_to(b"x", address).unwrap()).unwrap();
        assert_eq!(receiver.recv(&mut [0; 64]).unwrap(), 1);
    }
    let output = Command::new("tc").args(["-n", "cp-t-bridge-client", "qdisc", "show", "dev", "to-switch"]).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("tbf") && shown.contains("rate 8Mbit"), "{shown}");
    assert!(lab.down().unwrap().is_clean());
    assert_nothing_left("t-bridge", root.path());
}

#[test]
fn a_prefill_makes_one_entry_per_flow() {
    let Some(root) = run_root() else { return };
    let more = "[[prefill]]\nhost = 'client'\nto = '10.9.0.2:9'\nflows = 3000\n[[prefill]]\nhost = 'client'\nto = '[fd79::2]:9'\nflows = 500\n\
        [[prefill]]\nhost = 'client'\nto = '10.9.0.2:9'\nflows = 200\n\
        [[link]]\na = { host = 'client', addresses = ['10.9.0.1/24', 'fd79::1/64'] }\nb = { host = 'tracked', addresses = ['10.9.0.2/24', 'fd79::2/64'] }\n\
        [[host]]\nname = 'tracked'\nsysctls = { 'net.netfilter.nf_conntrack_udp_timeout' = 600 }\n\
        nftables = 'table inet filter { chain input { type filter hook input priority filter; udp dport 9 ct state new accept; }; }'\n";
    let scenario = scenario("t-fill", more);
    if let Err(missing) = preflight(&scenario) {
        println!("skipped: {}", missing[0]);
        return;
    }
    let lab = up(&scenario, root.path(), false).unwrap_or_else(|error| panic!("{error}"));
    let count = |host: &str| {
        let path = "/proc/sys/net/netfilter/nf_conntrack_count";
        let text = inside(&lab.netns_path(host).unwrap(), || std::fs::read_to_string(path).unwrap()).unwrap();
        text.trim().parse::<u32>().unwrap()
    };
    assert_eq!((count("tracked"), count("client")), (3700, 0));
    assert!(lab.down().unwrap().is_clean());
    assert_nothing_left("t-fill", root.path());
}

#[test]
fn nginx_and_php_fpm_answer() {
    use std::io::{Read, Write};
    let Some(root) = run_root() else { return };
    let text = Scenario::find("churn-cpu").unwrap().text().replace("\"churn-cpu\"", "\"t-php\"");
    let scenario = Scenario::parse(&text, "test").unwrap();
    if let Err(missing) = preflight(&scenario) {
        println!("skipped: {}", missing[0]);
        return;
    }
    let lab = up(&scenario, root.path(), false).unwrap_or_else(|error| panic!("{error}"));
    for address in ["10.78.0.2:80", "[fd78::2]:80"] {
        let mut stream = inside(&lab.client_netns_path(), || std::net::TcpStream::connect(address).unwrap()).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("Hello World!"), "{answer}");
    }
    assert_eq!(lab.servers().iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["php-fpm", "nginx"]);
    assert!(lab.down().unwrap().is_clean());
    assert_nothing_left("t-php", root.path());
}

#[test]
fn a_dropped_or_interrupted_lab_is_removed() {
    let Some(root) = run_root() else { return };
    drop(up(&scenario("t-drop", ""), root.path(), false).unwrap());
    assert_nothing_left("t-drop", root.path());
    for stop_at in 0.. {
        let (mut step, cancelled) = (0, AtomicBool::new(false));
        let mut on_step = |_: &str| {
            cancelled.fetch_or(step == stop_at, Ordering::Relaxed);
            step += 1;
        };
        let options =
            Options { run_root: root.path().to_owned(), outlive: false, within: None, cancelled: Some(&cancelled), on_step: &mut on_step };
        let result = Lab::up(&scenario("t-drop", ""), options);
        match result {
            Err(LabError::Interrupted) => assert_nothing_left("t-drop", root.path()),
            Ok(lab) => {
                assert!(stop_at > 8, "{stop_at} steps only");
                assert!(lab.down().unwrap().is_clean());
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_nothing_left("t-drop", root.path());
}

#[test]
fn a_failed_server_is_reported_with_its_output_and_nothing_is_left() {
    let Some(root) = run_root() else { return };
    let server = |command: &str, ready: &str| {
        format!("[[server]]\nname = 'bad'\nhost = 'server'\nkind = 'command'\ncommand = ['sh', '-c', '{command}']\n{ready}\n")
    };
    let cases = [
        (server("echo no such luck >&2; exit 3", ""), ["ended at once (exit status: 3)", "no such luck"]),
        (
            server("sleep 100", "ready = { tcp = '10.7.2.1:99', timeout = '300ms' }"),
            ["not ready after 0.3 s", "nothing listens on 10.7.2.1:99"],
        ),
        (
            "[[prefill]]\nhost = 'client'\nto = '192.0.2.1:9'\nflows = 1\n[host_sysctls]\n'net.no.such' = 1\n".into(),
            ["net.no.such", "no such setting"],
        ),
        ("[[host]]\nname = 'x'\nsysctls = { 'net.core.netdev_max_backlog' = 5 }\n".into(), ["netdev_max_backlog", "[host_sysctls]"]),
        (
            "[[host]]\nname = 'x'\nsysctls = { 'net.core.somaxconn' = 'many' }\n".into(),
            ["in host \"x\"", "does not accept the value \"many\""],
        ),
        (
            "[[server]]\nname = 'x'\nhost = 'server'\nkind = 'command'\ncommand = ['no-such-program']\n".into(),
            ["server \"x\"", "no program \"no-such-program\""],
        ),
    ];
    for (more, words) in cases {
        let error = up(&scenario("t-bad", &more), root.path(), false).map(|_| ()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{more}\n{error}");
        assert_nothing_left("t-bad", root.path());
    }
}

#[test]
fn conflicting_labs_are_refused() {
    let Some(root) = run_root() else { return };
    // The lab sets the present value again: the machine does not change, but the setting belongs to the lab.
    let value = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap();
    let more = format!("[host_sysctls]\n'fs.pipe-max-size' = '{}'\n", value.trim());
    let first = up(&scenario("t-one", &more), root.path(), true).unwrap();
    let taken = up(&scenario("t-two", &more), root.path(), false).map(|_| ()).unwrap_err();
    assert!(matches!(&taken, LabError::SysctlTaken { other, .. } if other == "t-one"), "{taken}");
    let overlap = Scenario::parse(&SCENARIO.replace("NAME", "t").replace("\"client\"", "\"one-client\""), "test").unwrap();
    let taken = up(&overlap, root.path(), false).map(|_| ()).unwrap_err();
    assert!(matches!(&taken, LabError::NamespaceTaken { by: Some(by), .. } if by == "t-one"), "{taken}");
    let second = up(&scenario("t-two", ""), root.path(), true).unwrap();
    drop((first, second));
    let attached = Lab::attach(root.path(), "t-one").unwrap();
    assert_eq!((attached.url(), attached.servers().len()), ("http://10.7.2.1:81/", 1));
    drop(attached);
    assert_eq!(leftovers(root.path()).unwrap().iter().map(|lab| lab.kind).collect::<Vec<_>>(), [LeftoverKind::Up, LeftoverKind::Up]);
    let reports = down_all(root.path(), DownOptions::default()).unwrap();
    assert!(reports.len() == 2 && reports.iter().all(|report| report.is_clean()));
    assert!(matches!(Lab::attach(root.path(), "t-one"), Err(LabError::NotUp(_))));
    assert_nothing_left("t-one", root.path());
    assert_nothing_left("t-two", root.path());
}

#[test]
fn a_setting_changed_by_someone_else_is_left_alone_and_reported() {
    let Some(root) = run_root() else { return };
    let path = "/proc/sys/fs/aio-max-nr";
    let original = std::fs::read_to_string(path).unwrap().trim().to_owned();
    let _put_back = PutBack(path, original.clone());
    let more = "[host_sysctls]\n'fs.aio-max-nr' = 70001\n";
    let lab = up(&scenario("t-change", more), root.path(), true).unwrap();
    assert_eq!(lab.host_sysctls(), [("fs.aio-max-nr".to_owned(), original.clone(), "70001".to_owned())]);
    std::fs::write(path, "70002").unwrap();
    let report = lab.down().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().trim(), "70002");
    assert_eq!(
        (report.conflicts.len(), report.conflicts[0].found.as_str(), report.conflicts[0].original.as_str()),
        (1, "70002", original.as_str())
    );
    assert_eq!(namespaces("t-change"), BTreeSet::new());
    let listed = leftovers(root.path()).unwrap();
    assert_eq!((listed[0].kind, listed[0].host_sysctls.len()), (LeftoverKind::Abandoned, 1));
    let forced = down(root.path(), "t-change", DownOptions { force: true }).unwrap();
    assert!(forced.is_clean(), "{forced}");
    assert_eq!(std::fs::read_to_string(path).unwrap().trim(), original);
    assert_nothing_left("t-change", root.path());
}

const CRASH_ROOT: &str = "CHOKEPOINT_LAB_TEST_ROOT";
const CRASH_STEP: &str = "CHOKEPOINT_LAB_TEST_STEP";

/// Not a test by itself: the process that [`down_cleans_up_after_a_builder_killed_at_any_step`] kills.
#[test]
fn crashing_builder() {
    let (Ok(root), Ok(crash_at)) = (std::env::var(CRASH_ROOT), std::env::var(CRASH_STEP)) else { return };
    let crash_at: usize = crash_at.parse().unwrap();
    let mut step = 0;
    let kill_self = || {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    };
    let mut on_step = |_: &str| {
        if step == crash_at {
            kill_self();
        }
        step += 1;
    };
    let more = "[host_sysctls]\n'fs.mqueue.msg_default' = 11\n";
    let options = Options { run_root: root.into(), outlive: false, within: None, cancelled: None, on_step: &mut on_step };
    let _lab = Lab::up(&scenario("t-crash", more), options).unwrap();
    kill_self();
}

#[test]
fn down_cleans_up_after_a_builder_killed_at_any_step() {
    let Some(root) = run_root() else { return };
    let path = Path::new("/proc/sys/fs/mqueue/msg_default");
    let Ok(original) = std::fs::read_to_string(path) else {
        println!("skipped: this kernel has no {}", path.display());
        return;
    };
    let (mut built, mut set) = (0, 0);
    for step in 0..40 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "live::crashing_builder", "--nocapture"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.env(CRASH_ROOT, root.path()).env(CRASH_STEP, step.to_string());
        assert!(!command.status().unwrap().success());
        built += usize::from(!namespaces("t-crash").is_empty());
        set += usize::from(std::fs::read_to_string(path).unwrap() != original);
        let listed = leftovers(root.path()).unwrap();
        assert_eq!((listed.len(), listed[0].kind), (1, LeftoverKind::Abandoned), "step {step}");
        let report = down(root.path(), "t-crash", DownOptions::default()).unwrap();
        assert!(report.is_clean(), "step {step}: {report}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), original);
        assert_nothing_left("t-crash", root.path());
        if set >= 4 {
            break;
        }
    }
    assert!(built > 5 && set > 2, "{built} {set}");
}

#[test]
fn a_foreign_namespace_is_never_touched() {
    let Some(root) = run_root() else { return };
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    ip(&["netns", "add", "cp-t-other-router"]);
    let refused = up(&scenario("t-other", ""), root.path(), false).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, LabError::NamespaceTaken { netns, by: None } if netns == "cp-t-other-router"), "{refused}");
    assert_eq!(namespaces("t-other").len(), 1);
    ip(&["netns", "del", "cp-t-other-router"]);
    // One was removed by hand with processes in it; one was replaced by another of the same name.
    let lab = up(&scenario("t-other", ""), root.path(), true).unwrap();
    ip(&["netns", "del", "cp-t-other-server"]);
    ip(&["netns", "del", "cp-t-other-client"]);
    ip(&["netns", "add", "cp-t-other-client"]);
    let report = lab.down().unwrap();
    assert_eq!((report.problems.len(), namespaces("t-other").len()), (1, 1), "{report}");
    assert_eq!(processes_of(root.path()), Vec::<String>::new());
    ip(&["netns", "del", "cp-t-other-client"]);
    assert!(down(root.path(), "t-other", DownOptions::default()).unwrap().is_clean());
    assert_nothing_left("t-other", root.path());
}

#[test]
fn servers_run_in_their_cgroups_which_are_removed() {
    let Some(root) = run_root() else { return };
    let more = "[[cgroup]]\nname = 'pod'\ncores = 0.8\n[[cgroup]]\nname = 'app'\ncores = 0.5\nperiod = '50ms'\nwithin = 'pod'\n\
        [[server]]\nname = 'limited'\nhost = 'server'\nkind = 'command'\ncommand = ['sh', '-c', 'sleep 1000 & wait']\ncgroup = 'app'\n";
    let scenario = scenario("t-cgroup", more);
    if let Err(missing) = preflight(&scenario) {
        println!("skipped: {}", missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        return;
    }
    let lab = up(&scenario, root.path(), false).unwrap_or_else(|error| panic!("{error}"));
    let servers = lab.servers();
    let cgroups = |name: &str| {
        let pid = servers.iter().find(|server| server.name == name).unwrap().pid;
        std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
    };
    let inner = "/cp-t-cgroup-pod/cp-t-cgroup-app";
    let within: Vec<String> = cgroups("limited").lines().filter(|line| line.ends_with(inner)).map(str::to_owned).collect();
    assert!(!within.is_empty() && !cgroups("stubborn").contains("t-cgroup"), "{within:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter(|line| line.contains(" - cgroup")).filter_map(|line| line.split(' ').nth(4));
    let made: Vec<String> = points.map(|point| format!("{point}{inner}")).filter(|dir| Path::new(dir).is_dir()).collect();
    let limit = made.iter().find_map(|dir| {
        std::fs::read_to_string(format!("{dir}/cpu.cfs_quota_us")).or_else(|_| std::fs::read_to_string(format!("{dir}/cpu.max"))).ok()
    });
    assert!(limit.is_some_and(|limit| limit.starts_with("25000")), "half of 50 ms");
    assert!(lab.down().unwrap().is_clean());
    assert!(made.iter().all(|dir| !Path::new(dir).exists()));
    assert_nothing_left("t-cgroup", root.path());
}
