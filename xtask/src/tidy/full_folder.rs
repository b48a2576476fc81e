//! Folders with too many files.

use std::collections::BTreeMap;

use super::{Breach, Rule};
use crate::tree::directory_of;

/// Files that a folder may have, those in its folders aside.
const FILES_MAX: usize = 20;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "full-folder",
    asks: "a folder has at most 20 files that a person reads: code, documents, messages, scenarios, scripts",
    check: |workspace| {
        let mut folders: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        for (path, _) in workspace.tree.ending("") {
            folders.entry(directory_of(path)).or_insert((path, 0)).1 += 1;
        }
        let full = folders.into_values().filter(|(_, files)| *files > FILES_MAX);
        full.map(|(first, files)| Breach::new(first, 1, format!("{files} files in its folder; at most {FILES_MAX}"))).collect()
    },
};

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::{FILES_MAX, RULE};

    fn folder(files: usize) -> Vec<(String, &'static str)> {
        (0..files).map(|number| (format!("docs/{number:02}.md"), "")).collect()
    }

    fn found(files: usize) -> Vec<String> {
        let files = folder(files);
        breaches(&RULE, &files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>())
    }

    #[test]
    fn fires_one_file_above_the_limit() {
        assert_eq!(found(FILES_MAX + 1), ["docs/00.md:1"]);
    }

    #[test]
    fn silent_at_the_limit() {
        assert!(found(FILES_MAX).is_empty());
    }
}
