//! Errors of text parsers, with their place, and how all text parsers read lines and numbers.

use std::borrow::Cow;
use std::str::FromStr;

/// Most characters of the found text in an error.
const FOUND_CHARS_MAX: usize = 48;

/// A text that differs from its kernel documentation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{of}, line {line}: expected {expected}, found \"{found}\"")]
pub(crate) struct ParseError {
    /// The source's name.
    of: &'static str,
    /// Line, counted from one.
    line: usize,
    /// The expected text.
    expected: &'static str,
    /// The found text, shortened.
    found: String,
}

/// A line of a text, for errors that name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextLine {
    of: &'static str,
    line: usize,
}

impl TextLine {
    /// The given line, counted from one.
    pub(crate) fn new(of: &'static str, line: usize) -> Self {
        Self { of, line }
    }

    /// The error that the line has something else.
    pub(crate) fn expected(self, expected: &'static str, found: &str) -> ParseError {
        let found = found.chars().take(FOUND_CHARS_MAX).collect::<String>().escape_debug().to_string();
        ParseError { of: self.of, line: self.line, expected, found }
    }

    /// Parses a decimal number. A missing token is an error.
    pub(crate) fn number<T: FromStr>(self, expected: &'static str, token: Option<&str>) -> Result<T, ParseError> {
        let token = token.unwrap_or("");
        token.parse().map_err(|_| self.expected(expected, token))
    }

    /// Parses a hexadecimal number. A missing token is an error.
    pub(crate) fn hexadecimal(self, expected: &'static str, token: Option<&str>) -> Result<u64, ParseError> {
        let token = token.unwrap_or("");
        // from_str_radix would accept a sign.
        if !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(self.expected(expected, token));
        }
        u64::from_str_radix(token, 16).map_err(|_| self.expected(expected, token))
    }
}

/// A text of complete lines. It must end with a newline: a text that is cut within a line is an error and not a smaller number. Bytes that are not UTF-8
/// become U+FFFD, which no parsed number or name contains.
pub(crate) fn whole<'a>(of: &'static str, bytes: &'a [u8]) -> Result<Cow<'a, str>, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    if text.ends_with('\n') {
        return Ok(text);
    }
    let last = text.rsplit('\n').next().unwrap_or("");
    Err(TextLine::new(of, text.matches('\n').count() + 1).expected("a whole line", last))
}

/// The lines of a text with their line numbers.
pub(crate) fn lines<'a>(of: &'static str, text: &'a str) -> impl Iterator<Item = (TextLine, &'a str)> {
    text.lines().enumerate().map(move |(index, line)| (TextLine::new(of, index + 1), line))
}

/// Most cores in a list (the kernel's NR_CPUS is at most 8192).
const CORES_MAX: usize = 65_536;

/// Parses core numbers in the kernel's list format, "0-3,8" (cpuset(7), "List format"). The list may be empty.
pub(crate) fn core_list(place: TextLine, text: &str) -> Result<Vec<u32>, ParseError> {
    const EXPECTED: &str = "a list of cores such as 0-3,8";
    let mut cores = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u32 = place.number(EXPECTED, Some(first))?;
        let last: u32 = place.number(EXPECTED, Some(last))?;
        if last < first || (last - first) as usize >= CORES_MAX - cores.len() {
            return Err(place.expected(EXPECTED, text));
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_of_the_kernel_are_parsed() {
        let place = TextLine::new("test", 1);
        assert_eq!(core_list(place, "0-3,8\n"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(core_list(place, "5"), Ok(vec![5]));
        assert_eq!(core_list(place, ""), Ok(vec![]));
        for wrong in ["3-1", "0-4294967295", "0-65535,65536", "a", "1-", "-1", "0-1-2"] {
            assert!(core_list(place, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_error_names_source_line_and_expected_text() {
        let error = TextLine::new("cpu", 3).expected("a number", "x\ny");
        assert_eq!(error.to_string(), "cpu, line 3: expected a number, found \"x\\ny\"");
    }

    #[test]
    fn hexadecimal_accepts_no_sign_and_no_empty_text() {
        let place = TextLine::new("test", 1);
        assert_eq!(place.hexadecimal("hex", Some("0000164a")), Ok(0x164a));
        for wrong in [None, Some(""), Some("+1"), Some("-1"), Some("0x1"), Some("11111111111111111")] {
            assert!(place.hexadecimal("hex", wrong).is_err(), "{wrong:?}");
        }
    }
}
