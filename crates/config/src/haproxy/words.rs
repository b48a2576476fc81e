//! The words of a line: quotes, escapes, comments and variables (`parse_line` of HAProxy's src/tools.c; its manual, sections 2.2 and 2.3).

use std::ops::Range;

use super::error::Syntax;

/// Most words of a line (MAX_LINE_ARGS).
pub(super) const WORDS_MAX: usize = 64;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as HAProxy gets it, but with variables as they are written.
    pub text: String,
    /// True if a variable of HAProxy's environment is a part of it: what it says is not known.
    pub computed: bool,
    /// Its bytes in the line, with quotes.
    pub span: Range<usize>,
}

/// The words of a line, and where its comment begins.
pub(super) fn split(line: &str) -> Result<(Vec<Word>, Option<usize>), Syntax> {
    let mut reader = Reader { line, at: 0, words: Vec::new(), open: None, quote: None };
    let comment = reader.read()?;
    if reader.quote.is_some() {
        return Err(Syntax::QuoteOpen);
    }
    reader.close();
    if reader.words.len() > WORDS_MAX {
        return Err(Syntax::TooManyWords);
    }
    Ok((reader.words, comment))
}

struct Reader<'a> {
    line: &'a str,
    at: usize,
    words: Vec<Word>,
    /// The word that is being read.
    open: Option<Word>,
    quote: Option<char>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<Option<usize>, Syntax> {
        while let Some(next) = self.line[self.at..].chars().next() {
            match (next, self.quote) {
                // HAProxy reads a line up to a zero.
                ('\0', _) => return Ok(None),
                ('#', None) => return Ok(Some(self.at)),
                ('"' | '\'', None) => {
                    self.word();
                    self.quote = Some(next);
                    self.at += 1;
                }
                (mark, Some(open)) if mark == open => {
                    self.quote = None;
                    self.at += 1;
                }
                ('\\', quote) if quote != Some('\'') => self.escape()?,
                ('$', Some('"')) => self.variable()?,
                (blank, None) if blank.is_ascii_whitespace() || blank == '\u{b}' => {
                    self.close();
                    self.at += 1;
                }
                (other, _) => {
                    self.word().text.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
        Ok(None)
    }

    fn word(&mut self) -> &mut Word {
        let at = self.at;
        self.open.get_or_insert_with(|| Word { text: String::new(), computed: false, span: at..at })
    }

    fn close(&mut self) {
        if let Some(mut word) = self.open.take() {
            word.span.end = self.at;
            self.words.push(word);
        }
    }

    /// A backslash: it takes away the meaning of the next character, or stands for itself before any other.
    fn escape(&mut self) -> Result<(), Syntax> {
        let rest = &self.line[self.at + 1..];
        let is_quoted = self.quote == Some('"');
        let (text, taken) = match rest.chars().next() {
            Some(next @ (' ' | '\\' | '#' | '\'' | '"')) => (next, 1),
            Some('t') => ('\t', 1),
            Some('n') => ('\n', 1),
            Some('r') => ('\r', 1),
            Some('$') if is_quoted => ('$', 1),
            Some('x') => {
                let code = rest.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                (char::from(code.ok_or(Syntax::BadHex)?), 3)
            }
            _ => ('\\', 0),
        };
        self.word().text.push(text);
        self.at += 1 + taken;
        Ok(())
    }

    /// `$NAME`, `${NAME}`, `${NAME-default}` or `${NAME[*]}` within double quotes.
    fn variable(&mut self) -> Result<(), Syntax> {
        let rest = &self.line[self.at + 1..];
        let length = match rest.strip_prefix('{') {
            Some(inner) => 2 + inner.find('}').ok_or(Syntax::VariableOpen)?,
            None => rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count(),
        };
        let text = self.line[self.at..=self.at + length].to_owned();
        let word = self.word();
        word.text.push_str(&text);
        word.computed |= length > 0;
        self.at += 1 + length;
        Ok(())
    }
}
