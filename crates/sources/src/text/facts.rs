//! Several small things that are read together, as one text with a line "name value" for each.
//!
//! Values keep their bytes: newline and backslash are escaped; everything else, NUL included, is unchanged. So the redaction of a recording sees the
//! arguments of a command line as the kernel separates them.

use std::borrow::Cow;
use std::str::FromStr;

use super::error::{ParseError, TextLine};

/// Adds the line "name value". The name must have neither space nor newline.
pub(crate) fn add(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    debug_assert!(!name.is_empty() && !name.contains([' ', '\n', '\\']), "a fact's name: {name}");
    text.extend_from_slice(name.as_bytes());
    text.push(b' ');
    for &byte in value {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\\' => text.extend_from_slice(b"\\\\"),
            _ => text.push(byte),
        }
    }
    text.push(b'\n');
}

/// One fact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fact<'a> {
    /// Line, counted from one.
    pub(crate) line: usize,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its value, byte for byte.
    pub(crate) value: Cow<'a, [u8]>,
}

impl Fact<'_> {
    /// The value as text, without the final newline of files under /proc.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.value.strip_suffix(b"\n").unwrap_or(&self.value))
    }
}

/// The facts in the order in which they were added. The last line must be complete: a cut text is an error and not a smaller text.
pub(crate) fn read<'a>(of: &'static str, text: &'a [u8]) -> Result<Vec<Fact<'a>>, ParseError> {
    const EXPECTED: &str = "a line \"name value\"";
    let mut facts = Vec::new();
    let mut rest = text;
    let mut line = 0;
    while !rest.is_empty() {
        line += 1;
        let place = TextLine::new(of, line);
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            return Err(place.expected("the end of the line", &String::from_utf8_lossy(rest)));
        };
        let (bytes, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let Some(space) = bytes.iter().position(|&byte| byte == b' ') else {
            return Err(place.expected(EXPECTED, &String::from_utf8_lossy(bytes)));
        };
        let Ok(name) = std::str::from_utf8(&bytes[..space]) else {
            return Err(place.expected(EXPECTED, &String::from_utf8_lossy(bytes)));
        };
        facts.push(Fact { line, name, value: unescape(&bytes[space + 1..]) });
    }
    Ok(facts)
}

/// The first fact with this name, or an error at the end of the text about what is missing ("the line \"stat\"").
pub(crate) fn need<'f, 'a>(
    of: &'static str,
    facts: &'f [Fact<'a>],
    name: &str,
    expected: &'static str,
) -> Result<&'f Fact<'a>, ParseError> {
    find(facts, name).ok_or_else(|| TextLine::new(of, facts.len() + 1).expected(expected, ""))
}

/// The number that the first fact with this name is, or an error about what is missing or no number.
pub(crate) fn number<T: FromStr>(of: &'static str, facts: &[Fact<'_>], name: &str, expected: &'static str) -> Result<T, ParseError> {
    let fact = need(of, facts, name, expected)?;
    TextLine::new(of, fact.line).number(expected, Some(&fact.text()))
}

/// The first fact with this name.
pub(crate) fn find<'f, 'a>(facts: &'f [Fact<'a>], name: &str) -> Option<&'f Fact<'a>> {
    facts.iter().find(|fact| fact.name == name)
}

fn unescape(value: &[u8]) -> Cow<'_, [u8]> {
    // Most values are numbers, and a busy process has thousands of them.
    if !value.contains(&b'\\') {
        return Cow::Borrowed(value);
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.iter();
    while let Some(&byte) = rest.next() {
        match (byte, rest.as_slice().first()) {
            (b'\\', Some(b'n')) => bytes.push(b'\n'),
            (b'\\', Some(b'\\')) => bytes.push(b'\\'),
            // Only a rewritten text has other escapes or half an escape.
            _ => {
                bytes.push(byte);
                continue;
            }
        }
        rest.next();
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn added_facts_are_read_back(values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let mut text = Vec::new();
            for value in &values {
                add(&mut text, "name", value);
            }
            let facts = read("test", &text).unwrap();
            prop_assert_eq!(facts.iter().map(|fact| fact.value.to_vec()).collect::<Vec<_>>(), values);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read("test", &bytes);
        }
    }

    #[test]
    fn half_an_escape_stays_unchanged() {
        assert_eq!(
            read("test", b"a x\\\nb \\q\\n\n").unwrap().iter().map(|fact| &*fact.value).collect::<Vec<_>>(),
            [b"x\\".as_slice(), b"\\q\n"]
        );
    }

    #[test]
    fn a_text_cut_within_a_line_is_an_error() {
        let mut text = Vec::new();
        add(&mut text, "one", b"1 2\n3");
        add(&mut text, "two", b"");
        assert_eq!(text, b"one 1 2\\n3\ntwo \n");
        for cut in 0..text.len() {
            let whole_line = cut == 0 || text[cut - 1] == b'\n';
            assert_eq!(read("test", &text[..cut]).is_ok(), whole_line, "cut at {cut}");
        }
    }
}
