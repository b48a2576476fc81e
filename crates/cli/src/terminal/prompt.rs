//! A question on the terminal. An answer or a signal ends it.

use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// Time between two checks for a signal that arrived just before the wait.
const POLL: Duration = Duration::from_millis(100);
/// The longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks on stderr: true for yes, false if the user asked to stop.
pub(crate) fn ask(question: &str, interrupt: &Interrupt) -> Result<bool> {
    output::question(question)?;
    let answer = answer(interrupt)?;
    if answer.is_none() {
        output::note("");
    }
    Ok(answer.is_some_and(|answer| matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")))
}

/// A line from stdin without its line break; nothing if the user asked to stop first.
fn answer(interrupt: &Interrupt) -> Result<Option<String>> {
    let stdin = io::stdin();
    let mut answer = Vec::new();
    let mut buffer = [0; 256];
    while !interrupt.is_set() {
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Timespec::try_from(POLL).ok().as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            polled => polled.map_err(io::Error::from)?,
        };
        let bytes = match rustix::io::read(&stdin, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            read => read.map_err(io::Error::from)?,
        };
        answer.extend_from_slice(&buffer[..bytes]);
        let line = answer.split(|byte| *byte == b'\n').next().unwrap_or_default();
        // The end of the input also ends the answer.
        if bytes == 0 || line.len() < answer.len() {
            return Ok(Some(String::from_utf8_lossy(line).trim().to_owned()));
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidData, "the answer is too long").into());
        }
    }
    Ok(None)
}
