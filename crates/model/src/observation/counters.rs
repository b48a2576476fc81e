//! Named counters of one reading. A host is read every second and has hundreds of counters, so readings with the same names share one list of names.

use std::ops::Index;
use std::sync::Arc;

/// Counters by name. Iteration is in the order of the names. If a name occurs twice, the last value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters<V = i64> {
    names: Arc<[Box<str>]>,
    /// One value for each name.
    values: Box<[V]>,
}

impl<V> Counters<V> {
    /// The counter with this name.
    pub fn get(&self, name: &str) -> Option<&V> {
        let at = self.names.binary_search_by(|known| (**known).cmp(name)).ok()?;
        self.values.get(at)
    }

    /// All counters with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.names.iter().map(|name| &**name).zip(&self.values)
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Shares the other reading's list of names if both are equal, so that memory holds it once.
    pub fn share_names<W>(&mut self, other: &Counters<W>) {
        if self.names == other.names {
            self.names = Arc::clone(&other.names);
        }
    }
}

impl<V> Index<&str> for Counters<V> {
    type Output = V;

    /// # Panics
    /// If there is no counter with this name.
    fn index(&self, name: &str) -> &V {
        self.get(name).unwrap_or_else(|| panic!("no counter {name}"))
    }
}

impl<V> FromIterator<(String, V)> for Counters<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(counters: I) -> Self {
        let mut counters: Vec<(String, V)> = counters.into_iter().collect();
        // The sort is stable and dedup keeps the first of equal neighbours. Reversing first makes the last value of a name win.
        counters.reverse();
        counters.sort_by(|(a, _), (b, _)| a.cmp(b));
        counters.dedup_by(|(later, _), (kept, _)| later == kept);
        let (names, values): (Vec<Box<str>>, Vec<V>) = counters.into_iter().map(|(name, value)| (name.into_boxed_str(), value)).unzip();
        Self { names: names.into(), values: values.into() }
    }
}

impl<V, const N: usize> From<[(String, V); N]> for Counters<V> {
    fn from(counters: [(String, V); N]) -> Self {
        counters.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(all: &[(&str, i64)]) -> Counters {
        all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn they_go_by_name_and_the_last_of_one_name_counts() {
        let some = counters(&[("Tcp.OutSegs", 3), ("Ip.InReceives", -1), ("Tcp.OutSegs", 9)]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [("Ip.InReceives", &-1), ("Tcp.OutSegs", &9)]);
        assert_eq!((some["Tcp.OutSegs"], some.get("Tcp.InSegs"), some.len()), (9, None, 2));
        assert!(!some.is_empty() && Counters::<i64>::default().is_empty());
    }

    #[test]
    fn one_list_of_names_serves_readings_that_have_the_same() {
        let first = counters(&[("a", 1), ("b", 2)]);
        let (mut same, mut other) = (counters(&[("b", 5), ("a", 4)]), counters(&[("a", 1), ("c", 2)]));
        same.share_names(&first);
        other.share_names(&first);
        assert!(Arc::ptr_eq(&same.names, &first.names) && !Arc::ptr_eq(&other.names, &first.names));
        assert_eq!((same["b"], other["c"]), (5, 2));
    }
}
