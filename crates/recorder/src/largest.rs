//! Keeps the largest values of a map: names in a sample are bounded, whatever a host or its clients do.

use std::collections::BTreeMap;

/// Removes all but this many of the largest values.
pub(crate) fn keep_largest<V>(map: &mut BTreeMap<String, V>, most: usize, size: impl Fn(&V) -> f64) {
    if map.len() > most {
        let mut all: Vec<(String, V)> = std::mem::take(map).into_iter().collect();
        all.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
        map.extend(all.into_iter().take(most));
    }
}
