//! `--fix` stopped at the prompt and during a measurement, by Ctrl-C and by the end of its terminal: unproven changes are taken back, and the run says
//! what it did.
//!
//! Live: a real server is diagnosed under load, and what a busy machine hides cannot be fixed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::MutexGuard;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::harness::{Chokepoint, Server, becomes_true, has_programs, is_root, one_lab, open_terminal, ran, signal, wait_until};

const SCENARIO: &str = "accept-queue-short";

/// A lab with one fault whose remedy changes a sysctl and the configuration of nginx. It is taken down when this is dropped.
struct Stack {
    chokepoint: Chokepoint,
    before: Vec<u8>,
    _alone: MutexGuard<'static, ()>,
}

impl Stack {
    fn up() -> Option<Self> {
        if !is_root() || !has_programs(&["nginx", "ip", "setsid"]) {
            return None;
        }
        let alone = one_lab();
        let chokepoint = Chokepoint::new();
        let up = chokepoint.run(&["lab", "up", SCENARIO]);
        assert_eq!(up.status, Some(0), "{}", up.stderr);
        let mut stack = Self { chokepoint, before: Vec::new(), _alone: alone };
        stack.before = stack.file();
        assert_eq!(stack.limit(), "10");
        Some(stack)
    }

    /// The load is the scenario's, with a connection for each request. Another lab of this host may have the same addresses, so the server's namespace is named.
    fn fix(&self, more: &[&str]) -> Command {
        let [client, server] = ["client", "server"].map(|host| format!("cp-{SCENARIO}-{host}"));
        let places = ["--client-netns", &client, "--server-netns", &server];
        let load = ["-c", "1000", "-z", "2s", "--disable-keepalive", "http://10.78.0.2/index.html"];
        self.chokepoint.command(&[&["diagnose", "--fix"], &places[..], &load, more].concat())
    }

    /// Starts a fix that does not ask, and waits until it has changed something.
    fn fix_applied(&self) -> Child {
        let mut child = self.fix(&["--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut is_over = false;
        wait_until("it was neither applied nor given up", || {
            is_over = child.try_wait().unwrap().is_some();
            is_over || self.is_changed()
        });
        if is_over {
            let ended = ran(child.wait_with_output().unwrap());
            panic!("it ended without a change: {} {}", ended.stdout, ended.stderr);
        }
        child
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

    /// True once the journal holds the change as applied.
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

/// A program with its own controlling terminal, as in an ssh session.
struct Terminal {
    child: Child,
    master: File,
    text: String,
}

impl Terminal {
    fn start(command: &Command) -> Self {
        let (master, terminal) = open_terminal();
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        let [input, output] = [(); 2].map(|()| terminal.try_clone().unwrap());
        let child = session.stdin(input).stdout(output).stderr(terminal).spawn().unwrap();
        fcntl_setfl(&master, fcntl_getfl(&master).unwrap() | OFlags::NONBLOCK).unwrap();
        Self { child, master: File::from(master), text: String::new() }
    }

    /// Reads what was written so far; false once nobody has the terminal open.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.master.read(&mut buffer) {
                Ok(0) => return false,
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    fn wait_for(&mut self, text: &str) {
        let is_written = becomes_true(|| !self.read() || self.text.contains(text)) && self.text.contains(text);
        assert!(is_written, "{text} was not written: {}", self.text);
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end. Returns the status and everything that was written.
    fn end(mut self) -> (ExitStatus, String) {
        wait_until("it never ended", || {
            self.read();
            self.child.try_wait().unwrap().is_some()
        });
        self.read();
        (self.child.wait().unwrap(), self.text)
    }
}

#[test]
fn unproven_changes_are_taken_back_whatever_stops_the_fix() {
    let Some(stack) = Stack::up() else { return };

    // Ctrl-C at the prompt ends it without a line of input.
    let mut terminal = Terminal::start(&stack.fix(&[]));
    terminal.wait_for("Apply it? [y/N]");
    // What it found stands before what it asks.
    let at = |words: &str| terminal.text.find(words).unwrap_or_else(|| panic!("{words}: {}", terminal.text));
    // A generator without optimisation may be at its own limit beside the queue.
    let headline = if terminal.text.contains("CHOKED") { "CHOKED" } else { "CLIENT-LIMITED" };
    assert!(at(headline) < at("good,") && at("good,") < at("Apply it?"), "{}", terminal.text);
    terminal.press("\u{3}");
    let (status, text) = terminal.end();
    assert!(status.code() == Some(130) && text.contains("stopped: nothing was changed"), "{status:?} {text}");
    stack.assert_untouched();

    // The terminal is closed after the yes.
    let mut terminal = Terminal::start(&stack.fix(&[]));
    terminal.wait_for("Apply it? [y/N]");
    terminal.press("y\n");
    // What it writes is read: a terminal that is full would hold it up.
    wait_until("it was neither applied nor given up", || !terminal.read() || stack.is_changed());
    assert!(stack.is_changed(), "it ended without a change: {}", terminal.text);
    assert!(stack.limit() != "10" && stack.file() != stack.before);
    let Terminal { mut child, master, .. } = terminal;
    drop(master);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    stack.assert_untouched();

    // Two signals during the measurement: at the second the run says what it is doing; the first sets the status.
    let child = stack.fix_applied();
    signal(&child, Signal::TERM);
    signal(&child, Signal::INT);
    let ended = ran(child.wait_with_output().unwrap());
    assert!(matches!(ended.status, Some(143 | 130)), "{:?} {}", ended.status, ended.stderr);
    assert!(ended.stderr.contains("taking back 1 change; a third Ctrl-C leaves it in the journal: `chokepoint undo`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("is 10 again") && !ended.stderr.contains("nothing was changed"), "{}", ended.stderr);
    stack.assert_untouched();

    // Nobody reads its output.
    let mut child = stack.fix_applied();
    drop((child.stdout.take(), child.stderr.take()));
    signal(&child, Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(129));
    stack.assert_untouched();
}

/// timeout(1) signals its command twice: by its pid, and with its group.
#[test]
fn timeout_ends_a_load_in_order() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let command = chokepoint.command(&["bench", "--json", "--no-keep", "-c", "1", "-z", "600s", &server.url()]);
    let ended = ran(Command::new("timeout").arg("2").arg(command.get_program()).args(command.get_args()).output().unwrap());
    assert_eq!(ended.status, Some(124), "{}", ended.stderr);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout));
    assert!(report["load"]["goodput_rps"].as_f64().is_some_and(|goodput| goodput > 0.0), "{report:#}");
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let run = |ignored: &str, signal_sent: Signal| {
        let command = chokepoint.command(&["bench", "--no-keep", "-c", "1", "-z", "1s", &server.url()]);
        // The test itself may run with these signals ignored, as in the background of a shell without job control (sh(1)).
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=HUP,QUIT,TERM,USR1", "sh", "-c", &format!("trap '' {ignored}; exec \"$@\""), "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The handlers are installed before the threads of the load start.
        let threads = format!("/proc/{}/task", child.id());
        wait_until("it never began", || std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() > 1));
        signal(&child, signal_sent);
        ran(child.wait_with_output().unwrap()).status
    };
    assert_eq!(run("HUP", Signal::HUP), Some(0), "nohup");
    assert_eq!(run("USR1", Signal::HUP), Some(129));
    assert_eq!(run("USR1", Signal::TERM), Some(143));
    assert_eq!(run("USR1", Signal::QUIT), Some(131));
}
