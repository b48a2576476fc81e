//! The views of `bench`, `where` and `watch` on a terminal: whatever stops or ends the program, the terminal is restored.
//!
//! Live beside others: the tests check the state of a terminal while a load runs.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, waitpid};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{Chokepoint, Frozen, OK, Server, becomes_true, becomes_true_soon, open_terminal, signal};

/// Enters the alternate screen; shows the cursor again and leaves that screen.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// A line that only the view has.
const PAGE: &str = "Ctrl-C stops the load";

/// A program on a separate terminal, and everything that it wrote there.
struct OnTerminal {
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
    /// Bytes written here are typed.
    keys: File,
}

impl OnTerminal {
    /// Runs it on a terminal of 80 columns and 24 rows.
    fn start(mut command: Command) -> Self {
        let (master, terminal) = open_terminal();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let [input, stdout] = [(); 2].map(|()| terminal.try_clone().unwrap());
        let child = command.env("TERM", "xterm").stdin(input).stdout(stdout).stderr(terminal).spawn().unwrap();
        // The command holds the terminal open: drop it, or the end of the program is not noticed.
        drop(command);
        let written = Arc::new(Mutex::new(Vec::new()));
        let output = Arc::clone(&written);
        let keys = File::from(master.try_clone().unwrap());
        std::thread::spawn(move || {
            let (mut master, mut buffer) = (File::from(master), [0; 4096]);
            // Once nobody has the terminal open, a read fails (EIO).
            while let Ok(bytes) = master.read(&mut buffer) {
                output.lock().unwrap().extend_from_slice(&buffer[..bytes]);
            }
        });
        Self { child, written, keys }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until a text was written this many times.
    fn wait_for(&self, text: &str, times: usize) {
        let is_written = becomes_true(|| self.text().matches(text).count() >= times);
        assert!(is_written, "{text:?} was not written {times} times: {:?}", self.text());
    }

    fn send(&self, signal: Signal) {
        self::signal(&self.child, signal);
    }

    /// True if the terminal echoes input and reads it by lines, as for a shell.
    fn reads_lines(&self) -> bool {
        tcgetattr(&self.keys).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits until the program stops or ends.
    fn wait_for_change(&self) -> WaitStatus {
        waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED).unwrap().unwrap().1
    }

    /// Waits for an end that is promised within a second.
    fn wait_for_end(&self) -> WaitStatus {
        let mut change = None;
        let ends = becomes_true_soon(|| {
            change = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::NOHANG).unwrap();
            change.is_some()
        });
        assert!(ends, "it does not end soon: {:?}", self.text());
        change.unwrap().1
    }
}

/// A load that lasts until a signal ends it.
fn loading(chokepoint: &Chokepoint, server: &Server) -> OnTerminal {
    let program = OnTerminal::start(chokepoint.command(&["bench", "-z", "600s", "-q", "20", "-c", "4", &server.url()]));
    program.wait_for(PAGE, 1);
    program
}

fn answering() -> Server {
    Server::serving(|stream| stream.write_all(OK).is_ok())
}

#[test]
fn a_stopped_load_restores_the_terminal_and_is_drawn_again_when_it_continues() {
    let (chokepoint, server) = (Chokepoint::new(), answering());
    let program = loading(&chokepoint, &server);
    program.send(Signal::TSTP);
    assert!(program.wait_for_change().stopped(), "{:?}", program.text());
    program.wait_for(LEAVE, 1);
    assert_eq!(program.text().matches(ENTER).count(), 1, "{:?}", program.text());
    let before = program.text().matches(PAGE).count();
    program.send(Signal::CONT);
    program.wait_for(ENTER, 2);
    program.wait_for(PAGE, before + 1);
    program.send(Signal::INT);
    assert!(program.wait_for_change().exited());
    program.wait_for("The load generator was suspended for", 1);
    let text = program.text();
    assert_eq!(text.matches(LEAVE).count(), 2, "{text:?}");
    assert!(text.rfind(LEAVE) < text.rfind("The load generator was suspended for"), "the report follows the view: {text:?}");
}

#[test]
fn any_end_of_the_load_restores_the_terminal() {
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let program = loading(&chokepoint, &server);
        program.send(signal);
        let status = program.wait_for_change();
        let by_signal = status.terminating_signal() == Some(Signal::QUIT.as_raw());
        assert_eq!((status.exited(), by_signal), (signal != Signal::QUIT, signal == Signal::QUIT), "{signal:?} {status:?}");
        program.wait_for(LEAVE, 1);
        let text = program.text();
        assert_eq!((text.matches(ENTER).count(), text.matches(LEAVE).count()), (1, 1), "{signal:?} {text:?}");
    }
}

#[test]
fn connections_are_shown_as_they_come_until_the_user_quits() {
    let chokepoint = Chokepoint::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let connect = || (std::net::TcpStream::connect(server).unwrap(), listener.accept().unwrap());
    let first = connect();
    let mut program = OnTerminal::start(chokepoint.command(&["tcp", "--live"]));
    program.wait_for(&server.to_string(), 2);
    // Only what changes is written: "299" has no digit of "1" in its place.
    let others: Vec<_> = (0..298).map(|_| connect()).collect();
    program.wait_for("299", 1);
    program.keys.write_all(b"q").unwrap();
    assert!(program.wait_for_change().exited());
    program.wait_for(LEAVE, 1);
    drop((first, others));
}

/// The view of `where` for a server without requests.
fn watching(chokepoint: &Chokepoint, server: &Server) -> OnTerminal {
    let program = OnTerminal::start(chokepoint.command(&["where", &server.url()]));
    program.wait_for("No request is in flight", 1);
    assert!(!program.reads_lines(), "keys are read as they are typed");
    program
}

#[test]
fn any_end_of_where_restores_the_terminal_and_its_modes() {
    for (signal, status) in [(None, 0), (Some(Signal::INT), 130), (Some(Signal::TERM), 143)] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let mut program = watching(&chokepoint, &server);
        program.keys.write_all(b"?").unwrap();
        program.wait_for("any key goes back", 1);
        match signal {
            Some(signal) => program.send(signal),
            None => program.keys.write_all(b"q").unwrap(),
        }
        assert_eq!(program.wait_for_end().exit_status(), Some(status), "{:?}", program.text());
        program.wait_for(LEAVE, 1);
        assert_eq!(program.text().matches(ENTER).count(), 1, "{:?}", program.text());
        assert!(program.reads_lines(), "{signal:?}");
    }
}

#[test]
fn a_stopped_where_restores_the_modes_and_takes_the_keys_again_when_it_continues() {
    let (chokepoint, server) = (Chokepoint::new(), answering());
    let mut program = watching(&chokepoint, &server);
    program.send(Signal::TSTP);
    assert!(program.wait_for_change().stopped(), "{:?}", program.text());
    program.wait_for(LEAVE, 1);
    assert!(program.reads_lines());
    program.send(Signal::CONT);
    program.wait_for(ENTER, 2);
    program.keys.write_all(b"q").unwrap();
    assert_eq!(program.wait_for_change().exit_status(), Some(0), "{:?}", program.text());
    assert!(program.reads_lines());
}

#[test]
fn a_watch_that_hangs_says_so_and_ends_by_a_key_or_a_signal_with_the_terminal_restored() {
    for (thread, by_key) in [("sampler", true), ("following", false)] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let data = chokepoint.path("data");
        let mut program = OnTerminal::start(chokepoint.command(&["watch", "--listen", "off", "--data-dir", &data, &server.url()]));
        program.wait_for(ENTER, 1);
        program.wait_for("one server is watched", 1);
        let Some(frozen) = Frozen::thread(&program.child, thread) else { return };
        program.wait_for("Nothing was measured for ", 1);
        match by_key {
            true => program.keys.write_all(b"q").unwrap(),
            false => program.send(Signal::TERM),
        }
        assert_eq!(program.wait_for_end().exit_status(), Some(if by_key { 0 } else { 143 }), "{:?}", program.text());
        assert!(frozen.ended(), "{thread} still hung when the program ended");
        program.wait_for(LEAVE, 1);
        if thread == "following" {
            program.wait_for("ended in the middle of ", 1);
        }
        let text = program.text();
        assert!(
            thread != "following" || text.rfind(LEAVE) < text.rfind("ended in the middle of "),
            "the sentence follows the view: {text:?}"
        );
        assert!(program.reads_lines(), "{thread}");
    }
}

#[test]
fn a_where_that_hangs_says_so_and_takes_its_keys() {
    for (thread, typed) in [("sampler", "q"), ("looking", "?q")] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let mut program = watching(&chokepoint, &server);
        let Some(frozen) = Frozen::thread(&program.child, thread) else { return };
        program.wait_for("Nothing was measured for ", 1);
        for key in typed.chars() {
            program.keys.write_all(key.to_string().as_bytes()).unwrap();
            if key == '?' {
                program.wait_for("any key goes back", 1);
                program.keys.write_all(b" ").unwrap();
                program.wait_for("Nothing was measured for ", 2);
            }
        }
        assert_eq!(program.wait_for_end().exit_status(), Some(0), "{:?}", program.text());
        assert!(frozen.ended(), "{thread} still hung when the program ended");
        assert!(program.reads_lines(), "{thread}");
    }
}

#[test]
fn a_load_that_needs_leave_asks_for_it_on_a_terminal() {
    for (typed, is_sent) in [("y", true), ("n", false), ("", false)] {
        let (chokepoint, server) = (Chokepoint::new(), answering());
        let mut program = OnTerminal::start(chokepoint.command(&["bench", "-n", "3", "-c", "1", "-m", "POST", &server.url()]));
        program.wait_for("[y/N]", 1);
        let asked = program.text();
        assert!(asked.contains("POST") && asked.contains("errors>20%"), "the question names the method and the guard: {asked:?}");
        program.keys.write_all(format!("{typed}\n").as_bytes()).unwrap();
        let status = program.wait_for_change();
        assert_eq!(status.exit_status(), Some(if is_sent { 0 } else { 1 }), "{typed:?}: {:?}", program.text());
        program.wait_for(if is_sent { "3 with status 200" } else { "nothing was sent" }, 1);
    }
}
