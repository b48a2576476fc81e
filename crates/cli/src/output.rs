//! Writing to the terminal: stdout carries results alone and may be closed early; progress and notes go to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Result;

use crate::text::Style;

/// Columns of a report where the width is not known.
const WIDTH_DEFAULT: usize = 100;

/// Writes a result to stdout. A reader that went away (`| head`) ends it quietly.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a note to stderr; a closed stderr is nobody's business.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Asks on stderr and reads the answer from stdin: true where it is yes.
pub(crate) fn ask(question: &str) -> Result<bool> {
    let mut err = io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// How stdout wants its report: colour and the terminal's width only on a terminal, no colour under NO_COLOR (no-color.org).
pub(crate) fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let width = terminal.then(terminal_size::terminal_size).flatten().map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
    let plain =
        std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || std::env::var("TERM").is_ok_and(|term| term == "dumb");
    Style { width, color: terminal && !plain, unicode: unicode() }
}

/// True where the locale's character set is UTF-8 (locale(7): LC_ALL before LC_CTYPE before LANG); none set is taken for UTF-8, for that is
/// what a minimal container means.
fn unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
