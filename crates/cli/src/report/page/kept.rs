//! The page of a run that was kept.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_profile::Profile;
use chokepoint_profile::analysis::report::report;
use serde_json::Value;

use super::{diagnosis, experiment, flame, size};

/// The page of a document that a verb printed; nothing for a verb without pages, and for a document that this version cannot read.
pub(crate) fn page(document: &Value, words: &Catalogue) -> Option<Value> {
    let kind = document.get("schema")?.as_str()?;
    let page = match kind {
        "chokepoint/diagnosis/1" => diagnosis::page(&read(document)?, words),
        "chokepoint/experiment/1" => experiment::page(&read(document)?, words),
        "chokepoint/profile/1" => {
            let profile = Profile::from_json(&document.to_string()).ok()?;
            flame::of_profile(&profile, &report(&profile), None)
        }
        "chokepoint/size/1" => size::page(&read(document)?, words),
        // Captures are gone by then: the page was made at the time.
        _ => return document.get("page").cloned(),
    };
    Some(page.json())
}

fn read<T: serde::de::DeserializeOwned>(document: &Value) -> Option<T> {
    serde_json::from_value(document.clone()).ok()
}
