//! What a configuration may take in memory once it is parsed, counted while it is read: a file of a few kilobytes, packed, can hold millions of directives.

/// Bytes that the parsed form of one configuration may take: its texts, its lines, and what is in force of them, each file counted as often as it is
/// included. It is room for about 50,000 directives of nginx with two arguments each, or as many lines of php-fpm.
pub const PARSED_BYTES_MAX: usize = 40 << 20;

/// What is left of [`PARSED_BYTES_MAX`].
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { left: PARSED_BYTES_MAX }
    }

    /// What is left, bytes.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Takes some; false if that is more than is left.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}
