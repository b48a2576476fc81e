//! One journal for the host: other users learn what root applied, and a conflict is reported until it is settled.
//!
//! Live beside others: changes in separate network namespaces.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use chokepoint_model::change::Change;
use chokepoint_model::observation::NetnsId;
use chokepoint_remedy::{Filter, Guard, Purpose, Store, boot_id};
use serde_json::Value;

use crate::harness::{Chokepoint, NOBODY, Netns, Ran, Server};

const KEY: &str = "net.core.somaxconn";

/// A namespace whose sysctl is changed.
struct Sysctl(Netns);

impl Sysctl {
    fn add(name: &str) -> Option<Self> {
        Netns::add(&format!("journal-{name}")).map(Self)
    }

    fn netns(&self) -> &str {
        &self.0.0
    }

    fn change(&self, from: &str, to: &str) -> Change {
        let netns = NetnsId(std::fs::metadata(Path::new("/run/netns").join(self.netns())).unwrap().ino());
        Change::Sysctl { key: KEY.into(), netns, netns_name: self.netns().to_owned(), from: from.into(), to: to.into() }
    }

    fn sysctl(&self, args: &[&str]) -> String {
        let output = Command::new("ip").args(["netns", "exec", self.netns(), "sysctl"]).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn get(&self) -> String {
        self.sysctl(&["-n", KEY])
    }

    fn set(&self, value: &str) {
        self.sysctl(&["-w", &format!("{KEY}={value}")]);
    }
}

fn lock(chokepoint: &Chokepoint) -> Guard {
    let root = Path::new("/");
    Store::open(&chokepoint.file("state"), root, boot_id(root).unwrap()).unwrap().lock().unwrap()
}

fn apply(guard: &mut Guard, change: Change) {
    let purpose = Purpose { finding: "accept-queue-full".into(), remedy: "raise-accept-backlog".into(), owner: "diagnose".into() };
    guard.apply(&[change], &purpose, &mut |_| {}).unwrap();
}

/// A change and the state directory, for a process that applies it and ends.
const STATE: &str = "CHOKEPOINT_TEST_APPLY_STATE";
const CHANGE: &str = "CHOKEPOINT_TEST_APPLY_CHANGE";

/// Applies a change in a process that then ends, as a run before did: what this one applied, nobody else would take back while it runs.
pub(super) fn applied_before(state: &Path, change: &Change) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "fix::journal::a_run_before_applies", "--nocapture"]);
    let mut child = child.env(STATE, state).env(CHANGE, serde_json::to_string(change).unwrap()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    child.id()
}

/// That process; alone it shows that a change is read as it was written.
#[test]
fn a_run_before_applies() {
    let Some((state, change)) = std::env::var_os(STATE).zip(std::env::var(CHANGE).ok()) else {
        let change = Change::Cgroup { dir: "/sys/fs/cgroup".into(), file: "cpu.max".into(), from: "max".into(), to: "1 2".into() };
        assert_eq!(serde_json::from_str::<Change>(&serde_json::to_string(&change).unwrap()).unwrap(), change);
        return;
    };
    let root = Path::new("/");
    let mut guard = Store::open(Path::new(&state), root, boot_id(root).unwrap()).unwrap().lock().unwrap();
    apply(&mut guard, serde_json::from_str(&change).unwrap());
}

/// Runs the binary as nobody, with root's state directory.
fn as_nobody(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
    chokepoint.run_as_nobody(args, &chokepoint.path("state"))
}

#[test]
fn other_users_learn_what_root_applied() {
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("applied")) else { return };
    let was = sysctl.get();
    let pid = applied_before(&chokepoint.file("state"), &sysctl.change(&was, "777"));
    let mode = |name: &str| std::fs::metadata(chokepoint.file("state").join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("."), mode("journal"), mode("lock"), mode("pending.json")), (0o755, 0o600, 0o600, 0o644));

    let expected =
        format!("root applied 1 change on this host: {KEY} = 777 in {} (was {was}); run `sudo chokepoint undo`\n", sysctl.netns());
    let undo = as_nobody(&chokepoint, &["undo"]);
    assert_eq!((undo.status, undo.stdout.as_str()), (Some(1), expected.as_str()), "{}", undo.stderr);
    let list = as_nobody(&chokepoint, &["undo", "--list"]);
    assert_eq!((list.status, list.stdout.as_str()), (Some(0), expected.as_str()), "{}", list.stderr);
    for args in [&["undo", "--json"][..], &["undo", "--list", "--json"]] {
        let json: Value = serde_json::from_str(&as_nobody(&chokepoint, args).stdout).unwrap();
        let set = &json["host"][0];
        assert_eq!((&set["remedy"], &set["pid"], &set["state"]), (&"raise-accept-backlog".into(), &pid.into(), &"applied".into()));
        let change = &set["changes"][0];
        assert_eq!((&change["key"], &change["to"], &change["was"]), (&KEY.into(), &"777".into(), &was.as_str().into()), "{json}");
    }
    let server = Server::start("200 OK");
    let diagnose = as_nobody(&chokepoint, &["diagnose", "-z", "100ms", "--no-profile", &server.url()]);
    assert!(diagnose.stderr.contains(&format!("note: {expected}")), "{}", diagnose.stderr);
    let forget = as_nobody(&chokepoint, &["undo", "--forget", "1"]);
    assert!(forget.status == Some(1) && forget.stderr.contains("root's"), "{}", forget.stderr);
    assert_eq!(sysctl.get(), "777");

    let undo = chokepoint.run(&["undo"]);
    assert_eq!((undo.status, sysctl.get()), (Some(0), was), "{}", undo.stdout);
    let undo = as_nobody(&chokepoint, &["undo"]);
    assert_eq!((undo.status, undo.stdout.as_str()), (Some(0), "nothing is applied\n"));
}

#[test]
fn other_users_learn_that_a_run_of_root_was_killed() {
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("killed")) else { return };
    let was = sysctl.get();
    let mut guard = lock(&chokepoint);
    apply(&mut guard, sysctl.change(&was, "777"));
    let held = as_nobody(&chokepoint, &["undo"]);
    assert!(
        held.status == Some(1) && held.stdout.contains(&format!("(process {}) is changing this host", std::process::id())),
        "{}",
        held.stdout
    );
    // A process that ended during a change leaves its entry. A process with the same number and another start time is a different process.
    let path = chokepoint.file("state/pending.json");
    let mut summary: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    summary["holder"]["start_ticks"] = 1.into();
    summary["pending"] = Value::Array(Vec::new());
    std::fs::write(&path, summary.to_string()).unwrap();
    let undo = as_nobody(&chokepoint, &["undo"]);
    assert!(undo.status == Some(1) && undo.stdout.contains("ended while it changed this host"), "{}", undo.stdout);
    // A file of another user says nothing about root.
    std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
    assert_eq!(as_nobody(&chokepoint, &["undo"]).stdout, "nothing is applied\n");
    assert!(guard.undo(&Filter::All).is_clean());
    drop(guard);
    assert_eq!((as_nobody(&chokepoint, &["undo"]).status, sysctl.get()), (Some(0), was));
}

#[test]
fn what_a_running_process_applied_is_named_and_left_alone() {
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("running")) else { return };
    let was = sysctl.get();
    apply(&mut lock(&chokepoint), sysctl.change(&was, "777"));
    let undo = chokepoint.run(&["undo"]);
    let own = format!("`chokepoint diagnose --fix` (process {})", std::process::id());
    assert_eq!((undo.status, sysctl.get().as_str()), (Some(1), "777"), "{}", undo.stdout);
    assert!(undo.stdout.contains(&own) && undo.stdout.contains(KEY), "{}", undo.stdout);
    let list = chokepoint.run(&["undo", "--list"]);
    assert!(list.stdout.contains("diagnose runs"), "{}", list.stdout);
    let json: Value = serde_json::from_str(&chokepoint.run(&["undo", "--list", "--json"]).stdout).unwrap();
    assert_eq!(json["pending"][0]["running"], true, "{json}");
    assert!(lock(&chokepoint).undo(&Filter::All).is_clean(), "it takes back its own");
    assert_eq!(sysctl.get(), was);
}

#[test]
fn root_refuses_a_state_directory_that_others_can_change() {
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("owner")) else { return };
    drop(sysctl);
    let state = chokepoint.file("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("journal"), "").unwrap();
    for (owner, mode, why) in [(NOBODY, 0o755, "belongs to another user"), (0, 0o777, "can be written by other users")] {
        std::os::unix::fs::chown(&state, Some(owner), None).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap();
        let undo = chokepoint.run(&["undo"]);
        assert!(undo.status == Some(1) && (undo.stdout.clone() + &undo.stderr).contains(why), "{} {}", undo.stdout, undo.stderr);
    }
    // The directory is root's, but a directory above it is not.
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(chokepoint.dir.path(), Some(NOBODY), None).unwrap();
    let undo = chokepoint.run(&["undo"]);
    assert!(undo.status == Some(1) && undo.stdout.contains("can be changed by user 65534"), "{} {}", undo.stdout, undo.stderr);
}

#[test]
fn a_conflict_is_reported_until_it_is_forgotten() {
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("conflict")) else { return };
    let was = sysctl.get();
    applied_before(&chokepoint.file("state"), &sysctl.change(&was, "777"));
    sysctl.set("888");
    for _ in 0..2 {
        let undo = chokepoint.run(&["undo"]);
        assert_eq!((undo.status, sysctl.get().as_str()), (Some(1), "888"));
        let expected = format!("it is 888 now, and not 777 as it was set; before that it was {was}");
        assert!(undo.stdout.contains(&expected) && undo.stdout.contains("chokepoint undo --forget 1"), "{}", undo.stdout);
        let list = chokepoint.run(&["undo", "--list"]);
        assert!(list.status == Some(0) && list.stdout.contains("conflict: ") && list.stdout.contains(&expected), "{}", list.stdout);
    }
    let json: Value = serde_json::from_str(&chokepoint.run(&["undo", "--json"]).stdout).unwrap();
    let conflict = &json["conflicts"][0];
    for (field, value) in [("key", KEY), ("ours", "777"), ("was", was.as_str()), ("found", "888")] {
        assert_eq!(conflict[field], value, "{json}");
    }
    assert_eq!(chokepoint.run(&["undo", "--forget", "9"]).status, Some(1));
    let forget = chokepoint.run(&["undo", "--forget", "1"]);
    let expected = format!("forgotten: {KEY} in {} stays as it is; it was set to 777, and was {was} before\n", sysctl.netns());
    assert_eq!((forget.status, forget.stdout.as_str()), (Some(0), expected.as_str()), "{}", forget.stderr);
    let undo = chokepoint.run(&["undo"]);
    assert_eq!((undo.status, undo.stdout.as_str(), sysctl.get().as_str()), (Some(0), "nothing is applied\n", "888"));
}

#[test]
fn the_json_of_a_forgotten_change_escapes_control_characters() {
    // U+202E reverses the direction of the text that follows it on a terminal.
    let (chokepoint, Some(sysctl)) = (Chokepoint::new(), Sysctl::add("turned\u{202e}")) else { return };
    let was = sysctl.get();
    applied_before(&chokepoint.file("state"), &sysctl.change(&was, "777"));
    let forget = chokepoint.run(&["undo", "--forget", "1", "--json"]);
    assert!(forget.status == Some(0) && !forget.stdout.contains('\u{202e}'), "{}{}", forget.stdout, forget.stderr);
    let json: Value = serde_json::from_str(&forget.stdout).unwrap_or_else(|error| panic!("{error}: {}", forget.stdout));
    assert_eq!(json["forgotten"][0]["was"], was, "{json}");
    assert!(json["forgotten"][0]["change"].to_string().contains(sysctl.netns()), "{json}");
}
