//! One line of PHP's ini dialect (zend_ini_scanner.l, INI_SCANNER_NORMAL). php-fpm passes each line to the scanner separately.

use std::ops::Range;

use super::error::Syntax;

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Blanks or a comment.
    Nothing,
    /// `[name]`.
    Section(String),
    /// `key = value` or `key[index] = value`.
    Set { key: String, index: Option<String>, value: Value },
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// The value as php-fpm gets it: `yes` is "1", `no`, `none` and `null` are "".
    pub(super) text: String,
    /// True if it depends on something outside the file (`${VARIABLE}`) or on bit operators.
    pub(super) computed: bool,
    /// Its bytes within the line, including quotes; an empty range after the `=` if there is no value.
    pub(super) span: Range<usize>,
}

/// Scans one line without its line feed.
pub(super) fn scan(line: &str) -> Result<Line, Syntax> {
    // A NUL ends the text for PHP's scanner.
    let line = line.split('\0').next().unwrap_or_default();
    let trimmed = line.trim_start_matches([' ', '\t']);
    let start = line.len() - trimmed.len();
    match trimmed.chars().next() {
        None | Some(';') => Ok(Line::Nothing),
        Some('[') if start == 0 => section(line),
        Some(_) => entry(line, start),
    }
}

fn section(line: &str) -> Result<Line, Syntax> {
    let close = line.find(']').ok_or(Syntax::BracketOpen)?;
    match line[close + 1..].trim_start_matches([' ', '\t']).chars().next() {
        None | Some(';') => {}
        Some(_) => return Err(Syntax::MissingValue),
    }
    Ok(Line::Section(line[1..close].trim_matches(['"', '\'']).to_owned()))
}

fn entry(line: &str, start: usize) -> Result<Line, Syntax> {
    let key_end = line[start..].find(is_no_label).map_or(line.len(), |index| start + index);
    let key = line[start..key_end].trim_end_matches([' ', '\t']);
    let mut at = key_end;
    let mut index = None;
    if line[at..].starts_with('[') {
        let close = line[at..].find([']', ';']).filter(|&close| line[at + close..].starts_with(']')).ok_or(Syntax::BracketOpen)? + at;
        index = Some(line[at + 1..close].trim_start_matches([' ', '\t']).trim_matches(['"', '\'']).to_owned());
        at = close + 1;
    }
    at += line[at..].len() - line[at..].trim_start_matches([' ', '\t']).len();
    match line[at..].chars().next() {
        None | Some(';') => return Err(Syntax::MissingValue),
        Some('=') if key.is_empty() => return Err(Syntax::Unexpected('=')),
        Some('=') if boolean(key).is_some() => return Err(Syntax::BareWord),
        Some('=') => {}
        Some(other) => return Err(Syntax::Unexpected(other)),
    }
    let value = Scanner { line, at: at + 1, text: String::new(), computed: false, blanks: String::new() }.value()?;
    Ok(Line::Set { key: key.to_owned(), index, value })
}

/// Characters that end a key. A tab ends it too, but blanks before the `=` are skipped.
fn is_no_label(character: char) -> bool {
    matches!(character, '=' | '\n' | '\r' | '\t' | ';' | '&' | '|' | '^' | '$' | '~' | '(' | ')' | '{' | '}' | '!' | '"' | '[' | ']')
}

/// The value of a boolean word.
fn boolean(word: &str) -> Option<&'static str> {
    let is = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if is(&["true", "on", "yes"]) {
        Some("1")
    } else if is(&["false", "off", "no", "none", "null"]) {
        Some("")
    } else {
        None
    }
}

struct Scanner<'a> {
    line: &'a str,
    at: usize,
    text: String,
    computed: bool,
    /// Blanks that count only if more plain text follows.
    blanks: String,
}

impl Scanner<'_> {
    fn value(mut self) -> Result<Value, Syntax> {
        let rest = &self.line[self.at..];
        let start = self.at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let bare = self.line[start..].split(';').next().unwrap_or_default().trim_end_matches([' ', '\t', '\r']);
        if let Some(value) = boolean(bare) {
            return Ok(Value { text: value.to_owned(), computed: false, span: start..start + bare.len() });
        }
        self.at = start;
        let mut end = start;
        while let Some(character) = self.line[self.at..].chars().next() {
            match character {
                ';' | '\r' => break,
                ' ' | '\t' => {
                    self.blanks.push(character);
                    self.at += 1;
                    continue;
                }
                '"' => self.double_quoted()?,
                // PHP's scanner stops at a quote that is not closed, and keeps the text before it.
                '\'' if !self.single_quoted() => break,
                '\'' => {}
                '$' if self.line[self.at..].starts_with("${") => self.variable()?,
                '=' => return Err(Syntax::Unexpected('=')),
                '|' | '&' | '^' => self.operator(),
                '~' | '!' | '(' if self.text.is_empty() || self.computed => self.operator(),
                ')' if self.computed => self.operator(),
                '~' | '!' | '(' | ')' => return Err(Syntax::Unexpected(character)),
                _ => self.plain()?,
            }
            end = self.at;
        }
        if end == start && !matches!(self.line[start..].chars().next(), None | Some(';' | '\r')) {
            return Err(Syntax::MissingValue);
        }
        Ok(Value { text: self.text, computed: self.computed, span: start..end })
    }

    /// A run of plain characters. The blanks before it count unless a double quote is on their other side.
    fn plain(&mut self) -> Result<(), Syntax> {
        let rest = &self.line[self.at..];
        let stop = |c: char| matches!(c, ' ' | '\t' | '\r' | ';' | '"' | '\'' | '=' | '|' | '&' | '^' | '~' | '!' | '(' | ')' | '$');
        // A dollar belongs to the run unless it begins a variable.
        let mut len = rest.find(stop).unwrap_or(rest.len());
        while rest[len..].starts_with('$') && !rest[len..].starts_with("${") {
            len += 1 + rest[len + 1..].find(stop).unwrap_or(rest.len() - len - 1);
        }
        let word = &rest[..len];
        if boolean(word).is_some() {
            return Err(Syntax::BareWord);
        }
        let blanks = std::mem::take(&mut self.blanks);
        if !self.text.is_empty() && !self.is_behind_quote(blanks.len()) {
            self.text.push_str(&blanks);
        }
        self.text.push_str(word);
        self.at += len;
        Ok(())
    }

    fn is_behind_quote(&self, blanks: usize) -> bool {
        self.line[..self.at - blanks].ends_with('"')
    }

    fn double_quoted(&mut self) -> Result<(), Syntax> {
        self.blanks.clear();
        self.at += 1;
        loop {
            let rest = &self.line[self.at..];
            let Some(character) = rest.chars().next() else { return Err(Syntax::QuoteOpen) };
            match character {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    let next = rest[1..].chars().next().ok_or(Syntax::QuoteOpen)?;
                    if !matches!(next, '"' | '\\' | '\'' | '$') {
                        self.text.push('\\');
                    }
                    self.text.push(next);
                    self.at += 1 + next.len_utf8();
                }
                '$' if rest.starts_with("${") => self.variable()?,
                _ => {
                    self.text.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
    }

    /// True if the quote at this position is closed. PHP does not take an empty pair as a quote.
    fn single_quoted(&mut self) -> bool {
        let inner = &self.line[self.at + 1..];
        let Some(len) = inner.find('\'').filter(|len| *len > 0) else { return false };
        let blanks = std::mem::take(&mut self.blanks);
        if !self.is_behind_quote(blanks.len()) {
            self.text.push_str(&blanks);
        }
        self.text.push_str(&inner[..len]);
        self.at += len + 2;
        true
    }

    /// `${NAME}`: an environment variable or a PHP setting. Only php-fpm itself knows its value.
    fn variable(&mut self) -> Result<(), Syntax> {
        let len = self.line[self.at..].find('}').filter(|len| *len > 2).ok_or(Syntax::VariableOpen)?;
        let blanks = std::mem::take(&mut self.blanks);
        self.text.push_str(&blanks);
        self.text.push_str(&self.line[self.at..=self.at + len]);
        self.computed = true;
        self.at += len + 1;
        Ok(())
    }

    fn operator(&mut self) {
        let blanks = std::mem::take(&mut self.blanks);
        self.text.push_str(&blanks);
        self.text.push_str(&self.line[self.at..=self.at]);
        self.computed = true;
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Result<(String, bool), Syntax> {
        match scan(&format!("k = {text}"))? {
            Line::Set { value, .. } => Ok((value.text, value.computed)),
            other => panic!("{other:?}"),
        }
    }

    /// The expected values are those that php-fpm 8.2 -tt prints.
    #[test]
    fn values_are_read_as_php_reads_them() {
        for (text, expected) in [
            ("500 ; comment", "500"),
            ("\"%R \\\"%m\\\" %s\"", "%R \"%m\" %s"),
            ("'a $pool b' c", "a $pool b c"),
            ("%R %s \"x y\" z", "%R %sx yz"),
            ("%R - %u %t \"%m %r%Q%q\" %s", "%R - %u %t%m %r%Q%q%s"),
            ("%{milli}d %C%%", "%{milli}d %C%%"),
            ("\"7\" ; x", "7"),
            ("\"/a\"b", "/ab"),
            ("/a \"b c\" d", "/ab cd"),
            ("3;4", "3"),
            ("\"/a\\tb\\\\c\\\"d\"", "/a\\tb\\c\"d"),
            ("'/a;b\\n'", "/a;b\\n"),
            ("Yes", "1"),
            ("off;x", ""),
            ("null", ""),
            ("nullx", "nullx"),
            ("\"on\"", "on"),
            ("/a$b", "/a$b"),
            ("/a{b}", "/a{b}"),
            ("/a[b]", "/a[b]"),
            ("-", "-"),
            ("/a  b   c  ", "/a  b   c"),
            ("/a'b", "/a"),
            ("it's a 'b'", "its a b"),
            ("'a''b'", "ab"),
            ("$", "$"),
            ("a$", "a$"),
            ("$pool", "$pool"),
            ("\"a\\$b\"", "a$b"),
            ("\"a\\qb\"", "a\\qb"),
            ("x\\", "x\\"),
            ("x # y", "x # y"),
            ("\tx\ty\t", "x\ty"),
            ("}", "}"),
            ("010", "010"),
            ("", ""),
            ("; only a comment", ""),
        ] {
            assert_eq!(value(text), Ok((expected.to_owned(), false)), "{text}");
        }
        for text in ["${FOO}/x", "\"x${FOO}y\"", "5 | 8", "5 & 4", "(5 | 2)", "~5", "/a^b"] {
            assert!(value(text).is_ok_and(|(_, computed)| computed), "{text}");
        }
        for text in ["\"a", "/a\"", "/a(b)", "/a!b", "/a~b", "/a=b", "on x", "x null", "''", "${", "\"${\"", "${FOO", "=x"] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_are_read_as_php_reads_them() {
        assert_eq!(scan("[www]  ; c"), Ok(Line::Section("www".to_owned())));
        assert_eq!(scan("[ spaced ]"), Ok(Line::Section(" spaced ".to_owned())));
        assert_eq!(scan("[\"www\"]"), Ok(Line::Section("www".to_owned())));
        for nothing in ["", "  \t", "; c", "   ; c", "\0junk"] {
            assert_eq!(scan(nothing), Ok(Line::Nothing), "{nothing}");
        }
        let index = |line: &str| match scan(line) {
            Ok(Line::Set { key, index, .. }) => (key, index),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(index("php_admin_value[memory_limit] = 32M"), ("php_admin_value".to_owned(), Some("memory_limit".to_owned())));
        assert_eq!(index(" env [ a] = c"), ("env".to_owned(), Some("a".to_owned())));
        assert_eq!(index("env[A ] = 1"), ("env".to_owned(), Some("A ".to_owned())));
        assert_eq!(index("a b\t=\tx"), ("a b".to_owned(), None));
        for line in [
            "# comment",
            "a",
            "=3",
            "[www",
            "[www] x",
            "  [www]",
            "yes = 3",
            "env[a[b]] = c",
            "env[a] x",
            "env[a;b] = 3",
            "a : b",
            "a\"b = c",
        ] {
            assert!(scan(line).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_gives_an_answer(line in "[a=\\[\\]\"'${}|&^~!(); \t\\\\äon0-]{0,24}") {
            if let Ok(Line::Set { value, .. }) = scan(&line) {
                prop_assert!(line.get(value.span).is_some());
            }
        }
    }
}
