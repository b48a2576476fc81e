//! Writing to the terminal: stdout carries results alone and may be closed early; progress and notes go to stderr.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Result;
use chokepoint_foreign::{printable, printable_json, printable_lines};

/// How a report is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; below 40 it is taken for 40, above 1,000 for 1,000.
    pub(crate) width: usize,
    /// Colours (SGR sequences).
    pub(crate) color: bool,
    /// Line drawing and other characters beyond ASCII.
    pub(crate) unicode: bool,
}

/// Columns of a report where the width is not known.
const WIDTH_DEFAULT: usize = 100;

/// Writes a result to stdout: lines, in which whatever else could steer a terminal is spelled out. A reader that went away (`| head`) ends it
/// quietly.
pub(crate) fn print(text: &str) -> Result<()> {
    write(&printable_lines(text)).map(drop)
}

/// [`print`] for lines with inks.
pub(crate) fn print_painted(text: &Painted) -> Result<()> {
    write(&text.0).map(drop)
}

/// [`print_painted`] for one who goes on printing: false where the reader went away.
pub(crate) fn print_painted_on(text: &Painted) -> Result<bool> {
    write(&text.0)
}

/// [`print`] for JSON, which stays the same document.
pub(crate) fn print_json(json: &str) -> Result<()> {
    write(&printable_json(json)).map(drop)
}

/// [`print_json`] for one who goes on printing: false where the reader went away.
pub(crate) fn print_json_on(json: &str) -> Result<bool> {
    write(&printable_json(json))
}

/// False where the reader went away.
fn write(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes a note to stderr, as harmless as [`print`]; a closed stderr is nobody's business.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(text));
}

/// Writes a question to stderr, as harmless as [`print`]; the answer is to follow on its line.
pub(crate) fn question(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    write!(err, "{} [y/N] ", printable_lines(text))?;
    err.flush()
}

/// Lines with inks, in which nothing but the inks steers a terminal: only [`Painted::push`] makes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Painted(String);

impl Painted {
    /// Adds text of one line, in an ink where there is one: parameters of Select Graphic Rendition (ECMA-48).
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

/// True where somebody sits before the output: both streams are a terminal that can do more than print.
pub(crate) fn is_watched() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb" || term.is_empty());
    io::stdout().is_terminal() && io::stderr().is_terminal() && !dumb && terminal_size::terminal_size_of(io::stderr()).is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_inks_steers_what_is_painted() {
        let mut painted = Painted::default();
        painted.push(Some("1;31"), "a\x1b[8mb\nc");
        painted.push(None, "\u{202e}d\u{9b}2J");
        painted.end_line();
        assert_eq!(&*painted, "\x1b[1;31ma\\x1b[8mb\\nc\x1b[0m\\u{202e}d\\x9b2J\n");
    }
}
