//! A full and a read-only disk: nothing is applied without a journal, and applied changes can still be taken back.
//!
//! Deterministic: its own files and settings; it waits for nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chokepoint_remedy::{ApplyError, Filter, RemedyError, Store};

use crate::support::{Host, MAX, change, purpose};

/// A private file system of 64 KiB. Dropping it removes it.
struct Disk(PathBuf);

impl Disk {
    fn mount(host: &Host) -> Option<Self> {
        let dir = host.dir.join("disk");
        fs::create_dir(&dir).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs"]).arg(&dir).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: a file system cannot be mounted here (needs CAP_SYS_ADMIN)");
            return None;
        }
        Some(Self(dir))
    }

    fn fill(&self) {
        // The last bytes are filled one by one, so that not even a short line fits.
        for size in [4096, 1] {
            while fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.0.join("filler"))
                .and_then(|mut file| std::io::Write::write_all(&mut file, &vec![0; size]))
                .is_ok()
            {}
        }
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }

    fn store(&self, root: &Path) -> Store {
        Store::open(&self.0.join("state"), root, "boot-1".into()).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_prevents_applying_but_not_undo() {
    let host = Host::new();
    let Some(disk) = Disk::mount(&host) else { return };
    let store = disk.store(&host.dir);
    disk.fill();
    let refused: Result<(), _> =
        store.lock().and_then(|mut guard| match guard.apply(&[change(MAX, "200", "300")], &purpose("d"), &mut |_| {}) {
            Err(ApplyError::Journal(error)) => Err(error),
            other => panic!("{other:?}"),
        });
    assert!(matches!(refused, Err(RemedyError::NoSpace { .. })), "{refused:?}");
    assert_eq!(host.get(MAX), "200", "nothing is applied that is not journalled");

    fs::remove_file(disk.0.join("filler")).unwrap();
    store.lock().unwrap().apply(&[change(MAX, "200", "300")], &purpose("d"), &mut |_| {}).unwrap();
    disk.fill();
    let report = store.lock().unwrap().undo(&Filter::All);
    assert_eq!((report.restored.len(), host.get(MAX).as_str()), (1, "200"), "{report:?}");
    // tmpfs allocates whole pages: the record may still fit into the journal's last one.
    if let Some(error) = &report.journal_error {
        assert!(matches!(error, RemedyError::NoSpace { .. }), "{error}");
    }
    fs::remove_file(disk.0.join("filler")).unwrap();
    assert!(store.lock().unwrap().undo(&Filter::All).is_clean());
    assert_eq!((host.get(MAX).as_str(), store.pending().unwrap().len()), ("200", 0));
}

#[test]
fn everything_is_taken_back_if_the_disk_fills_while_applying() {
    let host = Host::new();
    let Some(disk) = Disk::mount(&host) else { return };
    // The disk fills after the intent is written. Whether the next record still fits depends on the end of the journal's last page, so every length
    // within a page is tried until it does not.
    let mut refused = 0;
    for length in (0..4096).step_by(32) {
        let store = disk.store(&host.dir);
        let padded = chokepoint_remedy::Purpose { finding: "f".repeat(length), ..purpose("d") };
        let mut guard = store.lock().unwrap();
        let result = guard.apply(&[change(MAX, "200", "300")], &padded, &mut |step| {
            if step == chokepoint_remedy::Step::Journalled {
                disk.fill();
            }
        });
        if let Err(error) = result {
            assert!(matches!(error, ApplyError::Journal(RemedyError::NoSpace { .. })), "{error:?}");
            assert_eq!(host.get(MAX), "200", "what cannot be recorded is not left in force");
            refused += 1;
        }
        fs::remove_file(disk.0.join("filler")).unwrap();
        assert!(guard.undo(&Filter::All).is_clean());
        assert_eq!((host.get(MAX).as_str(), store.pending().unwrap().len()), ("200", 0));
    }
    assert!(refused > 0, "the disk was never full where it matters");
}

#[test]
fn a_read_only_disk_prevents_applying_but_not_undo() {
    let host = Host::new();
    let Some(disk) = Disk::mount(&host) else { return };
    let store = disk.store(&host.dir);
    store.lock().unwrap().apply(&[change(MAX, "200", "300")], &purpose("d"), &mut |_| {}).unwrap();
    disk.remount("ro");
    let mut guard = store.lock().unwrap();
    let refused = guard.apply(&[change(MAX, "300", "400")], &purpose("d"), &mut |_| {});
    assert!(matches!(refused, Err(ApplyError::Journal(RemedyError::ReadOnly { .. }))), "{refused:?}");
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), host.get(MAX).as_str()), (1, "200"));
    assert!(matches!(report.journal_error, Some(RemedyError::ReadOnly { .. })), "{report:?}");
    drop(guard);
    let elsewhere = Store::open(&disk.0.join("fresh"), &host.dir, "boot-1".into()).unwrap();
    assert!(matches!(elsewhere.lock(), Err(RemedyError::ReadOnly { .. })));
}
