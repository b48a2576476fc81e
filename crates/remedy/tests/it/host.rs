//! Root's journal as another user sees it: while root changes the host, nobody else does.
//!
//! Live beside others: two processes at one lock.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use chokepoint_remedy::{HostPending, RemedyError, Store, boot_id};

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
