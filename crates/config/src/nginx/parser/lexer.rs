//! nginx's tokens (`ngx_conf_read_token` in ngx_conf_file.c): words, quotes, escapes, `${name}`, and comments only where a word can begin.

use std::ops::Range;

use super::error::Syntax;

/// nginx's read buffer (NGX_CONF_BUFFER): a word, a quoted text or a comment must fit into it.
const BUFFER_BYTES: usize = 4096;

/// One word of a directive: its name or an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its value, without quotes and escapes.
    pub value: String,
    /// Its bytes in the file, including quotes.
    pub span: Range<usize>,
    /// Its line, from 1.
    pub line: u32,
}

/// What ended a directive's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectiveEnd {
    /// `;`.
    Semicolon,
    /// `{`.
    BlockOpen,
    /// `}` with no word before it.
    BlockClose,
    /// The end of the file with no word before it.
    OutOfText,
}

/// A syntax error and its line.
pub(crate) type LineError = (u32, Syntax);

/// Reads words up to the next terminator.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Index of the next byte.
    pub(crate) at: usize,
    /// Its line.
    pub(crate) line: u32,
    /// The most words that the next directive may have.
    pub(crate) words_max: usize,
}

/// State after the previous byte, with nginx's names.
struct State {
    /// Start of the word, or of whatever else is in nginx's buffer.
    start: usize,
    start_line: u32,
    quote: Option<u8>,
    last_space: bool,
    need_space: bool,
    escaped: bool,
    comment: bool,
    variable: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, words_max: usize::MAX }
    }

    /// Reads the words up to the next terminator. Afterwards `self.at` is right after that terminator.
    pub(crate) fn directive(&mut self) -> Result<(Vec<Word>, DirectiveEnd), LineError> {
        let bytes = self.text.as_bytes();
        let mut words: Vec<Word> = Vec::new();
        let mut state = State {
            start: self.at,
            start_line: self.line,
            quote: None,
            last_space: true,
            need_space: false,
            escaped: false,
            comment: false,
            variable: false,
        };
        loop {
            let Some(&byte) = bytes.get(self.at) else { return self.file_end(words, &state) };
            if self.at - state.start >= BUFFER_BYTES {
                return Err((state.start_line, state.quote.map_or(Syntax::TooLong, |quote| Syntax::QuoteOpen(char::from(quote)))));
            }
            self.at += 1;
            if byte == b'\n' {
                self.line += 1;
                state.comment = false;
            }
            if state.comment {
                continue;
            }
            if std::mem::take(&mut state.escaped) {
                continue;
            }
            if state.need_space
                && let Some(end) = self.after_quote(byte, &mut state)?
            {
                return Ok((words, end));
            }
            let end = if state.last_space {
                self.between_words(byte, &mut state, &words)?
            } else {
                self.within_word(byte, &mut state, &mut words)
            };
            if words.len() > self.words_max {
                return Err((state.start_line, Syntax::TooMuch));
            }
            if let Some(end) = end {
                return Ok((words, end));
            }
        }
    }

    fn file_end(&self, words: Vec<Word>, state: &State) -> Result<(Vec<Word>, DirectiveEnd), LineError> {
        match state.quote {
            Some(quote) => Err((state.start_line, Syntax::QuoteOpen(char::from(quote)))),
            None if !words.is_empty() || !state.last_space => Err((self.line, Syntax::DirectiveOpen)),
            None => Ok((words, DirectiveEnd::OutOfText)),
        }
    }

    /// After a closing quote only white space, a terminator or `)` may follow; `)` begins a new word.
    fn after_quote(&self, byte: u8, state: &mut State) -> Result<Option<DirectiveEnd>, LineError> {
        match byte {
            b';' => return Ok(Some(DirectiveEnd::Semicolon)),
            b'{' => return Ok(Some(DirectiveEnd::BlockOpen)),
            b' ' | b'\t' | b'\r' | b'\n' | b')' => {}
            _ => return Err((self.line, Syntax::Unexpected(self.character_before()))),
        }
        state.last_space = true;
        state.need_space = false;
        Ok(None)
    }

    /// Handles a byte where a word could begin.
    fn between_words(&self, byte: u8, state: &mut State, words: &[Word]) -> Result<Option<DirectiveEnd>, LineError> {
        state.start = self.at - 1;
        state.start_line = self.line;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return Ok(None),
            b';' | b'{' if words.is_empty() => return Err((self.line, Syntax::Unexpected(char::from(byte)))),
            b';' => return Ok(Some(DirectiveEnd::Semicolon)),
            b'{' => return Ok(Some(DirectiveEnd::BlockOpen)),
            b'}' if !words.is_empty() => return Err((self.line, Syntax::Unexpected('}'))),
            b'}' => return Ok(Some(DirectiveEnd::BlockClose)),
            b'#' => {
                state.comment = true;
                return Ok(None);
            }
            b'\\' => state.escaped = true,
            b'"' | b'\'' => {
                state.start += 1;
                state.quote = Some(byte);
            }
            b'$' => state.variable = true,
            _ => {}
        }
        state.last_space = false;
        Ok(None)
    }

    /// Handles a byte of a word.
    fn within_word(&self, byte: u8, state: &mut State, words: &mut Vec<Word>) -> Option<DirectiveEnd> {
        if byte == b'{' && state.variable {
            return None;
        }
        state.variable = false;
        match byte {
            b'\\' => {
                state.escaped = true;
                return None;
            }
            b'$' => {
                state.variable = true;
                return None;
            }
            _ => {}
        }
        let content = state.start..self.at - 1;
        if let Some(quote) = state.quote {
            if byte == quote {
                state.quote = None;
                state.need_space = true;
                words.push(self.word(content.start - 1..self.at, content, state.start_line));
            }
            return None;
        }
        if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{') {
            return None;
        }
        state.last_space = true;
        words.push(self.word(content.clone(), content, state.start_line));
        match byte {
            b';' => Some(DirectiveEnd::Semicolon),
            b'{' => Some(DirectiveEnd::BlockOpen),
            _ => None,
        }
    }

    fn word(&self, span: Range<usize>, content: Range<usize>, line: u32) -> Word {
        Word { value: unescaped(&self.text[content]), span, line }
    }

    /// The character that contains the byte before `self.at`.
    fn character_before(&self) -> char {
        let mut start = self.at - 1;
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        self.text[start..].chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The value of a word. Only `\"`, `\'`, `\\`, `\t`, `\r` and `\n` are escapes. Any other backslash stays: regular expressions need it.
fn unescaped(content: &str) -> String {
    if !content.contains('\\') {
        return content.to_owned();
    }
    let mut value = String::with_capacity(content.len());
    let mut characters = content.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        let mut ahead = characters.clone();
        let plain = match ahead.next() {
            Some(next @ ('"' | '\'' | '\\')) => Some(next),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            Some('n') => Some('\n'),
            _ => None,
        };
        match plain {
            Some(plain) => {
                characters = ahead;
                value.push(plain);
            }
            None => value.push('\\'),
        }
    }
    value
}
