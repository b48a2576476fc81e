//! Splits text into pieces between which a line may break, and measures text in columns of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Characters that may not begin a line in Chinese and Japanese.
const NOT_AT_LINE_START: &str = "，。、；：？！）」』】》”’…";

/// Units that stay on the line of the number before them.
const UNITS: &[&str] = &["%", "s", "ms", "µs", "req/s", "requests/s", "kbit/s", "Mbit/s", "Gbit/s", "KiB", "MiB", "GiB"];

/// A full stop behind these ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs.", "..."];

/// A piece of text that stays on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The text, without space around it.
    pub(super) text: String,
    /// True if a space separates it from the piece before it on the same line.
    pub(super) spaced: bool,
}

/// The width of a text, columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Where the sentences of a text end, bytes: behind a full stop with a space or a line break after it, and at the end of the text.
pub(super) fn sentence_ends(text: &str) -> Vec<usize> {
    let is_end = |at: &usize| {
        let before = &text[..*at];
        text[*at..].starts_with([' ', '\n'])
            && before.ends_with(['.', '?', '!'])
            && !ABBREVIATIONS.iter().any(|word| before.ends_with(word))
    };
    let text_end = text.trim_end().len();
    let within = text.char_indices().map(|(at, _)| at).filter(|at| *at < text_end).filter(is_end);
    within.chain((text_end > 0).then_some(text_end)).collect()
}

/// The pieces of a text: words, and single wide characters of scripts without spaces. A no-break space joins words.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut spaced = false;
    let mut open = false;
    for character in text.chars() {
        if character.is_whitespace() && character != '\u{a0}' {
            spaced = true;
            open = false;
            continue;
        }
        let wide = character.width() == Some(2);
        let joins = NOT_AT_LINE_START.contains(character);
        match pieces.last_mut() {
            Some(piece) if !spaced && (joins || open && !wide) => piece.text.push(character),
            _ => pieces.push(Piece { text: character.to_string(), spaced }),
        }
        spaced = false;
        open = !wide;
    }
    join_units(pieces)
}

/// Joins units to their numbers: a line does not break within "10 s".
fn join_units(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let is_unit = UNITS.contains(&piece.text.trim_end_matches(['.', ',', ';', ':', ')']));
        match joined.last_mut() {
            Some(number) if is_unit && piece.spaced && number.text.ends_with(|last: char| last.is_ascii_digit()) => {
                number.text.push('\u{a0}');
                number.text.push_str(&piece.text);
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        pieces(text).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_not_at_no_break_spaces() {
        assert_eq!(texts("  one  two\nthree "), ["one", "two", "three"]);
        assert_eq!(texts("12\u{a0}% busy"), ["12\u{a0}%", "busy"]);
        assert_eq!(texts("99.4 % busy for 10 s. A s % b"), ["99.4\u{a0}%", "busy", "for", "10\u{a0}s.", "A", "s", "%", "b"]);
        assert!(texts(" \t").is_empty());
    }

    #[test]
    fn sentences_end_at_full_stops() {
        let ends = |text: &'static str| sentence_ends(text).into_iter().map(|end| &text[..end]).collect::<Vec<_>>();
        assert_eq!(ends("One. two? Three"), ["One.", "One. two?", "One. two? Three"]);
        assert_eq!(
            ends("At 1.5 s, e.g. here (errno 11).\nThen. "),
            ["At 1.5 s, e.g. here (errno 11).", "At 1.5 s, e.g. here (errno 11).\nThen."]
        );
        assert!(ends("").is_empty() && ends(" ").is_empty());
    }

    #[test]
    fn chinese_breaks_between_characters_but_not_before_punctuation() {
        assert_eq!(texts("连接表full，满"), ["连", "接", "表", "full，", "满"]);
        assert_eq!(columns("连接表"), 6);
    }

    #[test]
    fn pieces_are_separated_only_where_the_text_has_a_space() {
        let all = pieces("a 连接");
        assert_eq!(all.iter().map(|piece| piece.spaced).collect::<Vec<_>>(), [false, true, false]);
    }
}
