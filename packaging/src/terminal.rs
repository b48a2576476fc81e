//! A terminal without a screen: runs a program in it and keeps what it wrote.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The longest text that is kept, bytes.
const BYTES_MAX: u64 = 1 << 20;
const ROWS: u16 = 50;

/// What the program writes to a terminal of this many columns that knows colours and UTF-8.
///
/// # Errors
/// If it does not end with status 0 or writes more than a MiB.
pub(crate) fn output(program: &Path, arguments: &[&str], columns: u16) -> anyhow::Result<String> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).context("cannot open a pseudo-terminal")?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let path = ptsname(&ours, Vec::new())?;
    let theirs =
        rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).context("cannot open its other side")?;
    tcsetwinsize(&ours, Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null());
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    // While the command has the other side open, the end of the output does not show.
    drop(command);
    let mut bytes = Vec::new();
    match File::from(ours).take(BYTES_MAX).read_to_end(&mut bytes) {
        // The end: the other side is closed (pty(7)).
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {}
        Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
        _ => {}
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", program.display());
    }
    Ok(String::from_utf8(bytes).context("the output is no UTF-8")?.replace("\r\n", "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_sees_a_terminal_of_that_width() {
        assert_eq!(output(Path::new("stty"), &["-F", "/dev/stdout", "size"], 80).expect("stty"), "50 80\n");
        assert!(output(Path::new("false"), &[], 80).is_err());
    }
}
