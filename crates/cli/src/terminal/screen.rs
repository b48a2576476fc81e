//! The alternate screen of the terminal while a view is shown: a ratatui terminal that writes control sequences (ECMA-48) to stderr.
//!
//! The modes of the terminal do not change: Ctrl-C stays a signal, and only the screen and the cursor must be restored. Only a view with keys
//! changes the modes (`keys`).

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use chokepoint_foreign::printable;
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::LocalModes;

/// Enters the alternate screen and hides the cursor; the reverse (control sequences of xterm, which all current terminals support).
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// True while the alternate screen is shown.
static SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The alternate screen. Its drop restores the main screen, and so does a panic before its message.
pub(crate) struct Screen {
    terminal: Terminal<AnsiBackend>,
}

impl Screen {
    /// Enters the alternate screen. `color`: the terminal supports colours.
    pub(crate) fn enter(color: bool) -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                super::keys::restore();
                before(panic);
            }));
        });
        let mut out = io::stderr().lock();
        out.write_all(ENTER)?;
        out.flush()?;
        SHOWN.store(true, Ordering::SeqCst);
        drop(out);
        let terminal = Terminal::new(AnsiBackend { color, out: Vec::new() }).inspect_err(|_| leave())?;
        Ok(Screen { terminal })
    }

    pub(crate) fn terminal(&mut self) -> &mut Terminal<AnsiBackend> {
        &mut self.terminal
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// True while the alternate screen is shown.
pub(crate) fn is_shown() -> bool {
    SHOWN.load(Ordering::SeqCst)
}

/// True if this program is in the foreground of the terminal, and not in the background of a shell.
pub(crate) fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).map_or(true, |foreground| foreground == rustix::process::getpgrp())
}

/// True if writing to the terminal does not stop this program: in the background it does if the user set `tostop` (stty(1)).
fn may_write() -> bool {
    let stops = || rustix::termios::tcgetattr(io::stderr()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP));
    is_in_foreground() || !stops()
}

/// Restores the main screen, once.
fn leave() {
    if SHOWN.swap(false, Ordering::SeqCst) && may_write() {
        let mut out = io::stderr().lock();
        // A terminal that is gone needs no restoring.
        let _ = out.write_all(LEAVE).and_then(|()| out.flush());
    }
}

/// What restores the main screen, for those who write it themselves; nothing if it is there already.
pub(super) fn leave_at_once() -> Option<&'static [u8]> {
    (SHOWN.swap(false, Ordering::SeqCst) && may_write()).then_some(LEAVE)
}

/// Writes to stderr, unless that would wait.
pub(super) fn write_at_once(bytes: &[u8]) {
    let stderr = io::stderr();
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&now)) == Ok(1) && ready[0].revents().contains(PollFlags::OUT) {
        let _ = rustix::io::write(&stderr, bytes);
    }
}

/// The backend of ratatui.
pub(crate) struct AnsiBackend {
    color: bool,
    /// Bytes not flushed yet.
    out: Vec<u8>,
}

impl AnsiBackend {
    /// Sets colour and weight of the next characters (ECMA-48 SGR).
    fn set_look(&mut self, foreground: Color, modifier: Modifier) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[0");
        for (wanted, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
            if modifier.contains(wanted) {
                self.out.extend_from_slice(code.as_bytes());
            }
        }
        let code = match foreground {
            Color::Red => 31,
            Color::Green => 32,
            Color::Yellow => 33,
            _ => 39,
        };
        if self.color { write!(self.out, ";{code}m") } else { write!(self.out, "m") }
    }
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut look = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                write!(self.out, "\x1b[{};{}H", y + 1, x + 1)?;
            }
            if look != Some((cell.fg, cell.modifier)) {
                self.set_look(cell.fg, cell.modifier)?;
                look = Some((cell.fg, cell.modifier));
            }
            self.out.extend_from_slice(printable(cell.symbol()).as_bytes());
            // After a wide character the cursor is positioned again.
            next = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    /// The cursor is hidden, so its position does not matter.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.out, "\x1b[{};{}H", y + 1, x + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[0m\x1b[2J");
        Ok(())
    }

    /// The view fills the screen, so everything is cleared.
    fn clear_region(&mut self, _clear_type: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map(|(width, height)| Size::new(width.0, height.0)).ok_or_else(|| io::Error::other("the terminal has no size"))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stderr().lock();
        out.write_all(&self.out)?;
        self.out.clear();
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::{Command, ExitStatus};

    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

    use super::*;

    /// Set in the child process of the test, which panics.
    const ROLE: &str = "CHOKEPOINT_TEST_PANICS";

    #[test]
    fn a_panic_restores_the_terminal_and_its_message_stays() {
        let message = "what went wrong";
        match std::env::var(ROLE).as_deref() {
            Ok("view") => {
                let _screen = Screen::enter(true).unwrap();
                panic!("{message}");
            }
            Ok(_) => {
                let _screen = Screen::enter(true).unwrap();
                let load = std::thread::spawn(move || -> () { panic!("{message}") }).join();
                assert!(!is_shown(), "the view would cover the message");
                std::panic::resume_unwind(load.unwrap_err());
            }
            Err(_) => {
                for role in ["view", "load"] {
                    let (text, status) = child_on_terminal(role);
                    assert_eq!(status.code(), Some(101), "{role}: {text:?}");
                    let [enter, leave] = [ENTER, LEAVE].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                    assert_eq!((text.matches(&enter).count(), text.matches(&leave).count()), (1, 1), "{role}: {text:?}");
                    let [enter, leave, message] = [text.find(&enter), text.find(&leave), text.find(message)];
                    assert!(enter.is_some() && enter < leave && leave < message, "{role}: {text:?}");
                }
            }
        }
    }

    /// Runs this test as a child in that role on a separate terminal, whose modes must not change. Returns its output and its status.
    fn child_on_terminal(role: &str) -> (String, ExitStatus) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::from(open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let modes =
            || tcgetattr(&terminal).map(|modes| (modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes)).unwrap();
        let before = modes();
        let reader = std::thread::spawn(move || {
            let (mut master, mut text, mut buffer) = (File::from(master), Vec::new(), [0; 4096]);
            // Once nobody has the terminal open, a read fails (EIO).
            while let Ok(bytes) = master.read(&mut buffer) {
                text.extend_from_slice(&buffer[..bytes]);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let [input, output, errors] = [(); 3].map(|()| terminal.try_clone().unwrap());
        let test = "terminal::screen::tests::a_panic_restores_the_terminal_and_its_message_stays";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(ROLE, role).env("RUST_BACKTRACE", "0");
        let status = command.stdin(input).stdout(output).stderr(errors).status().unwrap();
        assert_eq!(modes(), before, "{role}");
        drop((command, terminal));
        (reader.join().unwrap(), status)
    }
}
