//! The journal as others see it: another user beside root, and a process beside another one that runs.
//!
//! Live beside others: two processes at one lock.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chokepoint_model::change::Change;
use chokepoint_model::observation::NetnsId;
use chokepoint_remedy::{ApplyError, Filter, HostPending, RemedyError, Store, boot_id};

use crate::support::{Host, MAX, PORTS, SOMAXCONN, change, purpose};

const CHILD: &str = "CHOKEPOINT_TEST_HOST_DIR";

fn store(dir: &Path) -> Store {
    Store::open(dir, Path::new("/"), boot_id(Path::new("/")).unwrap()).unwrap()
}

#[test]
fn another_user_gives_way_to_root_and_root_to_nobody() {
    if let Some(host) = std::env::var_os(CHILD) {
        let own = tempfile::tempdir_in("/tmp").unwrap();
        let own_store = || store(own.path()).beside_host(host.clone().into());
        match own_store().lock() {
            Ok(_guard) => {
                let again = own_store().lock();
                assert!(matches!(again, Err(RemedyError::LockHeld { .. })), "{again:?}");
                assert!(!own.path().join("pending.json").exists(), "what a user changes is told to nobody");
                println!("locked");
            }
            Err(RemedyError::LockHeld { lock, pid }) => println!("held by {} {}", pid.unwrap(), lock.display()),
            other => panic!("{other:?}"),
        }
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let host = tempfile::tempdir().unwrap();
    std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "host::another_user_gives_way_to_root_and_root_to_nobody", "--nocapture"]).env(CHILD, host.path());
        let output = child.uid(65534).gid(65534).current_dir("/").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Some((output.status.success(), text))
    };
    let Some((_, text)) = as_nobody() else {
        println!("skipped: user 65534 may not run this program where it lies");
        return;
    };
    assert!(text.contains("locked"), "root never changed anything here: {text}");
    let guard = store(host.path()).lock().unwrap();
    let (_, text) = as_nobody().unwrap();
    assert!(text.contains(&format!("held by {} {}", std::process::id(), host.path().join("lock").display())), "{text}");
    drop(guard);
    assert!(as_nobody().unwrap().1.contains("locked"));
}

#[test]
fn a_journal_without_a_summary_does_not_count_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(HostPending::read(dir.path(), "b").unwrap(), HostPending::default());
    assert_eq!(HostPending::read(&dir.path().join("none"), "b").unwrap(), HostPending::default());
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the rest is about files of root's");
        return;
    }
    drop(store(dir.path()).lock().unwrap());
    let summary = dir.path().join("pending.json");
    assert!(!HostPending::read(dir.path(), "b").unwrap().is_in_force());
    for text in ["", "{", "{}", r#"{"schema":"chokepoint/host/2","boot_id":"b","holder":null,"damaged":false,"pending":[]}"#] {
        std::fs::write(&summary, text).unwrap();
        assert!(matches!(HostPending::read(dir.path(), "b"), Err(RemedyError::Untold { .. })), "{text}");
    }
    std::fs::remove_file(&summary).unwrap();
    assert!(matches!(HostPending::read(dir.path(), "b"), Err(RemedyError::Untold { .. })));
    std::os::unix::fs::symlink("/etc/passwd", &summary).unwrap();
    assert!(HostPending::read(dir.path(), "b").is_err(), "a link is not followed");
}

/// Runs a test in a process that applies a change and runs until its input ends.
const OWNER: &str = "CHOKEPOINT_TEST_OWNER_DIR";

fn in_netns(netns: u64, key: &str, from: &str, to: &str) -> Change {
    match change(key, from, to) {
        Change::Sysctl { key, from, to, .. } => Change::Sysctl { key, netns: NetnsId(netns), netns_name: format!("lab{netns}"), from, to },
        other => other,
    }
}

#[test]
fn what_a_running_process_changed_is_left_alone_and_nothing_else_is_kept_from_anybody() {
    if let Some(dir) = std::env::var_os(OWNER) {
        let host = Host::at(dir.into());
        host.store().lock().unwrap().apply(&[in_netns(7, MAX, "200", "300")], &purpose("lab:full"), &mut |_| {}).unwrap();
        println!("applied");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let host = Host::new();
    let name = "host::what_a_running_process_changed_is_left_alone_and_nothing_else_is_kept_from_anybody";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(OWNER, &host.dir).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("applied")));

    let mut guard = host.store().lock().unwrap();
    // Another setting of the same namespace: somebody measures there.
    let same_place = guard.apply(&[in_netns(7, SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap_err();
    assert!(matches!(&same_place, ApplyError::Busy { by, .. } if by.pid == child.id()), "{same_place:?}");
    let told = same_place.to_string();
    assert!(told.contains("chokepoint lab run full") && told.contains(&format!("process {}", child.id())) && told.contains(MAX), "{told}");
    assert_eq!(host.get(SOMAXCONN), "128");
    // Another namespace is nobody's business, and what is changed there is taken back.
    guard.apply(&[in_netns(8, SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.running.len(), report.running[0].pid), (1, 1, child.id()));
    assert!(!report.is_clean());
    let kept = guard.forget(host.store().pending().unwrap()[0].id);
    assert!(matches!(&kept, Err(RemedyError::Running(by)) if by.pid == child.id()), "{kept:?}");
    assert_eq!((host.get(SOMAXCONN).as_str(), host.get(MAX).as_str()), ("128", "300"));
    drop(guard);

    drop(child.stdin.take());
    child.wait().unwrap();
    let mut guard = host.store().lock().unwrap();
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "its process has ended: {report:?}");
    assert_eq!(host.get(MAX), "200");
}

/// A change that a process applies and, with the second, takes back: it then measures until its input ends, gives its places up, and waits once more.
const MEASURES: &str = "CHOKEPOINT_TEST_MEASURES";

/// Starts this test program as that process, and returns it after its first line, with its further lines.
fn process(host: &Host, measures: bool) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "host::the_place_of_a_run_is_its_own_while_its_changes_are_taken_back", "--nocapture"]);
    child.env(OWNER, &host.dir).env(MEASURES, measures.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("its change is made")));
    (child, lines)
}

fn measured(host: &Host) {
    let is_measured = std::env::var(MEASURES).unwrap() == "true";
    let change = if is_measured { in_netns(7, SOMAXCONN, "128", "4096") } else { in_netns(7, MAX, "200", "300") };
    let id = host.store().lock().unwrap().apply(&[change], &purpose("diagnose"), &mut |_| {}).unwrap().id;
    if is_measured {
        assert!(host.store().lock().unwrap().undo(&Filter::Id(id)).is_clean());
    }
    for step in ["its change is made", "its places are free"] {
        println!("{step}");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        host.store().lock().unwrap().release();
    }
}

#[test]
fn the_place_of_a_run_is_its_own_while_its_changes_are_taken_back() {
    if let Some(dir) = std::env::var_os(OWNER) {
        return measured(&Host::at(dir.into()));
    }
    let host = Host::new();
    let (mut ended, _) = process(&host, false);
    ended.kill().unwrap();
    ended.wait().unwrap();
    let (mut child, mut lines) = process(&host, true);
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("300", "128"), "it has taken its change back");

    let tried = |place: u64| {
        let applied =
            host.store().lock().unwrap().apply(&[in_netns(place, PORTS, "32768\t60999", "1024 65000")], &purpose("lab:b"), &mut |_| {});
        let mut guard = host.store().lock().unwrap();
        let refused = applied.map(|applied| assert!(guard.undo(&Filter::Id(applied.id)).is_clean()));
        guard.release();
        refused
    };
    let refused = tried(7).unwrap_err();
    assert!(matches!(&refused, ApplyError::Busy { by, .. } if by.pid == child.id() && by.owner == "diagnose"), "{refused:?}");
    assert!(refused.to_string().contains(SOMAXCONN), "{refused}");
    tried(8).unwrap();
    // What an ended run left in that place stays until nobody measures there.
    let report = host.store().lock().unwrap().undo(&Filter::All);
    assert!(report.restored.is_empty() && host.get(MAX) == "300", "{report:?}");
    assert!(matches!(report.running.as_slice(), [by] if by.pid == child.id() && by.changes == [format!("{MAX} in lab7")]), "{report:?}");
    assert!(!report.is_clean());

    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert!(lines.any(|line| line.contains("its places are free")));
    tried(7).unwrap();
    // One that is killed holds nothing either, even if nobody has asked for its end.
    let (mut killed, _) = process(&host, true);
    assert!(matches!(tried(7), Err(ApplyError::Busy { by, .. }) if by.pid == killed.id()));
    killed.kill().unwrap();
    let begin = Instant::now();
    while !std::fs::read_to_string(format!("/proc/{}/stat", killed.id())).unwrap().contains(") Z ") {
        assert!(begin.elapsed() < Duration::from_secs(60), "it was killed and runs");
    }
    tried(7).unwrap();
    let report = host.store().lock().unwrap().undo(&Filter::All);
    assert!(report.is_clean() && host.get(MAX) == "200", "{report:?}");
    child.kill().unwrap();
    assert!([child, killed].iter_mut().all(|child| !child.wait().unwrap().success()));
}

#[test]
fn a_lock_that_is_soon_free_is_waited_for() {
    let host = Host::new();
    let guard = host.store().lock().unwrap();
    assert!(matches!(host.store().lock_within(Duration::ZERO), Err(RemedyError::LockHeld { .. })));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| host.store().lock_within(Duration::from_secs(60)).map(drop));
        drop(guard);
        waits.join().unwrap().unwrap();
    });
}
