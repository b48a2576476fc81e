//! The pages of flame graphs.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_profile::analysis::difference;
use chokepoint_profile::analysis::report::{Report, report};
use chokepoint_profile::output::flame::{self, Flame};
use chokepoint_profile::output::folded::{self, FoldedError};
use chokepoint_profile::output::text::{Layout, render};
use chokepoint_profile::{Clock, Profile, waits_text};
use chokepoint_recorder::incident::Incident;
use chokepoint_runs::KeptProfiles;
use serde_json::{Value, json};

use super::{Block, ReportPage, Section, text};

/// Name and version of a profile's JSON form.
const SCHEMA: &str = "chokepoint/profile/1";

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

/// The page of a profile; with an earlier one, of the difference.
pub(crate) fn of_profile(profile: &Profile, summary: &Report, before: Option<&Profile>) -> ReportPage {
    let title = title(profile);
    let text = told(profile, summary, &Layout { width: 200, unicode: true, tree_share_min: 1.0 });
    let head = text.split("\n\n").next().unwrap_or_default().lines().map(str::to_owned).collect();
    match before {
        Some(before) => {
            let difference = difference::join(profile, before);
            page(&flame::of_difference(&difference), &format!("{title}, against an earlier profile"), head)
        }
        None => page(&flame::of(profile), &title, head),
    }
}

/// The page of a profile as `profile --json` prints it; nothing for another document.
pub(crate) fn of_document(document: &Value) -> Option<Value> {
    (document.get("schema")? == SCHEMA).then_some(())?;
    let profile = Profile::from_json(&document.to_string()).ok()?;
    Some(of_profile(&profile, &report(&profile), None).json())
}

/// What a profile shows.
pub(crate) fn title(profile: &Profile) -> String {
    let what = if profile.clock == Clock::OffCpu { "What is waited for" } else { "CPU time" };
    format!("{what}: {}", profile.scope)
}

/// A profile as text.
pub(crate) fn told(profile: &Profile, summary: &Report, layout: &Layout) -> String {
    if profile.clock == Clock::OffCpu { waits_text::render(profile, layout) } else { render(profile, summary, layout) }
}

/// The page of what used the CPUs during an incident, coloured by the difference to before if that was sampled.
///
/// # Errors
/// A profile is no list of folded stacks.
pub(crate) fn of_incident(profiles: &KeptProfiles, incident: &Incident, words: &Catalogue) -> Result<ReportPage, FoldedError> {
    let title = Message::new("watch-flame-title").with("number", incident.id.to_string()).with("target", incident.drop.target.as_str());
    let (title, during) = (words.text(&title), folded::read(&profiles.during)?);
    let told = [&incident.headline].into_iter().chain(&during.left_out).cloned().collect();
    Ok(match &profiles.before {
        Some(before) => page(&flame::of_difference(&difference::join(&during, &folded::read(before)?)), &title, told),
        None => page(&flame::of(&during), &title, told),
    })
}
