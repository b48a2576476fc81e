//! Output files of flags: readable by their owner only, never written through links of other users, checked before any load; and a failed write never loses
//! the report.
//!
//! Live beside others: the tests check files, statuses and the requests at their own server, not speed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::{self, Chokepoint, NOBODY, OK, Server, is_root, wait_until};

/// A server that counts its requests.
fn counting() -> (Server, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::serving(move |stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::io::Write::write_all(stream, OK).is_ok()
    });
    (server, asked)
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o7777
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
}

/// A command line for each output flag of each verb that offers a load.
fn every_flag<'a>(file: &'a str, url: &'a str) -> Vec<Vec<&'a str>> {
    let bench = ["--csv", "--hgrm", "--markdown", "--junit"].map(|flag| vec!["bench", "-n", "3", flag, file, url]);
    let diagnose = ["--record", "--html", "--markdown"].map(|flag| vec!["diagnose", "-c", "1", "-z", "1s", flag, file, url]);
    bench.into_iter().chain(diagnose).collect()
}

#[test]
fn every_file_is_readable_by_its_owner_only() {
    let (chokepoint, (server, _)) = (Chokepoint::new(), counting());
    let (path, url) = (chokepoint.file("out"), server.url());
    for args in every_flag(path.to_str().unwrap(), &url) {
        for (before, after) in [(None, 0o600), (Some(0o644), 0o600), (Some(0o200), 0o200)] {
            let _ = fs::remove_file(&path);
            if let Some(before) = before {
                fs::write(&path, "old").unwrap();
                set_mode(&path, before);
            }
            let ran = chokepoint.run(&args);
            assert!(ran.status.is_some_and(|status| status <= 1), "{args:?}: {}", ran.stderr);
            assert_eq!(mode(&path), after, "{args:?} over {before:?}");
        }
    }
    let left: Vec<_> = fs::read_dir(chokepoint.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_any_load() {
    let (chokepoint, (server, asked)) = (Chokepoint::new(), counting());
    let pipe = chokepoint.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (pipe, url) = (pipe.to_str().unwrap().to_owned(), server.url());
    let directory = chokepoint.dir.path().to_str().unwrap().to_owned();
    let nowhere = format!("{directory}/no/such/place");
    for (file, status, word) in [
        (pipe.as_str(), 2, "pipe"),
        ("/dev/null", 2, "device"),
        (&directory, 2, "directory"),
        ("/dev/stdout", 2, "pipe"),
        (&nowhere, 1, "No such file"),
    ] {
        for args in every_flag(file, &url) {
            let ran = chokepoint.run(&args);
            assert_eq!(ran.status, Some(status), "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(word) && (status == 1 || ran.stderr.contains("--json")), "{args:?}: {}", ran.stderr);
            assert_eq!((asked.load(Ordering::SeqCst), ran.stdout.as_str()), (0, ""), "{args:?}");
        }
    }
}

#[test]
fn a_directory_without_write_permission_is_refused_before_any_load() {
    if !is_root() {
        return;
    }
    let (chokepoint, (server, asked)) = (Chokepoint::new(), counting());
    let (ours, file) = (chokepoint.file("ours"), chokepoint.file("ours/out"));
    fs::create_dir(&ours).unwrap();
    set_mode(&ours, 0o755);
    let url = server.url();
    for args in every_flag(file.to_str().unwrap(), &url) {
        let ran = chokepoint.run_as_nobody(&args, &chokepoint.path("none"));
        assert_eq!((ran.status, asked.load(Ordering::SeqCst)), (Some(1), 0), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("ours/out") && ran.stderr.contains("Permission denied"), "{}", ran.stderr);
    }
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    if !is_root() {
        return;
    }
    let (chokepoint, (server, asked)) = (Chokepoint::new(), counting());
    let (shared, victim) = (chokepoint.file("shared"), chokepoint.file("victim"));
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o1777);
    fs::write(&victim, "precious").unwrap();
    let link = |target: &Path, name: &str| {
        let mut command = Command::new("ln");
        command.arg("-s").arg(target).arg(shared.join(name)).uid(NOBODY).gid(NOBODY);
        assert!(command.status().unwrap().success());
    };
    link(&victim, "report");
    link(&chokepoint.file("new"), "dangling");
    link(chokepoint.dir.path(), "way");
    let url = server.url();
    for name in ["report", "dangling", "way/victim"] {
        let file = shared.join(name);
        for args in every_flag(file.to_str().unwrap(), &url) {
            let ran = chokepoint.run(&args);
            assert_eq!((ran.status, asked.load(Ordering::SeqCst)), (Some(1), 0), "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("link of user 65534"), "{}", ran.stderr);
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!chokepoint.file("new").exists());
    // A link of our own is followed: the link stays and its target is replaced.
    symlink(&victim, shared.join("own")).unwrap();
    let ran = chokepoint.run(&["bench", "-n", "3", "--csv", shared.join("own").to_str().unwrap(), &url]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(fs::symlink_metadata(shared.join("own")).unwrap().is_symlink() && fs::read_to_string(&victim).unwrap() != "precious");
}

#[test]
fn on_a_full_disk_the_report_and_the_other_files_are_still_written() {
    if !is_root() {
        return;
    }
    let (chokepoint, (server, _)) = (Chokepoint::new(), counting());
    let (full, other) = (chokepoint.file("full"), chokepoint.file("other.md"));
    fs::create_dir(&full).unwrap();
    let script = "mount -t tmpfs -o size=64k none \"$1\" 2>/dev/null || { echo no mount >&2; exit 9; }; \
        head -c 100000 /dev/zero > \"$1/fill\" 2>/dev/null; shift; exec \"$@\"";
    let (full, other, url) = (full.to_str().unwrap().to_owned(), other.to_str().unwrap().to_owned(), server.url());
    let (csv, record) = (format!("{full}/a.csv"), format!("{full}/a.rec"));
    let verbs = [
        vec!["bench", "-n", "3", "--csv", &csv, "--markdown", &other, &url],
        vec!["diagnose", "-c", "1", "-z", "1s", "--record", &record, "--markdown", &other, &url],
    ];
    for args in verbs {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh", &full, env!("CARGO_BIN_EXE_chokepoint")]).args(&args);
        command.env("CHOKEPOINT_STATE_DIR", chokepoint.file("state")).env("LC_ALL", "C.UTF-8");
        let ran = harness::ran(command.output().unwrap());
        if ran.status == Some(9) {
            println!("skipped: no file system can be mounted");
            return;
        }
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("No space left") && ran.stderr.contains("cannot be written"), "{}", ran.stderr);
        assert!(ran.stdout.contains(&url.trim_end_matches('/').to_owned()), "the report is printed: {}", ran.stdout);
        assert!(fs::read_to_string(&other).unwrap().contains("|---"), "the other file is written: {}", ran.stderr);
        fs::remove_file(&other).unwrap();
    }
}

#[test]
fn a_killed_run_leaves_no_partial_file() {
    let (chokepoint, (server, asked)) = (Chokepoint::new(), counting());
    let out = chokepoint.file("out");
    fs::create_dir(&out).unwrap();
    let file = out.join("a.csv");
    let mut child = chokepoint.command(&["bench", "-z", "60s", "--csv", file.to_str().unwrap(), &server.url()]).spawn().unwrap();
    wait_until("no request came", || asked.load(Ordering::SeqCst) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}
