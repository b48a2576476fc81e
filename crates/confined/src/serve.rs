//! The child: gives up its rights, says what it has given up, and answers questions until its parent closes the connection.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use crate::Format;
use crate::child::Bounds;
use crate::frame;
use crate::rights;

/// Code of an answer: the reader's own, or why it has none.
pub(crate) const ANSWERED: u32 = 0;
pub(crate) const REFUSED: u32 = 1;

/// The connection to the parent: the child's standard input.
struct Socket(std::io::Stdin);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        Ok(rustix::io::read(self, bytes)?)
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::net::send(self, bytes, rustix::net::SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serves this process's standard input.
pub(crate) fn serve(formats: &[Format], bounds: &Bounds) -> ExitCode {
    // What a reader panics with becomes its answer.
    panic::set_hook(Box::new(|_| {}));
    let socket = Socket(std::io::stdin());
    let served = rights::give_up(bounds).and_then(|held| {
        frame::send(&socket, ANSWERED, &[], &serde_json::to_vec(&held)?)?;
        while answer(&socket, formats)? {}
        Ok(())
    });
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Answers one question; false at the end.
fn answer(socket: &Socket, formats: &[Format]) -> std::io::Result<bool> {
    let Some((header, files)) = frame::receive(socket)? else { return Ok(false) };
    let mut question = Vec::new();
    socket.take(header.length).read_to_end(&mut question)?;
    let format = usize::try_from(header.code).ok().and_then(|at| formats.get(at));
    let answer = match format {
        Some(format) => panic::catch_unwind(AssertUnwindSafe(|| (format.answer)(&question, files)))
            .unwrap_or_else(|panic| Err(format!("its reader failed ({})", words(panic.as_ref())))),
        None => Err("there is no such reader".to_owned()),
    };
    match answer {
        Ok(bytes) => frame::send(socket, ANSWERED, &[], &bytes)?,
        Err(why) => frame::send(socket, REFUSED, &[], why.as_bytes())?,
    }
    Ok(true)
}

/// What a panic says.
fn words(panic: &dyn std::any::Any) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("for no stated reason")
}
