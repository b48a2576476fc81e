//! Documents without a link to them, and links without a target.

use std::collections::BTreeSet;

use super::{Breach, Rule};
use crate::tree::{Tree, directory_of, join};

/// The documents at which readers begin.
const ENTRANCES: &[&str] = &["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"];

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "unlinked-document",
    asks: "every .md below docs/ is linked from a document that is read itself, and every relative link leads to a file",
    check: |workspace| {
        let mut breaches = Vec::new();
        let mut reached: BTreeSet<String> = BTreeSet::new();
        let mut waiting: Vec<String> = ENTRANCES.iter().map(|entrance| (*entrance).to_owned()).collect();
        while let Some(document) = waiting.pop() {
            let Some(text) = workspace.tree.text(&document) else { continue };
            if reached.insert(document.clone()) {
                waiting.extend(links(text).into_iter().filter_map(|(_, link)| join(directory_of(&document), &link)));
            }
        }
        for (path, text) in workspace.tree.ending(".md") {
            if path.starts_with("docs/") && !reached.contains(path) {
                breaches.push(Breach::new(path, 1, format!("no link leads here from {}", ENTRANCES.join(", "))));
            }
            for (line, link) in links(text) {
                if !leads_somewhere(workspace.tree, path, &link) {
                    breaches.push(Breach::new(path, line, format!("`{link}` leads nowhere")));
                }
            }
        }
        breaches
    },
};

/// False if the link names a file that the tree would contain by its kind, and the tree does not contain it.
fn leads_somewhere(tree: &Tree, from: &str, link: &str) -> bool {
    let Some(target) = join(directory_of(from), link) else { return false };
    let is_of_the_tree = target.ends_with(".md") || target.ends_with(".rs") || target.ends_with(".toml") || target.ends_with(".sh");
    !is_of_the_tree || tree.text(&target).is_some()
}

/// Relative links of a Markdown text with their lines: `](target)` outside of code, without anchors.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            let target = rest.split([')', ' ', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, target.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::breaches;
    use super::RULE;

    #[test]
    fn fires_on_lost_documents_and_broken_links() {
        let files = [("README.md", "[a](docs/a.md)"), ("docs/a.md", "x\n[gone](b.md)"), ("docs/c.md", "[self](c.md)")];
        assert_eq!(breaches(&RULE, &files), ["docs/a.md:2", "docs/c.md:1"]);
        assert_eq!(breaches(&RULE, &[("README.md", "[out](../../x.md)")]), ["README.md:1"]);
    }

    #[test]
    fn silent_on_what_is_found_directly_or_on_the_way() {
        let files = [
            ("README.md", "[a](docs/a.md#part) [web](https://example.org/x.md) `x`\n```\n[no](nowhere.md)\n```"),
            ("docs/a.md", "[b](sub/b.md \"title\") [top](#top)"),
            ("docs/sub/b.md", "[back](../../README.md)"),
            ("crates/x/notes.md", ""),
        ];
        assert!(breaches(&RULE, &files).is_empty(), "{:?}", breaches(&RULE, &files));
    }
}
