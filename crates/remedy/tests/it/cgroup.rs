//! Quotas of cgroups are set, verified, taken back, and left alone if someone else set them: on a tree of files and on the real kernel.
//!
//! Deterministic: its own files and settings; it waits for nothing.

use std::path::{Path, PathBuf};

use chokepoint_model::change::Change;
use chokepoint_remedy::{ApplyError, Filter, Store, boot_id};

use crate::support::{Host, purpose};

fn change(dir: &str, file: &str, from: &str, to: &str) -> Change {
    Change::Cgroup { dir: dir.into(), file: file.into(), from: from.into(), to: to.into() }
}

/// A tree with one cgroup of version 2.
fn tree() -> (Host, PathBuf) {
    let host = Host::new();
    let dir = host.dir.join("cg/web");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("cpu.max"), "50000 100000\n").unwrap();
    (host, dir)
}

fn value(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("cpu.max")).unwrap().trim_end().to_owned()
}

#[test]
fn a_quota_is_raised_and_taken_back() {
    let (host, dir) = tree();
    let mut guard = host.store().lock().unwrap();
    let raised = change("/cg/web", "cpu.max", "50000 100000", "100000 100000");
    guard.apply(std::slice::from_ref(&raised), &purpose("diagnose"), &mut |_| {}).unwrap();
    assert_eq!(value(&dir), "100000 100000");
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.is_clean(), value(&dir)), (1, true, "50000 100000".to_owned()));

    guard.apply(std::slice::from_ref(&raised), &purpose("diagnose"), &mut |_| {}).unwrap();
    std::fs::write(dir.join("cpu.max"), "max 100000\n").unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.conflicts[0].found.as_str(), value(&dir)), ("max 100000", "max 100000".to_owned()));
}

#[test]
fn a_recreated_cgroup_is_another_one() {
    let (host, dir) = tree();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change("/cg/web", "cpu.max", "50000 100000", "100000 100000")], &purpose("diagnose"), &mut |_| {}).unwrap();
    // Its inode is not reused while it exists under another name.
    std::fs::rename(&dir, host.dir.join("cg/old")).unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("cpu.max"), "100000 100000\n").unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.gone.len(), report.restored.len(), value(&dir)), (1, 0, "100000 100000".to_owned()));
    assert!(report.gone[0].why.contains("cgroup"), "{}", report.gone[0].why);

    let raised = change("/cg/web", "cpu.max", "100000 100000", "200000 100000");
    guard.apply(&[raised], &purpose("diagnose"), &mut |_| {}).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(guard.undo(&Filter::All).gone.len(), 1);
}

#[test]
fn an_invalid_quota_is_refused_before_anything_is_written() {
    let (host, dir) = tree();
    std::fs::write(dir.join("cgroup.procs"), "1\n").unwrap();
    let mut guard = host.store().lock().unwrap();
    let mut refused = |change: Change| guard.apply(&[change], &purpose("diagnose"), &mut |_| {}).unwrap_err();
    for to in ["", "max", "0 100000", "999 100000", "100000", "100000 0", "1000 1000 1000", "-1 100000", "1000\n1 1000"] {
        assert!(matches!(refused(change("/cg/web", "cpu.max", "50000 100000", to)), ApplyError::BadChange { .. }), "{to:?}");
    }
    for (dir, file) in [("/cg/web", "cgroup.procs"), ("/cg/web", "../web/cpu.max"), ("cg/web", "cpu.max"), ("/cg/../cg/web", "cpu.max")] {
        assert!(matches!(refused(change(dir, file, "50000 100000", "60000 100000")), ApplyError::BadChange { .. }), "{dir} {file}");
    }
    assert!(matches!(refused(change("/cg/none", "cpu.max", "50000 100000", "60000 100000")), ApplyError::Missing { .. }));
    assert!(matches!(refused(change("/cg/web", "cpu.max", "max 100000", "60000 100000")), ApplyError::Changed { .. }));
    assert_eq!(value(&dir), "50000 100000");
}

/// The test's own cgroup in the kernel's hierarchy of version 1, with a child. Dropping it removes both.
struct Nested(PathBuf);

impl Nested {
    fn new() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let is_cpu = |line: &&str| {
            line.split_once(" - ").is_some_and(|(_, kind)| kind.starts_with("cgroup ") && kind.split([' ', ',']).any(|word| word == "cpu"))
        };
        let point = mounts.lines().find(is_cpu).and_then(|line| line.split(' ').nth(4));
        let made = point.map(|point| Path::new(point).join(format!("t-remedy-{}", std::process::id())));
        let made = made.filter(|dir| std::fs::create_dir(dir).is_ok() && std::fs::create_dir(dir.join("web")).is_ok());
        if made.is_none() {
            println!("skipped: no cgroup of version 1 with the controller cpu can be made here (needs root and its mount)");
        }
        let nested = Self(made?);
        nested.set("", "50000");
        nested.set("web", "50000");
        Some(nested)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name).join("cpu.cfs_quota_us")
    }

    fn set(&self, name: &str, value: &str) {
        std::fs::write(self.file(name), value).unwrap();
    }

    fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap().trim().to_owned()
    }

    fn change(&self, name: &str, from: &str, to: &str) -> Change {
        change(self.0.join(name).to_str().unwrap().trim_end_matches('/'), "cpu.cfs_quota_us", from, to)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(self.0.join("web"));
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn nested_quotas_are_raised_from_the_parent_and_taken_back() {
    let Some(nested) = Nested::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Path::new("/"), boot_id(Path::new("/")).unwrap()).unwrap();
    let mut guard = store.lock().unwrap();
    let inner = nested.change("web", "50000", "80000");
    let refused = guard.apply(std::slice::from_ref(&inner), &purpose("lab:t"), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, ApplyError::Refused { .. }), "{refused}");
    guard.apply(&[nested.change("", "50000", "80000"), inner], &purpose("lab:t"), &mut |_| {}).unwrap();
    assert_eq!((nested.get(""), nested.get("web")), ("80000".to_owned(), "80000".to_owned()));
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 2, "{report:?}");
    assert_eq!((nested.get(""), nested.get("web")), ("50000".to_owned(), "50000".to_owned()));
    let elsewhere = change(dir.path().to_str().unwrap(), "cpu.max", "50000 100000", "60000 100000");
    std::fs::write(dir.path().join("cpu.max"), "50000 100000\n").unwrap();
    assert!(matches!(guard.apply(&[elsewhere], &purpose("lab:t"), &mut |_| {}), Err(ApplyError::BadChange { .. })), "no cgroup");
}
