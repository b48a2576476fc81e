//! What a reader in a child cannot do, what bounds it, and that its end is an error of one file.
//!
//! Deterministic: a program tries each, in a child and, to show that the attempt works at all, with its rights.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Attempts that no reader may make.
const FORBIDDEN: &[&str] = &[
    "open",
    "look",
    "create",
    "write",
    "tcp",
    "udp",
    "unix",
    "start",
    "thread",
    "signal",
    "root",
    "trace",
    "memory-of-another",
    "inherited",
    "code",
];
/// Those that need no filter of system calls to be refused.
const FORBIDDEN_WITHOUT_SECCOMP: &[&str] =
    &["open", "create", "write", "start", "execute", "thread", "signal", "root", "trace", "memory-of-another", "inherited"];

/// The lines of the trial.
fn trial(place: &str, names: &[&str]) -> Vec<String> {
    let open = std::fs::File::open("/etc/passwd").expect("everybody may read it");
    let mut command = Command::new(env!("CARGO_BIN_EXE_confined-trial"));
    command.arg(place).args(names);
    // The descriptor that the trial finds open.
    let inherit = move || {
        // SAFETY: takes numbers; the first descriptor is open, and the other one is free in the new process.
        if unsafe { libc::dup2(open.as_raw_fd(), 77) } < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes one system call.
    let output = unsafe { command.pre_exec(inherit) }.output().expect("the trial runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root has rights that a reader gives up");
    }
    is_root
}

#[test]
fn every_attempt_succeeds_with_the_rights_of_root() {
    if !is_root() {
        return;
    }
    for name in FORBIDDEN {
        let lines = trial("here", &[name]);
        assert_eq!(lines, [format!("done: {name}")], "an attempt that always fails proves nothing");
    }
    assert_eq!(trial("here", &["execute"]), ["done: executed"]);
}

#[test]
fn a_reader_in_a_child_reads_its_file_and_can_do_nothing_else() {
    if !is_root() {
        return;
    }
    let names: Vec<&str> = FORBIDDEN.iter().copied().chain(["execute", "read"]).collect();
    let lines = trial("confined", &names);
    assert_eq!(lines.len(), names.len(), "{lines:?}");
    for (name, line) in names.iter().zip(&lines) {
        let expected = if *name == "read" { "done: content" } else { "refused: " };
        assert!(line.starts_with(expected), "{name}: {line}");
    }
}

#[test]
fn a_child_that_ends_is_an_error_of_one_file() {
    if !is_root() {
        return;
    }
    let lines = trial("confined", &["read", "memory", "read", "time", "read", "sleep", "read", "panic", "read"]);
    let expected = [
        ("memory", "256 MiB of memory"),
        ("time", "more than 1 s of CPU time"),
        ("sleep", "did not answer within 8 s"),
        ("panic", "a reader's own fault"),
    ];
    assert_eq!(lines.len(), 9, "{lines:?}");
    for (at, (name, why)) in expected.iter().enumerate() {
        assert_eq!(lines[2 * at], "done: content", "before {name}: {lines:?}");
        assert!(lines[2 * at + 1].starts_with("refused: ") && lines[2 * at + 1].contains(why), "{name}: {lines:?}");
    }
    assert_eq!(lines[8], "done: content", "{lines:?}");
}

/// A kernel without one of the two: what remains holds, and it is said.
#[test]
fn what_a_kernel_does_not_have_is_said_and_the_rest_holds() {
    if !is_root() {
        return;
    }
    let refused = |place: &str, names: &[&str]| {
        for (name, line) in names.iter().zip(trial(place, names)) {
            assert!(line.starts_with("refused: "), "{place}: {name}: {line}");
        }
    };
    refused("without-landlock", FORBIDDEN);
    refused("without-seccomp", FORBIDDEN_WITHOUT_SECCOMP);
    let held = |place| trial(place, &["held"]).remove(0);
    assert!(held("without-landlock").ends_with("Held { user: true, files: false, calls: true }"));
    assert!(held("without-seccomp").contains("calls: false"));
    assert!(held("confined").contains("user: true") && held("confined").contains("calls: true"));
}

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("procfs").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let parent = format!("\nPPid:\t{parent}\n");
    all.filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains(&parent))).collect()
}

/// Waits for a condition that comes in milliseconds.
fn until(what: &str, condition: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(30), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_child_ends_with_its_parent() {
    if !is_root() {
        return;
    }
    let mut parent = Command::new(env!("CARGO_BIN_EXE_confined-trial")).args(["confined", "sleep"]).spawn().expect("the trial runs");
    let reader = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains("\nUid:\t65532\t"));
    until("a child without rights", || children(parent.id()).iter().any(reader));
    // Nothing wakes a reader that sleeps but the kernel.
    let child = children(parent.id()).into_iter().find(reader).expect("it is there");
    parent.kill().and_then(|()| parent.wait()).expect("it is ours");
    until("the end of the child", || !std::path::Path::new(&format!("/proc/{child}")).exists());
}
