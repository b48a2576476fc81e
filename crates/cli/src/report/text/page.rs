//! The page that a report is written on: inks, wrapped paragraphs, verbatim lines, and plain ASCII.

use chokepoint_model::catalogue::Catalogue;

use super::wrap::{Piece, columns, pieces, sentence_ends};
use crate::report::view::{Ink, Phrases, Span, span, steers};
use crate::terminal::output::{Painted, Style};

/// The narrowest page, columns.
const WIDTH_MIN: usize = 40;
/// The widest page, columns: wider than any terminal.
const WIDTH_MAX: usize = 1000;
/// The widest line of prose, columns: longer ones are hard to read.
const PROSE_WIDTH_MAX: usize = 116;

/// Parameters of Select Graphic Rendition (ECMA-48) for an ink.
fn sgr_parameters(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "",
        Ink::Strong => "1",
        Ink::Faint => "2",
        Ink::Bad => "31",
        Ink::BadStrong => "1;31",
        Ink::Warn => "33",
        Ink::WarnStrong => "1;33",
        Ink::GoodStrong => "1;32",
    }
}

/// The width of spans side by side, columns.
pub(crate) fn columns_of(spans: &[Span]) -> usize {
    spans.iter().map(|span| columns(&span.text)).sum()
}

/// A report that is being written.
pub(crate) struct TextPage<'a> {
    style: &'a Style,
    words: &'a Catalogue,
    out: Painted,
}

impl<'a> TextPage<'a> {
    pub(crate) fn new(style: &'a Style, words: &'a Catalogue) -> Self {
        Self { style, words, out: Painted::default() }
    }

    /// The width of the page, columns.
    pub(crate) fn width(&self) -> usize {
        self.style.width.clamp(WIDTH_MIN, WIDTH_MAX)
    }

    /// `unicode` if the style allows more than ASCII, else `ascii`.
    pub(crate) fn glyph(&self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.style.unicode { unicode } else { ascii }
    }

    /// The phrases of the page's language.
    pub(crate) fn phrases(&self) -> Phrases<'a> {
        Phrases(self.words)
    }

    /// A sentence of the catalogue without arguments.
    pub(crate) fn word(&self, id: &'static str) -> String {
        self.phrases().word(id)
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.out.end_line();
    }

    /// An empty line, unless the page is empty or the last line is one.
    pub(crate) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.blank();
        }
    }

    /// The heading of a section, with an empty line before it.
    pub(crate) fn heading(&mut self, id: &'static str) {
        self.gap();
        let text = self.word(id);
        self.line(&[span(Ink::Strong, text)]);
    }

    /// A line that is not wrapped.
    pub(crate) fn line(&mut self, spans: &[Span]) {
        let spans: Vec<Span> = spans.iter().map(|part| span(part.ink, self.printable(&part.text))).collect();
        self.paint(&spans);
    }

    /// A line that ends in text to be copied: a command, or a line of a file. Only control characters are escaped.
    pub(crate) fn verbatim(&mut self, before: &[Span], text: &str) {
        let mut spans: Vec<Span> = before.iter().map(|part| span(part.ink, self.printable(&part.text))).collect();
        spans.push(span(Ink::Plain, text));
        self.paint(&spans);
    }

    /// Words wrapped at the page's width. `first` is the prefix of the first line, `rest` of the others.
    pub(crate) fn flow(&mut self, first: &[Span], rest: &[Span], text: &[Span]) {
        let mut words: Vec<(Ink, Piece)> = Vec::new();
        for part in text {
            let begin = words.len();
            words.extend(pieces(&part.text).into_iter().map(|piece| (part.ink, piece)));
            // A new span begins a new word.
            if let Some((_, piece)) = words.get_mut(begin) {
                piece.spaced = true;
            }
        }
        self.fill(first, rest, words);
    }

    /// [`TextPage::flow`] in at most `lines` lines, none wider than the page: what does not fit is cut off and "…" stands for it.
    pub(crate) fn flow_within(&mut self, lines: usize, first: &[Span], rest: &[Span], text: &[Span]) {
        let mut words: Vec<(Ink, Piece)> = Vec::new();
        for part in text.iter().filter(|part| !part.text.is_empty()) {
            let begin = words.len();
            words.extend(pieces(&part.text).into_iter().map(|piece| (part.ink, piece)));
            if let Some((_, piece)) = words.get_mut(begin) {
                piece.spaced = true;
            }
        }
        let mut wrapped = self.wrapped(first, rest, words);
        let is_cut = wrapped.len() > lines;
        wrapped.truncate(lines);
        let last = wrapped.len().saturating_sub(1);
        for (place, line) in wrapped.iter().enumerate() {
            self.line_within(line, is_cut && place == last);
        }
    }

    /// [`TextPage::flow`] of as many whole sentences as fit in this many lines, but at least the first. A word longer than the page is cut.
    pub(crate) fn flow_sentences(&mut self, lines: usize, first: &[Span], rest: &[Span], ink: Ink, text: &str) {
        let fits = |end: &usize| self.lines_of(first, rest, &[span(ink, &text[..*end])]) <= lines;
        let ends = sentence_ends(text);
        let end = ends.iter().rev().copied().find(fits).or_else(|| ends.first().copied()).unwrap_or(0);
        self.flow_within(usize::MAX, first, rest, &[span(ink, &text[..end])]);
    }

    /// How many lines were written.
    pub(crate) fn lines_written(&self) -> usize {
        self.out.lines().count()
    }

    /// How many lines [`TextPage::flow`] takes for this text.
    pub(crate) fn lines_of(&self, first: &[Span], rest: &[Span], text: &[Span]) -> usize {
        let words = text.iter().flat_map(|part| pieces(&part.text).into_iter().map(|piece| (part.ink, Piece { spaced: true, ..piece })));
        self.wrapped(first, rest, words.collect()).len()
    }

    /// A line cut to the page's width; `more` says that something follows that is left out.
    pub(crate) fn line_within(&mut self, spans: &[Span], more: bool) {
        let spans: Vec<Span> = spans.iter().map(|part| span(part.ink, self.printable(&part.text))).collect();
        if !more && columns_of(&spans) <= self.width() {
            return self.paint(&spans);
        }
        let dots = self.glyph("…", "...");
        let mut room = self.width() - columns(dots);
        let mut kept: Vec<Span> = Vec::new();
        for part in spans {
            let text = fitting(&part.text, room);
            let is_whole = text.len() == part.text.len();
            let text = if is_whole { text } else { whole_words(text, &part.text[text.len()..], !kept.is_empty()) };
            room -= columns(text);
            kept.push(span(part.ink, text));
            if !is_whole {
                break;
            }
        }
        if let Some(last) = kept.iter_mut().rfind(|part| !part.text.trim_end().is_empty()) {
            last.text = format!("{}{dots}", last.text.trim_end_matches([' ', ',', ';', ':', '.']));
        }
        self.paint(&kept);
    }

    /// An item of a list, indented by this many columns and wrapped below its first word.
    pub(crate) fn point(&mut self, indent: usize, text: &[Span]) {
        let first = format!("{}{} ", " ".repeat(indent), self.glyph("•", "-"));
        self.flow(&[span(Ink::Plain, first)], &[span(Ink::Plain, " ".repeat(indent + 2))], text);
    }

    /// Notes separated by commas. A line breaks between two notes if possible, and within a note only if the note is longer than a line.
    pub(crate) fn notes(&mut self, first: &[Span], rest: &[Span], notes: &[Span]) {
        let words = self.words_of(rest, notes, ",");
        self.fill(first, rest, words);
    }

    /// [`TextPage::notes`] with another sign between two of them. No line is wider than the page: a longer word is cut.
    pub(crate) fn notes_within(&mut self, first: &[Span], rest: &[Span], notes: &[Span], sign: &str) {
        let words = self.words_of(rest, notes, sign);
        for line in self.wrapped(first, rest, words) {
            self.line_within(&line, false);
        }
    }

    /// How many lines [`TextPage::notes_within`] takes.
    pub(crate) fn note_lines(&self, first: &[Span], rest: &[Span], notes: &[Span], sign: &str) -> usize {
        self.wrapped(first, rest, self.words_of(rest, notes, sign)).len()
    }

    fn words_of(&self, rest: &[Span], notes: &[Span], sign: &str) -> Vec<(Ink, Piece)> {
        let room = self.prose_width().saturating_sub(columns_of(rest));
        let mut words: Vec<(Ink, Piece)> = Vec::new();
        for (place, note) in notes.iter().enumerate() {
            let sign = if place + 1 < notes.len() && !note.text.ends_with(':') { sign } else { "" };
            let text = format!("{}{sign}", note.text);
            if columns(&text) <= room {
                words.push((note.ink, Piece { text, spaced: true }));
            } else {
                // The first piece follows the previous note with a space.
                let spaced = |(at, piece): (usize, Piece)| (note.ink, Piece { spaced: piece.spaced || at == 0, ..piece });
                words.extend(pieces(&text).into_iter().enumerate().map(spaced));
            }
        }
        words
    }

    fn prose_width(&self) -> usize {
        self.width().min(PROSE_WIDTH_MAX)
    }

    fn fill(&mut self, first: &[Span], rest: &[Span], words: Vec<(Ink, Piece)>) {
        for line in self.wrapped(first, rest, words) {
            self.line(&line);
        }
    }

    /// The words as lines.
    fn wrapped(&self, first: &[Span], rest: &[Span], words: Vec<(Ink, Piece)>) -> Vec<Vec<Span>> {
        let mut lines = Vec::new();
        // A wide prefix (a row of the path) raises the limit for prose.
        let indent = columns_of(rest);
        let width = self.width().min(PROSE_WIDTH_MAX.max(indent + PROSE_WIDTH_MAX / 2));
        let mut line = first.to_vec();
        let mut used = columns_of(first);
        let mut begun = false;
        for (ink, piece) in words {
            let space = usize::from(begun && piece.spaced);
            if begun && used + space + columns(&piece.text) > width {
                lines.push(std::mem::replace(&mut line, rest.to_vec()));
                line.push(span(ink, piece.text.clone()));
                used = indent + columns(&piece.text);
                continue;
            }
            used += space + columns(&piece.text);
            let text = format!("{}{}", " ".repeat(space), piece.text);
            match line.last_mut() {
                Some(last) if begun && last.ink == ink => last.text.push_str(&text),
                _ => line.push(span(ink, text)),
            }
            begun = true;
        }
        lines.push(line);
        lines
    }

    /// The text without control characters, with plain spaces, and in ASCII if the style asks for it.
    fn printable(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\u{a0}' => out.push(' '),
                character if steers(character) => out.push(if self.style.unicode { '\u{fffd}' } else { '?' }),
                character if character.is_ascii() || self.style.unicode => out.push(character),
                character => out.push_str(ascii(character)),
            }
        }
        out
    }

    fn paint(&mut self, spans: &[Span]) {
        let blank_tail = spans.iter().rposition(|part| !part.text.trim_end().is_empty()).map_or(0, |last| last + 1);
        for (place, part) in spans[..blank_tail].iter().enumerate() {
            let text = if place + 1 == blank_tail { part.text.trim_end() } else { &part.text };
            let is_inked = self.style.color && part.ink != Ink::Plain;
            self.out.push(is_inked.then(|| sgr_parameters(part.ink)), text);
        }
        self.out.end_line();
    }

    /// The whole text.
    pub(crate) fn finish(self) -> Painted {
        self.out
    }
}

/// As much of the beginning of the text as is no wider than this.
fn fitting(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += columns(character.encode_utf8(&mut [0; 4]));
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// The text without the beginning of a word that goes on after it. A single word may be cut if nothing else stands on the line.
fn whole_words<'t>(text: &'t str, after: &str, is_beside: bool) -> &'t str {
    if after.starts_with(' ') || text.ends_with(' ') {
        return text;
    }
    match text.trim_start().rfind(' ') {
        Some(at) => &text[..text.len() - text.trim_start().len() + at],
        None if is_beside => "",
        None => text,
    }
}

/// The nearest ASCII for another character.
fn ascii(character: char) -> &'static str {
    match character {
        'µ' | 'μ' => "u",
        '×' => "x",
        '–' | '—' | '−' => "-",
        '…' => "...",
        '→' => "->",
        '·' | '•' => "-",
        '“' | '”' => "\"",
        '‘' | '’' => "'",
        '✓' => "+",
        '✗' => "x",
        '≥' => ">=",
        '≤' => "<=",
        _ => "?",
    }
}
