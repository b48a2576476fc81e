//! Text from outside (names, addresses, log lines) as safe text, code spans and fenced code of Markdown (GitHub Flavored Markdown Spec 0.29).

use crate::report::view::{printable, steers};

/// Text on one line without markup: for paragraphs, list items and cells of tables.
pub(super) fn prose(text: &str) -> String {
    let characters: Vec<char> = one_line(text).chars().collect();
    let is_word = |place: Option<usize>| place.and_then(|place| characters.get(place)).is_some_and(|character| character.is_alphanumeric());
    let mut out = String::with_capacity(text.len());
    for (place, &character) in characters.iter().enumerate() {
        let opens_block = place == 0 && matches!(character, '-' | '+' | '=' | '#') || ends_a_list_number(&characters, place);
        let is_markup = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$' => true,
            // An underscore between letters is plain text: nf_conntrack_max is not escaped.
            '_' => !is_word(place.checked_sub(1)) || !is_word(Some(place + 1)),
            _ => opens_block,
        };
        if is_markup {
            out.push('\\');
        }
        out.push(if steers(character) { char::REPLACEMENT_CHARACTER } else { character });
    }
    out
}

/// True for the "." or ")" of "1. " or "1) " at the beginning of the text, which would begin a list.
fn ends_a_list_number(characters: &[char], place: usize) -> bool {
    let ends_word = characters.get(place + 1).is_none_or(|next| next.is_whitespace());
    matches!(characters[place], '.' | ')') && ends_word && place > 0 && characters[..place].iter().all(char::is_ascii_digit)
}

/// Text with runs of white space replaced by one space; no-break spaces are kept.
fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() && character != '\u{a0}');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The longest run of backticks in a text.
fn backticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// A code span; empty for an empty text.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = printable(text);
    let fence = "`".repeat(backticks(&text) + 1);
    // A backtick at an end would join the fence. Markdown strips one space at both ends.
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A code span in a cell of a table, where a bar ends the cell even in code.
pub(super) fn cell_code(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A fenced block of lines to copy; a line break within a line is escaped.
pub(super) fn fence(lines: &[String], language: &str) -> String {
    let lines: Vec<String> = lines.iter().map(|line| printable(line).into_owned()).collect();
    let longest = lines.iter().map(|line| backticks(line)).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_holds_no_markup() {
        for (text, escaped) in [
            ("a|b `c` *d* <e> [f](g) h & i ~~j~~ $k$ \\l", "a\\|b \\`c\\` \\*d\\* \\<e\\> \\[f\\](g) h \\& i \\~\\~j\\~\\~ \\$k\\$ \\\\l"),
            ("nf_conntrack_max is _full_", "nf_conntrack_max is \\_full\\_"),
            ("- no list", "\\- no list"),
            ("# no heading", "\\# no heading"),
            ("1. no list, 2. either", "1\\. no list, 2. either"),
            ("10.78.1.2 is an address", "10.78.1.2 is an address"),
            ("10) no list", "10\\) no list"),
            ("  one\n\ntwo\r\n> three\t", "one two \\> three"),
            ("10\u{a0}s", "10\u{a0}s"),
            ("a\u{202e}b\u{1b}c", "a\u{fffd}b\u{fffd}c"),
            ("", ""),
        ] {
            assert_eq!(prose(text), escaped);
        }
    }

    #[test]
    fn code_spans_contain_their_whole_text() {
        for (text, span) in [
            ("plain", "`plain`"),
            ("a`b", "``a`b``"),
            ("`a``", "``` `a`` ```"),
            (" a ", "`  a  `"),
            ("a\nb\u{202e}", "`a\\nb\\u{202e}`"),
            ("", ""),
        ] {
            assert_eq!(code(text), span);
        }
        assert_eq!(cell_code("a|b"), "`a\\|b`");
    }

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(fence(&["a".into(), "b".into()], "sh"), "```sh\na\nb\n```");
        assert_eq!(fence(&["````".into(), "x\n```\ny".into()], ""), "`````\n````\nx\\n```\\ny\n`````");
    }
}
