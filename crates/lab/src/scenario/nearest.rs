//! The names that are nearest to a mistyped one.

/// Names that are shown.
const NAMES_MAX: usize = 3;
/// Characters of a wanted name that are compared: it may be as long as a command line.
const WANTED_MAX: usize = 100;

/// The names with the fewest edits from the wanted one; of equals, those that begin alike.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let alike = |name: &str| wanted.bytes().zip(name.bytes()).take_while(|(one, other)| one == other).count();
    // A name that has the wanted one in it is what was meant, however long the rest is.
    let distance = |name: &str| if !wanted.is_empty() && name.contains(wanted) { 0 } else { edit_distance(wanted, name) };
    let mut scored: Vec<_> = names.map(|name| (distance(name), std::cmp::Reverse(alike(name)), name)).collect();
    scored.sort_unstable();
    scored.into_iter().take(NAMES_MAX).map(|(.., name)| name).collect()
}

/// Characters to insert, remove or replace (Levenshtein). The first name may be long, so its end is left out; the second is short.
pub(super) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(WANTED_MAX).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = ["pool-cpu", "conntrack-60", "conntrack-full", "ports-80", "healthy-static"];
        assert_eq!(nearest("conntrak-full", names.into_iter())[..2], ["conntrack-full", "conntrack-60"]);
        assert_eq!(nearest("static", names.into_iter())[0], "healthy-static");
        assert_eq!(nearest("nope", names.into_iter()).len(), 3);
        assert_eq!([edit_distance("kitten", "sitting"), edit_distance("", "ab"), edit_distance("ab", "")], [3, 2, 2]);
    }
}
