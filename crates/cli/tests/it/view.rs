//! The views on a terminal, of a load and of where requests stand: whatever stops or ends the program, the terminal is as it was before.
//!
//! Live beside others: the state of a terminal is judged while a load runs.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{Chokepoint, Server};

/// The first bytes of the second screen, and the last: it is left and the cursor shown again.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// A line of the view alone.
const PAGE: &str = "Ctrl-C ends it";
/// Nothing takes as long on any machine.
const FOREVER: Duration = Duration::from_secs(120);

/// A program on a terminal of its own, and all that it has written there.
struct Seen {
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
    /// What is written here is typed.
    keys: File,
}

impl Seen {
    /// Runs it on a terminal of 80 columns and 24 rows.
    fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::from(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let [input, output] = [(); 2].map(|()| terminal.try_clone().unwrap());
        let child = command.env("TERM", "xterm").stdin(input).stdout(output).stderr(terminal).spawn().unwrap();
        // The command holds the terminal open, and its end is not seen before.
        drop(command);
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&written);
        let keys = File::from(master.try_clone().unwrap());
        std::thread::spawn(move || {
            let (mut master, mut buffer) = (File::from(master), [0; 4096]);
            // Once nobody has the terminal open any more, reading it is an error (EIO).
            while let Ok(bytes) = master.read(&mut buffer) {
                kept.lock().unwrap().extend_from_slice(&buffer[..bytes]);
            }
        });
        Self { child, written, keys }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until this was written so many times.
    fn wait_for(&self, what: &str, times: usize) {
        let begin = Instant::now();
        while self.text().matches(what).count() < times {
            assert!(begin.elapsed() < FOREVER, "{what:?} was not written {times} times: {:?}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// True where what is typed is shown and read by the line, as a shell wants it.
    fn reads_lines(&self) -> bool {
        tcgetattr(&self.keys).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits until the program stops or ends.
    fn changed(&self) -> WaitStatus {
        waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap().1
    }
}

/// A load that lasts until it is told to end.
fn loading(chokepoint: &Chokepoint, server: &Server) -> Seen {
    let seen = Seen::start(chokepoint.command(&["bench", "-z", "600s", "-q", "20", "-c", "4", &server.url()]));
    seen.wait_for(PAGE, 1);
    seen
}

fn answering() -> Server {
    Server::serving(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_ok())
}

#[test]
fn a_stopped_load_gives_the_terminal_back_and_is_drawn_anew_when_it_goes_on() {
    let (chokepoint, server) = (Chokepoint::new(), answering());
    let seen = loading(&chokepoint, &server);
    seen.send(Signal::TSTP);
    assert!(seen.changed().stopped(), "{:?}", seen.text());
    seen.wait_for(LEAVE, 1);
    assert_eq!(seen.text().matches(ENTER).count(), 1, "{:?}", seen.text());
    let before = seen.text().matches(PAGE).count();
    seen.send(Signal::CONT);
    seen.wait_for(ENTER, 2);
    seen.wait_for(PAGE, before + 1);
    seen.send(Signal::INT);
    assert!(seen.changed().exited());
    seen.wait_for("The load generator was stopped for", 1);
    let text = seen.text();
    assert_eq!(text.matches(LEAVE).count(), 2, "{text:?}");
    assert!(text.rfind(LEAVE) < text.rfind("The load generator was stopped for"), "the report stands behind the view: {text:?}");
}

#[test]
fn whatever_ends_the_load_gives_the_terminal_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let seen = loading(&chokepoint, &server);
        seen.send(signal);
        let status = seen.changed();
        let by_signal = status.terminating_signal() == Some(Signal::QUIT.as_raw());
        assert_eq!((status.exited(), by_signal), (signal != Signal::QUIT, signal == Signal::QUIT), "{signal:?} {status:?}");
        seen.wait_for(LEAVE, 1);
        let text = seen.text();
        assert_eq!((text.matches(ENTER).count(), text.matches(LEAVE).count()), (1, 1), "{signal:?} {text:?}");
    }
}

/// The live account of a server that nobody asks anything.
fn watching(chokepoint: &Chokepoint, server: &Server) -> Seen {
    let seen = Seen::start(chokepoint.command(&["where", &server.url()]));
    seen.wait_for("No request is under way", 1);
    assert!(!seen.reads_lines(), "keys are taken as they are typed");
    seen
}

#[test]
fn whatever_ends_the_account_gives_the_terminal_and_its_keys_back() {
    for (signal, status) in [(None, 0), (Some(Signal::INT), 130), (Some(Signal::TERM), 143)] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let mut seen = watching(&chokepoint, &server);
        seen.keys.write_all(b"?").unwrap();
        seen.wait_for("any key leads back", 1);
        match signal {
            Some(signal) => seen.send(signal),
            None => seen.keys.write_all(b"q").unwrap(),
        }
        assert_eq!(seen.changed().exit_status(), Some(status), "{:?}", seen.text());
        seen.wait_for(LEAVE, 1);
        assert_eq!(seen.text().matches(ENTER).count(), 1, "{:?}", seen.text());
        assert!(seen.reads_lines(), "{signal:?}");
    }
}

#[test]
fn a_stopped_account_gives_the_keys_back_and_takes_them_again_when_it_goes_on() {
    let (chokepoint, server) = (Chokepoint::new(), answering());
    let mut seen = watching(&chokepoint, &server);
    seen.send(Signal::TSTP);
    assert!(seen.changed().stopped(), "{:?}", seen.text());
    seen.wait_for(LEAVE, 1);
    assert!(seen.reads_lines());
    seen.send(Signal::CONT);
    seen.wait_for(ENTER, 2);
    seen.keys.write_all(b"q").unwrap();
    assert_eq!(seen.changed().exit_status(), Some(0), "{:?}", seen.text());
    assert!(seen.reads_lines());
}

#[test]
fn a_load_that_needs_leave_asks_for_it_on_a_terminal() {
    for (typed, is_sent) in [("y", true), ("n", false), ("", false)] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let mut seen = Seen::start(chokepoint.command(&["bench", "-n", "3", "-c", "1", "-m", "POST", &server.url()]));
        seen.wait_for("[y/N]", 1);
        let asked = seen.text();
        assert!(asked.contains("POST") && asked.contains("errors>20%"), "it says what is asked for, and what stops it: {asked:?}");
        seen.keys.write_all(format!("{typed}\n").as_bytes()).unwrap();
        let status = seen.changed();
        assert_eq!(status.exit_status(), Some(if is_sent { 0 } else { 1 }), "{typed:?}: {:?}", seen.text());
        seen.wait_for(if is_sent { "3 with status 200" } else { "nothing was sent" }, 1);
    }
}
