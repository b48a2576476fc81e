//! Single keys, without Enter, for a view with keys. Ctrl-C, Ctrl-Z and Ctrl-\\ stay signals.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// The modes of the terminal before.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// The first byte of the sequences of arrows and function keys (ECMA-48).
const ESCAPE: u8 = 0x1b;
/// Bytes of one read: more than the longest sequence of a key.
const READ_BYTES: usize = 32;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character.
    Char(char),
    /// Another key.
    Other,
}

/// The keyboard of the terminal on stdin; its modes are restored when this is dropped.
pub(crate) struct Keys(());

impl Keys {
    /// Sets the modes; nothing if stdin is not a terminal. Call it only in the foreground: the terminal stops a background program that does this.
    pub(crate) fn take() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let keys = Self(());
        tcsetattr(io::stdin(), OptionalActions::Now, &modes).ok()?;
        Some(keys)
    }

    /// The next key within `patience`. An error if the terminal is gone.
    pub(crate) fn next(&self, patience: Duration) -> io::Result<Option<Key>> {
        let stdin = io::stdin();
        let patience = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Some(&patience)) {
            // After a signal the caller checks which.
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; READ_BYTES];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) if ready[0].revents().contains(PollFlags::HUP) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(key(&bytes[..count]))),
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// The last of the keys that were typed since the last read.
fn key(bytes: &[u8]) -> Key {
    match bytes {
        [ESCAPE, ..] => Key::Other,
        [.., last] if last.is_ascii_graphic() => Key::Char(char::from(*last)),
        _ => Key::Other,
    }
}

/// Restores the terminal's modes, once.
pub(super) fn restore() {
    set_back(BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// In the background the terminal is somebody else's: a shell has set its own modes, and the kernel would stop this program for setting others (SIGTTOU, termios(3)).
fn set_back(before: Option<Termios>) {
    let is_ours = || rustix::termios::tcgetpgrp(io::stdin()).map_or(true, |foreground| foreground == rustix::process::getpgrp());
    if let Some(modes) = before.filter(|_| is_ours()) {
        // A closed terminal needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// [`restore`] where nothing may wait.
pub(super) fn restore_at_once() {
    set_back(BEFORE.try_lock().ok().and_then(|mut before| before.take()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_character_and_arrows_are_not() {
        assert_eq!(key(b"q"), Key::Char('q'));
        assert_eq!(key(b"tq"), Key::Char('q'));
        assert_eq!(key(b"\x1b[A"), Key::Other, "not an A");
        assert_eq!((key(b"\x1b"), key(b"\r"), key("é".as_bytes())), (Key::Other, Key::Other, Key::Other));
    }
}
