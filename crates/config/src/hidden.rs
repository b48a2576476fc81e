//! A configuration without the values that the model does not read: the part that a recording may contain.

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

/// True if the word looks like a name. Anything else in a name's place may be a value that lost its directive.
pub(crate) fn is_name(word: &str) -> bool {
    const NAME_MAX: usize = 64;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    word.len() <= NAME_MAX && word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(plain)
}
