//! The pages of stations and findings, as documents.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::explain::{ids, page};
use serde::Serialize;

/// A page: what it is about, and its sections in their order.
#[derive(Debug, Serialize)]
struct Page {
    id: String,
    title: String,
    sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
struct Section {
    heading: String,
    /// Markdown.
    text: String,
}

#[derive(Debug, Serialize)]
struct Titled {
    id: String,
    title: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Pages {
    pages: Vec<Titled>,
}

/// All pages, in the order of the path.
pub(crate) fn all() -> Pages {
    let words = Catalogue::english();
    let titled = |id: &str| page(id, &words).map(|page| Titled { id: page.id, title: page.title });
    Pages { pages: ids().into_iter().filter_map(titled).collect() }
}

/// The page of a station or finding.
pub(crate) fn one(id: &str) -> Option<impl Serialize + use<>> {
    let found = page(id, &Catalogue::english())?;
    let sections = found.sections.into_iter().map(|(heading, text)| Section { heading, text }).collect();
    Some(Page { id: found.id, title: found.title, sections })
}
