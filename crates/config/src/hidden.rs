//! A configuration without the values that the model does not read: the part that a recording may contain.

use crate::text;

/// The placeholder for a value that is not kept. It is a plain word in every dialect, so the file still parses.
pub const HIDDEN: &str = "hidden";

/// The files of a configuration in one text ([`crate::dump`]). Only names and the values that the model reads are left. Line numbers stay
/// the same. Kept and hidden entries are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The text, without anything before its first file.
    pub text: String,
    /// Number of files.
    pub files: usize,
    /// Number of directives, or of lines that set something.
    pub directives: usize,
    /// Number of hidden values. In a value with parts (a URL) each part counts.
    pub values: usize,
    /// Number of removed comments.
    pub comments: usize,
}

/// Keeps only the line endings. Gives the number of lines with something else.
pub(crate) fn ends_only(gap: &str, out: &mut String) -> usize {
    out.extend(gap.chars().filter(|character| matches!(character, '\n' | '\r')));
    gap.lines().filter(|line| line.trim_start().starts_with('#')).count()
}

/// True if the word looks like a name. Anything else in a name's place may be a value that lost its directive.
pub(crate) fn is_name(word: &str) -> bool {
    const NAME_MAX: usize = 64;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    word.len() <= NAME_MAX && word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(plain)
}

/// True if a recording may keep this comment, without its mark: a few words. What looks like a value, an address or a key is not kept.
pub(crate) fn is_words(comment: &str) -> bool {
    const COMMENT_MAX: usize = 100;
    /// Letters and digits of a word that has a digit. A key is longer.
    const NUMBER_MAX: usize = 10;
    let is_mark = |character: char| matches!(character, ' ' | '\t' | ',' | '.' | '(' | ')' | '-' | '+' | '!');
    // A byte that is no UTF-8 is a letter of another encoding.
    let is_letter = |character: char| character.is_alphanumeric() || text::is_stand_in(character);
    let is_short = |word: &str| !word.contains(|character: char| character.is_ascii_digit()) || word.len() <= NUMBER_MAX;
    comment.len() <= COMMENT_MAX && comment.chars().all(|c| is_mark(c) || is_letter(c)) && comment.split(is_mark).all(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_and_what_may_be_a_secret_is_not() {
        for kept in ["", " managed by Certbot", " raised in 2024-11 (was 512)", " größer", " default, for now!"] {
            assert!(is_words(kept), "{kept}");
        }
        for left in [" password=x", " http://h/", " a@b", " 8f4e2c1ab09d", " key: x", &" long".repeat(30), " $x", " a_b"] {
            assert!(!is_words(left), "{left}");
        }
    }
}
