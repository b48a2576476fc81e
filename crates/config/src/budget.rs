//! The memory budget of a parsed configuration, counted while it is read. A compressed file of a few kilobytes can hold millions of
//! directives.

/// The most bytes that the parsed form of one configuration may take: its texts, its lines and the values in force. A file counts once for
/// each include of it. The budget holds about 50,000 nginx directives with two arguments each, or as many php-fpm lines.
pub const PARSED_BYTES_MAX: usize = 40 << 20;

/// The unused part of [`PARSED_BYTES_MAX`].
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: PARSED_BYTES_MAX }
    }

    /// The unused bytes.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Takes some bytes; false if fewer are left.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}
