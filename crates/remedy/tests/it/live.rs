//! The real kernel, in the test's own network namespaces: only the right namespace is changed.
//!
//! Live: processes in namespaces.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use chokepoint_model::change::Change;
use chokepoint_model::observation::NetnsId;
use chokepoint_remedy::{ApplyError, Filter, Purpose, Store, boot_id};

const KEY: &str = "net.core.somaxconn";

/// The test's own network namespace. Dropping it removes it.
struct Netns(String);

impl Netns {
    fn add(name: &str) -> Option<Self> {
        let name = format!("t-store-{name}-{}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).output();
        if !added.is_ok_and(|output| output.status.success()) {
            println!("skipped: no network namespace can be made here (needs root and ip(8))");
            return None;
        }
        Some(Self(name))
    }

    fn id(&self) -> NetnsId {
        NetnsId(std::fs::metadata(Path::new("/run/netns").join(&self.0)).unwrap().ino())
    }

    fn get(&self) -> String {
        self.sysctl(&["-n", KEY])
    }

    fn set(&self, value: &str) {
        self.sysctl(&["-w", &format!("{KEY}={value}")]);
    }

    fn sysctl(&self, args: &[&str]) -> String {
        let output = Command::new("ip").args(["netns", "exec", &self.0, "sysctl"]).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn store(dir: &Path) -> Store {
    Store::open(dir, Path::new("/"), boot_id(Path::new("/")).unwrap()).unwrap()
}

fn change(netns: NetnsId, key: &str, from: &str, to: &str) -> Change {
    Change::Sysctl { key: key.into(), netns, netns_name: "t".into(), from: from.into(), to: to.into() }
}

fn purpose() -> Purpose {
    Purpose { finding: "accept-queue-full".into(), remedy: "raise-somaxconn".into(), owner: "lab:test".into() }
}

fn own() -> String {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().to_owned()
}

#[test]
fn a_change_affects_only_its_namespace() {
    let (Some(one), Some(other)) = (Netns::add("one"), Netns::add("other")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (host_before, was) = (own(), one.get());
    let mut guard = store(dir.path()).lock().unwrap();
    guard.apply(&[change(one.id(), KEY, &was, "777")], &purpose(), &mut |_| {}).unwrap();
    assert_eq!((one.get().as_str(), other.get(), own()), ("777", was.clone(), host_before.clone()));
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.is_clean()), (1, true), "{report:?}");
    assert_eq!((one.get(), own()), (was.clone(), host_before));

    guard.apply(&[change(one.id(), KEY, &was, "777")], &purpose(), &mut |_| {}).unwrap();
    one.set("888");
    assert_eq!(guard.undo(&Filter::All).conflicts[0].found, "888");
    assert_eq!(one.get(), "888");
}

#[test]
fn a_setting_with_two_values_is_restored() {
    let Some(netns) = Netns::add("ports") else { return };
    let key = "net.ipv4.ip_local_port_range";
    let dir = tempfile::tempdir().unwrap();
    let mut guard = store(dir.path()).lock().unwrap();
    let was = netns.sysctl(&["-n", key]);
    guard.apply(&[change(netns.id(), key, &was.replace('\t', " "), "20000 20050")], &purpose(), &mut |_| {}).unwrap();
    assert_eq!(netns.sysctl(&["-n", key]), "20000\t20050");
    assert!(guard.undo(&Filter::All).is_clean());
    assert_eq!(netns.sysctl(&["-n", key]), was);
}

#[test]
fn each_refusal_of_the_kernel_has_its_own_error_and_is_undone() {
    let Some(netns) = Netns::add("refuse") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut guard = store(dir.path()).lock().unwrap();
    let was = netns.get();
    let refused = guard.apply(
        &[change(netns.id(), KEY, &was, "777"), change(netns.id(), "net.ipv4.tcp_fin_timeout", "60", "no number")],
        &purpose(),
        &mut |_| {},
    );
    assert!(matches!(refused, Err(ApplyError::Refused { .. })), "{refused:?}");
    assert_eq!(netns.get(), was, "the first of the set was taken back");
    assert_eq!(guard.pending(), []);
    let missing = guard.apply(&[change(netns.id(), "net.ipv4.no_such_thing", "1", "2")], &purpose(), &mut |_| {});
    assert!(matches!(missing, Err(ApplyError::Missing { .. })), "{missing:?}");

    // The table's limit belongs to the host: a child namespace can read it but not set it.
    let max = netns.sysctl(&["-n", "net.netfilter.nf_conntrack_max"]);
    if max.is_empty() {
        println!("skipped: nf_conntrack is not loaded");
        return;
    }
    let denied = guard.apply(&[change(netns.id(), "net.netfilter.nf_conntrack_max", &max, &format!("{max}1"))], &purpose(), &mut |_| {});
    match denied {
        Err(ApplyError::NoPermission { why, .. }) => assert!(why.contains("read-only in this network namespace"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(netns.sysctl(&["-n", "net.netfilter.nf_conntrack_max"]), max);
}

#[test]
fn an_unnamed_namespace_is_found_through_its_process_until_it_ends() {
    let Some(netns) = Netns::add("unnamed") else { return };
    let mut process = Command::new("ip").args(["netns", "exec", &netns.0, "sleep", "60"]).spawn().unwrap();
    // The process is in the namespace once it has become sleep(1).
    let ns = format!("/proc/{}/ns/net", process.id());
    let id = netns.id();
    for _ in 0..500 {
        if std::fs::metadata(&ns).is_ok_and(|meta| meta.ino() == id.0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let was = netns.get();
    drop(netns);
    let dir = tempfile::tempdir().unwrap();
    let mut guard = store(dir.path()).lock().unwrap();
    let applied = guard.apply(&[change(id, KEY, &was, "777")], &purpose(), &mut |_| {});
    let _ = process.kill();
    let _ = process.wait();
    applied.unwrap();
    // The kernel removes a namespace shortly after its last user ends. Its inode may be reused at once.
    let report = guard.undo(&Filter::All);
    assert_eq!((report.gone.len(), report.restored.len(), report.is_clean()), (1, 0, true), "{report:?}");
    let again = guard.apply(&[change(id, KEY, "777", "778")], &purpose(), &mut |_| {});
    assert!(matches!(again, Err(ApplyError::NetnsGone { .. } | ApplyError::Changed { .. })), "{again:?}");
}

#[test]
fn a_namespace_with_a_reused_inode_is_another_one() {
    let Some(first) = Netns::add("first") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut guard = store(dir.path()).lock().unwrap();
    let (was, id) = (first.get(), first.id());
    guard.apply(&[change(id, KEY, &was, "777")], &purpose(), &mut |_| {}).unwrap();
    drop(first);
    // The kernel reuses the lowest free inode: one of the next namespaces gets it, unless other processes are faster.
    let mut others = Vec::new();
    let reused = (0..100).any(|n| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let Some(netns) = Netns::add(&format!("next{n}")) else { return false };
        let same = netns.id() == id;
        if same || n < 10 {
            others.push(netns);
        }
        same
    });
    if !reused {
        println!("skipped: the kernel did not give the number again");
        return;
    }
    let reborn = others.last().unwrap();
    reborn.set("777");
    let report = guard.undo(&Filter::All);
    assert_eq!((report.gone.len(), report.restored.len()), (1, 0), "{report:?}");
    assert_eq!(reborn.get(), "777", "what another namespace holds is not ours");
}

#[test]
fn without_privileges_the_refusal_names_what_is_missing() {
    const CHILD: &str = "CHOKEPOINT_TEST_UNPRIVILEGED";
    if std::env::var_os(CHILD).is_some() {
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let netns = NetnsId(std::fs::metadata("/proc/self/ns/net").unwrap().ino());
        let mut guard = store(dir.path()).lock().unwrap();
        let own_value = own();
        let refused = guard.apply(&[change(netns, KEY, &own_value, "777")], &purpose(), &mut |_| {}).unwrap_err();
        assert!(refused.to_string().contains("CAP_NET_ADMIN"), "{refused}");
        let hidden = guard.apply(&[change(NetnsId(1), KEY, &own_value, "777")], &purpose(), &mut |_| {}).unwrap_err();
        assert!(hidden.to_string().contains("CAP_SYS_ADMIN"), "{hidden}");
        assert_eq!((guard.pending(), own()), (vec![], own_value));
        println!("refused as it should be");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "live::without_privileges_the_refusal_names_what_is_missing", "--nocapture"]).env(CHILD, "1");
    let Ok(output) = child.uid(65534).gid(65534).current_dir("/").output() else {
        println!("skipped: user 65534 may not run this program where it lies");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("refused as it should be"), "{text}");
}
