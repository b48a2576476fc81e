//! A run of `--fix` that is stopped, at the prompt and in the middle of a measurement, by Ctrl-C and by a terminal that goes away: what was not proven
//! is taken back, and what was done is told.
//!
//! Live beside others: a load is stopped by signals while it runs; what is taken back is judged.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use crate::harness::{Chokepoint, Server, is_root, ran};

/// Nothing takes as long on any machine.
const FOREVER: Duration = Duration::from_secs(120);
const SCENARIO: &str = "accept-queue-short";

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < FOREVER, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

/// A lab with one fault, whose remedy changes a sysctl and nginx's file; taken down when dropped.
struct Stack {
    chokepoint: Chokepoint,
    before: Vec<u8>,
}

impl Stack {
    fn up() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let there = |name: &str| ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|dir| std::path::Path::new(dir).join(name).exists());
        if let Some(missing) = ["nginx", "ip", "setsid"].iter().find(|name| !there(name)) {
            println!("skipped: {missing} is not installed");
            return None;
        }
        let chokepoint = Chokepoint::new();
        let up = chokepoint.run(&["lab", "up", SCENARIO]);
        assert_eq!(up.status, Some(0), "{}", up.stderr);
        let mut stack = Self { chokepoint, before: Vec::new() };
        stack.before = stack.file();
        assert_eq!(stack.limit(), "10");
        Some(stack)
    }

    fn fix(&self, more: &[&str]) -> Command {
        let client = format!("cp-{SCENARIO}-client");
        let args =
            [&["diagnose", "--fix", "-c", "1000", "-z", "2s", "--client-netns", &client, "http://10.78.0.2/index.html"], more].concat();
        self.chokepoint.command(&args)
    }

    fn file(&self) -> Vec<u8> {
        std::fs::read(self.config()).unwrap()
    }

    fn config(&self) -> PathBuf {
        self.chokepoint.file("run/lab").join(SCENARIO).join("run/nginx.conf")
    }

    fn limit(&self) -> String {
        let args = ["netns", "exec", &format!("cp-{SCENARIO}-server"), "sysctl", "-n", "net.core.somaxconn"];
        String::from_utf8(Command::new("ip").args(args).output().unwrap().stdout).unwrap().trim().to_owned()
    }

    /// Both settings are changed, and the journal knows.
    fn is_changed(&self) -> bool {
        let journal = std::fs::read_to_string(self.chokepoint.file("state/journal")).unwrap_or_default();
        journal.contains("\"record\":\"applied\"")
    }

    fn assert_untouched(&self) {
        assert_eq!((self.limit().as_str(), self.file() == self.before), ("10", true));
        assert_eq!(self.chokepoint.run(&["undo", "--list"]).stdout, "nothing is applied\n");
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let _ = self.chokepoint.command(&["lab", "down", SCENARIO]).output();
    }
}

/// A program whose controlling terminal is one of its own, as in a session of ssh.
struct Terminal {
    child: Child,
    master: File,
    text: String,
}

impl Terminal {
    fn start(command: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::from(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        let [input, output] = [(); 2].map(|()| terminal.try_clone().unwrap());
        let child = session.stdin(input).stdout(output).stderr(terminal).spawn().unwrap();
        fcntl_setfl(&master, fcntl_getfl(&master).unwrap() | OFlags::NONBLOCK).unwrap();
        Self { child, master: File::from(master), text: String::new() }
    }

    /// Takes in what was written; false once nobody has the terminal open any more.
    fn look(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        true
    }

    fn wait_for(&mut self, what: &str) {
        let begin = Instant::now();
        while !self.text.contains(what) {
            assert!(self.look() && begin.elapsed() < FOREVER, "{what} did not come: {}", self.text);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn end(mut self) -> (ExitStatus, String) {
        until("it never ended", || !self.look() || self.child.try_wait().unwrap().is_some());
        while self.look() && self.child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().unwrap();
        // What it wrote last.
        for _ in 0..16 {
            self.look();
        }
        (status, self.text)
    }
}

#[test]
fn whatever_stops_a_fix_takes_back_what_is_not_proven() {
    let Some(stack) = Stack::up() else { return };

    // Ctrl-C at the prompt: no line is waited for.
    let mut terminal = Terminal::start(&stack.fix(&[]));
    terminal.wait_for("Apply it? [y/N]");
    terminal.press("\u{3}");
    let (status, text) = terminal.end();
    assert!(status.code() == Some(130) && text.contains("stopped: nothing was changed"), "{status:?} {text}");
    stack.assert_untouched();

    // The terminal goes away after the yes.
    let mut terminal = Terminal::start(&stack.fix(&[]));
    terminal.wait_for("Apply it? [y/N]");
    terminal.press("y\n");
    until("it was never applied", || stack.is_changed());
    assert!(stack.limit() != "10" && stack.file() != stack.before);
    let Terminal { mut child, master, .. } = terminal;
    drop(master);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    stack.assert_untouched();

    // Two signals during the measurement: the second says what is being done, and the first is the status.
    let child = stack.fix(&["--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it was never applied", || stack.is_changed());
    signal(&child, Signal::TERM);
    signal(&child, Signal::INT);
    let ended = ran(child.wait_with_output().unwrap());
    assert!(matches!(ended.status, Some(143 | 130)), "{:?} {}", ended.status, ended.stderr);
    assert!(ended.stderr.contains("taking back 1 change; a third Ctrl-C leaves it in the journal: `chokepoint undo`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("is 10 again") && !ended.stderr.contains("nothing was changed"), "{}", ended.stderr);
    stack.assert_untouched();

    // Nobody reads what it says.
    let mut child = stack.fix(&["--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it was never applied", || stack.is_changed());
    drop((child.stdout.take(), child.stderr.take()));
    signal(&child, Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    stack.assert_untouched();
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let run = |ignored: &str, signal_sent: Signal| {
        let command = chokepoint.command(&["bench", "-c", "1", "-z", "1s", &server.url()]);
        // These tests may run where the others are ignored, as in the background of a shell without job control (sh(1)).
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=HUP,QUIT,TERM,USR1", "sh", "-c", &format!("trap '' {ignored}; exec \"$@\""), "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has its handlers once its other threads are there, for those send the load.
        let threads = format!("/proc/{}/task", child.id());
        until("it never began", || std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() > 1));
        signal(&child, signal_sent);
        ran(child.wait_with_output().unwrap()).status
    };
    assert_eq!(run("HUP", Signal::HUP), Some(0), "nohup");
    assert_eq!(run("USR1", Signal::HUP), Some(129));
    assert_eq!(run("USR1", Signal::TERM), Some(143));
    assert_eq!(run("USR1", Signal::QUIT), Some(131));
}
