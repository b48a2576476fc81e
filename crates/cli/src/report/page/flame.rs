//! The page of a flame graph.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_profile::analysis::difference;
use chokepoint_profile::output::flame::{self, Flame};
use chokepoint_profile::output::folded::{self, FoldedError};
use chokepoint_recorder::incident::Incident;
use chokepoint_runs::KeptProfiles;
use serde_json::json;

use super::{Block, ReportPage, Section, text};

/// The page. `told`: lines above the graph.
pub(crate) fn page(graph: &Flame<'_>, title: &str, told: Vec<String>) -> ReportPage {
    let graph = Block::Flame { graph: json!(graph) };
    let blocks = told.into_iter().filter(|line| !line.is_empty()).map(text).chain([graph]).collect();
    ReportPage {
        title: title.to_owned(),
        subject: title.to_owned(),
        sections: vec![Section { id: "flame".to_owned(), heading: String::new(), blocks }],
        ..ReportPage::default()
    }
}

/// The page of what used the CPUs during an incident, coloured by the difference to before if that was sampled.
///
/// # Errors
/// A profile is no list of folded stacks.
pub(crate) fn of_incident(profiles: &KeptProfiles, incident: &Incident, words: &Catalogue) -> Result<ReportPage, FoldedError> {
    let title = Message::new("watch-flame-title").with("number", incident.id.to_string()).with("target", incident.drop.target.as_str());
    let (title, during, told) = (words.text(&title), folded::read(&profiles.during)?, vec![incident.headline.clone()]);
    Ok(match &profiles.before {
        Some(before) => page(&flame::of_difference(&difference::join(&during, &folded::read(before)?)), &title, told),
        None => page(&flame::of(&during), &title, told),
    })
}
