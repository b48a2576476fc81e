//! A configuration without what nobody reads: what a recording may carry away.

/// What stands where a value stood that is not kept. It is a plain word in every dialect, so that the file still parses.
pub const HIDDEN: &str = "hidden";

/// A configuration's files in one text ([`crate::dump`]), of which only names and the values that the model reads are left. Lines keep their
/// numbers. What was kept and hidden is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The text, without what stood before its first file.
    pub text: String,
    /// Files.
    pub files: usize,
    /// Directives, or lines that set something.
    pub directives: usize,
    /// Values that were hidden: of a value in parts (a URL) each part.
    pub values: usize,
    /// Comments that were left out.
    pub comments: usize,
}

/// True for what a name looks like; anything else in a name's place may be a value that lost its directive.
pub(crate) fn is_name(word: &str) -> bool {
    const NAME_MAX: usize = 64;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    word.len() <= NAME_MAX && word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(plain)
}
