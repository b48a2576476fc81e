//! Processes, files and names of other users cannot block chokepoint, make it read what they may not read, or control the terminal.
//!
//! Live beside others: programs and servers of other users, made for the test; the tests check that nothing hangs.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::harness::{Chokepoint, NOBODY, Ran, Running, becomes_true, free_address, is_root, ran, signal, wait_until};

/// The name of the program. Printed as it is, it would hide what follows on a terminal.
const NAME: &str = "\x1b[8mhid\u{9b}2J";

/// A program that runs code in anonymous memory, so that its perf map is looked for, and functions of its own, so that its debug file is looked for. Its
/// argument is a new root directory.
const BUSY: &str = r#"
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
static void __attribute__((noinline)) spin(void) { for (volatile long i = 0; i < 2000000; i++); }
int main(int count, char **args) {
    static const unsigned char code[] = { 0xb9, 0, 0, 0x40, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
    unsigned char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return 1;
    memcpy(made, code, sizeof code);
    prctl(PR_SET_NAME, "\033[8mhid\302\2332J");
    if (count > 1 && (chroot(args[1]) || chdir("/"))) return 2;
    write(1, "+", 1);
    for (;;) { ((void (*)(void))made)(); spin(); }
}
"#;

/// The running program.
struct Busy {
    child: Child,
    /// Its perf map, removed at the end.
    map: PathBuf,
}

impl Busy {
    fn start(program: &Path, root: Option<&Path>) -> Self {
        let mut child = Command::new(program).args(root).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).expect("the program runs");
        let map = PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
        Self { child, map }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.map);
    }
}

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// The compiled program, which names a debug file; nothing if it cannot be built here.
fn program(chokepoint: &Chokepoint) -> Option<PathBuf> {
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: the program has code for x86_64");
        return None;
    }
    let source = chokepoint.write("busy.c", BUSY.as_bytes());
    let (path, debug) = (chokepoint.file("busy"), chokepoint.file("busy.debug"));
    let run = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let is_built = run(Command::new("cc").args(["-O1", "-w", "-o"]).arg(&path).arg(source))
        && std::fs::copy(&path, &debug).is_ok()
        && run(Command::new("objcopy").args(["--strip-all", &link]).arg(&path));
    if !is_built {
        println!("skipped: cc and objcopy are not installed");
        return None;
    }
    std::fs::remove_file(debug).unwrap();
    pipe(&chokepoint.file(".debug/busy.debug"));
    Some(path)
}

/// Runs the binary, and fails if it does not end.
fn run_bounded(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
    let (out, errors) = (chokepoint.file("out"), chokepoint.file("errors"));
    let file = |path: &Path| std::fs::File::create(path).unwrap();
    let mut child = chokepoint.command(args).stdout(file(&out)).stderr(file(&errors)).spawn().unwrap();
    if !becomes_true(|| child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("it does not end: {args:?}");
    }
    let status = child.wait().unwrap();
    let text = |path: &Path| std::fs::read(path).unwrap();
    ran(std::process::Output { status, stdout: text(&out), stderr: text(&errors) })
}

fn has_sampling(ran: &Ran) -> bool {
    let has = ran.status == Some(0);
    if !has {
        println!("skipped: {}", ran.stderr);
    }
    has
}

#[test]
fn a_pipe_as_perf_map_does_not_block_a_profile_and_names_are_escaped() {
    let chokepoint = Chokepoint::new();
    let Some(program) = program(&chokepoint) else { return };
    let busy = Busy::start(&program, None);
    pipe(&busy.map);
    // Often enough for a statement where others leave a tenth of a core: a profile of fewer than 30 samples makes none.
    let pid = busy.pid();
    let args = ["profile", "--frequency", "999", "--pid", &pid, "-z", "3s"];
    let profile = run_bounded(&chokepoint, &args);
    if !has_sampling(&profile) {
        return;
    }
    assert!(profile.stdout.contains("\\x1b[8mhid\\x9b2J"), "the name is printed: {}", profile.stdout);
    assert!(profile.stdout.contains("[code without a file]"), "{}", profile.stdout);
    let is_control = |character: char| character != '\n' && character.is_control();
    assert!(!profile.stdout.contains(is_control) && !profile.stderr.contains(is_control), "{:?} {:?}", profile.stdout, profile.stderr);
    let json = run_bounded(&chokepoint, &["profile", "--json", "--pid", &busy.pid(), "-z", "300ms"]);
    assert!(!json.stdout.contains(is_control), "{:?}", json.stdout);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(json.to_string().contains(&serde_json::to_string(NAME).unwrap()), "JSON has the name itself");
    // A map written by the user of the process is used.
    std::fs::remove_file(&busy.map).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", busy.pid())).unwrap();
    let made = maps.lines().find(|line| line.contains(" rwxp ")).and_then(|line| line.split('-').next()).expect("its code");
    std::fs::write(&busy.map, format!("{made} 10 made_by_test\n")).unwrap();
    assert!(run_bounded(&chokepoint, &args).stdout.contains("made_by_test"));
    if is_root() {
        chown(&busy.map, Some(NOBODY), None).unwrap();
        assert!(!run_bounded(&chokepoint, &args).stdout.contains("made_by_test"), "another user wrote it");
    }
}

#[test]
fn what_undo_and_notes_print_is_escaped() {
    let chokepoint = Chokepoint::new();
    let name = "\x1b[8mstate\u{202e}\u{9b}2J";
    let no_directory = chokepoint.file(name);
    std::fs::write(&no_directory, "nonsense\n").unwrap();
    let spelled = "\\x1b[8mstate\\u{202e}\\x9b2J";
    for args in [&["undo"][..], &["undo", "--list"], &["profile", "--replay", no_directory.to_str().unwrap()]] {
        let ran = ran(chokepoint.command(args).env("CHOKEPOINT_STATE_DIR", no_directory.join("below")).output().unwrap());
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(printed.contains(spelled), "{args:?}: {printed:?}");
        let is_control = |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
        assert!(!ran.stderr.contains(is_control) && !ran.stdout.contains(is_control), "{args:?}: {:?}", ran.stderr);
    }
}

#[test]
fn a_pipe_below_another_root_blocks_nothing_and_a_signal_ends_the_profile() {
    if !is_root() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let Some(program) = program(&chokepoint) else { return };
    let root = chokepoint.file("root");
    std::fs::create_dir_all(root.join("tmp")).unwrap();
    let busy = Busy::start(&program, Some(&root));
    pipe(&root.join(format!("tmp/perf-{}.map", busy.pid())));
    pipe(&root.join(program.strip_prefix("/").unwrap()).with_file_name(".debug").join("busy.debug"));
    if !has_sampling(&run_bounded(&chokepoint, &["profile", "--pid", &busy.pid(), "-z", "500ms"])) {
        return;
    }
    let mut child = chokepoint.command(&["profile", "--pid", &busy.pid(), "-z", "600s"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("it installs no handler", || catches_sigterm(child.id()));
    signal(&child, Signal::TERM);
    wait_until("SIGTERM does not end it", || child.try_wait().unwrap().is_some());
}

/// True once a process has a handler for SIGTERM (SigCgt of proc_pid_status(5)).
fn catches_sigterm(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (libc::SIGTERM - 1) != 0)
}

#[test]
fn an_include_of_another_user_brings_no_file_of_root_into_a_recording() {
    const MARKER: &str = "marker_of_root_5e1";
    if !is_root() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let at = |name: &str| chokepoint.path(name);
    let port = free_address().port();
    let secret = chokepoint.write("secret.conf", format!("upstream {MARKER} {{ server 127.0.0.1:9; }}\n").as_bytes());
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let theirs = chokepoint.write("theirs.conf", format!("include {secret};\n").as_bytes());
    let main = format!(
        "daemon off; pid {pid}; error_log {errors};\nevents {{}}\nhttp {{ access_log off; include {theirs};\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} }} }}\n",
        pid = at("pid"),
        errors = at("e.log"),
    );
    let main = chokepoint.write("nginx.conf", main.as_bytes());
    let Some(_nginx) = Running::start(Command::new("nginx").args(["-c", &main])) else {
        println!("skipped: nginx is not installed");
        return;
    };
    wait_until("nginx does not listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("http://127.0.0.1:{port}/");
    let file = at("r.rec");
    let args = ["diagnose", "--json", "--record", &file, "--redact", "none", "-n", "200", "-c", "2", &url];
    let recorded = |owner: u32| {
        chown(&theirs, Some(owner), Some(owner)).unwrap();
        let ran = run_bounded(&chokepoint, &args);
        assert!(ran.status.is_some_and(|status| status <= 1), "{}", ran.stderr);
        let recording = chokepoint_recording::read(&std::fs::read(&file).unwrap()).unwrap();
        let bytes = |entry: &chokepoint_recording::Entry| match &entry.outcome {
            chokepoint_recording::Outcome::Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            lack => format!("{lack:?}"),
        };
        (ran.stdout, recording.entries.iter().map(bytes).collect::<String>())
    };
    let (_, entries) = recorded(0);
    assert!(entries.contains(MARKER), "root's own include is followed");
    let (report, entries) = recorded(NOBODY);
    assert!(!entries.contains(MARKER) && !report.contains(MARKER), "{report}");
    assert!(report.contains(&format!("permission denied: {secret} (read with the rights of user {NOBODY})")), "{report}");
}
