//! Other users' processes, files and names cannot hold chokepoint up, have it read what they may not, or steer the terminal.
//!
//! Live beside others: programs and servers of other users, made for the test; nothing may hang.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Chokepoint, Ran, is_root, ran};

const NOBODY: u32 = 65_534;
/// What is held up is held up for ever: the time only has to be longer than any machine takes.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Its name, which a terminal must not be given: it would hide what follows.
const NAME: &str = "\x1b[8mhid\u{9b}2J";

/// A program with code that no file holds, so that its map is asked for, beside functions of its own, so that its debug file is; below another
/// root where one is given.
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

/// The program while it runs.
struct Busy {
    child: Child,
    /// What is taken away at the end.
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

/// The program, which names a debug file; nothing where it cannot be built or run.
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

/// Runs it, and fails where it is held up.
fn run_in_time(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
    let (out, errors) = (chokepoint.file("out"), chokepoint.file("errors"));
    let file = |path: &Path| std::fs::File::create(path).unwrap();
    let mut child = chokepoint.command(args).stdout(file(&out)).stderr(file(&errors)).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > TIME_MAX {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it is held up: {args:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
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
fn a_pipe_holds_no_profile_up_and_a_name_steers_no_terminal() {
    let chokepoint = Chokepoint::new();
    let Some(program) = program(&chokepoint) else { return };
    let busy = Busy::start(&program, None);
    pipe(&busy.map);
    let profile = run_in_time(&chokepoint, &["profile", "--pid", &busy.pid(), "-z", "500ms"]);
    if !has_sampling(&profile) {
        return;
    }
    assert!(profile.stdout.contains("\\x1b[8mhid\\x9b2J"), "the name is told: {}", profile.stdout);
    assert!(profile.stdout.contains("[code without a file]"), "{}", profile.stdout);
    let steers = |character: char| character != '\n' && character.is_control();
    assert!(!profile.stdout.contains(steers) && !profile.stderr.contains(steers), "{:?} {:?}", profile.stdout, profile.stderr);
    let json = run_in_time(&chokepoint, &["profile", "--json", "--pid", &busy.pid(), "-z", "300ms"]);
    assert!(!json.stdout.contains(steers), "{:?}", json.stdout);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(json.to_string().contains(&serde_json::to_string(NAME).unwrap()), "JSON has the name itself");
    // What its user wrote is believed.
    std::fs::remove_file(&busy.map).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", busy.pid())).unwrap();
    let made = maps.lines().find(|line| line.contains(" rwxp ")).and_then(|line| line.split('-').next()).expect("its code");
    std::fs::write(&busy.map, format!("{made} 10 made_by_test\n")).unwrap();
    let args = ["profile", "--pid", &busy.pid(), "-z", "500ms"];
    assert!(run_in_time(&chokepoint, &args).stdout.contains("made_by_test"));
    if is_root() {
        chown(&busy.map, Some(NOBODY), None).unwrap();
        assert!(!run_in_time(&chokepoint, &args).stdout.contains("made_by_test"), "another user wrote it");
    }
}

#[test]
fn what_undo_and_notes_tell_steers_no_terminal() {
    let chokepoint = Chokepoint::new();
    let name = "\x1b[8mstate\u{202e}\u{9b}2J";
    let no_directory = chokepoint.file(name);
    std::fs::write(&no_directory, "nonsense\n").unwrap();
    let spelled = "\\x1b[8mstate\\u{202e}\\x9b2J";
    for args in [&["undo"][..], &["undo", "--list"], &["profile", "--replay", no_directory.to_str().unwrap()]] {
        let told = ran(chokepoint.command(args).env("CHOKEPOINT_STATE_DIR", no_directory.join("below")).output().unwrap());
        let said = format!("{}{}", told.stdout, told.stderr);
        assert!(said.contains(spelled), "{args:?}: {said:?}");
        let steers = |character: char| character != '\n' && (character.is_control() || character == '\u{202e}');
        assert!(!told.stderr.contains(steers) && !told.stdout.contains(steers), "{args:?}: {:?}", told.stderr);
    }
}

#[test]
fn a_pipe_below_another_root_holds_nothing_up_and_a_signal_ends_it() {
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
    if !has_sampling(&run_in_time(&chokepoint, &["profile", "--pid", &busy.pid(), "-z", "500ms"])) {
        return;
    }
    let mut child = chokepoint.command(&["profile", "--pid", &busy.pid(), "-z", "600s"]).stdout(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let begin = Instant::now();
    while !catches_sigterm(child.id()) && begin.elapsed() < TIME_MAX {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(pid, Signal::TERM).unwrap();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > TIME_MAX {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("SIGTERM does not end it");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process has a handler of its own by now (SigCgt of proc_pid_status(5)).
fn catches_sigterm(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (libc::SIGTERM - 1) != 0)
}

/// A running nginx of root's, gone with this.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn an_include_of_another_user_brings_no_file_of_roots_into_a_recording() {
    const MARKER: &str = "marker_of_root_5e1";
    if !is_root() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let at = |name: &str| chokepoint.file(name).display().to_string();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
    let Ok(child) = Command::new("nginx").args(["-c", &main]).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        println!("skipped: nginx is not installed");
        return;
    };
    let _nginx = Nginx(child);
    let begin = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < TIME_MAX, "nginx does not start: {:?}", std::fs::read_to_string(at("e.log")));
        std::thread::sleep(Duration::from_millis(20));
    }
    let url = format!("http://127.0.0.1:{port}/");
    let file = at("r.rec");
    let args = ["diagnose", "--json", "--record", &file, "--redact", "none", "-n", "200", "-c", "2", &url];
    let recorded = |owner: u32| {
        chown(&theirs, Some(owner), Some(owner)).unwrap();
        let ran = run_in_time(&chokepoint, &args);
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
