//! One configuration file as a tree over its text. Directives and words know their spans, so that an edit keeps everything between them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::error::{BLOCK_DEPTH_MAX, Syntax, SyntaxError};
use super::lexer::{DirectiveEnd, Lexer, Word};
use super::lua;
use crate::budget::Budget;
use crate::include::FILE_BYTES_MAX;

/// What follows a directive's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `;`.
    Simple,
    /// A block of directives, by index into the file's directives.
    Block(Vec<usize>),
    /// A block of Lua code, which is not parsed.
    Code,
}

/// One directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Name and arguments; at least the name.
    words: Vec<Word>,
    /// Its block, if it has one.
    pub body: Body,
    /// From the first byte of the name to after `;` or `}`.
    pub span: Range<usize>,
    /// Index of the `;`, or of the block's `{`.
    pub end: usize,
    /// The directive whose block contains this one; none at the top of the file.
    pub parent: Option<usize>,
}

impl Directive {
    /// Its name.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", |word| &word.value)
    }

    /// Its arguments.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// All words, name first.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The values of the arguments.
    pub fn values(&self) -> Vec<String> {
        self.args().iter().map(|word| word.value.clone()).collect()
    }

    /// The line of its name, from 1.
    pub fn line(&self) -> u32 {
        self.words.first().map_or(1, |word| word.line)
    }
}

/// A parsed file. Printing it gives the text that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path that nginx would open.
    pub path: Arc<str>,
    pub(crate) text: String,
    pub(crate) directives: Vec<Directive>,
    pub(crate) top: Vec<usize>,
}

impl File {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every directive, in the order of the text.
    pub fn directives(&self) -> &[Directive] {
        &self.directives
    }

    /// Indices of the directives outside of any block.
    pub fn top(&self) -> &[usize] {
        &self.top
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Memory of a directive besides its words: the structure, its index in the block, and the heap's overhead.
const DIRECTIVE_BYTES: usize = 192;
/// Memory of a word besides its characters.
const WORD_BYTES: usize = 80;
/// Memory of a directive in the configuration in force: the occurrence, its name as a key, and a problem reported about it.
const IN_FORCE_BYTES: usize = 200;
/// Memory of an argument there, besides its characters.
const ARGUMENT_BYTES: usize = 56;
/// Additional memory of a block there: a server, a location or a condition with everything derived from it.
const BLOCK_BYTES: usize = 1024;
/// Additional memory of a pass with variables there: each server that it may lead to.
const VARIABLE_BYTES: usize = 10 << 10;

impl Directive {
    /// Approximate memory of the parsed directive, bytes.
    fn parsed_bytes(&self) -> usize {
        DIRECTIVE_BYTES + self.words.iter().map(|word| WORD_BYTES + word.value.len()).sum::<usize>()
    }

    /// Approximate memory in the configuration in force, bytes.
    pub(crate) fn in_force_bytes(&self) -> usize {
        let arguments = self.args().iter().map(|word| ARGUMENT_BYTES + 2 * word.value.len()).sum::<usize>();
        let block = if self.body == Body::Simple { 0 } else { BLOCK_BYTES };
        let is_variable = self.name().ends_with("_pass") && self.args().iter().any(|word| word.value.contains('$'));
        IN_FORCE_BYTES + arguments + block + if is_variable { VARIABLE_BYTES } else { 0 }
    }
}

/// Parses one file as nginx does, without following includes. Names of directives are not checked: modules add their own.
pub fn parse(path: &str, text: &str) -> Result<File, SyntaxError> {
    parse_within(path, text, &mut Budget::new())
}

/// Like [`parse`], within the memory that is left for the whole configuration.
pub(crate) fn parse_within(path: &str, text: &str, budget: &mut Budget) -> Result<File, SyntaxError> {
    let refuse = |(line, what): (u32, Syntax)| SyntaxError { file: path.to_owned(), line, what };
    if text.len() > FILE_BYTES_MAX {
        return Err(refuse((1, Syntax::TooLarge)));
    }
    if text.starts_with('\u{feff}') {
        return Err(refuse((1, Syntax::ByteOrderMark)));
    }
    if !budget.take(path.len() + text.len()) {
        return Err(refuse((1, Syntax::TooMuch)));
    }
    let mut file = File { path: path.into(), text: text.to_owned(), directives: Vec::new(), top: Vec::new() };
    let mut lexer = Lexer::new(text);
    let mut open: Vec<usize> = Vec::new();
    loop {
        lexer.words_max = budget.left() / WORD_BYTES;
        let (words, end) = lexer.directive().map_err(refuse)?;
        match end {
            DirectiveEnd::Semicolon => {
                let index = file.add(words, lexer.at, Body::Simple, open.last().copied());
                charge(&file.directives[index], budget).map_err(refuse)?;
            }
            DirectiveEnd::BlockOpen => {
                let code = words.first().is_some_and(|word| lua::is_code_block(&word.value));
                let line = words.first().map_or(lexer.line, |word| word.line);
                let index = file.add(words, lexer.at, if code { Body::Code } else { Body::Block(Vec::new()) }, open.last().copied());
                charge(&file.directives[index], budget).map_err(refuse)?;
                if code {
                    let close = lua::closing_brace(text, lexer.at).ok_or_else(|| refuse((line, Syntax::LuaOpen)))?;
                    lexer.line += text[lexer.at..close].matches('\n').count() as u32;
                    lexer.at = close + 1;
                    file.directives[index].span.end = lexer.at;
                } else if open.len() >= BLOCK_DEPTH_MAX {
                    return Err(refuse((line, Syntax::TooDeep)));
                } else {
                    open.push(index);
                }
            }
            DirectiveEnd::BlockClose => {
                let index = open.pop().ok_or_else(|| refuse((lexer.line, Syntax::Unexpected('}'))))?;
                file.directives[index].span.end = lexer.at;
            }
            DirectiveEnd::OutOfText => {
                let Some(&index) = open.last() else { return Ok(file) };
                return Err(refuse((file.directives[index].line(), Syntax::BlockOpen)));
            }
        }
    }
}

fn charge(directive: &Directive, budget: &mut Budget) -> Result<(), (u32, Syntax)> {
    if budget.take(directive.parsed_bytes()) { Ok(()) } else { Err((directive.line(), Syntax::TooMuch)) }
}

impl File {
    /// Adds a directive whose terminator ends at `end`; returns its index.
    fn add(&mut self, mut words: Vec<Word>, end: usize, body: Body, parent: Option<usize>) -> usize {
        let start = words.first().map_or(end, |word| word.span.start);
        let index = self.directives.len();
        // Most directives have fewer words than the initial capacity of a vector.
        words.shrink_to_fit();
        self.directives.push(Directive { words, body, span: start..end, end: end - 1, parent });
        match parent.map(|parent| &mut self.directives[parent].body) {
            Some(Body::Block(children)) => children.push(index),
            _ => self.top.push(index),
        }
        index
    }
}
