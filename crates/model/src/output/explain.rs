//! The page of a station or a finding, with the same headings for all: what it limits, how it shows, how certain it is, remedies, sources.

use crate::judge::stations::STATIONS;
use crate::output::catalogue::Catalogue;

/// The sections of every page, in order, by the suffix of their message ids.
pub const SECTIONS: &[&str] = &["limits", "shows", "sure", "remedies", "sources"];

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainPage {
    /// Id of the station or finding.
    pub id: String,
    /// Title.
    pub title: String,
    /// Heading and text of each section.
    pub sections: Vec<(String, String)>,
}

/// Ids that have a page: each station followed by its findings, in the order of the path. A finding of several stations is listed once.
pub fn ids() -> Vec<&'static str> {
    let mut ids = Vec::new();
    for id in STATIONS.iter().flat_map(|def| std::iter::once(def.id.0).chain(def.findings.iter().map(|finding| finding.0))) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// The page of a station or finding; `None` if there is no such id.
pub fn page(id: &str, words: &Catalogue) -> Option<ExplainPage> {
    let known = ids().into_iter().find(|known| *known == id)?;
    let title = words.plain(&format!("page-{known}-title"))?;
    let section = |name: &&str| Some((words.plain(&format!("heading-{name}"))?, words.plain(&format!("page-{known}-{name}"))?));
    let sections = SECTIONS.iter().map(section).collect::<Option<Vec<_>>>()?;
    Some(ExplainPage { id: known.to_owned(), title, sections })
}

/// Ids similar to a mistyped one: those that share its beginning or a part of it, at most three.
pub fn near(id: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = id.split('-').filter(|part| part.len() > 2).collect();
    let mut scored: Vec<(usize, &'static str)> = ids()
        .into_iter()
        .map(|known| (parts.iter().filter(|part| known.contains(**part)).count(), known))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(3).map(|(_, known)| known).collect()
}

impl ExplainPage {
    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n`{}`\n", self.title, self.id);
        for (heading, body) in &self.sections {
            text.push_str(&format!("\n## {heading}\n\n{body}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_station_and_finding_has_a_whole_page() {
        let words = Catalogue::english();
        for id in ids() {
            let page = page(id, &words).unwrap_or_else(|| panic!("{id} has no page, or one without all sections"));
            assert_eq!(page.sections.len(), SECTIONS.len());
            for (title, body) in &page.sections {
                assert!(body.len() > 20, "{id}: section {title:?} has 20 bytes or fewer: {body:?}");
            }
        }
    }

    #[test]
    fn a_typo_finds_its_neighbours() {
        assert!(near("conntrack-full").contains(&"conntrack-table-full"));
        assert_eq!(page("no-such-thing", &Catalogue::english()), None);
    }
}
