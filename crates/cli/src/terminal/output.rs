//! Writes to the terminal: stdout carries only results and may be closed early; progress and notes go to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::Result;
use chokepoint_foreign::{printable, printable_json, printable_lines};

use crate::args::{ColorWhen, Look};

/// The look of a report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; the page clamps it to 40 to 1,000.
    pub(crate) width: usize,
    /// Colours (SGR sequences).
    pub(crate) color: bool,
    /// Line drawing and other characters beyond ASCII.
    pub(crate) unicode: bool,
}

/// Columns if the width of the terminal is unknown.
const WIDTH_DEFAULT: usize = 100;

/// What --color and --ascii ask for.
static LOOK: OnceLock<Look> = OnceLock::new();

/// Keeps what the command line asks for; the first call counts.
pub(crate) fn set_look(look: Look) {
    let _ = LOOK.set(look);
}

/// Writes lines to stdout, with control characters escaped. A pipe closed by its reader (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    write(&printable_lines(text)).map(drop)
}

/// [`print`] for repeated output: false if the reader closed the pipe.
pub(crate) fn print_on(text: &str) -> Result<bool> {
    write(&printable_lines(text))
}

/// [`print`] for lines with inks.
pub(crate) fn print_painted(text: &Painted) -> Result<()> {
    write(&text.0).map(drop)
}

/// [`print_painted`] for repeated output: false if the reader closed the pipe.
pub(crate) fn print_painted_on(text: &Painted) -> Result<bool> {
    write(&text.0)
}

/// [`print`] for JSON: escapes keep the document the same.
pub(crate) fn print_json(json: &str) -> Result<()> {
    write(&printable_json(json)).map(drop)
}

/// [`print_json`] for repeated output: false if the reader closed the pipe.
pub(crate) fn print_json_on(json: &str) -> Result<bool> {
    write(&printable_json(json))
}

/// False if the reader closed the pipe.
fn write(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes a note to stderr, escaped like [`print`]. A closed stderr is ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(text));
}

/// An error and its causes, without those that it says already.
pub(crate) fn once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}

/// Writes a question to stderr, escaped like [`print`]; the answer follows on its line.
pub(crate) fn question(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    write!(err, "{} [y/N] ", printable_lines(text))?;
    err.flush()
}

/// Lines with inks and no other control sequences: [`Painted::push`] escapes the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Painted(String);

impl Painted {
    /// Appends text of one line. `ink`: parameters of Select Graphic Rendition (ECMA-48).
    pub(crate) fn push(&mut self, ink: Option<&'static str>, text: &str) {
        let text = printable(text);
        match ink {
            Some(parameters) => self.0.extend(["\x1b[", parameters, "m", &text, "\x1b[0m"]),
            None => self.0.push_str(&text),
        }
    }

    /// Ends a line.
    pub(crate) fn end_line(&mut self) {
        self.0.push('\n');
    }
}

impl std::ops::Deref for Painted {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Painted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

/// True if stdout and stderr are a terminal that can move the cursor.
pub(crate) fn is_watched() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb" || term.is_empty());
    io::stdout().is_terminal() && io::stderr().is_terminal() && !dumb && terminal_size::terminal_size_of(io::stderr()).is_some()
}

/// True if stdout is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The style for stdout: colour and the terminal's width only on a terminal (elsewhere COLUMNS), no colour under NO_COLOR (no-color.org), unless --color or --ascii say otherwise.
pub(crate) fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let width = match terminal.then(terminal_size::terminal_size).flatten() {
        Some((width, _)) => usize::from(width.0),
        None => std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(WIDTH_DEFAULT),
    };
    let plain =
        std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let color = match LOOK.get().map(|look| look.color) {
        Some(ColorWhen::Always) => true,
        Some(ColorWhen::Never) => false,
        Some(ColorWhen::Auto) | None => terminal && !plain,
    };
    Style { width, color, unicode: unicode() && !LOOK.get().is_some_and(|look| look.ascii) }
}

/// True if the character set of the locale is UTF-8 (locale(7): LC_ALL before LC_CTYPE before LANG), or if none is set, as in minimal containers.
fn unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painted_text_has_no_control_sequences_but_inks() {
        let mut painted = Painted::default();
        painted.push(Some("1;31"), "a\x1b[8mb\nc");
        painted.push(None, "\u{202e}d\u{9b}2J");
        painted.end_line();
        assert_eq!(&*painted, "\x1b[1;31ma\\x1b[8mb\\nc\x1b[0m\\u{202e}d\\x9b2J\n");
    }
}
