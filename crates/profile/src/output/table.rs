//! Rows that are written once and referred to by number.

use std::collections::HashMap;
use std::hash::Hash;

/// Rows with the key by which each is found.
pub(super) struct Table<K, R> {
    pub(super) rows: Vec<R>,
    numbers: HashMap<K, usize>,
}

impl<K, R> Default for Table<K, R> {
    fn default() -> Self {
        Self { rows: Vec::new(), numbers: HashMap::new() }
    }
}

impl<K: Eq + Hash, R> Table<K, R> {
    /// The number of the row with this key. A new one is added at the end.
    pub(super) fn number(&mut self, key: K, row: impl FnOnce() -> R) -> usize {
        let next = self.rows.len();
        let rows = &mut self.rows;
        *self.numbers.entry(key).or_insert_with(|| {
            rows.push(row());
            next
        })
    }
}

/// Texts.
pub(super) type Texts = Table<String, String>;

impl Texts {
    pub(super) fn text(&mut self, text: &str) -> usize {
        self.number(text.to_owned(), || text.to_owned())
    }
}
